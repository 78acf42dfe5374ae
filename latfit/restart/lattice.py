"""The exact distribution of J under visible failures, where all times are whole steps of one clock."""

from __future__ import annotations

import numpy as np
import scipy

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.numbers import Floats
from latfit.restart.completion import expected_duration, std_duration
from latfit.restart.derived import failure_times, still_out

MAX_LATTICE_STEPS = 2**16  # steps of the clock that are followed at most


def lattice_quantile(law: Law, q: float, t: Floats, cost: float) -> Floats:
    """The quantile q of J for each timeout t, ∞ where it is not reached or too far; an error if so for all of them."""
    x = np.array([_quantile(law, q, float(timeout), cost) for timeout in np.ravel(t)])
    if np.isnan(x).any() and not np.isfinite(x).any():
        raise RestartError(_refusal("a quantile"))
    return np.reshape(np.where(np.isnan(x), np.inf, x), np.shape(t))


def _quantile(law: Law, q: float, t: float, cost: float) -> float:
    """The quantile q of J under the timeout t, ∞ where it is not reached, NaN where it is too many steps away."""
    if not float(law.cdf(t)) > 0:
        return np.inf
    t, lattice = _last_time(law, t), None
    if np.isfinite(t):  # by Cantelli's inequality the quantile lies no further up than this
        E_J, std = expected_duration(law, t, cost=cost), std_duration(law, t, cost=cost)
        lattice = _distribution(law, t, cost, float(E_J + np.sqrt(q / (1 - q)) * std), clipped=True)
    elif law.jumps is not None:  # what is still out at the end stays so
        last = max(law.jumps[-1], *failure_times(law)[-1:])
        resolution = float(getattr(law, "resolution", 0.0))
        lattice = _distribution(law, t, cost, min(MAX_LATTICE_STEPS // 2 * resolution, 100.0 * float(last)))
    if lattice is None:
        raise RestartError(_refusal("a quantile"))
    step, F_J = lattice
    at = int(np.searchsorted(F_J, q - 1e-12))
    return step * at if at < F_J.size else np.nan if np.isfinite(t) else np.inf


def lattice_survival(law: Law, x: float, t: Floats, cost: float) -> Floats:
    """P(J > x) for each timeout t; an error where the times do not fit on a lattice."""
    survival = []
    for timeout in np.ravel(t):
        lattice = _distribution(law, _last_time(law, float(timeout)), cost, x)
        if lattice is None:
            raise RestartError(_refusal("the chance to meet a deadline"))
        step, F_J = lattice
        survival.append(np.clip(1.0 - F_J[min(int(x / step * (1 + 1e-12)), F_J.size - 1)], 0.0, 1.0))
    return np.reshape(survival, np.shape(t))


def _refusal(what: str) -> str:
    return (
        f"{what} under visible failures needs times that are whole steps of one clock, at most {MAX_LATTICE_STEPS} of "
        "them, and these are not: read failures as completed or as lost (--failed), or ask for mean, std or a moment"
    )


def _last_time(law: Law, t: float) -> float:
    """A finite timeout that is as good as t, where every attempt is over by the last time seen."""
    if np.isinf(t) and not float(still_out(law, t)) > 0:
        return float(np.union1d(law.support, failure_times(law))[-1])
    return t


def _distribution(
    law: Law, t: float, cost: float, upto: float, *, clipped: bool = False
) -> tuple[float, Floats] | None:
    """The step of the lattice and P(J ≤ k steps) for k = 0, 1, … up to `upto`; None where there is no lattice.

    Where that is too many steps: None too, or with `clipped` as many as are followed. The generating function of J is
    T(z)/(1 − D(z)), T that of an attempt that completes, D that of one that does not and the cost after it;
    1/(1 − D) = Π (1 + D^(2^k)).
    """
    step = _common_step(law, t, cost) if np.isfinite(upto) else None
    if step is None or (upto / step >= MAX_LATTICE_STEPS and not clipped):
        return None
    size = int(min(upto, (MAX_LATTICE_STEPS - 1) * step) / step) + 2
    jumps, failures = (times[times <= t] for times in (np.asarray(law.jumps), failure_times(law)))
    total = _on_lattice(jumps / step, np.diff(law.cdf(jumps), prepend=0.0), size)
    lost = _on_lattice((failures + cost) / step, np.diff(law.failed(failures), prepend=0.0), size)
    if np.isfinite(t):
        lost += _on_lattice(np.array([(t + cost) / step]), np.array([float(still_out(law, t))]), size)
    negligible = 1e-16
    if lost[0] >= 1 - negligible:
        return step, np.zeros(size)
    fast = scipy.fft.next_fast_len(2 * size, real=True)
    while lost.sum() > negligible:
        spectrum = scipy.fft.rfft(lost, fast)
        total = total + scipy.fft.irfft(scipy.fft.rfft(total, fast) * spectrum, fast)[:size]
        lost = scipy.fft.irfft(spectrum * spectrum, fast)[:size]
    return step, np.maximum.accumulate(np.cumsum(total))


def _on_lattice(places: Floats, masses: Floats, size: int) -> Floats:
    at = np.rint(places).astype(np.int64)
    return np.asarray(np.bincount(at[at < size], masses[at < size], minlength=size), dtype=np.float64)


def _common_step(law: Law, t: float, cost: float) -> float | None:
    resolution = float(getattr(law, "resolution", 0.0))
    if law.jumps is None or not resolution > 0:
        return None
    times = np.concatenate([law.jumps, failure_times(law), [t, cost]])
    times = times[np.isfinite(times) & (times <= t + cost)]
    for part in (1, 2, 10, 60, 100, 1000):
        steps = times * (part / resolution)
        if (np.abs(steps - np.rint(steps)) < 1e-6).all():
            return resolution / part
    return None
