"""What a fit is, and the law of an attempt that it stands for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import latfit.fitting.tables as tables
from latfit.curve import kaplan_meier
from latfit.errors import FitError
from latfit.laws import Competing, ContinuousLaw, Defective, Law
from latfit.laws.samples import cell_width
from latfit.numbers import Floats, finite
from latfit.sample import LatencySample, Tally

Cdf = Callable[[Floats], Floats]
MAX_FAILURE_STEPS = 500  # of the law of failures; neighbouring times beyond that are merged


@dataclass(frozen=True)
class Fit:
    """A law fitted to a sample, or the reason why it could not be.

    `law` is proper and `rho` stands beside it: the fitted law of latency is `Defective(law, rho)`. `n` counts all
    probes. `std_errors` has an entry for each parameter, and for `rho` where it was estimated; an entry is None on a
    boundary. For positive parameters they are to be used on the log scale, and for small samples `profile_interval` is
    better (docs/calibration.md). `at_limit` is true where the law is at the exponential that it contains as a limit.
    `bic` counts the parameters, and ρ where it was estimated. Where `error` is not None there is no law and no score.
    `sample` is what it was fitted to, where that is known. A fit stands for its law in `optimal_timeout` and wherever
    else a law is taken.

    Examples
    --------
    >>> import latfit
    >>> best = latfit.fit(latfit.example_log().sample(cutoff=10_000), laws=["lognormal"])[0]
    >>> best.name, round(best.params["mu"], 3), round(best.std_errors["mu"], 4), round(best.rho, 4)
    ('lognormal', 5.557, 0.0147, 0.0248)
    """

    name: str
    method: str
    n: int
    law: ContinuousLaw | None = None
    rho: float | None = None
    params: dict[str, float] = field(default_factory=dict)
    std_errors: dict[str, float | None] | None = None
    sse: float | None = None
    log_likelihood: float | None = None
    aic: float | None = None
    bic: float | None = None
    converged: bool = False
    at_limit: bool = False
    error: str | None = None
    sample: LatencySample | None = field(default=None, repr=False, compare=False)

    @property
    def paper_t_min(self) -> bool:
        """Whether t_min is the smallest latency, as Glatard et al. take it, and not one step of the clock below it."""
        return self.sample is not None and self.params.get("t_min") == self.sample.completed.values[0]

    def as_law(self) -> Law:
        """The law of an attempt, with ρ and the failures of the sample; an error where the fit failed."""
        return Defective(*self.law_and_rho) if self.sample is None else fitted_law(self.sample, self)

    @property
    def d_n(self) -> float | None:
        """√n sup |F̃ − (1−ρ)F| over the probes of its sample; None where that is not known."""
        if self.sample is None or self.law is None or self.rho is None:
            return None
        distance = ks_distance(self.sample, self.law.cdf, self.rho, round_up=self.method == "ls")
        return float(np.sqrt(self.n)) * distance

    def summary(self) -> str:
        """The fit as a table: estimates, standard errors and 95 % intervals, scores and the distance from the data."""
        return tables.summary(self)

    def to_latex(self) -> str:
        r"""The fit as a LaTeX table (package booktabs), a standard error in brackets behind its parameter.

        >>> import latfit
        >>> best = latfit.fit(latfit.example_log().sample(cutoff=10_000), "lognormal")[0]
        >>> print(best.to_latex().splitlines()[4])  # doctest: +ELLIPSIS
        lognormal & $\mu = 5.557\,(0.015)$, $\sigma = 0.6697\,(0.01)$ & 0.0248 & ...
        """
        return tables.fits_table([(self, None)], "latex")

    @property
    def law_and_rho(self) -> tuple[ContinuousLaw, float]:
        """The law and ρ; an error that says why there is none where the fit failed."""
        if self.law is None or self.rho is None:
            raise FitError(f"the {self.name} fit failed: {self.error}")
        return self.law, self.rho

    @property
    def score(self) -> float:
        """What fits of one method are ranked by, small is good: BIC or the sum of squares; ∞ for a failed fit."""
        value = self.bic if self.method == "mle" else self.sse
        return np.inf if value is None else value

    def describe(self, digits: int = 6, between: str = ", ") -> str:
        """The fitted law as a person reads it; at its exponential limit it is that exponential, not a huge parameter.

        >>> from latfit.fitting import fit
        >>> from latfit.sample import LatencySample
        >>> fit(LatencySample.of([1.0, 2, 3, 4, 5, 6, 7, 8]), "pareto")[0].describe()
        '= exponential(rate=0.223144)'
        """
        if self.law is None:
            return f"not fitted: {self.error}"
        if self.at_limit:  # of laws that tend to an exponential the density at 0 tends to its rate
            return f"= exponential(rate={float(self.law.pdf(0.0)):.{digits}g})"
        return between.join(f"{name}={value:.{digits}g}" for name, value in self.params.items())

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: `law` is the registry name, numbers are finite or None."""
        return {
            "law": self.name,
            "method": self.method,
            "params": {name: finite(value) for name, value in self.params.items()},
            "std_errors": self.std_errors and {name: finite(value) for name, value in self.std_errors.items()},
            **{name: finite(getattr(self, name)) for name in ("rho", "sse", "log_likelihood", "aic", "bic")},
            "n": self.n,
            "converged": self.converged,
            "at_limit": self.at_limit,
            "error": self.error,
        }


def fitted_law(sample: LatencySample, fit: Fit) -> Law:
    """The law of an attempt under `fit`: `Defective`, or `Competing` where probes of `sample` failed visibly.

    A fit sees a failure as censored at its time, so its law is that of completion in a world without failures. Here
    the failures come back as an independent risk: their Kaplan–Meier estimate, with completions and whatever was
    censored as censoring, and lost probes at risk for ever. Without it a fitted law would promise the submissions of
    a system that never fails. Where the last probe of all failed, half of its share is taken to go on, so that no
    answer rests on every attempt ending by itself.
    """
    law = Defective(*fit.law_and_rho)
    if not sample.failed.values.size:
        return law
    others = Tally.sum([sample.completed, sample.censored])
    curve = kaplan_meier(LatencySample(completed=sample.failed, censored=others, lost=sample.lost))
    masses = -np.diff(curve.still_out, prepend=1.0)
    if curve.still_out[-1] <= 0:  # the last probe seen failed: that nothing outlives it is not known
        masses[-1] /= 2
    starts = np.unique(np.linspace(0, masses.size, MAX_FAILURE_STEPS, endpoint=False).astype(np.intp))
    merged = np.add.reduceat(masses, starts)
    return Competing.of(law, np.add.reduceat(curve.times * masses, starts) / merged, merged)


def ks_distance(sample: LatencySample, cdf: Cdf, rho: float, *, round_up: bool = False) -> float:
    """The sup |F̃(t) − (1−ρ)F(t)|, before and after each jump of F̃.

    On a clock so coarse that latencies are cells, the cells' ends are compared: (t − step/2, t + step/2], or
    (t − step, t] with `round_up`, as least squares reads the clock.
    """
    curve = kaplan_meier(sample.failures_censored())
    times, after = curve.times, 1 - curve.still_out
    cell = cell_width(sample)
    if round_up and times.size > 1 and times[0] == 0:  # a latency of 0 lies in the first step too
        times, after = times[1:], after[1:]
    shift = 0.0 if round_up else cell / 2
    high, low = times + shift, np.maximum(times + shift - cell, 0.0)
    before = np.concatenate([[0.0], after[:-1]])
    F = cdf(high)
    ends = (np.abs(after - (1 - rho) * F), np.abs(before - (1 - rho) * (cdf(low) if cell else F)))
    return float(max(gap.max(initial=0.0) for gap in ends))
