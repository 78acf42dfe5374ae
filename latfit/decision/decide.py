"""Samples to decisions: prepare, fit, optimise, gather the evidence, judge, warn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from latfit.decision.fits import Key, generator, joint, least_squares, put_to_use, ranked, tested, tested_as_needed
from latfit.decision.options import Options
from latfit.decision.prepare import Prepared, prepare
from latfit.decision.recommend import enough, few_completions, law_named, of_optimum, recommend, with_intervals
from latfit.decision.result import Current, Decision, FittedLaw, LatencySummary, Recommendation, Warned
from latfit.decision.schedule import with_retry_intervals
from latfit.decision.verdict import gather, judge
from latfit.decision.warn import Case, warnings_of
from latfit.errors import FitError, LatfitError, counted
from latfit.fitting import Fit, fitted_law
from latfit.laws import Empirical, Law
from latfit.numbers import finite
from latfit.restart import expected_duration, optimal_timeout
from latfit.restart.retry import best_retry
from latfit.sample import LatencySample
from latfit.table import ProbeTable


def decide(
    samples: Sequence[LatencySample | ProbeTable],
    options: Options | None = None,
    *,
    keys: Sequence[Key] | None = None,
    detail: bool = False,
    figures: bool = False,
) -> list[Decision]:
    """The decision on each sample, in their order.

    Parameters
    ----------
    samples
        What was observed. A `ProbeTable` (`latfit.evidence.probes_of` a log) carries the evidence on whether
        the theory applies; of a plain sample nothing is known but its latencies.
    options
        What is asked.
    keys
        The name of each, on which its random numbers depend; without names they are numbered.
    detail
        Whether every law that was fitted is tested and put to use, and the paper's comparison made.
    figures
        Whether quantiles and standard deviation of the duration are computed without `detail` too.

    Returns
    -------
    list of Decision
        One a sample. A sample that cannot be decided on has its reason in `error`; it ends nothing else.

    Examples
    --------
    >>> from latfit import LatencySample
    >>> from latfit.decision import Options, decide
    >>> sample = LatencySample.of([2.0, 2.5, 3.0, 3.5, 4.0, 60.0, 70.0, 80.0], lost=1)
    >>> decide([sample], Options(resamples=0, test=False))[0].timeout.timeout
    4.0

    """
    asked = options or Options()
    if asked.law is not None:
        law_named(asked.law)
    names = [()] * len(samples) if keys is None and len(samples) == 1 else keys
    names = [(str(at),) for at in range(len(samples))] if names is None else names
    prepared: list[Prepared | str] = [_prepared(sample, asked) for sample in samples]
    usable = [at for at, case in enumerate(prepared) if isinstance(case, Prepared) and enough(case.sample)]
    cases = [case for at in usable if isinstance(case := prepared[at], Prepared)]
    # resamples of small groups in which nothing completes, and latencies near the largest number
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        made = dict(zip(usable, recommend(cases, asked), strict=True))
        fits = dict(zip(usable, ranked(cases, asked), strict=True))
        return [_decision(given, case, made.get(at), fits.get(at, []), asked, names[at], detail, figures or detail)
                for at, (given, case) in enumerate(zip(samples, prepared, strict=True))]  # fmt: skip


def _prepared(sample: LatencySample | ProbeTable, options: Options) -> Prepared | str:
    try:
        return prepare(sample, options)
    except LatfitError as problem:
        return str(problem)


def _decision(
    given: LatencySample | ProbeTable,
    case: Prepared | str,
    made: tuple[Recommendation, tuple[Warned, ...]] | None,
    fits: list[Fit],
    options: Options,
    key: Key,
    detail: bool,
    figures: bool,
) -> Decision:
    whole = given.sample if isinstance(given, ProbeTable) else given
    counts = {"completed": whole.completed.total, "failed": whole.failed.total, "censored": whole.censored.total,
              "lost": whole.lost}  # fmt: skip
    nothing = Decision(key, counts, whole, None, None, None, None, None, (), None, None, None, None, None, ())
    if isinstance(case, str):
        return replace(nothing, error=case)
    nothing = replace(nothing, whole=case.whole, sample=case.sample, cutoff=case.cutoff, outliers=case.ratio,
                      latency=LatencySummary.of(case.sample))  # fmt: skip
    if made is None:
        small, warned = few_completions(case, options)
        evidence, _ = gather(case, small, options)
        more = warnings_of(Case(case, small, evidence, None, (), None)) if case.sample.completed.total else ()
        error = warned.message if not case.sample.completed.total else None
        return replace(nothing, timeout=small, evidence=evidence, warnings=(warned, *more), error=error)
    return _decided(nothing, case, made, fits, options, key, detail, figures)


def _decided(
    nothing: Decision,
    case: Prepared,
    made: tuple[Recommendation, tuple[Warned, ...]],
    fits: list[Fit],
    options: Options,
    key: Key,
    detail: bool,
    figures: bool,
) -> Decision:
    """The decision on a sample with enough completions."""
    plain, warned = made
    evidence, choice = gather(case, plain, options, warned)
    plain, more = with_intervals(plain, case, options, key, evidence.dependence)
    law = Empirical.of(case.sample) if figures or options.law is not None else None
    if law is not None and plain.source is None:
        plain = replace(plain, source=law)
    found = [FittedLaw(one, None, None, None) for one in fits]
    if detail:
        found = [tested(case, one, options, key) for one in fits]
    elif options.test:
        found = tested_as_needed(case, fits, options, key)
    best = next((one for one in found if one.fit.error is None), None)
    together = joint(case, fits, detail=detail) if options.test or detail else None
    if detail and law is not None:
        every = [*found, *(tested(case, one, options, key) for one in least_squares(case.sample, options))]
        found = [put_to_use(one, case.sample, options, law, plain.expected_duration) for one in every]
    chosen = plain if options.law is None else _by_law(options, case, found)
    judged = judge(chosen, case, evidence, choice, warned) if options.law is None else chosen
    if judged.retry is not None and options.resamples:
        retry = with_retry_intervals(
            judged.retry, case.sample, case.cutoff.cutoff, generator(options.seed, "retry", *key), options=options
        )
        judged = replace(judged, retry=retry)
    seen = Case(case, judged, evidence, together, tuple(found), options.law)
    told = (*warnings_of(seen), *warned, *more)
    agree = not any(one.code == "rho-disagree" for one in told)
    return replace(
        nothing,
        joint=together,
        fits=tuple(found),
        best=best,
        timeout=judged,
        without_outliers=_without(law, case, options) if detail and law is not None and agree else None,
        current=None if options.current is None else _current(chosen, case, options),
        evidence=evidence,
        warnings=told,
    )


def _by_law(options: Options, case: Prepared, found: Sequence[FittedLaw]) -> Recommendation:
    """The recommendation of the fitted law that the user named."""
    one = next((f.fit for f in found if f.fit.name == options.law and f.fit.method == "mle"), None)
    if one is None or one.law is None:
        reason = one.error if one else "it was not tried"
        raise FitError(f"{options.law} could not be fitted to {counted(case.sample.n, 'probe')}: {reason}")
    law = fitted_law(case.sample, one)
    best = optimal_timeout(law, max_submissions=options.max_submissions, **options.policy)
    retry = best_retry(law, cutoff=case.cutoff.cutoff, risk=options.risk, cost=options.cost) if options.plain else None
    return replace(of_optimum(best, law, case, options), retry=retry)


def _without(law: Empirical, case: Prepared, options: Options) -> Recommendation | None:
    """The paper's comparison: the law of those that returned, F̃/F̃(T)."""
    returned = law.conditional()
    try:
        best = optimal_timeout(returned, cost=options.cost, min_completions=5, min_timeout=case.sample.resolution)
    except LatfitError:
        return None
    return of_optimum(best, returned, case, replace(options, rho=None))


def _current(chosen: Recommendation, case: Prepared, options: Options) -> Current:
    """What the timeout in use now brings under the law of the recommendation."""
    law: Law = chosen.source or Empirical.of(case.sample)
    assert options.current is not None
    E = float(expected_duration(law, options.current, cost=options.cost))
    least = chosen.expected_duration
    return Current(options.current, finite(E), max(0.0, E / least - 1) if least else None)
