"""Samples to decisions: prepare, fit, optimise, collect the evidence, apply it, warn."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

import latfit.decision.recommend as timeouts
from latfit.curve import MIN_COMPLETIONS
from latfit.decision.fits import elaborate, joint, put_to_use, ranked, tested
from latfit.decision.prepare import Key, Options, Prepared, prepare
from latfit.decision.result import Current, Decision, Evidence, JudgedWorld, LatencySummary, Recommendation, Warned
from latfit.decision.schedule import (
    INDEPENDENT,
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
from latfit.evidence.changes import changes_of_logs
from latfit.evidence.replay import replay_logs
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
    if not (np.iterable(samples) and all(isinstance(each, (LatencySample, ProbeTable)) for each in samples)):
        raise SampleError(
            "decide takes a list of samples or of tables of probes; latfit.analyze takes a log or an array"
        )
    if options.law is not None:
        timeouts.law_named(options.law)
    if keys is None:
        keys = [()] if len(samples) == 1 else [(str(at),) for at in range(len(samples))]
    decisions: list[Decision] = []
    cases: dict[int, Prepared] = {}
    for at, (key, sample) in enumerate(zip(keys, samples, strict=True)):
        whole = sample.sample if isinstance(sample, ProbeTable) else sample
        tallies = (whole.completed.total, whole.failed.total, whole.censored.total, whole.lost)
        decision = Decision(key, dict(zip(STATUSES, tallies, strict=True)), whole)
        try:
            case = cases[at] = prepare(sample, options, key)
            decision = replace(decision, whole=case.whole, sample=case.sample, latency=LatencySummary.of(case.sample))
            decisions.append(replace(decision, cutoff=case.cutoff, outliers=case.ratio))
        except LatfitError as problem:
            decisions.append(replace(decision, error=str(problem)))
    usable = [at for at, case in cases.items() if case.sample.completed.total >= MIN_COMPLETIONS]
    some = [cases[at] for at in usable]
    # resamples of small groups in which nothing completes, and latencies near the largest number
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        recommended = dict(zip(usable, timeouts.recommend(some, options), strict=True))
        fits = dict(zip(usable, ranked(some, options), strict=True))
        formulas = [recommended[at] if at in fits else (_too_few(case), ()) for at, case in cases.items()]
        evidence = collect_evidence(list(cases.values()), formulas, options)
        for (at, case), formula, (judged, choice) in zip(cases.items(), formulas, evidence, strict=True):
            decision = replace(decisions[at], evidence=judged)
            if at in fits:
                decisions[at] = _decided(decision, case, judged, formula, fits[at], choice, detail, figures or detail)
            else:
                decisions[at] = _undecided(decision, case, judged, formula[0])
    return decisions


def _too_few(case: Prepared) -> Recommendation:
    return Recommendation(
        verdict="withheld",
        rho=case.ratio.estimate,
        law="empirical",
        cost=case.cost,
        objective={"name": str(Objective.parse(case.options.objective)), "value": None},
        withheld=("few-completions",),
    )


def _undecided(decision: Decision, case: Prepared, evidence: Evidence, withheld: Recommendation) -> Decision:
    done = case.sample.completed.total
    within = f"completed within {case.cutoff.cutoff:g} s; a timeout needs at least {MIN_COMPLETIONS} at or below it"
    few = Warned("few-completions", f"only {done} of {counted(case.sample.n, 'probe')} {within}")
    warnings = warnings_of(case, withheld, evidence) if done else ()
    return replace(decision, timeout=withheld, warnings=(few, *warnings), error=None if done else few.message)


def _decided(
    decision: Decision,
    case: Prepared,
    evidence: Evidence,
    recommended: timeouts.Recommended,
    fits: list[Fit],
    choice: Choice | None,
    detail: bool,
    figures: bool,
) -> Decision:
    options, sample, cutoff = case.options, case.sample, case.cutoff.cutoff
    formula, unidentified = recommended
    formula, no_interval = timeouts.with_intervals(formula, case, evidence.dependence)
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
        fitted = [put_to_use(each, case, law, recommended[0].expected_duration) for each in fitted]
        if not any(warning.code == "rho-disagree" for warning in warnings):
            decision = replace(decision, without_outliers=_without_outliers(case, law))
        if options.resamples and decision.latency is not None:
            spread = variation_interval(law.conditional(), case.rng("variation"))
            decision = replace(decision, latency=replace(decision.latency, variation_interval=spread))
    if options.current is not None and formula.source is not None:
        E, least = float(expected_duration(formula.source, options.current, cost=case.cost)), formula.expected_duration
        regret = max(0.0, E / least - 1) if least else None
        decision = replace(decision, current=Current(options.current, finite(E), regret))
    return replace(
        decision,
        joint=together,
        fits=tuple(fitted),
        best=next((each for each in fitted if each.fit.error is None and each.fit.method == "mle"), None),
        timeout=judged,
        warnings=(*warnings, *unidentified, *no_interval),
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
    cases: Sequence[Prepared], formulas: Sequence[timeouts.Recommended], options: Options
) -> list[tuple[Evidence, Choice | None]]:
    """The evidence on each log and its best schedule.

    Where the clock does not tell which timeout is best, a restart is taken to cost a step of it. If then the answer is
    to wait, and it would not be if restarts were free, it depends on the cost.
    """
    surveys = [survey_case(case) for case in cases]
    choices: list[Choice | None] = [None] * len(cases)
    if options.plain and options.rho is None:
        logs = [strata for _, strata in surveys]
        steps = [s.shortest if unclear else 0.0 for s, (_, unclear) in zip(logs, formulas, strict=True)]
        costed = [replace(s, cost=s.cost + step) for s, step in zip(logs, steps, strict=True)]
        choices = choose_schedules(costed, risk=options.risk)
        waits = {at: each for at, each in enumerate(choices) if steps[at] and each is not None and each.retry is None}
        free = choose_schedules([logs[at] for at in waits], risk=options.risk)
        for (at, wait), choice in zip(waits.items(), free, strict=True):
            choices[at] = replace(wait, cost_decides=choice is not None and choice.retry is not None)
    recommended = [formula for formula, _ in formulas]
    limited = [at for at, formula in enumerate(recommended) if formula.timeout]
    limits = [min(recommended[at].timeout or np.inf, cases[at].cutoff.cutoff) for at in limited]
    ratios = dict(zip(limited, unlimited([surveys[at][1] for at in limited], limits), strict=True))
    forever = [ratios.get(at) for at in range(len(cases))]
    evidence = [
        _worlds_and_order(case, *seen, choice, ever)
        for case, seen, choice, ever in zip(cases, surveys, choices, forever, strict=True)
    ]
    timed = {
        at: case.seen for at, case in enumerate(cases) if case.seen is not None and case.seen.submitted is not None
    }
    probed = [(probes, cases[at].cutoff.cutoff) for at, probes in timed.items()]
    for at, changes in zip(timed, changes_of_logs(probed), strict=True):
        evidence[at] = replace(evidence[at], drift=changes)
    if options.plain and options.law is None:
        asked = []
        for at, log in zip(timed, probed, strict=True):
            t, mixed = recommended[at].timeout, evidence[at].mixing
            asked.append((*log, [] if t is None else [t], mixed.column.codes if mixed else None))
        for at, replayed in zip(timed, replay_logs(asked, cost=options.cost), strict=True):
            evidence[at] = replace(evidence[at], replay=replayed)
    return list(zip(evidence, choices, strict=True))


def _worlds_and_order(
    case: Prepared, known: Survey, strata: Strata, choice: Choice | None, unlimited: Sequence[float] | None
) -> Evidence:
    """The evidence but for what describes it over time, which is computed for many logs at once."""
    probes = case.seen
    absent: list[float | None] = [None] * len(strata.names)
    forever = absent if unlimited is None else unlimited
    kinds = [(INDEPENDENT, None), *((world.kind, world.z) for world in known.worlds)]
    rows = zip(strata.names, kinds, choice.ratios if choice else absent, forever, strict=True)
    return Evidence(
        case.censoring,
        mixing=mixing(probes, known.worlds, dict(zip(strata.names, forever, strict=True)))
        if probes is not None
        else None,
        dependence=dependence(probes) if probes is not None else None,
        worlds=tuple(JudgedWorld(name, *kind, ratio, ever) for name, kind, ratio, ever in rows),
        binding=choice.binding if choice else None,
        columns_used=known.used,
        columns_left_out=tuple(known.left_out.items()),
    )


def survey_case(case: Prepared) -> tuple[Survey, Strata]:
    """What the log of a case says, before any schedule is chosen: its worlds, and their strata."""
    probes, sample, known = case.seen, case.sample, Survey()
    if probes is not None:
        known = survey(probes, case.cutoff.cutoff)
        latency, status = probes.latency, probes.status
    else:
        parts = [tally.expand() for tally in (sample.completed, sample.failed, sample.censored)]
        parts.append(np.full(sample.lost, np.inf))
        latency, status = np.concatenate(parts), np.repeat(np.arange(4, dtype=np.int8), [part.size for part in parts])
    strata = Strata.of(latency, status, case.cutoff.cutoff, known.worlds, case.cost)
    pi = min(_suspicion(probes, latency.size, known), 1.0)
    return known, replace(strata, suspicion=pi, shortest=sample.resolution)


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
    formula: Recommendation, case: Prepared, evidence: Evidence, choice: Choice | None
) -> Recommendation:
    """The recommendation, withheld where a supported world makes it, repeated for ever, slower than waiting."""
    facts, retry = case.seen.facts if case.seen is not None else None, choice.retry if choice is not None else None
    against = [world for world in evidence.worlds[1:] if (world.unlimited or 0.0) > 1]
    if formula.timeout == 0 and choice is not None and retry is None and evidence.binding != INDEPENDENT:
        against = [world for world in evidence.worlds if world is evidence.binding_world]
    codes = ["dependent" if world.kind in ("job", "time", "spell") else "mixed" for world in against]
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
    if (formula.timeout == 0 and not codes) or (choice is not None and choice.cost_decides):
        codes.insert(0, "not-identified")
    if not codes or formula.verdict == "withheld":
        return replace(formula, retry=retry)
    return formula.withhold(codes, retry)
