"""Maximum likelihood for laws without a kernel: any law that states `logpdf`, `logsf` and rough starts.

Nelder–Mead in unconstrained parameters, then a quasi-Newton polish; ρ is profiled out as everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from latfit.errors import FitError, LawError
from latfit.fitting.batch import Floats, SampleBatch
from latfit.fitting.likelihood import inverse_information, profile_rho
from latfit.fitting.numeric import Build
from latfit.laws import ContinuousLaw


def law_log_likelihood(law: ContinuousLaw, batch: SampleBatch, rho: float | None = None) -> tuple[float, float]:
    """ℓ of a batch of one under `law`, and the ρ that it is taken at: the most likely one where `rho` is None."""
    done = float(batch.points.weights[0] @ law.logpdf(batch.points.x)[0])
    if batch.cell:
        low, high = batch.cells.edges
        with np.errstate(divide="ignore"):
            seen = np.log(_probability(law, low, high)) - np.log(high - low)
        done += float(batch.cells.weights[0] @ seen[0])
    log_s = law.logsf(batch.c)
    ratio = float(profile_rho(batch, log_s)[0]) if rho is None else rho
    with np.errstate(divide="ignore"):
        out = np.logaddexp(np.log(ratio), np.log1p(-ratio) + log_s)
        lost = float(batch.lost[0] * np.log(ratio)) if batch.lost[0] else 0.0
    return done + float(batch.n[0] * np.log1p(-ratio) + batch.c_weights[0] @ out[0]) + lost, ratio


def _probability(law: ContinuousLaw, low: Floats, high: Floats) -> Floats:
    """P(low < T ≤ high), from the side on which the difference keeps its digits."""
    left = law.cdf(high) < 0.5
    return np.maximum(np.where(left, law.cdf(high) - law.cdf(low), law.sf(low) - law.sf(high)), 0.0)


class GenericMaximum(NamedTuple):
    """The most likely law, ρ and ℓ, and the covariance of (u, ρ) or None where the information is not regular."""

    u: Floats
    law: ContinuousLaw
    rho: float
    log_likelihood: float
    covariance: Floats | None


def generic_maximum(build: Build, starts: Sequence[Floats], batch: SampleBatch, rho: float | None) -> GenericMaximum:
    """The best of the starts, and from there to the maximum of ℓ."""

    def cost(u: Floats) -> float:
        try:
            value = law_log_likelihood(build(u), batch, rho)[0]
        except (LawError, OverflowError):
            return np.inf
        return -value if np.isfinite(value) else np.inf

    best = min(starts, key=cost)
    if not np.isfinite(cost(best)):
        raise FitError("the likelihood is 0 at every start: the law cannot have produced these latencies")
    for precision in (1e-3, 1e-7):  # the second search starts anew, because a simplex can collapse
        options: dict[str, Any] = {"xatol": precision, "fatol": precision / 100, "maxfev": 4000, "adaptive": True}
        with np.errstate(all="ignore"):
            found: Any = minimize(cost, best, method="Nelder-Mead", options=options)  # type: ignore[call-overload]
        best = found.x
    if not found.success:
        raise FitError(f"the search for the maximum stopped at {build(best).spec()}: {found.message}")
    law = build(best)
    value, ratio = law_log_likelihood(law, batch, rho)
    return GenericMaximum(best, law, ratio, value, _covariance(build, best, ratio, batch, rho))


def _covariance(build: Build, u: Floats, ratio: float, batch: SampleBatch, rho: float | None) -> Floats | None:
    """The inverse of the observed information of (u, ρ), by central differences; ρ only where it is free.

    Where ρ is estimated to be 0 but some are out, the parameters still vary with it; the information is then taken
    where ρ is small beside the probability S(c) of being merely late.
    """
    centre = ratio
    if rho is None and not ratio and batch.c_weights.any():
        centre = 1e-2 * float(np.exp(build(u).logsf(batch.c)[batch.c_weights > 0].min()))
    free = rho is None and centre > 0
    point = np.append(u, centre) if free else u
    step = np.full(point.size, 1e-3)
    if free:
        step[-1] = 1e-2 * min(ratio, 1 - ratio) if ratio else centre / 2

    def value(v: Floats) -> float:
        return law_log_likelihood(build(v[: u.size]), batch, float(v[-1]) if free else ratio)[0]

    moves = np.diag(step)
    information = np.empty((point.size, point.size))
    try:
        for i in range(point.size):
            for j in range(i + 1):
                a, b = moves[i], moves[j]
                mixed = value(point + a + b) - value(point + a - b) - value(point - a + b) + value(point - a - b)
                information[i, j] = information[j, i] = -mixed / (4 * step[i] * step[j])
    except LawError:
        return None
    covariance = inverse_information(information[None])[0]
    return covariance if np.isfinite(covariance).all() else None
