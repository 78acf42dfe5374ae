"""Exponential law: u = log rate."""

from __future__ import annotations

import numpy as np

from latfit.fitting.batch import Floats, SampleBatch
from latfit.fitting.kernel import Jet, Kernel, register_kernel


@register_kernel
class ExponentialKernel(Kernel):
    """log f = u − e^u x and log S = −e^u t: n and Σx are enough."""

    law = "exponential"
    parameters = ("rate",)
    min_distinct = 1
    zero_allowed = True

    def starts(self, batch: SampleBatch) -> list[Floats]:
        """The rate with all that are still out being outliers, and with none of them."""
        waited = batch.mean_x * batch.n + (batch.c_weights * batch.c).sum(axis=1)
        return [-np.log(batch.mean_x)[None], np.log(batch.n / waited)[None]]

    def complete_form(self, batch: SampleBatch) -> Floats:
        """One over the mean."""
        return -np.log(batch.mean_x)[None]

    def density(self, batch: SampleBatch, u: Floats) -> Jet:
        """Of all: n (u − e^u x̄)."""
        total = batch.n * batch.mean_x * np.exp(u[0])
        return Jet.of(batch.n * u[0] - total, [batch.n - total], [-total])

    def survival(self, t: Floats, u: Floats) -> Jet:
        """−e^u t."""
        log_s = -np.exp(u[0])[:, None] * t
        return Jet.of(log_s, [log_s], [log_s])

    def natural(self, u: Floats, unit: float) -> tuple[Floats, Floats]:
        """The rate e^u."""
        rate = np.exp(u) / unit
        return rate, rate[None]

    def unnatural(self, params: Floats, unit: float) -> Floats:
        """The logarithm of the rate."""
        return np.asarray(np.log(params * unit))
