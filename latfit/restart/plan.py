"""A strategy on a law as a row of rounds, and the completion time J that follows from it.

A round is a stretch of time with its own chance to complete: an attempt with its timeout, an attempt with a hedge,
the stretch between two submissions of copies that overlap. A round that does not complete is followed, after a
pause, by the next one; the last one may be repeated for ever. What the rounds know of themselves (the probability of
not completing, two moments of the time spent, submissions, job-seconds) gives the same of the whole by recursion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.numbers import Floats, finite
from latfit.restart.lattice import lattice_quantile, lattice_survival
from latfit.restart.result import QUANTILES

NEGLIGIBLE = 1e-16  # a chance of getting so far that nothing after it counts
ROUNDING = 1e-12  # 0.3 + 0.3 + 0.1 must reach 0.7 in spite of rounding

Survival = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class Round:
    """One stretch of a strategy, given that it is reached.

    `out` is the probability of not having completed at its end, `first` and `second` are the moments of the time
    spent in it, `lost` = E[time spent; not completed], `survival(u)` the probability of not having completed at age u
    (None where failures end attempts early), `ages` where it may jump or bend, `pause` the mean time until the next,
    `stuck` the probability that it never ends.
    """

    length: float
    out: float
    first: float
    second: float
    lost: float
    submissions: float
    job_seconds: float
    survival: Survival | None = None
    ages: Floats = field(default_factory=lambda: np.empty(0))
    pause: float = 0.0
    pause_variance: float = 0.0
    stuck: float = 0.0

    def inverse(self, level: float) -> float:
        """The smallest age u at which 1 − survival(u) ≥ level."""
        assert self.survival is not None
        target = (1.0 - level) * (1 + ROUNDING) + 1e-15
        inside = self.ages[(self.ages > 0) & (self.ages < self.length)]
        ages = np.append(inside, self.length if np.isfinite(self.length) else np.empty(0))
        before, at = -1, ages.size - 1
        if at < 0 or self._at(ages[at]) > target:
            return self.length
        while at - before > 1:  # the survival falls: a binary search over the ages
            middle = (before + at) // 2
            before, at = (before, middle) if self._at(ages[middle]) <= target else (middle, at)
        return self._bisected(float(ages[before]) if before >= 0 else 0.0, float(ages[at]), target)

    def _at(self, age: float) -> float:
        assert self.survival is not None
        return float(self.survival(np.array(age)))

    def _bisected(self, low: float, high: float, target: float) -> float:
        """Between two ages of a smooth law; on a step law nothing happens between them."""
        if self._at(float(np.nextafter(high, 0))) > target:  # a jump, at the end of the stretch
            return high
        for _ in range(70):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            low, high = (low, middle) if self._at(middle) <= target else (middle, high)
        return high


class Totals(NamedTuple):
    """What follows from some round on."""

    mean: float
    second: float
    submissions: float
    job_seconds: float
    success: float


@dataclass(frozen=True, eq=False)
class Plan:
    """Rounds in the order of use; with `repeats` the last one is repeated for ever, otherwise one gives up after it.

    `lattice` is the law, the timeout and the cost of a plan whose attempts may fail visibly, and whose distribution is
    that of a lattice. `starts` has a row of starting times for each draw of pauses that are random: where there are
    some, the distribution is the average over them.
    """

    rounds: tuple[Round, ...]
    repeats: bool
    lattice: tuple[Law, float, float] | None = None
    starts: Floats | None = None

    @property
    def mean(self) -> float:
        """E[J], of a finite plan that of the time until success or giving up."""
        return self._totals.mean

    @property
    def second_moment(self) -> float:
        """E[J²]."""
        return self._totals.second

    @property
    def std(self) -> float:
        """√Var J."""
        mean, second = self._totals.mean, self._totals.second
        return float(np.sqrt(max(second - mean * mean, 0.0))) if np.isfinite(second) else np.inf

    @property
    def submissions(self) -> float:
        """The mean number of jobs submitted."""
        return self._totals.submissions

    @property
    def job_seconds(self) -> float:
        """The mean time that all jobs together are out."""
        return self._totals.job_seconds

    @property
    def success(self) -> float:
        """The probability that the job is done at all."""
        return self._totals.success

    @cached_property
    def _totals(self) -> Totals:
        after = _for_ever(self.rounds[-1]) if self.repeats else Totals(0.0, 0.0, 0.0, 0.0, 0.0)
        rounds = self.rounds[:-1] if self.repeats else self.rounds
        for at, this in enumerate(reversed(rounds)):
            last = at == 0 and not self.repeats
            after = _before(this, after, *((0.0, 0.0) if last else (this.pause, this.pause_variance)))
        return after

    def quantile(self, q: float) -> float:
        """The smallest x with P(J ≤ x) ≥ q, ∞ where it is not reached."""
        if self.lattice is not None:
            law, t, cost = self.lattice
            return float(lattice_quantile(law, q, np.array(t), cost))
        if self.starts is not None:
            return self._averaged(q, self.starts)
        start, out = 0.0, 1.0
        for this in self._distributed():
            if out * this.out <= (1 - q) * (1 + ROUNDING):
                return start + this.inverse(1.0 - (1.0 - q) / out)
            start, out = start + this.length + this.pause, out * this.out
            if not np.isfinite(start):
                return np.inf
        if not self.repeats or self.rounds[-1].out >= 1:
            return np.inf
        last = self.rounds[-1]
        more = max(np.ceil(np.log((1 - q) / out) / np.log(last.out) * (1 - ROUNDING)) - 1.0, 0.0) if last.out else 0.0
        return start + more * (last.length + last.pause) + last.inverse(1.0 - (1.0 - q) / (out * last.out**more))

    def quantiles(self, levels: tuple[float, ...]) -> dict[str, float | None]:
        """Quantiles by level; None where one is infinite, or not known because of failures on no lattice."""
        try:
            return {str(q): finite(self.quantile(q)) for q in levels}
        except RestartError:
            return {str(q): None for q in levels}

    @property
    def figures(self) -> dict[str, Any]:
        """The fields of `Figures`; None where one is infinite or not known."""
        return {
            "expected_duration": finite(self.mean),
            "std_duration": finite(self.std),
            "quantiles": self.quantiles(QUANTILES),
            "submissions": finite(self.submissions),
            "job_seconds": finite(self.job_seconds),
            "success": finite(self.success),
        }

    def survival(self, x: float) -> float:
        """P(J > x)."""
        if self.lattice is not None:
            law, t, cost = self.lattice
            return float(lattice_survival(law, x, np.array(t), cost))
        if self.starts is not None:
            return self._average_survival(x, self.starts)
        start, out, at = 0.0, 1.0, x * (1 + ROUNDING)
        for this in self._distributed():
            if at < start + this.length + this.pause:
                return out * _alive(this, at - start)
            start, out = start + this.length + this.pause, out * this.out
        if not self.repeats:
            return out
        last = self.rounds[-1]
        period = last.length + last.pause
        if not period > 0:
            return 0.0 if last.out < 1 else 1.0
        more = np.floor((at - start) / period)
        return float(out * last.out**more) * _alive(last, at - start - more * period)

    def _average_survival(self, x: float, starts: Floats) -> float:
        out = np.ones(starts.shape[0])
        for this, start in zip(self._distributed(), starts.T, strict=True):
            assert this.survival is not None
            out *= np.where(x >= start, this.survival(np.clip(x - start, 0.0, this.length)), 1.0)
        return float(out.mean())

    def _averaged(self, q: float, starts: Floats) -> float:
        """The quantile of an average of distributions, by bisection."""
        low, high, target = 0.0, float(starts[:, -1].max()) + self.rounds[-1].length, (1 - q) * (1 + ROUNDING)
        if self._average_survival(high, starts) > target:
            return np.inf
        for _ in range(50):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self._average_survival(middle, starts) > target else (low, middle)
        return high

    def _distributed(self) -> tuple[Round, ...]:
        if any(this.survival is None for this in self.rounds):
            raise RestartError(
                "the distribution of the completion time is not computed for this strategy under visible failures: "
                "read failures as completed or as lost (--failed), or ask for the mean"
            )
        return self.rounds


def _alive(this: Round, age: float) -> float:
    assert this.survival is not None
    return float(this.survival(np.array(min(max(age, 0.0), this.length))))


def _before(this: Round, after: Totals, pause: float, variance: float) -> Totals:
    """What follows from a round on, if `after` follows from the next one on; a weight of 0 wins over ∞."""
    go = this.out - this.stuck
    if go <= 0:
        return Totals(this.first, this.second, this.submissions, this.job_seconds, 1.0 - this.out)
    wait = pause + after.mean
    later = pause * pause + variance + 2 * pause * after.mean + after.second
    return Totals(
        this.first + go * wait,
        this.second + 2 * this.lost * wait + go * later,
        this.submissions + go * after.submissions,
        this.job_seconds + go * after.job_seconds,
        1.0 - this.out + go * after.success,
    )


def _for_ever(this: Round) -> Totals:
    """What follows when a round is repeated until it completes."""
    go = this.out - this.stuck
    if go >= 1:
        return Totals(np.inf, np.inf, np.inf, np.inf, 0.0)
    done = 1.0 - go
    mean = (this.first + go * this.pause) / done
    wait = this.pause + mean
    second = this.second + (2 * this.lost * wait if this.lost else 0.0)
    if go:
        second += go * (this.pause**2 + this.pause_variance + 2 * this.pause * mean)
    return Totals(mean, second / done, this.submissions / done, this.job_seconds / done, (1.0 - this.out) / done)
