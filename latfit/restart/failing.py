"""Rounds of copies that overlap, where an attempt may fail visibly before it is cancelled.

A copy that failed is gone. While another one is out, nothing is done about it; when none is out any more, all begins
again at once, after the cost. With F̃ and G̃ the probabilities of having completed and of having failed, a round is
over when a copy completes, when the last one out has failed, or when it is cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from latfit.laws.base import Law
from latfit.numbers import Floats
from latfit.restart.plan import Round
from latfit.restart.rounds import FAR, breakpoints, integral, quadrature
from latfit.restart.times import still_out


class _Ages(NamedTuple):
    """Of a stretch at some ages: the probability of being under way, of having completed, and the mean copies out."""

    alive: Floats
    done: Floats
    running: Floats


class _Stretch(NamedTuple):
    """A stretch of a round.

    `alive` and `done` are the probabilities at its end, `first` and `second` the moments of the time spent in it,
    `over` = E[time spent; ended in it without completing], `job_seconds` the time that all copies are out.
    """

    alive: float
    done: float
    first: float
    second: float
    over: float
    job_seconds: float


def _stretch(copies: Sequence[tuple[Law, float]], length: float, at: Callable[[Floats], _Ages]) -> _Stretch:
    """The figures of a stretch by quadrature; `copies` as for `overlapping`."""
    ages = breakpoints(copies, length)
    u, w = quadrature(ages, steps=all(law.jumps is not None for law, _ in copies))
    alive, done, running = at(np.append(u, length))
    out, end = float(alive[-1]), float(done[-1])
    if np.isinf(length) and out > 0:
        return _Stretch(out, end, np.inf, np.inf, np.inf, np.inf)
    over = alive[:-1] - out + done[:-1] - end  # P(over after u, without completing)
    over = np.where(over > 1e-14, over, 0.0)  # after the last failure it is rounding, and the tail is long
    figures, tail = (alive[:-1], 2 * u * alive[:-1], over, running[:-1]), bool(ages[-1] == FAR)
    first, second, over_time, used = (integral(w, y, tail=tail) for y in figures)
    return _Stretch(out, end, first, second, over_time, used)


def failing_hedge(first: Law, second: Law, start: float, end: float, q: float, cost: float) -> Round:
    """A second request at `start`, made with probability q where the first is still out then; both end at `end`.

    From then on, A(u) = P(first out at `start` and not completed by u), B(u) = P(it failed since): the round is under
    way with probability (1−q) S₁ + q (S₁ (1−F̃₂) + B S₂), and N = (1 + q S₁(start))/P(it completes).
    """
    F_start, G_start, S_start = (float(f(np.array(start))) for f in (first.cdf, first.failed, first.still_out))

    def at(u: Floats) -> _Ages:
        F, G, S, v = first.cdf(u), first.failed(u), still_out(first, u), np.maximum(u - start, 0.0)
        F2, S2 = second.cdf(v), still_out(second, v)
        A, B = S_start + F_start - F, G - G_start
        alive = (1 - q) * S + q * (S * (1 - F2) + B * S2)
        done = F_start + (1 - q) * (F - F_start) + q * (S_start - A * (1 - F2))
        running = (1 - q) * S + q * (S * (1 - F2) + A * S2)
        alone = u < start
        return _Ages(*(np.where(alone, a, b) for a, b in ((S, alive), (F, done), (S, running))))

    this = _stretch(((first, 0.0), (second, -start)), end, at)
    lost = this.over + (this.alive * end if this.alive else 0.0)
    return Round(end, 1.0 - this.done, this.first, this.second, lost, 1.0 + q * S_start, this.job_seconds, pause=cost,
                 stuck=this.alive if np.isinf(end) else 0.0)  # fmt: skip


def failing_copies(law: Law, b: int, t: float) -> float:
    """The job-seconds of b copies at once, until the first completes, all have failed, or t: b ∫ S (1−F̃)ᵇ⁻¹."""

    def at(u: Floats) -> _Ages:
        running = b * still_out(law, u) * (1 - law.cdf(u)) ** (b - 1)
        return _Ages(running, np.zeros_like(u), running)

    return _stretch(((law, 0.0),), t, at).job_seconds


def failing_delay(law: Law, gap: float, t_inf: float, cost: float) -> Round:
    """A copy every `gap`, each cancelled at age t_inf (gap < t_inf ≤ 2 gap), until one completes or none is out.

    The first copy alone, then again and again an older one, still out at age `gap`, beside a younger one. A stretch
    that is under way at its end (the younger one is out) is followed by another; o is the probability of that.
    """
    left = t_inf - gap
    F_gap, G_gap, S_gap = (float(f(np.array(gap))) for f in (law.cdf, law.failed, law.still_out))

    def alone(u: Floats) -> _Ages:
        S = still_out(law, u)
        return _Ages(S, law.cdf(u), S)

    def beside(u: Floats) -> _Ages:
        F, S, age = law.cdf(u), still_out(law, u), gap + np.minimum(u, left)
        Fo, Go = (law.cdf(age) - F_gap) / S_gap, (law.failed(age) - G_gap) / S_gap
        So = still_out(law, age) / S_gap
        F_left = law.cdf(np.array(left))
        both = u < left
        alive = np.where(both, So * (1 - F) + Go * S, (1 - Fo) * S)
        done = np.where(both, 1 - (1 - Fo) * (1 - F), 1 - (1 - Fo) * (1 - F_left) + (1 - Fo) * (F - F_left))
        return _Ages(alive, done, np.where(both, So * (1 - F) + (1 - Fo) * S, (1 - Fo) * S))

    one = _stretch(((law, 0.0),), gap, alone)
    two = _stretch(((law, 0.0), (law, gap), (law, gap - t_inf)), gap, beside)
    o, go = two.alive, 1.0 - two.alive
    if go <= 0:
        return Round(np.inf, 1.0 - one.done, np.inf, np.inf, np.inf, np.inf, np.inf, pause=cost)
    first = two.first / go
    second = (two.second + 2 * gap * o * first) / go
    undone = (go - two.done) / go
    over = (two.over + o * gap * undone) / go
    return Round(
        np.inf, 1.0 - one.done - S_gap * two.done / go, one.first + S_gap * first,
        one.second + S_gap * (2 * gap * first + second), one.over + S_gap * (gap * undone + over),
        1.0 + S_gap / go, one.job_seconds + S_gap * two.job_seconds / go, pause=cost,
    )  # fmt: skip
