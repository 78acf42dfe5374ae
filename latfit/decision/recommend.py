"""From prepared samples to timeouts: the exact optimum, the robust one, windows and intervals, many at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from latfit.curve import MIN_COMPLETIONS, Counts
from latfit.decision.prepare import Prepared
from latfit.decision.result import Recommendation, Warned
from latfit.errors import LawError, SampleError
from latfit.evidence import Dependence
from latfit.laws import Empirical, Law, get_law
from latfit.numbers import Floats, finite
from latfit.resample import Blocks, bootstrap
from latfit.restart import Optimum, evaluate_timeout, optimal_timeout
from latfit.restart.objectives import Objective
from latfit.sample import CENSORED, LOST, LatencySample
from latfit.units import seconds

MAX_SHIFT = 0.1  # an optimum that moves by a larger share when one step of the clock is its cost is not identified


def recommend(cases: Sequence[Prepared]) -> list[Recommendation]:
    """The recommendation of each sample from the data themselves; without intervals."""
    results: dict[int, Recommendation] = {}
    sizes: dict[int, list[int]] = defaultdict(list)  # samples of about one size are rows of one array
    for at, case in enumerate(cases):
        if not case.enough:
            results[at] = _too_few(case)
        elif case.options.plain and case.options.rho is None:
            sizes[case.sample.completed.values.size.bit_length()].append(at)
        else:
            results[at] = _by_objective(case)
    for members in sizes.values():
        results |= zip(members, _together([cases[at] for at in members]), strict=True)
    return [results[at] for at in range(len(cases))]


def _too_few(case: Prepared) -> Recommendation:
    return Recommendation(
        verdict="withheld",
        rho=case.ratio.estimate,
        law="empirical",
        cost=case.cost,
        objective={"name": str(Objective.parse(case.options.objective)), "value": None},
        withheld=("few-completions",),
    )


def _together(cases: Sequence[Prepared]) -> list[Recommendation]:
    samples, cost = [case.sample for case in cases], cases[0].cost
    curves = Counts.of_samples(samples).curves()
    step = np.array([sample.resolution for sample in samples])
    allowed = curves.allowed(step)
    k, t = curves.robust_argmin(cost, allowed)
    rows = np.arange(k.size)
    exact, _ = curves.exact(cost, allowed)
    E_J = curves.E_J(cost)
    E, E_R = E_J[rows, k], np.where(curves.S[:, -1] <= 0, E_J[:, -1], np.inf)
    never = (curves.S[rows, exact] <= 0) | (E_J[rows, exact] >= E_R * (1 - 1e-9))
    exact_t = np.where(never, np.nan, np.broadcast_to(curves.times, curves.F.shape)[rows, exact])
    dearer = curves.robust_argmin(np.full(k.size, cost) + step, allowed)[1] if (step > cost).any() else t
    unclear = (t == 0) | ((step > cost) & ((t <= step) | (np.abs(dearer - t) > MAX_SHIFT * t)))
    windows = curves.windows(k, [share * E for share in (1.01, 1.05)], cost)
    at_cutoff = curves.E_J_at(np.array([case.cutoff.cutoff for case in cases]), cost)
    results = []
    for row, case in enumerate(cases):
        within_1pct, within_5pct = ((float(low[row]), float(high[row])) for low, high in windows)
        recommendation = Recommendation(
            verdict="finite",
            rho=1.0 - float(curves.F[row, -1]),
            law="empirical",
            cost=cost,
            objective={"name": "mean", "value": finite(E[row])},
            timeout=float(t[row]),
            expected_duration=finite(E[row]),
            submissions=1 / float(curves.F[row, k[row]]),
            within_1pct=within_1pct,
            within_5pct=within_5pct,
            conservative_timeout=finite(within_5pct[1]),
            exact_timeout=finite(exact_t[row]),
            speed_up=finite(E_R[row] / E[row]),
            at_cutoff=finite(at_cutoff[row]),
            warnings=_not_identified(case) if unclear[row] else (),
        )
        results.append(recommendation)
    return results


def with_figures(chosen: Recommendation, law: Law, case: Prepared) -> Recommendation:
    """The recommendation with the standard deviation and the quantiles on its law, and those of waiting."""
    t = np.inf if chosen.timeout is None else chosen.timeout
    best, waiting = (evaluate_timeout(law, each, **case.options.policy) for each in (t, case.cutoff.cutoff))
    figures = {name: getattr(best, name) for name in ("std_duration", "quantiles", "job_seconds", "success")}
    return replace(chosen, **figures, waiting=waiting, source=law)


def _not_identified(case: Prepared) -> tuple[Warned]:
    sample = case.sample
    message = (
        f"the optimum is not identified: give --cost. A clock of {seconds(sample.resolution)} and a cost of "
        f"{case.cost:g} s for each restart do not tell which of the shortest waits is worth a restart"
    )
    if not sample.completed.values[-1]:
        zeros = f"all {sample.completed.total} latencies are 0"
        message = f"{zeros}: the clock is too coarse for a timeout; record finer times"
    return (Warned("not-identified", message),)


def _by_objective(case: Prepared) -> Recommendation:
    """The optimum of one sample under any objective and policy: exact, since there the robust rule is not known."""
    options, law = case.options, Empirical.of(case.sample)
    law = law if options.rho is None else law.rescaled(options.rho)
    step, shortest = case.sample.resolution, case.sample.resolution + options.wall_clock
    limits: dict[str, Any] = {"max_submissions": options.max_submissions, "min_completions": MIN_COMPLETIONS}
    limits |= {**options.policy, "min_timeout": shortest}
    best = optimal_timeout(law, **limits)
    clear = bool(case.sample.completed.values[-1])
    if clear and step > options.cost:
        dearer = optimal_timeout(law, **{**limits, "cost": options.cost + step})
        if best.timeout is None or dearer.timeout is None:
            clear = best.timeout is dearer.timeout
        else:
            clear = best.timeout > shortest and abs(dearer.timeout - best.timeout) <= MAX_SHIFT * best.timeout
    return replace(of_optimum(best, law, case), warnings=() if clear else _not_identified(case))


def of_optimum(best: Optimum, law: Law, case: Prepared) -> Recommendation:
    """The recommendation that an optimum of a law is; its intervals are not known."""
    waiting = evaluate_timeout(law, case.cutoff.cutoff, **case.options.policy)
    shared: dict[str, Any] = dict(vars(best))
    if best.verdict != "finite":
        shared["conservative_timeout"] = None
    end = waiting.expected_duration
    return Recommendation(**shared, exact_timeout=best.timeout, at_cutoff=end, waiting=waiting, source=law)


def with_intervals(chosen: Recommendation, case: Prepared, depends: Dependence | None) -> Recommendation:
    """The recommendation with its bootstrap intervals, by blocks where the log has an order and dependence in it."""
    options = case.options
    if not options.resamples or not options.plain or options.rho is not None or chosen.law != "empirical":
        return chosen
    t = np.inf if chosen.timeout is None else chosen.timeout
    E, factor = chosen.expected_duration or np.inf, chosen.speed_up_vs_cutoff or np.inf
    probes, cutoff, blocks = case.seen, case.cutoff.cutoff, None
    if depends is not None and depends.found:
        late = (probes.latency > cutoff) & (probes.status != LOST)
        latency = np.where(late, cutoff, np.nan_to_num(probes.latency))
        blocks = Blocks.of(latency, np.where(late, CENSORED, probes.status), depends.autocorrelation_time)
    drawn: dict[str, Any] = {"resamples": options.resamples, "rng": case.rng("intervals"), "blocks": blocks}
    try:
        ends = bootstrap(case.sample, t, E, factor, cost=options.cost, **drawn)
    except SampleError as problem:
        warning = Warned("no-interval", f"there are no intervals: {problem}")
        return replace(chosen, warnings=(*chosen.warnings, warning))
    return replace(chosen, intervals=ends)


def group_costs(samples: Sequence[LatencySample], timeout: float, cutoff: float, cost: float) -> Floats:
    """What a timeout costs each group over the best of its own, as a share; ∞: it never ends."""
    costs = np.full(len(samples), np.inf)
    some = [at for at, sample in enumerate(samples) if sample.completed.total]
    if some:
        curves = Counts.of_samples([samples[at] for at in some]).curves()
        here, waiting = (curves.E_J_at(np.full(len(some), t), cost) for t in (timeout, cutoff))
        with np.errstate(divide="ignore", invalid="ignore"):
            costs[some] = here / np.minimum(curves.E_J(cost).min(axis=1), waiting) - 1
    return costs


def law_named(name: str) -> None:
    """Refuse a law that cannot be fitted before any work is done."""
    law = get_law(name)
    if not (hasattr(law, "start") or getattr(law, "kernel", None) is not None):
        raise LawError(f"{name} cannot be fitted to a log; `latfit laws` says which can")
