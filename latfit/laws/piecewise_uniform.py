"""Step densities: the piecewise-uniform law, such as a histogram, and what the uniform law shares with it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from latfit.laws.base import ContinuousLaw, Parameter, register
from latfit.numbers import Floats


class StepDensity(ContinuousLaw):
    """A density that is constant between edges."""

    edges: tuple[float, ...]
    probs: tuple[float, ...]

    @cached_property
    def _pieces(self) -> tuple[Floats, Floats, Floats]:
        """Edges, probabilities that add up to 1 exactly, and F at the edges."""
        probs = np.array(self.probs) / np.sum(self.probs)
        cumulative = np.concatenate([[0.0], np.cumsum(probs)])
        return np.array(self.edges), probs, cumulative / cumulative[-1]

    @property
    def support(self) -> tuple[float, float]:
        used = np.flatnonzero(self.probs)
        return self.edges[used[0]], self.edges[used[-1] + 1]

    @property
    def kinks(self) -> tuple[float, ...]:
        return self.edges

    def _share(self, t: Floats) -> Floats:
        """For each t and piece, the share of the piece that lies at or below t."""
        edges, _, _ = self._pieces
        return np.clip((t[..., None] - edges[:-1]) / np.diff(edges), 0.0, 1.0)

    def _cdf(self, t: Floats) -> Floats:
        edges, probs, _ = self._pieces
        return np.where(t >= edges[-1], 1.0, self._share(t) @ probs)

    def _sf(self, t: Floats) -> Floats:
        edges, probs, _ = self._pieces
        return np.clip((edges[1:] - t[..., None]) / np.diff(edges), 0.0, 1.0) @ probs

    def _logpdf(self, t: Floats) -> Floats:
        edges, probs, _ = self._pieces
        heights: Floats = np.concatenate([[0.0], probs / np.diff(edges), [0.0]])
        # a piece holds its upper edge; the first piece holds its lower edge too
        i = np.searchsorted(edges, t, side="left")
        return np.log(np.take(heights, np.where(t == edges[0], 1, i)))

    def _ppf(self, q: Floats) -> Floats:
        edges, probs, cumulative = self._pieces
        i = np.clip(np.searchsorted(cumulative, q, side="left") - 1, 0, probs.size - 1)
        return edges[i] + (q - cumulative[i]) / probs[i] * np.diff(edges)[i]

    def _partial_moment(self, n: int, t: Floats) -> Floats:
        """The mean of uⁿ over [a, b] is Σ aⁱ bⁿ⁻ⁱ/(n+1), without a difference of powers."""
        edges, probs, _ = self._pieces
        a, b = edges[:-1], np.clip(t[..., None], edges[:-1], edges[1:])
        means = sum(a**i * b ** (n - i) for i in range(n + 1)) / (n + 1)
        return (self._share(t) * means) @ probs

    def std(self) -> float:
        edges, probs, _ = self._pieces
        middles = 0.5 * (edges[1:] + edges[:-1])
        return float(np.sqrt(probs @ ((middles - probs @ middles) ** 2 + np.diff(edges) ** 2 / 12)))


@register
@dataclass(frozen=True)
class PiecewiseUniform(StepDensity):
    """Step density: probability probs[i], evenly spread from edges[i] to edges[i+1]. Chalasani et al., the examples."""

    name = "piecewise-uniform"
    parameters = (
        Parameter("edges", "non-negative", many=True, unit="time", rule="rises", extra=1),
        Parameter("probs", "non-negative", many=True, rule="adds up to 1"),
    )
    list_sizes = "there must be one edge more than probs"
    formula = "f(t) = probs[i]/(edges[i+1]-edges[i]) on (edges[i],edges[i+1]]"
    examples = (
        "piecewise-uniform(edges=[0,1,5],probs=[0.6666666666666666,0.3333333333333333])",
        "piecewise-uniform(edges=[10,20,50,60],probs=[0.5,0,0.5])",
    )
    edges: tuple[float, ...]
    probs: tuple[float, ...]
