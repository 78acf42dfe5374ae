"""Laws that complete at given times only, built from point masses; the discrete law."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latfit.laws.base import Law, Parameter, ParametricLaw, check_order, register
from latfit.numbers import Floats


@dataclass(frozen=True, eq=False)
class Steps:
    """Point masses at strictly rising times, and their running sum."""

    times: Floats
    masses: Floats
    cumulative: Floats
    _moments: dict[int, Floats] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, times: Floats, masses: Floats) -> Steps:
        return cls(times, masses, np.cumsum(masses))

    @property
    def total(self) -> float:
        return float(self.cumulative[-1]) if self.times.size else 0.0

    def count(self, t: ArrayLike) -> NDArray[np.intp]:
        """The number of steps at or below t."""
        at = np.asarray(t, dtype=np.float64)
        before = self.times.size - at.size
        if at.ndim == 1 and before >= 0 and (at == self.times[before:]).all():
            return np.arange(before + 1, self.times.size + 1)  # the steps themselves need no search
        return self.times.searchsorted(at, side="right")

    def moment(self, n: int, t: ArrayLike) -> Floats:
        """Σ timeⁿ mass over the steps at or below t."""
        check_order(n)
        if n not in self._moments:
            sums = np.cumsum(self.times**n * self.masses) if n else self.cumulative
            self._moments[n] = np.append(0.0, sums)
        return self._moments[n][self.count(t)]


class StepLaw(Law):
    """A law that completes at given times only: F̃ is the sum of the steps `completions`."""

    completions: Steps
    jumps: Floats

    def _set_completions(self, completions: Steps, **more: Any) -> None:
        times = completions.times
        support = float(times[0]), float(times[-1])
        vars(self).update(completions=completions, jumps=times, support=support, **more)

    def cdf(self, t: ArrayLike) -> Floats:
        return self.completions.moment(0, t)

    def partial_moment(self, n: int, t: ArrayLike) -> Floats:
        return self.completions.moment(n, t)


@register
@dataclass(frozen=True)
class Discrete(StepLaw, ParametricLaw):
    """Latency values[i] with probability probs[i], as the agents of Chalasani et al. have it."""

    name = "discrete"
    parameters = (
        Parameter("values", "non-negative", many=True, unit="time", rule="rises"),
        Parameter("probs", "non-negative", many=True, rule="adds up to 1"),
    )
    formula = "F(t) = sum of probs[i] over values[i] <= t"
    examples = (
        "discrete(values=[5,20],probs=[0.6,0.4])",
        "discrete(values=[3],probs=[1])",
        "discrete(values=[0,1,7,8],probs=[0.1,0.2,0.3,0.4])",
    )
    values: tuple[float, ...]
    probs: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        used = np.flatnonzero(self.probs)
        masses = np.array(self.probs)[used] / np.sum(self.probs)
        cumulative = np.cumsum(masses)
        self._set_completions(Steps(np.array(self.values)[used], masses, cumulative / cumulative[-1]))

    ppf, _ppf = ParametricLaw.ppf, StepLaw.ppf

    def still_out(self, t: ArrayLike) -> Floats:
        beyond = np.append(np.cumsum(self.completions.masses[::-1])[::-1], 0.0)
        return np.where(np.less(t, self.jumps[0]), 1.0, beyond[self.completions.count(t)])

    def std(self) -> float:
        return float(np.sqrt(self.completions.masses @ (self.jumps - self.mean()) ** 2))
