"""The one engine for E_J on data: Kaplan–Meier curves of many samples at once, as rows of arrays.

A sample, ten thousand groups and a thousand resamples of one sample are all rows of counts at rising times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from latfit.numbers import Bools, Floats, Ints

TIE = 1e-12  # figures this close are equal
MIN_COMPLETIONS = 5  # the argmin of a sample may rest on one lucky latency
CLEARLY = 1.5  # standard errors by which a timeout must beat waiting
MOST_SUBMISSIONS = 10.0  # a job, in what is recommended: no system is asked for more without being told so
INSURANCE = 2.0  # times the last completion, where nobody was ever out


@dataclass(frozen=True, eq=False)
class StepCurves:
    """At each time t of each row: F̃(t), S(t), W(t) = ∫₀ᵗ S and the completions at or below t.

    `times` is (B, k), or (1, k) where all rows share them; `width` are the steps between them. Where a row has
    no more times its last one is repeated. `probes` (B,) counts everything that was at risk.
    """

    times: Floats
    F: Floats
    S: Floats
    W: Floats
    done: Floats
    probes: Floats
    _known: dict[float, Floats] = field(default_factory=dict, init=False, repr=False)  # E_J by cost

    @classmethod
    def of_counts(cls, times: Floats, done: Floats, gone: Floats, out: Floats, lost: Floats) -> StepCurves:
        """From counts at `times`: completions, failures, and those censored at a time or before the next one.

        S = Π (1 − d/n), F̃ = Σ S₋ d_completed/n (Aalen and Johansen 1978); `lost` (B,) are at risk for ever.
        Where nothing is censored between two returns the product telescopes, and the quotients are exact.
        """
        returned = done + gone if gone.any() else done
        leaving = returned + out if out.any() else returned
        probes = leaving.sum(axis=1) + lost
        early = np.zeros(probes.size, dtype=bool)
        if out.any():
            rows = np.arange(probes.size)
            last = returned.shape[1] - 1 - np.argmax(returned[:, ::-1] > 0, axis=1)
            early = np.cumsum(out, axis=1)[rows, last] - out[rows, last] > 0
        total = np.cumsum(done, axis=1)
        if not early.all():
            all_at_once = np.where(probes > 0, probes, 1.0)[:, None]
            F = total / all_at_once
            S = 1.0 - (np.cumsum(returned, axis=1) / all_at_once if returned is not done else F)
        if early.any():
            at_risk = np.cumsum(leaving[:, ::-1], axis=1)[:, ::-1] + lost[:, None]
            each = np.divide(1.0, at_risk, out=np.zeros_like(at_risk), where=at_risk > 0)
            cut_S = np.asarray(np.cumprod(1.0 - returned * each, axis=1), dtype=np.float64)
            cut_F = np.minimum(np.cumsum(_before(cut_S) * done * each, axis=1), 1.0)  # a sum may round to more
            S, F = (cut_S, cut_F) if early.all() else (
                np.where(early[:, None], cut_S, S), np.where(early[:, None], cut_F, F))  # fmt: skip
        W = np.empty(S.shape)  # in place: fresh memory costs more than the arithmetic
        W[:, :1] = times[:, :1]
        np.subtract(times[:, 1:], times[:, :-1], out=W[:, 1:])
        W[:, 1:] *= S[:, :-1]
        return cls(times, F, S, np.cumsum(W, axis=1, out=W), total, probes)

    def E_J(self, cost: Floats | float = 0.0) -> Floats:
        """E_J = (∫₀ᵗ S + c (1 − F̃))/F̃ at every time, ∞ where nothing has completed."""
        if isinstance(cost, float):  # every question about one curve asks for it
            if cost not in self._known:
                self._known[cost] = self._at_cost(np.full((1, 1), cost))
            return self._known[cost]
        return self._at_cost(np.asarray(cost, dtype=np.float64).reshape(-1, 1))

    def _at_cost(self, c: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            dear = self.W + c * (1.0 - self.F) if c.any() else self.W + 0.0
            return np.where(self.F > 0, np.divide(dear, self.F, out=dear), np.inf)

    def E_J_at(self, t: Floats, cost: Floats | float = 0.0) -> Floats:
        """(B,) E_J of each row at a time of its own."""
        rows = np.arange(self.F.shape[0])
        at = self.index(t)
        begun = at >= 0
        k = np.maximum(at, 0)
        F, start = self.F[rows, k], np.broadcast_to(self.times, self.F.shape)[rows, k]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            S, past = self.S[rows, k], t - start
            W = self.W[rows, k] + np.where(S > 0, S * np.where(S > 0, past, 0.0), 0.0)
            return np.where(begun & (F > 0), (W + np.asarray(cost) * (1.0 - F)) / F, np.inf)

    def index(self, t: Floats) -> Ints:
        """(B,) the last time at or before t of each row, −1 before the first; of repeated times the first."""
        times = np.broadcast_to(self.times, self.F.shape)
        after = times > np.asarray(t)[:, None]
        count = np.where(after.any(axis=1), after.argmax(axis=1), times.shape[1]) - 1
        first = (times >= times[np.arange(count.size), np.maximum(count, 0)][:, None]).argmax(axis=1)
        return np.where(count < 0, -1, first)

    def with_outliers(self, rho: Floats, *, exactly: bool = False) -> StepCurves:
        """The same curves where the share that is out at the end is (at least) rho (B,): F̃ and 1 − S shrink alike."""
        s = ((1.0 - rho) / np.maximum(1.0 - self.S[:, -1], 1e-300))[:, None]
        s = s if exactly else np.minimum(1.0, s)
        if (s == 1.0).all():
            return self
        times = np.broadcast_to(self.times, self.F.shape)
        return StepCurves(self.times, s * self.F, 1.0 - s * (1.0 - self.S), times - s * (times - self.W), self.done,
                          self.probes)  # fmt: skip

    def allowed(self, smallest: Floats | float, completions: int = MIN_COMPLETIONS) -> Bools:
        """Where a timeout may lie: enough completions at or below it, not below the clock's step, above 0."""
        step = np.asarray(smallest, dtype=np.float64).reshape(-1, 1)
        may = (self.done >= completions - 1e-9) & (self.times >= step * (1 - 1e-12)) & (self.times > 0)
        may[:, :1] &= self.done[:, :1] > 0
        may[:, 1:] &= self.done[:, 1:] > self.done[:, :-1]  # where something completes
        return may

    def exact(self, cost: Floats | float, allowed: Bools) -> tuple[Ints, Floats]:
        """(B,) the first index of the least E_J, and E_J there: the papers' optimum of the data as they stand."""
        E = self.E_J(cost) if allowed.all() else np.where(allowed, self.E_J(cost), np.inf)
        least = E.min(axis=1)
        return (least[:, None] * (1 + TIE) >= E).argmax(axis=1), least

    def careful(self, cost: Floats | float, allowed: Bools) -> tuple[Ints, Floats]:
        """(B,) the index to choose, and the timeout there: the least log Ê + s, if that clearly beats waiting.

        s = √((1 − F̂)/(n F̂)) is the standard error of log F̂: where E_J is flat on the left the plain argmin rests on few
        completions and is too early, which costs more than too late. ρ is never taken as less than half an outlier,
        ρ̂ ≥ ½/(n+1). Where log Ê + 1.5 s is not below log Ê at the last completion, nothing that completes is cut; where
        nobody is out either, the timeout is twice the last completion, since a later one may come. At most ten
        submissions a job, where that is possible.
        The numbers were chosen by `scripts/calibrate regret`.
        """
        (k,) = self.careful_under((0.0,), cost, allowed)
        rows = np.arange(k.size)
        last = np.where(allowed.any(axis=1), allowed.shape[1] - 1 - allowed[:, ::-1].argmax(axis=1), k)
        times = np.broadcast_to(self.times, self.F.shape)[rows, k]
        return k, np.where((k == last) & (self.S[rows, k] <= 0), INSURANCE * times, times)

    def careful_under(self, tilts: Sequence[Floats | float], cost: Floats | float, allowed: Bools) -> list[Ints]:
        """(B,) the index that is chosen where each of the tilts is added to log Ê."""
        often = allowed & (self.F >= 1 / MOST_SUBMISSIONS)
        allowed = np.where(often.any(axis=1, keepdims=True), often, allowed)
        curves = self.with_outliers(0.5 / (self.probes + 1.0))
        rows = np.arange(self.F.shape[0])
        with np.errstate(divide="ignore", invalid="ignore"):
            plain = np.where(allowed, np.log(curves.E_J(cost)), np.inf)
            s = np.where(allowed, np.sqrt((1.0 - curves.F) / (self.probes[:, None] * curves.F)), 0.0)
        last = allowed.shape[1] - 1 - allowed[:, ::-1].argmax(axis=1)
        found = []
        for tilt in tilts:
            log_E = np.where(allowed, plain + tilt, np.inf) if np.any(tilt) else plain  # a tilt may be NaN elsewhere
            score = log_E + s
            k = (score.min(axis=1, keepdims=True) + TIE >= score).argmax(axis=1)
            end = np.where(allowed.any(axis=1), last, k)
            with np.errstate(invalid="ignore"):
                unsure = ~(log_E[rows, k] + CLEARLY * s[rows, k] < log_E[rows, end])
            found.append(np.where(unsure, end, k))
        return found

    def windows(self, at: Ints, limits: Sequence[Floats], cost: Floats | float = 0.0) -> list[tuple[Floats, Floats]]:
        """For each limit (B,) the ends of the connected set of timeouts around index `at` with E_J ≤ limit.

        From each time E_J rises with slope S/F̃, and only the next return brings it down: the window begins at a
        return and ends between two; ∞ where every later timeout qualifies.
        """
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
        found = []
        for limit in limits:
            too_high = crest > limit[:, None]
            before = too_high & (columns < at[:, None])
            begin = np.where(before.any(axis=1), columns.size - before[:, ::-1].argmax(axis=1), 0)
            later = too_high & (columns >= at[:, None])
            j = later.argmax(axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                end = times[rows, j] + (limit - E[rows, j]) / slope[rows, j]
            found.append((times[rows, begin], np.where(later.any(axis=1), np.fmax(times[rows, at], end), np.inf)))
        return found


def _before(S: Floats) -> Floats:
    """S just before each time."""
    return np.concatenate([np.ones((S.shape[0], 1)), S[:, :-1]], axis=1)
