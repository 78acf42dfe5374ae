"""The exponential law: no memory, so no timeout matters."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial, log

import numpy as np
from scipy.special import gammainc

from latfit.laws.base import ContinuousLaw, Parameter, register
from latfit.laws.kernel import Jet, Kernel
from latfit.laws.samples import SampleBatch
from latfit.numbers import Floats


class _ExponentialKernel(Kernel):
    """u = log rate, log f = u − e^u x and log S = −e^u t: n and Σx are enough."""

    log_params = ((1,),)
    min_distinct = 1
    zero_allowed = True

    def starts(self, batch: SampleBatch) -> list[Floats]:
        """The rate with all that are still out being outliers, and with none of them."""
        waited = batch.mean_x * batch.n + (batch.c_weights * batch.c).sum(axis=1)
        return [-np.log(batch.mean_x)[None], np.log(batch.n / waited)[None]]

    def closed_form(self, batch: SampleBatch) -> Floats:
        return -np.log(batch.mean_x)[None]

    def density(self, batch: SampleBatch, u: Floats) -> Jet:
        total = batch.n * batch.mean_x * np.exp(u[0])
        return Jet.of(batch.n * u[0] - total, [batch.n - total], [-total])

    def survival(self, t: Floats, u: Floats) -> Jet:
        log_s = -np.exp(u[0])[:, None] * t
        return Jet.of(log_s, [log_s], [log_s])


@register
@dataclass(frozen=True)
class Exponential(ContinuousLaw):
    """Memoryless law: completions at a constant rate. Glatard et al. 2006, §3.3."""

    name = "exponential"
    parameters = (Parameter("rate", "positive", unit="rate"),)
    formula = "F(t) = 1 - exp(-rate t)"
    examples = ("exponential(rate=0.01)",)
    kernel = _ExponentialKernel()
    tried_by = ("mle", "ls")
    rate: float

    @classmethod
    def start(cls, q1: float, q2: float, q3: float) -> dict[str, float]:
        return {"rate": log(2) / q2}

    def _logsf(self, t: Floats) -> Floats:
        return -self.rate * t

    def _logpdf(self, t: Floats) -> Floats:
        return log(self.rate) - self.rate * t

    def _ppf(self, q: Floats) -> Floats:
        return -np.log1p(-q) / self.rate

    def _partial_moment(self, n: int, t: Floats) -> Floats:
        return factorial(n) * float(np.power(1 / self.rate, n)) * gammainc(n + 1, self.rate * t)

    def draw(self, size: tuple[int, ...], rng: np.random.Generator) -> Floats:
        return np.asarray(rng.exponential(1 / self.rate, size))
