"""A frozen distribution of scipy.stats as a law; scipy.stats is not imported unless someone has one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from latfit.errors import LawError
from latfit.laws.base import ContinuousLaw
from latfit.numbers import Floats


def is_frozen(value: Any) -> bool:
    """Whether a value is a distribution of scipy.stats with its parameters, such as `scipy.stats.lognorm(1.0)`."""
    return type(value).__module__.startswith("scipy.stats") and hasattr(value, "dist") and hasattr(value, "cdf")


@dataclass(frozen=True, eq=False)
class FrozenLaw(ContinuousLaw):
    """The law of a frozen scipy.stats distribution: continuous, with one value for each parameter, and T ≥ 0."""

    name = "scipy"
    parameters = ()
    frozen: Any

    def __post_init__(self) -> None:
        if not hasattr(self.frozen.dist, "logpdf"):
            raise LawError(f"{self.spec()} is discrete; write it as discrete(values=[…],probs=[…])")
        ends = self.frozen.support()
        if np.ndim(ends[0]) or np.ndim(ends[1]):
            raise LawError(f"{self.spec()} is several laws; a law has one value for each parameter")
        if ends[0] < 0:
            raise LawError(f"{self.spec()} begins at {ends[0]:g}; a latency is not negative: truncate the law at 0")

    def spec(self) -> str:
        """The distribution as scipy.stats writes it, such as `lognorm(1.0, scale=244.7)`."""
        values = [*map(repr, self.frozen.args), *(f"{name}={value!r}" for name, value in self.frozen.kwds.items())]
        return f"{self.frozen.dist.name}({', '.join(values)})"

    @property
    def support(self) -> tuple[float, float]:
        low, high = self.frozen.support()
        return float(low), float(high)

    def _logpdf(self, t: Floats) -> Floats:
        return np.asarray(self.frozen.logpdf(t))

    def _cdf(self, t: Floats) -> Floats:
        return np.asarray(self.frozen.cdf(t))

    def _sf(self, t: Floats) -> Floats:
        return np.asarray(self.frozen.sf(t))

    def _ppf(self, q: Floats) -> Floats:
        return np.asarray(self.frozen.ppf(q))
