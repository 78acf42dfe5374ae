"""Likelihood-ratio intervals, and the outlier ratio that the law and the tail together make likely."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from scipy.special import chdtri

from latfit.errors import FitError, LawError
from latfit.fitting.estimate import fit_batch
from latfit.fitting.fitted import Fit
from latfit.fitting.ranking import fit
from latfit.fitting.search import DifferencesKernel, law_class, law_log_likelihood
from latfit.laws.samples import SampleBatch
from latfit.numbers import Floats
from latfit.sample import LatencySample

COMPETING = 6.0  # laws within this BIC of the best one are not ruled out


def profile_interval(sample: LatencySample, fitted: Fit, parameter: str, *, level: float = 0.95) -> tuple[float, float]:
    """The values of one parameter, or of `rho`, that a likelihood-ratio test does not reject.

    {v : 2 (ℓ̂ − max ℓ given parameter = v) ≤ χ²₁(level)}, all others maximised over. An end is 0 or ∞ where the
    likelihood never falls so far.
    """
    if fitted.method != "mle" or fitted.law is None or fitted.log_likelihood is None or fitted.rho is None:
        raise FitError("a likelihood interval needs a likelihood fit that succeeded")
    if not 0 < level < 1:
        raise FitError(f"the level is {level:g}; it must lie between 0 and 1")
    if parameter != "rho" and parameter not in (fitted.std_errors or {}):
        raise FitError(
            f"{fitted.name} has no free parameter {parameter!r}; it has {', '.join(fitted.std_errors or {})}"
        )
    fall = float(chdtri(1, 1 - level))
    if parameter == "rho":
        return _ratio_interval(sample, fitted, fall)
    joint = "rho" in (fitted.std_errors or {})
    profile = profile_likelihood(sample, fitted, parameter, None if joint else fitted.rho)
    value, lowest = fitted.params[parameter], fitted.log_likelihood - fall / 2
    (domain,) = (each.domain for each in law_class(fitted.name).parameters if each.name == parameter)
    step = abs(value) / 10 or 0.1

    def excess(v: float) -> float:
        return profile(v) - lowest

    return _end(excess, value, -np.inf if domain == "real" else 0.0, -step), _end(excess, value, np.inf, step)


def _ratio_interval(sample: LatencySample, fitted: Fit, allowed: float) -> tuple[float, float]:
    """Both ends for ρ at once: the roots of the signed root of the likelihood ratio, which is nearly linear in ρ."""
    from scipy.optimize.elementwise import find_root  # slow to import

    batch, top = SampleBatch.of_sample(sample), fitted.log_likelihood
    assert fitted.rho is not None
    assert top is not None

    def excess(rho: Floats) -> Floats:
        values = fit_batch(fitted.name, batch.repeated(rho.size), rho=rho, errors=False).log_likelihood
        with np.errstate(invalid="ignore"):
            fall = 2 * (top - np.where(np.isnan(values), -np.inf, values))
        return np.sqrt(np.clip(fall, 0.0, 1e6)) - math.sqrt(allowed)

    limits, steps = np.array([0.0, 1 - 1e-9]), np.array([-1.0, 1.0]) * max(fitted.rho, 1.0 / sample.n)
    near = np.full(2, fitted.rho)
    far = np.clip(near + steps, *limits)
    outside = excess(far) >= 0
    while (growing := ~outside & (far != limits)).any():
        steps *= 2
        near[growing], far[growing] = far[growing], np.clip(far + steps, *limits)[growing]
        outside[growing] = excess(far[growing]) >= 0
    if outside.any():
        tolerances = {"xatol": 1e-12, "xrtol": 1e-8, "fatol": 1e-9, "frtol": 0.0}
        far[outside] = find_root(excess, (near[outside], far[outside]), tolerances=tolerances).x  # type: ignore[call-overload]
    low, high = map(float, far)
    return low, high


def profile_likelihood(
    sample: LatencySample, fitted: Fit, parameter: str, rho: float | None = None
) -> Callable[[float], float]:
    """Max ℓ over the other parameters at a value of one, each search starting where the last one ended."""
    batch, kernel = SampleBatch.of_sample(sample), DifferencesKernel(law_class(fitted.name))
    others = [i for i, name in enumerate(fitted.params) if name != parameter and name in (fitted.std_errors or {})]
    free = kernel.from_params(np.array([[each] for each in fitted.params.values()]), 1.0)[others, 0]

    def value_at(value: float) -> float:
        nonlocal free
        params = fitted.params | {parameter: value}
        u = kernel.from_params(np.array([[each] for each in params.values()]), 1.0)[:, 0]

        def cost(moved: Floats) -> float:
            u[others] = moved
            try:
                log_likelihood = law_log_likelihood(kernel.build(u), batch, rho)[0]
            except (LawError, OverflowError):
                return np.inf
            return -log_likelihood if np.isfinite(log_likelihood) else np.inf

        if others:
            options: dict[str, Any] = {"xatol": 1e-9, "fatol": 1e-9}
            free = scipy.optimize.minimize(cost, free, method="Nelder-Mead", options=options).x  # type: ignore[call-overload]
        return -cost(free)

    return value_at


def _end(excess: Callable[[float], float], inside: float, limit: float, step: float) -> float:
    """The root of `excess` between a point inside and a limit, by growing steps and Brent's method; or the limit."""
    near = inside
    for _ in range(60):
        far = near + step
        if abs(far - inside) >= abs(limit - inside):
            far = limit
        if excess(far) < 0:
            return float(scipy.optimize.brentq(lambda v: max(excess(v), -1e6), near, far, xtol=1e-12, rtol=1e-8))
        if far == limit:
            break
        near, step = far, 2 * step
    return limit


@dataclass(frozen=True)
class JointRatio:
    """ρ estimated together with a law, because whoever is out at the cutoff may be merely late.

    `law` is the best one by BIC. `low` and `high` are the ends of the likelihood intervals under it and under the laws
    that are not ruled out, within 6 of its BIC: the best one need not be the true one. `confounded` says that the log
    cannot tell a long tail from outliers: the interval under the best law reaches 0 although probes are out, or
    another law puts ρ outside it.
    """

    estimate: float
    low: float
    high: float
    law: str
    confounded: bool


def joint_outlier_ratio(sample: LatencySample, laws: Sequence[str] | None = None, *, level: float = 0.95) -> JointRatio:
    """The most likely (law, ρ) with a likelihood interval for ρ, wide enough for the laws that compete.

    Parameters
    ----------
    sample
        A `LatencySample`.
    laws
        Those that compete (default: all classical ones).
    level
        The confidence of the interval.

    Returns
    -------
    JointRatio
        `.estimate`, `.low`, `.high`, and `.law`, the name of the best.

    Examples
    --------
    >>> import latfit
    >>> ratio = latfit.joint_outlier_ratio(latfit.example_log().sample(cutoff=10_000), ["lognormal"])
    >>> ratio.law, round(ratio.estimate, 4), ratio.low < ratio.estimate < ratio.high
    ('lognormal', 0.0248, True)
    """
    fits = [each for each in fit(sample, laws) if each.error is None]
    if not fits:
        raise FitError("no law could be fitted, so there is no joint estimate of the outlier ratio")
    best = fits[0]
    low, high = profile_interval(sample, best, "rho", level=level)
    out = sample.n - sample.completed.total - sample.failed.total
    rivals = [each for each in fits[1:] if each.score - best.score < COMPETING]
    disputed = any(not low <= float(each.rho or 0.0) <= high for each in rivals)
    confounded = bool(out) and (low == 0.0 or disputed)
    ends = [(low, high), *(profile_interval(sample, each, "rho", level=level) for each in rivals)]
    lows, highs = zip(*ends, strict=True)
    return JointRatio(float(best.rho or 0.0), min(lows), max(highs), best.name, confounded)
