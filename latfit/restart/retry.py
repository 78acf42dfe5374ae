"""Finite schedules that end in waiting: cancel after τ₁ ≤ … ≤ τ_K, then wait until the cutoff T.

Unlimited resubmission never ends for a job that meets the same fate again. A schedule that ends in waiting has a known
worst case. With Q(t) = P(not completed by t), A(t) = ∫₀ᵗ P(still out), c the cost of a restart and
W = (A(T) + c Q(T)) / (1 − Q(T)) for waiting:

- attempts independent: E = Σ_j Π_{i<j} Q(τ_i) [A(τ_j) + c Q(τ_j)] + Π_{i≤K} Q(τ_i) W;
- every retry takes as long as the first attempt would have: E = W + Σ_j (τ_j + c) P(still out at τ_j), because each
  cancellation adds what it spent and changes nothing else.

The second line is the most that a schedule can cost as long as a retry is not slower than the first attempt would have
been. Without a limit on it the best schedule is that of van Moorsel and Wolter (2006, algorithm 3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from latfit.laws.base import Law
from latfit.numbers import Floats, Ints, finite

GROWTHS = (1.0, 1.5, 2.0)
MAX_CANCELLATIONS = 7
COARSE_TIMEOUTS = 32  # first timeouts that a search looks at before it looks at every one near the best

_FACTORS = np.array(GROWTHS)[:, None] ** np.arange(MAX_CANCELLATIONS)
_MULTIPLES = np.unique(_FACTORS)
_STEPS = np.searchsorted(_MULTIPLES, _FACTORS)  # (growth, cancellation) place among the multiples


class Attempt(NamedTuple):
    """P(not completed by t), P(still out at t) and A(t) = ∫₀ᵗ P(still out), times along the last axis."""

    missed: Floats
    out: Floats
    spent: Floats

    @classmethod
    def of(cls, law: Law, times: Floats) -> Attempt:
        out = law.still_out(times)
        waited = np.where(np.isinf(times), 0.0, times) * out
        return cls(1.0 - law.cdf(times), out, law.partial_moment(1, times) + law.failed_moment(1, times) + waited)

    def at(self, index: int | Ints) -> Attempt:
        return Attempt(self.missed[..., index], self.out[..., index], self.spent[..., index])

    def waiting(self, cost: float) -> Floats:
        """W = (A(T) + c Q(T)) / (1 − Q(T)), T the last of the times."""
        missed, _, spent = self.at(-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(missed < 1, (spent + cost * missed) / (1 - missed), np.inf)


@dataclass(frozen=True)
class Retry:
    """A schedule: cancel after each of `timeouts`, resubmit, and let the last attempt run until the cutoff.

    `expected_duration` and `submissions` are means per job if attempts are independent, `undone` is the share of jobs
    not done when the last attempt reaches the cutoff; they are submitted again, as by waiting. `worst_duration` is the
    mean if every retry takes as long as the first attempt would have; `waiting` that without any cancellation. The
    intervals are those of 1 − E/W and of ℓ, with 95 % confidence; None where nothing was resampled.
    """

    timeouts: tuple[float, ...]
    expected_duration: float
    submissions: float
    worst_duration: float
    undone: float
    waiting: float
    gain_interval: tuple[float, float] | None = None
    loss_interval: tuple[float, float] | None = None

    @property
    def attempts(self) -> int:
        return len(self.timeouts) + 1

    @property
    def worst_loss(self) -> float:
        """ℓ: the share by which the worst case is slower than waiting."""
        return self.worst_duration / self.waiting - 1

    @property
    def gain(self) -> float:
        """1 − E/W: the share of the time of waiting that is saved if attempts are independent."""
        return 1 - self.expected_duration / self.waiting

    def to_dict(self) -> dict[str, Any]:
        return {
            "timeouts": list(self.timeouts),
            "attempts": self.attempts,
            "expected_duration": finite(self.expected_duration),
            "submissions": finite(self.submissions),
            "worst_duration": finite(self.worst_duration),
            "worst_loss": finite(self.worst_loss),
            "undone": finite(self.undone),
            "gain": finite(self.gain),
            "gain_interval": self.gain_interval and list(self.gain_interval),
            "worst_loss_interval": self.loss_interval and list(self.loss_interval),
        }


def evaluate_retry(law: Law, timeouts: Sequence[float], *, cutoff: float = np.inf, cost: float = 0.0) -> Retry:
    """What cancelling after each of `timeouts` brings; the last attempt ends at the `cutoff` and is then repeated."""
    return retry_of(Attempt.of(law, np.array([*timeouts, cutoff])), tuple(map(float, timeouts)), cost)


def retry_of(attempt: Attempt, timeouts: tuple[float, ...], cost: float) -> Retry:
    """The figures of one schedule; `attempt` is at its timeouts and at the cutoff."""
    duration, waiting, loss = (float(figure) for figure in schedule_figures(attempt, timeouts, cost))
    reached = np.cumprod(np.append(1.0, attempt.missed[:-1]))
    last = float(attempt.missed[-1])
    submissions = float(reached[:-1].sum()) + (float(reached[-1]) / (1 - last) if last < 1 else np.inf)
    return Retry(timeouts, duration, submissions, waiting + loss, float(reached[-1]) * last, waiting)


def schedule_figures(attempt: Attempt, timeouts: Sequence[float], cost: float) -> tuple[Floats, Floats, Floats]:
    """E if attempts are independent, W, and Σ_j (τ_j + c) P(the j-th is cancelled), for every row of `attempt`."""
    waiting = attempt.waiting(cost)
    duration, reached = np.zeros_like(waiting), np.ones_like(waiting)
    for j in range(len(timeouts)):
        missed, _, spent = attempt.at(j)
        duration = duration + reached * (spent + cost * missed)
        reached = reached * missed
    loss = np.zeros_like(waiting)
    for tau, cancelled in zip(timeouts, _cancelled(attempt, range(len(timeouts))), strict=True):
        loss = loss + (tau + cost) * cancelled
    with np.errstate(invalid="ignore"):
        duration = duration + np.where(reached > 0, reached * waiting, 0.0)
    return duration, waiting, loss


def _cancelled(attempt: Attempt, steps: Sequence[int | Ints]) -> list[Floats]:
    """P(the j-th attempt is cancelled) if a fate stays until the job completes, fails visibly or reaches the cutoff."""
    if np.array_equal(attempt.missed, attempt.out):
        return [attempt.out[..., step] for step in steps]
    chances: list[Floats] = []
    same, failed, G_before = np.ones(()), np.zeros(()), np.zeros(())
    for step in steps:
        Q, S, _ = attempt.at(step)
        G = Q - S
        chances.append(same * S + failed * S)
        failed = same * (G - G_before) + failed * G
        with np.errstate(divide="ignore", invalid="ignore"):
            same = np.where(S > 0, chances[-1] / S, 0.0)
        G_before = G
    return chances


class ScheduleGrid:
    """Every schedule τ₁, g τ₁, g² τ₁ … of at most 7 cancellations, g of 1, 1.5 and 2, for some first timeouts.

    Arrays over schedules have the axes (growth, number of cancellations − 1, first timeout). `limits` are the timeouts
    (multiple, first timeout), none beyond the cutoff, `times` those at which an `Attempt` must be known, sorted, the
    last being the cutoff, and `place` (multiple, first timeout) is where each timeout is among the times.
    """

    def __init__(self, first: Floats, cutoff: float) -> None:
        self.limits: Floats = np.minimum(np.outer(_MULTIPLES, first), cutoff)
        self.times, place = np.unique(np.append(self.limits.ravel(), cutoff), return_inverse=True)
        self.place = place[:-1].reshape(self.limits.shape).astype(np.int64)
        self.shape = (*_STEPS.shape, first.size)

    def durations(self, attempt: Attempt, waiting: Floats, cost: float, *, span: Floats | None = None) -> Floats:
        """(rows, *shape) E for each row of `attempt`; with a `span` jobs leave for the first row at the rate 1/span."""
        result = np.empty((attempt.missed.shape[0], *self.shape))
        last = waiting[:, None]
        missed, _, spent = (values[:, self.place].swapaxes(0, 1) for values in attempt)  # (multiple, row, timeout)
        taken = spent + cost * missed
        stays = None if span is None else np.exp(-(self.limits[:, None] + cost) / span[:, None])
        for g, steps in enumerate(_STEPS):
            here, gone, total = np.ones(()), np.zeros(()), np.zeros(())
            for j, step in enumerate(steps):
                total = total + here * taken[step]
                here = here * missed[step]
                result[:, g, j] = total + here * last
                if stays is not None:
                    total = total + gone * taken[step, :1]
                    gone = gone * missed[step, :1] + here * (1 - stays[step])
                    here = here * stays[step]
                    result[:, g, j] = total + here * last + gone * last[:1]
        return result

    def worst_case(self, attempt: Attempt, waiting: float, cost: float) -> tuple[Floats, Floats, Floats]:
        """If every retry repeats the first fate: ℓ = Σ_j (τ_j + c) P(still out at τ_j)/W, Σ_j P(…), Σ_j (τ_j + c)/W.

        The second is the extra load in submissions per job, the third the loss of a job that is cancelled every time.
        """
        loss, load, stake = (np.empty(self.shape) for _ in range(3))
        for g, steps in enumerate(_STEPS):
            cancelled = np.array(_cancelled(attempt, [self.place[step] for step in steps]))
            price = (self.limits[steps] + cost) / waiting
            for total, parts in ((loss, price * cancelled), (load, cancelled), (stake, price)):
                total[g] = np.cumsum(parts, axis=0)
        return loss, load, stake

    def schedule(self, flat: int) -> tuple[float, ...]:
        g, j, t = np.unravel_index(flat, self.shape)
        return tuple(self.limits[_STEPS[g, : j + 1], t].tolist())


def search_schedules(
    first: Floats, cutoff: float, objective: Callable[[ScheduleGrid], Floats], *, continuous: bool = False
) -> tuple[ScheduleGrid, int, float]:
    """A grid, the index in it of the schedule with the least objective, and that.

    32 of the first timeouts are tried, then all between the neighbours of the best; of a continuous law those between
    come closer until they agree to seven digits.
    """
    places = np.unique(np.linspace(0, first.size - 1, COARSE_TIMEOUTS).astype(np.int64))
    while True:
        grid = ScheduleGrid(first[places], cutoff)
        values = objective(grid)
        best = int(np.argmin(values))
        k = best % places.size
        low, high = places[max(k - 1, 0)], places[min(k + 1, places.size - 1)]
        if high - low <= 2 and not (continuous and first[high] > first[low] * (1 + 1e-7)):
            return grid, best, float(values.flat[best])
        if high - low <= 2:
            first = np.unique([*np.geomspace(first[low], first[high], COARSE_TIMEOUTS), first[places[k]]])
            low, high = 0, first.size - 1
        stride = max(1, (high - low) // (2 * COARSE_TIMEOUTS))
        places = np.unique([*range(int(low), int(high) + 1, int(stride)), min(int(places[k]), first.size - 1)])


def best_retry(
    law: Law,
    *,
    cutoff: float = np.inf,
    risk: float = 0.3,
    suspicion: float = 0.1,
    max_load: float = np.inf,
    cost: float = 0.0,
    first: Floats | None = None,
) -> Retry | None:
    """The schedule with the least (1 − π) E/W + π (1 + ℓ) of those with ℓ ≤ risk, None where waiting is as good.

    ℓ is the loss if every retry takes as long as the first attempt would have, π = `suspicion` the weight of that case,
    `max_load` the most extra submissions per job in it.
    The last attempt ends at the `cutoff`; ∞ is allowed for a law without outliers. `first` are the first timeouts to
    choose from, sorted; by default the latencies of an empirical law.

    >>> import latfit
    >>> law = latfit.Empirical.of(latfit.example_log().sample(cutoff=10_000.0))
    >>> retry = best_retry(law, cutoff=10_000.0)
    >>> retry.timeouts, round(retry.expected_duration, 3), round(retry.worst_loss, 3)
    ((358.0, 716.0), 309.311, 0.213)
    >>> best_retry(law, cutoff=10_000.0, risk=0.05) is None
    True
    """
    times = _first_timeouts(law, cutoff) if first is None else first
    waiting = float(Attempt.of(law, np.array([cutoff])).waiting(cost))
    if not times.size or not np.isfinite(waiting):
        return None

    def objective(grid: ScheduleGrid) -> Floats:
        attempt = Attempt.of(law, grid.times)
        losses, load, _ = grid.worst_case(attempt, waiting, cost)
        rows = Attempt(*(values[None] for values in attempt))
        ratios = grid.durations(rows, np.array([waiting]), cost)[0] / waiting
        allowed = (losses <= risk) & (load <= max_load)
        return np.where(allowed, (1 - suspicion) * ratios + suspicion * (1 + losses), np.inf)

    grid, best, value = search_schedules(times, cutoff, objective, continuous=law.jumps is None)
    if not value < 1:
        return None
    return evaluate_retry(law, grid.schedule(best), cutoff=cutoff, cost=cost)


def _first_timeouts(law: Law, cutoff: float) -> Floats:
    if law.jumps is not None:
        return law.jumps[(law.jumps > 0) & (law.jumps < cutoff)]
    low, high = law.support
    times = np.geomspace(1e-9, 1e9, 4096)
    chance = law.cdf(times) / (1 - law.rho)
    inside = times[(times > low) & (times < min(high, cutoff)) & (chance > 1e-3) & (chance < 1 - 1e-9)]
    return np.geomspace(inside[0], inside[-1], times.size) if inside.size else inside
