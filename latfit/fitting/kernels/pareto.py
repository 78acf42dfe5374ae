"""Pareto II law: u = (log r, log b) with r = ν/a, the hazard at 0, and b = 1/a; b → 0 is the exponential law."""

from __future__ import annotations

import numpy as np

from latfit.fitting.batch import Floats, SampleBatch, weighted_sum
from latfit.fitting.kernel import Jet, Kernel, register_kernel


@register_kernel
class ParetoKernel(Kernel):
    """log S = −A with A = (r/b) log(1 + b t), log f = log r − A − log(1 + b x)."""

    law = "pareto"
    parameters = ("a", "nu")
    min_distinct = 1
    zero_allowed = True
    tends_to_exponential = True

    def starts(self, batch: SampleBatch) -> list[Floats]:
        """Five tails; given b and all that returned, ν = n/Σlog(1 + b x)."""
        starts = []
        for shift in (-3.0, -1.0, 1.0, 3.5, 7.0):
            log_b = shift - np.log(batch.mean_x)
            some = batch if batch.thinned is None else batch.thinned
            log_nu = -np.log(some.mean_of(np.log1p(np.exp(log_b)[:, None] * some.inner)))
            starts.append(np.array([log_nu + log_b, log_b]))
        return starts

    def density(self, batch: SampleBatch, u: Floats) -> Jet:
        """Σ w log f."""
        r, b = np.exp(u)
        bx = b[:, None] * batch.inner
        share = bx / (1 + bx)
        log_sum, q, qq = (weighted_sum(batch.weights, part) for part in (np.log1p(bx), share, share * share))
        A = r / b * log_sum
        A_b = r / b * q - A  # ∂A/∂log b; ∂A/∂log r is A
        A_bb = -A_b - r / b * qq
        return Jet.of(batch.n * u[0] - A - log_sum, [batch.n - A, -A_b - q], [-A, -A_b, -A_bb - (q - qq)])

    def survival(self, t: Floats, u: Floats) -> Jet:
        """−A."""
        r, b = np.exp(u)[:, :, None]
        share = b * t / (1 + b * t)
        A = r / b * np.log1p(b * t)
        A_b = r / b * share - A
        return Jet.of(-A, [-A, -A_b], [-A, -A_b, A_b + r / b * share**2])

    def probability(self, t: Floats, u: Floats) -> Floats:
        """1 − e^(−A)."""
        r, b = np.exp(u)[:, :, None]
        return np.asarray(-np.expm1(-r / b * np.log1p(b * t)))

    def natural(self, u: Floats, unit: float) -> tuple[Floats, Floats]:
        """Named as in the paper: a = 1/b, ν = r/b."""
        a, nu, zero = unit * np.exp(-u[1]), np.exp(u[0] - u[1]), np.zeros_like(u[0])
        return np.array([a, nu]), np.array([np.array([zero, -a]), np.array([nu, -nu])])

    def unnatural(self, params: Floats, unit: float) -> Floats:
        """Inverted: b = 1/a, r = ν/a."""
        log_b = np.log(unit / params[0])
        return np.array([np.log(params[1]) + log_b, log_b])

    def near_exponential(self, log_rate: Floats, distance: float) -> Floats:
        """At r = rate and b = distance × rate."""
        return np.array([log_rate, log_rate + np.log(distance)])
