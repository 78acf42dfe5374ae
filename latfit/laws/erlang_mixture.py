"""The mixture of Erlang laws: van Moorsel and Wolter's running example."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammainc, gammaincc, gammaln, logsumexp, poch, xlogy

from latfit.laws.base import ContinuousLaw, Parameter, register
from latfit.laws.gamma import log_gammaincc
from latfit.numbers import Floats


@register
@dataclass(frozen=True)
class ErlangMixture(ContinuousLaw):
    """With probability p[i], phases[i] stages of rate rates[i] in turn: van Moorsel & Wolter's running example."""

    name = "erlang-mixture"
    parameters = (
        Parameter("p", "non-negative", many=True, rule="adds up to 1"),
        Parameter("phases", "count", many=True),
        Parameter("rates", "positive", many=True, unit="rate"),
    )
    formula = "F(t) = sum of p[i] P(phases[i], rates[i] t), P the incomplete gamma function"
    examples = (
        "erlang-mixture(p=[0.9,0.1],phases=[2,2],rates=[20,2])",
        "erlang-mixture(p=[1],phases=[7],rates=[0.1])",
        "erlang-mixture(p=[0.5,0.3,0.2],phases=[1,3,20],rates=[5,0.5,0.1])",
    )
    p: tuple[float, ...]
    phases: tuple[int, ...]
    rates: tuple[float, ...]

    @cached_property
    def _parts(self) -> tuple[Floats, Floats, Floats]:
        """Weights that add up to 1, phases and rates, as arrays."""
        return np.array(self.p) / np.sum(self.p), np.array(self.phases, dtype=np.float64), np.array(self.rates)

    def _cdf(self, t: Floats) -> Floats:
        p, k, rate = self._parts
        return gammainc(k, rate * t[..., None]) @ p

    def _sf(self, t: Floats) -> Floats:
        p, k, rate = self._parts
        return gammaincc(k, rate * t[..., None]) @ p

    def _logsf(self, t: Floats) -> Floats:
        p, k, rate = self._parts
        return logsumexp(log_gammaincc(k, rate * t[..., None]), axis=-1, b=p)

    def _logpdf(self, t: Floats) -> Floats:
        p, k, rate = self._parts
        x = rate * t[..., None]
        density = logsumexp(xlogy(k - 1, x) - x - gammaln(k) + np.log(rate), axis=-1, b=p)
        return np.where(t == np.inf, -np.inf, density)

    def _partial_moment(self, n: int, t: Floats) -> Floats:
        """Σ p k (k+1)…(k+n−1)/rateⁿ P(k + n, rate t)."""
        p, k, rate = self._parts
        return gammainc(k + n, rate * t[..., None]) @ (p * poch(k, n) / rate**n)

    def sample(self, size: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        p, k, rate = self._parts
        part = rng.choice(p.size, size, p=p)
        return np.asarray(rng.gamma(k[part], 1 / rate[part]))

    def std(self) -> float:
        p, k, rate = self._parts
        return float(np.sqrt(p @ ((k / rate - p @ (k / rate)) ** 2 + k / rate**2)))
