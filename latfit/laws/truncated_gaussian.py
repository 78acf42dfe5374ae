"""The truncated Gaussian law: a normal law conditioned on t ≥ 0."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, sqrt

import numpy as np
from numpy.polynomial.polynomial import polyval
from scipy.special import erfcx, log_ndtr, ndtr, ndtri, ndtri_exp

from latfit.laws.base import ContinuousLaw, Parameter, register
from latfit.laws.kernel import ExponentialLimit, Jet
from latfit.laws.quadrature import gauss_legendre
from latfit.laws.samples import SampleBatch
from latfit.numbers import Floats


class _TruncatedGaussianKernel(ExponentialLimit):
    """f ∝ exp(−r x − c x²/2), u = (r, c) with c = 1/σ² > 0 and r = −μ/σ²; n, Σx and Σx² are sufficient.

    c → 0 is the exponential law. These are the natural parameters of the exponential family: in (μ/σ, log σ) the
    estimate would drift along a ridge to −∞ for nearly exponential data. With z = r/√c and Mills' ratio
    M(z) = Φ(−z)/φ(z),
    log Z(r, c) = log ∫₀^∞ exp(−r x − c x²/2) dx = log M(z) − log(c)/2.
    """

    zero_allowed = True

    def starts(self, batch: SampleBatch) -> list[Floats]:
        """From the moments of the completions, of longer tails, and near the exponential law."""
        mean = batch.mean_x
        variance = np.maximum(batch.mean_square - mean**2, 1e-12 * mean**2)
        starts = [np.array([-mean * share / (variance * wide), 1 / (variance * wide)]) for share, wide in _SHAPES]
        return [*starts, np.array([0.9 / mean, 0.1 / mean**2])]

    def density(self, batch: SampleBatch, u: Floats) -> Jet:
        """−n (r x̄ + c mean x²/2 + log Z)."""
        n, mean = batch.n, batch.mean_x
        half_square = batch.mean_square / 2
        z = log_normaliser(u[0], u[1])
        value = -n * (u[0] * mean + u[1] * half_square + z.value)
        return Jet(value, -n * (np.array([mean, half_square]) + z.grad), -n * z.hess)

    def survival(self, t: Floats, u: Floats) -> Jet:
        """Log S = −r t − c t²/2 + log Z(r + c t, c) − log Z(r, c)."""
        r, c = u[:, :, None]
        moved, fixed = log_normaliser(r + c * t, c + 0 * t), log_normaliser(r, c)
        by_r, by_c = moved.grad
        rr, rc, cc = moved.hess[0, 0], moved.hess[0, 1], moved.hess[1, 1]
        value = -t * (r + c * t / 2) + moved.value - fixed.value
        grad = [-t + by_r - fixed.grad[0], -t * t / 2 + t * by_r + by_c - fixed.grad[1]]
        rr_0, rc_0, cc_0 = fixed.hess[0, 0], fixed.hess[0, 1], fixed.hess[1, 1]
        return Jet.of(value, grad, [rr - rr_0, t * rr + rc - rc_0, t * t * rr + 2 * t * rc + cc - cc_0])

    def to_params(self, u: Floats, unit: float) -> tuple[Floats, Floats]:
        r, c = u
        mu, sigma, zero = -r / c, 1 / np.sqrt(c), np.zeros_like(r)
        jacobian = np.array([np.array([-1 / c, r / c**2]), np.array([zero, -sigma / (2 * c)])])
        return unit * np.array([mu, sigma]), unit * jacobian

    def from_params(self, params: Floats, unit: float) -> Floats:
        mu, sigma = params / unit
        return np.array([-mu / sigma**2, 1 / sigma**2])

    def limit_step(self, u: Floats, step: Floats) -> Floats:
        """The precision c stays positive and changes by at most a factor of 5."""
        change = step[1] / u[1]
        return np.asarray(np.minimum(1.0, np.where(change < 0, 0.8, 4.0) / np.maximum(np.abs(change), 1e-300)))

    def curvature_scale(self, u: Floats) -> Floats:
        return np.array([np.sqrt(u[1]) + np.abs(u[0]), u[1]])

    def near_exponential(self, log_rate: Floats, distance: float) -> Floats:
        rate = np.exp(log_rate)
        return np.array([rate, distance * rate**2])


_SHAPES = ((1.0, 1.0), (0.9, 1.5), (1.2, 1.5), (0.0, 2.0))  # (μ/mean, σ²/variance)
_M = (-1, 2, -10, 74, -706, 8162, -110410, 1708394)  # m z, in powers of 1/z²
_SLOPE = (1, -6, 50, -518, 6354, -89782, 1435330, -25625910)  # m′ z²
_ONE_PLUS_ZM = (2, -10, 74, -706, 8162, -110410, 1708394)  # (1 + z m) z²
_CURVE = (-4, 40, -444, 5648, -81620, 1324920, -23917516)  # (z m)′ z³
_CC = (5, -74, 1059, -16324, 276025, -5125182)  # c² ∂²log Z/∂c² z⁴


def log_mills(z: Floats) -> Floats:
    """Log M(z)."""
    M = np.sqrt(np.pi / 2) * erfcx(np.maximum(z, -30.0) / np.sqrt(2))
    low = z < -30
    if not low.any():
        return np.asarray(np.log(M))
    return np.asarray(np.where(low, log_ndtr(-z) + z**2 / 2 + np.log(2 * np.pi) / 2, np.log(M)))


def log_normaliser(r: Floats, c: Floats) -> Jet:
    """Log Z(r, c) with its derivatives; (log M)′ = z − 1/M =: m, m′ = 1 + m/M."""
    root = np.sqrt(c)
    z = r / root
    log_m = log_mills(z)
    with np.errstate(over="ignore"):
        M = np.exp(log_m)
    m = z - 1 / M
    slope = 1 + m / M
    one_plus_zm, curve = 1 + z * m, m + z * slope
    cc = one_plus_zm / 2 + z * curve / 4
    far = z > 30  # there the differences cancel, and the asymptotic series is exact
    if far.any():
        v = np.where(far, z, 30.0)
        w = v**-2
        m, one_plus_zm = np.where(far, polyval(w, _M) / v, m), np.where(far, w * polyval(w, _ONE_PLUS_ZM), one_plus_zm)
        slope, curve = np.where(far, w * polyval(w, _SLOPE), slope), np.where(far, w / v * polyval(w, _CURVE), curve)
        cc = np.where(far, w * w * polyval(w, _CC), cc)
    return Jet.of(
        log_m - np.log(c) / 2, [m / root, -one_plus_zm / (2 * c)], [slope / c, -curve / (2 * c * root), cc / c**2]
    )


@register
@dataclass(frozen=True)
class TruncatedGaussian(ContinuousLaw):
    """Normal law conditioned on t ≥ 0, nearly exponential if mu is far below 0. Glatard et al. 2006, §3.2."""

    name = "truncated-gaussian"
    parameters = (Parameter("mu", "real", unit="time"), Parameter("sigma", "positive", unit="time"))
    formula = "f(t) = phi((t-mu)/sigma)/(sigma Phi(mu/sigma)) for t >= 0"
    examples = (
        "truncated-gaussian(mu=300,sigma=100)",
        "truncated-gaussian(mu=0,sigma=2)",
        "truncated-gaussian(mu=-400,sigma=10)",
    )
    kernel = _TruncatedGaussianKernel()
    mu: float
    sigma: float

    @classmethod
    def start(cls, q1: float, q2: float, q3: float) -> dict[str, float]:
        return {"mu": q2, "sigma": max(q3 - q1, 1e-3 * q3) / (2 * float(ndtri(0.75)))}

    def _logpdf(self, t: Floats) -> Floats:
        s, alpha = t / self.sigma, -self.mu / self.sigma
        if alpha < 0:
            density = -0.5 * ((t - self.mu) / self.sigma) ** 2
            return np.asarray(density - np.log(self.sigma * sqrt(2 * pi)) - log_ndtr(-alpha))
        return np.asarray(-s * (alpha + 0.5 * s) - np.log(self.sigma * sqrt(pi / 2) * erfcx(alpha / sqrt(2))))

    def _logsf(self, t: Floats) -> Floats:
        s, alpha, beta = t / self.sigma, -self.mu / self.sigma, (t - self.mu) / self.sigma
        if alpha < 0:
            return np.asarray(log_ndtr(-beta) - log_ndtr(-alpha))
        ratio = erfcx(beta / sqrt(2)) / erfcx(alpha / sqrt(2))
        return np.where(t == np.inf, -np.inf, np.log(ratio) - s * (alpha + 0.5 * s))

    def _cdf(self, t: Floats) -> Floats:
        """1 − S(t); near 0, where that would cancel, by one Gauss–Legendre panel."""
        alpha = -self.mu / self.sigma
        below_mu = (ndtr((t - self.mu) / self.sigma) - ndtr(alpha)) / ndtr(-alpha)
        whole = np.where(t < self.mu, below_mu, -np.expm1(self._logsf(t)))
        near = t * (1 + abs(alpha)) < self.sigma
        if near.any():
            whole[near] = gauss_legendre(lambda x: np.exp(self._logpdf(x)), np.zeros(near.sum()), t[near])
        return whole

    def _ppf(self, q: Floats) -> Floats:
        """By mu + sigma Φ⁻¹, near 0 by q/f(0), then three Newton steps on F or, above the median, on log S."""
        alpha = -self.mu / self.sigma
        log_upper = np.log1p(-q) + log_ndtr(-alpha)
        z = np.where(log_upper < -0.7, -ndtri_exp(log_upper), ndtri(ndtr(alpha) + q * ndtr(-alpha)))
        near = q < 0.01 * ndtr(min(alpha, 0.0))
        t = np.where(near, q * np.exp(-self._logpdf(0 * q)), self.sigma * (z - alpha))
        for _ in range(3):
            on_cdf = (q - self._cdf(t)) / np.exp(self._logpdf(t))
            on_logsf = (self._logsf(t) - np.log1p(-q)) * np.exp(self._logsf(t) - self._logpdf(t))
            t = np.maximum(t + np.where(q < 0.5, on_cdf, on_logsf), 0.0)
        return t

    def std(self) -> float:
        """√(E[T²] − E[T]²), for mu > 0 as sigma √(1 + alpha h − h²) with h = f(0) sigma."""
        alpha = -self.mu / self.sigma
        if alpha > 0:
            return super().std()
        h = self.sigma * np.exp(self._logpdf(np.zeros(())))
        return self.sigma * float(np.sqrt(1 + alpha * h - h**2))
