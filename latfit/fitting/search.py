"""How any law is searched for: its unconstrained parameters, where to start, its likelihood and the way to its maximum.

Laws without a kernel need no more than `logpdf`, `logsf` and rough starts: Nelder–Mead in unconstrained parameters;
ρ is profiled out as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from latfit.errors import FitError, LawError
from latfit.fitting.least_squares import Model
from latfit.fitting.likelihood import inverse_information, profile_rho
from latfit.laws import ContinuousLaw, get_law
from latfit.laws.kernel import Kernel
from latfit.laws.samples import SampleBatch
from latfit.numbers import Floats

Build = Callable[[Floats], ContinuousLaw]


def law_class(name: str) -> Any:
    """The class of a law that can be fitted: it has a density, and states `start` or a kernel."""
    law = get_law(name)
    if not issubclass(law, ContinuousLaw) or not (law.kernel or hasattr(law, "start")):
        raise FitError(f"{name} cannot be fitted: the law states no rough parameters to start from")
    return law


def kernel_of(name: str) -> Kernel | None:
    """The kernel of the law of that name, None where it has none."""
    kernel: Kernel | None = getattr(get_law(name), "kernel", None)
    return kernel


def read_off(name: str, batch: SampleBatch) -> dict[str, float]:
    """The parameters of a law that a batch of one gives without estimation, {} for most laws."""
    kernel = kernel_of(name)
    return {} if kernel is None else dict(zip(kernel.held, map(float, kernel.read(batch)[:, 0]), strict=True))


def law_builder(name: str) -> tuple[Build, Callable[[dict[str, float]], Floats]]:
    """The ways from u to the law and from parameters to u: positive ones by their logarithm, real ones as they are."""
    law = law_class(name)
    logs = np.array([parameter.domain != "real" for parameter in law.parameters])

    def build(u: Floats) -> ContinuousLaw:
        with np.errstate(over="ignore"):
            built: ContinuousLaw = law(*map(float, np.where(logs, np.exp(u), u)))
        return built

    def to_u(params: dict[str, float]) -> Floats:
        values = np.array([params[parameter.name] for parameter in law.parameters])
        return np.where(logs, np.log(np.where(logs, np.maximum(values, 1e-300), 1.0)), values)

    return build, to_u


@dataclass(frozen=True, eq=False)
class LawModel:
    """A law for least squares, with its gradient by central differences."""

    build: Build

    def cdf(self, t: Floats, u: Floats) -> tuple[Floats, Floats]:
        """F and ∂F/∂u for each column of u, not a number where u is no law."""
        F, gradient = np.full(t.shape, np.nan), np.full((u.shape[0], *t.shape), np.nan)
        moves = 1e-5 * np.eye(u.shape[0])
        for row, v in enumerate(u.T):
            try:
                slopes = [(self.build(v + h).cdf(t[row]) - self.build(v - h).cdf(t[row])) / 2e-5 for h in moves]
                F[row], gradient[:, row] = self.build(v).cdf(t[row]), slopes
            except (LawError, OverflowError):
                continue
        return F, gradient

    def take(self, rows: NDArray[np.intp]) -> Self:
        """The model for some of the samples: the same for all."""
        return self


@dataclass(frozen=True, eq=False)
class Problem:
    """Times are measured in `unit`; `build` makes the law of u."""

    unit: float
    build: Build
    starts: list[Floats]
    model: Model


def problem_of(name: str, batch: SampleBatch) -> Problem:
    """How to search for the law of that name in a batch of one, by its kernel where it has one."""
    law = law_class(name)
    quartiles = np.quantile(batch.x[0], (0.25, 0.5, 0.75), weights=batch.weights[0], method="inverted_cdf")
    quartiles = np.maximum(quartiles, batch.step[0] / 2)  # a latency of 0 counts as half a step of the clock
    unit = float(quartiles[1])
    q1, q2, q3 = map(float, quartiles / unit)
    if law.kernel is None:
        build, to_u = law_builder(name)
        return Problem(unit, build, [to_u(law.start(q1, q2, q3)), to_u(law.start(q1 / 2, q2, q3 * 2))], LawModel(build))
    scaled = batch.scaled(unit)
    kernel = law.kernel.holding(law.kernel.read(scaled))
    starts = kernel.starts(scaled)
    if hasattr(law, "start"):
        rough = law.start(q1, q2, q3)
        starts = [kernel.from_params(np.array([[rough[name]] for name in kernel.parameters]), 1.0), *starts]

    def build_by_kernel(u: Floats) -> ContinuousLaw:
        built: ContinuousLaw = law(*map(float, kernel.to_params(u[:, None], 1.0)[0][:, 0]))
        return built

    return Problem(unit, build_by_kernel, [u[:, 0] for u in starts], kernel)


def law_log_likelihood(law: ContinuousLaw, batch: SampleBatch, rho: float | None = None) -> tuple[float, float]:
    """ℓ of a batch of one under `law`, and the ρ that it is taken at: the most likely one where `rho` is None."""
    done = float(batch.points.weights[0] @ law.logpdf(batch.points.x)[0])
    if batch.cell:
        low, high = batch.cells.edges
        with np.errstate(divide="ignore"):
            left = law.cdf(high) < 0.5  # from the side on which the difference keeps its digits
            inside = np.where(left, law.cdf(high) - law.cdf(low), law.sf(low) - law.sf(high))
            log_density = np.log(np.maximum(inside, 0.0)) - np.log(high - low)
        done += float(batch.cells.weights[0] @ log_density[0])
    log_s = law.logsf(batch.c)
    ratio = float(profile_rho(batch, log_s)[0]) if rho is None else rho
    with np.errstate(divide="ignore"):
        out = np.logaddexp(np.log(ratio), np.log1p(-ratio) + log_s)
        lost = float(batch.lost[0] * np.log(ratio)) if batch.lost[0] else 0.0
    return done + float(batch.n[0] * np.log1p(-ratio) + batch.c_weights[0] @ out[0]) + lost, ratio


def generic_fit(name: str, batch: SampleBatch, rho: float | None) -> tuple[ContinuousLaw, float, float, Floats]:
    """The most likely law of a batch of one, its ρ, ℓ there and the covariance of (params, ρ), not a number if unknown.

    Times are measured in the median latency on the way.
    """
    problem = problem_of(name, batch)
    build, unit, scaled = problem.build, problem.unit, batch.scaled(problem.unit)

    def cost(u: Floats) -> float:
        try:
            value = law_log_likelihood(build(u), scaled, rho)[0]
        except (LawError, OverflowError):
            return np.inf
        return -value if np.isfinite(value) else np.inf

    u = min(problem.starts, key=cost)
    if not np.isfinite(cost(u)):
        raise FitError("the likelihood is 0 at every start: the law cannot have produced these latencies")
    for precision in (1e-3, 1e-7):  # the second search starts anew, because a simplex can collapse
        options: dict[str, Any] = {"xatol": precision, "fatol": precision / 100, "maxfev": 4000, "adaptive": True}
        with np.errstate(all="ignore"):
            search: Any = scipy.optimize.minimize(cost, u, method="Nelder-Mead", options=options)  # type: ignore[call-overload]
        u = search.x
    if not search.success:
        raise FitError(f"the search for the maximum stopped at {build(u).spec()}: {search.message}")
    value, ratio = law_log_likelihood(build(u), scaled, rho)
    law, size = build(u).scaled(unit), u.size
    covariance = np.full((size + 1, size + 1), np.nan)
    by_u = _covariance(build, u, ratio, scaled, rho)
    if by_u is not None:
        moves = 1e-6 * np.eye(size)
        above, below = ([build(u + h * sign).scaled(unit).params for h in moves] for sign in (1, -1))
        jacobian = np.array(
            [[(a[key] - b[key]) / 2e-6 for a, b in zip(above, below, strict=True)] for key in law.params]
        )
        covariance[:size, :size] = jacobian @ by_u[:size, :size] @ jacobian.T
        if ratio > 0 and by_u.shape[0] > size:
            covariance[-1, -1] = by_u[-1, -1]
    return law, ratio, value - float(batch.n[0]) * np.log(unit), covariance


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
