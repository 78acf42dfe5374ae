"""The discrete law: a few latencies with given probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from latfit.laws.base import Parameter, ParametricLaw, StepLaw, register
from latfit.laws.steps import Steps
from latfit.numbers import Floats


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

    def still_out(self, t: ArrayLike) -> Floats:
        beyond = np.append(np.cumsum(self.completions.masses[::-1])[::-1], 0.0)
        return np.where(np.less(t, self.jumps[0]), 1.0, beyond[self.completions.count(t)])

    def ppf(self, q: ArrayLike) -> Floats:
        return self.jumps[np.searchsorted(self.completions.cumulative, self.check_levels(q), side="left")]

    def std(self) -> float:
        return float(np.sqrt(self.completions.masses @ (self.jumps - self.mean()) ** 2))
