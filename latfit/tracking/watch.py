"""The current timeout of a growing log: its lines through an open reader into a tracker, and the state in a file."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from latfit._system import whole_file
from latfit.decision import Decision, Options, decide
from latfit.errors import LatfitError, LogError, RestartError
from latfit.evidence import probes_of
from latfit.logs import LogFacts, read_log
from latfit.logs.formats import ReadOptions, RowFilter
from latfit.numbers import plain_values
from latfit.restart.retry import Retry
from latfit.table import LOST
from latfit.tracking.estimate import check_signed, signed
from latfit.tracking.tail import TAIL_HEAD_LINES, OpenReader, Tail
from latfit.tracking.tracker import ESTIMATE_EVERY, STATE_VERSION, Tracker

REFRESH_EVERY = 20  # observations: fixed, so that the state does not depend on when it was read


def review(
    path: str | Path,
    *,
    cutoff: float | None = None,
    cost: float = 0.0,
    format: str | None = None,  # noqa: A002
    options: Mapping[str, Any] | None = None,
) -> tuple[Decision, LogFacts]:
    """Decide on a log as `latfit.analyze` does, in the order of submission, without fits, tests and intervals."""
    log = read_log(path, format=format, max_refused=1.0, **(options or {}))
    how = Options(cutoff=cutoff, cost=cost, laws=(), test=False, resamples=0)
    return decide([probes_of(log)], how)[0], log.facts


@dataclass(frozen=True)
class Notice:
    """What to set, and the best timeout now for unlimited resubmission.

    `retry` is the schedule that the last review of the log decided on; None means wait. `timeout` has its interval
    (`low`, `high`), the one reported last (`previous`), what keeping that one costs (`kept_regret`, 0.1 = 10 %), and
    the reasons not to set it (`withheld`).
    """

    retry: Retry | None
    timeout: float
    low: float
    high: float
    expected_duration: float | None
    previous: float | None
    kept_regret: float | None
    changed: bool
    observations: int
    withheld: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return plain_values(self) | {"retry": self.retry and self.retry.to_dict(), "withheld": list(self.withheld)}


class Watch(AbstractContextManager["Watch"]):
    r"""A tracker fed with the lines of a growing log.

    Parameters
    ----------
    path : the log, in any format with one record per line.
    cutoff, cost : as in `latfit.Tracker`.
    state : a file in which `save` keeps the state. After a kill at any moment, the next watch continues from there,
        with the same tracker as if nothing had happened.
    options : how to read the log, as in `latfit.read_log`.

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
        self.path, self.format, self.read_options = Path(path), format, dict(options or {})
        self.row_filter = RowFilter(ReadOptions(**self.read_options), lambda: None)
        self.file = None if state is None else Path(state)
        self.tracker = Tracker(initial=cutoff, cutoff=cutoff, cost=cost)
        self.tracker.guard_nothing()
        self.tail = Tail(path)
        self.reader: OpenReader | None = None
        self.skipped_lines = 0  # the reader's first lines: the head of the file, which an earlier watch has read
        self.refused = 0
        # by the last review: the schedule to set (None: wait), and why not to set the timeout without limit
        self.reviewed = False
        self.retry: Retry | None = None
        self.withheld: tuple[str, ...] = ()
        self.next_review_at = 1  # observations
        self.announced: float | None = None
        self.announced_timeouts: tuple[float, ...] = ()
        self.checked_at = 0  # observations when it was last checked whether there is something to report
        self.interval, self.interval_at = (0.0, cutoff), -REFRESH_EVERY
        self.trouble: LogError | None = None  # why a log with few lines cannot be read yet
        if self.file is not None and self.file.exists():
            self._restore(self.file)

    def __exit__(self, *_: object) -> None:
        self.tail.close()
        self._close_reader()

    def _restore(self, file: Path) -> None:
        try:
            state = json.loads(file.read_text(encoding="utf-8"))
            if state["latfit-watch"] != STATE_VERSION or state["path"] != str(self.path.resolve()):
                raise LogError(
                    f"{file}: this is the state of a watch of {state['path']}, not of {self.path}, "
                    "or of another version of latfit"
                )
            check_signed(state)
            new, old = self.tracker, Tracker.from_dict(state["tracker"])
            if (old.cutoff, old.cost) != (new.cutoff, new.cost):
                raise LogError(
                    f"{file}: this state has the cutoff {old.cutoff:g} s and the cost {old.cost:g} s, "
                    f"not {new.cutoff:g} and {new.cost:g}: remove it to begin anew"
                )
            self.refused, self.announced = state["refused"], state["announced"]
            self.tracker, self.tail = old, Tail(self.path, state["tail"])
        except (ValueError, LookupError, TypeError, OverflowError, RestartError, RecursionError) as error:
            raise LogError(f"{file}: this is not the state of a watch ({error}); remove it to begin anew") from error

    def read(self) -> int:
        """Read the lines that were appended, and return how many attempts they hold."""
        before = self.tracker.observations
        for data, begins in self.tail.lines():
            try:
                self._feed(data, begins=begins)
            except LogError as problem:
                self._close_reader()
                few = begins and data.count(b"\n") < TAIL_HEAD_LINES
                if not few or self.tracker.observations > before:
                    raise
                self.tail.offset, self.trouble = 0, problem  # perhaps only a header: wait for more
                return 0
            self.trouble = None
            self.save()
        return self.tracker.observations - before

    def _feed(self, data: bytes, *, begins: bool) -> None:
        if self.reader is None or begins:
            self._close_reader()
            head = b"" if begins else self.tail.head
            self.skipped_lines = head.count(b"\n")
            self.reader = OpenReader(str(self.path), head + data, self.format, ReadOptions(**self.read_options))
            data = b""
        tracker, rows = self.tracker, 0
        for chunk in self.reader.records(data):
            chunk.check()
            rows += chunk.line.size
            records, _ = self.row_filter(chunk)
            new = records.line > self.skipped_lines
            kept = new & records.kept
            self.refused += int(np.count_nonzero(new) - np.count_nonzero(kept))
            kept &= np.isfinite(records.latency) | (records.status == LOST)
            ends = np.arange(kept.sum()) + tracker.observations + 1
            for part in np.split(np.flatnonzero(kept), np.flatnonzero(ends % REFRESH_EVERY == 0) + 1):
                tracker.learn(records.latency[part], records.status[part])
                if tracker.observations % REFRESH_EVERY == 0:
                    tracker.refresh()
        if begins and not rows:  # a header says too little about the rows to come
            reader = self.reader
            self._close_reader()
            for _ in reader.records():  # the format may raise an error: there is no record
                pass

    def _close_reader(self) -> None:
        if self.reader is not None:
            self.reader.close()
            self.reader = None

    def review(self) -> LogFacts | None:
        """Decide on the log if the attempts have doubled; None if it is too early or the log cannot be read."""
        tracker = self.tracker
        if tracker.observations < self.next_review_at:
            return None
        self.next_review_at = tracker.observations + REFRESH_EVERY
        how = {"cutoff": tracker.cutoff, "cost": tracker.cost}
        try:
            decision, facts = review(self.path, format=self.format, options=self.read_options, **how)
        except (LatfitError, OSError):  # perhaps it was rotated just now
            return None
        best, self.reviewed = decision.timeout, True
        self.retry, self.withheld = (best.retry, best.withheld) if best else (None, ("implausible",))
        self.next_review_at = max(2 * tracker.observations, REFRESH_EVERY)
        return facts

    def save(self) -> None:
        """Write the state, if this watch keeps one."""
        if self.file is None:
            return
        state = {
            "latfit-watch": STATE_VERSION,
            "path": str(self.path.resolve()),
            "tail": self.tail.state(),
            "refused": self.refused,
            "announced": self.announced,
            "tracker": self.tracker.to_dict(),
        }
        with whole_file(self.file) as part:
            part.write_text(json.dumps(signed(state)), encoding="utf-8")

    def figures(self) -> Notice:
        """The current figures; the interval, which takes 199 resamples, is at most 20 attempts old."""
        now = copy.copy(self.tracker)  # an estimate for this report must not change the next ones
        timeout, latest, previous = now.timeout, now.latest, self.announced
        if now.observations >= self.interval_at + REFRESH_EVERY:
            self.interval, self.interval_at = now.interval(), now.observations
        return Notice(
            self.retry,
            timeout,
            low=min(self.interval[0], timeout),
            high=max(self.interval[1], timeout),
            expected_duration=now.expected_duration,
            previous=previous,
            kept_regret=None if previous is None else now.regret(previous),
            changed=latest is not None and latest.changed,
            observations=now.observations,
            withheld=self.withheld,
        )

    def notice(self, *, matters: float = 0.02) -> Notice | None:
        """What to report now; None if the schedule is the one reported last and keeping its timeout costs too little.

        `matters` is the largest share by which jobs may take longer without a new report.
        """
        timeouts = self.retry.timeouts if self.retry else ()
        same = self.announced is not None and timeouts == self.announced_timeouts
        if same and self.tracker.observations - self.checked_at < ESTIMATE_EVERY:
            return None
        self.checked_at, notice = self.tracker.observations, self.figures()
        small = notice.kept_regret is not None and notice.kept_regret <= matters
        if notice.expected_duration is None or (same and small):
            return None
        self.announced, self.announced_timeouts = notice.timeout, timeouts
        return notice


def cutoff_of_state(file: str | Path) -> float | None:
    """The cutoff of the watch that wrote a state; None if there is no state or it cannot be read."""
    try:
        tracker = json.loads(Path(file).read_text(encoding="utf-8"))["tracker"]
        return Tracker.from_dict(tracker).cutoff
    except (OSError, ValueError, LookupError, TypeError, RestartError, RecursionError):
        return None


def prometheus(watch: Watch) -> str:
    """The current figures in Prometheus' text format, for node_exporter's textfile collector."""
    now = watch.figures()
    retry = now.retry.to_dict() if now.retry else {"timeouts": (), "attempts": 1 if watch.reviewed else None}
    figures: list[tuple[str, str, Any]] = [
        ("retry_timeout_seconds", "After what to cancel each attempt but the last.", retry["timeouts"]),
        ("retry_attempts", "Attempts of the schedule to set; 1: wait.", retry["attempts"]),
        ("retry_expected_duration_seconds", "Mean duration of a job under it.", retry.get("expected_duration")),
        ("retry_worst_loss_ratio", "By what share it is slower than waiting at worst.", retry.get("worst_loss")),
        ("timeout_seconds", "The best timeout for unlimited resubmission.", now.timeout),
        ("timeout_low_seconds", "Lower end of its 95 % interval.", now.low),
        ("timeout_high_seconds", "Upper end of its 95 % interval.", now.high),
        ("expected_duration_seconds", "E_J at that timeout.", now.expected_duration),
        ("changed", "1 if the latest attempts contradict the older ones.", int(now.changed)),
        ("withheld", "1 if that timeout must not be set.", int(bool(now.withheld))),
        ("observations_total", "Attempts observed.", now.observations),
        ("refused_total", "Lines that could not be used.", watch.refused),
    ]
    path = str(watch.path).encode(errors="replace").decode()
    path = path.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")  # the only escapes of the format
    lines = []
    for name, about, value in figures:
        kind = "counter" if name.endswith("_total") else "gauge"
        lines += [f"# HELP latfit_{name} {about}", f"# TYPE latfit_{name} {kind}"]
        labelled = {"": value}
        if name == "retry_timeout_seconds":
            labelled = {f',attempt="{attempt}"': timeout for attempt, timeout in enumerate(value, start=1)}
        lines += [
            f'latfit_{name}{{log="{path}"{label}}} {"NaN" if x is None else repr(x)}' for label, x in labelled.items()
        ]
    return "\n".join(lines) + "\n"
