"""Warnings: where theory or data do not support a decision. Every command gives the same ones."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from latfit.curve import kaplan_meier
from latfit.decision.prepare import Prepared
from latfit.decision.result import Evidence, FittedLaw, Recommendation, Warned
from latfit.errors import counted
from latfit.fitting import JointRatio
from latfit.laws import Empirical
from latfit.outliers import cutoff_verdict
from latfit.restart import tail_quantiles
from latfit.units import seconds

Check = Callable[[Prepared, Recommendation, Evidence], Warned | None]
Coded = Iterator[tuple[str, str]]  # codes and sentences
CHECKS: list[Check] = []


def warning(check: Check) -> Check:
    """Register a check from outside the package; its warning comes after those of the package."""
    CHECKS.append(check)
    return check


def warnings_of(
    case: Prepared,
    chosen: Recommendation,
    evidence: Evidence,
    joint: JointRatio | None = None,
    fits: Sequence[FittedLaw] = (),
) -> tuple[Warned, ...]:
    """Every warning that applies, in a fixed order."""
    about_log = (*_about_log(case, chosen, evidence), *_about_attempts(chosen, evidence))
    coded = (*about_log, *_about_outcomes(case, joint, fits), *_about_figures(case, chosen))
    return (*(Warned(*each) for each in coded), *filter(None, (check(case, chosen, evidence) for check in CHECKS)))


def _about_log(case: Prepared, chosen: Recommendation, evidence: Evidence) -> Coded:
    harmed = [w for w in evidence.worlds if w.kind in ("column", "pair", "cell") and (w.unlimited or 0.0) > 1]
    if "mixed" in chosen.withheld and harmed:
        worst = max(harmed, key=lambda world: world.unlimited or 0.0)
        text = f"latencies depend on {worst.name}, which a retry may not change: one timeout for all, repeated "
        yield "mixed", f"{text}without limit, would be slower than waiting"
    elif (mixed := evidence.mixing) is not None:
        text = f"the column {mixed.column.name} explains {100 * mixed.share:.0f} % of the variance of the ranks"
        yield "groups-differ", f"{text}; --by {shlex.quote(mixed.column.name)} decides for each group"
    probes = case.seen
    if probes.facts.queue:
        text = "these are waits in a queue: resubmitting loses the place in it, which the formula does not count"
        yield "queue", text
    if probes.facts.work:
        yield "work", "these are run times of tasks: a retry does the same work again"
    after = evidence.dependence.lost_after_lost if evidence.dependence else None
    returned = np.flatnonzero(~probes.lost)  # what was still out when the log ended is not an outage
    if after is not None and returned.size:
        lost = int(np.count_nonzero(probes.lost[: int(returned[-1])]))
        share = lost / probes.n
        if lost >= 10 and after >= max(0.5, 5 * share):
            text = f"{100 * after:.0f} % of those after a lost one are lost, {100 * share:.2g} % of all"
            text = f"lost probes come in runs ({text}): no timeout helps during such an outage"
            yield "outages", f"{text}, and the gain holds for the rest of the time"


def _about_attempts(chosen: Recommendation, evidence: Evidence) -> Coded:
    depends, drift, intervals = evidence.dependence, evidence.drift, chosen.formula.intervals
    if depends is not None and depends.found:
        text = f"slow probes follow slow ones (rank correlation {depends.strongest:.2f}): a resubmitted job is not as "
        text += "independent of the first attempt as the formula assumes"
        blocks = intervals.blocks if intervals is not None and chosen.verdict == "finite" else None
        if blocks is not None and blocks < 20:
            text += f"; the intervals rest on {counted(blocks, 'block')} of probes and are too narrow"
        yield "dependence", text
    if drift is not None and drift.changes:
        first = drift.changes[0]
        when = "" if first.at is None else f" at {np.datetime_as_string(first.at, unit='m')}Z"
        times = "once," if len(drift.changes) == 1 else f"{len(drift.changes)} times, first"
        yield "drift", f"the log changes {times}{when} ({first.kind}); see latfit drift"
    elif drift is not None and drift.daily_cycle is not None and drift.daily_cycle > 1.5:
        slower = f"{drift.daily_cycle:.2g} times as long as the fastest"
        yield "drift", f"the slowest hour of the day takes {slower}; see latfit drift"
    for z in (world.z for world in evidence.worlds if world.kind == "job"):
        yield "later-attempts", f"attempts of the same job resemble each other (z = {z:.2g}): a retry is not a new draw"


def _about_outcomes(case: Prepared, joint: JointRatio | None, fits: Sequence[FittedLaw]) -> Coded:
    given_up, ratio = case.censoring, case.ratio
    if given_up.cut_at is not None:
        text = f"the log has no outcomes, and many rows end at exactly {seconds(given_up.cut_at)}: they are taken as "
        yield "cut", f"{text}cut off there by a timeout"
    elif given_up.informative and given_up.common_time is not None:
        text = f"most probes that were given up ended at about {seconds(given_up.common_time)}, while others completed "
        text += "later, which suggests a rule of the system"
        yield "given-up", f"{text}: they count as failed there (--censoring changes this)"
    if cutoff_verdict(case.whole, ratio) == "still falling":
        text = f"the outlier ratio is still falling at the cutoff of {seconds(ratio.cutoff)}: some of the outliers are "
        yield "ratio-falling", f"{text}late rather than lost"
    accepted = {fitted.fit.name for fitted in fits if fitted.rejected is False}
    rejected = {fitted.fit.name for fitted in fits if fitted.rejected}
    if joint is not None and joint.law in accepted and (joint.low > ratio.high or joint.high < ratio.low):
        text = f"the counted outlier ratio ({100 * ratio.estimate:.2f} %) and that of {joint.law} "
        text += f"({100 * joint.estimate:.2f} %) disagree: beyond the cutoff the tail and the outliers cannot be told "
        yield "rho-disagree", f"{text}apart"
    if rejected and not accepted:
        yield "all-rejected", "no fitted law describes these latencies (all p < 0.05): rely on the data themselves"
    if case.options.law in rejected:
        yield "law-rejected", f"the timeout is that of {case.options.law}, which the test rejects (p < 0.05)"


def _about_figures(case: Prepared, chosen: Recommendation) -> Coded:
    sample, cutoff, formula, finite = case.sample, case.cutoff.cutoff, chosen.formula, chosen.verdict == "finite"
    if chosen.within_5pct is not None and chosen.verdict in ("finite", "never"):
        low, high = chosen.within_5pct
        gain = chosen.speed_up_vs_cutoff
        lost = case.cutoff.assumed and case.ratio.count > 0  # nobody waits just until that cutoff
        if finite and chosen.retry is None and gain is not None and gain < 1.05 and not lost:
            text = f"even waiting until the cutoff takes only {100 * (gain - 1):.1f} % longer"
            yield "flat", f"the choice hardly matters: {text}"
        elif high > 4 * low and (finite or low <= sample.completed.quantiles([0.5])[0]):
            text = f"any timeout from {seconds(low)} to {seconds(high)} is within 5 % of the best"
            yield "flat", f"the choice hardly matters: {text}"
    if finite and chosen.submissions is not None and chosen.submissions > 3:
        text = f"a job would be submitted {chosen.submissions:.1f} times on average"
        yield "load", f"{text}; to limit that, see latfit timeout --max-submissions"
    t = formula.timeout
    if t is None:
        return
    ends = finite and formula.rho < 0.02  # else the slowest 1 % of jobs that wait never end
    cut, waited = (tail_quantiles(Empirical.of(sample), t, cost=chosen.cost) if ends else None) or (0.0, 0.0)
    if cut > 1.01 * waited:
        text = f"repeating {seconds(t)} without limit lowers the mean, but the slowest 1 % of jobs take at least "
        yield "tail", f"{text}{seconds(cut)} instead of {seconds(waited)}"
    given_up = int(sample.censored.counts[sample.censored.values < t].sum())
    if formula.verdict == "finite" and t > 0.98 * cutoff and sample.out_at_cutoff:
        yield "beyond-timeout", f"the optimum lies at the cutoff of {seconds(cutoff)}: nothing is known beyond it"
    elif formula.verdict == "finite" and given_up > 5 and 2 * given_up > sample.censored.total:
        text = f"{given_up} probes were given up before {seconds(t)}: a timeout is already in force"
        yield "beyond-timeout", f"{text}, and the log says little about longer waits"
    if sample.censored_early:
        km = kaplan_meier(sample)
        at = int(np.searchsorted(km.times, t, side="right")) - 1
        if at >= 0 and km.at_risk[at] < 10:
            still = f"{counted(int(km.at_risk[at]), 'probe', 'was', 'were')} still observed at {seconds(t)}"
            yield "few-at-risk", f"only {still}: figures there are uncertain"
