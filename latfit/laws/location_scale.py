"""Laws of log t with a location and a scale: the log-normal, the Weibull and the log-logistic law."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from math import log
from typing import ClassVar

import numpy as np

from latfit.laws.base import ContinuousLaw
from latfit.laws.kernel import Jet, Kernel
from latfit.laws.samples import SampleBatch
from latfit.numbers import Floats


class LocationScaleKernel(Kernel):
    """Laws whose logarithm has a location and a scale: the standard law gives log f₀ and log S₀, with two derivatives.

    u = (m, log s), and z = (log x − m)/s has a standard law. With l = log f₀(z) the derivatives of
    log f = l − log s − log x are ∂m: −l′/s; ∂log s: −z l′ − 1; ∂m²: l″/s²; ∂m ∂log s: (l′ + z l″)/s;
    ∂log s²: z l′ + z² l″, and those of log S = log S₀(z) are the same without the −1.
    """

    log_params = ((0, -1), (1, 0))  # shape and scale
    spread: ClassVar[float]
    """The standard deviation of z."""
    middle: ClassVar[float]
    """The mean of z."""

    @abstractmethod
    def density_moments(self, batch: SampleBatch, u: Floats) -> tuple[Floats, ...]:
        """Σw of l, l′, z l′, l″, z l″, z² l″ over the completions."""

    @abstractmethod
    def log_survival(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        """Log S₀, its first and its second derivative."""

    def starts(self, batch: SampleBatch) -> list[Floats]:
        """The moments of log x among completions, and a wider law for tails that were cut off."""
        sd = np.sqrt(np.maximum(batch.var_log, 1e-30))
        s = sd / self.spread
        moments = np.array([batch.mean_log - self.middle * s, np.log(s)])
        return [moments, *(moments + np.array([wider * sd, np.full_like(s, wider)]) for wider in (0.3, 0.9))]

    def density(self, batch: SampleBatch, u: Floats) -> Jet:
        l0, l1, z_l1, l2, z_l2, zz_l2 = self.density_moments(batch, u)
        s, n = np.exp(u[1]), batch.n
        value = l0 - n * (u[1] + batch.mean_log)
        return Jet.of(value, [-l1 / s, -z_l1 - n], [l2 / s**2, (l1 + z_l2) / s, z_l1 + zz_l2])

    def survival(self, t: Floats, u: Floats) -> Jet:
        s = np.exp(u[1])[:, None]
        z = (np.log(t) - u[0][:, None]) / s
        l0, l1, l2 = self.log_survival(z)
        z_l1, z_l2 = z * l1, z * l2
        return Jet.of(l0, [-l1 / s, -z_l1], [l2 / s**2, (l1 + z_l2) / s, z_l1 + z * z_l2])

    def cdf(self, t: Floats, u: Floats) -> tuple[Floats, Floats]:
        s = np.exp(u[1])[:, None]
        z = (np.log(t) - u[0][:, None]) / s
        slope = -self.standard_density(z)
        return self.standard_cdf(z), np.stack([slope / s, slope * z])

    def standard_density(self, z: Floats) -> Floats:
        l0, l1, _ = self.log_survival(z)
        return np.asarray(-np.exp(l0) * l1)

    @abstractmethod
    def standard_cdf(self, z: Floats) -> Floats: ...

    @abstractmethod
    def standard_ppf(self, q: Floats) -> Floats: ...

    @abstractmethod
    def standard_draws(self, size: int | tuple[int, ...], rng: np.random.Generator) -> Floats: ...

    def probability(self, t: Floats, u: Floats) -> Floats:
        return self.standard_cdf(self.standard(np.log(t), u))

    def standard(self, log_t: Floats, u: Floats) -> Floats:
        inverse = np.exp(-u[1])
        z = log_t * inverse[:, None]
        z -= (u[0] * inverse)[:, None]
        return np.asarray(z)


class LocationScaleLaw(ContinuousLaw):
    """log T = m + s Z with Z of the standard law that the kernel knows; u = (m, log s) there."""

    kernel: ClassVar[LocationScaleKernel]

    @classmethod
    def start(cls, q1: float, q2: float, q3: float) -> dict[str, float]:
        """Rough parameters from the quartiles; degenerate ones are kept apart."""
        spread = np.clip(np.log(max(q3, 1e-300) / max(q1, 1e-300)), 1e-3, 10.0)
        low, middle, high = cls.kernel.standard_ppf(np.array([0.25, 0.5, 0.75]))
        s = spread / (high - low)
        params = cls.kernel.to_params(np.array([[log(q2) - s * middle], [np.log(s)]]), 1.0)[0][:, 0]
        return dict(zip(cls.kernel.parameters, map(float, params), strict=True))

    @cached_property
    def _place(self) -> tuple[float, float]:
        m, log_s = self.kernel.from_params(np.array([[value] for value in self.params.values()]), 1.0)[:, 0]
        with np.errstate(over="ignore"):  # refused where it is used
            return float(m), float(np.exp(log_s))

    def _z(self, t: Floats) -> Floats:
        m, s = self._place
        return (np.log(t) - m) / s

    def _cdf(self, t: Floats) -> Floats:
        return self.kernel.standard_cdf(self._z(t))

    def _logsf(self, t: Floats) -> Floats:
        return self.kernel.log_survival(self._z(t))[0]

    def _ppf(self, q: Floats) -> Floats:
        m, s = self._place
        return np.exp(m + s * self.kernel.standard_ppf(q))

    def draw(self, size: tuple[int, ...], rng: np.random.Generator) -> Floats:
        m, s = self._place
        with np.errstate(over="ignore"):  # what is beyond all floats is ∞
            return np.asarray(np.exp(m + s * self.kernel.standard_draws(size, rng)))


class ShapeScaleLaw(LocationScaleLaw):
    """Laws written with shape = 1/s and scale = e^m, whose standard density is e^z S₀(z)^k with k = `tail_power`."""

    tail_power: ClassVar[int]

    def _logpdf(self, t: Floats) -> Floats:
        (m, s), z = self._place, self._z(t)
        rise = 0.0 if s == 1 else (1 - s) * z
        return np.where(t == np.inf, -np.inf, self.tail_power * self._logsf(t) + rise - log(s) - m)
