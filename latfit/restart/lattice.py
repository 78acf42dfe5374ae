"""The distribution of the completion time under visible failures, with one timeout.

Attempts that fail last differently long. Where all times are whole steps of one clock, J is on that lattice a sum of
independent attempts, which a Fourier transform adds up: exact.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import ArrayLike

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.numbers import Floats
from latfit.restart import derived
from latfit.restart.derived import still_out

MAX_LATTICE_STEPS = 2**16  # steps of the clock that are followed at most


def survival(law: Law, x: float, t: ArrayLike, cost: float) -> Floats:
    """P(J > x) for each timeout t."""
    chances = []
    for timeout in np.ravel(t):
        step, F_J = _lattice(law, _last_time(law, float(timeout)), cost, x)
        chances.append(np.clip(1.0 - F_J[min(int(x / step * (1 + 1e-12)), F_J.size - 1)], 0.0, 1.0))
    return np.reshape(chances, np.shape(t))


def quantile(law: Law, q: float, t: ArrayLike, cost: float, mean: ArrayLike, std: ArrayLike) -> Floats:
    """The smallest x with F_J(x) ≥ q for each timeout t, ∞ where it is not reached or too many steps away."""
    every = (np.ravel(part).astype(np.float64) for part in (t, mean, std))
    x = np.reshape([_quantile(law, q, cost, *map(float, each)) for each in zip(*every, strict=True)], np.shape(t))
    if np.isnan(x).any() and not np.isfinite(x).any():
        raise _no_lattice()
    return np.where(np.isnan(x), np.inf, x)


def _quantile(law: Law, q: float, cost: float, t: float, mean: float, std: float) -> float:
    """The quantile with the timeout t, NaN where it is too many steps away."""
    if not float(law.cdf(t)) > 0:
        return np.inf
    t = _last_time(law, t)
    if np.isfinite(t):  # by Cantelli's inequality the quantile lies no further up than this
        far = mean + float(np.sqrt(q / (1 - q))) * std
    else:  # what is still out at the end stays so
        last = max(law.support[1], *derived.failure_times(law)[-1:])
        far = min(MAX_LATTICE_STEPS // 2 * law.resolution, 100.0 * float(last))
    step, F_J = _lattice(law, t, cost, far, clipped=bool(np.isfinite(t)))
    at = int(np.searchsorted(F_J, q - 1e-12))
    return step * at if at < F_J.size else np.nan if np.isfinite(t) else np.inf


def _last_time(law: Law, t: float) -> float:
    """A finite timeout that is as good as t, where every attempt is over by the last time seen."""
    if np.isinf(t) and not float(still_out(law, t)) > 0:
        return float(np.union1d(law.support, derived.failure_times(law))[-1])
    return t


def _lattice(law: Law, t: float, cost: float, upto: float, *, clipped: bool = False) -> tuple[float, Floats]:
    """The step of the lattice and P(J ≤ k steps) for k = 0, 1, … up to `upto`, `clipped` to the most steps allowed.

    The generating function of J is T(z)/(1 − D(z)), T that of an attempt that completes, D that of one that does not
    and the cost after it; 1/(1 − D) = Π (1 + D^(2^k)).
    """
    step = _common_step(law, t, cost) if np.isfinite(upto) else None
    if step is None or (upto / step >= MAX_LATTICE_STEPS and not clipped):
        raise _no_lattice()
    size = int(min(upto, (MAX_LATTICE_STEPS - 1) * step) / step) + 2
    jumps, failures = (times[times <= t] for times in (np.asarray(law.jumps), derived.failure_times(law)))
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
    if law.jumps is None or not law.resolution > 0:
        return None
    times = np.concatenate([law.jumps, derived.failure_times(law), [t, cost]])
    times = times[np.isfinite(times) & (times <= t + cost)]
    for part in (1, 2, 10, 60, 100, 1000):
        steps = times * (part / law.resolution)
        if (np.abs(steps - np.rint(steps)) < 1e-6).all():
            return law.resolution / part
    return None


def _no_lattice() -> RestartError:
    return RestartError(
        "the distribution of the completion time under visible failures needs times that are whole steps of one clock, "
        f"at most {MAX_LATTICE_STEPS} of them, and these are not: read failures as completed or as lost (--failed), or "
        "ask for mean, std or a moment"
    )
