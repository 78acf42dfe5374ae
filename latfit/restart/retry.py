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

    def at(self, index: int | slice | Ints) -> Attempt:
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
    missed, _, spent = steps = attempt.at(slice(-1))
    reached = np.cumprod(missed, axis=-1)
    before = np.concatenate([np.ones((*reached.shape[:-1], 1)), reached], axis=-1)
    with np.errstate(invalid="ignore"):
        last = np.where(before[..., -1] > 0, before[..., -1] * waiting, 0.0)
    duration = (before[..., :-1] * (spent + cost * missed)).sum(axis=-1) + last
    loss = ((np.asarray(timeouts) + cost) * _cancelled(steps)).sum(axis=-1)
    return duration, waiting, loss


def _cancelled(attempt: Attempt) -> Floats:
    """P(the j-th attempt is cancelled) if a fate stays until the job completes, fails visibly or reaches the cutoff.

    The timeouts of a schedule are along the last axis of `attempt`.
    """
    if np.array_equal(attempt.missed, attempt.out):
        return attempt.out
    chances = np.empty_like(attempt.out)
    same, failed, G_before = np.ones(()), np.zeros(()), np.zeros(())
    for j in range(chances.shape[-1]):
        Q, S, _ = attempt.at(j)
        G, tried = Q - S, same + failed
        chances[..., j] = tried * S
        failed = same * (G - G_before) + failed * G
        same, G_before = np.where(S > 0, tried, 0.0), G
    return chances


class ScheduleGrid:
    """Every schedule τ₁, g τ₁, g² τ₁ … of at most 7 cancellations, g of 1, 1.5 and 2, for some `first` timeouts.

    `first` is (log, timeout), `cutoff` (log,): many logs are rows of one array. Figures of schedules have the axes
    (growth, first timeout, number of cancellations − 1) after that of the row. So have the `limits` of each log, the
    last timeout of each schedule, none beyond the cutoff. `times` (log, …) are those at which an `Attempt` must be
    known, sorted, the cutoff last, and `place` is where each limit is among the times of its log.
    """

    def __init__(self, first: Floats, cutoff: Floats) -> None:
        self.limits: Floats = np.minimum(_FACTORS[:, None] * first[:, None, :, None], cutoff[:, None, None, None])
        multiples = (np.unique(_FACTORS)[:, None] * first[:, None]).reshape(len(first), -1)
        self.times = np.sort(np.minimum(np.append(multiples, cutoff[:, None], axis=1), cutoff[:, None]), axis=1)
        self.place: Ints = np.stack([np.searchsorted(*each) for each in zip(self.times, self.limits, strict=True)])

    def durations(
        self, attempt: Attempt, waiting: Floats, cost: Floats, *, log: Ints, pool: Ints, span: Floats
    ) -> Floats:
        """E for each row of `attempt`, that of a `log`; jobs leave the row for the row `pool` at the rate 1/span."""
        rows = np.arange(waiting.size)[:, None, None]
        last, cost, span = (values[:, None, None] for values in (waiting, cost, span))
        result = np.empty((waiting.size, *self.limits.shape[1:]))
        here, gone, total = np.ones(()), np.zeros(()), np.zeros(())
        for j in range(MAX_CANCELLATIONS):
            missed, _, spent = (values[rows, self.place[log, ..., j]] for values in attempt)
            taken = spent + cost * missed
            stays = np.exp(-(self.limits[log, ..., j] + cost) / span)
            total = total + here * taken + gone * taken[pool]
            here = here * missed
            gone = gone * missed[pool] + here * (1 - stays)
            here = here * stays
            result[..., j] = total + here * last + gone * last[pool]
        return result

    def worst_case(self, attempt: Attempt, waiting: Floats, cost: Floats) -> tuple[Floats, Floats, Floats]:
        """If every retry repeats the first fate: ℓ = Σ_j (τ_j + c) P(still out at τ_j)/W, Σ_j P(…), Σ_j (τ_j + c)/W.

        The second is the extra load in submissions per job, the third the loss of a job that is cancelled every time.
        `attempt` has a row a log; so have the results.
        """
        rows = np.arange(len(waiting))[:, None, None, None]
        waiting, cost = (values[:, None, None, None] for values in (waiting, cost))
        cancelled = _cancelled(Attempt(*(values[rows, self.place] for values in attempt)))
        price = (self.limits + cost) / waiting
        loss, load, stake = (np.cumsum(parts, axis=-1) for parts in (price * cancelled, cancelled, price))
        return loss, load, stake


class Scheduled(NamedTuple):
    """A schedule, its place in the grid of its own first timeout alone, and its value of the objective."""

    timeouts: tuple[float, ...]
    place: int
    value: float


def search_schedules(
    first: Sequence[Floats],
    cutoff: Floats,
    objective: Callable[[ScheduleGrid, Sequence[int]], Floats],
    *,
    continuous: bool = False,
) -> list[Scheduled]:
    """For each log the schedule with the least objective.

    32 of the `first` timeouts of a log are tried, then all between the neighbours of the best; of a continuous law
    those between come closer until they agree to seven digits. The objective is given a grid and which logs it has.
    """
    first, todo = list(first), list(range(len(first)))
    places = [np.unique(np.linspace(0, each.size - 1, COARSE_TIMEOUTS).astype(np.int64)) for each in first]
    results: dict[int, Scheduled] = {}
    while todo:
        width = max(places[log].size for log in todo)
        repeated = (np.append(places[log], np.full(width - places[log].size, places[log][-1])) for log in todo)
        rows = np.array([first[log][some] for log, some in zip(todo, repeated, strict=True)])
        grid = ScheduleGrid(rows, cutoff[todo])
        values = objective(grid, todo).swapaxes(2, 3).reshape(len(todo), -1)  # of equals the shortest schedule
        left = []
        for row, (log, best) in enumerate(zip(todo, values.argmin(axis=1).tolist(), strict=True)):
            tried, k = places[log], best % width
            low, high = int(tried[max(k - 1, 0)]), int(tried[min(k + 1, tried.size - 1)])
            if high - low <= 2 and not (continuous and first[log][high] > first[log][low] * (1 + 1e-7)):
                growth, count = divmod(best // width, MAX_CANCELLATIONS)
                timeouts = grid.limits[row, growth, k, : count + 1]
                results[log] = Scheduled(tuple(timeouts.tolist()), best // width, float(values[row, best]))
                continue
            chosen = int(tried[k])
            if high - low <= 2:
                ends = first[log][low], first[log][high]
                first[log] = np.unique([*np.geomspace(*ends, COARSE_TIMEOUTS), first[log][chosen]])
                low, high = 0, first[log].size - 1
            stride = max(1, (high - low) // (2 * COARSE_TIMEOUTS))
            places[log] = np.unique([*range(low, high + 1, stride), min(chosen, first[log].size - 1)])
            left.append(log)
        todo = left
    return [results[log] for log in range(len(first))]


def best_retry(
    law: Law,
    *,
    cutoff: float = np.inf,
    risk: float = 0.3,
    suspicion: float = 0.1,
    max_load: float = np.inf,
    cost: float = 0.0,
) -> Retry | None:
    """The schedule with the least (1 − π) E/W + π (1 + ℓ) of those with ℓ ≤ risk, None where waiting is as good.

    ℓ is the loss if every retry takes as long as the first attempt would have, π = `suspicion` the weight of that case,
    `max_load` the most extra submissions per job in it.
    The last attempt ends at the `cutoff`; ∞ is allowed for a law without outliers.

    >>> import latfit
    >>> law = latfit.Empirical.of(latfit.example_log().sample(cutoff=10_000.0))
    >>> retry = best_retry(law, cutoff=10_000.0)
    >>> retry.timeouts, round(retry.expected_duration, 3), round(retry.worst_loss, 3)
    ((358.0, 716.0), 309.311, 0.213)
    >>> best_retry(law, cutoff=10_000.0, risk=0.05) is None
    True
    """
    times = _first_timeouts(law, cutoff)
    waiting, costs, row = Attempt.of(law, np.array([[cutoff]])).waiting(cost), np.array([cost]), np.array([0])
    if not times.size or not np.isfinite(waiting[0]):
        return None

    def objective(grid: ScheduleGrid, logs: Sequence[int]) -> Floats:
        attempt = Attempt.of(law, grid.times)
        losses, load, _ = grid.worst_case(attempt, waiting, costs)
        ratios = grid.durations(attempt, waiting, costs, log=row, pool=row, span=np.array([np.inf])) / waiting
        allowed = (losses <= risk) & (load <= max_load)
        return np.where(allowed, (1 - suspicion) * ratios + suspicion * (1 + losses), np.inf)

    continuous = law.jumps is None
    ((timeouts, _, value),) = search_schedules([times], np.array([cutoff]), objective, continuous=continuous)
    return evaluate_retry(law, timeouts, cutoff=cutoff, cost=cost) if value < 1 else None


def _first_timeouts(law: Law, cutoff: float) -> Floats:
    if law.jumps is not None:
        return law.jumps[(law.jumps > 0) & (law.jumps < cutoff)]
    low, high = law.support
    times = np.geomspace(1e-9, 1e9, 4096)
    chance = law.cdf(times) / (1 - law.rho)
    inside = times[(times > low) & (times < min(high, cutoff)) & (chance > 1e-3) & (chance < 1 - 1e-9)]
    return np.geomspace(inside[0], inside[-1], times.size) if inside.size else inside
