"""Uniform law: u = (a, log(b − a))."""

from __future__ import annotations

import numpy as np

from latfit.fitting.batch import Floats, SampleBatch
from latfit.fitting.kernel import Jet, Kernel, register_kernel


@register_kernel
class UniformKernel(Kernel):
    """a is the smallest latency. With ρ free b is the largest: any law that goes on beyond it loses to more outliers.

    With ρ given, b may lie beyond what was seen, and is searched for. On a coarse clock the ends are those of cells.
    """

    law = "uniform"
    parameters = ("a", "b")
    zero_allowed = True

    def starts(self, batch: SampleBatch) -> list[Floats]:
        """The range seen, and multiples of it."""
        seen = self.closed_form(batch)
        beyond = np.log1p(np.concatenate([[0.0], np.geomspace(1e-6, 1e6, 97)]))
        return [np.array([seen[0], seen[1] + log_share]) for log_share in beyond]

    def closed_form(self, batch: SampleBatch) -> Floats:
        """The range seen, the estimate where ρ is free."""
        low, high = batch.extremes
        low, high = np.maximum(low - batch.cell / 2, 0.0), high + batch.cell / 2
        return np.array([low, np.log(high - low)])

    def completions(self, batch: SampleBatch, u: Floats) -> Jet:
        """The same for points and for cells."""
        return self.density(batch, u)

    def density(self, batch: SampleBatch, u: Floats) -> Jet:
        """−n log(b − a), −∞ where b is below a latency or the end of its cell; a stays where it is."""
        zero = np.zeros_like(u[0])
        inside = u[0] + np.exp(u[1]) >= (batch.extremes[1] + batch.cell / 2) * (1 - 1e-14)
        return Jet.of(np.where(inside, -batch.n * u[1], -np.inf), [zero, -batch.n], [zero, zero, zero])

    def survival(self, t: Floats, u: Floats) -> Jet:
        """log((b − t)/(b − a)); a stays where it is."""
        F = self.cdf(t, u)[0]
        zero = np.zeros_like(F)
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = F / (1 - F)
            return Jet.of(np.log1p(-F), [zero, odds], [zero, zero, -odds * (1 + odds)])

    def probability(self, t: Floats, u: Floats) -> Floats:
        """(t − a)/(b − a) within [0, 1]."""
        return self.cdf(t, u)[0]

    def cdf(self, t: Floats, u: Floats) -> tuple[Floats, Floats]:
        """(t − a)/(b − a) within [0, 1] and its gradient; a below 0 counts as 0."""
        a, width = u[0][:, None], np.exp(u[1])[:, None]
        F = np.clip((t - np.maximum(a, 0.0)) / width, 0.0, 1.0)
        inside = (F > 0) & (F < 1)
        return F, np.array([np.where(inside & (a > 0), -1 / width, 0.0), np.where(inside, -F, 0.0)])

    def natural(self, u: Floats, unit: float) -> tuple[Floats, Floats]:
        """The ends a and b = a + e^u₁, rounded outwards so that no latency falls out of them."""
        a, width = np.maximum(u[0], 0.0), np.exp(u[1])
        one, zero = np.ones_like(width), np.zeros_like(width)
        jacobian = np.array([np.array([one, zero]), np.array([one, width])])
        return unit * np.array([a * (1 - 1e-15), (a + width) * (1 + 1e-15)]), unit * jacobian

    def unnatural(self, params: Floats, unit: float) -> Floats:
        """The lower end a and log(b − a)."""
        return np.array([params[0] / unit, np.log((params[1] - params[0]) / unit)])
