"""What is likely inside the buckets: latencies spread evenly, or a law fitted to the counts by likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from scipy.special import xlogy

from latfit.buckets import Histogram
from latfit.errors import FitError, LawError, SampleError
from latfit.fitting import Fit
from latfit.fitting.search import DifferencesKernel, law_class
from latfit.laws import Defective
from latfit.laws.piecewise_uniform import PiecewiseUniform
from latfit.numbers import Floats
from latfit.restart import Optimum, expected_duration, optimal_timeout

EVEN = "histogram"  # the law of latencies spread evenly inside each bucket
LAWS = ("exponential", "lognormal", "weibull", "gamma", "log-logistic")
MAX_DISTANCE_TO_COUNTS = 0.05  # of a likely law, at an edge


def histogram_law(histogram: Histogram) -> Defective:
    """The law of a histogram whose latencies are spread evenly inside each bucket.

    What failed, was lost or took longer than the last edge never returns under it, so E_J is right up to that edge.

    >>> law = histogram_law(Histogram.of([1.0, 2.0], [30, 60], n_inf=6, lost=4))
    >>> law.rho, float(law.cdf(1.5))
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
