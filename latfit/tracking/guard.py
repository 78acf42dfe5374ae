"""The guard of a tracker: a run of misses that chance does not explain, and the wait until attempts complete again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from latfit.tracking import checked
from latfit.tracking.memories import BUCKETS, CENSORED, COMPLETED, LOST

AT_START, AFTER_ALARM = 20, 5  # completions to wait for
SURPRISE, LONGEST_RUN = 0.001, 40  # the chance, or the length, of a run of misses that is an alarm
NEARLY = 1 - 1e-9  # a wait that a clock measured as a hair shorter


@dataclass
class Guard:
    """How many completions are still waited for (`left`), and the timeout `back` until then.

    While guarding, every miss of `back` doubles it, and completions bring it down to twice the slowest of them.
    `run` holds the bucket and the status of the misses since the last completion in time.
    """

    back: float
    left: int = AT_START
    slowest: float = 0.0
    run: list[tuple[int, int]] = field(default_factory=list)

    @classmethod
    def restored(cls, state: dict[str, Any], cutoff: float) -> Guard:
        """The guard whose values were written, each checked."""
        return cls(
            checked.positive("back", state["back"], cutoff),
            checked.whole("left", state["left"], AT_START),
            checked.number("slowest", state["slowest"], 0.0),
            checked.pairs("run", state["run"], (BUCKETS - 1, LOST), LONGEST_RUN),
        )

    def judge(self, latency: float, code: int, bucket: int, *, t: float, out: float, cutoff: float) -> bool:
        """Take in one attempt under the timeout `t`, which the share `out` is expected to miss; True is an alarm."""
        if code == COMPLETED and (self.left > 0 or latency <= t):
            self.run.clear()
            if self.left > 0:
                self.left -= 1
                self.slowest = max(self.slowest, latency)
                self.back = min(self.back, max(t, 2 * self.slowest))
            return False
        if code not in (COMPLETED, CENSORED, LOST):
            return False
        if self.left > 0:
            if latency >= self.back * NEARLY:
                self.back = min(2 * self.back, cutoff)
            return False
        if latency < t * NEARLY:
            return False
        self.run.append((bucket, code))
        return len(self.run) >= LONGEST_RUN or out ** len(self.run) < SURPRISE

    def raise_alarm(self, back: float) -> list[tuple[int, int]]:
        """Wait for completions from now on; the run that raised the alarm."""
        run = self.run
        self.left, self.back, self.slowest, self.run = AFTER_ALARM, back, 0.0, []
        return run
