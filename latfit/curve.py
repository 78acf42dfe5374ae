"""The one Kaplan–Meier estimate and the one E_J on data, as rows of counts at rising times.

One sample, 10⁵ groups, the strata of a log, a thousand resamples and the memories of a tracker are all rows of arrays.
A visible failure is a competing risk: it ends an attempt, which is then submitted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from latfit.numbers import Bools, Floats, Ints
from latfit.sample import CENSORED, COMPLETED, FAILED, LatencySample, Tally

TIE = 1e-12  # relative difference below which two values of E_J are equal
MIN_COMPLETIONS = 5  # completions at or below a timeout: the argmin of a sample may rest on one lucky latency
INSURANCE = 2.0  # times the last completion: the timeout where every probe came back

NOTHING = np.zeros((1, 1))  # counts that are 0 in every row at every time


def survival(hazard: Floats) -> Floats:
    """S = Π (1 − h), the product-limit estimate (Kaplan and Meier 1958), along the last axis."""
    return np.asarray(np.cumprod(np.maximum(1.0 - hazard, 0.0), axis=-1), dtype=np.float64)


def weights_of_ended(until: Floats, given_up: Bools) -> Floats:
    """The inverse probability that an attempt was not given up before `until`: Kaplan–Meier's masses, n times."""
    weight = np.ones(until.size)
    if given_up.any():
        order = np.lexsort((given_up, until))  # what ended at a time was still at risk of being given up there
        with np.errstate(divide="ignore", invalid="ignore"):
            kept = survival(given_up[order] / np.arange(until.size, 0, -1))
            weight[order] = 1 / np.concatenate([[1.0], kept[:-1]])
    return weight


def masses(S: Floats, hazard: Floats) -> Floats:
    """S(t−) h: the probability of ending at each time by the risk with this hazard (Aalen and Johansen 1978)."""
    mass = hazard.copy()
    mass[..., 1:] *= S[..., :-1]
    return mass


def hazards(events: Floats, at_risk: Floats) -> Floats:
    """d/n at each time, 0 where nobody is at risk."""
    return np.divide(events, at_risk, out=np.zeros_like(at_risk), where=at_risk > 0)


def expected_duration(F: Floats, W: Floats, cost: Floats | float = 0.0) -> Floats:
    """E_J = (W + c (1 − F))/F, ∞ where F = 0: what does not complete is repeated (Glatard et al. 2006, eq. 6)."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        spent = W + cost * (1.0 - F) if np.any(cost) else W
        return np.where(F > 0, spent / F, np.inf)


@dataclass(frozen=True, eq=False)
class Counts:
    """How many completed, failed and were censored at each time of each row.

    `times` is (B, k), or (1, k) where all rows share them; a row with fewer times repeats its last one. Those censored
    from one time until just before the next are counted at the first: they were at risk there. Those censored before
    the first return of a row were never at risk, and are left out. `lost` (B,) are at risk for ever.
    """

    times: Floats
    completed: Floats
    failed: Floats
    censored: Floats
    lost: Floats

    @classmethod
    def of_sample(cls, sample: LatencySample) -> Counts:
        """One row; it has no time where nothing returned."""
        times = sample.completed.values
        if sample.failed.total:
            times = np.union1d(times, sample.failed.values)

        def counts(tally: Tally) -> Floats:
            if np.array_equal(tally.values, times):
                return tally.counts[None].astype(np.float64)
            place = np.searchsorted(times, tally.values, side="right") - 1
            inside = place >= 0
            return np.bincount(place[inside], tally.counts[inside], minlength=times.size)[None].astype(np.float64)

        failed, censored = (counts(t) if t.total else NOTHING for t in (sample.failed, sample.censored))
        return cls(times[None], counts(sample.completed), failed, censored, np.array([float(sample.lost)]))

    @classmethod
    def of_samples(cls, samples: Sequence[LatencySample]) -> Counts:
        if len(samples) == 1:
            return cls.of_sample(samples[0])
        tallies = [tally for sample in samples for tally in (sample.completed, sample.failed, sample.censored)]
        sizes = np.array([tally.values.size for tally in tallies])
        row, status = np.repeat(np.divmod(np.arange(sizes.size), 3), sizes, axis=1)
        latency, weight = (np.concatenate([getattr(t, name) for t in tallies]) for name in ("values", "counts"))
        lost = np.array([float(sample.lost) for sample in samples])
        if status.any():  # completions alone are in order already
            order = np.lexsort((status, latency, row))
            row, latency, status, weight = row[order], latency[order], status[order], weight[order]
        # entries are sorted by row, latency and status, so that at equal times returns come before the censored
        new = status <= FAILED
        new[1:] &= (row[1:] != row[:-1]) | (latency[1:] != latency[:-1])
        steps = np.bincount(row[new], minlength=lost.size)
        place = np.cumsum(new) - 1 - (np.cumsum(steps) - steps)[row]  # −1 for those censored before the first return
        shape = lost.size, int(steps.max(initial=1))
        times = np.zeros(shape)
        times[row[new], place[new]] = latency[new]
        np.maximum.accumulate(times, axis=1, out=times)
        cell = row * shape[1] + place

        def counts(code: int) -> Floats:
            chosen = (status == code) & (place >= 0)
            if code != COMPLETED and not chosen.any():
                return NOTHING
            return np.bincount(cell[chosen], weight[chosen], minlength=times.size).reshape(shape).astype(np.float64)

        return cls(times, counts(COMPLETED), counts(FAILED), counts(CENSORED), lost)

    @cached_property
    def at_risk(self) -> Floats:
        """(B, k) how many had neither returned nor been censored before each time."""
        leaving = self.completed + self.failed + self.censored
        return np.cumsum(leaving[:, ::-1], axis=1)[:, ::-1] + self.lost[:, None]

    def merged(self, ends: Ints, most: int) -> Counts:
        """One row with about `most` times: the others between `ends` (indices) in groups that lose equal shares.

        Returns are counted at the mean of their group, which keeps ∫ S beyond it where nobody is censored before.
        """
        returned = (self.completed + self.failed)[0]
        leaving = np.cumsum((returned + self.censored[0]) / self.at_risk[0])
        group = (leaving * (most / leaving[-1])).astype(np.int64)
        starts = np.union1d(np.flatnonzero(np.diff(group, prepend=-1)), ends[ends < returned.size])
        parts = (np.broadcast_to(part, self.times.shape)[0] for part in (self.completed, self.failed, self.censored))
        completed, failed, censored = (np.add.reduceat(part, starts)[None] for part in parts)
        times = np.add.reduceat(self.times[0] * returned, starts) / np.add.reduceat(returned, starts)
        return Counts(times[None], completed, failed, censored, self.lost)

    def curves(self) -> StepCurves:
        """Kaplan–Meier; where nobody is censored before the last return the product telescopes: exact quotients."""
        returned = self.completed + self.failed if self.failed.any() else self.completed
        probes = returned.sum(axis=1) + self.censored.sum(axis=1) + self.lost
        early = np.zeros(probes.size, dtype=bool)
        if self.censored.any():
            last_return = returned.shape[1] - 1 - np.argmax(returned[:, ::-1] > 0, axis=1)
            early = self.censored.any(axis=1) & (np.argmax(self.censored > 0, axis=1) < last_return)
        completed = np.cumsum(self.completed, axis=1)
        if not early.all():
            n = np.where(probes > 0, probes, 1.0)[:, None]
            F = completed / n
            S = (n - (completed if returned is self.completed else np.cumsum(returned, axis=1))) / n
        if early.any():
            limit_S = survival(hazards(returned, self.at_risk))
            limit_F = np.cumsum(masses(limit_S, hazards(self.completed, self.at_risk)), axis=1)
            limit_F = np.minimum(limit_F, 1.0)  # a sum may round to more
            F = limit_F if early.all() else np.where(early[:, None], limit_F, F)
            S = limit_S if early.all() else np.where(early[:, None], limit_S, S)
        return StepCurves(self.times, F, S, _integral(self.times, S), completed, probes)


def _integral(times: Floats, S: Floats) -> Floats:
    """W(t) = ∫₀ᵗ S at each time; in place, because fresh memory costs more than the arithmetic."""
    W = np.empty(S.shape)
    W[:, :1] = times[:, :1]
    np.subtract(times[:, 1:], times[:, :-1], out=W[:, 1:])
    W[:, 1:] *= S[:, :-1]
    return np.asarray(np.cumsum(W, axis=1, out=W))


@dataclass(frozen=True, eq=False)
class KaplanMeier:
    """The product-limit estimate of one sample, with failures as a competing risk.

    At each time of a return the arrays hold n(t), how many were still out just before; S(t) = Π (1 − d/n); the
    probability F̃(t) = Σ S(t−) d_completed/n of having completed; G̃(t), the same for failures (S + F̃ + G̃ = 1); and
    Greenwood's sum Σ d/(n (n − d)).
    """

    times: Floats
    at_risk: Ints
    still_out: Floats
    completed: Floats
    failed: Floats
    greenwood: Floats


def kaplan_meier(sample: LatencySample) -> KaplanMeier:
    """The product-limit estimate of being still out; lost probes are at risk for ever.

    >>> kaplan_meier(LatencySample.of([1.0, 2.0, 2.0], failed=[3.0], lost=1)).still_out.round(3).tolist()
    [0.8, 0.4, 0.2]
    """
    counts = Counts.of_sample(sample)
    curve, at_risk = counts.curves(), counts.at_risk
    failed, returned = np.zeros_like(at_risk), counts.completed
    if sample.failed.total:
        failed = np.minimum(np.cumsum(masses(curve.S, hazards(counts.failed, at_risk)), axis=1), 1.0)
        returned = counts.completed + counts.failed
    with np.errstate(divide="ignore"):
        greenwood = np.cumsum(returned / (at_risk * (at_risk - returned)), axis=1)
    arrays = (curve.S, curve.F, failed, greenwood)
    return KaplanMeier(counts.times[0], at_risk[0].astype(np.int64), *(array[0] for array in arrays))


@dataclass(frozen=True, eq=False)
class StepCurves:
    """At each time t of each row: F̃(t), S(t), W(t) = ∫₀ᵗ S and the completions at or below t.

    `times` is (B, k), or (1, k) where all rows share them. Where a row has no more times its last one is repeated.
    `probes` (B,) counts everything that was at risk.
    """

    times: Floats
    F: Floats
    S: Floats
    W: Floats
    completed: Floats
    probes: Floats
    _E_J: dict[float, Floats] = field(default_factory=dict, init=False, repr=False)  # by cost

    @classmethod
    def of_masses(cls, times: Floats, completed: Floats, failed: Floats) -> StepCurves:
        """One row of the probabilities of completing and of failing at each time."""
        F = np.cumsum(completed)[None]
        S = np.maximum(1.0 - np.cumsum(completed + failed), 0.0)[None]
        return cls(times[None], F, S, _integral(times[None], S), F, np.ones(1))

    def E_J(self, cost: Floats | float = 0.0) -> Floats:
        """E_J = (∫₀ᵗ S + c (1 − F̃))/F̃ at every time, ∞ where nothing has completed; a cost for all or for each row."""
        if not isinstance(cost, float):
            return expected_duration(self.F, self.W, np.asarray(cost, dtype=np.float64).reshape(-1, 1))
        if cost not in self._E_J:  # every question about a curve asks for it
            self._E_J[cost] = expected_duration(self.F, self.W, cost)
        return self._E_J[cost]

    def at(self, t: Floats) -> tuple[Floats, Floats, Floats]:
        """F̃, S and ∫₀ᵗ S of each row at a time t (B,) of its own; of a single row at any number of times."""
        rows: Ints | int = np.arange(self.F.shape[0]) if self.F.shape[0] > 1 else 0
        if self.times.shape[0] == 1:
            k = np.searchsorted(self.times[0], t, side="right") - 1
        else:
            k = np.count_nonzero(self.times <= np.asarray(t)[:, None], axis=1) - 1
        begun, k = k >= 0, np.maximum(k, 0)
        F, S = np.where(begun, self.F[rows, k], 0.0), np.where(begun, self.S[rows, k], 1.0)
        before, start = self.W[rows, k], np.broadcast_to(self.times, self.F.shape)[rows, k]
        with np.errstate(invalid="ignore"):
            return F, S, np.where(begun, before + np.where(S > 0, S * (t - start), 0.0), t)

    def E_J_at(self, t: Floats, cost: Floats | float = 0.0) -> Floats:
        F, _, W = self.at(t)
        return expected_duration(F, W, cost)

    def E_J_after(self, delay: Floats, cost: Floats | float = 0.0) -> Floats:
        """(B, k) E_J some time after each time, before anything else returns."""
        return expected_duration(self.F, self.W + self.S * delay, cost)

    def with_outliers(self, rho: Floats, *, exactly: bool = False) -> StepCurves:
        """The same curves where the share that is out at the end is (at least) rho (B,): F̃ and 1 − S shrink alike."""
        scale = ((1.0 - rho) / np.maximum(1.0 - self.S[:, -1], 1e-300))[:, None]
        scale = scale if exactly else np.minimum(1.0, scale)
        if (scale == 1.0).all():
            return self
        F, S = scale * self.F, 1.0 - scale * (1.0 - self.S)
        W = self.times - scale * (self.times - self.W)
        return StepCurves(self.times, F, S, W, self.completed, self.probes)

    def allowed(self, smallest: Floats | float, completions: int = MIN_COMPLETIONS) -> Bools:
        """Where a timeout may lie: enough completions at or below it, not below the clock's step, above 0."""
        step = np.asarray(smallest, dtype=np.float64).reshape(-1, 1)
        enough = (self.completed >= completions - 1e-9) & (self.times >= step * (1 - 1e-12)) & (self.times > 0)
        enough[:, :1] &= self.completed[:, :1] > 0
        enough[:, 1:] &= self.completed[:, 1:] > self.completed[:, :-1]  # where something completes
        return enough

    def exact(self, cost: Floats | float, allowed: Bools) -> tuple[Ints, Floats]:
        """(B,) the first index of the least E_J, and E_J there: the papers' optimum of the data as they stand."""
        E = self.E_J(cost) if allowed.all() else np.where(allowed, self.E_J(cost), np.inf)
        least = E.min(axis=1)
        return (least[:, None] * (1 + TIE) >= E).argmax(axis=1), least

    def robust_argmin(self, cost: Floats | float, allowed: Bools) -> tuple[Ints, Floats]:
        """(B,) the index to choose, and the timeout there: the least log Ê + s, if that clearly beats waiting.

        s = √((1 − F̂)/(n F̂)) is the standard error of log F̂: where E_J is flat on the left the plain argmin rests on few
        completions and is too early, which costs more than too late. ρ is never taken as less than half an outlier,
        ρ̂ ≥ ½/(n+1). Where log Ê + 1.5 s is not below log Ê at the last completion, nothing that completes is cut; where
        nobody is out either, the timeout is twice the last completion, since a later one may come. At most ten
        submissions a job, where that is possible.
        The numbers were chosen by `scripts/calibrate regret`.
        """
        (k,) = self.robust_argmins((0.0,), cost, allowed)
        rows = np.arange(k.size)
        last = np.where(allowed.any(axis=1), allowed.shape[1] - 1 - allowed[:, ::-1].argmax(axis=1), k)
        times = np.broadcast_to(self.times, self.F.shape)[rows, k]
        return k, np.where((k == last) & (self.S[rows, k] <= 0), INSURANCE * times, times)

    def robust_argmins(self, tilts: Sequence[Floats | float], cost: Floats | float, allowed: Bools) -> list[Ints]:
        """(B,) the index that is chosen where each of the tilts is added to log Ê."""
        few_submissions = allowed & (self.F >= 0.1)
        allowed = np.where(few_submissions.any(axis=1, keepdims=True), few_submissions, allowed)
        curves = self.with_outliers(0.5 / (self.probes + 1.0))
        rows = np.arange(self.F.shape[0])
        with np.errstate(divide="ignore", invalid="ignore"):
            plain = np.where(allowed, np.log(curves.E_J(cost)), np.inf)
            s = np.where(allowed, np.sqrt((1.0 - curves.F) / (self.probes[:, None] * curves.F)), 0.0)
        last = allowed.shape[1] - 1 - allowed[:, ::-1].argmax(axis=1)
        chosen = []
        for tilt in tilts:
            log_E = np.where(allowed, plain + tilt, np.inf) if np.any(tilt) else plain  # a tilt may be NaN elsewhere
            score = log_E + s
            k = (score.min(axis=1, keepdims=True) + TIE >= score).argmax(axis=1)
            end = np.where(allowed.any(axis=1), last, k)
            with np.errstate(invalid="ignore"):
                unsure = ~(log_E[rows, k] + 1.5 * s[rows, k] < log_E[rows, end])
            chosen.append(np.where(unsure, end, k))
        return chosen

    def windows(self, at: Ints, limits: Sequence[Floats], cost: Floats | float = 0.0) -> list[tuple[Floats, Floats]]:
        """The ends of E_J ≤ limit around `at`; it rises with slope S/F̃, falls at returns; ∞: all later qualify."""
        rows, columns = np.arange(self.F.shape[0]), np.arange(self.F.shape[1])
        times, E = np.broadcast_to(self.times, self.F.shape), self.E_J(cost)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where(self.S > 1e-300, self.S / self.F, 0.0)
            crest = np.concatenate([times[:, 1:], np.full((rows.size, 1), np.inf)], axis=1) - times  # the time ahead
            crest[times == times[:, -1:]] = np.inf
            crest[slope <= 0] = 0.0
            crest *= slope
            crest += E
            crest[self.F <= 0] = np.inf
        ends = []
        for limit in limits:
            too_high = crest > limit[:, None]
            before = too_high & (columns < at[:, None])
            begin = np.where(before.any(axis=1), columns.size - before[:, ::-1].argmax(axis=1), 0)
            later = too_high & (columns >= at[:, None])
            j = later.argmax(axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                end = times[rows, j] + (limit - E[rows, j]) / slope[rows, j]
            ends.append((times[rows, begin], np.where(later.any(axis=1), np.fmax(times[rows, at], end), np.inf)))
        return ends
