"""The current timeout of a system that changes, learnt from the very attempts that it cuts short."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latfit.errors import RestartError
from latfit.tracking.estimate import Estimate, estimate
from latfit.tracking.memories import CENSORED, COMPLETED, LOST, STATUS, Floats, Memories

EVERY = 5  # observations between two estimates
START_GUARD, GUARD = 20, 5  # completions to wait for, at the start and after an alarm
SURPRISE, LONGEST_RUN = 0.001, 40  # the chance, or the length, of a run of misses that is an alarm
NEARLY = 1 - 1e-9  # a wait that a clock measured as a hair shorter
VERSION = 1


class Tracker:
    r"""The timeout to give the next attempt, where the law of the latencies changes with time.

    Every attempt is cut at the timeout in force, so nothing beyond it is seen, and a system that slows down looks like
    one that loses everything. The tracker therefore explores (a few attempts may take twice as long), guards (a run of
    misses that chance does not explain doubles the wait until attempts complete again), and prefers too late to too
    early: the largest timeout within `slack` of the least E_J. What it remembers is bounded, and fades with five
    half-lives, of which the longest that the shorter ones do not contradict is used.

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
            if not (math.isfinite(value) and low < value <= high) or (low == -1.0 and value < 0):
                raise RestartError(
                    f"{name} is {value!r}: it must be a finite number "
                    + ("greater than 0" if low == 0 else "of at least 0")
                    + (f", and at most {high:g}" if math.isfinite(high) else "")
                )
        self.initial, self.cutoff, self.cost = float(initial), float(cutoff), float(cost)
        self.explore, self.slack = float(explore), float(slack)
        self._memories = Memories(self.cutoff)
        self._rng = np.random.default_rng(seed)
        self._t = self._back = self.initial
        self._guard, self._slowest = START_GUARD, 0.0
        self._run: list[tuple[int, int]] = []  # bucket and status of the misses since the last completion
        self._buckets: list[int] = []  # observed since the last estimate
        self._statuses: list[int] = []
        self._found: Estimate | None = None
        self._seen = 0

    def next(self) -> float:
        """The timeout to give the next attempt, in seconds; a random share of attempts explores."""
        if self._guard > 0:
            return self._back
        if self.explore and self._rng.random() < self.explore:
            return min(2 * self._t, self.cutoff)
        return self._t

    def observe(self, latency: float, status: str = "completed") -> None:
        """Take in one attempt: `completed` after `latency` seconds, `censored` (given up after them), `failed` or `lost`.

        An attempt that was abandoned and came back later may be reported then, as completed, instead of as censored.
        """
        code = STATUS.get(status)
        if code is None:
            raise RestartError(f"{status!r} is not how an attempt can end; choose from {', '.join(STATUS)}")
        if not latency >= 0 or latency == math.inf:
            raise RestartError(f"the latency is {latency!r}: it must be a finite number of seconds, at least 0")
        if latency > self.cutoff:
            latency, code = self.cutoff, LOST if code == LOST else CENSORED
        bucket = self._memories.bucket(latency, code)
        self._buckets.append(bucket)
        self._statuses.append(code)
        self._seen += 1
        self._judge(latency, code, bucket)
        if len(self._buckets) >= EVERY:
            self._estimate()

    def learn(self, latency: ArrayLike, status: str | ArrayLike = "completed") -> None:
        """Take in probes that no timeout of this tracker cut short: one latency or many, the oldest first.

        `status` is one word for all or one each. Probes tell what lies beyond the timeout, so none of them is taken
        as a sign of trouble, and once twenty are known the tracker no longer starts carefully.
        """
        x = np.atleast_1d(np.asarray(latency, dtype=np.float64))
        words = np.broadcast_to(np.asarray(status, dtype=object), x.shape)
        try:
            codes = np.array([STATUS[word] for word in words.tolist()], dtype=np.int8)
        except KeyError as unknown:
            raise RestartError(f"{unknown} is not how a probe can end; choose from {', '.join(STATUS)}") from None
        x = np.where((codes == LOST) & ~np.isfinite(x), self.cutoff, x)
        if not (np.isfinite(x) & (x >= 0)).all():
            raise RestartError("a latency is negative or not a number: latencies are seconds, at least 0")
        self.learn_codes(x, codes)

    def learn_codes(self, latency: Floats, codes: NDArray[np.int8]) -> None:
        """`learn` for checked latencies and the codes of `latfit.logs.table.STATUSES`, without a loop."""
        self._flush()
        codes = np.where((latency > self.cutoff) & (codes != LOST), CENSORED, codes)
        x = np.minimum(latency, self.cutoff)
        self._memories.add(self._memories.buckets(x, codes), codes)
        self._seen += x.size
        self._estimate()
        if self._seen >= START_GUARD and self._found is not None:
            self._guard, self._run = 0, []

    def _judge(self, latency: float, code: int, bucket: int) -> None:
        """The guard: does a run of misses say that the system has slowed down?"""
        if code == COMPLETED:
            if latency <= self._t or self._guard > 0:
                self._run.clear()
                if self._guard > 0:
                    self._guard -= 1
                    self._slowest = max(self._slowest, latency)
                    self._back = min(self._back, max(self._t, 2 * self._slowest))
                return
        elif code not in (CENSORED, LOST):
            return
        if self._guard > 0:
            if latency >= self._back * NEARLY:
                self._back = min(2 * self._back, self.cutoff)
        elif latency >= self._t * NEARLY:
            self._run.append((bucket, code))
            out = self._still_out
            if len(self._run) >= LONGEST_RUN or out ** len(self._run) < SURPRISE:
                self._alarm()

    @property
    def _still_out(self) -> float:
        """The share expected to miss the timeout; one more miss than was seen is never a surprise."""
        if self._found is None:
            return 1.0
        return max(self._found.still_out, 1 / (1 + self._found.effective))

    def _alarm(self) -> None:
        """Wait twice as long until attempts complete again, and let the shortest memory begin with this run."""
        self._guard, self._back, self._slowest = GUARD, min(2 * self._t, self.cutoff), 0.0
        self._flush()
        buckets, statuses = zip(*self._run, strict=True)
        self._memories.restart_shortest(buckets, statuses)
        self._run.clear()

    def _flush(self) -> None:
        """Move what waits into the memories."""
        if self._buckets:
            self._memories.add(self._buckets, self._statuses)
            self._buckets.clear()
            self._statuses.clear()

    def _estimate(self) -> None:
        self._flush()
        found = estimate(self._memories, cost=self.cost, slack=self.slack)
        if found is not None:
            self._found, self._t = found, min(found.timeout, self.cutoff)

    @property
    def timeout(self) -> float:
        """The timeout in force, in seconds, without exploration."""
        return self._back if self._guard > 0 else self._t

    @property
    def expected_duration(self) -> float | None:
        """E_J at the estimated timeout, in seconds; None before enough attempts completed."""
        return self._found.expected_duration if self._found else None

    @property
    def changed(self) -> bool:
        """Whether the latest attempts contradict the longest memory: the system is another than it was."""
        return self._found is not None and self._found.changed

    @property
    def observations(self) -> int:
        """How many attempts and probes were taken in."""
        return self._seen

    def to_json(self) -> str:
        """The whole state, exactly: the restored tracker gives the same timeouts, exploration included."""
        self._flush()
        found = self._found and vars(self._found)
        return json.dumps(
            {
                "latfit-tracker": VERSION,
                "initial": self.initial, "cutoff": self.cutoff, "cost": self.cost,
                "explore": self.explore, "slack": self.slack,
                "t": self._t, "back": self._back, "guard": self._guard, "slowest": self._slowest,
                "run": self._run, "seen": self._seen, "found": found,
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
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise RestartError(f"this is not the state of a tracker ({error}); it is written by to_json()") from error

    @classmethod
    def _restored(cls, state: dict[str, Any]) -> Tracker:
        settings = {name: state[name] for name in ("initial", "cutoff", "cost", "explore", "slack")}
        made = cls(**settings)
        made._memories = Memories.from_dict(state["memories"])
        made._rng.bit_generator.state = state["random"]
        made._t, made._back, made._slowest = state["t"], state["back"], state["slowest"]
        made._guard, made._seen = state["guard"], state["seen"]
        made._run = [(bucket, status) for bucket, status in state["run"]]
        made._found = Estimate(**state["found"]) if state["found"] else None
        return made
