"""The rounds that policies are made of: one attempt, copies that overlap; and the quadrature behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from latfit.laws.base import Law
from latfit.numbers import Floats
from latfit.restart.completion import lost_moment
from latfit.restart.plan import Round
from latfit.restart.times import beyond_power_tail, failure_times, has_failures, kinks, scan_times, still_out

NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)
PANELS = 240  # over the whole range of a law with a density
LATEST = 1e300  # a time that stands for ∞
TAIL_PANELS = 600  # from the end of the range to LATEST, for a power tail
MIN_TAIL = 1e-25  # a tail below this does not count


def attempt(law: Law, length: float, *, pause: float = 0.0, copies: int = 1) -> Round:
    """One attempt with a timeout; `law` is that of the first of `copies` that run side by side."""
    t, failing = np.array(length, dtype=np.float64), has_failures(law)
    lost = [float(lost_moment(law, m, t, 0.0)) for m in (0, 1, 2)]
    mean, second = (float(law.partial_moment(m, t)) + lost[m] for m in (1, 2))
    return Round(
        length,
        p_incomplete=lost[0],
        mean=mean,
        second_moment=second,
        lost_time=lost[1],
        submissions=float(copies),
        job_seconds=copies * mean,
        survival=None if failing else (lambda u: still_out(law, u)),
        ages=np.empty(0) if failing else knots(law),
        pause=pause,
        p_stuck=float(still_out(law, t)) if np.isinf(length) else 0.0,
    )


class Ages(NamedTuple):
    """Of copies at some ages: the probabilities of being under way and of having completed, the mean copies out.

    Under way means that neither has one completed nor have all failed.
    """

    alive: Floats
    done: Floats
    running: Floats


class Stretch(NamedTuple):
    """A stretch of a round: the probabilities at its end, and what was spent in it.

    `mean` and `second_moment` are those of the time spent, `lost_time` = E[time spent; all copies failed].
    """

    alive: float
    done: float
    mean: float
    second_moment: float
    lost_time: float
    job_seconds: float
    edges: Floats


def stretch(law: Law, ages: Sequence[float], length: float, at: Callable[[Floats], Ages]) -> Stretch:
    """The figures of a stretch with several copies out, by quadrature of `at`.

    `ages` are those of the copies when it begins; that of a copy which starts later is negative.
    """
    edges = _edges(law, ages, length)
    u, w = quadrature(edges, steps=law.jumps is not None)
    alive, done, running = at(np.append(u, length))
    alive_at_end, done_at_end = float(alive[-1]), float(done[-1])
    if np.isinf(length) and alive_at_end > 0:
        return Stretch(alive_at_end, done_at_end, np.inf, np.inf, np.inf, np.inf, edges)
    tail = bool(edges[-1] == LATEST)
    lost = 0.0
    if has_failures(law):
        fails_later = alive[:-1] - alive_at_end + done[:-1] - done_at_end
        fails_later = np.where(fails_later > 1e-14, fails_later, 0.0)  # then it is rounding, and the tail is long
        lost = _integral(w, fails_later, tail=tail)
    mean, second, used = (_integral(w, y, tail=tail) for y in (alive[:-1], 2 * u * alive[:-1], running[:-1]))
    return Stretch(alive_at_end, done_at_end, mean, second, lost, used, edges)


def overlapping(
    law: Law,
    ages: Sequence[float],
    length: float,
    at: Callable[[Floats], Ages],
    *,
    submissions: float,
    pause: float = 0.0,
) -> Round:
    """A round with several copies out, which ends when one completes, when all have failed, or after `length`.

    A copy that failed is gone. While another one is out, nothing is done about it; when none is out any more, the next
    round begins, after its pause.
    """
    part, failing = stretch(law, ages, length, at), has_failures(law)
    return Round(
        length,
        p_incomplete=1.0 - part.done if failing else part.alive,
        mean=part.mean,
        second_moment=part.second_moment,
        lost_time=part.lost_time + (part.alive * length if part.alive > 0 else 0.0),
        submissions=submissions,
        job_seconds=part.job_seconds,
        survival=None if failing else (lambda u: at(u).alive),
        ages=np.empty(0) if failing else part.edges,
        pause=pause,
        p_stuck=part.alive if np.isinf(length) else 0.0,
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


def _edges(law: Law, ages: Sequence[float], length: float) -> Floats:
    """The times, 0 and the end among them, between which S of every copy is smooth (or constant)."""
    inner = np.concatenate([*(knots(law) - age for age in ages), [-age for age in ages]])
    end = length if np.isfinite(length) else max(float(inner.max()), 0.0)
    edges = np.unique(np.concatenate([[0.0, end], inner[(inner > 0) & (inner < end)]]))
    if np.isfinite(length) or law.jumps is not None:
        return edges
    power_tail = law.still_out(np.array(LATEST)) < MIN_TAIL < law.still_out(np.array(end))
    return np.append(edges, np.geomspace(end, LATEST, TAIL_PANELS)[1:]) if power_tail else edges


def quadrature(edges: Floats, *, steps: bool) -> tuple[Floats, Floats]:
    """Nodes and weights of Gauss–Legendre panels; the middles where all is constant between the edges."""
    if steps:
        return 0.5 * (edges[1:] + edges[:-1]), np.diff(edges)
    half = 0.5 * np.diff(edges)
    nodes = 0.5 * (edges[1:] + edges[:-1])[:, None] + half[:, None] * NODES
    return nodes.ravel(), (half[:, None] * WEIGHTS).ravel()


def _integral(weights: Floats, values: Floats, *, tail: bool) -> float:
    """Σ weights · values; not by BLAS, whose threads cost more than they bring on arrays of this size.

    With a `tail` the panels go on up to LATEST, where it is that of a power: what follows the last panel in which no
    probability underflows is added.
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
    total = float(each.sum())
    return total + beyond_power_tail(each[-1], each[-2], total)
