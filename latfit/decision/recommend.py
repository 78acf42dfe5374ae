"""From prepared samples to timeouts: the exact optimum, the robust one, windows and intervals, many at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from latfit.curve import MIN_COMPLETIONS, Counts
from latfit.decision.fits import Key, generator
from latfit.decision.options import Options
from latfit.decision.prepare import Prepared
from latfit.decision.result import Recommendation, Warned
from latfit.errors import LawError, SampleError, counted
from latfit.evidence import Dependence
from latfit.laws import Empirical, Law, get_law
from latfit.numbers import Floats, finite
from latfit.resample import Blocks, bootstrap
from latfit.restart import Optimum, expected_duration, optimal_timeout
from latfit.restart.objectives import Objective
from latfit.sample import LatencySample

MOVES = 0.1  # an optimum that moves by this share when one step of the clock is its cost is not identified
NO_GAIN = 1e-9  # a relative gain below this is none


def enough(sample: LatencySample) -> bool:
    """Whether a sample has the completions that a timeout needs."""
    return sample.completed.total >= MIN_COMPLETIONS


def few_completions(case: Prepared, options: Options) -> tuple[Recommendation, Warned]:
    """No timeout: too few probes completed."""
    done = case.sample.completed.total
    told = (f"only {done} of {counted(case.sample.n, 'probe')} completed within {case.cutoff.cutoff:g} s; a timeout "
            f"needs at least {MIN_COMPLETIONS} at or below it")  # fmt: skip
    nothing = Recommendation("withheld", None, None, None, None, None, case.ratio.estimate, "empirical", options.cost,
                             _objective(options, None), withheld=("few-completions",))  # fmt: skip
    return nothing, Warned("few-completions", told)


def _objective(options: Options, value: float | None) -> dict[str, Any]:
    return {"name": str(Objective.parse(options.objective, shift=options.wall_clock)), "value": value}


def recommend(cases: Sequence[Prepared], options: Options) -> list[tuple[Recommendation, tuple[Warned, ...]]]:
    """The recommendation of each sample with enough completions, from the data themselves; without intervals."""
    if not options.plain or options.rho is not None:
        return [_one(case, options) for case in cases]
    alike: dict[int, list[int]] = defaultdict(list)
    for at, case in enumerate(cases):
        alike[case.sample.completed.values.size.bit_length()].append(at)
    found: dict[int, tuple[Recommendation, tuple[Warned, ...]]] = {}
    for members in alike.values():
        found |= zip(members, _together([cases[at] for at in members], options), strict=True)
    return [found[at] for at in range(len(cases))]


def _together(cases: Sequence[Prepared], options: Options) -> list[tuple[Recommendation, tuple[Warned, ...]]]:
    """The recommendations of samples of about one size, as rows of one array."""
    samples = [case.sample for case in cases]
    curves = Counts.of_samples(samples).curves()
    step, cost = np.array([sample.resolution for sample in samples]), options.cost
    allowed = curves.allowed(step)
    k, t = curves.robust_argmin(cost, allowed)
    rows = np.arange(k.size)
    exact, _ = curves.exact(cost, allowed)
    times = np.broadcast_to(curves.times, curves.F.shape)
    E = curves.E_J(cost)[rows, k]
    E_R = np.where(curves.S[:, -1] <= 0, curves.E_J(cost)[:, -1], np.inf)
    never = (curves.S[rows, exact] <= 0) | (curves.E_J(cost)[rows, exact] >= E_R * (1 - NO_GAIN))
    exact_t = np.where(never, np.nan, times[rows, exact])
    dearer = curves.robust_argmin(np.full(k.size, cost) + step, allowed)[1] if (step > cost).any() else t
    unclear = (step > cost) & ((t <= step) | (np.abs(dearer - t) > MOVES * t))
    windows = curves.windows(k, [share * E for share in (1.01, 1.05)], cost)
    at_cutoff = curves.E_J_at(np.array([case.cutoff.cutoff for case in cases]), cost)
    columns = (t, E, curves.F[rows, k], exact_t, E_R / E, at_cutoff, curves.F[:, -1], unclear)
    found = []
    for row, (case, figures) in enumerate(zip(cases, zip(*(c.tolist() for c in columns), strict=True), strict=True)):
        ends = [(float(low[row]), float(high[row])) for low, high in windows]
        found.append(_recommendation(case, options, figures, ends))
    return found


def _recommendation(
    case: Prepared, options: Options, figures: Sequence[float], windows: Sequence[tuple[float, float]]
) -> tuple[Recommendation, tuple[Warned, ...]]:
    t, E, F, exact, gain, at_cutoff, F_end, unclear = figures
    made = Recommendation(
        verdict="finite", timeout=t, expected_duration=finite(E), submissions=1 / F, within_1pct=windows[0],
        within_5pct=windows[1], rho=1.0 - F_end, law="empirical",
        cost=options.cost, objective=_objective(options, finite(E)), exact_timeout=finite(exact),
        speed_up=finite(gain), at_cutoff=finite(at_cutoff), cutoff=case.cutoff.cutoff, policy=dict(options.policy),
    )  # fmt: skip
    return made, (_not_identified(case.sample, options.cost),) if unclear or not t else ()


def _not_identified(sample: LatencySample, cost: float) -> Warned:
    if not sample.completed.values[-1]:
        told = (
            f"all {sample.completed.total} latencies are 0: the clock is too coarse for a timeout; record finer times"
        )
        return Warned("not-identified", told)
    return Warned(
        "not-identified",
        f"the optimum is not identified: give --cost. A clock of {sample.resolution:g} s and a cost of {cost:g} s for "
        "each restart do not tell which of the shortest waits is worth a restart",
    )


def _one(case: Prepared, options: Options) -> tuple[Recommendation, tuple[Warned, ...]]:
    """The optimum of one sample under any objective and policy: exact, since there the robust rule is not known."""
    law = Empirical.of(case.sample)
    law = law if options.rho is None else law.rescaled(options.rho)
    r, step = options.wall_clock, case.sample.resolution
    limits: dict[str, Any] = {**options.policy, "max_submissions": options.max_submissions,
                              "min_completions": MIN_COMPLETIONS, "min_timeout": step + r}  # fmt: skip
    best = optimal_timeout(law, **limits)
    made = of_optimum(best, law, case, options)
    if not case.sample.completed.values[-1]:
        return made, (_not_identified(case.sample, options.cost),)
    if not step > options.cost:
        return made, ()
    dearer = optimal_timeout(law, **{**limits, "cost": options.cost + step})
    if best.timeout is None or dearer.timeout is None:
        clear = best.timeout is dearer.timeout
    else:
        clear = best.timeout > step + r and abs(dearer.timeout - best.timeout) <= MOVES * best.timeout
    return made, () if clear else (_not_identified(case.sample, options.cost),)


def of_optimum(best: Optimum, law: Law, case: Prepared, options: Options) -> Recommendation:
    """The recommendation that an optimum of a law is; its intervals are not known."""
    plain = {name: getattr(best, name) for name in ("verdict", "timeout", "expected_duration", "submissions",
             "within_1pct", "within_5pct", "rho", "law", "cost", "objective", "speed_up")}  # fmt: skip
    policy = options.policy
    keep = {key: policy[key] for key in ("cost", "wall_clock", "copies")}
    end = float(expected_duration(law, case.cutoff.cutoff, **keep))
    return Recommendation(**plain, exact_timeout=best.timeout, at_cutoff=finite(end), source=law, policy=policy,
                          cutoff=case.cutoff.cutoff)  # fmt: skip


def with_intervals(
    made: Recommendation, case: Prepared, options: Options, key: Key, found: Dependence | None
) -> tuple[Recommendation, tuple[Warned, ...]]:
    """The recommendation with its bootstrap intervals, by blocks where the log has an order and dependence in it."""
    if not options.resamples or not options.plain or options.rho is not None or made.law != "empirical":
        return made, ()
    t = np.inf if made.timeout is None else made.timeout
    E, factor = made.expected_duration or np.inf, made.speed_up_vs_cutoff or np.inf
    blocks = None
    if found is not None and found.found and case.seen is not None:
        blocks = _blocks(case, found.time)
    try:
        ends = bootstrap(case.sample, t, E, factor, cost=options.cost, resamples=options.resamples,
                         rng=generator(options.seed, "intervals", *key), blocks=blocks)  # fmt: skip
    except SampleError as problem:
        return made, (Warned("no-interval", f"there are no intervals: {problem}"),)
    return replace(made, intervals=ends), ()


def _blocks(case: Prepared, time: float) -> Blocks:
    """The probes in their order, cut like the sample."""
    assert case.seen is not None
    late = (case.seen.latency > case.cutoff.cutoff) & (case.seen.status != 3)
    latency = np.where(late, case.cutoff.cutoff, np.nan_to_num(case.seen.latency))
    return Blocks.of(latency, np.where(late, 2, case.seen.status), time)


def group_costs(samples: Sequence[LatencySample], timeout: float, cutoff: float, cost: float) -> tuple[Floats, Floats]:
    """What a timeout brings to each group over the best of its own, and over waiting, as shares; ∞: never ends."""
    some = [sample for sample in samples if sample.completed.total]
    if not some:
        return np.full(len(samples), np.inf), np.zeros(len(samples))
    curves = Counts.of_samples(some).curves()
    here, waiting = (curves.E_J_at(np.full(len(some), at), cost) for at in (timeout, cutoff))
    least = np.minimum(curves.E_J(cost).min(axis=1), waiting)
    with np.errstate(divide="ignore", invalid="ignore"):
        own, wait = here / least - 1, here / waiting - 1
    done = np.array([bool(sample.completed.total) for sample in samples])
    costs, slower = np.full(done.size, np.inf), np.zeros(done.size)
    costs[done], slower[done] = own, wait
    return costs, slower


def law_named(name: str) -> None:
    """Refuse a law that cannot be fitted before any work is done."""
    law = get_law(name)
    if not (hasattr(law, "start") or getattr(law, "kernel", None) is not None):
        raise LawError(f"{name} cannot be fitted to a log; `latfit laws` says which can")
