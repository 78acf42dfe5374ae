"""The Weibull law: a hazard that is a power of time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gamma, gammainc, zeta

from latfit.laws.base import Parameter, register
from latfit.laws.location_scale import LocationScaleKernel, ShapeScaleLaw
from latfit.laws.samples import SampleBatch, weighted_sum
from latfit.numbers import Floats


class _WeibullKernel(LocationScaleKernel):
    """l = z − e^z, l″ = −e^z = log S₀: three sums over e^z a step."""

    spread, middle = np.pi / np.sqrt(6), -float(np.euler_gamma)

    def starts(self, batch: SampleBatch) -> list[Floats]:
        """Those of the family, and the exponential law, so that the fit cannot end below it."""
        return [*super().starts(batch), np.array([np.log(batch.mean_x), np.zeros(batch.size)])]

    def density_moments(self, batch: SampleBatch, u: Floats) -> tuple[Floats, ...]:
        """From the sums of e^z, e^z log x and e^z (log x)², the last two turned into those of z e^z and z² e^z."""
        m, inverse = u[0], np.exp(-u[1])
        with np.errstate(over="ignore", invalid="ignore"):
            e = self.standard(batch.log_x, u)
            np.exp(e, out=e)
            if batch.weights.shape[0] > 1 or (batch.weights != 1).any():
                e *= batch.weights
            e0 = e.sum(axis=1)
            y1, y2 = weighted_sum(e, batch.log_x), weighted_sum(e, batch.log_squared)
            e1 = (y1 - m * e0) * inverse
            e2 = (y2 - m * (2 * y1 - m * e0)) * inverse**2
        sum_z = batch.n * (batch.mean_log - m) * inverse
        return sum_z - e0, batch.n - e0, sum_z - e1, -e0, -e1, -e2

    def standard_cdf(self, z: Floats) -> Floats:
        return np.asarray(-np.expm1(-np.exp(np.minimum(z, 300.0))))

    def standard_ppf(self, q: Floats) -> Floats:
        return np.asarray(np.log(-np.log1p(-q)))

    def standard_draws(self, size: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        return np.asarray(np.log(rng.standard_exponential(size)))

    def log_survival(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        minus = -np.exp(np.minimum(z, 300.0))
        return minus, minus, minus


@register
@dataclass(frozen=True)
class Weibull(ShapeScaleLaw):
    """Stretched exponential: heavy tail for shape < 1, light for shape > 1. Glatard et al. 2006, §3.4."""

    name = "weibull"
    parameters = (Parameter("shape", "positive"), Parameter("scale", "positive", unit="time"))
    formula = "F(t) = 1 - exp(-(t/scale)^shape)"
    examples = ("weibull(shape=2,scale=300)", "weibull(shape=0.7,scale=300)", "weibull(shape=12.5,scale=0.03)")
    kernel = _WeibullKernel()
    tried_by = ("mle", "ls")
    tail_power = 1
    shape: float
    scale: float

    def _logsf(self, t: Floats) -> Floats:
        return -np.exp(self._z(t))

    def _partial_moment(self, n: int, t: Floats) -> Floats:
        """scaleⁿ Γ(1 + n/shape) P(1 + n/shape, (t/scale)^shape); by quadrature where Γ and P leave the floats."""
        order = 1 + n / self.shape
        if order > 20:
            return super()._partial_moment(n, t)
        return float(np.power(self.scale, n)) * gamma(order) * gammainc(order, -self._logsf(t))

    def std(self) -> float:
        """√(Γ(1 + 2/shape) − Γ(1 + 1/shape)²) scale, by the series of log Γ where shape is large."""
        x = 1 / self.shape
        if x > 0.1:
            return super().std()
        j = np.arange(2, 30)
        log_ratio = np.sum(zeta(j) * (-x) ** j * (2.0**j - 2) / j)
        return float(self.scale * gamma(1 + x) * np.sqrt(np.expm1(log_ratio)))
