"""The rounds that policies are made of: one attempt, copies that overlap, a hedge; and the quadrature behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.numbers import Floats
from latfit.restart.plan import Plan, Round
from latfit.restart.times import has_failures, kinks, scan_times, still_out

NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)
PANELS = 240  # over the whole range of a law with a density


def attempt(law: Law, length: float, *, pause: float = 0.0, copies: int = 1) -> Round:
    """One attempt with a timeout; `law` is that of the first of `copies` that run side by side."""
    t = np.array(length, dtype=np.float64)
    S, failing = float(still_out(law, t)), has_failures(law)
    lost = [float(S * t**m) if S > 0 else 0.0 for m in (0, 1, 2)]
    if failing:
        lost = [lost[m] + float(law.failed_moment(m, t)) for m in (0, 1, 2)]
    first, second = (float(law.partial_moment(m, t)) + lost[m] for m in (1, 2))
    if failing and copies > 1:
        raise RestartError("job-seconds of copies are not computed for a law with visible failures")
    return Round(
        length,
        lost[0],
        first,
        second,
        lost[1],
        float(copies),
        copies * first,
        None if failing else (lambda u: still_out(law, u)),
        knots(law) if not failing else np.empty(0),
        pause,
        stuck=S if np.isinf(length) else 0.0,
    )


def overlapping(
    copies: Sequence[tuple[Law, float]],
    length: float,
    figures: Callable[[Floats], tuple[Floats, Floats]],
    *,
    submissions: float,
    pause: float = 0.0,
) -> Round:
    """A round with more than one copy out, by quadrature.

    `copies` are the law of each copy and its age when the round begins; a later start is a negative one. `figures` are
    the probability of not having completed at an age, and the mean number of jobs that are out then.
    """

    def survival(u: Floats) -> Floats:
        return figures(u)[0]

    without_failures(*(law for law, _ in copies))
    ages = breakpoints(copies, length)
    u, w = quadrature(ages, steps=all(law.jumps is not None for law, _ in copies))
    at_all, out_at_all = figures(np.append(u, length if np.isfinite(length) else 1e300))
    S, out, running = at_all[:-1], float(at_all[-1]), out_at_all[:-1]
    endless = not np.isfinite(length) and out > 0
    return Round(
        length,
        out,
        np.inf if endless else float(w @ S),
        np.inf if endless else float(2 * (w @ (u * S))),
        out * length if out > 0 else 0.0,
        submissions,
        np.inf if endless else float(w @ running),
        survival,
        ages,
        pause,
        stuck=out if np.isinf(length) else 0.0,
    )


def without_failures(*laws: Law) -> None:
    """Refuse laws with visible failures."""
    if any(has_failures(law) for law in laws):
        raise RestartError(
            "copies that overlap (hedge, delayed, resubmit) are not computed for a law with visible failures, after "
            "which one would submit at once: read failures as completed or as lost (--failed completed, --failed lost)"
        )


def hedged(first: Law, second: Law, d: float, end: float, *, q: float = 1.0, cost: float = 0.0) -> Plan:
    """A second request, maybe to another agent, after d with probability q; both end at `end`, and all begins again.

    H(t) = 1 − S_i(t) (1 − q F̃_j(t−d)).
    """
    start = d + cost
    if start >= end:  # the second one is never made
        q = 0.0

    def figures(u: Floats) -> tuple[Floats, Floats]:
        alone, other = not_completed(first, u), not_completed(second, u - start)
        survival = np.asarray(alone * (1.0 - q + q * other))
        return survival, survival + np.where(u > start, q * alone * other, 0.0)

    made = 1.0 + q * float(not_completed(first, np.array(start)))
    copies = ((first, 0.0), (second, -start))
    return Plan((overlapping(copies, end, figures, submissions=made, pause=cost),), repeats=True)


@lru_cache(maxsize=32)
def knots(law: Law) -> Floats:
    """The jumps of a step law; panels over the whole range of a law with a density, its kinks among them."""
    if law.jumps is not None:
        return law.jumps
    scan = scan_times(law)
    return np.union1d(scan[np.linspace(0, scan.size - 1, PANELS).astype(np.intp)], kinks(law))


def breakpoints(copies: Sequence[tuple[Law, float]], length: float) -> Floats:
    """The ages, 0 and the end among them, between which S(u + age) of every copy is smooth (or constant)."""
    inner = np.concatenate([*(knots(law) - age for law, age in copies), [-age for _, age in copies]])
    end = length if np.isfinite(length) else max(float(inner.max()), 0.0)
    return np.unique(np.concatenate([[0.0, end], inner[(inner > 0) & (inner < end)]]))


def quadrature(ages: Floats, *, steps: bool) -> tuple[Floats, Floats]:
    """Nodes and weights of Gauss–Legendre panels; middles where all is constant between the ages."""
    if steps:
        return 0.5 * (ages[1:] + ages[:-1]), np.diff(ages)
    half = 0.5 * np.diff(ages)
    nodes = 0.5 * (ages[1:] + ages[:-1])[:, None] + half[:, None] * NODES
    return nodes.ravel(), (half[:, None] * WEIGHTS).ravel()


def not_completed(law: Law, u: Floats) -> Floats:
    """1 − F̃(u) of a law without failures, 1 before age 0."""
    if law.jumps is not None:  # nothing completes before the first step
        return still_out(law, u)
    return np.where(u < 0, 1.0, still_out(law, np.maximum(u, 0.0)))
