"""The truncated Gaussian law: a normal law kept above 0."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, sqrt
from typing import ClassVar

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr, ndtri, ndtri_exp

from latfit.laws.base import Floats, Parameter, register
from latfit.laws.continuous import ContinuousLaw, patched
from latfit.laws.quadrature import gauss_legendre, quadrature_moment


@register
@dataclass(frozen=True)
class TruncatedGaussian(ContinuousLaw):
    """Normal law conditioned on t ≥ 0: light tail; close to exponential where mu is far below 0.

    f(t) = φ((t − mu)/sigma) / (sigma Φ(mu/sigma)). Glatard et al. 2006, §3.2.
    """

    name: ClassVar[str] = "truncated-gaussian"
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("mu", "real"), Parameter("sigma", "positive"))
    formula: ClassVar[str] = "f(t) = phi((t-mu)/sigma)/(sigma Phi(mu/sigma)) for t >= 0"
    examples: ClassVar[tuple[str, ...]] = (
        "truncated-gaussian(mu=300,sigma=100)",
        "truncated-gaussian(mu=0,sigma=2)",
        "truncated-gaussian(mu=-400,sigma=10)",
    )
    mu: float
    sigma: float

    @classmethod
    def start(cls, q1: float, q2: float, q3: float) -> dict[str, float]:
        """Rough parameters from the quartiles."""
        return {"mu": q2, "sigma": max(q3 - q1, 1e-3 * q3) / (2 * float(ndtri(0.75)))}

    def scaled(self, factor: float) -> TruncatedGaussian:
        """The law of factor · T."""
        return TruncatedGaussian(self.mu * factor, self.sigma * factor)

    @property
    def _alpha(self) -> float:
        """The truncation point in standard units, −mu/sigma."""
        return -self.mu / self.sigma

    @property
    def _density_at_0(self) -> float:
        return float(np.exp(self._logpdf(np.zeros(()))))

    def _logpdf(self, t: Floats) -> Floats:
        s, alpha = t / self.sigma, self._alpha
        if alpha < 0:
            density = -0.5 * ((t - self.mu) / self.sigma) ** 2
            return np.asarray(density - np.log(self.sigma * sqrt(2 * pi)) - log_ndtr(-alpha))
        return np.asarray(-s * (alpha + 0.5 * s) - np.log(self.sigma * sqrt(pi / 2) * erfcx(alpha / sqrt(2))))

    def _logsf(self, t: Floats) -> Floats:
        s, alpha, beta = t / self.sigma, self._alpha, (t - self.mu) / self.sigma
        if alpha < 0:
            return np.asarray(log_ndtr(-beta) - log_ndtr(-alpha))
        ratio = erfcx(beta / sqrt(2)) / erfcx(alpha / sqrt(2))
        return np.where(t == np.inf, -np.inf, np.log(ratio) - s * (alpha + 0.5 * s))

    def _sf(self, t: Floats) -> Floats:
        return np.exp(self._logsf(t))

    def _cdf(self, t: Floats) -> Floats:
        """1 − S(t), and by one Gauss–Legendre panel near 0, where that difference would cancel."""
        alpha = self._alpha
        below_mu = (ndtr((t - self.mu) / self.sigma) - ndtr(alpha)) / ndtr(-alpha)
        whole = np.where(t < self.mu, below_mu, -np.expm1(self._logsf(t)))
        near = t * (1 + abs(alpha)) < self.sigma
        return patched(whole, near, lambda u: gauss_legendre(lambda x: np.exp(self._logpdf(x)), 0 * u, u), t)

    def _ppf(self, q: Floats) -> Floats:
        """By mu + sigma Φ⁻¹, near 0 by q/f(0), then three steps of Newton on F or, above the median, on log S."""
        alpha = self._alpha
        log_upper = np.log1p(-q) + log_ndtr(-alpha)
        z = np.where(log_upper < -0.7, -ndtri_exp(log_upper), ndtri(ndtr(alpha) + q * ndtr(-alpha)))
        near = q < 0.01 * ndtr(min(alpha, 0.0))
        t = np.where(near, q / self._density_at_0, self.sigma * (z - alpha))
        for _ in range(3):
            on_cdf = (q - self._cdf(t)) / np.exp(self._logpdf(t))
            on_logsf = (self._logsf(t) - np.log1p(-q)) * np.exp(self._logsf(t) - self._logpdf(t))
            t = np.maximum(t + np.where(q < 0.5, on_cdf, on_logsf), 0.0)
        return t

    def _partial_moment(self, n: int, t: Floats) -> Floats:
        """sigmaⁿ J_n, J_n = ∫ (z − alpha)ⁿ φ(z) dz / Φ(−alpha) from alpha to beta = alpha + s, by parts.

        J_i = −s^(i−1) φ(beta)/Φ(−alpha) − alpha J_(i−1) + (i − 1) J_(i−2); by quadrature where that cancels.
        """
        s = t / self.sigma
        start, end = self.sigma * self._density_at_0, self.sigma * np.exp(self._logpdf(t))
        before, moment = self._cdf(t), start - end - self._alpha * self._cdf(t)
        size_before, size = before, start + end + abs(self._alpha) * before
        for i in range(2, n + 1):
            boundary = np.where(end > 0, s ** (i - 1) * end, 0.0)
            before, moment = moment, (i - 1) * before - self._alpha * moment - boundary
            size_before, size = size, (i - 1) * size_before + abs(self._alpha) * size + boundary
        moment, cancels = np.power(self.sigma, n) * moment, moment < 1e-3 * size
        return patched(moment, cancels, lambda u: quadrature_moment(self, n, u), t)

    def std(self) -> float:
        """√(E[T²] − E[T]²), for mu > 0 as sigma √(1 + alpha h − h²) with h = f(0) sigma."""
        if self._alpha > 0:
            return super().std()
        h = self.sigma * self._density_at_0
        return self.sigma * float(np.sqrt(1 + self._alpha * h - h**2))
