"""`latfit watch`: the current timeout of a growing log."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from latfit.cli.common import (
    Seconds,
    json_option,
    json_values,
    log_options,
    read_arguments,
    say,
)
from latfit.errors import LogError, counted
from latfit.units import seconds

if TYPE_CHECKING:
    from latfit.tracking.look import Look
    from latfit.tracking.watch import Notice, Watch


BEYOND = 10.0  # times the largest latency so far, where nothing tells when to give up


@click.command(
    epilog="""\b
Examples:
  latfit watch requests.csv
  latfit watch requests.csv --cutoff 60 --follow --state requests.state
  latfit watch access.jsonl --cutoff 30 --follow --textfile /var/lib/node_exporter/latfit.prom"""
)
@click.argument("log", metavar="LOG")
@click.option("--follow", is_flag=True, help="Go on as the log grows, until interrupted.")
@click.option("--state", type=click.Path(dir_okay=False), metavar="FILE",
              help="Where to keep what was learnt, to go on from there.")  # fmt: skip
@click.option("--textfile", type=click.Path(dir_okay=False), metavar="FILE.prom",
              help="Write the figures for Prometheus, whole, after each look.")  # fmt: skip
@click.option("--cutoff", type=Seconds(), metavar="SECONDS",
              help="The longest that any attempt may take (default: from the log, as in analyze).")  # fmt: skip
@click.option("--cost", type=Seconds(zero=True), default=0.0, metavar="C", help="Seconds that each restart costs.")
@click.option("--matters", type=click.FloatRange(0, 10), default=0.02, show_default=True, metavar="SHARE",
              help="How much longer jobs may take before a new timeout is worth a line.")  # fmt: skip
@click.option("--poll", type=Seconds(), default=1.0, show_default=True, metavar="SECONDS",
              help="How often to look, with --follow.")  # fmt: skip
@log_options
@json_option
def watch(
    log: str, follow: bool, textfile: str | None, poll: float, matters: float, as_json: bool, **given: Any
) -> None:
    """Follow a growing log and say when its timeout should change.

    Every line that is appended is read once; a rotated or truncated log is followed, a half-written line waits. A line
    is printed when keeping the timeout said last would cost more than --matters. With --state, a watch that was
    ended in any way goes on as if it had not been; with --json each line is a document.

    At first, and whenever the attempts have doubled, the log is looked at as analyze does; where that withholds the
    decision, stderr says why and each line says so (`withheld`).
    """
    from latfit.tracking.watch import Watch

    if log == "-":
        raise click.UsageError("standard input cannot be watched: name a file; `latfit analyze -` reads it once")
    how = read_arguments(given)
    kind = how.pop("format")
    how.pop("max_refused")
    asked = {name: given[name] for name in ("cost", "state")}
    asked["cutoff"] = given["cutoff"] or _cutoff(log, follow, kind, how, given["state"])
    with Watch(log, format=kind, options=how, **asked) as watched:
        (_follow if follow else _once)(watched, textfile=textfile, poll=poll, matters=matters, as_json=as_json)


def _cutoff(log: str, follow: bool, kind: str | None, how: dict[str, Any], state: str | None) -> float:
    """The cutoff of the state, or that which analyze would take from what the log holds."""
    from latfit.tracking.look import look_at
    from latfit.tracking.watch import cutoff_of_state

    path = Path(log)
    kept = None if state is None else cutoff_of_state(state)
    if kept is not None:
        return kept
    if path.is_dir() or (not path.is_file() and not follow):
        raise LogError(_absent(path))
    if not path.exists():
        raise click.UsageError(f"{log}: there is no such file yet; to wait for it, give --cutoff")
    if not path.is_file() or not path.stat().st_size:
        raise click.UsageError(f"there is nothing in {log} yet to take a cutoff from: give one with --cutoff")
    try:
        choice = look_at(path, format=kind, options=how).decision.cutoff
    except LogError as problem:
        if not follow:
            raise
        raise LogError(f"{problem}; to follow it as it is, give --cutoff") from problem
    if choice is None:
        raise click.UsageError(f"nothing in {log} tells a cutoff: give one with --cutoff")
    beyond = BEYOND if follow and choice.assumed else 1.0  # slower ones are still to come
    what = f"{f'{BEYOND:g} times ' if beyond > 1 else ''}{choice.reason}"
    say(f"note: the cutoff is {seconds(beyond * choice.cutoff)}, {what}; change it with --cutoff", err=True)
    return beyond * choice.cutoff


def _absent(path: Path) -> str:
    if path.is_dir():
        return f"{path}: this is a directory; name a file in it"
    return f"{path}: there is no such file; with --follow and --cutoff it may appear later"


def _once(watched: Watch, *, poll: float, **look: Any) -> None:
    """Read what there is, and say what the timeout is."""
    if not watched.path.is_file():
        raise LogError(_absent(watched.path))
    watched.announced = None
    _look(watched, **look)
    if watched.trouble is not None:
        raise watched.trouble
    if watched.announced is None:
        count = watched.tracker.observations
        few = f"{counted(count, 'attempt')}: too few completed to name a timeout"
        told = {"timeout": None, "observations": count, "withheld": list(watched.withheld)}
        say(json.dumps(told) if look["as_json"] else few)


def _follow(watched: Watch, *, poll: float, **look: Any) -> None:
    """Look again and again, until interrupted."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        while True:
            _look(watched, **look)
            time.sleep(poll)
    except KeyboardInterrupt:
        watched.save()


def _stop(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


def _look(watched: Watch, textfile: str | None, matters: float, as_json: bool) -> None:
    """Read what is new, and say what is to be said."""
    from latfit.files import whole_file
    from latfit.tracking.watch import prometheus

    fresh = watched.read()
    first, before = watched.look_from == 1, watched.withheld
    found = watched.look() if fresh or first else None
    if found is not None:
        _tell(found, before, first=first)
    notice = watched.notice(matters=matters) if fresh or watched.announced is None else None
    if notice is not None:
        watched.save()
        say(json.dumps(json_values(notice.to_dict())) if as_json else _line(notice))
        sys.stdout.flush()
    if textfile is not None and (fresh or notice is not None):
        with whole_file(textfile) as part:
            part.write_text(prometheus(watched), encoding="utf-8")


def _tell(found: Look, before: tuple[str, ...], *, first: bool) -> None:
    """Say on stderr what the reader noted, at first, and why the decision on the log is withheld, where that is new."""
    from latfit.analysis import Analysis
    from latfit.report.sentences import decision, why_withheld

    for note in found.facts.notes if first else ():
        say(f"note: {note}", err=True)
    if found.withheld == before:
        return
    if not found.withheld:
        say("note: the decision on the log is no longer withheld", err=True)
        return
    result = Analysis(found.facts, found.decision, (), (), (), found.decision.warnings)
    told = " ".join(why_withheld(result) if result.timeout.withheld else decision(result))
    mixed = found.decision.evidence.mixing if found.decision.evidence and "mixed" in found.withheld else None
    told += "" if mixed is None else f" Watch one of them: --where {mixed.column.name}=NAME"
    codes = ", ".join(found.withheld)
    say(f"warning: WITHHELD ({codes}): timeouts of this watch are those of the formula alone, not to be set. {told}",
        err=True)  # fmt: skip


def _line(notice: Notice) -> str:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    told = f"{now} timeout {seconds(notice.timeout)} ({seconds(notice.low)} to {seconds(notice.high)})"
    told += f", E_J {seconds(notice.expected_duration)}, {counted(notice.observations, 'attempt')}"
    if notice.previous is not None:
        kept = "would never end" if notice.kept_regret is None or notice.kept_regret > 1e6 else None
        cost = kept or f"would cost {100 * (notice.kept_regret or 0.0):.0f} % more"
        told += f"; keeping {seconds(notice.previous)} {cost}"
    told += "; a run of misses is being waited out" if notice.guarding else ""
    return told + (f"; WITHHELD ({', '.join(notice.withheld)}): not to be set" if notice.withheld else "")
