"""What a latency law is, and the registry that makes a new law one new file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latfit.errors import LawError

Floats = NDArray[np.float64]


class Law(ABC):
    """A latency law: a cdf that may be defective, F̃(t) → 1 − rho − P(failed).

    This is all that `latfit.restart` knows of a law. Every method takes scalars or arrays of
    times t ≥ 0, t = ∞ included, and returns float64 arrays of the same shape.
    """

    name: ClassVar[str]

    @property
    def rho(self) -> float:
        """The probability of never returning."""
        return 0.0

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """The smallest and the largest latency that can occur (∞ if unbounded)."""

    @abstractmethod
    def cdf(self, t: ArrayLike) -> Floats:
        """F̃(t): the probability of having completed by t."""

    @abstractmethod
    def partial_moment(self, n: int, t: ArrayLike) -> Floats:
        """M̃ₙ(t) = ∫₀ᵗ uⁿ dF̃(u)."""

    def still_out(self, t: ArrayLike) -> Floats:
        """The probability of having neither completed nor failed by t."""
        return 1.0 - self.cdf(t)

    def failed(self, t: ArrayLike) -> Floats:
        """G̃(t): the probability of having failed visibly by t."""
        return np.zeros(np.shape(t))

    def failed_moment(self, n: int, t: ArrayLike) -> Floats:
        """∫₀ᵗ uⁿ dG̃(u), the partial moment of visible failures."""
        return np.zeros(np.shape(t))


L = TypeVar("L", bound="type[Law]")

REGISTRY: dict[str, type[Law]] = {}


def register(law: L) -> L:
    """Class decorator: make a law known by its name to the command line, the parser and the tests."""
    if law.name in REGISTRY:
        raise LawError(f"two laws are called {law.name!r}")
    REGISTRY[law.name] = law
    return law
