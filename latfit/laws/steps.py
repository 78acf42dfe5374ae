"""A step function that adds up point masses: what the discrete and the empirical law are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from latfit.laws.base import Floats, check_order


@dataclass(frozen=True, eq=False)
class Steps:
    """Point masses at strictly rising times, and their running sum."""

    times: Floats
    masses: Floats
    cumulative: Floats

    @classmethod
    def of(cls, times: Floats, masses: Floats) -> Steps:
        """The steps of given masses."""
        return cls(times, masses, np.cumsum(masses))

    @property
    def total(self) -> float:
        """All mass together."""
        return float(self.cumulative[-1]) if self.times.size else 0.0

    def times_factor(self, factor: float) -> Steps:
        """The same steps, `factor` times as high."""
        return Steps(self.times, self.masses * factor, self.cumulative * factor)

    def count(self, t: ArrayLike) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
        """How many steps lie at or below t."""
        return np.searchsorted(self.times, t, side="right")

    def mass(self, t: ArrayLike) -> Floats:
        """The mass at or below t."""
        return np.concatenate([[0.0], self.cumulative])[self.count(t)]

    def moment(self, n: int, t: ArrayLike) -> Floats:
        """Σ timeⁿ mass over the steps at or below t."""
        check_order(n)
        if n == 0:
            return self.mass(t)
        return np.concatenate([[0.0], np.cumsum(self.times**n * self.masses)])[self.count(t)]
