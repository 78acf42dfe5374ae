"""A strategy on a law as a row of rounds, and the completion time J that follows from it.

A round is a stretch of time with its own chance to complete: an attempt with its timeout, an attempt with a hedge,
the stretch between two submissions of copies that overlap. A round that does not complete is followed, after a
pause, by the next one; the last one may be repeated for ever. What is known of each round (the probability of
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

NEGLIGIBLE = 1e-16  # a round that is reached less often than this is left out
ROUNDING = 1e-12  # 0.3 + 0.3 + 0.1 must reach 0.7 in spite of rounding


@dataclass(frozen=True, eq=False)
class Round:
    """One stretch of a strategy, given that it is reached.

    `p_incomplete` is the probability of not having completed at its end, `mean` and `second_moment` are those of the
    time spent in it, `lost_time` = E[time spent; not completed], `survival(u)` the probability of not having
    completed at age u (None where failures end attempts early), `ages` where it may jump or bend, `pause` the mean
    time until the next round, `p_stuck` the probability that it never ends.
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
    p_stuck: float = 0.0

    def alive(self, age: float) -> float:
        """The probability of not having completed at an age, at most the round's length."""
        assert self.survival is not None
        return float(self.survival(np.array(min(max(age, 0.0), self.length))))

    def inverse(self, level: float) -> float:
        """The smallest age u at which 1 − survival(u) ≥ level."""
        target = (1.0 - level) * (1 + ROUNDING) + 1e-15
        ages = self.ages[(self.ages > 0) & (self.ages < self.length)]
        ages = np.append(ages, self.length) if np.isfinite(self.length) else ages
        if not ages.size or self.alive(ages[-1]) > target:
            return self.length
        before, at = -1, ages.size - 1
        while at - before > 1:  # the survival falls: a binary search over the ages
            middle = (before + at) // 2
            before, at = (before, middle) if self.alive(ages[middle]) <= target else (middle, at)
        low, high = float(ages[before]) if before >= 0 else 0.0, float(ages[at])
        if self.alive(float(np.nextafter(high, 0))) > target:  # a jump at `high`: on a step law always
            return high
        for _ in range(70):
            age = 0.5 * (low + high)
            if not low < age < high:
                break
            low, high = (low, age) if self.alive(age) <= target else (age, high)
        return high


class Totals(NamedTuple):
    """What follows from some round on; `second` is E[J²]."""

    mean: float
    second: float
    submissions: float
    job_seconds: float
    success: float


@dataclass(frozen=True, eq=False)
class Plan:
    """Rounds in the order of use; with `repeats` the last one is repeated for ever, otherwise one gives up after it.

    `lattice` is the law, the timeout and the cost of a plan whose attempts may fail visibly: its distribution is that
    of a lattice. `starts` has a row of starting times for each draw of random pauses: the distribution is then the
    average over these.
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
    def figures(self) -> dict[str, Any]:
        """The fields of `Figures`; None where one is infinite or not known."""
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
            "success": finite(self._totals.success),
        }

    @cached_property
    def _totals(self) -> Totals:
        last = self.rounds[-1]
        after = _repeated(last) if self.repeats else _followed(last, Totals(0.0, 0.0, 0.0, 0.0, 0.0), pauses=False)
        for this in reversed(self.rounds[:-1]):
            after = _followed(this, after)
        return after

    def quantile(self, q: float) -> float:
        """The smallest x with P(J ≤ x) ≥ q, ∞ where it is not reached."""
        if self.lattice is not None:
            law, t, cost = self.lattice
            return float(lattice_quantile(law, q, np.array(t), cost))
        self._refuse_failures()
        if self.starts is not None:
            return self._average_quantile(q, self.starts)
        start, reached = 0.0, 1.0
        for this in self.rounds:
            if reached * this.p_incomplete <= (1 - q) * (1 + ROUNDING):
                return start + this.inverse(1.0 - (1.0 - q) / reached)
            start, reached = start + this.length + this.pause, reached * this.p_incomplete
            if not np.isfinite(start):
                return np.inf
        last = self.rounds[-1]
        if not self.repeats or last.p_incomplete >= 1:
            return np.inf
        more = np.log((1 - q) / reached) / np.log(last.p_incomplete) if last.p_incomplete else 0.0
        more = max(np.ceil(more * (1 - ROUNDING)) - 1.0, 0.0)
        inside = last.inverse(1.0 - (1.0 - q) / (reached * last.p_incomplete**more))
        return float(start + more * (last.length + last.pause) + inside)

    def survival(self, x: float) -> float:
        """P(J > x)."""
        if self.lattice is not None:
            law, t, cost = self.lattice
            return float(lattice_survival(law, x, np.array(t), cost))
        self._refuse_failures()
        if self.starts is not None:
            return self._average_survival(x, self.starts)
        start, reached, at = 0.0, 1.0, x * (1 + ROUNDING)
        for this in self.rounds:
            if at < start + this.length + this.pause:
                return reached * this.alive(at - start)
            start, reached = start + this.length + this.pause, reached * this.p_incomplete
        if not self.repeats:
            return reached
        last = self.rounds[-1]
        period = last.length + last.pause
        if not period > 0:
            return 0.0 if last.p_incomplete < 1 else 1.0
        more = np.floor((at - start) / period)
        return float(reached * last.p_incomplete**more) * last.alive(at - start - more * period)

    def _average_survival(self, x: float, starts: Floats) -> float:
        reached = np.ones(starts.shape[0])
        for this, start in zip(self.rounds, starts.T, strict=True):
            assert this.survival is not None
            reached *= np.where(x >= start, this.survival(np.clip(x - start, 0.0, this.length)), 1.0)
        return float(reached.mean())

    def _average_quantile(self, q: float, starts: Floats) -> float:
        low, high, target = 0.0, float(starts[:, -1].max()) + self.rounds[-1].length, (1 - q) * (1 + ROUNDING)
        if self._average_survival(high, starts) > target:
            return np.inf
        for _ in range(50):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self._average_survival(middle, starts) > target else (low, middle)
        return high

    def _refuse_failures(self) -> None:
        if any(this.survival is None for this in self.rounds):
            raise RestartError(
                "the distribution of the completion time is not computed for this strategy under visible failures: "
                "read failures as completed or as lost (--failed), or ask for the mean"
            )


def _followed(this: Round, after: Totals, *, pauses: bool = True) -> Totals:
    """What follows from a round on, if `after` follows from the next one on; a weight of 0 wins over ∞."""
    goes_on = this.p_incomplete - this.p_stuck
    if goes_on <= 0:
        return Totals(this.mean, this.second_moment, this.submissions, this.job_seconds, 1.0 - this.p_incomplete)
    pause, variance = (this.pause, this.pause_variance) if pauses else (0.0, 0.0)
    later = pause + after.mean
    later_second = pause * pause + variance + 2 * pause * after.mean + after.second
    return Totals(
        this.mean + goes_on * later,
        this.second_moment + 2 * this.lost_time * later + goes_on * later_second,
        this.submissions + goes_on * after.submissions,
        this.job_seconds + goes_on * after.job_seconds,
        1.0 - this.p_incomplete + goes_on * after.success,
    )


def _repeated(this: Round) -> Totals:
    """What follows when a round is repeated until it completes: the fixed point of `_followed`."""
    goes_on = this.p_incomplete - this.p_stuck
    if goes_on >= 1:
        return Totals(np.inf, np.inf, np.inf, np.inf, 0.0)
    ends = 1.0 - goes_on
    mean = (this.mean + goes_on * this.pause) / ends
    second = this.second_moment + (2 * this.lost_time * (this.pause + mean) if this.lost_time else 0.0)
    if goes_on:
        second += goes_on * (this.pause * this.pause + this.pause_variance + 2 * this.pause * mean)
    return Totals(
        mean, second / ends, this.submissions / ends, this.job_seconds / ends, (1.0 - this.p_incomplete) / ends
    )
