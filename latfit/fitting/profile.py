"""Likelihood-ratio intervals, and the outlier ratio that the law and the tail together make likely."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from scipy.special import chdtri

from latfit.errors import FitError
from latfit.fitting.estimate import law_class, maximum
from latfit.fitting.fitted import Fit
from latfit.fitting.likelihood import log_likelihood
from latfit.fitting.ranking import fit
from latfit.laws.samples import SampleBatch
from latfit.logs.frames import as_sample
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
    top, root = fitted.log_likelihood, math.sqrt(chdtri(1, 1 - level))
    if parameter == "rho":
        value_at = profile_ratio(sample, fitted)
        estimate, limits = fitted.rho, (0.0, 1 - 1e-9)
        step = max(estimate, 1.0 / sample.n)
    else:
        value_at = profile_likelihood(sample, fitted, parameter)
        (domain,) = (each.domain for each in law_class(fitted.name).parameters if each.name == parameter)
        estimate, limits = fitted.params[parameter], (-np.inf if domain == "real" else 0.0, np.inf)
        step = abs(estimate) / 10 or 0.1

    def excess(values: Floats) -> Floats:
        """The signed root of the likelihood ratio, which is nearly linear, beyond what is allowed."""
        likelihood = np.array([value_at(float(value)) for value in values])
        with np.errstate(invalid="ignore"):
            fall = 2 * (top - np.where(np.isnan(likelihood), -np.inf, likelihood))
        return np.sqrt(np.clip(fall, 0.0, 1e6)) - root

    return _roots(excess, estimate, step, np.array(limits))


def _roots(excess: Callable[[Floats], Floats], inside: float, step: float, limits: Floats) -> tuple[float, float]:
    """The roots on both sides of a point; a limit where there is none before it.

    Each is bracketed by steps that double and found by chords; of an end that stays, half counts (Illinois).
    """
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
    low, high = near[outside], far[outside]
    below, above, stays = excess(low), excess(high), np.zeros(low.shape, dtype=np.int64)
    for _ in range(200 if low.size else 0):
        root = low - below * (high - low) / (above - below)
        value = excess(root)
        if ((np.abs(value) <= 1e-9) | (np.abs(high - low) <= 1e-12 + 1e-8 * np.abs(root))).all():
            break
        beyond = value >= 0
        below = np.where(beyond, np.where(stays == 1, below / 2, below), value)
        above = np.where(beyond, value, np.where(stays == -1, above / 2, above))
        low, high, stays = np.where(beyond, low, root), np.where(beyond, root, high), np.where(beyond, 1, -1)
    ends = limits.copy()
    if low.size:
        ends[outside] = root
    return float(ends[0]), float(ends[1])


def profile_ratio(sample: LatencySample, fitted: Fit) -> Callable[[float], float]:
    """Max ℓ over the parameters of the law at a ratio ρ, each search starting at the fit."""
    kernel, (unit, (batch,)) = law_class(fitted.name).kernel, SampleBatch.of_samples([sample]).prepared
    start = kernel.from_params(np.array([[value] for value in fitted.params.values()]), unit)
    start = None if fitted.at_limit else start

    def value_at(rho: float) -> float:
        if rho == 0 and sample.lost:
            return -np.inf
        best, _ = maximum(kernel, batch.given(rho), start, rough=False)
        value = best.at.value[0] - batch.n[0] * np.log(unit)
        return float(value)

    maximum(kernel, batch, start, rough=False)  # makes what every ratio needs
    return value_at


def profile_likelihood(sample: LatencySample, fitted: Fit, parameter: str) -> Callable[[float], float]:
    """Max ℓ over the other parameters at a value of one, each search starting where the last one ended."""
    joint, kernel = "rho" in (fitted.std_errors or {}), law_class(fitted.name).kernel
    batch = SampleBatch.of_samples([sample]).given(None if joint else fitted.rho)
    real = [each.domain == "real" for each in law_class(fitted.name).parameters]
    params = np.array(list(fitted.params.values()))
    at = list(fitted.params).index(parameter)
    others = [i for i, name in enumerate(kernel.free) if name != parameter]
    free = np.array([params[i] if real[i] else np.log(params[i]) for i in others])

    def value_at(value: float) -> float:
        nonlocal free

        def cost(moved: Floats) -> float:
            params[others] = [x if real[i] else np.exp(x) for i, x in zip(others, moved, strict=True)]
            params[at] = value
            with np.errstate(all="ignore"):
                likelihood = log_likelihood(kernel, batch, kernel.from_params(params[:, None], 1.0)).value[0]
            return float(-likelihood) if np.isfinite(likelihood) else np.inf

        if others:
            options: dict[str, Any] = {"xatol": 1e-9, "fatol": 1e-9}
            free = scipy.optimize.minimize(cost, free, method="Nelder-Mead", options=options).x  # type: ignore[call-overload]
        return -cost(free)

    return value_at


@dataclass(frozen=True)
class JointRatio:
    """ρ estimated together with a law, because a probe that is out at the cutoff may be merely late.

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


def joint_outlier_ratio(sample: Any, laws: str | Sequence[str] | None = None, *, level: float = 0.95) -> JointRatio:
    """The most likely (law, ρ) with a likelihood interval for ρ, wide enough for the laws that compete.

    Parameters
    ----------
    sample
        A `LatencySample`, a log, or an array, Series or DataFrame of latencies in seconds.
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
    sample = as_sample(sample)
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
