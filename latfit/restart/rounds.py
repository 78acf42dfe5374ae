"""The rounds that policies are made of: one attempt, copies that overlap; and the quadrature behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from latfit.laws.base import Law
from latfit.numbers import Floats
from latfit.restart.plan import Round
from latfit.restart.times import beyond_power_tail, failure_times, has_failures, kinks, scan_times, still_out

NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)
PANELS = 240  # over the whole range of a law with a density
FAR = 1e300  # a time that stands for ∞
TAIL_PANELS = 600  # from the end of that range to there, where a power tail still counts
THIN = 1e-25  # a tail that does not


def attempt(law: Law, length: float, *, pause: float = 0.0, copies: int = 1) -> Round:
    """One attempt with a timeout; `law` is that of the first of `copies` that run side by side."""
    t = np.array(length, dtype=np.float64)
    S, failing = float(still_out(law, t)), has_failures(law)
    lost = [float(S * t**m) if S > 0 else 0.0 for m in (0, 1, 2)]
    if failing:
        lost = [lost[m] + float(law.failed_moment(m, t)) for m in (0, 1, 2)]
    first, second = (float(law.partial_moment(m, t)) + lost[m] for m in (1, 2))
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
    the probability of not having completed at an age, and the mean number of jobs that are out then. For laws with
    visible failures see `failing.py`.
    """

    def survival(u: Floats) -> Floats:
        return figures(u)[0]

    ages = breakpoints(copies, length)
    u, w = quadrature(ages, steps=all(law.jumps is not None for law, _ in copies))
    at_all, out_at_all = figures(np.append(u, length))
    S, out, running = at_all[:-1], float(at_all[-1]), out_at_all[:-1]
    endless, tail = not np.isfinite(length) and out > 0, bool(ages[-1] == FAR)
    return Round(
        length,
        out,
        np.inf if endless else integral(w, S, tail=tail),
        np.inf if endless else integral(w, 2 * u * S, tail=tail),
        out * length if out > 0 else 0.0,
        submissions,
        np.inf if endless else integral(w, running, tail=tail),
        survival,
        ages,
        pause,
        stuck=out if np.isinf(length) else 0.0,
    )


@lru_cache(maxsize=32)
def knots(law: Law) -> Floats:
    """The jumps of a step law; panels over the whole range of a law with a density, its kinks among them.

    The times of failure are among both.
    """
    if law.jumps is not None:
        return np.union1d(law.jumps, failure_times(law)) if has_failures(law) else law.jumps
    scan = scan_times(law)
    panels = scan[np.linspace(0, scan.size - 1, PANELS).astype(np.intp)]
    return np.unique(np.concatenate([panels, kinks(law), failure_times(law)]))


def breakpoints(copies: Sequence[tuple[Law, float]], length: float) -> Floats:
    """The ages, 0 and the end among them, between which S(u + age) of every copy is smooth (or constant)."""
    inner = np.concatenate([*(knots(law) - age for law, age in copies), [-age for _, age in copies]])
    end = length if np.isfinite(length) else max(float(inner.max()), 0.0)
    ages = np.unique(np.concatenate([[0.0, end], inner[(inner > 0) & (inner < end)]]))
    if np.isinf(length) and any(law.jumps is None and _power_tail(law, end) for law, _ in copies):
        return np.append(ages, np.geomspace(end, FAR, TAIL_PANELS)[1:])
    return ages


def _power_tail(law: Law, end: float) -> bool:
    """Whether so many return after `end`, and not never, that their time counts."""
    return bool(law.still_out(np.array(FAR)) < THIN < law.still_out(np.array(end)))


def quadrature(ages: Floats, *, steps: bool) -> tuple[Floats, Floats]:
    """Nodes and weights of Gauss–Legendre panels; middles where all is constant between the ages."""
    if steps:
        return 0.5 * (ages[1:] + ages[:-1]), np.diff(ages)
    half = 0.5 * np.diff(ages)
    nodes = 0.5 * (ages[1:] + ages[:-1])[:, None] + half[:, None] * NODES
    return nodes.ravel(), (half[:, None] * WEIGHTS).ravel()


def integral(weights: Floats, values: Floats, *, tail: bool = False) -> float:
    """Σ weights · values; not by BLAS, whose threads cost more than they bring on arrays of this size.

    With a `tail` the panels go on up to FAR, where it is that of a power: what follows the last panel whose
    probabilities are not too small to be written is added.
    """
    with np.errstate(over="ignore"):
        parts = weights * values
        total = float(parts.sum())
    if not tail:
        return total
    panels, written = (y.reshape(-1, NODES.size) for y in (parts, values > 1e-290 * weights))
    last = int(np.flatnonzero(written.all(axis=1))[-1]) if written.all(axis=1).any() else 0
    if last < len(panels) - TAIL_PANELS + 2:  # it ends before the tail
        return total
    each = panels[: last + 1].sum(axis=1)
    known = float(each.sum())
    return known + beyond_power_tail(each[-1], each[-2], known)


def not_completed(law: Law, u: Floats) -> Floats:
    """1 − F̃(u) of a law without failures, 1 before age 0."""
    if law.jumps is not None:  # nothing completes before the first step
        return still_out(law, u)
    return np.where(u < 0, 1.0, still_out(law, np.maximum(u, 0.0)))
