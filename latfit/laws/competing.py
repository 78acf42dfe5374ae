"""Laws derived from another law: a share never returns, or attempts can also fail visibly."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from latfit.errors import LawError
from latfit.laws.base import Law, ParametricLaw, check_order
from latfit.laws.discrete import Steps
from latfit.numbers import Floats, is_number


@dataclass(frozen=True)
class Defective(Law):
    """F̃ = (1 − rho) F: a share rho of the jobs never returns. Glatard et al. 2006, §2.

    `law` is anything that stands for a law: a text, a fit, a frozen distribution of scipy.stats. If it is defective
    itself, the shares that return are multiplied.

    Examples
    --------
    >>> import latfit
    >>> law = latfit.Defective("exponential(rate=0.1)", 0.2)
    >>> law.rho, float(law.cdf(float("inf")))
    (0.2, 0.8)
    """

    name: ClassVar[str] = "defective"
    law: Law
    rho: float

    def __post_init__(self) -> None:
        rho = self.rho
        if not (is_number(rho) and 0 <= rho < 1):
            raise LawError(f"the outlier ratio rho is {rho!r}; it must lie in [0, 1)")
        from latfit.laws.empirical import as_law  # which makes defective laws itself

        law, rho = as_law(self.law), float(rho)
        if isinstance(law, Defective):
            law, rho = law.law, 1.0 - (1.0 - rho) * (1.0 - law.rho)
        if law.rho > 0:
            raise LawError(f"the {law.name} law has outliers of its own (rho = {law.rho:g}); use its rescaled(rho)")
        vars(self).update(law=law, rho=rho, support=law.support, jumps=law.jumps, kinks=law.kinks)

    def cdf(self, t: ArrayLike) -> Floats:
        return (1.0 - self.rho) * self.law.cdf(t)

    def still_out(self, t: ArrayLike) -> Floats:
        return self.rho + (1.0 - self.rho) * self.law.still_out(t)

    def partial_moment(self, n: int, t: ArrayLike) -> Floats:
        return (1.0 - self.rho) * self.law.partial_moment(n, t)

    def pdf(self, t: ArrayLike) -> Floats:
        return (1.0 - self.rho) * self.law.pdf(t)

    def _cdf_above(self, v: Floats) -> Floats:
        return (1.0 - self.rho) * self.law._cdf_above(v)

    def _logpdf_above(self, v: Floats) -> Floats:
        return np.asarray(np.log1p(-self.rho) + self.law._logpdf_above(v))

    def ppf(self, q: ArrayLike) -> Floats:
        levels, top = np.asarray(q, dtype=np.float64), 1.0 - self.rho
        return np.where(levels > top, np.inf, self.law.ppf(np.clip(levels / top, 0.0, 1.0)))

    def sample(self, size: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Independent latencies, ∞ for attempts that never return."""
        if not isinstance(self.law, ParametricLaw):
            raise LawError(f"the {self.law.name} law cannot be sampled")
        latencies = self.law.sample(size, rng)
        return np.where(rng.random(size) < self.rho, np.inf, latencies)


@dataclass(frozen=True, eq=False)
class Competing(Law):
    """A continuous law F̃₀ of completion, and an independent time of failure with a step law.

    An attempt completes if its latency comes first: F̃(t) = ∫₀ᵗ S_f dF̃₀. It fails visibly if the failure comes first:
    G̃(t) = Σ S₀(τ_i) ΔF_f(τ_i) over the times of failure τ_i ≤ t, S₀ = 1 − F̃₀. It is still out with probability S₀ S_f.
    If S_f is the Kaplan–Meier estimate of the failures (`risk`), this is the smooth counterpart of `Empirical`.
    `rho` = 1 − F̃(∞) includes failures, since a failed attempt never completes; `never` does not.
    """

    name: ClassVar[str] = "competing"
    law: Law
    risk: Steps
    failures: Steps = field(init=False)
    rho: float = field(init=False)
    _cut: dict[int, Steps] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.law, Law) or self.law.jumps is not None or float(self.law.failed(np.inf)) > 0:
            raise LawError(f"failures compete with a continuous law that has none of its own, not with {self.law!r}")
        if self.risk.total > 1 + 1e-12:
            raise LawError(f"the probabilities of failure add up to {self.risk.total:g}; they must not exceed 1")
        times, (low, high) = self.risk.times, self.law.support
        failures = Steps.of(times, self.law.still_out(times) * self.risk.masses)
        end = float(times[self._unfailed(times) <= 0].min(initial=high))  # after a certain failure none is out
        vars(self).update(failures=failures, support=(low, end), kinks=(*self.law.kinks, *map(float, times)))
        vars(self)["rho"] = 1.0 - float(self.cdf(np.inf))

    @classmethod
    def of(cls, law: Law, times: ArrayLike, probabilities: ArrayLike) -> Competing:
        """From the times of failure in rising order, and their probabilities."""
        at, masses = np.asarray(times, dtype=np.float64), np.asarray(probabilities, dtype=np.float64)
        if at.shape != masses.shape or at.ndim != 1 or not (np.diff(at, prepend=-1.0) > 0).all() or (masses < 0).any():
            raise LawError("the times of failure must rise from 0, each with a probability that is not negative")
        return cls(law, Steps.of(at, masses))

    @property
    def never(self) -> float:
        return float(self.still_out(np.inf))

    def _unfailed(self, t: ArrayLike) -> Floats:
        """S_f(t)."""
        return np.maximum(1.0 - self.risk.moment(0, t), 0.0)

    def cdf(self, t: ArrayLike) -> Floats:
        return self.partial_moment(0, t)

    def partial_moment(self, n: int, t: ArrayLike) -> Floats:
        """∫₀ᵗ uⁿ S_f dF̃₀ = S_f(t) M̃₀(t) + Σ over τ_i ≤ t of ΔF_f(τ_i) M̃₀(τ_i)."""
        check_order(n)
        if n not in self._cut:
            at_risk = self.law.partial_moment(n, self.risk.times)
            self._cut[n] = Steps.of(self.risk.times, self.risk.masses * at_risk)
        unfailed = self._unfailed(t)
        with np.errstate(invalid="ignore"):  # 0 · ∞ beyond the last failure is 0
            whole = np.where(unfailed > 0, unfailed * self.law.partial_moment(n, t), 0.0)
        return whole + self._cut[n].moment(0, t)

    def pdf(self, t: ArrayLike) -> Floats:
        return np.asarray(self._unfailed(t) * self.law.pdf(t))

    def _logpdf_above(self, v: Floats) -> Floats:
        return np.log(self._unfailed(self.support[0] + v)) + self.law._logpdf_above(v)

    def still_out(self, t: ArrayLike) -> Floats:
        return self.law.still_out(t) * self._unfailed(t)
