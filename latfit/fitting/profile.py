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
    top, estimate, limits = fitted.log_likelihood, fitted.rho, (0.0, 1 - 1e-9)
    if parameter == "rho":
        batch, step = SampleBatch.of_sample(sample), max(estimate, 1.0 / sample.n)

        def profile(values: Floats) -> Floats:
            return fit_batch(fitted.name, batch.repeated(values.size), rho=values, errors=False).log_likelihood
    else:
        joint = "rho" in (fitted.std_errors or {})
        value_at = profile_likelihood(sample, fitted, parameter, None if joint else fitted.rho)
        (domain,) = (each.domain for each in law_class(fitted.name).parameters if each.name == parameter)
        estimate, limits = fitted.params[parameter], (-np.inf if domain == "real" else 0.0, np.inf)
        step = abs(estimate) / 10 or 0.1

        def profile(values: Floats) -> Floats:
            return np.array([value_at(float(value)) for value in values])

    def excess(values: Floats) -> Floats:
        """The signed root of the likelihood ratio, which is nearly linear, beyond what is allowed."""
        likelihood = profile(values)
        with np.errstate(invalid="ignore"):
            fall = 2 * (top - np.where(np.isnan(likelihood), -np.inf, likelihood))
        return np.sqrt(np.clip(fall, 0.0, 1e6)) - math.sqrt(chdtri(1, 1 - level))

    return _roots(excess, estimate, step, np.array(limits))


def _roots(excess: Callable[[Floats], Floats], inside: float, step: float, limits: Floats) -> tuple[float, float]:
    """The roots on both sides of a point, found by steps that double; a limit where there is none before it."""
    near, steps = np.full(2, inside), np.array([-step, step])
    far = np.clip(near + steps, *limits)
    outside = excess(far) >= 0
    for _ in range(60):
        growing = ~outside & (far != limits)
        if not growing.any():
            break
        steps *= 2
        near[growing], far[growing] = far[growing], np.clip(far + steps, *limits)[growing]
        outside[growing] = excess(far[growing]) >= 0
    if outside.any():
        far[outside] = _crossings(excess, near[outside], far[outside])
    low, high = map(float, np.where(outside, far, limits))
    return low, high


def _crossings(excess: Callable[[Floats], Floats], near: Floats, far: Floats) -> Floats:
    """Where values rise through 0 between `near` and `far`, by chords; of an end that stays, half counts (Illinois)."""
    below, above = excess(near), excess(far)
    stays = np.zeros(near.shape, dtype=np.int64)
    for _ in range(200):
        root = near - below * (far - near) / (above - below)
        value = excess(root)
        if ((np.abs(value) <= 1e-9) | (np.abs(far - near) <= 1e-12 + 1e-8 * np.abs(root))).all():
            break
        beyond = value >= 0
        below = np.where(beyond, np.where(stays == 1, below / 2, below), value)
        above = np.where(beyond, value, np.where(stays == -1, above / 2, above))
        near, far, stays = np.where(beyond, near, root), np.where(beyond, root, far), np.where(beyond, 1, -1)
    return root


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
