"""Densities that are constant between edges: the uniform and the piecewise-uniform law."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from latfit.errors import LawError
from latfit.laws.base import ContinuousLaw, Parameter, register
from latfit.laws.kernel import Jet, Kernel
from latfit.laws.samples import SampleBatch
from latfit.numbers import Floats


class StepDensity(ContinuousLaw):
    """A density that is constant between edges."""

    _pieces: tuple[Floats, Floats]
    """The edges, and probabilities that add up to 1 exactly."""

    def _set_pieces(self, edges: tuple[float, ...], probs: tuple[float, ...]) -> None:
        used = np.flatnonzero(probs)
        support = edges[used[0]], edges[used[-1] + 1]
        vars(self).update(support=support, kinks=edges, _pieces=(np.array(edges), np.array(probs) / np.sum(probs)))

    def _cdf(self, t: Floats) -> Floats:
        edges, probs = self._pieces
        cumulative = np.append(0.0, np.cumsum(probs))
        return np.asarray(np.interp(t, edges, cumulative / cumulative[-1]))

    def _sf(self, t: Floats) -> Floats:
        edges, probs = self._pieces
        beyond = np.append(np.cumsum(probs[::-1])[::-1], 0.0)
        return np.asarray(np.interp(t, edges, beyond / beyond[0]))

    def _logpdf(self, t: Floats) -> Floats:
        edges, probs = self._pieces
        heights: Floats = np.concatenate([[0.0], probs / np.diff(edges), [0.0]])
        # a piece includes its upper edge, and the first one its lower edge too
        i = np.searchsorted(edges, t, side="left")
        return np.log(np.take(heights, np.where(t == edges[0], 1, i)))

    def _ppf(self, q: Floats) -> Floats:
        edges, probs = self._pieces
        cumulative = self._cdf(edges)
        i = np.clip(np.searchsorted(cumulative, q, side="left") - 1, 0, probs.size - 1)
        return edges[i] + (q - cumulative[i]) / probs[i] * np.diff(edges)[i]

    def _partial_moment(self, n: int, t: Floats) -> Floats:
        """The mean of uⁿ over [a, b] is Σ aⁱ bⁿ⁻ⁱ/(n+1), without a difference of powers."""
        edges, probs = self._pieces
        a, b = edges[:-1], np.clip(t[..., None], edges[:-1], edges[1:])
        means = sum(a**i * b ** (n - i) for i in range(n + 1)) / (n + 1)
        return ((b - a) * means) @ (probs / np.diff(edges))

    def std(self) -> float:
        edges, probs = self._pieces
        middles = 0.5 * (edges[1:] + edges[:-1])
        return float(np.sqrt(probs @ ((middles - probs @ middles) ** 2 + np.diff(edges) ** 2 / 12)))


@register
@dataclass(frozen=True)
class PiecewiseUniform(StepDensity):
    """Step density: probability probs[i] spread evenly from edges[i] to edges[i+1]. Chalasani et al., the examples."""

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

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set_pieces(self.edges, self.probs)


class _UniformKernel(Kernel):
    """u = (a, log(b − a)), where a is the smallest latency.

    If ρ is free, b is the largest latency: a larger b is less likely than more outliers. If ρ is given, b may be larger
    and is searched. On a coarse clock the ends are those of cells.
    """

    zero_allowed = True
    regular = False

    def starts(self, batch: SampleBatch) -> list[Floats]:
        a, log_width = self.closed_form(batch)
        beyond = np.log1p(np.concatenate([[0.0], np.geomspace(1e-6, 1e6, 97)]))
        return [np.array([a, log_width + log_share]) for log_share in beyond]

    def closed_form(self, batch: SampleBatch) -> Floats:
        low, high = batch.extremes
        low, high = np.maximum(low - batch.cell / 2, 0.0), high + batch.cell / 2
        return np.array([low, np.log(high - low)])

    def completions(self, batch: SampleBatch, u: Floats) -> Jet:
        return self.density(batch, u)

    def density(self, batch: SampleBatch, u: Floats) -> Jet:
        """−n log(b − a), −∞ if b is below a latency or the end of its cell; a is not varied."""
        zero = np.zeros_like(u[0])
        inside = u[0] + np.exp(u[1]) >= (batch.extremes[1] + batch.cell / 2) * (1 - 1e-14)
        return Jet.of(np.where(inside, -batch.n * u[1], -np.inf), [zero, -batch.n], [zero, zero, zero])

    def survival(self, t: Floats, u: Floats) -> Jet:
        F = self.cdf(t, u)[0]
        zero = np.zeros_like(F)
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = F / (1 - F)
            return Jet.of(np.log1p(-F), [zero, odds], [zero, zero, -odds * (1 + odds)])

    def cdf(self, t: Floats, u: Floats) -> tuple[Floats, Floats]:
        """(t − a)/(b − a), clipped to [0, 1], and its gradient; a negative a counts as 0."""
        a, width = u[0][:, None], np.exp(u[1])[:, None]
        F = np.clip((t - np.maximum(a, 0.0)) / width, 0.0, 1.0)
        inside = (F > 0) & (F < 1)
        return F, np.array([np.where(inside & (a > 0), -1 / width, 0.0), np.where(inside, -F, 0.0)])

    def to_params(self, u: Floats, unit: float) -> tuple[Floats, Floats]:
        """The ends a and b = a + e^u₁, rounded outwards so that they include every latency."""
        a, width = np.maximum(u[0], 0.0), np.exp(u[1])
        ones, zero = np.ones_like(width), np.zeros_like(width)
        jacobian = np.array([np.array([ones, zero]), np.array([ones, width])])
        return unit * np.array([a * (1 - 1e-15), (a + width) * (1 + 1e-15)]), unit * jacobian

    def from_params(self, params: Floats, unit: float) -> Floats:
        return np.array([params[0] / unit, np.log((params[1] - params[0]) / unit)])


@register
@dataclass(frozen=True)
class Uniform(StepDensity):
    """Constant density between a and b. Glatard et al. 2006, §3.1."""

    name = "uniform"
    parameters = (Parameter("a", "non-negative", unit="time"), Parameter("b", "positive", unit="time"))
    formula = "F(t) = (t-a)/(b-a) on [a,b]"
    examples = ("uniform(a=100,b=500)", "uniform(a=0,b=1)")
    kernel = _UniformKernel()
    a: float
    b: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.b > self.a:
            raise LawError(f"{self.name}: b is {self.b:g} and a is {self.a:g}; b must be greater than a")
        self._set_pieces((self.a, self.b), (1.0,))

    @classmethod
    def start(cls, q1: float, q2: float, q3: float) -> dict[str, float]:
        half = max(0.5 * (q3 - q1), 1e-3 * q3)
        return {"a": max(0.0, q1 - half), "b": q3 + half}

    def draw(self, size: tuple[int, ...], rng: np.random.Generator) -> Floats:
        return np.asarray(rng.uniform(self.a, self.b, size))
