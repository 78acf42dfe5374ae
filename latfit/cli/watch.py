"""`latfit watch`: the current timeout of a growing log."""

from __future__ import annotations

import json
import signal
import sys
import time
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
from latfit.units import seconds

if TYPE_CHECKING:
    from latfit.tracking.watch import Notice, Watch


@click.command(
    epilog="""\b
Examples:
  latfit watch requests.csv --cutoff 60
  latfit watch requests.csv --cutoff 60 --follow --state requests.state
  latfit watch access.jsonl --cutoff 30 --follow --textfile /var/lib/node_exporter/latfit.prom"""
)
@click.argument("log", metavar="LOG")
@click.option("--follow", is_flag=True, help="Go on as the log grows, until interrupted.")
@click.option("--state", type=click.Path(dir_okay=False), metavar="FILE",
              help="Where to keep what was learnt, to go on from there.")  # fmt: skip
@click.option("--textfile", type=click.Path(dir_okay=False), metavar="FILE.prom",
              help="Write the figures for Prometheus, whole, after each look.")  # fmt: skip
@click.option("--cutoff", type=Seconds(), required=True, metavar="SECONDS",
              help="The longest that any attempt may take.")  # fmt: skip
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
    """
    from latfit.tracking.watch import Watch

    how = read_arguments(given)
    kind = how.pop("format")
    how.pop("max_refused")
    asked = {name: given[name] for name in ("cutoff", "cost", "state")}
    with Watch(log, format=kind, options=how, **asked) as watched:
        (_follow if follow else _once)(watched, textfile=textfile, poll=poll, matters=matters, as_json=as_json)


def _once(watched: Watch, *, poll: float, **look: Any) -> None:
    """Read what there is, and say what the timeout is."""
    from latfit.errors import LogError

    if not watched.path.is_file():
        raise LogError(f"{watched.path}: there is no such file; with --follow it may appear later")
    watched.announced = None
    _look(watched, **look)
    if watched.trouble is not None:
        raise watched.trouble
    if watched.announced is None:
        count = watched.tracker.observations
        few = f"{count} attempts: too few completed to name a timeout"
        say(json.dumps({"timeout": None, "observations": count}) if look["as_json"] else few)


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
    notice = watched.notice(matters=matters) if fresh or watched.announced is None else None
    if notice is not None:
        watched.save()
        say(json.dumps(json_values(notice.to_dict())) if as_json else _line(notice))
        sys.stdout.flush()
    if textfile is not None and (fresh or notice is not None):
        with whole_file(textfile) as part:
            part.write_text(prometheus(watched), encoding="utf-8")


def _line(notice: Notice) -> str:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    told = f"{now} timeout {seconds(notice.timeout)} ({seconds(notice.low)} to {seconds(notice.high)})"
    told += f", E_J {seconds(notice.expected_duration)}, {notice.observations} attempts"
    if notice.previous is not None:
        kept = "would never end" if notice.kept_regret is None or notice.kept_regret > 1e6 else None
        cost = kept or f"would cost {100 * (notice.kept_regret or 0.0):.0f} % more"
        told += f"; keeping {seconds(notice.previous)} {cost}"
    return told + ("; a run of misses is being waited out" if notice.guarding else "")
