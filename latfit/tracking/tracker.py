"""The current timeout of a system that changes, learnt from the attempts that it cuts short."""

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
# what a state calls the attributes that it holds as they are
PLAIN = {"t": "_t", "seen": "observations", "stale": "_stale", "latencies": "_latencies", "statuses": "_statuses"}


@dataclass
class Guard:
    """The back-off state: completions still required (`left`) and the timeout until then (`back`).

    While guarding, every miss doubles `back`, and completions bring it down to twice the slowest of them.
    `run` holds latency and status of the misses since the last completion in time.
    """

    back: float
    left: int = CAREFUL_START
    slowest: float = 0.0
    run: list[tuple[float, int]] = field(default_factory=list)

    def judge(self, latency: float, code: int, *, t: float, out: float, cutoff: float) -> bool:
        """Add an attempt under the timeout `t`, which the share `out` is expected to miss; True is an alarm."""
        if code == FAILED:
            return False
        if code == COMPLETED and (self.left > 0 or latency <= t):
            self.run.clear()
            if self.left > 0:
                self.left -= 1
                self.slowest = max(self.slowest, latency)
                self.back = min(self.back, max(t, 2 * self.slowest))
            return False
        if latency < (self.back if self.left > 0 else t) * (1 - 1e-9):  # clocks may measure a wait slightly too short
            return False
        if self.left > 0:
            self.back = min(2 * self.back, cutoff)
            return False
        self.run.append((latency, code))
        return len(self.run) >= 40 or out ** len(self.run) < 0.001  # chance does not explain this run


class Tracker:
    r"""The timeout for the next attempt, when the law of the latencies changes with time.

    Every attempt is cut at the current timeout, so later answers are never observed, and a system that slows down looks
    like one that loses everything. The tracker therefore explores (a few attempts may take twice as long), guards (a
    run of misses that chance does not explain doubles the timeout until attempts complete again), and prefers too late
    to too early: it takes the largest timeout within `slack` of the least E_J. Its memory is bounded and fades with
    five half-lives; the longest that the shorter ones do not contradict is used. Threads may share a tracker.

    Parameters: `initial`, the first timeout in seconds, better too small than too large; `cutoff`, the longest time
    that an attempt may take; `cost`, the seconds that each resubmission costs; `explore`, the share of attempts with
    twice the timeout (0 if you still listen to abandoned attempts and report them when they come back); `slack`, by
    what share E_J may exceed the least; `seed`, that of the exploration.

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
        self.observations = self._stale = 0  # attempts and probes in all, and those since the last estimate

    def next(self, at: object = None) -> float:
        """The timeout for the next attempt, in seconds; a random share of attempts explores.

        `at`, the time of the attempt, is accepted but not used, here and below: if the hours of the day differ, keep
        a tracker for each.
        """
        with self._lock:
            now = self.timeout
            if self._guard.left or not self.explore:
                return now
            return min(2 * now, self.cutoff) if self._rng.random() < self.explore else now

    def observe(self, latency: float, status: str = "completed", at: object = None) -> None:
        """Add an attempt: `completed` after `latency` seconds, `censored` (given up after them), `failed` or `lost`.

        An abandoned attempt that comes back may be reported then, as completed, instead of as censored.
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
            latest = self._estimate  # a single miss more than expected is never a surprise
            out = 1.0 if latest is None else max(latest.still_out, 1 / (1 + latest.effective))
            if self._guard.judge(float(latency), code, t=self._t, out=out, cutoff=self.cutoff):
                self._flush()  # wait twice as long, and start the shortest memory with this run
                self._memories.restart_shortest(self._guard.run)
                self._guard = Guard(min(2 * self._t, self.cutoff), left=5)
            if len(self._latencies) >= 64:
                self._flush()

    def learn(self, latency: ArrayLike, status: str | ArrayLike = "completed", at: object = None) -> None:
        """Add probes that no timeout of this tracker cut short: one latency or many, oldest first.

        `status` is one word for all, or one for each (or the codes of `latfit.sample`). Probes show what lies beyond
        the timeout, so a slow probe never raises the guard, and twenty probes end the careful start.
        """
        try:
            x, codes = np.atleast_1d(np.asarray(latency, dtype=np.float64)), np.asarray(status)
        except (TypeError, ValueError):
            raise RestartError("the latencies are not all numbers of seconds") from None
        if codes.ndim and codes.shape != x.shape:
            raise RestartError(f"{x.size} latencies and {codes.size} statuses: give one status, or one for each")
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
        """Never back off: for attempts that were cut by other timeouts than those of this tracker."""
        self._guard.left = 0

    def _flush(self) -> None:
        if self._latencies:
            self._memories.add(self._latencies, self._statuses)
            self._latencies.clear()
            self._statuses.clear()

    def refresh(self) -> None:
        """Update the estimate if there are enough new observations; asking for a timeout does this, too."""
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
        """The current estimate, guard or not; None before enough attempts completed."""
        self.refresh()
        return self._estimate

    @property
    def timeout(self) -> float:
        """The current timeout in seconds, without exploration."""
        self.refresh()
        return self._guard.back if self._guard.left else self._t

    @property
    def expected_duration(self) -> float | None:
        """E_J at the estimated timeout, in seconds; None before enough attempts completed."""
        return self.latest.expected_duration if self.latest else None

    @property
    def changed(self) -> bool:
        """Whether the latest attempts contradict the longest memory: the system has changed."""
        return self.latest is not None and self.latest.changed

    def regret(self, timeout: float) -> float | None:
        """By what share another timeout makes jobs slower now than the best one (0.1 = 10 %); None if unknown yet."""
        if not (_is_number(timeout) or timeout == math.inf) or not timeout > 0:
            raise RestartError(f"the timeout is {timeout!r}: it must be a number of seconds greater than 0")
        with self._lock:
            latest = self.latest
            return None if latest is None else regret(self._memories, latest.level, timeout, cost=self.cost)

    def interval(self, of: str = "timeout") -> tuple[float, float]:
        """A 95 % interval of the best `timeout`, or of the `expected_duration` at it, in seconds.

        A Poisson bootstrap of the effective counts: of the memory in use and, if a longer one is contradicted, also of
        the next shorter one. Before enough attempts completed it is (0, cutoff), or (0, inf).
        docs/calibration.md has its coverage; under a fast daily cycle the interval of the expected duration describes
        the average hour, and rarely the current one.
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
        """The combined knowledge of two trackers of one system, with the settings and exploration of the first.

        Each must have observed attempts of its own, as on two hosts: attempts that both observed count twice, which
        makes intervals too narrow. Do not add a tracker to its own copy.
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
        """The complete state: the restored tracker gives exactly the same timeouts, exploration included."""
        return json.dumps(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """The complete state as plain values."""
        with self._lock:
            state = {
                "latfit-tracker": STATE_VERSION,
                **{name: getattr(self, name) for name in SETTINGS},
                **{name: copy.copy(getattr(self, attribute)) for name, attribute in PLAIN.items()},
                "guard": vars(self._guard) | {"run": list(self._guard.run)},
                "found": self._estimate and vars(self._estimate),
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
        """The tracker that `to_dict` wrote; any kind of error if the state is invalid."""
        if state["latfit-tracker"] != STATE_VERSION:
            version = state["latfit-tracker"]
            raise RestartError(f"this state has the version {version}; this latfit reads {STATE_VERSION}")
        check_signed(state)
        tracker = cls(**{name: state[name] for name in SETTINGS})
        tracker._memories = Memories.from_dict(state["memories"], tracker.cutoff)
        tracker._rng.bit_generator.state = state["random"]
        for name, attribute in PLAIN.items():
            setattr(tracker, attribute, state[name])
        tracker._guard = Guard(**state["guard"])
        tracker._estimate = state["found"] and Estimate(**state["found"])
        return tracker


def _is_number(value: object) -> bool:
    try:
        return math.isfinite(value)  # type: ignore[arg-type]
    except (TypeError, OverflowError):
        return False
