"""The current timeout of a growing log: its lines through the readers into a tracker, and the state in a file."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from latfit.errors import LatfitError, LogError, RestartError
from latfit.files import whole_file
from latfit.logs.choosing import choice_of
from latfit.logs.formats import Format, ReadOptions, find_format
from latfit.logs.source import Source
from latfit.logs.table import LOST, STATUSES
from latfit.numbers import finite
from latfit.tracking import checked
from latfit.tracking.look import Look, look_at
from latfit.tracking.tail import HEAD_LINES, Lines, Tail
from latfit.tracking.tracker import Tracker

EVERY = 20  # observations between two estimates: fixed, so that the state does not depend on when it was looked at
MATTERS = 0.02
VERSION = 1


@dataclass(frozen=True)
class Notice:
    """What is to be said: the timeout now, the one said last, and what keeping that would cost (0.1 = 10 %).

    `withheld` are the reasons for which the decision on the log is withheld: then the timeout is not one to set.
    """

    timeout: float
    low: float
    high: float
    expected_duration: float | None
    previous: float | None
    kept_regret: float | None
    changed: bool
    guarding: bool
    observations: int
    withheld: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        plain = {name: finite(value) if isinstance(value, float) else value for name, value in vars(self).items()}
        return {**plain, "withheld": list(self.withheld)}


class Watch:
    r"""A tracker fed with the lines of a growing log.

    Parameters
    ----------
    path : the log, in any format of one record a line.
    cutoff, cost : as in `latfit.Tracker`.
    state : a file that says where an earlier watch stood; it is written by `save`. Killed at any moment, the next
        watch goes on from there, and its tracker is the same as if nothing had happened.
    options : how the log is read, as in `latfit.read_log`.

    >>> import tempfile
    >>> log = Path(tempfile.mkdtemp()) / "probes.csv"
    >>> _ = log.write_text("latency\n" + "\n".join(str(1 + i % 7 / 10) for i in range(200)) + "\n")
    >>> with Watch(log, cutoff=60.0) as watch:
    ...     watch.read(), watch.notice().observations
    (200, 200)
    """

    def __init__(
        self,
        path: str | Path,
        *,
        cutoff: float,
        cost: float = 0.0,
        format: str | None = None,  # noqa: A002
        state: str | Path | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.path, self.format, self.options = Path(path), format, ReadOptions(**(options or {}))
        self.given = dict(options or {})
        self.withheld: tuple[str, ...] = ()
        self.look_from = 1  # attempts, before the log is looked at as a whole
        self.choice = choice_of(self.options, lambda: None)
        self.file = None if state is None else Path(state)
        self.tracker = Tracker(initial=cutoff, cutoff=cutoff, cost=cost)
        self.refused = 0
        self.announced: float | None = None
        self.tail = Tail(path)
        self.trouble: LogError | None = None  # with a beginning that is too short to be understood
        if self.file is not None and self.file.exists():
            self._restore(self.file)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.tail.close()

    def _restore(self, file: Path) -> None:
        try:
            state = json.loads(file.read_text(encoding="utf-8"))
            if state["latfit-watch"] != VERSION or state["path"] != str(self.path.resolve()):
                raise LogError(f"{file}: this is the state of a watch of {state['path']}, not of {self.path}")
            tracker = Tracker.from_json(json.dumps(state["tracker"]))
            asked = self.tracker
            if (tracker.cutoff, tracker.cost) != (asked.cutoff, asked.cost):
                raise LogError(f"{file}: this state has the cutoff {tracker.cutoff:g} s and the cost {tracker.cost:g} "
                               f"s, not {asked.cutoff:g} and {asked.cost:g}: remove it to begin anew")  # fmt: skip
            said = state["announced"]
            self.refused, self.tracker = checked.whole("refused", state["refused"]), tracker
            self.announced = None if said is None else checked.positive("announced", said)
            self.tail = Tail(self.path, state["tail"])
        except (ValueError, KeyError, TypeError, RestartError, RecursionError) as error:
            raise LogError(f"{file}: this is not the state of a watch ({error}); remove it to begin anew") from error

    def read(self) -> int:
        """Take in what was appended, block by block, the state saved after each; how many attempts."""
        before = self.tracker.observations
        for lines in self.tail.lines():
            try:
                self._feed(lines)
            except LogError as problem:
                if not lines.is_head or lines.data.count(b"\n") >= HEAD_LINES or self.tracker.observations > before:
                    raise
                self.tail.offset, self.trouble = 0, problem  # a header alone, perhaps: wait for more
                return 0
            self.trouble = None
            self.save()
        return self.tracker.observations - before

    def _feed(self, lines: Lines) -> None:
        """The records of some lines, in the order of the log."""
        head = b"" if lines.is_head else lines.head
        skipped = head.count(b"\n")
        with Source(str(self.path), io.BytesIO(head + lines.data)) as source:
            kind = self._kind(source)
            for chunk in kind.read_appended(source, self.options):
                chunk.check()
                records = chunk if self.choice is None else self.choice(chunk)[0]
                new = records.line > skipped
                kept = records.kept & new & (np.isfinite(records.latency) | (records.status == LOST))
                self.refused += int(np.count_nonzero(new & ~records.kept))
                self._observe(records.latency[kept], records.status[kept])

    def _kind(self, source: Source) -> Format:
        kind = find_format(source, self.format, pattern=self.options.pattern)
        if not kind.by_line:
            raise LogError(f"{self.path}: a record of a {kind.name} log is not one line, so its end cannot be followed")
        kind.check(self.options)
        return kind

    def _observe(self, latency: np.ndarray[Any, Any], status: np.ndarray[Any, Any]) -> None:
        tracker = self.tracker
        for y, code in zip(latency.tolist(), status.tolist(), strict=True):
            tracker.observe(y if y == y else tracker.cutoff, STATUSES[code])
            if tracker.observations % EVERY == 0:
                tracker.refresh()

    def look(self) -> Look | None:
        """Decide on what the log holds, once it holds something and whenever the attempts have doubled since.

        None where it is not time, or the log cannot be read as a whole. `withheld` is kept for the notices.
        """
        if self.tracker.observations < self.look_from:
            return None
        self.look_from = self.tracker.observations + EVERY
        cutoff, cost = self.tracker.cutoff, self.tracker.cost
        try:
            found = look_at(self.path, cutoff=cutoff, cost=cost, format=self.format, options=self.given)
        except (LatfitError, OSError):  # rotated away just now, perhaps
            return None
        self.withheld, self.look_from = found.withheld, max(2 * self.tracker.observations, EVERY)
        return found

    def save(self) -> None:
        """Write the state whole, in the place of the old one."""
        if self.file is None:
            return
        state = {"latfit-watch": VERSION, "path": str(self.path.resolve()), "tail": self.tail.state(),
                 "refused": self.refused, "announced": self.announced,
                 "tracker": json.loads(self.tracker.to_json())}  # fmt: skip
        with whole_file(self.file) as part:
            part.write_text(json.dumps(state), encoding="utf-8")

    def notice(self, *, matters: float = MATTERS) -> Notice | None:
        """What to say now, None where keeping the timeout said last costs at most the share `matters` more."""
        now = Tracker.from_json(self.tracker.to_json())  # a copy: looking must not change what comes next
        if now.expected_duration is None:
            return None
        timeout, previous = now.timeout, self.announced
        regret = None if previous is None else now.regret(previous)
        if regret is not None and regret <= matters and not (now.guarding and timeout > 1.5 * (previous or 0.0)):
            return None
        low, high = now.interval()
        self.announced = timeout
        return Notice(timeout, low, high, now.expected_duration, previous, regret, now.changed, now.guarding,
                      now.observations, self.withheld)  # fmt: skip


def cutoff_of_state(file: str | Path) -> float | None:
    """The cutoff of the watch that wrote a state; None where there is none that can be read."""
    try:
        return checked.positive("cutoff", json.loads(Path(file).read_text(encoding="utf-8"))["tracker"]["cutoff"])
    except (OSError, ValueError, KeyError, TypeError, RestartError, RecursionError):
        return None


def _label(text: str) -> str:
    """The value of a label; Prometheus knows three escapes, and no other."""
    plain = text.encode(errors="replace").decode()
    return '"' + plain.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") + '"'


def prometheus(watch: Watch) -> str:
    """The current figures in Prometheus' text format, for node_exporter's textfile collector."""
    now = Tracker.from_json(watch.tracker.to_json())
    low, high = now.interval()
    figures = (
        ("timeout_seconds", "gauge", "The timeout to set.", now.timeout),
        ("timeout_low_seconds", "gauge", "Lower end of its 95 % interval.", low),
        ("timeout_high_seconds", "gauge", "Upper end of its 95 % interval.", high),
        ("expected_duration_seconds", "gauge", "E_J at that timeout.", now.expected_duration),
        ("changed", "gauge", "1 where the latest attempts contradict the older ones.", int(now.changed)),
        ("guarding", "gauge", "1 where a run of misses is being waited out.", int(now.guarding)),
        (
            "withheld",
            "gauge",
            "1 where the log does not bear the timeout out: not to be set.",
            int(bool(watch.withheld)),
        ),
        ("observations_total", "counter", "Attempts taken in.", now.observations),
        ("refused_total", "counter", "Lines that could not be used.", watch.refused),
    )
    label = _label(str(watch.path))
    lines = []
    for name, kind, told, value in figures:
        lines += [f"# HELP latfit_{name} {told}", f"# TYPE latfit_{name} {kind}"]
        lines.append(f"latfit_{name}{{log={label}}} {'NaN' if value is None else repr(value)}")
    return "\n".join(lines) + "\n"
