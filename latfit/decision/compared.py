"""What the log says of a comparison of strategies: intervals by resampling, and the chosen one replayed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from latfit.decision.result import Decision, Warned
from latfit.errors import LatfitError
from latfit.evidence import ReplayedPolicy, replay_policies
from latfit.laws import Empirical, Law
from latfit.numbers import finite
from latfit.resample import RESAMPLES, interval, resamples
from latfit.restart import PolicyOutcome
from latfit.restart.compare import Comparison
from latfit.restart.derived import coarse, with_wall_clock
from latfit.restart.policies import Policy, Written, in_seconds
from latfit.restart.policies.schedule import SchedulePolicy
from latfit.restart.policies.timeout import Timeout
from latfit.sample import LatencySample


@dataclass(frozen=True)
class ReplayedChoice:
    """The chosen strategy replayed on the log, its gain `over` the first one of the comparison, and whether it stands.

    `formula` is the mean that the comparison has for it, `waiting` what waiting until the cutoff takes on the log.
    `over` is None where the first strategy is the chosen one.
    """

    chosen: ReplayedPolicy
    formula: float | None
    waiting: float
    over: str | None
    stands: bool

    def to_dict(self) -> dict[str, Any]:
        gains = {} if self.over is not None else {"gain_low": None, "gain_high": None}
        rest = {"over": self.over, "formula": self.formula, "waiting": finite(self.waiting), "stands": self.stands}
        return {**self.chosen.to_dict(), **gains, **rest}

    def sentence(self, time: Written = in_seconds) -> str:
        replayed = self.chosen
        text = f"Replayed on the log, {replayed.policy.spec(4)} "
        if not np.isfinite(replayed.expected_duration):
            return f"{text}does not always end."
        text += f"takes {time(replayed.expected_duration)} ({time(replayed.low)} to {time(replayed.high)})"
        if self.formula is not None and not self.stands:
            text += f", where the formula says {time(self.formula)}"
        gains = replayed.gain_low, replayed.gain_high
        if self.over is not None and np.isfinite(gains).all():
            text += f", {100 * gains[0]:.0f} to {100 * gains[1]:.0f} % less than {self.over}"
        return f"{text}; waiting takes {time(self.waiting)}."


def replay_choice(
    table: Comparison, choice: PolicyOutcome | None, decision: Decision, *, queue: bool
) -> ReplayedChoice | None:
    """The choice, replayed; it stands unless 10 % and its interval above the formula, or in a queue."""
    log = decision.evidence.replay if decision.evidence else None
    if log is None or choice is None:
        return None
    first, E = table.reference, choice.expected_duration
    (chosen,) = replay_policies(log, [choice.policy], against=first.policy)
    duration, low = chosen.expected_duration, chosen.low
    above = E is not None and (
        not np.isfinite(duration) or (duration > 1.1 * E and low - max(duration - low, 1e-12) > E)
    )
    over = None if choice is first else first.policy.spec(4)
    return ReplayedChoice(chosen, E, log.waiting.expected_duration, over, not above and not queue)


def advised_policy(decision: Decision) -> Policy | None:
    """The recommended schedule, which ends in waiting until the cutoff, or that wait alone; None without a decision."""
    if decision.timeout is None or decision.cutoff is None:
        return None
    retry, cutoff = decision.timeout.retry, decision.cutoff.cutoff
    return SchedulePolicy((*retry.timeouts, cutoff)) if retry else Timeout(cutoff)


@dataclass(frozen=True)
class Standing:
    """What a log says on a comparison: why its choice is withheld, the warnings, and the choice if replayed.

    `clear` says of each strategy whether its gain is beyond chance (None: not known), `faster_stands` whether the best
    strategy without a limit stands, too.
    """

    withheld: tuple[str, ...] = ()
    warnings: tuple[Warned, ...] = ()
    replay: ReplayedChoice | None = None
    faster_stands: bool = True
    clear: tuple[bool, ...] | None = None

    @classmethod
    def of(
        cls, table: Comparison, decision: Decision, *, queue: bool, clear: tuple[bool, ...] | None, rescaled: bool
    ) -> Standing:
        """With a law that was `rescaled`, nothing is replayed."""
        withheld = decision.timeout.withheld if decision.timeout is not None else ()
        if rescaled:
            return cls(withheld, decision.warnings, clear=clear)
        choices = (table.chosen(clear), table.faster())
        chosen, faster = (replay_choice(table, choice, decision, queue=queue) for choice in choices)
        withheld += ("replay",) if chosen is not None and not chosen.stands else ()
        return cls(withheld, decision.warnings, chosen, faster is None or faster.stands, clear)

    def sentence(self, table: Comparison, time: Written = in_seconds) -> str:
        if not self.withheld:
            return table.decision(self.clear, time)
        codes = [code for code in self.withheld if code != "replay"]
        why = f"{', '.join(codes)} (see latfit analyze)" if codes else "the log, replayed, does not bear out the choice"
        advised = [row.outcome.policy for row in table.rows if row.role == "advised"]
        only = f"No strategy but {advised[0].spec(4)}" if advised else "No strategy"
        return f"{only} can be recommended: {why}. What follows would hold if attempts were independent and alike."


@dataclass(frozen=True)
class Spread:
    """The 95 % interval of a strategy's figure, and of its ratio to that of the first strategy."""

    low: float | None
    high: float | None
    ratio_low: float | None
    ratio_high: float | None


def comparison_intervals(
    sample: LatencySample,
    comparison: Comparison,
    *,
    cost: float = 0.0,
    wall_clock: float = 0.0,
    count: int = RESAMPLES,
    rng: np.random.Generator | None = None,
) -> list[Spread]:
    """The 95 % interval of each row, parameters held fixed; None: infinite on more than 2.5 % of the resamples."""
    source = np.random.default_rng(0) if rng is None else rng
    # under failures a quantile needs the steps of the log's own clock
    by_clock = sample.failed.total > 0 and comparison.objective.name not in ("mean", "std")
    drawn = []
    with np.errstate(all="ignore"):
        for resample in resamples(sample, count, source):
            if resample.completed.total:
                law = Empirical.of(resample) if by_clock else coarse(Empirical.of(resample), 200)
                law = with_wall_clock(law, wall_clock)
                drawn.append([_figure(law, row.outcome.policy, comparison, cost) for row in comparison.rows])
        figures = np.array(drawn)
        limits = np.concatenate([interval(figures.T), interval((figures / figures[:, :1]).T)]).T
    return [Spread(*map(finite, ends)) for ends in limits]


def _figure(law: Law, policy: Policy, comparison: Comparison, cost: float) -> float:
    """The figure of a strategy on one resample, ∞ where it does not end there."""
    try:
        figure = comparison.objective.of_plan(policy.plan(law, cost))
    except LatfitError:
        return np.inf
    return np.inf if np.isnan(figure) else figure
