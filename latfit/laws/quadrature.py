"""The shared quadrature: partial moments of a law of which only the density is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from latfit.errors import LawError
from latfit.numbers import Floats

if TYPE_CHECKING:
    from latfit.laws.base import ContinuousLaw

NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)
MAX_E_FOLDS = 640.0  # e-folds on either side of the median that are integrated
WIDEST_PANEL = 4.0  # e-folds of the widest panel
MAX_PANELS = 4000  # a density that is all rounding noise would be halved for ever
PANEL_TOLERANCE = 1e-14  # of a panel, relative to all that lies below it


def gauss_legendre(f: Callable[[Floats], Floats], a: Floats, b: Floats) -> Floats:
    """∫ₐᵇ f with 24 nodes, for arrays of limits."""
    half = 0.5 * (b - a)
    x = (0.5 * (a + b))[..., None] + half[..., None] * NODES
    return half * (f(x) @ WEIGHTS)


@dataclass(frozen=True, eq=False)
class Panels:
    """Cumulative integral of h over panels of x = log(v/m), h(x) = (t/median)ⁿ f(t) v.

    v = t − the lower end of the support and m is its median: both tails of a latency law are smooth
    in x, whatever their power, and x does not depend on the unit of time.
    """

    h: Callable[[Floats], Floats]
    edges: Floats
    cumulative: Floats
    m: float
    scale: float

    def up_to(self, v: Floats) -> Floats:
        """∫ uⁿ f(u) du up to v above the lower end, v inside the panels."""
        x = np.clip(np.log(v / self.m), self.edges[0], self.edges[-1])
        j = np.minimum(np.searchsorted(self.edges, x, side="right") - 1, self.edges.size - 2)
        return self.scale * (self.cumulative[j] + gauss_legendre(self.h, self.edges[j], x))

    def whole(self) -> float:
        """∫ uⁿ f(u) du up to ∞; beyond the panels h is continued as a power, ∞ where that diverges."""
        at_end, before = self.h(self.edges[-1] - np.array([0.0, 1.0]))
        slope = np.log(at_end / before) if at_end > 0 else -np.inf
        return self.scale * float(self.cumulative[-1] - at_end / slope) if slope < -1e-12 else np.inf


def quadrature_moment(law: ContinuousLaw, n: int, t: Floats) -> Floats:
    """M_n(t) = ∫₀ᵗ uⁿ f(u) du by Gauss–Legendre panels, about 1e-12 relative."""
    bottom, top = law.support
    panels = _panels(law, n)
    v = np.minimum(t, top) - bottom
    moment = np.where(v > 0, panels.up_to(v), 0.0)
    return np.where(v == np.inf, panels.whole(), moment) if top == np.inf else moment


@lru_cache(maxsize=256)
@np.errstate(all="ignore")  # what is not finite does not pass the comparison with the cdf
def _panels(law: ContinuousLaw, n: int) -> Panels:
    bottom, top = law.support
    median = float(law.ppf(0.5))
    m = median - bottom
    if not 0 < m < np.inf:
        raise LawError(f"the times of {law!r} are too small, too large or too close to compute with")

    def h(x: Floats, n: int = n) -> Floats:
        v = m * np.exp(x)
        return np.exp(n * np.log((bottom + v) / median) + law._logpdf_above(v)) * v

    high = min(MAX_E_FOLDS, np.log((top - bottom) / m))
    even = np.linspace(-MAX_E_FOLDS, high, int(np.ceil((high + MAX_E_FOLDS) / WIDEST_PANEL)) + 1)
    kinks = np.log([(kink - bottom) / m for kink in law.kinks if bottom < kink < top])
    near = WIDEST_PANEL / 2.0 ** np.arange(50)  # so that a narrow law is not missed between two nodes
    edges = np.unique(np.concatenate([even, kinks, -near, near]).clip(-MAX_E_FOLDS, high))
    edges, areas = _refined(h, edges)
    first, last = law._cdf_above(m * np.exp(np.array([-MAX_E_FOLDS, high])))
    mass = gauss_legendre(lambda x: h(x, 0), edges[:-1], edges[1:]).sum()
    if not abs(mass - (last - first)) < 1e-8:
        raise LawError(f"{law.name}: its density, integrated, is not its cdf: too narrow for floating point, or wrong")
    # what lies below the panels is at the lower end, to rounding
    sums = float(first) * (bottom / median) ** n + np.concatenate([[0.0], np.cumsum(areas)])
    return Panels(h, edges, sums, m, float(np.power(median, n)))


def _refined(h: Callable[[Floats], Floats], edges: Floats) -> tuple[Floats, Floats]:
    """Halve panels until halving no longer changes the integral up to their end, or rounding stops it."""
    areas = gauss_legendre(h, edges[:-1], edges[1:])
    while True:
        a, b = edges[:-1], edges[1:]
        middle = 0.5 * (a + b)
        left, right = gauss_legendre(h, a, middle), gauss_legendre(h, middle, b)
        change, below = np.abs(left + right - areas), np.cumsum(left + right)
        rough = (change > PANEL_TOLERANCE * below) & (areas + left + right > 1e-290)
        if edges.size + rough.sum() > MAX_PANELS:  # rounding noise in a tail: only the whole counts now
            rough &= change > PANEL_TOLERANCE * below[-1]
        if not rough.any() or edges.size > 4 * MAX_PANELS:
            break
        edges = np.sort(np.concatenate([edges, middle[rough]]))
        areas = np.where(rough, left, areas)
        areas = np.insert(areas, np.flatnonzero(rough) + 1, right[rough])
    return edges, areas
