"""From a histogram to a decision: what is likely inside the buckets, and the timeout with the best guarantee."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import scipy
from scipy.special import xlogy

from latfit.buckets import Histogram
from latfit.curve import MIN_COMPLETIONS
from latfit.decision import Warned
from latfit.errors import FitError, LawError, SampleError
from latfit.fitting import Fit
from latfit.fitting.estimate import law_class
from latfit.histograms.bounds import Bounds, bounds, worst_regret
from latfit.laws import Defective
from latfit.laws.kernel import DifferencesKernel
from latfit.laws.piecewise_uniform import PiecewiseUniform
from latfit.numbers import Floats
from latfit.restart import Optimum, evaluate_timeout, expected_duration, optimal_timeout
from latfit.units import seconds

EVEN = "histogram"  # the law of latencies spread evenly inside each bucket
LAWS = ("exponential", "lognormal", "weibull", "gamma", "log-logistic")
MAX_DISTANCE_TO_COUNTS = 0.05  # of a likely law, at an edge

MAX_CORRELATION = 0.2  # of slow latencies in one interval; beyond it attempts are not independent


def histogram_law(histogram: Histogram) -> Defective:
    """The law of a histogram whose latencies are spread evenly inside each bucket.

    What failed, was lost or took longer than the last edge never returns under it, so E_J is right up to that edge.

    >>> law = histogram_law(Histogram.of([1.0, 2.0], [30, 60], n_inf=6, lost=4))
    >>> law.rho, round(float(law.cdf(1.5)), 12)
    (0.1, 0.6)
    """
    small = histogram.compact()
    inside = int(small.counts.sum())
    if not inside:
        raise SampleError("no latency of this histogram lies in a bucket with an upper end: there is no law to see")
    law = PiecewiseUniform(tuple(small.edges.tolist()), tuple((small.counts / inside).tolist()))
    return Defective(law, (histogram.n - inside) / histogram.n)


def fit_buckets(histogram: Histogram, laws: Sequence[str] = LAWS) -> list[Fit]:
    """Laws fitted to the counts by maximum likelihood, the best by BIC first; those that failed say why.

    ℓ = Σ n_j log(F(e_j) − F(e_{j−1})) + n_inf log S(e_m) for what returned; ρ is the share that did not,
    which the histogram counts. Nothing is assumed of where in its bucket a latency lies.
    """
    fits = []
    for name in laws:
        try:
            fits.append(_fitted(name, histogram.compact()))
        except (FitError, LawError) as problem:
            fits.append(Fit(name, "mle", histogram.n, error=str(problem)))
    return sorted(fits, key=lambda fit: (fit.error is not None, fit.score))


def _fitted(name: str, histogram: Histogram) -> Fit:
    kernel = DifferencesKernel(law_class(name))
    p = len(kernel.parameters)
    cells = np.append(histogram.counts, histogram.n_inf)
    if np.count_nonzero(cells) <= p:
        raise FitError(f"{name} has {p} parameters, which {np.count_nonzero(cells)} buckets with counts do not tell")
    # quartiles of what returned, spread evenly inside the buckets; twice the last edge where they lie beyond it
    shares = np.concatenate([[0], np.cumsum(histogram.counts)]) / histogram.returned
    q1, unit, q3 = np.interp([0.25, 0.5, 0.75], shares, histogram.edges, right=2 * histogram.edges[-1])
    edges = histogram.edges / unit

    def cost(u: Floats) -> float:
        try:
            law = kernel.build(u)
            F, S = law.cdf(edges), law.sf(edges)
        except (LawError, OverflowError):
            return np.inf
        inside = np.where(F[1:] < 0.5, np.diff(F), -np.diff(S))  # from the side on which a difference keeps its digits
        value = float(xlogy(cells, np.append(np.maximum(inside, 0.0), S[-1])).sum())
        return -value if np.isfinite(value) else np.inf

    rough = law_class(name).start(q1 / unit, 1.0, q3 / unit)
    u = kernel.from_params(np.array([[rough[each]] for each in kernel.parameters]), 1.0)[:, 0]
    if not np.isfinite(cost(u)):
        raise FitError(f"{name} cannot have produced these counts")
    for precision in (1e-3, 1e-7):  # the second search starts anew, because a simplex can collapse
        options: dict[str, Any] = {"xatol": precision, "fatol": precision / 100, "maxfev": 2000}
        with np.errstate(all="ignore"):
            search: Any = scipy.optimize.minimize(cost, u, method="Nelder-Mead", options=options)  # type: ignore[call-overload]
        u = search.x
    if not search.success:
        raise FitError(f"the search for the most likely {name} stopped: {search.message}")
    law, value = kernel.build(u).scaled(unit), -cost(u)
    rho = (histogram.n - histogram.returned) / histogram.n
    bic = p * np.log(histogram.returned) - 2 * value
    return Fit(name, "mle", histogram.n, law, rho, law.params, None, None, value, 2 * p - 2 * value, bic, True)


@dataclass(frozen=True)
class Likely:
    """A likely law of the latencies, its best timeout, and what another timeout costs under it.

    `law` is the specification of the law fitted to the counts, or `histogram` where none of them comes near: latencies
    are then spread evenly inside each bucket. `distance` is the largest difference between the fitted law and the
    counts at an edge, max|F(e_k) − C_k/n|, None where no law could be fitted.
    """

    law: str
    optimum: Optimum
    regret: float
    distance: float | None

    def to_dict(self) -> dict[str, Any]:
        best = {name: getattr(self.optimum, name) for name in ("rho", "verdict", "timeout", "expected_duration")}
        return {"law": self.law, **best, "regret": self.regret, "distance": self.distance}


def likely(histogram: Histogram, timeout: float, *, cost: float = 0.0) -> Likely | None:
    """What the best law by BIC says (even buckets where it misses a count by 5 %); None: the sooner the better."""
    best = fit_buckets(histogram)[0]
    law, name, distance = histogram_law(histogram), EVEN, None
    if best.law is not None and best.rho is not None:
        counted = np.cumsum(histogram.counts) / histogram.returned
        distance = float(np.abs(best.law.cdf(histogram.edges[1:]) - counted).max())
        if distance <= MAX_DISTANCE_TO_COUNTS:
            law, name = Defective(best.law, best.rho), best.law.spec()
    optimum = optimal_timeout(law, cost=cost)
    E = optimum.expected_duration
    if not E:
        return None
    regret = float(expected_duration(law, timeout, cost=cost)) / E - 1
    return Likely(name, optimum, max(regret, 0.0), distance)


@dataclass(frozen=True)
class Guarantee:
    """The timeout whose E_J has the least upper bound, and what is known of it.

    `optimum` has what the timeout brings if latencies are spread evenly inside their buckets, or as evenly as a known
    sum allows; None where too few completed. Whatever happened inside the buckets, `guaranteed` ≥ E_J at the timeout
    and `least` ≤ E_J of any timeout; `worst_regret` is the largest E_J(timeout)/E_J(best) − 1 that the counts allow,
    ∞ where they do not limit it.

    Examples
    --------
    >>> import latfit
    >>> h = latfit.Histogram.of([0.05, 0.1, 0.25, 0.5, 1], [0, 10, 40, 30, 10], n_inf=6, lost=4)
    >>> best = latfit.guaranteed_timeout(h)
    >>> isinstance(best, latfit.Guarantee), best.optimum.timeout, round(best.guaranteed, 6)
    (True, 0.5, 0.45)
    """

    histogram: Histogram
    bounds: Bounds
    optimum: Optimum | None
    guaranteed: float
    worst_regret: float
    likely: Likely | None
    warnings: tuple[Warned, ...]

    @property
    def withheld(self) -> tuple[str, ...]:
        """Why the timeout is not a decision: series differ, or intervals of the log show slow ones together."""
        if self.optimum is None or self.optimum.timeout is None:
            return ()
        together = self.histogram.together
        dependent = together is not None and together > MAX_CORRELATION
        return ("mixed",) * (self.harmed is not None) + ("dependent",) * dependent

    @property
    def harmed(self) -> str | None:
        """The name of a part of the histogram that the timeout makes slower than waiting, for certain."""
        if self.optimum is None or self.optimum.timeout is None:
            return None
        t = self.optimum.timeout
        for name, part in self.histogram.parts:
            k = int(np.searchsorted(part.edges[1:], t, side="right")) - 1
            if part.returned >= MIN_COMPLETIONS and 0 <= k < part.counts.size - 1:
                known = bounds(part)
                if known.low[k] > known.high[-1]:
                    return name
        return None

    @property
    def least(self) -> float:
        """No timeout has a smaller E_J."""
        return self.bounds.least

    def to_dict(self) -> dict[str, Any]:
        empty = {field.name: None for field in fields(Optimum)}
        known = self.bounds
        columns = {"le": known.edges, "count": known.counts, "low": known.low, "high": known.high}
        rows = zip(*(values.tolist() for values in columns.values()), strict=True)
        counts = {"in_buckets": int(known.counts.sum()), "beyond": self.histogram.n_inf}
        optimum = self.optimum.to_dict() if self.optimum is not None else empty
        return {
            **(empty | {"verdict": "withheld"} if self.withheld else optimum),
            "withheld": list(self.withheld),
            "if_independent": optimum if self.withheld else None,
            "guaranteed": self.guaranteed,
            "least": self.least,
            "worst_regret": self.worst_regret,
            "likely": None if self.likely is None else self.likely.to_dict(),
            "buckets": [dict(zip(columns, row, strict=True)) for row in rows],
            "counts": counts | {"failed": self.histogram.failed, "lost": self.histogram.lost},
            "sum": self.histogram.latency_sum,
        }


def guaranteed_timeout(histogram: Histogram, *, cost: float = 0.0) -> Guarantee:
    """The edge with the least upper bound on E_J when a restart costs `cost` seconds.

    Parameters: `histogram`, and `cost` in seconds. Returns a `Guarantee`. At least 5 must have completed by the
    timeout. The bounds are of these attempts; how far another day may differ, counts alone do not tell.

    >>> h = Histogram.of([0.05, 0.1, 0.25, 0.5, 1], [0, 10, 40, 30, 10], n_inf=6, lost=4)
    >>> found = guaranteed_timeout(h)
    >>> found.optimum.timeout, round(found.guaranteed, 6), round(found.least, 6), round(found.worst_regret, 3)
    (0.5, 0.45, 0.19, 0.941)
    """
    known = bounds(histogram, cost=cost)
    high = np.where(np.cumsum(histogram.counts) >= MIN_COMPLETIONS, known.high, np.inf)
    k = int(np.argmin(high))
    if not np.isfinite(high[k]):
        message = f"fewer than {MIN_COMPLETIONS} completions lie in buckets with an upper end: no timeout can be told"
        return Guarantee(histogram, known, None, np.inf, np.inf, None, (Warned("few-completions", message),))
    if known.waiting <= high[k]:  # all returned, and the sum of their latencies is known
        E, fitted, guaranteed = known.waiting, None, known.waiting
        regret = max(E / known.least - 1, 0.0) if known.least > 0 else np.inf
        optimum = evaluate_timeout(histogram_law(histogram), np.inf, cost=cost)
        unknown = dict.fromkeys(optimum.quantiles)
        optimum = replace(optimum, submissions=1.0, speed_up=1.0, rho=0.0, std_duration=None, quantiles=unknown)
    else:
        timeout, guaranteed, regret = float(known.edges[k]), float(high[k]), worst_regret(histogram, k, cost=cost)
        fitted = likely(histogram, timeout, cost=cost)
        optimum = evaluate_timeout(histogram_law(histogram), timeout, cost=cost)
        E = float(np.clip(optimum.expected_duration or np.inf, known.low[k], high[k]))  # a known sum may forbid "even"
    strikes = known.waiting > high[k] and int(histogram.counts[: k + 1].sum()) < histogram.n
    optimum = replace(optimum, law=EVEN, expected_duration=E, objective={"name": "mean", "value": E}, verdict="finite")
    optimum = optimum if strikes else replace(optimum, verdict="never", timeout=None)
    return Guarantee(histogram, known, optimum, guaranteed, regret, fitted, tuple(_warnings(histogram, regret, fitted)))


def _warnings(histogram: Histogram, regret: float, fitted: Likely | None) -> Iterator[Warned]:
    if np.isinf(regret):
        text = f"the first bucket ends at {seconds(histogram.edges[1])}, and restarts are free, so that a "
        text += "much shorter timeout might be best: give --cost, the seconds that a restart costs"
        yield Warned("not-identified", text)
    if not histogram.lost and not histogram.failed:
        text = "a histogram holds only what returned: give the number that never did with --lost, or the bounds are "
        yield Warned("lost-unknown", f"{text}those of a system that loses nothing")
    if fitted is not None and fitted.law == EVEN:
        why = "can be fitted to so few buckets"
        if fitted.distance is not None:
            why = f"fits the buckets: the best misses a count by {fitted.distance:.0%}"
        text = f"no law {why}; the likely regret takes latencies to be spread evenly inside each bucket"
        yield Warned("no-law", text)
    if histogram.together is not None and histogram.together > MAX_CORRELATION:
        text = "slow latencies come together: within an interval of the log, being among the slowest 5 % is correlated "
        text += f"by {histogram.together:.2f}, so that a resubmission meets what the first attempt met; E_J takes "
        yield Warned("dependence", f"{text}attempts to be independent")
    else:
        text = "a histogram keeps no order: whether slow attempts follow each other, so that a resubmission is slow "
        yield Warned("untested", f"{text}too, cannot be checked; E_J takes attempts to be independent")
