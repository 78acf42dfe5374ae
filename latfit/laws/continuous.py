"""What the laws with a density have in common: a law states its formulas, the rest is here."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from latfit.errors import LawError
from latfit.laws.base import ParametricLaw, check_order
from latfit.laws.kernel import Kernel
from latfit.laws.quadrature import quadrature_moment
from latfit.numbers import Bools, Floats


class ContinuousLaw(ParametricLaw):
    """A proper law with a density.

    A law must state `_cdf` and `_logpdf`; it states `_sf`, `_logsf`, `_ppf` and
    `_partial_moment` too where a formula is better than the general way. They are called with
    arrays of times ≥ 0, ∞ included, and with floating-point warnings off. A law that can be fitted
    states `start(q1, q2, q3)`, rough parameters from the quartiles; `kernel` makes that fast and many samples at once.
    """

    kernel: ClassVar[Kernel | None] = None
    """How batched maximum likelihood sees the law; without it each sample is a search of its own."""
    tried_by: ClassVar[tuple[str, ...]] = ()
    """The methods of fitting (`mle`, `ls`) that try this law without being asked to."""

    @abstractmethod
    def _cdf(self, t: Floats) -> Floats: ...

    @abstractmethod
    def _logpdf(self, t: Floats) -> Floats: ...

    def _sf(self, t: Floats) -> Floats:
        return 1.0 - self._cdf(t)

    def _logsf(self, t: Floats) -> Floats:
        return np.log(self._sf(t))

    def _cdf_above(self, v: Floats) -> Floats:
        """F at the lower end of the support + v, for laws that know it more exactly in v."""
        return self._cdf(self.support[0] + v)

    def _logpdf_above(self, v: Floats) -> Floats:
        """Log density at the lower end of the support + v, for laws that know it more exactly in v."""
        return self._logpdf(self.support[0] + v)

    def _partial_moment(self, n: int, t: Floats) -> Floats:
        return quadrature_moment(self, n, t)

    def _ppf(self, q: Floats) -> Floats:
        return self._bisected(q)

    @property
    def support(self) -> tuple[float, float]:
        """The smallest and the largest latency that can occur."""
        return 0.0, np.inf

    def cdf(self, t: ArrayLike) -> Floats:
        """F(t), accurate in the lower tail."""
        return _at(self._cdf, t, 0.0)

    def still_out(self, t: ArrayLike) -> Floats:
        """S(t) = 1 − F(t), accurate in the upper tail."""
        return _at(self._sf, t, 1.0)

    def logsf(self, t: ArrayLike) -> Floats:
        """Logarithm of S(t), finite where S(t) is below the smallest float."""
        return _at(self._logsf, t, 0.0)

    def pdf(self, t: ArrayLike) -> Floats:
        """f(t), the density."""
        return np.exp(self.logpdf(t))

    def logpdf(self, t: ArrayLike) -> Floats:
        """Logarithm of f(t)."""
        return _at(self._logpdf, t, -np.inf)

    def hazard(self, t: ArrayLike) -> Floats:
        """f(t) / S(t), the rate of completion of what is still out; not a number where nothing is."""
        with np.errstate(all="ignore"):
            return np.exp(self.logpdf(t) - self.logsf(t))

    def partial_moment(self, n: int, t: ArrayLike) -> Floats:
        """M_n(t) = ∫₀ᵗ uⁿ f(u) du."""
        check_order(n)
        return self.cdf(t) if n == 0 else _at(lambda u: self._partial_moment(int(n), u), t, 0.0)

    def ppf(self, q: ArrayLike) -> Floats:
        """The t with F(t) = q."""
        q = np.asarray(q, dtype=np.float64)
        if not ((q >= 0) & (q <= 1)).all():
            raise LawError(f"{self.name}: a probability must lie in [0, 1], to ask for its quantile")
        low, high = self.support
        with np.errstate(all="ignore"):
            inside = np.clip(self._ppf(q), low, high)
        return np.where(q == 0, low, np.where(q == 1, high, inside))

    def draw(self, size: tuple[int, ...], rng: np.random.Generator) -> Floats | None:
        """Latencies by one of numpy's generators, several times faster than inverting the cdf; None where none fits."""
        return None

    def std(self) -> float:
        """The standard deviation, ∞ where it does not exist."""
        second = self.moment(2)
        return float(np.sqrt(max(0.0, second - self.mean() ** 2))) if np.isfinite(second) else np.inf

    def _bisected(self, q: Floats) -> Floats:
        """F⁻¹ by bisection on log(t − lower end), with S instead of F above the median."""
        bottom, top = self.support
        low = np.full(q.shape, -740.0)
        high = np.full(q.shape, min(709.0, np.log(top - bottom)))
        for _ in range(64):
            middle = 0.5 * (low + high)
            t = bottom + np.exp(middle)
            below = np.where(q < 0.5, self._cdf(t) < q, self._sf(t) > 1.0 - q)
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        found: Floats = bottom + np.exp(high)
        return found


def _at(formula: Callable[[Floats], Floats], t: ArrayLike, before: float) -> Floats:
    """`formula` at the times t, and the value `before` time 0."""
    times = np.asarray(t, dtype=np.float64)
    with np.errstate(all="ignore"):
        return np.where(times < 0, before, formula(np.maximum(times, 0.0)))


def patched(values: Floats, where: Bools, formula: Callable[[Floats], Floats], t: Floats) -> Floats:
    """`values` at the times t, with formula(t) instead where `where` holds."""
    result = np.array(values)
    if where.any():
        result[where] = formula(t[where])
    return result


def log_spread(q1: float, q3: float) -> float:
    """The logarithm of q3/q1, kept positive and finite so that rough starts exist for degenerate quartiles."""
    return float(np.clip(np.log(max(q3, 1e-300) / max(q1, 1e-300)), 1e-3, 10.0))
