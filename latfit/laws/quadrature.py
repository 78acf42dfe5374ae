"""Partial moments of a law by quadrature of its density."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from latfit.errors import LawError
from latfit.numbers import Floats

if TYPE_CHECKING:
    from latfit.laws.base import Law

NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


def gauss_legendre(f: Callable[[Floats], Floats], a: Floats, b: Floats) -> Floats:
    """∫ₐᵇ f for arrays of limits, with 24 nodes."""
    half = 0.5 * (b - a)
    x = (0.5 * (a + b))[..., None] + half[..., None] * NODES
    return half * (f(x) @ WEIGHTS)


class Panels(NamedTuple):
    """The cumulative integral of h(x) = (t/median)ⁿ f(t) v over panels of x = log(v/m).

    v is t minus the lower end of the support, and m is its median. Both tails of a latency law are smooth in x,
    whatever their power, and x does not depend on the unit of time.
    """

    h: Callable[[Floats], Floats]
    edges: Floats
    cumulative: Floats
    m: float
    scale: float


def quadrature_moment(law: Law, n: int, t: Floats) -> Floats:
    """M_n(t) = ∫₀ᵗ uⁿ f(u) du by Gauss–Legendre panels, about 1e-12 relative."""
    bottom, top = law.support
    h, edges, cumulative, m, scale = _panels(law, n)
    v = np.minimum(t, top) - bottom
    x = np.clip(np.log(v / m), edges[0], edges[-1])
    j = np.minimum(np.searchsorted(edges, x, side="right") - 1, edges.size - 2)
    moment = np.where(v > 0, scale * (cumulative[j] + gauss_legendre(h, edges[j], x)), 0.0)
    if top < np.inf or not (v == np.inf).any():
        return moment
    # beyond the panels h continues as a power; the integral is ∞ if that diverges
    at_end, before = h(edges[-1] - np.array([0.0, 50.0]))
    slope = np.log(at_end / before) / 50.0 if at_end > 0 else -np.inf
    whole = scale * float(cumulative[-1] - at_end / slope) if slope < -1e-12 else np.inf
    return np.where(v == np.inf, whole, moment)


@lru_cache(maxsize=256)
@np.errstate(all="ignore")  # values that are not finite fail the comparison with the cdf
def _panels(law: Law, n: int) -> Panels:
    bottom, top = law.support
    median = float(law.ppf(0.5 * float(law.cdf(np.inf))))
    m = median - bottom
    if not 0 < m < np.inf:
        raise LawError(f"the times of {law!r} are too small, too large or too close to compute with")

    def h(x: Floats, n: int = n) -> Floats:
        v = m * np.exp(x)
        return np.exp(n * np.log((bottom + v) / median) + law._logpdf_above(v)) * v

    low, widest = -640.0, 4.0  # e-folds below the median that are integrated, and of the widest panel
    high = min(-low, np.log((min(top, 1e308) - bottom) / m))
    even = np.linspace(low, high, int(np.ceil((high - low) / widest)) + 1)
    kinks = np.log([(kink - bottom) / m for kink in law.kinks if bottom < kink < top])
    near = widest / 2.0 ** np.arange(50)  # so that the nodes do not miss a narrow law
    edges, areas = _refined(h, np.unique(np.concatenate([even, kinks, -near, near]).clip(low, high)))
    first, last = law._cdf_above(m * np.exp(np.array([low, high])))
    mass = gauss_legendre(lambda x: h(x, 0), edges[:-1], edges[1:]).sum()
    if not abs(mass - (last - first)) < 1e-8:
        raise LawError(f"{law.name}: its density, integrated, is not its cdf: too narrow for floating point, or wrong")
    # to rounding, the mass below the panels is at the lower end
    sums = float(first) * (bottom / median) ** n + np.concatenate([[0.0], np.cumsum(areas)])
    return Panels(h, edges, sums, m, float(np.power(median, n)))


def _refined(h: Callable[[Floats], Floats], edges: Floats) -> tuple[Floats, Floats]:
    """Halve panels until that no longer changes the integral up to their end, apart from rounding."""
    tolerance, most = 1e-14, 4000  # panels of rounding noise would be halved forever
    areas = gauss_legendre(h, edges[:-1], edges[1:])
    while True:
        a, b = edges[:-1], edges[1:]
        middle = 0.5 * (a + b)
        left, right = gauss_legendre(h, a, middle), gauss_legendre(h, middle, b)
        change, below = np.abs(left + right - areas), np.cumsum(left + right)
        rough = (change > tolerance * below) & (areas + left + right > 1e-290)
        if edges.size + rough.sum() > most:  # rounding noise in a tail: compare with the whole integral
            rough &= change > tolerance * below[-1]
        if not rough.any() or edges.size > 4 * most:
            break
        edges = np.sort(np.concatenate([edges, middle[rough]]))
        areas = np.where(rough, left, areas)
        areas = np.insert(areas, np.flatnonzero(rough) + 1, right[rough])
    return edges, areas
