"""`latfit drift`: when a log changed; `latfit watch`: the current timeout of a growing log."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from latfit._system import whole_file
from latfit.cli import common as cli
from latfit.errors import LogError, counted
from latfit.units import seconds

if TYPE_CHECKING:
    from latfit.tracking.watch import Notice, Watch


@cli.command
def drift(log: str, as_json: bool, output: str | None, **parsed: Any) -> None:
    """Find when and how a log changed, and what adapting to it would have gained.

    Change points with their kind (scale, shape, outliers, failures) and significance, the daily and the weekly
    cycle, the timeout of each window, the cost of keeping the one before, and a backtest in which every policy uses
    only what was known at the time.
    """
    from latfit.report.answers import drift_sections
    from latfit.tracking.drift import drift as find_drift

    table = cli.load_log(log, parsed)
    result = cli.call(find_drift, table, **parsed)
    if output is not None:
        from latfit.plots import save_drift

        save_drift(table, result, output)
        cli.notify("note", [f"drew {output}"])
    cli.show(result.to_dict(), drift_sections(result), as_json=as_json)
    if not as_json:
        cli.notify("note", [f"{name}: {why}" for name, why in result.refused.items()])


@cli.command
def watch(log: str, follow: bool, poll: float, **parsed: Any) -> None:
    """Follow a growing log and print what to set.

    Appended lines are read once; a rotated or truncated log is followed, and a half-written line waits. A line is
    printed when keeping the last printed timeout would cost more than --matters. With --state, a watch that ended for
    any reason resumes where it stopped; with --json each line is a document.

    At first, and whenever the number of attempts has doubled, the whole log is reviewed as by analyze, which decides on
    the schedule. Each line also has the current best timeout for resubmission without limit; if the review withholds
    that, stderr says why and each line is marked `withheld`.
    """
    from latfit.tracking.watch import Watch, cutoff_of_state

    if log == "-":
        raise click.UsageError("standard input cannot be watched: name a file; `latfit analyze -` reads it once")
    path = Path(log)
    if path.is_dir() or (not path.is_file() and not follow):
        absent = "there is no such file; with --follow and --cutoff it may appear later"
        raise LogError(f"{path}: {'this is a directory; name a file in it' if path.is_dir() else absent}")
    how = cli.read_arguments(parsed)
    reader = {"format": how.pop("format"), "options": how}
    del how["max_refused"]
    state = parsed["state"]
    cutoff = parsed["cutoff"] or (state and cutoff_of_state(state)) or _cutoff(path, follow, reader)
    with Watch(log, **reader, cutoff=cutoff, cost=parsed["cost"], state=state) as watched:
        if not follow:
            _once(watched, parsed)
            return
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            while True:
                _look(watched, **parsed)
                time.sleep(poll)
        except KeyboardInterrupt:
            watched.save()


def _cutoff(path: Path, follow: bool, reader: dict[str, Any]) -> float:
    from latfit.tracking.watch import review

    if not path.is_file() or not path.stat().st_size:
        what = "nothing in it" if path.exists() else "no such file"
        if not follow:
            raise LogError(f"{path}: there is {what}; to wait for it, give --follow and --cutoff")
        raise click.UsageError(f"{path}: there is {what} yet; to wait for it, give --cutoff")
    try:
        choice = review(path, **reader)[0].cutoff
    except LogError as problem:
        if not follow:
            raise
        raise LogError(f"{problem}; to follow it anyway, give --cutoff") from problem
    if choice is None:
        raise click.UsageError(f"{path}: it does not determine a cutoff; give one with --cutoff")
    factor = 10.0 if follow and choice.assumed else 1.0  # slower ones are still to come
    reason = f"{f'{factor:g} times ' if factor > 1 else ''}{choice.reason}"
    cli.notify("note", [f"the cutoff is {seconds(factor * choice.cutoff)}, {reason}; change it with --cutoff"])
    return factor * choice.cutoff


def _once(watched: Watch, parsed: dict[str, Any]) -> None:
    watched.announced = None
    _look(watched, **parsed)
    if watched.trouble is not None:
        raise watched.trouble
    if watched.announced is None:
        count = watched.tracker.observations
        few = f"{counted(count, 'attempt')}: too few completed for a timeout"
        document = {"retry": None, "timeout": None, "observations": count, "withheld": list(watched.withheld)}
        cli.say(json.dumps(document) if parsed["as_json"] else few)


def _look(watched: Watch, textfile: str | None, matters: float, as_json: bool, **_: Any) -> None:
    from latfit.tracking.watch import prometheus

    fresh = watched.read()
    first, before = watched.next_review_at == 1, watched.withheld
    facts = watched.review() if fresh or first else None
    if facts is not None:
        withheld = watched.withheld
        cli.notify("note", facts.notes if first else ())
        if before and not withheld:
            cli.notify("note", ["the decision on the log is no longer withheld"])
        elif withheld != before:
            why = "Do not repeat these timeouts without limit: the log does not support independent attempts"
            cli.notify("warning", [f"WITHHELD ({', '.join(withheld)}). {why}. latfit analyze {watched.path} says why"])
    notice = watched.notice(matters=matters) if fresh or watched.announced is None else None
    if notice is not None:
        watched.save()
        cli.say(json.dumps(cli.json_values(notice.to_dict())) if as_json else _line(notice))
        sys.stdout.flush()
    if textfile is not None and (fresh or notice is not None):
        with whole_file(textfile) as part:
            part.write_text(prometheus(watched), encoding="utf-8")


def _line(notice: Notice) -> str:
    from latfit.report.sections import retry_sentence

    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    text = f"{now} {'wait' if notice.retry is None else retry_sentence(notice.retry.to_dict()).rstrip('.')}"
    text += f"; without limit: timeout {seconds(notice.timeout)} ({seconds(notice.low)} to {seconds(notice.high)})"
    text += f", E_J {seconds(notice.expected_duration)}, {counted(notice.observations, 'attempt')}"
    if notice.previous is not None:
        never = notice.kept_regret is None or notice.kept_regret > 1e6
        cost = "would never end" if never else f"would cost {100 * (notice.kept_regret or 0.0):.0f} % more"
        text += f"; keeping {seconds(notice.previous)} {cost}"
    return text + (f"; WITHHELD ({', '.join(notice.withheld)}): not to be set" if notice.withheld else "")
