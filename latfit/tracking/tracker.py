"""The current timeout of a system that changes, learnt from the very attempts that it cuts short."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import datetime
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latfit.errors import RestartError
from latfit.numbers import Floats
from latfit.tracking import checked
from latfit.tracking.bootstrap import intervals
from latfit.tracking.estimate import Estimate, estimate, regret
from latfit.tracking.given import is_number, numbers, one_each
from latfit.tracking.guard import AT_START, Guard
from latfit.tracking.hours import Hours, seconds_of
from latfit.tracking.memories import BUCKETS, CENSORED, COMPLETED, LEVELS, LOST, STATUS, Memories

EVERY = 5  # observations between two estimates
WAITING = 64  # observations that wait for an estimate
VERSION = 1
SETTINGS = ("initial", "cutoff", "cost", "explore", "slack")


class Tracker:
    r"""The timeout to give the next attempt, where the law of the latencies changes with time.

    Every attempt is cut at the timeout in force, so nothing beyond it is seen, and a system that slows down looks like
    one that loses everything. The tracker therefore explores (a few attempts may take twice as long), guards (a run of
    misses that chance does not explain doubles the wait until attempts complete again), and prefers too late to too
    early: the largest timeout within `slack` of the least E_J. What it remembers is bounded, and fades with five
    half-lives, of which the longest that the shorter ones do not contradict is used. Threads may share it.

    Parameters: `initial`, the first timeout in seconds, better too small than too large; `cutoff`, the longest that
    any attempt may take; `cost`, the seconds that each resubmission costs; `explore`, the share of attempts that are
    given twice the timeout (0 where abandoned attempts are still listened to, and reported when they come back);
    `slack`, how much longer than the best E_J may be; `seed` of the exploration.

    >>> tracker = Tracker(initial=1.0, cutoff=60.0, seed=1)
    >>> rng = np.random.default_rng(1)
    >>> for _ in range(500):
    ...     timeout = tracker.next()
    ...     latency = float("inf") if rng.random() < 0.05 else rng.lognormal(0, 1)
    ...     tracker.observe(min(latency, timeout), "completed" if latency <= timeout else "censored")
    >>> 0.8 < tracker.timeout < 3
    True
    >>> Tracker.from_json(tracker.to_json()).next() == tracker.next()
    True
    """

    def __init__(
        self,
        *,
        initial: float = 10.0,
        cutoff: float = 600.0,
        cost: float = 0.0,
        explore: float = 0.03,
        slack: float = 0.01,
        seed: int | None = 0,
    ) -> None:
        for name, value, low, high in (
            ("cutoff", cutoff, 0.0, math.inf), ("initial", initial, 0.0, cutoff), ("cost", cost, -1.0, math.inf),
            ("explore", explore, -1.0, 1.0), ("slack", slack, -1.0, 1.0),
        ):  # fmt: skip
            if not (is_number(value) and low < value <= high) or (low == -1.0 and value < 0):
                raise RestartError(
                    f"{name} is {value!r}: it must be a finite number "
                    + ("greater than 0" if low == 0 else "of at least 0")
                    + (f", and at most {high:g}" if math.isfinite(high) else "")
                )
        self.initial, self.cutoff, self.cost = float(initial), float(cutoff), float(cost)
        self.explore, self.slack = float(explore), float(slack)
        self._lock = RLock()
        self._memories = Memories(self.cutoff)
        try:
            self._rng = np.random.default_rng(seed)
        except (TypeError, ValueError):
            raise RestartError(f"seed is {seed!r}: it must be a whole number of at least 0, or None") from None
        self._t = self.initial
        self._guard = Guard(self.initial)
        self._buckets: list[int] = []  # observed since the last estimate
        self._statuses: list[int] = []
        self._found: Estimate | None = None
        self._seen = self._stale = 0  # observed in all, and since the last estimate
        self._hours = Hours()
        self._level: float | None = None  # the mean log latency that hours are compared with

    def next(self, at: float | datetime | None = None) -> float:
        """The timeout to give the next attempt, in seconds; a random share of attempts explores.

        `at` is the time of the attempt (seconds since 1970 or a datetime), for trackers that are told the time.
        """
        with self._lock:
            now = self._in_force(at)
            if self._guard.left or not self.explore:
                return now
            return min(2 * now, self.cutoff) if self._rng.random() < self.explore else now

    def observe(self, latency: float, status: str = "completed", at: float | datetime | None = None) -> None:
        """Take in one attempt: `completed` after `latency` seconds, `censored` (given up after them), `failed`, `lost`.

        An attempt that was abandoned and came back later may be reported then, as completed, instead of as censored.
        With `at`, the time of the attempt, the hours of the day are told apart where they differ.
        """
        code = STATUS.get(status) if isinstance(status, str) else None
        if code is None:
            raise RestartError(f"{status!r} is not how an attempt can end; choose from {', '.join(STATUS)}")
        if not is_number(latency) or latency < 0:
            raise RestartError(f"the latency is {latency!r}: it must be a finite number of seconds, at least 0")
        if latency > self.cutoff:
            latency, code = self.cutoff, LOST if code == LOST else CENSORED
        with self._lock:
            if at is not None:
                latency = self._without_hour(latency, code, seconds_of(at))
            bucket = self._memories.bucket(latency, code)
            self._buckets.append(bucket)
            self._statuses.append(code)
            self._seen += 1
            self._stale += 1
            if self._guard.judge(latency, code, bucket, t=self._t, out=self._still_out, cutoff=self.cutoff):
                self._alarm()
            if len(self._buckets) >= WAITING:
                self._flush()

    def _without_hour(self, latency: float, code: int, at: float) -> float:
        """The latency as it would be at an hour of average speed."""
        if code == COMPLETED and latency > 0:
            if self._level is None:
                self._level = math.log(latency)
            self._hours.add(at, math.log(latency) - self._level)
        return latency * math.exp(-self._hours.offset(at))

    def learn(
        self, latency: ArrayLike, status: str | ArrayLike = "completed", at: ArrayLike | datetime | None = None
    ) -> None:
        """Take in probes that no timeout of this tracker cut short: one latency or many, the oldest first.

        `status` is one word for all or one each, `at` the times of the probes. Probes tell what lies beyond the
        timeout, so none of them is taken as a sign of trouble, and once twenty are known the tracker no longer starts
        carefully.
        """
        x = np.atleast_1d(numbers("latencies", latency))
        words = one_each("statuses", np.asarray(status, dtype=object), x)
        try:
            codes = np.array([STATUS[word] for word in words.tolist()], dtype=np.int8)
        except KeyError as unknown:
            raise RestartError(f"{unknown} is not how a probe can end; choose from {', '.join(STATUS)}") from None
        x = np.where((codes == LOST) & ~np.isfinite(x), self.cutoff, x)
        if not (np.isfinite(x) & (x >= 0)).all():
            raise RestartError("a latency is negative or not a number: latencies are seconds, at least 0")
        if at is not None:
            told = np.asarray(seconds_of(at)) if isinstance(at, datetime) else numbers("times", at)
            times = one_each("times", told, x)
            if not np.isfinite(times).all():
                raise RestartError("a time is not a number: times are seconds since 1970")
            with self._lock:
                for i, (y, code, when) in enumerate(zip(x.tolist(), codes.tolist(), times.tolist(), strict=True)):
                    x[i] = self._without_hour(y, code, when)
        self.learn_codes(x, codes)

    def learn_codes(self, latency: Floats, codes: NDArray[np.int8]) -> None:
        """`learn` for checked latencies and the codes of `latfit.logs.table.STATUSES`, without a loop."""
        codes = np.where((latency > self.cutoff) & (codes != LOST), CENSORED, codes)
        x = np.minimum(latency, self.cutoff)
        with self._lock:
            self._flush()
            self._memories.add(self._memories.buckets(x, codes), codes)
            self._seen += x.size
            self._stale += x.size
            self.refresh()
            if self._seen >= AT_START and self._found is not None:
                self._guard = Guard(self._t, 0)

    @property
    def _still_out(self) -> float:
        """The share expected to miss the timeout; one more miss than was seen is never a surprise."""
        if self._found is None:
            return 1.0
        return max(self._found.still_out, 1 / (1 + self._found.effective))

    def _alarm(self) -> None:
        """Wait twice as long until attempts complete again, and let the shortest memory begin with this run."""
        self._flush()
        self._memories.restart_shortest(self._guard.raise_alarm(min(2 * self._t, self.cutoff)))

    def _flush(self) -> None:
        """Move what waits into the memories."""
        if self._buckets:
            self._memories.add(self._buckets, self._statuses)
            self._buckets.clear()
            self._statuses.clear()

    def refresh(self) -> None:
        """Estimate anew where enough was observed since the last time; asking for a timeout does it too."""
        if self._stale < EVERY:
            return
        with self._lock:
            self._flush()
            self._stale = 0
            found = estimate(self._memories, cost=self.cost, slack=self.slack)
            if found is not None:
                self._found, self._t = found, min(found.timeout, self.cutoff)
            if self._hours.start is not None:
                self._hours.refresh()
                self._level = self._memories.level()

    def _in_force(self, at: float | datetime | None) -> float:
        """The timeout in force at a time, without exploration."""
        self.refresh()
        now = self._guard.back if self._guard.left else self._t
        offset = self._hours.offset(None if at is None else seconds_of(at))
        return min(now * math.exp(offset), self.cutoff) if offset else now

    @property
    def timeout(self) -> float:
        """The timeout in force, in seconds, without exploration."""
        return self._in_force(None)

    @property
    def expected_duration(self) -> float | None:
        """E_J at the estimated timeout, in seconds; None before enough attempts completed."""
        self.refresh()
        return self._found.expected_duration if self._found else None

    @property
    def changed(self) -> bool:
        """Whether the latest attempts contradict the longest memory: the system is another than it was."""
        self.refresh()
        return self._found is not None and self._found.changed

    @property
    def guarding(self) -> bool:
        """Whether the tracker waits for attempts to complete, at the start or after a run of misses."""
        return self._guard.left > 0

    def regret(self, timeout: float) -> float | None:
        """What another timeout would cost now over the best one (0.1 = 10 %); None before that is known."""
        if not (is_number(timeout) or timeout == math.inf) or not timeout > 0:
            raise RestartError(f"the timeout is {timeout!r}: it must be a number of seconds greater than 0")
        with self._lock:
            self.refresh()
            if self._found is None:
                return None
            return regret(self._memories, self._found.level, timeout, cost=self.cost)

    def interval(self, of: str = "timeout") -> tuple[float, float]:
        """A 95 % interval of the best `timeout`, or of the `expected_duration` at it, in seconds.

        A Poisson bootstrap of the effective counts, of the memory in use and, where the system has changed, of the
        next shorter one too. Before enough attempts completed nothing is known: (0, cutoff), or (0, inf).
        docs/calibration.md says how often it covers; under a fast daily cycle that is not told by `at`, that of the
        expected duration is about the average hour, and hardly ever right for the hour that it is.
        """
        if of not in ("timeout", "expected_duration"):
            raise RestartError(f"there is an interval of the timeout and of the expected_duration, not of {of!r}")
        with self._lock:
            self.refresh()
            if self._found is None:
                return 0.0, self.cutoff if of == "timeout" else math.inf
            level = self._found.level
            levels = [level] if level == LEVELS - 1 or level == 0 else [level - 1, level]
            t, E = intervals(self._memories, levels, cost=self.cost, slack=self.slack)
            if of == "timeout":
                return min(float(t[0]), self._t), min(max(float(t[1]), self._t), self.cutoff)
            return float(E[0]), float(E[1])

    def __add__(self, other: Tracker) -> Tracker:
        """What two trackers of one system know together, each as of now; settings and exploration of the first.

        Each must have seen attempts of its own, as those of two hosts: what both have seen counts twice, which makes
        intervals too narrow. A tracker and a copy of it must not be added.
        """
        if not isinstance(other, Tracker):
            return NotImplemented
        if (self.cutoff, self.cost) != (other.cutoff, other.cost):
            raise RestartError(
                "trackers with different cutoffs or costs do not add up: "
                f"cutoff {self.cutoff:g} and {other.cutoff:g} s, cost {self.cost:g} and {other.cost:g} s"
            )
        both = Tracker.from_json(self.to_json())
        both._flush()
        theirs = Tracker.from_json(other.to_json())
        theirs._flush()
        both._memories, both._hours = both._memories.plus(theirs._memories), both._hours.plus(theirs._hours)
        both._seen, both._stale = self._seen + other._seen, EVERY
        both.refresh()
        known = self._found is not None or other._found is not None
        guards = [one._guard for one in (self, other) if one._guard.left and (one._found or not known)]
        left, back = max((g.left for g in guards), default=0), max((g.back for g in guards), default=both._t)
        both._guard = Guard(back, left)
        return both

    @property
    def observations(self) -> int:
        """How many attempts and probes were taken in."""
        return self._seen

    def to_json(self) -> str:
        """The whole state, exactly: the restored tracker gives the same timeouts, exploration included."""
        with self._lock:
            return self._written()

    def __reduce__(self) -> tuple[Callable[[str], Tracker], tuple[str]]:
        """Pickled and copied as its state: a lock cannot be."""
        return Tracker.from_json, (self.to_json(),)

    def _written(self) -> str:
        found = self._found and vars(self._found)
        return json.dumps(
            {
                "latfit-tracker": VERSION,
                "initial": self.initial, "cutoff": self.cutoff, "cost": self.cost,
                "explore": self.explore, "slack": self.slack,
                "t": self._t, "guard": vars(self._guard), "level": self._level,
                "seen": self._seen, "stale": self._stale, "found": found,
                "buckets": self._buckets, "statuses": self._statuses, "hours": self._hours.to_dict(),
                "random": self._rng.bit_generator.state, "memories": self._memories.to_dict(),
            }
        )  # fmt: skip

    @classmethod
    def from_json(cls, text: str) -> Tracker:
        """The tracker that `to_json` wrote."""
        try:
            state = json.loads(text)
            if state["latfit-tracker"] != VERSION:
                raise RestartError(f"this state has the version {state['latfit-tracker']}; this latfit reads {VERSION}")
            return cls._restored(state)
        except (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError) as error:
            raise RestartError(f"this is not the state of a tracker ({error}); it is written by to_json()") from error

    @classmethod
    def _restored(cls, state: dict[str, Any]) -> Tracker:
        settings: dict[str, Any] = {name: checked.number(name, state[name]) for name in SETTINGS}
        made = cls(**settings)
        made._memories = checked.memories(state["memories"], made.cutoff)
        made._rng.bit_generator.state = state["random"]
        made._t = checked.positive("t", state["t"], made.cutoff)
        made._level = None if state["level"] is None else checked.number("level", state["level"], -1e3, 1e3)
        made._seen, made._stale = (checked.whole(name, state[name]) for name in ("seen", "stale"))
        made._guard = Guard.restored(state["guard"], made.cutoff)
        made._buckets = checked.wholes("buckets", state["buckets"], BUCKETS - 1, WAITING)
        made._statuses = checked.wholes("statuses", state["statuses"], LOST, WAITING)
        if len(made._buckets) != len(made._statuses):
            raise ValueError("buckets and statuses are not as many")
        made._hours = Hours.from_dict(state["hours"])
        made._found = None if state["found"] is None else Estimate.restored(state["found"])
        return made
