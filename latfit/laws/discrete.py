"""The discrete law: a few latencies with given probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from latfit.errors import LawError
from latfit.laws.base import Parameter, ParametricLaw, check_probabilities, register
from latfit.laws.steps import Steps
from latfit.numbers import Floats


@register
@dataclass(frozen=True)
class Discrete(ParametricLaw):
    """Latency values[i] with probability probs[i].

    F(t) = Σ probs[i] over values[i] ≤ t. Chalasani et al., the discrete laws of the agents.
    """

    name = "discrete"
    parameters = (
        Parameter("values", "non-negative", many=True, unit="time"),
        Parameter("probs", "non-negative", many=True),
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
        if len(self.values) != len(self.probs):
            raise LawError(
                f"{self.name}: there are {len(self.values)} values and {len(self.probs)} probs; "
                "there must be one of each for every latency"
            )
        if not (np.diff(self.values) > 0).all():
            raise LawError(f"{self.name}: values is {list(self.values)}; the values must rise strictly")
        check_probabilities(self.name, "probs", self.probs)

    @property
    def support(self) -> tuple[float, float]:
        """The smallest and the largest value that has probability."""
        return float(self.jumps[0]), float(self.jumps[-1])

    @property
    def jumps(self) -> Floats:
        """The values that have probability."""
        return self._steps.times

    @cached_property
    def _steps(self) -> Steps:
        used = np.flatnonzero(self.probs)
        masses = np.array(self.probs)[used] / np.sum(self.probs)
        cumulative = np.cumsum(masses)
        return Steps(np.array(self.values)[used], masses, cumulative / cumulative[-1])

    def cdf(self, t: ArrayLike) -> Floats:
        """F(t), the step at t included."""
        return self._steps.mass(t)

    def still_out(self, t: ArrayLike) -> Floats:
        """S(t): the probability of the values beyond t."""
        beyond = np.append(np.cumsum(self._steps.masses[::-1])[::-1], 0.0)
        return np.where(np.less(t, self.jumps[0]), 1.0, beyond[self._steps.count(t)])

    def partial_moment(self, n: int, t: ArrayLike) -> Floats:
        """Σ valueⁿ prob over the values at or below t."""
        return self._steps.moment(n, t)

    def ppf(self, q: ArrayLike) -> Floats:
        """The smallest value with F(value) ≥ q."""
        q = np.asarray(q, dtype=np.float64)
        if not ((q >= 0) & (q <= 1)).all():
            raise LawError(f"{self.name}: a probability must lie in [0, 1], to ask for its quantile")
        return self.jumps[np.searchsorted(self._steps.cumulative, q, side="left")]

    def std(self) -> float:
        """√ Σ (value − mean)² prob."""
        return float(np.sqrt(self._steps.masses @ (self.jumps - self.mean()) ** 2))
