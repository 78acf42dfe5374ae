"""Samples to decisions: prepare, fit, optimise, collect the evidence, apply it, warn."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

import latfit.decision.recommend as timeouts
from latfit.curve import MIN_COMPLETIONS
from latfit.decision.fits import elaborate, joint, put_to_use, ranked, tested
from latfit.decision.prepare import Key, Options, Prepared, prepare
from latfit.decision.result import Current, Decision, Evidence, LatencySummary, Recommendation, Warned
from latfit.decision.schedule import (
    MAX_LOAD,
    Choice,
    Strata,
    choose_schedules,
    unlimited,
    with_retry_intervals,
)
from latfit.decision.warn import warnings_of
from latfit.errors import FitError, LatfitError, SampleError, counted
from latfit.evidence import dependence, mixing
from latfit.evidence.changes import find_changes
from latfit.evidence.replay import replay_logs
from latfit.evidence.worlds import INDEPENDENT, Survey, survey
from latfit.fitting import Fit, fit, fitted_law
from latfit.laws import Empirical
from latfit.numbers import finite
from latfit.resample import variation_interval
from latfit.restart import expected_duration, optimal_timeout
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
    if not (np.iterable(samples) and all(isinstance(each, (LatencySample, ProbeTable)) for each in samples)):
        raise SampleError(
            "decide takes a list of samples or of tables of probes; latfit.analyze takes a log or an array"
        )
    if options.law is not None:
        timeouts.law_named(options.law)
    if keys is None:
        keys = [()] if len(samples) == 1 else [(str(at),) for at in range(len(samples))]
    started = [_started(sample, options, key) for key, sample in zip(keys, samples, strict=True)]
    decisions = [decision for decision, _ in started]
    places = [at for at, (_, case) in enumerate(started) if case is not None]
    cases = [case for _, case in started if case is not None]
    # resamples of small groups in which nothing completes, and latencies near the largest number
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        formulas = timeouts.recommend(cases)
        fits = iter(ranked([case for case in cases if case.enough], options))
        evidence = collect_evidence(cases, formulas, options)
        for at, case, formula, (judged, choice) in zip(places, cases, formulas, evidence, strict=True):
            decision = replace(decisions[at], evidence=judged)
            if case.enough:
                decisions[at] = _decided(decision, case, judged, formula, next(fits), choice, detail, figures or detail)
            else:
                decisions[at] = _undecided(decision, case, judged, formula)
    return decisions


def _started(sample: LatencySample | ProbeTable, options: Options, key: Key) -> tuple[Decision, Prepared | None]:
    whole = sample.sample if isinstance(sample, ProbeTable) else sample
    tallies = (whole.completed.total, whole.failed.total, whole.censored.total, whole.lost)
    decision = Decision(key, dict(zip(STATUSES, tallies, strict=True)), whole)
    try:
        case = prepare(sample, options, key)
        summary = LatencySummary.of(case.sample)
    except LatfitError as problem:
        return replace(decision, error=str(problem)), None
    facts: dict[str, Any] = {"whole": case.whole, "sample": case.sample, "latency": summary}
    return replace(decision, cutoff=case.cutoff, outliers=case.ratio, **facts), case


def _undecided(decision: Decision, case: Prepared, evidence: Evidence, withheld: Recommendation) -> Decision:
    done = case.sample.completed.total
    within = f"completed within {seconds(case.cutoff.cutoff)}; a timeout needs {MIN_COMPLETIONS} or more by then"
    few = Warned("few-completions", f"only {done} of {counted(case.sample.n, 'probe')} {within}")
    warnings = warnings_of(case, withheld, evidence) if done else ()
    return replace(decision, timeout=withheld, warnings=(few, *warnings), error=None if done else few.message)


def _decided(
    decision: Decision,
    case: Prepared,
    evidence: Evidence,
    formula: Recommendation,
    fits: list[Fit],
    choice: Choice | None,
    detail: bool,
    figures: bool,
) -> Decision:
    options, sample, cutoff = case.options, case.sample, case.cutoff.cutoff
    least = formula.expected_duration
    formula = timeouts.with_intervals(formula, case, evidence.dependence)
    about_formula = formula.warnings
    law = Empirical.of(sample) if figures or options.law or options.current is not None else None
    if law is not None and formula.source is None:
        formula = timeouts.with_figures(formula, law, case)
    rich = elaborate() if detail and options.laws is None else []
    by_least_squares = fit(sample, rich, method="ls", resamples=0) if rich else []
    fitted = tested(case, [*fits, *by_least_squares], every=detail)
    together = joint(case, fits, detail=detail) if options.test or detail else None
    if options.law is None:
        judged = apply_evidence(formula, case, evidence, choice)
    else:
        formula = judged = _by_law(case, fits)
    if judged.retry is not None and options.resamples:
        judged = replace(judged, retry=with_retry_intervals(judged.retry, sample, cutoff, case.rng("retry"), options))
    if not options.accept_implausible and (problem := _implausible(judged, case)):
        return replace(decision, error=problem, evidence=None)
    warnings = warnings_of(case, judged, evidence, together, fitted)
    if detail and law is not None:
        fitted = [put_to_use(each, case, law, least) for each in fitted]
        if not any(warning.code == "rho-disagree" for warning in warnings):
            decision = replace(decision, without_outliers=_without_outliers(case, law))
        if options.resamples and decision.latency is not None:
            spread = variation_interval(sample, case.rng("variation"))
            decision = replace(decision, latency=replace(decision.latency, variation_interval=spread))
    if options.current is not None and formula.source is not None:
        E = float(expected_duration(formula.source, options.current, cost=case.cost))
        regret = max(0.0, E / formula.expected_duration - 1) if formula.expected_duration else None
        decision = replace(decision, current=Current(options.current, finite(E), regret))
    return replace(
        decision,
        joint=together,
        fits=tuple(fitted),
        best=next((each for each in fitted if each.fit.error is None and each.fit.method == "mle"), None),
        timeout=judged,
        warnings=(*warnings, *about_formula),
    )


def _without_outliers(case: Prepared, law: Empirical) -> Recommendation | None:
    """The paper's comparison: the optimum of the law of those that returned, F̃/F̃(T)."""
    returned, step = law.conditional(), case.sample.resolution
    with suppress(LatfitError):
        best = optimal_timeout(returned, cost=case.cost, min_completions=MIN_COMPLETIONS, min_timeout=step)
        return timeouts.of_optimum(best, returned, case)
    return None


def _implausible(judged: Recommendation, case: Prepared) -> str | None:
    """Why an answer says more of how the log was read than of the system, with the longest rows; None: it does not."""
    retry, probes = judged.retry, case.seen
    if retry is None:
        return None
    when = probes.submitted
    span = np.inf if when is None else float(np.nanmax(when) - np.nanmin(when))
    if retry.waiting > MAX_PLAUSIBLE_GAIN * retry.expected_duration:
        what = f"jobs would be {retry.waiting / retry.expected_duration:.3g} times faster than by waiting"
    elif retry.timeouts[0] > span > 0 and probes.facts.unit in (None, "s"):
        what = f"the timeout of {seconds(retry.timeouts[0])} is longer than the log ({seconds(span)})"
    else:
        return None
    rows = []
    for at in np.argsort(-np.nan_to_num(probes.latency, nan=-1.0, posinf=-1.0), kind="stable")[:3]:
        sent = "" if when is None else f", submitted {np.datetime64(int(when[at]), 's')}Z"
        rows.append(f"{probes.latency[at]:g} s ({STATUSES[probes.status[at]]}{sent})")
    text = f"{what}: that is not plausible. The longest rows: {'; '.join(rows)}. Check the column and the unit of the "
    return f"{text}latency (`latfit read` shows them), or accept this with --accept-implausible"


def _by_law(case: Prepared, fits: Sequence[Fit]) -> Recommendation:
    options = case.options
    fit = next((fit for fit in fits if fit.name == options.law), None)
    if fit is None or fit.law is None:
        reason = fit.error if fit else "it was not tried"
        raise FitError(f"{options.law} could not be fitted to {counted(case.sample.n, 'probe')}: {reason}")
    law = fitted_law(case.sample, fit)
    best = optimal_timeout(law, max_submissions=options.max_submissions, **options.policy)
    retry = None
    if options.plain:
        T = case.cutoff.cutoff
        retry = best_retry(law, cutoff=T, risk=options.risk, max_load=MAX_LOAD, cost=options.cost)
    return replace(timeouts.of_optimum(best, law, case), retry=retry)


def collect_evidence(
    cases: Sequence[Prepared], formulas: Sequence[Recommendation], options: Options
) -> list[tuple[Evidence, Choice | None]]:
    """The evidence on each log and its best schedule."""
    surveys = [survey_case(case) for case in cases]
    logs = [strata for _, strata in surveys]
    choices: Sequence[Choice | None] = [None] * len(cases)
    if options.plain and options.rho is None:
        choices = _choices(logs, [bool(formula.warnings) for formula in formulas], options.risk)
    repeated = [formula.timeout for formula in formulas]
    limits = [min(t or np.inf, case.cutoff.cutoff) for t, case in zip(repeated, cases, strict=True)]
    rows = zip(cases, surveys, choices, repeated, unlimited(logs, limits), strict=True)
    evidence = [_of_log(case, *known, choice, ratios if t else None) for case, known, choice, t, ratios in rows]
    if options.plain and options.law is None:
        asked = []
        for case, each, t in zip(cases, evidence, repeated, strict=True):
            groups = each.mixing.column.codes if each.mixing else None
            asked.append((case.seen, case.cutoff.cutoff, [] if t is None else [t], groups))
        replays = replay_logs(asked, cost=options.cost)
        evidence = [replace(each, replay=replayed) for each, replayed in zip(evidence, replays, strict=True)]
    return list(zip(evidence, choices, strict=True))


def _choices(logs: Sequence[Strata], unclear: Sequence[bool], risk: float) -> list[Choice | None]:
    """The best schedules. Where the clock does not tell which timeout is best, a restart costs a step of it.

    If then the answer is to wait, and it would not be if restarts were free, it depends on the cost.
    """
    steps = [log.shortest if coarse else 0.0 for log, coarse in zip(logs, unclear, strict=True)]
    costed = [replace(log, cost=log.cost + step) for log, step in zip(logs, steps, strict=True)]
    choices = choose_schedules(costed, risk=risk)
    waits = {at: each for at, each in enumerate(choices) if steps[at] and each is not None and each.retry is None}
    for (at, wait), free in zip(waits.items(), choose_schedules([logs[at] for at in waits], risk=risk), strict=True):
        choices[at] = replace(wait, cost_decides=free is not None and free.retry is not None)
    return choices


def _of_log(
    case: Prepared, known: Survey, strata: Strata, choice: Choice | None, repeated: Sequence[float] | None
) -> Evidence:
    """The evidence but for the replay; `repeated` is the formula's timeout without limit over waiting, by world."""
    probes, absent = case.seen, [None] * len(strata.names)
    forever: Sequence[float | None] = absent if repeated is None else repeated
    rows = zip((INDEPENDENT, *known.worlds), choice.ratios if choice else absent, forever, strict=True)
    drift = None
    if probes.submitted is not None:
        drift = find_changes(probes.submitted, probes.latency, probes.status, case.cutoff.cutoff)
    return Evidence(
        case.censoring,
        mixing=mixing(probes, known.worlds, dict(zip(strata.names, forever, strict=True))),
        dependence=dependence(probes),
        drift=drift,
        worlds=tuple(world.judged(ratio, ever) for world, ratio, ever in rows),
        binding=choice.binding if choice else None,
        columns_used=known.used,
        columns_left_out=tuple(known.left_out.items()),
    )


def survey_case(case: Prepared) -> tuple[Survey, Strata]:
    """What the log of a case says, before any schedule is chosen: its worlds, and their strata."""
    probes, cutoff = case.seen, case.cutoff.cutoff
    known = Survey() if case.bare else survey(probes, cutoff)
    strata = Strata.of(probes.latency, probes.status, cutoff, known.worlds, case.cost)
    return known, replace(strata, suspicion=_suspicion(probes, known), shortest=case.sample.resolution)


def _suspicion(probes: ProbeTable, known: Survey) -> float:
    """π: queues, work and sticky jobs repeat their fate; what a blind or small log cannot have shown stays suspect."""
    facts = probes.facts
    if facts.queue or facts.work or any(world.kind == "job" for world in known.worlds):
        return SUSPICION["repeats"]
    blind = (probes.submitted is None and not known.used) or not facts.has_outcomes
    plain = max(SUSPICION["unseen" if blind else "plain"], PRIOR_PROBES / probes.n)
    fresh = max(SUSPICION["fresh"], PRIOR_PROBES / known.fresh) if known.fresh else plain
    return min(plain, fresh, 1.0)


def apply_evidence(
    formula: Recommendation, case: Prepared, evidence: Evidence, choice: Choice | None
) -> Recommendation:
    """The recommendation, withheld where a supported world makes it, repeated for ever, slower than waiting."""
    facts, retry = case.seen.facts, choice.retry if choice is not None else None
    against = [world for world in evidence.worlds[1:] if (world.unlimited or 0.0) > 1]
    if formula.timeout == 0 and choice is not None and retry is None and evidence.binding != INDEPENDENT.name:
        against = [world for world in evidence.worlds if world is evidence.binding_world]
    codes = ["dependent" if world.kind in ("job", "time", "spell") else "mixed" for world in against]
    if (facts.queue or facts.work) and formula.verdict == "finite":
        codes.insert(0, "queue" if facts.queue else "work")
    if case.sample.censored_early > case.sample.n / 2:  # more given up than came back
        codes.insert(0, "censored")
        retry = None
    quick = formula.timeout is not None and formula.timeout < case.sample.completed.quantiles([0.5])[0] / QUICK_RETURN
    if quick and not facts.has_outcomes:  # such returns may be errors
        codes.insert(0, "no-outcomes")
        retry = None
    if (formula.timeout == 0 and not codes) or (choice is not None and choice.cost_decides):
        codes.insert(0, "not-identified")
    if not codes or formula.verdict == "withheld":
        return replace(formula, retry=retry)
    return formula.withhold(codes, retry)
