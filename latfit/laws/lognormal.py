"""The log-normal law: the body of most measured latencies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr, ndtri

from latfit.laws.base import Parameter, register
from latfit.laws.location_scale import LocationScaleKernel, LocationScaleLaw
from latfit.laws.samples import SampleBatch
from latfit.numbers import Floats


class _LognormalKernel(LocationScaleKernel):
    """l = −z²/2 − log √(2π): n, the mean and the variance of log x are enough; S₀ = Φ(−z)."""

    log_params = ((1, 0), (0, 1))
    spread, middle = 1.0, 0.0

    def closed_form(self, batch: SampleBatch) -> Floats:
        return np.array([batch.mean_log, np.log(batch.var_log) / 2])

    def density_moments(self, batch: SampleBatch, u: Floats) -> tuple[Floats, ...]:
        n, s = batch.n, np.exp(u[1])
        z = (batch.mean_log - u[0]) / s
        zz = batch.var_log / s**2 + z**2
        return -n * (zz / 2 + np.log(2 * np.pi) / 2), -n * z, -n * zz, -n, -n * z, -n * zz

    def standard_cdf(self, z: Floats) -> Floats:
        return np.asarray(ndtr(z))

    def standard_density(self, z: Floats) -> Floats:
        return np.asarray(np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi))

    def standard_ppf(self, q: Floats) -> Floats:
        return np.asarray(ndtri(q))

    def standard_draws(self, size: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        return np.asarray(rng.standard_normal(size))

    def log_survival(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        """Log Φ(−z), −h, −h (h − z) with h = φ/Φ(−z), the hazard."""
        h = np.sqrt(2 / np.pi) / erfcx(np.maximum(z, -37.0) / np.sqrt(2))
        return log_ndtr(-z), -h, -h * (h - z)


@register
@dataclass(frozen=True)
class LogNormal(LocationScaleLaw):
    """Normal in the logarithm: heavy tail, optimal timeout e^mu K(sigma, rho). Glatard et al. 2006, §3.5."""

    name = "lognormal"
    parameters = (Parameter("mu", "real", unit="log-time"), Parameter("sigma", "positive"))
    formula = "F(t) = Phi((log t - mu)/sigma)"
    examples = ("lognormal(mu=5.5,sigma=1)", "lognormal(mu=-2,sigma=0.25)", "lognormal(mu=0,sigma=2)")
    kernel = _LognormalKernel()
    tried_by = ("mle", "ls")
    mu: float
    sigma: float

    def _logpdf(self, t: Floats) -> Floats:
        density = -0.5 * self._z(t) ** 2 - np.log(t * self.sigma * np.sqrt(2 * np.pi))
        return np.where(t > 0, density, -np.inf)

    def _partial_moment(self, n: int, t: Floats) -> Floats:
        """exp(n mu + n² sigma²/2) Φ(z − n sigma), below the mode of the integrand as tⁿ e^(−z²/2) erfcx(…)/2."""
        z = self._z(t)
        y = z - n * self.sigma
        below = 0.5 * np.exp(n * np.log(t) - 0.5 * z**2) * erfcx(-y / np.sqrt(2))
        above = np.exp(n * self.mu + 0.5 * np.square(n * self.sigma)) * ndtr(y)
        return np.where(t > 0, np.where(y < 0, below, above), 0.0)

    def std(self) -> float:
        """E[T] √(exp(sigma²) − 1); Glatard et al. 2006, eq. 11 prints the variance."""
        with np.errstate(over="ignore"):
            return float(self.mean() * np.sqrt(np.expm1(np.square(self.sigma))))
