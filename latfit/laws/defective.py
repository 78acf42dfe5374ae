"""A law of which a share never returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from latfit.errors import LawError
from latfit.laws.base import Law, ParametricLaw, SameTimes
from latfit.numbers import Floats


@dataclass(frozen=True)
class Defective(SameTimes):
    """F̃ = (1 − rho) F: a share rho of the jobs never returns. Glatard et al. 2006, §2.

    A defective law inside is opened: the shares that return multiply.

    Examples
    --------
    >>> import latfit
    >>> law = latfit.Defective(latfit.parse_law("exponential(rate=0.1)"), 0.2)
    >>> law.rho, float(law.cdf(float("inf")))
    (0.2, 0.8)
    """

    name: ClassVar[str] = "defective"
    law: Law
    rho: float

    def __post_init__(self) -> None:
        rho = self.rho
        if isinstance(rho, bool) or not isinstance(rho, (int, float, np.integer, np.floating)) or not 0 <= rho < 1:
            raise LawError(f"the outlier ratio rho is {rho!r}; it must lie in [0, 1)")
        if not isinstance(self.law, Law):
            raise LawError(f"a defective law needs a law, not {self.law!r}")
        law, rho = self.law, float(rho)
        if isinstance(law, Defective):
            law, rho = law.law, 1.0 - (1.0 - rho) * (1.0 - law.rho)
        if law.rho > 0:
            raise LawError(f"the {law.name} law has outliers of its own (rho = {law.rho:g}); use its rescaled(rho)")
        object.__setattr__(self, "law", law)
        object.__setattr__(self, "rho", rho)

    def cdf(self, t: ArrayLike) -> Floats:
        return (1.0 - self.rho) * self.law.cdf(t)

    def still_out(self, t: ArrayLike) -> Floats:
        return self.rho + (1.0 - self.rho) * self.law.still_out(t)

    def partial_moment(self, n: int, t: ArrayLike) -> Floats:
        return (1.0 - self.rho) * self.law.partial_moment(n, t)

    def pdf(self, t: ArrayLike) -> Floats:
        return (1.0 - self.rho) * self.law.pdf(t)

    def sample(self, size: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Independent latencies, ∞ for what never returns."""
        if not isinstance(self.law, ParametricLaw):
            raise LawError(f"the {self.law.name} law cannot be sampled")
        latencies = self.law.sample(size, rng)
        return np.where(rng.random(size) < self.rho, np.inf, latencies)
