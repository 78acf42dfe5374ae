"""A step function that adds up point masses: what the discrete and the empirical law are made of."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latfit.errors import LawError
from latfit.numbers import Floats


def check_order(n: int) -> None:
    """Refuse an order of a moment that is not a whole number ≥ 0."""
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
        raise LawError(f"the order of a moment is {n!r}; it must be a whole number, 0 or more")


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
        at = np.asarray(t, dtype=np.float64)
        before = self.times.size - at.size
        if at.ndim == 1 and before >= 0 and (at == self.times[before:]).all():
            return np.arange(before + 1, self.times.size + 1)  # the steps themselves need no search
        return self.times.searchsorted(at, side="right")

    def moment(self, n: int, t: ArrayLike) -> Floats:
        """Σ timeⁿ mass over the steps at or below t."""
        check_order(n)
        if not self.times.size:
            return np.zeros(np.shape(t))
        if n not in self._moments:
            sums = np.cumsum(self.times**n * self.masses) if n else self.cumulative
            self._moments[n] = np.append(0.0, sums)  # at the number of steps that count
        return self._moments[n][self.count(t)]
