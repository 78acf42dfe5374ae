"""The log-logistic law: like the log-normal, with a power tail."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import beta, betainc, betaincc, expit

from latfit.laws.base import Parameter, register
from latfit.laws.location_scale import LocationScaleKernel, ShapeScaleLaw
from latfit.laws.samples import SampleBatch, weighted_sum
from latfit.numbers import Floats


class _LogLogisticKernel(LocationScaleKernel):
    """l = z − 2 log(1 + e^z), S₀ = 1/(1 + e^z)."""

    spread, middle = np.pi / np.sqrt(3), 0.0

    def density_moments(self, batch: SampleBatch, u: Floats) -> tuple[Floats, ...]:
        """With q = 1/(1 + e^−z): l′ = 1 − 2q, l″ = −2q(1 − q)."""
        z, w = self.standard(batch.log_x, u), batch.weights
        e = np.exp(-np.abs(z))
        softplus = np.maximum(z, 0) + np.log1p(e)
        e /= 1 + e
        q = np.where(z < 0, e, 1 - e)
        curve = -2 * q * (1 - q)
        z_curve = z * curve
        sum_z = batch.n * (batch.mean_log - u[0]) * np.exp(-u[1])
        l0 = sum_z - 2 * weighted_sum(w, softplus)
        l1, z_l1 = batch.n - 2 * weighted_sum(w, q), sum_z - 2 * weighted_sum(w, z * q)
        return l0, l1, z_l1, weighted_sum(w, curve), weighted_sum(w, z_curve), weighted_sum(w, z * z_curve)

    def standard_cdf(self, z: Floats) -> Floats:
        return np.asarray(expit(z))

    def standard_ppf(self, q: Floats) -> Floats:
        return np.asarray(np.log(q) - np.log1p(-q))

    def standard_draws(self, size: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        return np.asarray(rng.logistic(size=size))

    def log_survival(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        q = expit(z)
        return -(np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z)))), -q, -q * (1 - q)


@register
@dataclass(frozen=True)
class LogLogistic(ShapeScaleLaw):
    """The logarithm of the latency is logistic: power tail, moments below shape only."""

    name = "log-logistic"
    parameters = (Parameter("shape", "positive"), Parameter("scale", "positive", unit="time"))
    formula = "F(t) = 1/(1 + (t/scale)^-shape)"
    examples = (
        "log-logistic(shape=3,scale=200)",
        "log-logistic(shape=0.9,scale=5)",
        "log-logistic(shape=8,scale=0.4)",
    )
    kernel = _LogLogisticKernel()
    tried_by = ("mle", "ls")
    tail_power = 2
    shape: float
    scale: float

    def _partial_moment(self, n: int, t: Floats) -> Floats:
        """scaleⁿ B(1 + n/shape, 1 − n/shape) I_F(1 + n/shape, 1 − n/shape); by quadrature where shape ≤ n."""
        if self.shape <= n:
            return super()._partial_moment(n, t)
        x = n / self.shape
        y = self._z(t)
        below = np.where(y < 0, betainc(1 + x, 1 - x, expit(y)), betaincc(1 - x, 1 + x, expit(-y)))
        return float(np.power(self.scale, n)) * beta(1 + x, 1 - x) * below
