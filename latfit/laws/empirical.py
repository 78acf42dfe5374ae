"""The empirical law of a sample, and the conversion of anything that stands for a law."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latfit.curve import hazards, kaplan_meier, masses, survival
from latfit.errors import LawError, SampleError, none_of
from latfit.laws.base import ContinuousLaw, Law, register
from latfit.laws.competing import Defective
from latfit.laws.discrete import StepLaw, Steps
from latfit.laws.parse import parse_law
from latfit.numbers import Floats
from latfit.sample import LatencySample


def is_frozen(value: Any) -> bool:
    """Whether a value is a frozen distribution of scipy.stats, such as `scipy.stats.lognorm(1.0)`."""
    return type(value).__module__.startswith("scipy.stats") and hasattr(value, "dist") and hasattr(value, "cdf")


@dataclass(frozen=True, eq=False)
class FrozenLaw(ContinuousLaw):
    """The law of a frozen scipy.stats distribution that is continuous, scalar and not negative."""

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
        vars(self).update(params={}, support=(float(ends[0]), float(ends[1])))

    def spec(self) -> str:
        """The distribution as scipy.stats writes it, such as `lognorm(1.0, scale=244.7)`."""
        values = [*map(repr, self.frozen.args), *(f"{name}={value!r}" for name, value in self.frozen.kwds.items())]
        return f"{self.frozen.dist.name}({', '.join(values)})"

    def _logpdf(self, t: Floats) -> Floats:
        return np.asarray(self.frozen.logpdf(t))

    def _cdf(self, t: Floats) -> Floats:
        return np.asarray(self.frozen.cdf(t))

    def _sf(self, t: Floats) -> Floats:
        return np.asarray(self.frozen.sf(t))

    def _ppf(self, q: Floats) -> Floats:
        return np.asarray(self.frozen.ppf(q))


@register
@dataclass(frozen=True, eq=False)
class Empirical(StepLaw):
    """Kaplan–Meier law of a sample, failures as a competing risk.

    F̃(t) = Σ S(t_i−) d_i/n_i over the completions t_i ≤ t, G̃(t) the same over the failures,
    S(t) = 1 − F̃(t) − G̃(t) (Aalen and Johansen 1978). It is defective: `rho` = 1 − F̃(T), the
    probability of not completing by T, the end of the observation. That includes failures,
    since a failed attempt never completes; `never` does not.

    Examples
    --------
    >>> import latfit
    >>> law = latfit.Empirical.of(latfit.LatencySample.of([1.0, 2.0, 2.0, 5.0], lost=1))
    >>> law.jumps.tolist(), law.cdf([1.0, 2.0, 5.0]).round(3).tolist(), round(law.rho, 3)
    ([1.0, 2.0, 5.0], [0.2, 0.6, 0.8], 0.2)
    """

    name: ClassVar[str] = "empirical"
    completions: Steps
    failures: Steps = field()
    never: float
    completed: NDArray[np.int64]
    """The number of completions at or below each jump."""
    resolution: float = 0.0
    rho: float = field(init=False)

    def __post_init__(self) -> None:
        rho = 1.0 - self.completions.total if self.failures.times.size else self.never
        self._set_completions(self.completions, rho=rho)

    @classmethod
    def of(cls, data: Any) -> Empirical:
        """The Kaplan–Meier law of a sample, or of anything that `latfit.as_sample` accepts."""
        if not isinstance(data, LatencySample):
            from latfit.logs import as_sample  # loads all readers

            data = as_sample(data)
        sample: LatencySample = data
        n = sample.n
        if not n:
            raise SampleError("the sample is empty: there is no probe to take a law from")
        if not sample.completed.total:
            raise SampleError(f"{none_of(n, 'probe')} completed: there is no latency to take a law from")
        estimate = kaplan_meier(sample)
        steps = []
        for tally, cumulative in ((sample.completed, estimate.completed), (sample.failed, estimate.failed)):
            if sample.censored_early:
                at = cumulative[np.searchsorted(estimate.times, tally.values)]
                steps.append(Steps(tally.values, np.diff(at, prepend=0.0), at))
            else:  # the product telescopes to exact quotients
                steps.append(Steps(tally.values, tally.counts / n, np.cumsum(tally.counts) / n))
        never = float(estimate.still_out[-1])
        return cls(steps[0], steps[1], never, np.cumsum(sample.completed.counts), sample.resolution)

    def still_out(self, t: ArrayLike) -> Floats:
        return np.maximum(1.0 - self.cdf(t) - self.failed(t), self.never)

    @property
    def rho_without_failures(self) -> float:
        """The share that would never return if nothing failed: 1 − F₀(T), with failures censored at their time."""
        return float(1.0 - self._apart()[1][-1])

    def rescaled(self, rho: float) -> Empirical:
        """The same law with another share `rho` that never returns among the attempts that do not fail.

        Completions and failures are independent risks. Without failures an attempt would complete by t with probability
        F₀(t) = 1 − Π (1 − d_i/n_i), and `rho_without_failures` = 1 − F₀(T). That becomes (1 − rho) F₀(t)/F₀(T), and the
        hazard of failing is unchanged. If nothing failed, `rho` is the share that does not complete.
        """
        if not 0 <= rho < 1:
            raise LawError(f"the outlier ratio rho is {rho:g}; it must lie in [0, 1)")
        if not self.failures.times.size:
            steps, factor = self.completions, (1.0 - rho) / self.completions.total
            completions = Steps(steps.times, steps.masses * factor, steps.cumulative * factor)
            return Empirical(completions, self.failures, rho, self.completed, self.resolution)
        times, F, failing = self._apart()
        F = F * ((1.0 - rho) / F[-1])
        unfailed = survival(failing)
        done, gone = (masses(unfailed, rate) for rate in (np.diff(F, prepend=0.0), (1.0 - F) * failing))
        completions, failures = (
            Steps.of(part.times, mass[np.searchsorted(times, part.times)])
            for part, mass in ((self.completions, done), (self.failures, gone))
        )
        never = float((1.0 - F[-1]) * unfailed[-1])
        return Empirical(completions, failures, never, self.completed, self.resolution)

    def _apart(self) -> tuple[Floats, Floats, Floats]:
        """All times, F₀ and the hazard of failing at each; at equal times completions come first."""
        times = np.union1d(self.completions.times, self.failures.times)
        at_risk = 1.0 - np.concatenate([[0.0], (self.cdf(times) + self.failed(times))[:-1]])
        done, gone = np.zeros(times.size), np.zeros(times.size)
        done[np.searchsorted(times, self.completions.times)] = self.completions.masses
        gone[np.searchsorted(times, self.failures.times)] = self.failures.masses
        # the last share at risk is a difference of sums, and may round to 0: then all of it did this
        completing, failing = (
            np.clip(np.where((mass > 0) & (share <= 0), 1.0, hazards(mass, share)), 0.0, 1.0)
            for mass, share in ((done, at_risk), (gone, at_risk - done))
        )
        return times, 1.0 - survival(completing), failing

    def conditional(self) -> Empirical:
        """The law of the attempts that completed, F̃/F̃(T)."""
        return replace(self, failures=Steps.of(np.empty(0), np.empty(0))).rescaled(0.0)


def as_law(data: Any, **params: Any) -> Law:
    """The law that an argument stands for.

    It can be a law, a fit, a text such as `lognormal(mu=5.5,sigma=1)`, a name with its parameters (and `rho`), a pair
    of a name and a dict of them, a frozen distribution of scipy.stats, or data that `latfit.as_sample` accepts (a
    sample, a log, a frame, an array), which give their empirical law.

    >>> as_law("exponential", rate=0.1, rho=0.2).rho, as_law(("exponential", {"rate": 0.1})).mean()
    (0.2, 10.0)
    """
    if isinstance(data, tuple) and len(data) == 2 and isinstance(data[0], str):
        data, params = data[0], dict(data[1])
    if isinstance(data, str):
        rho = params.pop("rho", 0.0)
        law = parse_law(data, **params)
        return Defective(law, rho) if rho else law
    if params:
        raise LawError(f"{', '.join(params)}: parameters go with the name of a law, not with a {type(data).__name__}")
    if isinstance(data, Law):
        return data
    if hasattr(data, "as_law"):
        fitted: Law = data.as_law()
        return fitted
    if is_frozen(data):
        return FrozenLaw(data)
    if isinstance(data, list) and data and hasattr(data[0], "as_law"):
        raise LawError(f"these are {len(data)} fits, and one law is needed: give one of them, such as fits[0]")
    if type(data).__module__.startswith("scipy.stats"):
        raise LawError(
            f"{type(data).__name__} lacks its parameters: freeze it, as in scipy.stats.lognorm(1, scale=250)"
        )
    return Empirical.of(data)
