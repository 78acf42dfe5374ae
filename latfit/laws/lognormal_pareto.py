"""The log-normal–Pareto law: a log-normal body that turns into a power tail."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from latfit.errors import LawError
from latfit.laws.base import Parameter, register
from latfit.laws.continuous import ContinuousLaw
from latfit.laws.kernel import Kernel
from latfit.laws.lognormal_pareto_kernel import HybridKernel
from latfit.laws.special import log1p_ratio
from latfit.numbers import Floats

REACH = 38.0  # standard deviations beyond which Φ is 0 or 1 in floating point
TOLERANCE = 1e-12  # a negative density of this relative size is rounding
NO_TIME = -700.0  # e^−700 s is no latency
MINIMA = 64  # how many of the lowest local minima of the density are looked at more closely


@register
@dataclass(frozen=True)
class LogNormalPareto(ContinuousLaw):
    """Interpolation from a log-normal law at t_min to a Pareto law at t_max and beyond.

    F(t) = (1 − α) Φ((log(t − t_min) − mu)/sigma) + α (1 − (a/(a + t))^nu),
    α(t) = ((t − t_min)/(t_max − t_min))^k, and 1 beyond t_max so that F is proper.
    Glatard et al. 2006, eq. 14. Parameters for which F falls somewhere are refused.
    """

    name: ClassVar[str] = "lognormal-pareto"
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("mu", "real"),
        Parameter("sigma", "positive"),
        Parameter("a", "positive"),
        Parameter("nu", "positive"),
        Parameter("k", "positive"),
        Parameter("t_min", "non-negative"),
        Parameter("t_max", "positive"),
    )
    formula: ClassVar[str] = (
        "F(t) = (1-w) Phi((log(t-t_min)-mu)/sigma) + w (1-(a/(a+t))^nu), w = min(1, (t-t_min)/(t_max-t_min))^k"
    )
    examples: ClassVar[tuple[str, ...]] = (
        "lognormal-pareto(mu=5,sigma=0.7,a=200,nu=1.4,k=0.4,t_min=50,t_max=9000)",
        "lognormal-pareto(mu=0,sigma=1,a=1,nu=3.5,k=1,t_min=0,t_max=10)",
    )
    kernel: ClassVar[Kernel] = HybridKernel()
    tried_by: ClassVar[tuple[str, ...]] = ("ls",)
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
        v, lowest = self._lowest_density()
        if not lowest >= -TOLERANCE:
            given = ", ".join(f"{name}={value:g}" for name, value in self.params.items())
            raise LawError(f"{self.name}({given}) is not a cdf: F falls near t = {self.t_min + v:g}")

    @property
    def support(self) -> tuple[float, float]:
        """t_min and ∞."""
        return self.t_min, np.inf

    @property
    def kinks(self) -> tuple[float, ...]:
        """t_max."""
        return (self.t_max,)

    def scaled(self, factor: float) -> LogNormalPareto:
        """The law of factor · T."""
        in_unit = {name: getattr(self, name) * factor for name in ("a", "t_min", "t_max")}
        law = object.__new__(LogNormalPareto)
        for name, value in {**self.params, **in_unit, "mu": self.mu + log(factor)}.items():
            object.__setattr__(law, name, value)
        super(LogNormalPareto, law).__post_init__()  # in another unit F does not fall either: that is not checked again
        return law

    def _weight(self, v: Floats) -> tuple[Floats, Floats]:
        """α and 1 − α at t_min + v."""
        exponent = self.k * np.log(np.minimum(v / (self.t_max - self.t_min), 1.0))
        return np.exp(exponent), -np.expm1(exponent)

    def _pareto_logsf(self, v: Floats) -> Floats:
        return -self.nu * log1p_ratio(self.t_min + v, self.a)

    def _z(self, v: Floats) -> Floats:
        return (np.log(v) - self.mu) / self.sigma

    def _cdf(self, t: Floats) -> Floats:
        return self._cdf_above(np.maximum(t - self.t_min, 0.0))

    def _cdf_above(self, v: Floats) -> Floats:
        alpha, rest = self._weight(v)
        return rest * ndtr(self._z(v)) - alpha * np.expm1(self._pareto_logsf(v))

    def _sf(self, t: Floats) -> Floats:
        v = np.maximum(t - self.t_min, 0.0)
        alpha, rest = self._weight(v)
        return rest * ndtr(-self._z(v)) + alpha * np.exp(self._pareto_logsf(v))

    def _logsf(self, t: Floats) -> Floats:
        return np.where(t < self.t_max, np.log(self._sf(t)), self._pareto_logsf(t - self.t_min))

    def _logpdf(self, t: Floats) -> Floats:
        return np.where(t > self.t_min, self._logpdf_above(t - self.t_min), -np.inf)

    def _logpdf_above(self, v: Floats) -> Floats:
        beyond = np.log(self.nu / (self.a + self.t_min + v)) + self._pareto_logsf(v)
        density, _ = self._density_in_log(v)
        return np.where(v <= self.t_max - self.t_min, np.log(np.maximum(density, 0.0)) - np.log(v), beyond)

    def _density_in_log(self, v: Floats) -> tuple[Floats, Floats]:
        """dF/d(log v) up to t_max, and the size of what is subtracted and added in it.

        (1 − α) φ(z)/sigma + α (v f_Pareto + k (F_Pareto − Φ(z))).
        """
        alpha, rest = self._weight(v)
        z, logsf = self._z(v), self._pareto_logsf(v)
        body = rest * np.exp(-0.5 * z**2) / (self.sigma * np.sqrt(2 * np.pi))
        tail = alpha * self.nu * v / (self.a + self.t_min + v) * np.exp(logsf)
        more, less = np.where(z < 0, (-np.expm1(logsf), ndtr(z)), (ndtr(-z), np.exp(logsf)))
        turn = alpha * self.k * (more - less)
        return body + tail + turn, body + tail + alpha * self.k * np.maximum(more, less)

    def _lowest_density(self) -> tuple[float, float]:
        """Where dF/d(log v) is lowest relative to its terms, and how low.

        A grid as fine as Φ, α and the Pareto law vary, then its local minima are looked at
        more closely. Below the grid Φ is 0 and the density positive.
        """
        top = log(self.t_max - self.t_min)
        low = min(max(self.mu - REACH * self.sigma, NO_TIME), top)
        reach = np.linspace(-REACH, REACH, 1200)
        with np.errstate(over="ignore"):
            body, turn = self.mu + self.sigma * reach, top + (reach - REACH) / self.k
        x = np.unique(np.concatenate([body, turn, np.arange(low, top, 1 / 16), [top]]))
        x = x[(x >= low) & (x <= top)]
        for _ in range(3):
            with np.errstate(all="ignore"):
                density, size = self._density_in_log(np.exp(x))
                relative = np.where(size > 0, density / size, 1.0)
            at = np.flatnonzero(
                relative <= np.minimum(np.append(relative[1:], np.inf), np.insert(relative[:-1], 0, np.inf))
            )
            at = at[relative[at] < 0.5]
            at = at[np.argsort(relative[at], kind="stable")[:MINIMA]]
            ends = x[np.maximum(at - 1, 0)], x[np.minimum(at + 1, x.size - 1)]
            best = int(np.argmin(relative))
            lowest, where = float(relative[best]), float(np.exp(x[best]))
            if not at.size or lowest < -TOLERANCE:
                break
            x = np.unique(np.linspace(*ends, 33))
        return where, lowest
