"""Power tails: the Pareto law of the second kind (Lomax) and the log-normal–Pareto law of Glatard et al."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from math import log
from typing import Any

import numpy as np
from scipy.special import betainc, betaincc, ndtr

from latfit.errors import LawError
from latfit.laws.base import ContinuousLaw, Parameter, register
from latfit.laws.kernel import ExponentialLimit, Jet, Kernel
from latfit.laws.samples import SampleBatch, weighted_sum
from latfit.numbers import Bools, Floats

NORMAL_REACH = 38.0  # standard deviations beyond which Φ is 0 or 1 in floating point


def log1p_ratio(t: Floats, a: float) -> Floats:
    """log(1 + t/a), even if t/a is beyond the largest float."""
    with np.errstate(all="ignore"):
        return np.where(t > a, np.log(t) - np.log(a) + np.log1p(a / t), np.log1p(t / a))


class _ParetoKernel(ExponentialLimit):
    """log S = −A with A = (r/b) log(1 + b t), log f = log r − A − log(1 + b x).

    u = (log r, log b) with r = ν/a, the hazard at 0, and b = 1/a; b → 0 is the exponential law.
    """

    log_params = ((0, -1), (1, -1))
    min_distinct = 1
    zero_allowed = True

    def starts(self, batch: SampleBatch) -> list[Floats]:
        """Five tails; given b and all that returned, ν = n/Σlog(1 + b x)."""
        starts = []
        for shift in (-3.0, -1.0, 1.0, 3.5, 7.0):
            log_b = shift - np.log(batch.mean_x)
            some = batch if batch.thinned is None else batch.thinned
            log_nu = -np.log(some.mean_of(np.log1p(np.exp(log_b)[:, None] * some.inner)))
            starts.append(np.array([log_nu + log_b, log_b]))
        return starts

    def density(self, batch: SampleBatch, u: Floats) -> Jet:
        r, b = np.exp(u)
        bx = b[:, None] * batch.inner
        share = bx / (1 + bx)
        log_sum, q, qq = (weighted_sum(batch.weights, part) for part in (np.log1p(bx), share, share * share))
        A = r / b * log_sum
        A_b = r / b * q - A  # ∂A/∂log b; ∂A/∂log r is A
        A_bb = -A_b - r / b * qq
        return Jet.of(batch.n * u[0] - A - log_sum, [batch.n - A, -A_b - q], [-A, -A_b, -A_bb - (q - qq)])

    def survival(self, t: Floats, u: Floats) -> Jet:
        r, b = np.exp(u)[:, :, None]
        share = b * t / (1 + b * t)
        A = r / b * np.log1p(b * t)
        A_b = r / b * share - A
        return Jet.of(-A, [-A, -A_b], [-A, -A_b, A_b + r / b * share**2])

    def near_exponential(self, log_rate: Floats, distance: float) -> Floats:
        return np.array([log_rate, log_rate + np.log(distance)])


@register
@dataclass(frozen=True)
class Pareto(ContinuousLaw):
    """Power tail (Pareto II, Lomax): moments below nu only. Glatard et al. 2006, §3.6."""

    name = "pareto"
    parameters = (Parameter("a", "positive", unit="time"), Parameter("nu", "positive"))
    formula = "F(t) = 1 - (a/(a+t))^nu"
    examples = ("pareto(a=100,nu=2.5)", "pareto(a=3,nu=0.8)", "pareto(a=2000,nu=20)")
    kernel = _ParetoKernel()
    a: float
    nu: float

    def _logsf(self, t: Floats) -> Floats:
        return -self.nu * log1p_ratio(t, self.a)

    def _logpdf(self, t: Floats) -> Floats:
        return log(self.nu) - log(self.a) - (self.nu + 1) * log1p_ratio(t, self.a)

    def _ppf(self, q: Floats) -> Floats:
        return self.a * np.expm1(-np.log1p(-q) / self.nu)

    def _partial_moment(self, n: int, t: Floats) -> Floats:
        """aⁿ n!/((nu−1)…(nu−n)) I_w(n+1, nu−n), w = t/(a + t); by quadrature where nu ≤ n or I_w loses digits."""
        if not n < self.nu < 1e3:
            return super()._partial_moment(n, t)
        x = t / self.a
        share = np.where(x < 1, betainc(n + 1, self.nu - n, x / (1 + x)), betaincc(self.nu - n, n + 1, 1 / (1 + x)))
        return share * float(np.prod([i * self.a / (self.nu - i) for i in range(1, n + 1)]))

    def draw(self, size: tuple[int, ...], rng: np.random.Generator) -> Floats:
        with np.errstate(over="ignore"):  # latencies beyond all floats are ∞
            return np.asarray(self.a * np.expm1(rng.standard_exponential(size) / self.nu))


class _Hybrid:
    """The log-normal–Pareto law at times t = t_min + v, for parameters u, t_min and t_max that broadcast with them.

    With α = min(1, v/(t_max − t_min))^k: `rest` = 1 − α, z = (log v − mu)/sigma, A = −log S of the Pareto law =
    (r/b) log(1 + b t) with r = nu/a and b = 1/a, and e = e^−A.
    """

    def __init__(self, t: Floats, v: Floats, u: Any, t_min: Any, t_max: Any) -> None:
        self.t, self.v, (mu, log_sigma, log_r, log_b, log_k) = t, v, u
        self.sigma, self.r, self.b, self.k = (np.exp(x) for x in (log_sigma, log_r, log_b, log_k))
        log_v = np.log(v)
        self.kappa = self.k * np.minimum(log_v - np.log(t_max - t_min), 0.0)  # d log(alpha)/d log k
        self.alpha, self.rest = np.exp(self.kappa), -np.expm1(self.kappa)
        self.z = (log_v - mu) / self.sigma
        self.A = self.r / self.b * np.log1p(self.b * self.t)
        self.e = np.exp(-self.A)

    def density(self) -> Floats:
        """D = v f = (1 − α) φ(z)/sigma + α (v f_Pareto + k (F_Pareto − Φ(z))) up to t_max.

        Stores g = φ(z)/sigma, p = v f_Pareto, `gap` = F_Pareto − Φ(z), and the larger term of that in `wide`.
        """
        self.phi = np.exp(-0.5 * self.z * self.z) / np.sqrt(2 * np.pi)
        self.g = self.phi / self.sigma
        self.p = self.v * self.r / (1 + self.b * self.t) * self.e
        low = self.z < 0  # take the difference of cdfs or of survival functions, whichever are small
        more, less = np.where(low, -np.expm1(-self.A), ndtr(-self.z)), np.where(low, ndtr(self.z), self.e)
        self.gap, self.wide = more - less, np.maximum(more, less)
        return np.asarray(self.rest * self.g + self.alpha * (self.p + self.k * self.gap))

    def slopes(self) -> list[Floats]:
        """The derivatives of F in u, after `density`; stores those of A in log b."""
        H, self.q = self.r * self.t / (1 + self.b * self.t), self.b * self.t / (1 + self.b * self.t)
        self.A_b, self.A_bb = H - self.A, self.A - H * (1 + self.q)
        tail = self.alpha * self.e
        body = [-self.rest * self.g, -self.rest * self.z * self.phi]
        return [*body, tail * self.A, tail * self.A_b, self.alpha * self.kappa * self.gap]


def _log_curvature(grad: list[Floats], second: dict[tuple[int, int], Floats]) -> list[Floats]:
    """The upper triangle of the Hessian of log D from D_i/D and D_ij/D; missing ones are 0."""
    pairs = combinations_with_replacement(range(5), 2)
    return [second.get((i, j), 0.0) - grad[i] * grad[j] for i, j in pairs]


class _HybridKernel(Kernel):
    """u = (mu, log sigma, log nu/a, log 1/a, log k, t_min, t_max), which removes the ridge between a and nu.

    t_min, one step of the clock below the smallest latency, and t_max, the largest latency, are held.
    """

    log_params = ((1, 0, 0, 0, 0), (0, 1, 0, 0, 0), (0, 0, 0, -1, 0), (0, 0, 1, -1, 0), (0, 0, 0, 0, 1))
    held = ("t_min", "t_max")
    followed = 4

    def read(self, batch: SampleBatch) -> Floats:
        low, high = batch.extremes
        return np.array([np.maximum(low - batch.step, 0.0), high])

    def refused(self, batch: SampleBatch) -> list[tuple[Bools, str]]:
        used = np.broadcast_to(batch.weights > 0, np.broadcast_shapes(batch.weights.shape, batch.x.shape))
        key = np.sort(np.where(used, batch.x, np.nan), axis=1)
        distinct = (np.diff(key, axis=1) > 0).sum(axis=1) + 1
        few = np.broadcast_to(distinct, (batch.size,)) <= len(self.free)
        too_few = f"{self.law} has {len(self.free)} free parameters: as few distinct latencies do not determine them"
        exact = (batch.step == 0) & (batch.extremes[0] > 0)
        no_step = "without a clock step the law starts at the smallest latency, with density 0: use least squares"
        return [(few, too_few), (exact, no_step)]

    def starts(self, batch: SampleBatch) -> list[Floats]:
        """32 starts: 4 weights k × 4 Pareto tails through the 90th centile × 2 log-normal bodies from the quartiles."""
        t_min, top = self.read(batch)
        *quartiles, q9 = batch.quantiles((0.25, 0.5, 0.75, 0.9))
        q9 = np.maximum(q9, 1e-3 * top)
        low, middle, high = np.log(np.maximum(quartiles - t_min, 1e-6 * q9))
        sigma = np.maximum((high - low) / 1.349, 1e-3)
        starts = []
        for k, nu, shift in product((0.1, 0.4, 1.3, 3.5), (0.5, 1.0, 2.0, 5.0), (0.0, 0.4)):
            log_b = np.log((10 ** (1 / nu) - 1) / q9)
            tail = [np.log(nu) + log_b, log_b, np.full_like(log_b, np.log(k)), t_min, top]
            starts.append(np.array([middle - shift * sigma, np.log(sigma * (1 - shift)), *tail]))
        return starts

    def _at(self, t: Floats, u: Floats) -> _Hybrid:
        *free, t_min, t_max = u[:, :, None]
        return _Hybrid(t, np.maximum(t - t_min, 1e-300), free, t_min, t_max)

    def _is_law(self, u: Floats) -> Bools:
        """Whether the density is nowhere negative on a grid, and not concentrated on a single latency."""
        mu, log_sigma, *_, t_min, t_max = u[:, :, None]
        top = np.log(t_max - t_min)
        body = mu + np.exp(log_sigma) * np.linspace(-9, 9, 73)
        t = t_min + np.exp(np.concatenate([np.minimum(body, top), top - np.linspace(0, 12, 49)], axis=1))
        positive = (self._at(t, u).density() >= 0).all(axis=1)
        # beyond these the body or the turn is as narrow as one latency
        return np.asarray(positive & (np.exp(u[1]) > 1e-2) & (np.exp(u[4]) < 50.0))

    def density(self, batch: SampleBatch, u: Floats) -> Jet:
        """Σ w log f, log f = log D − log v."""
        m, w = self._at(batch.x, u), batch.weights
        D = m.density()
        m.slopes()
        turn, zz = m.k * m.gap, m.z * m.z
        T = m.p + turn
        aD = m.alpha / D
        wg, ak = m.rest * m.g / D, aD * m.k
        by_a, by_b = 1 - m.A, -m.q - m.A_b  # of log p in log r and log b
        pk, ke = aD * m.p, ak * m.e
        more, slope = ak * (1 + m.kappa), m.kappa * aD
        grad = [
            wg * m.z / m.sigma + ak * m.g,
            wg * (zz - 1) + ak * m.z * m.phi,
            pk * by_a + ke * m.A,
            pk * by_b + ke * m.A_b,
            aD * (m.kappa * (T - m.g) + turn),
        ]
        second = {
            (0, 0): (wg * (zz - 1) / m.sigma + ak * m.z * m.g) / m.sigma,
            (0, 1): wg * m.z * (zz - 3) / m.sigma + ak * m.g * (zz - 1),
            (0, 4): -slope * m.g * m.z / m.sigma + more * m.g,
            (1, 1): wg * ((zz - 1) ** 2 - 2 * zz) - ak * m.z * m.phi * (1 - zz),
            (1, 4): -slope * m.g * (zz - 1) + more * m.z * m.phi,
            (2, 2): pk * (by_a**2 - m.A) + ke * m.A * (1 - m.A),
            (2, 3): pk * (by_a * by_b - m.A_b) + ke * m.A_b * (1 - m.A),
            (2, 4): slope * m.p * by_a + more * m.e * m.A,
            (3, 3): pk * (by_b**2 - m.q * (1 - m.q) - m.A_bb) + ke * (m.A_bb - m.A_b**2),
            (3, 4): slope * m.p * by_b + more * m.e * m.A_b,
            (4, 4): aD * (m.kappa * (1 + m.kappa) * (T - m.g) + (2 * m.kappa + 1) * turn),
        }
        value = np.log(D) - np.log(m.v)

        def total(values: Floats) -> Floats:
            return weighted_sum(w, np.where(w > 0, values, 0.0))

        value = np.where(self._is_law(u), total(value), -np.inf)
        return Jet.of(value, [total(part) for part in grad], [total(h) for h in _log_curvature(grad, second)])

    def survival(self, t: Floats, u: Floats) -> Jet:
        """Log S with S = (1 − α) Φ(−z) + α (a/(a + t))^nu."""
        m = self._at(t, u)
        S, _ = m.rest * ndtr(-m.z) + m.alpha * m.e, m.density()
        grad = [-part / S for part in m.slopes()]
        w, a, c = m.rest, m.alpha * m.e, m.alpha * m.kappa
        second = {
            (0, 0): -w * m.z * m.g / m.sigma,
            (0, 1): -w * m.g * (m.z**2 - 1),
            (0, 4): c * m.g,
            (1, 1): w * m.z * m.phi * (1 - m.z**2),
            (1, 4): c * m.z * m.phi,
            (2, 2): a * m.A * (1 - m.A),
            (2, 3): a * m.A_b * (1 - m.A),
            (2, 4): c * m.e * m.A,
            (3, 3): a * (m.A_bb - m.A_b**2),
            (3, 4): c * m.e * m.A_b,
            (4, 4): c * (1 + m.kappa) * m.gap,
        }
        return Jet.of(np.log(S), grad, _log_curvature(grad, {pair: -part / S for pair, part in second.items()}))

    def cdf(self, t: Floats, u: Floats) -> tuple[Floats, Floats]:
        m = self._at(t, u)
        m.density()
        return m.rest * ndtr(m.z) - m.alpha * np.expm1(-m.A), np.stack(np.broadcast_arrays(*m.slopes()))

    def probability(self, t: Floats, u: Floats) -> Floats:
        m = self._at(t, u)
        return np.asarray(m.rest * ndtr(m.z) - m.alpha * np.expm1(-m.A))


@register
@dataclass(frozen=True)
class LogNormalPareto(ContinuousLaw):
    """Interpolation from a log-normal law at t_min to a Pareto law at t_max and beyond.

    F(t) = (1 − α) Φ((log(t − t_min) − mu)/sigma) + α (1 − (a/(a + t))^nu),
    α(t) = ((t − t_min)/(t_max − t_min))^k up to t_max, and 1 beyond it, so that F is proper.
    Glatard et al. 2006, eq. 14. Parameters for which F decreases somewhere are refused.
    """

    name = "lognormal-pareto"
    parameters = (
        Parameter("mu", "real", unit="log-time"),
        Parameter("sigma", "positive"),
        Parameter("a", "positive", unit="time"),
        Parameter("nu", "positive"),
        Parameter("k", "positive"),
        Parameter("t_min", "non-negative", unit="time"),
        Parameter("t_max", "positive", unit="time"),
    )
    formula = "F(t) = (1-w) Phi((log(t-t_min)-mu)/sigma) + w (1-(a/(a+t))^nu), w = min(1, (t-t_min)/(t_max-t_min))^k"
    examples = (
        "lognormal-pareto(mu=5,sigma=0.7,a=200,nu=1.4,k=0.4,t_min=50,t_max=9000)",
        "lognormal-pareto(mu=0,sigma=1,a=1,nu=3.5,k=1,t_min=0,t_max=10)",
    )
    kernel = _HybridKernel()
    tried_by = ("ls",)
    mu: float
    sigma: float
    a: float
    nu: float
    k: float
    t_min: float
    t_max: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.t_max > self.t_min:
            raise LawError(f"{self.name}: t_max is {self.t_max:g}, t_min is {self.t_min:g}; t_max must be greater")
        vars(self).update(support=(self.t_min, np.inf), kinks=(self.t_max,))
        v, lowest = self._lowest_density()
        if not lowest >= -1e-12:  # a smaller one is rounding
            written = ", ".join(f"{name}={value:g}" for name, value in self.params.items())
            raise LawError(f"{self.name}({written}) is not a cdf: F falls near t = {self.t_min + v:g}")

    def _at(self, v: Floats) -> _Hybrid:
        u = self.mu, log(self.sigma), log(self.nu) - log(self.a), -log(self.a), log(self.k)
        m = _Hybrid(self.t_min + v, v, u, self.t_min, self.t_max)
        m.A = self.nu * log1p_ratio(m.t, self.a)
        m.e = np.exp(-m.A)
        return m

    def _cdf(self, t: Floats) -> Floats:
        return self._cdf_above(np.maximum(t - self.t_min, 0.0))

    def _cdf_above(self, v: Floats) -> Floats:
        m = self._at(v)
        return np.asarray(m.rest * ndtr(m.z) - m.alpha * np.expm1(-m.A))

    def _logsf(self, t: Floats) -> Floats:
        m = self._at(np.maximum(t - self.t_min, 0.0))
        return np.asarray(np.where(t < self.t_max, np.log(m.rest * ndtr(-m.z) + m.alpha * m.e), -m.A))

    def _logpdf(self, t: Floats) -> Floats:
        return np.where(t > self.t_min, self._logpdf_above(t - self.t_min), -np.inf)

    def _logpdf_above(self, v: Floats) -> Floats:
        m = self._at(v)
        inside = np.log(np.maximum(m.density(), 0.0)) - np.log(v)
        return np.where(v <= self.t_max - self.t_min, inside, np.log(self.nu / (self.a + m.t)) - m.A)

    def _lowest_density(self) -> tuple[float, float]:
        """Where dF/d(log v) is lowest relative to its terms, and how low; below the grid it is positive."""
        top = log(self.t_max - self.t_min)
        low = min(max(self.mu - NORMAL_REACH * self.sigma, -700.0), top)  # e^−700 s is not a latency
        reach = np.linspace(-NORMAL_REACH, NORMAL_REACH, 1200)
        with np.errstate(over="ignore"):
            body, turn = self.mu + self.sigma * reach, top + (reach - NORMAL_REACH) / self.k
        x = np.unique(np.concatenate([body, turn, np.arange(low, top, 1 / 16), [top]]))
        x = x[(x >= low) & (x <= top)]
        for _ in range(3):
            with np.errstate(all="ignore"):
                m = self._at(np.exp(x))
                density = m.density()
                size = m.rest * m.g + m.alpha * (m.p + m.k * m.wide)
                relative = np.where(size > 0, density / size, 1.0)
            at = np.flatnonzero(
                relative <= np.minimum(np.append(relative[1:], np.inf), np.insert(relative[:-1], 0, np.inf))
            )
            at = at[relative[at] < 0.5]
            at = at[np.argsort(relative[at], kind="stable")[:64]]
            ends = x[np.maximum(at - 1, 0)], x[np.minimum(at + 1, x.size - 1)]
            best = int(np.argmin(relative))
            lowest, where = float(relative[best]), float(np.exp(x[best]))
            if not at.size or lowest < -1e-12:
                break
            x = np.unique(np.linspace(*ends, 33))
        return where, lowest
