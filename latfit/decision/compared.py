"""What the replay of the log says of the strategy that a comparison chose, and whether the choice stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from latfit.decision.result import Decision
from latfit.decision.verdict import CLEAR, CLEAR_IN_QUEUE, RAN_OFF, contradicts
from latfit.evidence import ReplayedPolicy, replay_policies
from latfit.numbers import finite
from latfit.restart import PolicyOutcome
from latfit.restart.compare import Comparison
from latfit.restart.policies.base import Written, in_seconds


@dataclass(frozen=True)
class ReplayedChoice:
    """The chosen strategy replayed on the log, its gain over the first one of the comparison, and whether it stands.

    `formula` is the mean that the comparison has for it, `waiting` what waiting until the cutoff takes on the log.
    """

    chosen: ReplayedPolicy
    formula: float | None
    waiting: float
    over: str | None
    """The first strategy, None where it is the chosen one."""
    stands: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        gains = {} if self.over is not None else {"gain_low": None, "gain_high": None}
        return {**self.chosen.to_dict(), **gains, "over": self.over, "formula": self.formula,
                "waiting": finite(self.waiting), "stands": self.stands}  # fmt: skip

    def sentence(self, time: Written = in_seconds) -> str:
        """What the log says, in a line."""
        one = self.chosen
        told = f"Replayed on the log, {one.policy.spec(4)} "
        if not np.isfinite(one.expected_duration):
            return f"{told}does not always end."
        told += f"takes {time(one.expected_duration)} ({time(one.low)} to {time(one.high)})"
        if self.formula is not None and not self.stands:
            told += f", where the formula says {time(self.formula)}"
        if self.over is not None and np.isfinite([one.gain_low, one.gain_high]).all():
            told += f", {100 * one.gain_low:.0f} to {100 * one.gain_high:.0f} % less than {self.over}"
        return f"{told}; waiting takes {time(self.waiting)}."


def replay_choice(
    table: Comparison, choice: PolicyOutcome, decision: Decision, *, queue: bool
) -> ReplayedChoice | None:
    """A strategy of a comparison, replayed on the log that `decision` was made from; None where it was not replayed.

    It stands unless replay lies above the formula by more than 10 % and beyond its interval. Where probes depend on
    each other, and in a queue, its gain in the mean over the first strategy and over waiting must be clear on the log,
    too.
    """
    evidence, first, E = decision.evidence, table.reference, choice.expected_duration
    if evidence is None or evidence.replay is None:
        return None
    log = evidence.replay
    over_waiting, chosen = (replay_policies(log, [choice.policy], against=one)[0] for one in (None, first.policy))
    stands = E is None or not contradicts(chosen, E)
    suspicious = queue or (evidence.dependence is not None and evidence.dependence.found)
    if suspicious and choice is not first and table.objective.name == "mean":
        clearly = chosen.gain_low > 0 and over_waiting.gain_low > (CLEAR_IN_QUEUE if queue else CLEAR)
        stands = stands and clearly and chosen.ran_off < RAN_OFF
    over = None if choice is first else first.policy.spec(4)
    return ReplayedChoice(chosen, E, log.waiting.expected_duration, over, stands)
