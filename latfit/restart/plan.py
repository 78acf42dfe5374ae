"""A strategy on a law as a sequence of rounds, and the completion time J that follows from it.

A round is a stretch of time with its own chance to complete: an attempt with its timeout, an attempt with a hedge,
or the stretch between two submissions of copies that overlap. A round that does not complete is followed, after a
pause, by the next one; the last one may be repeated for ever. The figures of the rounds (the probability of not
completing, two moments of the time spent, submissions, job-seconds) give those of the plan by recursion.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.numbers import Floats, finite
from latfit.restart import derived
from latfit.restart.completion import lost_moments
from latfit.restart.distribution import completion_quantile, survival
from latfit.restart.result import QUANTILES

TAIL_PANELS = 600  # from the end of the range of a law with a power tail to HUGE
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


@dataclass(frozen=True, eq=False)
class Round:
    """One stretch of a strategy, given that it is reached.

    `p_incomplete` is the probability of not having completed at its end, `mean` and `second_moment` are those of the
    time spent in it, `lost_time` = E[time spent; not completed], `survival(u)` the probability of not having
    completed at age u (None where failures end attempts early), `ages` where it may jump or bend, `pause` the mean
    time until the next round, `p_under_way` the probability that a copy is still out at its end.
    """

    length: float
    p_incomplete: float
    mean: float
    second_moment: float
    lost_time: float
    submissions: float
    job_seconds: float
    survival: Callable[[Floats], Floats] | None = None
    ages: Floats = field(default_factory=lambda: np.empty(0))
    pause: float = 0.0
    pause_variance: float = 0.0
    p_under_way: float = 0.0

    @property
    def goes_on(self) -> float:
        """The probability that the next round is reached: an attempt without timeout may never end."""
        return self.p_incomplete - (self.p_under_way if np.isinf(self.length) else 0.0)

    def alive(self, age: ArrayLike) -> Floats:
        assert self.survival is not None
        return self.survival(np.minimum(np.maximum(age, 0.0), self.length))

    def inverse(self, level: float) -> float:
        """The smallest age u at which 1 − survival(u) ≥ level."""
        target = (1.0 - level) * (1 + derived.ROUNDING) + 1e-15
        ages = self.ages[(self.ages > 0) & (self.ages < self.length)]
        ages = np.append(ages, self.length) if np.isfinite(self.length) else ages
        at = bisect_left(ages, True, key=lambda age: bool(self.alive(age) <= target))  # the survival falls
        if at == ages.size:
            return self.length
        low, high = float(ages[at - 1]) if at else 0.0, float(ages[at])
        if self.alive(np.nextafter(high, 0)) > target:  # a jump at `high`: on a step law always
            return high
        for _ in range(70):
            age = 0.5 * (low + high)
            if not low < age < high:
                break
            low, high = (low, age) if self.alive(age) <= target else (age, high)
        return high


class Totals(NamedTuple):
    """The figures of the rest of a plan."""

    mean: float = 0.0
    second_moment: float = 0.0
    submissions: float = 0.0
    job_seconds: float = 0.0
    success: float = 0.0


@dataclass(frozen=True, eq=False)
class Plan:
    """Rounds in the order of use; the last one is repeated for ever (`repeats`) or is where the job is given up.

    `lattice` is the law, the timeout and the cost of a plan whose attempts may fail visibly: its distribution is that
    of a lattice. `starts` has a row of starting times for each draw of random pauses: the distribution is then the
    average over these.

    `mean` and `second_moment` are E[J] and E[J²] (of a finite plan those of the time until success or giving up),
    `submissions` the mean number of jobs submitted, `job_seconds` the mean time that all of them together are out.
    """

    rounds: tuple[Round, ...]
    repeats: bool
    lattice: tuple[Law, float, float] | None = None
    starts: Floats | None = None
    mean: float = field(init=False)
    second_moment: float = field(init=False)
    submissions: float = field(init=False)
    job_seconds: float = field(init=False)
    success: float = field(init=False)

    def __post_init__(self) -> None:
        total: Totals | None = None
        if not self.repeats:
            total = _followed(replace(self.rounds[-1], pause=0.0, pause_variance=0.0), Totals())
        for this in reversed(self.rounds if total is None else self.rounds[:-1]):
            total = _followed(this, total)
        assert total is not None
        vars(self).update(total._asdict())

    @cached_property
    def _beginnings(self) -> tuple[Floats, Floats]:
        """When each round begins, and the probability that it does."""
        before = self.rounds[:-1]
        lengths = [0.0, *(this.length + this.pause for this in before)]
        chances = [1.0, *(this.p_incomplete for this in before)]
        return np.cumsum(np.array(lengths)), np.cumprod(np.array(chances))

    @property
    def std(self) -> float:
        variance = self.second_moment - self.mean * self.mean if np.isfinite(self.second_moment) else np.inf
        return float(np.sqrt(max(variance, 0.0)))

    @property
    def figures(self) -> dict[str, Any]:
        try:
            quantiles = {str(q): finite(self.quantile(q)) for q in QUANTILES}
        except RestartError:  # visible failures, on no lattice
            quantiles = {str(q): None for q in QUANTILES}
        return {
            "expected_duration": finite(self.mean),
            "std_duration": finite(self.std),
            "quantiles": quantiles,
            "submissions": finite(self.submissions),
            "job_seconds": finite(self.job_seconds),
            "success": finite(self.success),
        }

    def quantile(self, q: float) -> float:
        """The smallest x with P(J ≤ x) ≥ q, ∞ where it is not reached."""
        if self.lattice is not None:
            law, t, cost = self.lattice
            return float(completion_quantile(law, q, t, cost=cost))
        self._refuse_failures()
        target = (1 - q) * (1 + derived.ROUNDING)
        if self.starts is not None:
            low, high = 0.0, float(self.starts[:, -1].max()) + self.rounds[-1].length
            for _ in range(50):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if self.survival(middle) > target else (low, middle)
            return high if self.survival(high) <= target else np.inf
        starts, chances = self._beginnings
        i = int(np.count_nonzero(chances[1:] > target))
        start, reached, this = float(starts[i]), float(chances[i]), self.rounds[i]
        if reached * this.p_incomplete > target:  # after all rounds
            if not self.repeats or this.p_incomplete >= 1 or np.isinf(this.length):
                return np.inf
            attempts = np.log((1 - q) / reached) / np.log(this.p_incomplete)
            more = np.ceil(attempts * (1 - derived.ROUNDING)) - 1.0
            start, reached = start + more * (this.length + this.pause), reached * this.p_incomplete**more
        return float(start + this.inverse(1.0 - (1.0 - q) / reached))

    def survival(self, x: float) -> float:
        if self.lattice is not None:
            law, t, cost = self.lattice
            return float(survival(law, x, np.array(t), cost))
        self._refuse_failures()
        if self.starts is not None:
            ages = (x - self.starts).T
            alive = [np.where(age >= 0, this.alive(age), 1.0) for this, age in zip(self.rounds, ages, strict=True)]
            return float(np.prod(alive, axis=0).mean())
        starts, chances = self._beginnings
        at = x * (1 + derived.ROUNDING)
        i = int(np.count_nonzero(starts[1:] <= at))
        start, reached, this = float(starts[i]), float(chances[i]), self.rounds[i]
        period = this.length + this.pause
        if self.repeats and i == starts.size - 1 and at - start >= period:
            if not period > 0:
                return 0.0 if this.p_incomplete < 1 else 1.0
            more = np.floor((at - start) / period)
            start, reached = start + more * period, reached * this.p_incomplete**more
        return float(reached * this.alive(at - start))

    def _refuse_failures(self) -> None:
        if any(this.survival is None for this in self.rounds):
            raise RestartError(
                "the distribution of the completion time is not computed for this strategy under visible failures: "
                "read failures as completed or as lost (--failed), or ask for the mean"
            )


def _followed(this: Round, after: Totals | None) -> Totals:
    """The figures of a round with `after` as the rest of the plan; None: the round is repeated for ever."""
    goes_on, done = this.goes_on, 1.0 - this.p_incomplete
    if goes_on <= 0:  # a weight of 0 wins over ∞
        return Totals(this.mean, this.second_moment, this.submissions, this.job_seconds, done)
    if after is None and goes_on >= 1:
        return Totals(np.inf, np.inf, np.inf, np.inf, 0.0)
    ends, following = (1.0 - goes_on, Totals()) if after is None else (1.0, after)
    mean = (this.mean + goes_on * (this.pause + following.mean)) / ends
    later = this.pause + (mean if after is None else following.mean)
    second = goes_on * (this.pause_variance + this.pause * (2 * later - this.pause) + following.second_moment)
    second += this.second_moment + (2 * this.lost_time * later if this.lost_time else 0.0)
    return Totals(
        mean,
        second / ends,
        (this.submissions + goes_on * following.submissions) / ends,
        (this.job_seconds + goes_on * following.job_seconds) / ends,
        (done + goes_on * following.success) / ends,
    )


def attempt(law: Law, length: float, *, pause: float = 0.0, copies: int = 1) -> Round:
    """One attempt with a timeout; `law` is that of the first of `copies` that run side by side."""
    t, failing = np.array(length, dtype=np.float64), derived.has_failures(law)
    lost = list(map(float, lost_moments(law, t, 0.0, 2)))
    mean, second = (float(law.partial_moment(m, t)) + lost[m] for m in (1, 2))
    return Round(
        length,
        p_incomplete=lost[0],
        mean=mean,
        second_moment=second,
        lost_time=lost[1],
        submissions=float(copies),
        job_seconds=copies * mean,
        survival=None if failing else (lambda u: derived.still_out(law, u)),
        ages=np.empty(0) if failing else knots(law),
        pause=pause,
        p_under_way=float(derived.still_out(law, t)) if failing else lost[0],
    )


class Ages(NamedTuple):
    """A round with several copies at age u: P(it is under way), the mean number of copies out, P(all have failed)."""

    alive: Floats
    running: Floats
    failed: Floats


def overlapping(
    law: Law,
    ages: Sequence[float],
    length: float,
    at: Callable[[Floats], Ages],
    *,
    submissions: float = 1.0,
    pause: float = 0.0,
) -> Round:
    """A round with several copies out, by quadrature of `at`: it ends with a completion, all failed, or at `length`.

    `ages` are those of the copies when it begins; that of a copy which starts later is negative. A copy that failed is
    gone. While another one is out, nothing is done about it; when none is out any more, the next round begins, after
    its pause.
    """
    edges = _edges(law, ages, length)
    u, w = quadrature(edges, steps=law.jumps is not None)
    alive, running, failed = at(np.append(u, length))
    under_way, tail, failing = float(alive[-1]), bool(edges[-1] == derived.HUGE), derived.has_failures(law)
    mean = second = lost = used = np.inf
    if np.isfinite(length) or not under_way > 0:
        with np.errstate(over="ignore"):
            mean, second, used = (_integral(w, y, tail=tail) for y in (alive[:-1], 2 * u * alive[:-1], running[:-1]))
        lost = under_way * length if under_way > 0 else 0.0
        if failing:
            fails_later = failed[-1] - failed[:-1]
            # less is rounding, and the tail is long
            lost += _integral(w, np.where(fails_later > 1e-14, fails_later, 0.0), tail=tail)
    return Round(
        length,
        p_incomplete=under_way + float(failed[-1]),
        mean=mean,
        second_moment=second,
        lost_time=lost,
        submissions=submissions,
        job_seconds=used,
        survival=None if failing else (lambda u: at(u).alive),
        ages=np.empty(0) if failing else edges,
        pause=pause,
        p_under_way=under_way,
    )


@lru_cache(maxsize=32)
def knots(law: Law) -> Floats:
    """The jumps of a step law, panels over the range of a density with its kinks; and the times of failure."""
    if law.jumps is not None:
        return np.union1d(law.jumps, derived.failure_times(law)) if derived.has_failures(law) else law.jumps
    scan = derived.scan_times(law)
    panels = scan[np.linspace(0, scan.size - 1, 240).astype(np.intp)]
    return np.unique(np.concatenate([panels, derived.kinks(law), derived.failure_times(law)]))


def _edges(law: Law, ages: Sequence[float], length: float) -> Floats:
    """The times, 0 and the end among them, between which S of every copy is smooth (or constant)."""
    inner = np.concatenate([*(knots(law) - age for age in ages), [-age for age in ages]])
    end = length if np.isfinite(length) else max(float(inner.max()), 0.0)
    edges = np.sort(np.concatenate([[0.0, end], inner[(inner > 0) & (inner < end)]]), kind="stable")
    if np.isfinite(length) or law.jumps is not None:
        return edges
    power_tail = law.still_out(np.array(derived.HUGE)) < 1e-25 < law.still_out(np.array(end))
    return np.append(edges, np.geomspace(end, derived.HUGE, TAIL_PANELS)[1:]) if power_tail else edges


def quadrature(edges: Floats, *, steps: bool) -> tuple[Floats, Floats]:
    """Nodes and weights of Gauss–Legendre panels; the middles where all is constant between the edges."""
    middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
    if steps:
        return middle, 2 * half
    return (middle[:, None] + half[:, None] * _NODES).ravel(), (half[:, None] * _WEIGHTS).ravel()


def _integral(weights: Floats, values: Floats, *, tail: bool) -> float:
    """Σ weights · values, not by BLAS, which is slower here; with a `tail` what follows the last panel is a power's."""
    parts = weights * values
    total = float(parts.sum())
    if not tail:
        return total
    panels, written = (y.reshape(-1, _NODES.size) for y in (parts, values > 1e-290 * weights))
    accurate = np.flatnonzero(written.all(axis=1))
    last = int(accurate[-1]) if accurate.size else 0
    if last < len(panels) - TAIL_PANELS + 2:  # it ends before the tail
        return total
    each = panels[: last + 1].sum(axis=1)
    total, r = float(each.sum()), float(each[-1] / each[-2])
    if not each[-1] > 1e-30 * total:
        return total
    # panels have the same width in log t: a geometric series
    return np.inf if r > 1 - 1e-9 else total + float(each[-1]) * r / (1 - r)
