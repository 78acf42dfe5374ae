"""What the log says of a comparison of strategies: intervals by resampling, and the chosen one replayed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from latfit.decision.result import Decision, Warned
from latfit.errors import LatfitError
from latfit.evidence import Replayed, replay_policies
from latfit.laws import Empirical, Law
from latfit.numbers import finite
from latfit.resample import RESAMPLES, interval, resamples
from latfit.restart.compare import Comparison
from latfit.restart.derived import coarse, with_wall_clock
from latfit.restart.policies import Policy, Written, in_seconds, parse_policy
from latfit.restart.policies.schedule import SchedulePolicy
from latfit.restart.policies.timeout import Timeout
from latfit.sample import LatencySample


def advised_policy(decision: Decision) -> Policy | None:
    """The recommended schedule, which ends in waiting until the cutoff, or that wait alone; None without a decision."""
    if decision.timeout is None or decision.cutoff is None:
        return None
    retry, cutoff = decision.timeout.retry, decision.cutoff.cutoff
    return SchedulePolicy((*retry.timeouts, cutoff)) if retry else Timeout(cutoff)


@dataclass(frozen=True)
class Standing:
    """What a log says on a comparison: why its choice is withheld, the warnings, and the choice replayed on it.

    `replay` has the figures of the choice, its gain over the first strategy (`over`, None where that is the choice),
    the mean by the `formula` and by `waiting`, and whether the choice `stands`. `faster_stands` says whether the
    best one without a limit stands, too.
    """

    withheld: tuple[str, ...] = ()
    warnings: tuple[Warned, ...] = ()
    replay: dict[str, Any] | None = None
    faster_stands: bool = True

    @classmethod
    def of(cls, table: Comparison, decision: Decision, *, queue: bool, rescaled: bool) -> Standing:
        """With a law that was `rescaled`, nothing is replayed."""
        withheld = decision.timeout.withheld if decision.timeout is not None else ()
        log = decision.evidence.replay if decision.evidence and not rescaled else None
        if log is None:
            return cls(withheld, decision.warnings)
        chosen, faster = table.chosen(), table.faster()
        outcomes = [chosen] if faster is None else [chosen, faster]
        replays = replay_policies(log, [each.policy for each in outcomes], against=table.reference.policy)
        formulas = [each.expected_duration for each in outcomes]
        stands = [not queue and not _clearly_slower(*pair) for pair in zip(replays, formulas, strict=True)]
        document = {**replays[0].to_dict(), "formula": formulas[0], "over": table.reference.policy.spec(4)}
        if chosen is table.reference:
            document |= dict.fromkeys(("over", "gain_low", "gain_high"))
        document |= {"waiting": finite(log.waiting.expected_duration), "stands": stands[0]}
        withheld += () if stands[0] else ("replay",)
        return cls(withheld, decision.warnings, document, stands[-1] or faster is None)

    def sentence(self, table: Comparison, time: Written = in_seconds) -> str:
        if not self.withheld:
            return table.decision(time)
        codes = [code for code in self.withheld if code != "replay"]
        why = f"{', '.join(codes)} (see latfit analyze)" if codes else "the log, replayed, does not bear out the choice"
        advised = [row.outcome.policy for row in table.rows if row.role == "advised"]
        only = f"No strategy but {advised[0].spec(4)}" if advised else "No strategy"
        return f"{only} can be recommended: {why}. What follows would hold if attempts were independent and alike."

    def replay_sentence(self, time: Written = in_seconds) -> str | None:
        """None without a replay, and of a mixed log, which looks better in a replay than it is."""
        if self.replay is None or {*self.withheld} - {"dependent", "replay"}:
            return None
        E, low, high, formula, gain_low, gain_high, waiting = (
            self.replay[name]
            for name in ("expected_duration", "low", "high", "formula", "gain_low", "gain_high", "waiting")
        )
        text = f"Replayed on the log, {parse_policy(self.replay['policy']).spec(4)} "
        if E is None:
            return f"{text}does not always end."
        text += f"takes {time(E)} ({time(low)} to {time(high)})"
        if formula is not None and not self.replay["stands"]:
            text += f", where the formula says {time(formula)}"
        if gain_low is not None and gain_high is not None:
            text += f", {100 * gain_low:.0f} to {100 * gain_high:.0f} % less than {self.replay['over']}"
        return f"{text}; waiting takes {time(waiting)}."


def _clearly_slower(replayed: Replayed, formula: float | None) -> bool:
    """Whether a replay and its interval are 10 % above the formula."""
    E, low = replayed.expected_duration, replayed.low
    return formula is not None and (not np.isfinite(E) or (1.1 * formula < E and low - max(E - low, 1e-12) > formula))


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
    # under failures a quantile needs the steps of the log's own clock
    by_clock = sample.failed.total > 0 and comparison.objective.name not in ("mean", "std")

    def figure(law: Law, policy: Policy) -> float:
        try:
            value = comparison.objective.of_plan(policy.plan(law, cost))
        except LatfitError:  # it does not end on this resample
            return np.inf
        return np.inf if np.isnan(value) else value

    drawn = []
    with np.errstate(all="ignore"):
        for resample in resamples(sample, count, np.random.default_rng(0) if rng is None else rng):
            if resample.completed.total:
                law = Empirical.of(resample) if by_clock else coarse(Empirical.of(resample), 200)
                law = with_wall_clock(law, wall_clock)
                drawn.append([figure(law, row.outcome.policy) for row in comparison.rows])
        figures = np.array(drawn)
        limits = np.concatenate([interval(figures.T), interval((figures / figures[:, :1]).T)]).T
    return [Spread(*map(finite, ends)) for ends in limits]
