"""The current timeout of a system that changes, learnt from the very attempts that it cuts short."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from latfit.errors import RestartError
from latfit.sample import CENSORED, COMPLETED, FAILED, LOST, STATUSES
from latfit.tracking.estimate import LEVELS, Estimate, Memories, check_signed, estimate, intervals, regret, signed

ESTIMATE_EVERY = 5  # observations
CAREFUL_START = 20  # completions to wait for at the start
STATE_VERSION = 2  # of a tracker, and of a watch
SETTINGS = ("cutoff", "initial", "cost", "explore", "slack")


@dataclass
class Guard:
    """Back-off state: completions still required (`left`) and the timeout until then (`back`).

    While guarding, every miss of `back` doubles it, and completions bring it down to twice the slowest of them.
    `run` holds the latency and the status of the misses since the last completion in time.
    """

    back: float
    left: int = CAREFUL_START
    slowest: float = 0.0
    run: list[tuple[float, int]] = field(default_factory=list)

    def judge(self, latency: float, code: int, *, t: float, out: float, cutoff: float) -> bool:
        """Take in one attempt under the timeout `t`, which the share `out` is expected to miss; True is an alarm."""
        if code == FAILED:
            return False
        if code == COMPLETED and (self.left > 0 or latency <= t):
            self.run.clear()
            if self.left > 0:
                self.left -= 1
                self.slowest = max(self.slowest, latency)
                self.back = min(self.back, max(t, 2 * self.slowest))
            return False
        if latency < (self.back if self.left > 0 else t) * (1 - 1e-9):  # a clock may measure a wait as a hair shorter
            return False
        if self.left > 0:
            self.back = min(2 * self.back, cutoff)
            return False
        self.run.append((latency, code))
        return len(self.run) >= 40 or out ** len(self.run) < 0.001  # chance does not explain this run


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
        values, highest = (cutoff, initial, cost, explore, slack), (math.inf, cutoff, math.inf, 1.0, 1.0)
        for name, value, high in zip(SETTINGS, values, highest, strict=True):
            positive = name in ("cutoff", "initial")
            if not _is_number(value) or not 0 <= value <= high or (positive and not value):
                least = "greater than 0" if positive else "of at least 0"
                most = f", and at most {high:g}" if math.isfinite(high) else ""
                raise RestartError(f"{name} is {value!r}: it must be a finite number {least}{most}")
        self.initial, self.cutoff, self.cost = float(initial), float(cutoff), float(cost)
        self.explore, self.slack = float(explore), float(slack)
        try:
            self._rng = np.random.default_rng(seed)
        except (TypeError, ValueError):
            raise RestartError(f"seed is {seed!r}: it must be a whole number of at least 0, or None") from None
        self._lock = RLock()
        self._memories = Memories(self.cutoff)
        self._t = self.initial
        self._guard = Guard(self.initial)
        self._latencies: list[float] = []  # observed since the last estimate
        self._statuses: list[int] = []
        self._estimate: Estimate | None = None
        self.observations = self._stale = 0  # attempts and probes taken in, and those since the last estimate

    def next(self, at: object = None) -> float:
        """The timeout to give the next attempt, in seconds; a random share of attempts explores.

        `at`, the time of the attempt, is accepted and not used, here and below: where the hours of the day differ,
        keep a tracker for each.
        """
        with self._lock:
            now = self.timeout
            if self._guard.left or not self.explore:
                return now
            return min(2 * now, self.cutoff) if self._rng.random() < self.explore else now

    def observe(self, latency: float, status: str = "completed", at: object = None) -> None:
        """Take in one attempt: `completed` after `latency` seconds, `censored` (given up after them), `failed`, `lost`.

        An attempt that was abandoned and came back later may be reported then, as completed, instead of as censored.
        """
        if status not in STATUSES:
            raise RestartError(f"{status!r} is not how an attempt can end; choose from {', '.join(STATUSES)}")
        if not _is_number(latency) or latency < 0:
            raise RestartError(f"the latency is {latency!r}: it must be a finite number of seconds, at least 0")
        code = STATUSES.index(status)
        if latency > self.cutoff:
            latency, code = self.cutoff, LOST if code == LOST else CENSORED
        with self._lock:
            self._latencies.append(float(latency))
            self._statuses.append(code)
            self.observations += 1
            self._stale += 1
            latest = self._estimate  # one more miss than was seen is never a surprise
            out = 1.0 if latest is None else max(latest.still_out, 1 / (1 + latest.effective))
            if self._guard.judge(float(latency), code, t=self._t, out=out, cutoff=self.cutoff):
                self._flush()  # wait twice as long, and let the shortest memory begin with this run
                self._memories.restart_shortest(self._guard.run)
                self._guard = Guard(min(2 * self._t, self.cutoff), left=5)
            if len(self._latencies) >= 64:
                self._flush()

    def learn(self, latency: ArrayLike, status: str | ArrayLike = "completed", at: object = None) -> None:
        """Take in probes that no timeout of this tracker cut short: one latency or many, the oldest first.

        `status` is one word for all or one each (or the codes of `latfit.sample`). Probes tell what lies beyond the
        timeout, so none of them is taken as a sign of trouble, and once twenty are known the tracker no longer starts
        carefully.
        """
        try:
            x, codes = np.atleast_1d(np.asarray(latency, dtype=np.float64)), np.asarray(status)
        except (TypeError, ValueError):
            raise RestartError("the latencies are not all numbers of seconds") from None
        if codes.ndim and codes.shape != x.shape:
            raise RestartError(f"{x.size} latencies and {codes.size} statuses: give one status for all, or one each")
        if codes.dtype.kind != "i":
            words = [str(word) for word in np.broadcast_to(codes, x.shape)]
            if unknown := set(words) - set(STATUSES):
                raise RestartError(f"{unknown.pop()!r} is not how a probe can end; choose from {', '.join(STATUSES)}")
            codes = np.array(list(map(STATUSES.index, words)), dtype=np.int8)
        x = np.where((codes == LOST) & ~np.isfinite(x), self.cutoff, x)
        if not (np.isfinite(x) & (x >= 0)).all():
            raise RestartError("a latency is negative or not a number: latencies are seconds, at least 0")
        with self._lock:
            codes = np.where((x > self.cutoff) & (codes != LOST), CENSORED, codes)
            x = np.minimum(x, self.cutoff)
            self._latencies += x.tolist()
            self._statuses += codes.tolist()
            if len(self._latencies) >= 64:
                self._flush()
            self.observations += x.size
            self._stale += x.size
            if self._guard.left and self.observations >= CAREFUL_START and self.latest is not None:
                self._guard = Guard(self._t, 0)

    def guard_nothing(self) -> None:
        """Never back off: for attempts that other timeouts than those of this tracker cut short."""
        self._guard.left = 0

    def _flush(self) -> None:
        if self._latencies:
            self._memories.add(self._latencies, self._statuses)
            self._latencies.clear()
            self._statuses.clear()

    def refresh(self) -> None:
        """Estimate anew where enough was observed since the last time; asking for a timeout does it too."""
        if self._stale < ESTIMATE_EVERY:
            return
        with self._lock:
            self._flush()
            self._stale = 0
            latest = estimate(self._memories, cost=self.cost, slack=self.slack)
            if latest is not None:
                self._estimate, self._t = latest, min(latest.timeout, self.cutoff)

    @property
    def latest(self) -> Estimate | None:
        """The current estimate, whatever the guard makes of it; None before enough attempts completed."""
        self.refresh()
        return self._estimate

    @property
    def timeout(self) -> float:
        """The timeout in force, in seconds, without exploration."""
        self.refresh()
        return self._guard.back if self._guard.left else self._t

    @property
    def expected_duration(self) -> float | None:
        """E_J at the estimated timeout, in seconds; None before enough attempts completed."""
        return self.latest.expected_duration if self.latest else None

    @property
    def changed(self) -> bool:
        """Whether the latest attempts contradict the longest memory: the system is another than it was."""
        return self.latest is not None and self.latest.changed

    def regret(self, timeout: float) -> float | None:
        """What another timeout would cost now over the best one (0.1 = 10 %); None before that is known."""
        if not (_is_number(timeout) or timeout == math.inf) or not timeout > 0:
            raise RestartError(f"the timeout is {timeout!r}: it must be a number of seconds greater than 0")
        with self._lock:
            latest = self.latest
            return None if latest is None else regret(self._memories, latest.level, timeout, cost=self.cost)

    def interval(self, of: str = "timeout") -> tuple[float, float]:
        """A 95 % interval of the best `timeout`, or of the `expected_duration` at it, in seconds.

        A Poisson bootstrap of the effective counts, of the memory in use and, where the system has changed, of the
        next shorter one too. Before enough attempts completed nothing is known: (0, cutoff), or (0, inf).
        docs/calibration.md says how often it covers; under a fast daily cycle that of the expected duration is about
        the average hour, and hardly ever right for the hour that it is.
        """
        if of not in ("timeout", "expected_duration"):
            raise RestartError(f"there is an interval of the timeout and of the expected_duration, not of {of!r}")
        with self._lock:
            if self.latest is None:
                return 0.0, self.cutoff if of == "timeout" else math.inf
            level = self.latest.level
            levels = [level] if level in (0, LEVELS - 1) else [level - 1, level]
            t, E = intervals(self._memories, levels, cost=self.cost, slack=self.slack)
            return (min(t[0], self._t), min(max(t[1], self._t), self.cutoff)) if of == "timeout" else E

    def __add__(self, other: Tracker) -> Tracker:
        """What two trackers of one system know together, each as of now; settings and exploration of the first.

        Each must have seen attempts of its own, as those of two hosts: what both have seen counts twice, which makes
        intervals too narrow. A tracker and a copy of it must not be added.
        """
        if not isinstance(other, Tracker):
            return NotImplemented
        if (self.cutoff, self.cost) != (other.cutoff, other.cost):
            cutoffs, costs = f"{self.cutoff:g} and {other.cutoff:g} s", f"{self.cost:g} and {other.cost:g} s"
            raise RestartError(f"trackers with different cutoffs ({cutoffs}) or costs ({costs}) do not add up")
        both, theirs = copy.copy(self), copy.copy(other)
        both._flush()
        theirs._flush()
        both._memories.absorb(theirs._memories)
        both.observations, both._stale = self.observations + other.observations, ESTIMATE_EVERY
        both.refresh()
        estimated = self._estimate is not None or other._estimate is not None
        guards = [each._guard for each in (self, other) if each._guard.left and (each._estimate or not estimated)]
        left, back = max((g.left for g in guards), default=0), max((g.back for g in guards), default=both._t)
        both._guard = Guard(back, left)
        return both

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles have a lock of their own."""
        with self._lock:
            return copy.deepcopy({name: value for name, value in vars(self).items() if name != "_lock"})

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=RLock())

    def to_json(self) -> str:
        """The whole state, exactly: the restored tracker gives the same timeouts, exploration included."""
        return json.dumps(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """The whole state as plain values."""
        with self._lock:
            state = {
                "latfit-tracker": STATE_VERSION,
                **{name: getattr(self, name) for name in SETTINGS},
                "t": self._t,
                "guard": vars(self._guard) | {"run": list(self._guard.run)},
                "seen": self.observations,
                "stale": self._stale,
                "found": self._estimate and vars(self._estimate),
                "latencies": list(self._latencies),
                "statuses": list(self._statuses),
                "random": self._rng.bit_generator.state,
                "memories": self._memories.to_dict(),
            }
            return signed(state)

    @classmethod
    def from_json(cls, text: str) -> Tracker:
        """The tracker that `to_json` wrote."""
        try:
            return cls.from_dict(json.loads(text))
        except (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError) as error:
            raise RestartError(f"this is not the state of a tracker ({error}); it is written by to_json()") from error

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Tracker:
        """The tracker that `to_dict` wrote; an error of any kind where a value is not one that it writes."""
        if state["latfit-tracker"] != STATE_VERSION:
            version = state["latfit-tracker"]
            raise RestartError(f"this state has the version {version}; this latfit reads {STATE_VERSION}")
        check_signed(state)
        tracker = cls(**{name: state[name] for name in SETTINGS})
        tracker._memories = Memories.from_dict(state["memories"], tracker.cutoff)
        tracker._rng.bit_generator.state = state["random"]
        tracker._t, tracker.observations, tracker._stale = state["t"], state["seen"], state["stale"]
        tracker._guard = Guard(**state["guard"])
        tracker._latencies, tracker._statuses = state["latencies"], state["statuses"]
        tracker._estimate = state["found"] and Estimate(**state["found"])
        return tracker


def _is_number(value: object) -> bool:
    try:
        return math.isfinite(value)  # type: ignore[arg-type]
    except (TypeError, OverflowError):
        return False
