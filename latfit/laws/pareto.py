"""The Pareto law of the second kind: a power tail from 0 on."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
from scipy.special import betainc, betaincc

from latfit.laws.base import ContinuousLaw, Parameter, register
from latfit.laws.kernel import ExponentialLimit, Jet
from latfit.laws.samples import SampleBatch, weighted_sum
from latfit.numbers import Floats


def log1p_ratio(t: Floats, a: float) -> Floats:
    """log(1 + t/a), also where t/a is beyond the largest float."""
    with np.errstate(all="ignore"):
        return np.where(t > a, np.log(t) - np.log(a) + np.log1p(a / t), np.log1p(t / a))


class _ParetoKernel(ExponentialLimit):
    """log S = −A with A = (r/b) log(1 + b t), log f = log r − A − log(1 + b x).

    u = (log r, log b) with r = ν/a, the hazard at 0, and b = 1/a; b → 0 is the exponential law.
    """

    log_params = ((0, -1), (1, -1))
    min_distinct = 1
    zero_allowed = True

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
        r, b = np.exp(u)
        bx = b[:, None] * batch.inner
        share = bx / (1 + bx)
        log_sum, q, qq = (weighted_sum(batch.weights, part) for part in (np.log1p(bx), share, share * share))
        A = r / b * log_sum
        A_b = r / b * q - A  # ∂A/∂log b; ∂A/∂log r is A
        A_bb = -A_b - r / b * qq
        return Jet.of(batch.n * u[0] - A - log_sum, [batch.n - A, -A_b - q], [-A, -A_b, -A_bb - (q - qq)])

    def survival(self, t: Floats, u: Floats) -> Jet:
        r, b = np.exp(u)[:, :, None]
        share = b * t / (1 + b * t)
        A = r / b * np.log1p(b * t)
        A_b = r / b * share - A
        return Jet.of(-A, [-A, -A_b], [-A, -A_b, A_b + r / b * share**2])

    def probability(self, t: Floats, u: Floats) -> Floats:
        r, b = np.exp(u)[:, :, None]
        return np.asarray(-np.expm1(-r / b * np.log1p(b * t)))

    def near_exponential(self, log_rate: Floats, distance: float) -> Floats:
        return np.array([log_rate, log_rate + np.log(distance)])


@register
@dataclass(frozen=True)
class Pareto(ContinuousLaw):
    """Power tail (Pareto II, Lomax): moments below nu only. Glatard et al. 2006, §3.6."""

    name = "pareto"
    parameters = (Parameter("a", "positive", unit="time"), Parameter("nu", "positive"))
    formula = "F(t) = 1 - (a/(a+t))^nu"
    examples = ("pareto(a=100,nu=2.5)", "pareto(a=3,nu=0.8)", "pareto(a=2000,nu=20)")
    kernel = _ParetoKernel()
    tried_by = ("mle", "ls")
    a: float
    nu: float

    @classmethod
    def start(cls, q1: float, q2: float, q3: float) -> dict[str, float]:
        """Rough parameters from the quartiles: q3/q2 = 2^(1/nu) + 1."""
        nu = log(2) / log(max(q3 / q2 - 1, 2 ** (1 / 20)))
        return {"a": q2 / (2 ** (1 / nu) - 1), "nu": nu}

    def _logsf(self, t: Floats) -> Floats:
        return -self.nu * log1p_ratio(t, self.a)

    def _logpdf(self, t: Floats) -> Floats:
        return log(self.nu) - log(self.a) - (self.nu + 1) * log1p_ratio(t, self.a)

    def _ppf(self, q: Floats) -> Floats:
        return self.a * np.expm1(-np.log1p(-q) / self.nu)

    def _partial_moment(self, n: int, t: Floats) -> Floats:
        """aⁿ n!/((nu−1)…(nu−n)) I_w(n+1, nu−n), w = t/(a + t); by quadrature where nu ≤ n or I_w loses digits."""
        if not n < self.nu < 1e3:
            return super()._partial_moment(n, t)
        x = t / self.a
        share = np.where(x < 1, betainc(n + 1, self.nu - n, x / (1 + x)), betaincc(self.nu - n, n + 1, 1 / (1 + x)))
        return share * float(np.prod([i * self.a / (self.nu - i) for i in range(1, n + 1)]))

    def draw(self, size: tuple[int, ...], rng: np.random.Generator) -> Floats:
        with np.errstate(over="ignore"):  # what is beyond all floats is ∞
            return np.asarray(self.a * np.expm1(rng.standard_exponential(size) / self.nu))
