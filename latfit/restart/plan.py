"""A strategy on a law as a sequence of rounds, and the completion time J that follows from it: the one engine.

A round is a stretch of time with its own chance to complete: an attempt with its timeout, an attempt with a hedge,
or the stretch between two submissions of copies that overlap. A round that does not complete is followed, after a
pause, by the next one; the last one may be repeated for ever. The moments of the time spent in each round give those of
J by recursion. With one timeout for ever these are van Moorsel & Wolter 2004, Theorem 1, and with K of them Theorem 3.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from math import comb, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.numbers import Floats, finite
from latfit.restart import derived, lattice
from latfit.restart.result import QUANTILES

TAIL_PANELS = 600  # from the end of the range of a law with a power tail to HUGE
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


@dataclass(frozen=True, eq=False)
class Round:
    """One stretch of a strategy, given that it is reached; an attempt may be that with each of an array of timeouts.

    `moments(n)` are E[(time spent in it)ⁿ; completed] and E[(time spent in it)ⁿ; the next round follows].
    `p_incomplete` is the probability of not having completed at its end, `p_under_way` that of a copy being still out
    then, `job_seconds` the time that all copies are out (None: `submissions` copies are, all the time). An attempt has
    a `law`; other rounds have `survival(u)`, the probability of not having completed at age u (None where failures end
    attempts early), and the `ages` where it may jump or bend. `pause` is the mean time until the next round.
    """

    length: Any
    moments: Callable[[int], tuple[Any, Any]]
    p_incomplete: Any
    p_under_way: Any
    submissions: float
    job_seconds: float | None = None
    law: Law | None = None
    survival: Callable[[Floats], Floats] | None = None
    ages: Floats = field(default_factory=lambda: np.empty(0))
    pause: float = 0.0
    pause_variance: float = 0.0

    @property
    def failing(self) -> bool:
        return self.survival is None if self.law is None else derived.has_failures(self.law)

    @property
    def ends(self) -> Any:
        """The probability that no other round follows: an attempt without timeout may never end."""
        return self.moments(0)[0] + np.where(np.isinf(self.length), self.p_under_way, 0.0)

    def followed(self, order: int, after: Sequence[Any] | None = None) -> list[Any]:
        """E[Jⁿ] from here on, n = 0…order; `after` are those of the rest of the plan, None: this round is repeated."""
        E: list[Any] = [1.0]
        for n in range(1, order + 1):
            total, following = sum(self.moments(n)), E if after is None else after
            for m in range(1, n + 1):
                known = range(min(m + 1, len(following)))
                later = sum(comb(m, k) * product(self._pause_moment(m - k), following[k]) for k in known)
                total = total + comb(n, m) * product(self.moments(n - m)[1], later)
            E.append(divided(total, self.ends) if after is None else total)
        return E

    def _pause_moment(self, n: int) -> float:
        if n > 2 and self.pause_variance:
            raise _not_beyond_the_second()
        return prod([self.pause] * n, start=1.0) + (self.pause_variance if n == 2 else 0.0)  # may be ∞

    def log_alive(self, age: ArrayLike) -> Floats:
        """The log of the probability of not having completed at an age."""
        u = np.minimum(np.maximum(age, 0.0), self.length)
        if self.law is not None:
            return derived.log_not_completed(self.law, u, self.law.cdf(u))
        assert self.survival is not None
        with np.errstate(divide="ignore"):  # none has
            return np.log(self.survival(u))

    @cached_property
    def log_incomplete(self) -> Floats:
        """The log of the probability of not having completed at its end."""
        return self.log_alive(self.length)

    def inverse(self, level: ArrayLike) -> Floats:
        """The smallest age at which it has completed with probability `level`, at most its length."""
        if self.law is not None:
            return np.asarray(np.minimum(self.law.ppf(level), self.length))
        target = np.log((1.0 - np.asarray(level)) * (1 + derived.ROUNDING) + 1e-15)
        ages = self.ages[(self.ages > 0) & (self.ages < self.length)]
        ages = np.append(ages, self.length) if np.isfinite(self.length) else ages
        at = bisect_left(ages, True, key=lambda age: bool(self.log_alive(age) <= target))  # it falls
        if at == ages.size:
            return np.asarray(self.length)
        low, high = float(ages[at - 1]) if at else 0.0, float(ages[at])
        if self.log_alive(np.nextafter(high, 0)) > target:  # a jump at `high`: on a step law always
            return np.asarray(high)
        for _ in range(70):
            age = 0.5 * (low + high)
            if not low < age < high:
                break
            low, high = (low, age) if self.log_alive(age) <= target else (age, high)
        return np.asarray(high)


@dataclass(frozen=True, eq=False)
class Plan:
    """Rounds in the order of use; the last one is repeated for ever (`repeats`) or is where the job is given up.

    `starts` has a row of starting times for each draw of random pauses: the distribution is then the average over
    these. The moments of a finite plan are those of the time until success or giving up.
    """

    rounds: tuple[Round, ...]
    repeats: bool
    starts: Floats | None = None

    def moments(self, order: int) -> list[Any]:
        """E[Jⁿ] for n = 0…order."""
        last = self.rounds[-1]
        if self.repeats:
            E = last.followed(order)
        else:
            E = replace(last, pause=0.0, pause_variance=0.0).followed(order, [1.0] + [0.0] * order)
        for this in reversed(self.rounds[:-1]):
            E = this.followed(order, E)
        return E

    @cached_property
    def mean(self) -> Any:
        """E[J]."""
        return self.moments(1)[1]

    @cached_property
    def std(self) -> Any:
        """√Var J; for one timeout √(Var(T | T ≤ t) + q Var D + q (1+q) E[D]²), D the time of a lost attempt."""
        this = self.rounds[-1]
        if len(self.rounds) > 1 or not self.repeats or this.law is None:
            mean, second = self.moments(2)[1:]
            return np.sqrt(max(second - mean * mean, 0.0)) if np.isfinite(second) else np.inf
        (F, _), *moments = (this.moments(n) for n in range(3))
        with np.errstate(all="ignore"):
            q, (mean, square) = divided(this.p_incomplete, F), (divided(done, F) for done, _ in moments)
            D, D2 = (divided(lost, this.p_incomplete, 0.0) for _, lost in moments)
            spread = np.maximum(D2 - D * D, 0.0) if this.failing else np.zeros(np.shape(D))
            D = D + this.pause
            waited = product(q, D)
            variance = np.maximum(square - mean * mean, 0.0) + product(q, spread) + waited * (waited + D)
        return np.sqrt(np.where((F > 0) & np.isfinite(square) & np.isfinite(D), variance, np.inf))

    def _per_job(self, figure: Callable[[Round], Any], never: float = np.inf) -> Any:
        """The sum of a figure over the rounds that a job goes through."""
        last = self.rounds[-1]
        total = divided(figure(last), last.ends, never) if self.repeats else figure(last)
        for this in reversed(self.rounds[:-1]):
            total = figure(this) + product(this.moments(0)[1], total)
        return total

    @property
    def submissions(self) -> Any:
        """The mean number of jobs submitted."""
        return self._per_job(lambda this: this.submissions)

    @property
    def job_seconds(self) -> Any:
        """The mean time that all of them together are out."""
        return self._per_job(
            lambda this: this.submissions * sum(this.moments(1)) if this.job_seconds is None else this.job_seconds
        )

    @property
    def success(self) -> Any:
        return self._per_job(lambda this: this.moments(0)[0], never=0.0)

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

    @cached_property
    def _beginnings(self) -> tuple[Floats, Floats]:
        """When each round begins, and the log of the probability that it does."""
        before = self.rounds[:-1]
        lengths = [0.0, *(this.length + this.pause for this in before)]
        chances = [0.0, *(float(this.log_incomplete) for this in before)]
        return np.cumsum(np.array(lengths)), np.cumsum(np.array(chances))

    def quantile(self, q: float) -> Any:
        """The smallest x with P(J ≤ x) ≥ q, ∞ where it is not reached: with n attempts lost before the last one.

        For one timeout n (t+c) + F̃⁻¹(1 − (1−q)/(1−F̃(t))ⁿ).
        """
        if (law := self._failing_law) is not None:
            this = self.rounds[0]
            return lattice.quantile(law, q, this.length, this.pause, self.mean, self.std)
        target = np.log1p(-q)
        if self.starts is not None:
            left = (1 - q) * (1 + derived.ROUNDING)
            low, high = 0.0, float(self.starts[:, -1].max()) + self.rounds[-1].length
            for _ in range(50):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if self.survival(middle) > left else (low, middle)
            return high if self.survival(high) <= left else np.inf
        starts, reached = self._beginnings
        i = int(np.count_nonzero(reached[1:] > target + derived.ROUNDING))
        this, left = self.rounds[i], target - reached[i]
        F, log_out = this.moments(0)[0], this.log_incomplete
        with np.errstate(all="ignore"):
            lost = np.maximum(np.ceil(np.where(F > 0, left / log_out, 1.0) * (1 - derived.ROUNDING)) - 1.0, 0.0)
            level = np.clip(-np.expm1(left + product(lost, -log_out)), 0.0, F)
            # a timeout of ∞ that is never reached at this level (ρ ≥ 1 − q) leaves the quantile infinite
            again = np.isfinite(this.length) & (self.repeats and i == len(self.rounds) - 1)
            enough = (F > 0) & np.where(lost > 0, again, -np.expm1(left) * (1 - derived.ROUNDING) <= F)
            age = this.inverse(np.where(enough, level, 0.0))
            return np.where(enough, starts[i] + product(lost, this.length + this.pause) + age, np.inf)

    def survival(self, x: ArrayLike) -> Any:
        """P(J > x); with several rounds x is a number."""
        if (law := self._failing_law) is not None:
            return lattice.survival(law, float(np.asarray(x)), self.rounds[0].length, self.rounds[0].pause)
        if self.starts is not None:
            ages = (np.asarray(x) - self.starts).T
            alive = [np.where(age >= 0, this.log_alive(age), 0.0) for this, age in zip(self.rounds, ages, strict=True)]
            return np.exp(np.sum(alive, axis=0)).mean()
        return np.exp(self.log_survival(x))

    def log_survival(self, x: ArrayLike) -> Any:
        """The log of P(J > x), accurate in both tails: n log(1 − F̃(t)) + log(1 − F̃(x − n(t+c))) for one timeout."""
        starts, reached = self._beginnings
        first, at = self.rounds[0].law, np.asarray(x, dtype=np.float64)
        if len(self.rounds) > 1 or first is None or first.jumps is not None:
            at = at * (1 + derived.ROUNDING)  # 0.3 + 0.3 + 0.1 must reach 0.7 in spite of rounding
        i = int(np.count_nonzero(starts[1:] <= at)) if starts.size > 1 else 0
        this, since = self.rounds[i], at - starts[i]
        if not self.repeats or i < starts.size - 1:
            return reached[i] + this.log_alive(since)
        period, log_out = this.length + this.pause, this.log_incomplete
        with np.errstate(all="ignore"):
            n = np.where(np.isfinite(period) & (period > 0), np.floor(since / period), 0.0)
            n = np.where(np.isfinite(n), n, 0.0)
            out = reached[i] - product(n, -log_out) + this.log_alive(since - product(n, period))
            at_once = (period == 0) & (this.moments(0)[0] > 0)  # any number of attempts at 0 takes no time
        return np.where(at_once, -np.inf, out)

    @cached_property
    def _failing_law(self) -> Law | None:
        """The law of attempts that may fail visibly, for the lattice; an error if they are not those of one timeout."""
        if not any(this.failing for this in self.rounds):
            return None
        if len(self.rounds) > 1 or not self.repeats or self.rounds[0].law is None:
            raise RestartError(
                "the distribution of the completion time is not computed for this strategy under visible failures: "
                "read failures as completed or as lost (--failed), or ask for the mean"
            )
        return self.rounds[0].law


def product(weight: Any, value: Any) -> Any:
    """The product weight × value, where a weight of 0 wins over an infinite value."""
    if isinstance(weight, float) and isinstance(value, float):
        return weight * value if weight > 0 and value > 0 else 0.0
    return np.where(weight > 0, weight * np.where(weight > 0, value, 0.0), 0.0)


def divided(value: Any, by: Any, otherwise: float = np.inf) -> Any:
    """The quotient value/by, `otherwise` where that is not positive."""
    with np.errstate(all="ignore"):
        return np.where(by > 0, np.divide(value, by), otherwise)


def restarted(law: Law, t_inf: ArrayLike, cost: float) -> Plan:
    """Attempts with one timeout, or with each of several, repeated for ever."""
    return Plan((attempt(law, t_inf, pause=cost),), repeats=True)


def attempt(law: Law, length: ArrayLike, *, pause: float = 0.0, copies: int = 1) -> Round:
    """One attempt with a timeout; `law` is that of the first of `copies` that run side by side."""
    t, failing = np.asarray(length, dtype=np.float64), derived.has_failures(law)
    out = derived.still_out(law, t)

    def number(values: Floats) -> Any:
        return values if t.ndim else float(values)

    @cache
    def moments(n: int) -> tuple[Any, Any]:
        cut = product(out, t**n) if n else np.where(np.isinf(t), 0.0, out)
        done = law.partial_moment(n, t) if n else law.cdf(t)
        return number(done), number(cut + law.failed_moment(n, t) if failing else cut)

    return Round(
        number(t),
        moments,
        p_incomplete=number(out + law.failed(t) if failing else out),
        p_under_way=number(out),
        submissions=float(copies),
        law=law,
        pause=pause,
    )


def known_moments(
    p_done: float, p_goes_on: float, mean: float, second: float, lost: float
) -> Callable[[int], tuple[float, float]]:
    """The moments of a round from E[time], E[time²] and `lost` = E[time; the next one follows]."""
    table = [(p_done, p_goes_on), (mean - lost if np.isfinite(lost) else 0.0, lost), (second, 0.0)]

    def moments(n: int) -> tuple[float, float]:
        if n > 2:
            raise _not_beyond_the_second()
        return table[n]

    return moments


def _not_beyond_the_second() -> RestartError:
    return RestartError("moments above the second are known for timeouts only; take moment:2, std or a quantile")


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
    p_incomplete = under_way + float(failed[-1])
    goes_on = p_incomplete if np.isfinite(length) else float(failed[-1])
    return Round(
        length,
        known_moments(1.0 - p_incomplete, goes_on, mean, second, lost),
        p_incomplete=p_incomplete,
        p_under_way=under_way,
        submissions=submissions,
        job_seconds=used,
        survival=None if failing else (lambda u: at(u).alive),
        ages=np.empty(0) if failing else edges,
        pause=pause,
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
