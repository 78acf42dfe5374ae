"""Stage 8: the whole pipeline in one call, from a log to a decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from latfit.checks import about_fits, about_law, about_log, about_optimum, about_ratio
from latfit.decision import Analysis, Current, FittedLaw, Group, LatencySummary, Recommendation
from latfit.errors import FitError, SampleError
from latfit.fitting import DEFAULT_LAWS, JointRatio, fit, joint_outlier_ratio
from latfit.goodness import assess
from latfit.laws import Defective, Empirical, Law
from latfit.logs import ProbeLog
from latfit.outliers import CutoffChoice, default_cutoff, outlier_ratio, ratio_by_cutoff
from latfit.restart import Warned, advise, evaluate_timeout, expected_duration, optimal_timeout
from latfit.sample import LatencySample
from latfit.uncertainty import RESAMPLES, bootstrap

HYBRID = "lognormal-pareto"
TEST_RESAMPLES = 199
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
    choice = default_cutoff(whole) if cutoff is None else CutoffChoice(cutoff, "given")
    sample = whole.cut(choice.cutoff)
    if not sample.completed.total:
        raise SampleError(
            f"none of the {sample.n} probes completed within {choice.cutoff:g} s: there is nothing to analyse"
        )
    ratio = outlier_ratio(sample)
    empirical = Empirical.of(sample)
    names = None if laws is None else list(dict.fromkeys([*laws, *([law] if law else [])]))
    fits = _fits(sample, names, empirical, cost, min(resamples, TEST_RESAMPLES) if test else 0, for_fits)
    joint = _joint(sample, fits)
    best = next((f.fit.name for f in fits if f.fit.method == "mle" and f.fit.error is None), None)
    known, warned = about_log(log, sample, choice), about_ratio(whole, ratio, joint, fits)
    recommended, more = _recommend(empirical, sample, choice.cutoff, cost, resamples, for_timeout)
    if law is not None:
        recommended = _by_law(law, fits, sample, recommended, choice.cutoff, cost)
    agree = not any(w.code == "rho-disagree" for w in warned)
    without = _recommend(empirical.conditional(), sample, choice.cutoff, cost, 0, for_timeout)[0] if agree else None
    groups = _groups(log, by, choice.cutoff, failed, cost, resamples, for_groups, recommended)
    warnings = (
        *known,
        *warned,
        *about_fits(fits),
        *more,
        *about_optimum(recommended, sample, choice.cutoff),
        *about_law(law, fits),
    )
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
        current=None if current is None else _current(empirical, current, cost, recommended),
        groups=groups,
        warnings=warnings,
    )


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
    resamples: int,
    rng: np.random.Generator,
) -> tuple[FittedLaw, ...]:
    """Every law fitted, tested and put to use, the best first."""
    found = []
    tried = (
        fit(sample, laws)
        if laws is not None
        else [*fit(sample, (*DEFAULT_LAWS, HYBRID)), *fit(sample, [HYBRID], method="ls")]
    )
    for one in tried:
        if one.law is None or one.rho is None:
            found.append(FittedLaw(one, None, None, None))
            continue
        ks = assess(sample, one, bootstrap=resamples, rng=rng)
        optimum = optimal_timeout(Defective(one.law, one.rho), cost=cost)
        found.append(FittedLaw(one, ks, optimum, _regret(empirical, optimum.timeout, cost)))
    return tuple(found)


def _regret(law: Law, timeout: float | None, cost: float, best: float | None = None) -> float | None:
    """How much longer jobs take with this timeout than with the best one, as a share; ∞ if they never end."""
    if best is None:
        best = optimal_timeout(law, cost=cost).expected_duration
    if not best:
        return None
    taken = float(expected_duration(law, np.inf if timeout is None else timeout, cost=cost))
    return max(0.0, taken / best - 1)


def _joint(sample: LatencySample, fits: tuple[FittedLaw, ...]) -> JointRatio | None:
    """The ratio estimated together with the best law but the hybrid; None where no law could be fitted."""
    for one in fits:
        if one.fit.method == "mle" and one.fit.error is None and one.fit.name != HYBRID:
            try:
                return joint_outlier_ratio(sample, [one.fit.name])
            except FitError:
                return None
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
        found = replace(found, intervals=bootstrap(sample, t, E, factor, cost=cost, resamples=resamples, rng=rng))
    return found, advice.warnings


def _by_law(
    name: str, fits: tuple[FittedLaw, ...], sample: LatencySample, empirical: Recommendation, cutoff: float, cost: float
) -> Recommendation:
    """The recommendation of the fitted law that the user named; its intervals are not known."""
    one = next((f for f in fits if f.fit.name == name), None)
    if one is None or one.fit.law is None or one.fit.rho is None:
        raise FitError(
            f"{name} could not be fitted to {sample.n} probes: {one.fit.error if one else 'it was not tried'}"
        )
    law = Defective(one.fit.law, one.fit.rho)
    return replace(
        empirical,
        optimum=one.optimum,
        rho=law.rho,
        law=one.fit.law.spec(),
        at_cutoff=evaluate_timeout(law, cutoff, cost=cost),
        intervals=None,
    )


def _current(law: Empirical, timeout: float, cost: float, best: Recommendation) -> Current:
    E = float(expected_duration(law, timeout, cost=cost))
    reached = best.optimum.expected_duration if best.optimum else None
    regret = None if not reached or not np.isfinite(E) else max(0.0, E / reached - 1)
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
        own, _ = _recommend(law, sample, cutoff, cost, resamples, rng)
        regret = None
        if own.optimum and pooled.optimum:
            regret = _regret(law, pooled.optimum.timeout, cost, own.optimum.expected_duration)
        found.append(Group(names, sample.n, outlier_ratio(sample), own, _differs(own, pooled), regret))
    return tuple(found)


def _differs(own: Recommendation, pooled: Recommendation) -> bool:
    if own.intervals is None or pooled.intervals is None:
        return False
    (low, high), (pooled_low, pooled_high) = own.intervals.timeout, pooled.intervals.timeout
    return low > pooled_high or high < pooled_low
