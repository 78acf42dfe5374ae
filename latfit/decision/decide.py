"""Samples to decisions: prepare, fit, optimise, collect the evidence, apply it, warn."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

import latfit.decision.recommend as timeouts
from latfit.curve import MIN_COMPLETIONS
from latfit.decision.fits import Key, elaborate, generator, joint, put_to_use, ranked, tested
from latfit.decision.prepare import Options, Prepared, prepare
from latfit.decision.result import Current, Decision, Evidence, JudgedWorld, LatencySummary, Recommendation, Warned
from latfit.decision.schedule import INDEPENDENT, MAX_LOAD, Choice, Strata, choose_schedule, with_retry_intervals
from latfit.decision.warn import warnings_of
from latfit.errors import FitError, LatfitError, counted
from latfit.evidence import dependence, find_changes, mixing, replay
from latfit.evidence.worlds import Survey, survey
from latfit.fitting import Fit, fit, fitted_law
from latfit.laws import Empirical
from latfit.numbers import finite
from latfit.restart import expected_duration, optimal_timeout, variation_interval
from latfit.restart.objectives import Objective
from latfit.restart.retry import best_retry
from latfit.sample import STATUSES, LatencySample
from latfit.table import ProbeTable
from latfit.units import seconds

SUSPICION = {"repeats": 1.0, "unseen": 0.3, "plain": 0.1, "fresh": 0.02}  # π: how much the worst case weighs
PRIOR_PROBES = 10  # π is at least their share of the probes seen: with as few, the answer is to wait
MAX_PLAUSIBLE_GAIN = 100.0  # times faster than waiting: more is a misread column or unit far more often than a gain
QUICK_RETURN = 5.0  # times below the median: such returns may be errors where the log has no outcomes


def decide(
    samples: Sequence[LatencySample | ProbeTable],
    options: Options | None = None,
    *,
    keys: Sequence[Key] | None = None,
    detail: bool = False,
    figures: bool = False,
) -> list[Decision]:
    """The decision on each sample, in their order.

    Parameters: `samples`, where a `ProbeTable` (`latfit.evidence.probes_of` a log) carries the evidence on whether the
    theory applies, and of a plain sample nothing is known but its latencies; the `options`, what is asked; `keys`, the
    name of each, on which its random numbers depend (default: numbers); `detail`, whether every law that was fitted is
    tested and put to use, and the paper's comparison made; `figures`, whether quantiles and standard deviation of the
    duration are computed without `detail` too. Returns a `Decision` for each sample. One that cannot be decided on has
    its reason in `error`; it ends nothing else.

    >>> from latfit import LatencySample
    >>> from latfit.decision import Options, decide
    >>> sample = LatencySample.of([2.0, 2.5, 3.0, 3.5, 4.0, 60.0, 70.0, 80.0], lost=1)
    >>> decide([sample], Options(resamples=0, test=False))[0].timeout.timeout
    4.0
    """
    options = options or Options()
    if options.law is not None:
        timeouts.law_named(options.law)
    if keys is None:
        keys = [()] if len(samples) == 1 else [(str(at),) for at in range(len(samples))]
    prepared: list[Prepared | str] = []
    for sample in samples:
        try:
            prepared.append(prepare(sample, options))
        except LatfitError as problem:
            prepared.append(str(problem))
    usable = {
        at: case
        for at, case in enumerate(prepared)
        if isinstance(case, Prepared) and case.sample.completed.total >= MIN_COMPLETIONS
    }
    cases = list(usable.values())
    decisions = []
    # resamples of small groups in which nothing completes, and latencies near the largest number
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        chosen = dict(
            zip(usable, zip(timeouts.recommend(cases, options), ranked(cases, options), strict=True), strict=True)
        )
        for at, (sample, case) in enumerate(zip(samples, prepared, strict=True)):
            whole = sample.sample if isinstance(sample, ProbeTable) else sample
            tallies = (whole.completed.total, whole.failed.total, whole.censored.total, whole.lost)
            decision = Decision(keys[at], dict(zip(STATUSES, tallies, strict=True)), whole)
            if isinstance(case, str):
                decisions.append(replace(decision, error=case))
                continue
            decision = replace(decision, whole=case.whole, sample=case.sample, cutoff=case.cutoff, outliers=case.ratio)
            decision = replace(decision, latency=LatencySummary.of(case.sample))
            if at in chosen:
                decision = _decided(decision, case, *chosen[at], options, detail=detail, figures=figures or detail)
            else:
                decision = _undecided(decision, case, options)
            decisions.append(decision)
    return decisions


def _undecided(decision: Decision, case: Prepared, options: Options) -> Decision:
    objective = {"name": str(Objective.parse(options.objective)), "value": None}
    withheld = Recommendation("withheld", case.ratio.estimate, "empirical", options.cost, objective)
    withheld = replace(withheld, withheld=("few-completions",))
    evidence, _ = collect_evidence(case, withheld, options)
    done = case.sample.completed.total
    within = f"completed within {case.cutoff.cutoff:g} s; a timeout needs at least {MIN_COMPLETIONS} at or below it"
    few = Warned("few-completions", f"only {done} of {counted(case.sample.n, 'probe')} {within}")
    if not done:
        return replace(decision, timeout=withheld, evidence=evidence, warnings=(few,), error=few.message)
    warnings = (few, *warnings_of(case, withheld, evidence))
    return replace(decision, timeout=withheld, evidence=evidence, warnings=warnings)


def _decided(
    decision: Decision,
    case: Prepared,
    recommended: timeouts.Recommended,
    fits: list[Fit],
    options: Options,
    *,
    detail: bool,
    figures: bool,
) -> Decision:
    sample, cutoff, key = case.sample, case.cutoff.cutoff, decision.key
    formula, unidentified = recommended
    evidence, choice = collect_evidence(case, formula, options, coarse=bool(unidentified))
    formula, no_interval = timeouts.with_intervals(formula, case, options, key, evidence.dependence)
    law = Empirical.of(sample) if figures or options.law is not None else None
    formula = replace(formula, source=formula.source or law)
    by_least_squares = fit(sample, elaborate(), method="ls", resamples=0) if detail and options.laws is None else []
    fitted = tested(case, [*fits, *by_least_squares], options, key, every=detail)
    together = joint(case, fits, detail=detail) if options.test or detail else None
    if detail and law is not None:
        fitted = [put_to_use(each, sample, options, law, formula.expected_duration) for each in fitted]
    if options.law is None:
        chosen = formula
        judged = apply_evidence(chosen, case, evidence, choice, identified=not unidentified)
    else:
        judged = chosen = _by_law(options, case, fits)
    if judged.retry is not None and options.resamples:
        rng = generator(options.seed, "retry", *key)
        judged = replace(judged, retry=with_retry_intervals(judged.retry, sample, cutoff, rng, options=options))
    if not options.accept_implausible and (problem := _implausible(judged, case)):
        return replace(decision, error=problem)
    if detail and options.resamples and law is not None and decision.latency is not None:
        spread = variation_interval(law.conditional(), generator(options.seed, "variation", *key))
        decision = replace(decision, latency=replace(decision.latency, variation_interval=spread))
    warnings = warnings_of(case, judged, evidence, together, fitted, options.law)
    without_outliers = None
    if detail and law is not None and not any(warning.code == "rho-disagree" for warning in warnings):
        with suppress(LatfitError):  # the paper's comparison: the law of those that returned, F̃/F̃(T)
            returned, step = law.conditional(), sample.resolution
            best = optimal_timeout(returned, cost=options.cost, min_completions=MIN_COMPLETIONS, min_timeout=step)
            without_outliers = timeouts.of_optimum(best, returned, case, options)
    return replace(
        decision,
        joint=together,
        fits=tuple(fitted),
        best=next((each for each in fitted if each.fit.error is None and each.fit.method == "mle"), None),
        timeout=judged,
        without_outliers=without_outliers,
        current=None if options.current is None else _current(options.current, chosen, case, options.cost),
        evidence=evidence,
        warnings=(*warnings, *unidentified, *no_interval),
    )


def _implausible(judged: Recommendation, case: Prepared) -> str | None:
    """Why an answer says more of how the log was read than of the system, with the longest rows; None: it does not."""
    retry, probes = judged.retry, case.seen
    if retry is None:
        return None
    when = None if probes is None or probes.submitted is None else probes.submitted
    span = np.inf if when is None else float(np.nanmax(when) - np.nanmin(when))
    if retry.waiting > MAX_PLAUSIBLE_GAIN * retry.expected_duration:
        what = f"jobs would be {retry.waiting / retry.expected_duration:.3g} times faster than by waiting"
    elif retry.timeouts[0] > span > 0 and probes is not None and probes.facts.unit in (None, "s"):
        what = f"the timeout of {seconds(retry.timeouts[0])} is longer than the log ({seconds(span)})"
    else:
        return None
    rows = []
    if probes is not None:
        for at in np.argsort(-np.nan_to_num(probes.latency, nan=-1.0, posinf=-1.0), kind="stable")[:3]:
            sent = "" if when is None else f", submitted {np.datetime64(int(when[at]), 's')}Z"
            rows.append(f"{probes.latency[at]:g} s ({STATUSES[probes.status[at]]}{sent})")
    longest = "; ".join(rows) or f"{case.sample.completed.values[-1]:g} s"
    text = f"{what}: that is not plausible. The longest rows: {longest}. Check the column and the unit of the latency "
    return f"{text}(`latfit read` shows them), or accept this with --accept-implausible"


def _by_law(options: Options, case: Prepared, fits: Sequence[Fit]) -> Recommendation:
    fit = next((fit for fit in fits if fit.name == options.law), None)
    if fit is None or fit.law is None:
        reason = fit.error if fit else "it was not tried"
        raise FitError(f"{options.law} could not be fitted to {counted(case.sample.n, 'probe')}: {reason}")
    law = fitted_law(case.sample, fit)
    best = optimal_timeout(law, max_submissions=options.max_submissions, **options.policy)
    chosen = timeouts.of_optimum(best, law, case, options)
    if not options.plain:
        return chosen
    cutoff, risk = case.cutoff.cutoff, options.risk
    return replace(chosen, retry=best_retry(law, cutoff=cutoff, risk=risk, max_load=MAX_LOAD, cost=options.cost))


def _current(timeout: float, chosen: Recommendation, case: Prepared, cost: float) -> Current:
    law, least = chosen.source or Empirical.of(case.sample), chosen.expected_duration
    E = float(expected_duration(law, timeout, cost=cost))
    return Current(timeout, finite(E), max(0.0, E / least - 1) if least else None)


def collect_evidence(
    case: Prepared, formula: Recommendation, options: Options, *, coarse: bool = False
) -> tuple[Evidence, Choice | None]:
    """The evidence and the best schedule; with a `coarse` clock, a restart is taken to cost a step of it."""
    sample, cutoff = case.sample, case.cutoff.cutoff
    probes, known, strata, pi = survey_case(case, options.cost)
    choice = None
    if options.plain and options.rho is None:
        costed = replace(strata, cost=options.cost + (sample.resolution if coarse else 0.0))
        choice = choose_schedule(costed, risk=options.risk, suspicion=pi, shortest=sample.resolution)
    absent: list[float | None] = [None] * len(strata.names)
    unlimited = strata.unlimited(min(formula.timeout, cutoff)).tolist() if formula.timeout else absent
    kinds = [(INDEPENDENT, None), *((world.kind, world.z) for world in known.worlds)]
    rows = zip(strata.names, kinds, choice.ratios if choice else absent, unlimited, strict=True)
    evidence = Evidence(
        case.censoring,
        worlds=tuple(JudgedWorld(name, *kind, ratio, forever) for name, kind, ratio, forever in rows),
        binding=choice.binding if choice else None,
        columns_used=tuple(known.used),
        columns_left_out=tuple(known.left_out.items()),
    )
    if case.seen is None:
        return evidence, choice
    mixed = mixing(probes, known.worlds, dict(zip(strata.names, unlimited, strict=True)))
    drift = replayed = None
    if options.plain and options.law is None:
        at, groups = [] if formula.timeout is None else [formula.timeout], mixed.column.codes if mixed else None
        replayed = replay(probes, cutoff, at=at, cost=options.cost, groups=groups)
    if probes.submitted is not None:
        drift = find_changes(probes.submitted, probes.latency, probes.status, cutoff)
    return replace(evidence, mixing=mixed, dependence=dependence(probes), drift=drift, replay=replayed), choice


def survey_case(case: Prepared, cost: float) -> tuple[ProbeTable, Survey, Strata, float]:
    """The probes (of a plain sample in no order), the worlds that they support, their strata, and π."""
    probes, sample, known = case.seen, case.sample, Survey([], {}, {})
    if probes is not None:
        known = survey(probes, case.cutoff.cutoff)
    else:
        parts = [tally.expand() for tally in (sample.completed, sample.failed, sample.censored)]
        parts.append(np.full(sample.lost, np.inf))
        probes = ProbeTable(np.concatenate(parts), np.repeat(np.arange(4), [part.size for part in parts]))
    strata = Strata.of(probes.latency, probes.status, case.cutoff.cutoff, known.worlds, cost)
    return probes, known, strata, min(_suspicion(case.seen, probes.n, known), 1.0)


def _suspicion(probes: ProbeTable | None, n: int, known: Survey) -> float:
    """π: queues, work and sticky jobs repeat their fate; what a blind or small log cannot have shown stays suspect."""
    if probes is not None and (
        probes.facts.queue or probes.facts.work or any(world.kind == "job" for world in known.worlds)
    ):
        return SUSPICION["repeats"]
    blind = probes is None or (probes.submitted is None and not known.used) or not probes.facts.has_outcomes
    plain = max(SUSPICION["unseen" if blind else "plain"], PRIOR_PROBES / n)
    return min(plain, max(SUSPICION["fresh"], PRIOR_PROBES / known.fresh)) if known.fresh else plain


def apply_evidence(
    formula: Recommendation, case: Prepared, evidence: Evidence, choice: Choice | None, *, identified: bool
) -> Recommendation:
    """The recommendation, withheld where a supported world makes it, repeated for ever, slower than waiting."""
    facts = case.seen.facts if case.seen is not None else None
    retry = choice.retry if choice else None
    harmed = [world for world in evidence.worlds[1:] if (world.unlimited or 0.0) > 1]
    codes = ["dependent" if world.kind in ("job", "time", "spell") else "mixed" for world in harmed]
    if facts is not None and (facts.queue or facts.work) and formula.verdict == "finite":
        codes.insert(0, "queue" if facts.queue else "work")
    early = case.sample.censored_early
    if early > case.sample.returned and early > 0.5 * case.sample.n:  # more given up than came back
        codes.insert(0, "censored")
        retry = None
    quick = formula.timeout is not None and formula.timeout < case.sample.completed.quantiles([0.5])[0] / QUICK_RETURN
    if quick and facts is not None and not facts.has_outcomes:  # such returns may be errors
        codes.insert(0, "no-outcomes")
        retry = None
    if formula.timeout == 0 or (codes and not identified):
        codes.insert(0, "not-identified")
    if not codes or formula.verdict == "withheld":
        return replace(formula, retry=retry)
    absent: dict[str, Any] = dict.fromkeys(
        ("timeout", "expected_duration", "submissions", "within_1pct", "within_5pct", "speed_up")
    )
    return replace(
        formula,
        **absent,
        verdict="withheld",
        objective={**formula.objective, "value": None},
        intervals=None,
        withheld=tuple(dict.fromkeys(codes)),
        if_independent=formula,
        retry=retry,
    )
