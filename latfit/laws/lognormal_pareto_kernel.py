"""The fast fit of the log-normal–Pareto law: its likelihood with two derivatives."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from latfit.laws.kernel import Jet, Kernel
from latfit.laws.samples import SampleBatch, weighted_sum
from latfit.numbers import Bools, Floats

NARROWEST, SHARPEST = 1e-2, 50.0  # sigma and k of a body and of a turn that are wider than one latency


class _Terms(NamedTuple):
    """What F, v f and their derivatives in u share; arrays (B, k) at the times t = t_min + v.

    `kappa` = d log(alpha)/d log k; g = φ(z)/σ; A = (r/b) log(1 + b t) with r = nu/a and b = 1/a; p = v f_Pareto;
    `gap` = F_Pareto − Phi(z).
    """

    alpha: Floats
    rest: Floats
    kappa: Floats
    k: Floats
    sigma: Floats
    z: Floats
    phi: Floats
    g: Floats
    body: Floats
    A: Floats
    A_b: Floats
    A_bb: Floats
    q: Floats
    e: Floats
    p: Floats
    gap: Floats


def _terms(t: Floats, u: Floats, t_min: Floats, t_max: Floats) -> _Terms:
    mu, log_sigma, log_r, log_b, log_k = u[:, :, None]
    sigma, r, b, k = (np.exp(x) for x in (log_sigma, log_r, log_b, log_k))
    v = np.maximum(t - t_min[:, None], 1e-300)
    log_v = np.log(v)
    kappa = k * np.minimum(log_v - np.log(t_max - t_min)[:, None], 0.0)
    alpha, rest = np.exp(kappa), -np.expm1(kappa)
    z = (log_v - mu) / sigma
    phi = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
    one = 1 + b * t
    A, H, q = r / b * np.log1p(b * t), r * t / one, b * t / one
    e = np.exp(-A)
    gap = np.where(z < 0, -np.expm1(-A) - ndtr(z), ndtr(-z) - e)
    return _Terms(
        alpha,
        rest,
        kappa,
        k,
        sigma,
        z,
        phi,
        phi / sigma,
        ndtr(z),
        A,
        H - A,
        A - H * (1 + q),
        q,
        e,
        v * r / one * e,
        gap,
    )


@dataclass(frozen=True, eq=False)
class HybridKernel(Kernel):
    """u = (mu, log sigma, log nu/a, log 1/a, log k): in these the ridge between a and nu disappears.

    t_min, the smallest latency less one step of the clock, and t_max, the largest latency, are held. With
    D = v f = (1 − α) φ(z)/σ + α (v f_Pareto + k (F_Pareto − Φ(z))) up to t_max, log f = log D − log v.
    """

    law: ClassVar[str] = "lognormal-pareto"
    parameters: ClassVar[tuple[str, ...]] = ("mu", "sigma", "a", "nu", "k", "t_min", "t_max")
    held: ClassVar[tuple[str, ...]] = ("t_min", "t_max")
    followed: ClassVar[int] = 4
    t_min: Floats = field(default_factory=lambda: np.zeros(1))
    t_max: Floats = field(default_factory=lambda: np.ones(1))

    def read(self, batch: SampleBatch) -> Floats:
        """The smallest latency less a step, and the largest."""
        low, high = batch.extremes
        return np.array([np.maximum(low - batch.step, 0.0), high])

    def holding(self, held: Floats) -> HybridKernel:
        """With t_min and t_max of each sample."""
        return HybridKernel(*held)

    def take(self, rows: NDArray[np.intp]) -> HybridKernel:
        """For some of the samples; one t_min and t_max stand for all."""
        return self if self.t_min.size == 1 else HybridKernel(self.t_min[rows], self.t_max[rows])

    def refused(self, batch: SampleBatch) -> list[tuple[Bools, str]]:
        """Too few distinct latencies, or none of them above t_min by a step."""
        seen = np.broadcast_to(batch.weights > 0, np.broadcast_shapes(batch.weights.shape, batch.x.shape))
        key = np.sort(np.where(seen, batch.x, np.nan), axis=1)
        distinct = (np.diff(key, axis=1) > 0).sum(axis=1) + 1
        few = np.broadcast_to(distinct, (batch.size,)) <= len(self.free)
        low = batch.extremes[0]
        return [
            (few, f"{self.law} has {len(self.free)} free parameters: as few distinct latencies do not determine them"),
            ((batch.step == 0) & (low > 0), "the law starts at the smallest latency where the clock has no step, "
             "with density 0: use least squares"),
        ]  # fmt: skip

    def starts(self, batch: SampleBatch) -> list[Floats]:
        """32 starts: 4 weights k × 4 Pareto tails through the 90th centile × 2 log-normal bodies from the quartiles."""
        x, weights = np.broadcast_arrays(batch.x, batch.weights)
        q = np.quantile(x, (0.25, 0.5, 0.75, 0.9), axis=1, weights=weights, method="inverted_cdf")
        t_min, top = self.read(batch)
        q9 = np.maximum(q[3], 1e-3 * top)
        low, middle, high = np.log(np.maximum(q[:3] - t_min, 1e-6 * q9))
        sigma = np.maximum((high - low) / 1.349, 1e-3)
        starts = []
        for k, nu, shift in product((0.1, 0.4, 1.3, 3.5), (0.5, 1.0, 2.0, 5.0), (0.0, 0.4)):
            log_b = np.log((10 ** (1 / nu) - 1) / q9)
            tail = [np.log(nu) + log_b, log_b, np.full_like(log_b, np.log(k))]
            starts.append(np.array([middle - shift * sigma, np.log(sigma * (1 - shift)), *tail]))
        return starts

    def is_law(self, u: Floats) -> Bools:
        """Whether the density is nowhere negative, on a grid; the law itself looks more closely.

        The likelihood has no bound: a body or a turn that shrinks to one latency makes it infinite. Such are no laws.
        """
        top = np.log(self.t_max - self.t_min)[:, None]
        body = u[0][:, None] + np.exp(u[1])[:, None] * np.linspace(-9, 9, 73)
        turn = top - np.linspace(0, 12, 49)
        v = np.exp(np.minimum(np.concatenate(np.broadcast_arrays(body, top), axis=1), top))
        v = np.concatenate([v, np.broadcast_to(np.exp(turn), (u.shape[1], turn.shape[1]))], axis=1)
        m = _terms(self.t_min[:, None] + v, u, self.t_min, self.t_max)
        D = m.rest * m.g + m.alpha * (m.p + m.k * m.gap)
        return np.asarray((D >= 0).all(axis=1) & (np.exp(u[1]) > NARROWEST) & (np.exp(u[4]) < SHARPEST))

    def density(self, batch: SampleBatch, u: Floats) -> Jet:
        """Σ w (log D − log v), with D_i/D and D_ij/D − D_i D_j/D² for its derivatives."""
        m = _terms(batch.x, u, self.t_min, self.t_max)
        turn, zz = m.k * m.gap, m.z * m.z
        T = m.p + turn
        D = m.rest * m.g + m.alpha * T
        aD, k = m.alpha / D, m.k
        wg, ak = m.rest * m.g / D, aD * k
        by_a, by_b = 1 - m.A, -m.q - m.A_b  # of log p in log r and log b
        pk, ke = aD * m.p, ak * m.e
        grad = [
            wg * m.z / m.sigma + ak * m.g,
            wg * (zz - 1) + ak * m.z * m.phi,
            pk * by_a + ke * m.A,
            pk * by_b + ke * m.A_b,
            aD * (m.kappa * (T - m.g) + turn),
        ]
        more = ak * (1 + m.kappa)
        slope = m.kappa * aD
        second = [
            (wg * (zz - 1) / m.sigma + ak * m.z * m.g) / m.sigma,
            wg * m.z * (zz - 3) / m.sigma + ak * m.g * (zz - 1),
            None,
            None,
            -slope * m.g * m.z / m.sigma + more * m.g,
            wg * ((zz - 1) ** 2 - 2 * zz) - ak * m.z * m.phi * (1 - zz),
            None,
            None,
            -slope * m.g * (zz - 1) + more * m.z * m.phi,
            pk * (by_a**2 - m.A) + ke * m.A * (1 - m.A),
            pk * (by_a * by_b - m.A_b) + ke * m.A_b * (1 - m.A),
            slope * m.p * by_a + more * m.e * m.A,
            pk * (by_b**2 - m.q * (1 - m.q) - m.A_bb) + ke * (m.A_bb - m.A_b**2),
            slope * m.p * by_b + more * m.e * m.A_b,
            aD * (m.kappa * (1 + m.kappa) * (T - m.g) + (2 * m.kappa + 1) * turn),
        ]
        w = batch.weights
        pairs = zip(second, ((i, j) for i in range(5) for j in range(i, 5)), strict=True)
        products = (-grad[i] * grad[j] if part is None else part - grad[i] * grad[j] for part, (i, j) in pairs)
        value = np.log(D) - np.log(np.maximum(batch.x - self.t_min[:, None], 1e-300))
        used = np.where(w > 0, value, 0.0)
        return Jet.of(
            weighted_sum(w, used),
            [weighted_sum(w, np.where(w > 0, part, 0.0)) for part in grad],
            [weighted_sum(w, np.where(w > 0, part, 0.0)) for part in products],
        )

    def survival(self, t: Floats, u: Floats) -> Jet:
        """Log S with S = (1 − α) Φ(−z) + α (a/(a + t))^nu."""
        m = _terms(t, u, self.t_min, self.t_max)
        S = m.rest * ndtr(-m.z) + m.alpha * m.e
        grad = [-part / S for part in self._slopes(m)]
        w, a, c = m.rest, m.alpha * m.e, m.alpha * m.kappa
        second = [
            -w * m.z * m.g / m.sigma,
            -w * m.g * (m.z**2 - 1),
            None,
            None,
            c * m.g,
            w * m.z * m.phi * (1 - m.z**2),
            None,
            None,
            c * m.z * m.phi,
            a * m.A * (1 - m.A),
            a * m.A_b * (1 - m.A),
            c * m.e * m.A,
            a * (m.A_bb - m.A_b**2),
            c * m.e * m.A_b,
            c * (1 + m.kappa) * m.gap,
        ]
        pairs = zip(second, ((i, j) for i in range(5) for j in range(i, 5)), strict=True)
        hess = [(0.0 if part is None else -part / S) - grad[i] * grad[j] for part, (i, j) in pairs]
        return Jet.of(np.log(S), grad, hess)

    @staticmethod
    def _slopes(m: _Terms) -> list[Floats]:
        """The derivatives of F in u."""
        tail = m.alpha * m.e
        return [-m.rest * m.g, -m.rest * m.z * m.phi, tail * m.A, tail * m.A_b, m.alpha * m.kappa * m.gap]

    def probability(self, t: Floats, u: Floats) -> Floats:
        """F(t)."""
        return self.cdf(t, u)[0]

    def cdf(self, t: Floats, u: Floats) -> tuple[Floats, Floats]:
        """F(t) and its gradient."""
        m = _terms(t, u, self.t_min, self.t_max)
        return m.rest * m.body - m.alpha * np.expm1(-m.A), np.stack(np.broadcast_arrays(*self._slopes(m)))

    def natural(self, u: Floats, unit: float) -> tuple[Floats, Floats]:
        """Named as in the paper: a = 1/b, nu = r/b; t_min and t_max as they are held."""
        mu, log_sigma, log_r, log_b, log_k = u
        sigma, a, nu, k = np.exp(log_sigma), unit * np.exp(-log_b), np.exp(log_r - log_b), np.exp(log_k)
        held = (np.broadcast_to(unit * x, mu.shape) for x in (self.t_min, self.t_max))
        jacobian = np.zeros((7, 5, mu.size))
        jacobian[0, 0], jacobian[1, 1], jacobian[4, 4] = 1.0, sigma, k
        jacobian[2, 3], jacobian[3, 2], jacobian[3, 3] = -a, nu, -nu
        return np.array([mu + np.log(unit), sigma, a, nu, k, *held]), jacobian

    def unnatural(self, params: Floats, unit: float) -> Floats:
        """Inverted: b = 1/a, r = nu/a."""
        mu, sigma, a, nu, k = params[:5]
        log_b = np.log(unit) - np.log(a)
        return np.array([mu - np.log(unit), np.log(sigma), np.log(nu) + log_b, log_b, np.log(k)])
