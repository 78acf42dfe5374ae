"""Fit several laws to a sample, and rank them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from latfit.errors import FitError, LatfitError
from latfit.fitting.batch import Floats, SampleBatch
from latfit.fitting.estimate import EXPONENTIAL, fit_batch, read_rho
from latfit.fitting.generic import generic_maximum
from latfit.fitting.hybrid import HYBRID
from latfit.fitting.kernel import KERNELS
from latfit.fitting.least_squares import counted_ratio, finalists, levenberg_marquardt, target
from latfit.fitting.numeric import law_class
from latfit.fitting.problems import least_squares_problem, likelihood_problem
from latfit.fitting.result import Fit, finite
from latfit.laws import ContinuousLaw, get_law
from latfit.sample import LatencySample

CLASSICAL = ("uniform", "truncated-gaussian", "exponential", "weibull", "lognormal", "pareto")
DEFAULT_LAWS = (*CLASSICAL, "gamma", "log-logistic")


def fit(
    sample: LatencySample,
    laws: str | Sequence[str] | None = None,
    *,
    method: str = "mle",
    rho: str | float = "joint",
) -> list[Fit]:
    """Fit each law to the sample; the best comes first, laws that failed come last and say why.

    `method="mle"`: censored maximum likelihood, ranked by BIC; ρ is estimated with the law, or given.
    `method="ls"`: least squares on the cdf, ranked by the sum of squares; ρ is counted, or given.
    The default laws are the six classical ones, gamma and log-logistic, and for least squares the hybrid too.
    """
    if method not in ("mle", "ls"):
        raise FitError(f"the method is {method!r}; it must be mle or ls")
    fixed = read_rho(rho)
    laws = [laws] if isinstance(laws, str) else laws
    names = list(laws) if laws is not None else [*DEFAULT_LAWS, *([HYBRID] if method == "ls" else [])]
    for name in names:
        get_law(name)  # a name that is not known is the caller's mistake, not a law that failed
    batch = SampleBatch.of_sample(sample)
    fits = [_fit_one(name, sample, batch, method, fixed) for name in names]
    return sorted(fits, key=lambda found: (found.error is not None, found.score))


def _fit_one(name: str, sample: LatencySample, batch: SampleBatch, method: str, rho: float | None) -> Fit:
    try:
        if not sample.completed.total:
            raise FitError(f"none of the {sample.n} probes completed: there is no latency to fit")
        with np.errstate(all="ignore"):  # a step may go too far, where it is refused
            return _mle(name, sample, batch, rho) if method == "mle" else _ls(name, sample, rho)
    except (LatfitError, ArithmeticError, np.linalg.LinAlgError) as problem:
        return Fit(name, method, sample.n, error=str(problem))


def _mle(name: str, sample: LatencySample, batch: SampleBatch, rho: float | None) -> Fit:
    """Maximum likelihood: by kernel where the law has one."""
    if name not in KERNELS:
        return _generic_mle(name, sample, batch, rho)
    found = fit_batch(name, batch, rho="joint" if rho is None else rho)
    if found.error[0]:
        raise FitError(str(found.error[0]))
    params = dict(zip(found.parameters, map(float, found.params[0]), strict=True))
    variance = np.einsum("ii->i", found.covariance[0])
    ratio = float(found.rho[0])
    errors = _std_errors([*found.parameters, "rho"], variance, rho)
    value, limit = float(found.log_likelihood[0]), bool(found.at_limit[0])
    return _likelihood_fit(law_class(name)(**params), sample.n, ratio, rho, value, errors, limit=limit)


def _std_errors(names: Sequence[str], variance: Floats, rho: float | None) -> dict[str, float | None]:
    """Roots of the variances; ρ has one only where it was estimated."""
    with np.errstate(invalid="ignore"):
        errors = {name: finite(float(value)) for name, value in zip(names, np.sqrt(variance), strict=True)}
    if rho is not None:
        del errors["rho"]
    return errors


def _likelihood_fit(
    law: ContinuousLaw,
    n: int,
    ratio: float,
    rho: float | None,
    value: float,
    errors: dict[str, float | None],
    *,
    limit: bool = False,
    held: int = 0,
) -> Fit:
    """A likelihood fit with its AIC and BIC; ρ counts as a parameter where it was estimated, `held` ones do not."""
    count = len(law.params) - held + (rho is None)
    return Fit(
        law.name,
        "mle",
        n,
        law=law,
        rho=ratio,
        params=dict(law.params),
        std_errors=errors,
        log_likelihood=value,
        aic=2 * count - 2 * value,
        bic=count * math.log(n) - 2 * value,
        converged=True,
        at_limit=limit,
    )


def _generic_mle(name: str, sample: LatencySample, batch: SampleBatch, rho: float | None) -> Fit:
    """Maximum likelihood of a law without a kernel, times measured in the median latency."""
    problem = likelihood_problem(name, sample)
    found = generic_maximum(problem.build, problem.starts, batch.scaled(problem.unit), rho)
    law = found.law.scaled(problem.unit)
    free = [parameter for parameter in law.params if parameter not in problem.held]
    variance = np.full(len(free) + 1, np.nan)
    if found.covariance is not None:
        moves = 1e-6 * np.eye(found.u.size)
        above, below = ([problem.build(found.u + h * sign).scaled(problem.unit) for h in moves] for sign in (1, -1))
        jacobian = np.array(
            [[(a.params[key] - b.params[key]) / 2e-6 for a, b in zip(above, below, strict=True)] for key in free]
        )
        size = found.u.size
        variance[:-1] = np.einsum("ij,jk,ik->i", jacobian, found.covariance[:size, :size], jacobian)
        if found.rho > 0 and found.covariance.shape[0] > size:
            variance[-1] = found.covariance[-1, -1]
    value = found.log_likelihood - float(batch.n[0]) * math.log(problem.unit)
    errors = _std_errors([*free, "rho"], variance, rho)
    return _likelihood_fit(law, sample.n, found.rho, rho, value, errors, held=len(problem.held))


def _ls(name: str, sample: LatencySample, rho: float | None) -> Fit:
    """Least squares on the cdf, or the exponential law where that is the limit of this one and no worse."""
    found = _free_ls(name, sample, rho)
    if name not in KERNELS or not KERNELS[name].tends_to_exponential:
        return found
    simple = _free_ls("exponential", sample, rho)
    if found.score < simple.score * (1 - 1e-9):
        return found
    u = KERNELS[name].near_exponential(np.log([simple.params["rate"]]), EXPONENTIAL)
    law = law_class(name)(*map(float, KERNELS[name].natural(u, 1.0)[0][:, 0]))
    return replace(simple, name=name, law=law, params=dict(law.params), at_limit=True)


def _free_ls(name: str, sample: LatencySample, rho: float | None) -> Fit:
    """Least squares on the cdf; the best start whose law is a cdf everywhere wins."""
    goal = target(sample, rho)
    problem = least_squares_problem(name, sample)
    scaled = goal._replace(t=goal.t / problem.unit)
    reason = ""
    for start in finalists(problem.model, scaled, problem.starts):
        found = levenberg_marquardt(problem.model, scaled, start)
        try:
            law = problem.build(found.u[:, 0]).scaled(problem.unit)
        except LatfitError as refused:
            reason = str(refused)
            continue
        ratio = counted_ratio(sample) if rho is None else rho
        return Fit(
            name,
            "ls",
            sample.n,
            law=law,
            rho=ratio,
            params=dict(law.params),
            sse=float(found.sse[0]),
            converged=bool(found.converged[0]),
        )
    raise FitError(f"no start ended at a cdf: {reason}")
