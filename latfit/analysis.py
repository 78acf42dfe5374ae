"""Stage 8: the whole pipeline in one call, from a log to a decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from latfit.checks import about_fits, about_law, about_log, about_optimum, about_ratio
from latfit.decision import Analysis, Current, FittedLaw, Group, LatencySummary, Recommendation
from latfit.errors import FitError, LawError, RestartError, SampleError
from latfit.fitting import COMPETING, DEFAULT_LAWS, Fit, JointRatio, fit, fitted_law, joint_outlier_ratio
from latfit.goodness import assess
from latfit.laws import Defective, Empirical, Law, get_law
from latfit.logs import ProbeLog
from latfit.outliers import CutoffChoice, default_cutoff, outlier_ratio, ratio_by_cutoff
from latfit.restart import Warned, advise, evaluate_timeout, expected_duration, optimal_timeout
from latfit.restart.result import label
from latfit.sample import LatencySample
from latfit.uncertainty import RESAMPLES, bootstrap

HYBRID = "lognormal-pareto"
HYBRID_VALUES = 20_000
TEST_RESAMPLES = 199
WORTH_IT = 0.01  # what a group must gain by a timeout of its own
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def analyze(
    log: ProbeLog,
    *,
    cutoff: float | None = None,
    failed: str = "retry",
    laws: Sequence[str] | None = None,
    law: str | None = None,
    cost: float = 0.0,
    current: float | None = None,
    by: str | Sequence[str] = (),
    resamples: int = RESAMPLES,
    test: bool = True,
    seed: int = 0,
) -> Analysis:
    """From a log to a decision: outliers, fits, goodness of fit, the timeout with intervals, warnings.

    `laws` are those to fit (default: all classical ones); the recommended timeout is that of the
    empirical law unless `law` names one of them. `cost` is what a restart costs, `current` the
    timeout in use now, `by` the columns to group by. `resamples` = 0 leaves out every bootstrap,
    `test` = False that of the tests of fit.
    """
    for_fits, for_timeout, for_groups = np.random.default_rng(seed).spawn(3)
    whole = log.sample(failed=failed)
    choice, sample = _cut(whole, cutoff)
    ratio = outlier_ratio(sample)
    empirical = Empirical.of(sample)
    names = None if laws is None else list(dict.fromkeys([*laws, *([law] if law else [])]))
    if law is not None:
        get_law(law)  # a name that is not known is told before anything is fitted
    recommended, more = _recommend(empirical, sample, choice.cutoff, cost, resamples, for_timeout)
    least = recommended.optimum.expected_duration if recommended.optimum else None
    fits = _fits(sample, names, empirical, cost, least, min(resamples, TEST_RESAMPLES) if test else 0, for_fits)
    joint = _joint(sample, fits)
    best = next((f.fit.name for f in fits if f.fit.method == "mle" and f.fit.error is None), None)
    warned = about_ratio(whole, ratio, joint, fits)
    used: Law = empirical
    if law is not None:
        used = _law_named(law, fits, sample)
        recommended = _by_law(used, fits, recommended, choice.cutoff, cost)
    agree = not any(w.code == "rho-disagree" for w in warned)
    without = _recommend(empirical.conditional(), sample, choice.cutoff, cost, 0, for_timeout)[0] if agree else None
    groups = _groups(log, by, choice.cutoff, failed, cost, resamples, for_groups, recommended)
    last = (*about_fits(fits), *more, *about_optimum(recommended, sample, choice.cutoff), *about_law(law, fits))
    return Analysis(
        facts=log.facts,
        counts=log.counts,
        sample=sample,
        cutoff=choice,
        outliers=ratio,
        by_cutoff=tuple(ratio_by_cutoff(whole, cutoff=choice.cutoff)),
        joint=joint,
        latency=_summary(sample),
        fits=fits,
        best=best,
        timeout=recommended,
        timeout_without_outliers=without,
        current=None if current is None else _current(used, current, cost, recommended),
        groups=groups,
        warnings=(*about_log(log), *warned, *last),
    )


def _cut(whole: LatencySample, cutoff: float | None) -> tuple[CutoffChoice, LatencySample]:
    """The cutoff, given or from the data, and the sample cut at it."""
    choice = default_cutoff(whole) if cutoff is None else CutoffChoice(cutoff, "given")
    sample = whole.cut(choice.cutoff)
    if not sample.completed.total:
        within = f"none of the {sample.n} probes completed within {choice.cutoff:g} s"
        raise SampleError(f"{within}: there is nothing to analyse")
    return choice, sample


def _summary(sample: LatencySample) -> LatencySummary:
    """The summary of the completions; quantiles are the smallest latency with that share at or below it."""
    x, w = sample.completed.values, sample.completed.counts
    n = sample.completed.total
    mean = float(np.average(x, weights=w))
    squares = float((w * (x - mean) ** 2).sum())
    reached = np.cumsum(w)
    quantiles = {str(q): float(x[np.searchsorted(reached, q * n - 1e-9)]) for q in QUANTILES}
    return LatencySummary(n, mean, float(np.sqrt(squares / max(1, n - 1))), float(x[0]), float(x[-1]), quantiles)


def _fits(
    sample: LatencySample,
    laws: Sequence[str] | None,
    empirical: Empirical,
    cost: float,
    least: float | None,
    resamples: int,
    rng: np.random.Generator,
) -> tuple[FittedLaw, ...]:
    """Every law fitted, tested and put to use, the best first."""
    found = []
    if laws is not None:
        tried = fit(sample, laws)
    else:  # the likelihood of the hybrid is a search of its own, too long for very many latencies
        few = sample.completed.values.size <= HYBRID_VALUES
        tried = [*fit(sample, (*DEFAULT_LAWS, *([HYBRID] if few else []))), *fit(sample, [HYBRID], method="ls")]
    for one in tried:
        if one.law is None or one.rho is None:
            found.append(FittedLaw(one, None, None, None))
            continue
        try:
            ks = assess(sample, one, bootstrap=resamples, rng=rng)
            optimum = optimal_timeout(fitted_law(sample, one), cost=cost)
        except (LawError, RestartError) as problem:  # a law so extreme that it has no usable times
            unusable = Fit(one.name, one.method, one.n, error=f"the fitted law cannot be used: {problem}")
            found.append(FittedLaw(unusable, None, None, None))
            continue
        found.append(FittedLaw(one, ks, optimum, _regret(empirical, optimum.timeout, cost, least)))
    return tuple(found)


def _regret(law: Law, timeout: float | None, cost: float, least: float | None) -> float | None:
    """How much longer jobs take with this timeout than `least`, as a share; ∞ if they never end."""
    if not least:
        return None
    taken = float(expected_duration(law, np.inf if timeout is None else timeout, cost=cost))
    return max(0.0, taken / least - 1)


def _joint(sample: LatencySample, fits: tuple[FittedLaw, ...]) -> JointRatio | None:
    """The ratio estimated together with the best law but the hybrid; None where no law could be fitted."""
    found = [f.fit for f in fits if f.fit.method == "mle" and f.fit.error is None and f.fit.name != HYBRID]
    try:
        return joint_outlier_ratio(sample, [one.name for one in found if one.score - found[0].score < COMPETING])
    except FitError:
        return None


def _recommend(
    law: Empirical,
    sample: LatencySample,
    cutoff: float,
    cost: float,
    resamples: int,
    rng: np.random.Generator,
) -> tuple[Recommendation, tuple[Warned, ...]]:
    """The optimum of an empirical law with at least 5 completions, its intervals, and what to know of it."""
    advice = advise(law, cost=cost)
    found = Recommendation(advice.optimum, law.rho, law.name, evaluate_timeout(law, cutoff, cost=cost), None)
    if advice.optimum is not None and resamples:
        t = np.inf if advice.optimum.timeout is None else advice.optimum.timeout
        E, factor = advice.optimum.expected_duration or np.inf, found.speed_up_vs_cutoff or np.inf
        try:
            found = replace(found, intervals=bootstrap(sample, t, E, factor, cost=cost, resamples=resamples, rng=rng))
        except SampleError as problem:
            return found, (*advice.warnings, Warned("no-interval", f"there are no intervals: {problem}"))
    return found, advice.warnings


def _law_named(name: str, fits: tuple[FittedLaw, ...], sample: LatencySample) -> Defective:
    """The fitted law that the user named."""
    one = next((f.fit for f in fits if f.fit.name == name), None)
    if one is None or one.law is None or one.rho is None:
        raise FitError(f"{name} could not be fitted to {sample.n} probes: {one.error if one else 'it was not tried'}")
    return Defective(one.law, one.rho)


def _by_law(
    law: Defective, fits: tuple[FittedLaw, ...], empirical: Recommendation, cutoff: float, cost: float
) -> Recommendation:
    """The recommendation of a fitted law; its intervals are not known."""
    optimum = next(f.optimum for f in fits if f.fit.law is law.law)
    end = evaluate_timeout(law, cutoff, cost=cost)
    return replace(empirical, optimum=optimum, rho=law.rho, law=label(law), at_cutoff=end, intervals=None)


def _current(law: Law, timeout: float, cost: float, best: Recommendation) -> Current:
    """What the timeout in use now brings under the law of the recommendation."""
    E = float(expected_duration(law, timeout, cost=cost))
    regret = _regret(law, timeout, cost, best.optimum.expected_duration if best.optimum else None)
    return Current(timeout, E if np.isfinite(E) else None, regret)


def _groups(
    log: ProbeLog,
    by: str | Sequence[str],
    cutoff: float,
    failed: str,
    cost: float,
    resamples: int,
    rng: np.random.Generator,
    pooled: Recommendation,
) -> tuple[Group, ...]:
    """One row a group, all at the pooled cutoff; groups without a completion have no timeout."""
    columns = [by] if isinstance(by, str) else list(by)
    found = []
    for key, whole in log.samples(columns).items() if columns else ():
        sample = whole.with_failed(failed).cut(cutoff)
        names = dict(zip(columns, key, strict=True))
        if not sample.completed.total:
            nothing = Recommendation(None, 1.0, "empirical", None, None)
            found.append(Group(names, sample.n, outlier_ratio(sample), nothing, False, None))
            continue
        law = Empirical.of(sample)
        own, warned = _recommend(law, sample, cutoff, cost, resamples, rng)
        regret = None
        if own.optimum and pooled.optimum:
            regret = _regret(law, pooled.optimum.timeout, cost, own.optimum.expected_duration)
        codes = tuple(w.code for w in warned)
        differs = _differs(own, pooled) and regret is not None and regret > WORTH_IT
        found.append(Group(names, sample.n, outlier_ratio(sample), own, differs, regret, codes))
    return tuple(found)


def _differs(own: Recommendation, pooled: Recommendation) -> bool:
    if own.intervals is None or pooled.intervals is None:
        return False
    (low, high), (pooled_low, pooled_high) = own.intervals.timeout, pooled.intervals.timeout
    return low > pooled_high or high < pooled_low
