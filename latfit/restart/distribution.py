"""The distribution of the completion time J under restart with one timeout: cdf, density, quantiles, sampling.

Without failures every attempt lasts as long as the timeout. Under visible failures attempts last differently long, and
the distribution is computed exactly where all times are whole steps of one clock: on that lattice J is a sum of
independent attempts, which a Fourier transform adds up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.laws.empirical import as_law
from latfit.numbers import Floats
from latfit.restart import derived
from latfit.restart.completion import expected_duration, product, refuse_failures, std_duration
from latfit.restart.derived import log_not_completed, still_out

MAX_LATTICE_STEPS = 2**16  # steps of the clock that are followed at most


def completion_cdf(law: Any, x: ArrayLike, t_inf: float, *, cost: float = 0.0, **params: Any) -> Floats:
    """F_J(x) = 1 − (1−F̃(t))ⁿ (1−F̃(min(x − n(t+c), t))), n = ⌊x/(t+c)⌋.

    van Moorsel & Wolter 2004, eq. 2; Glatard et al. 2006, eq. 5. Not for laws with visible failures. `x` is a time in
    seconds or an array of them, `t_inf` one timeout; `law`, `cost` and `params` are as in `expected_duration`. Returns
    the share of jobs done by each time.

    Examples
    --------
    >>> import latfit
    >>> law = latfit.Defective(latfit.parse_law("lognormal(mu=5.5,sigma=1)"), 0.025)
    >>> latfit.completion_cdf(law, [100.0, 358.0, 1000.0], 358.0).round(3).tolist()
    [0.181, 0.632, 0.938]
    """
    law = as_law(law, **params)
    t, c = derived.check_timeouts(t_inf), derived.check_time("cost", cost)
    at = np.asarray(x, dtype=np.float64)
    return np.where(at < 0, 0.0, -np.expm1(log_survival(law, np.maximum(at, 0.0), t, c)))


def completion_pdf(law: Any, x: ArrayLike, t_inf: float, *, cost: float = 0.0, **params: Any) -> Floats:
    """f_J(x) = (1−F̃(t))ⁿ f̃(x − n(t+c)), n = ⌊x/(t+c)⌋, and 0 while a restart is under way.

    van Moorsel & Wolter 2004, eq. 3. `law`, `x`, `t_inf`, `cost` and `params` are as in `completion_cdf`. Returns an
    array in the shape of `x`.

    Examples
    --------
    >>> import latfit
    >>> latfit.completion_pdf("exponential", [1.0, 3.5, 5.0], 3.0, cost=1.0, rate=0.5).round(4).tolist()
    [0.3033, 0.0, 0.0677]
    """
    law, t, c = as_law(law, **params), float(derived.check_timeouts(t_inf)), derived.check_time("cost", cost)
    refuse_failures(law, "the density of the completion time")
    at = np.asarray(x, dtype=np.float64)
    n = np.floor(np.maximum(at, 0.0) / (t + c)) if 0 < t < np.inf else np.zeros(at.shape)
    age = at - n * (t + c if np.isfinite(t) else 0.0)
    reached = np.exp(-product(n, -log_not_completed(law, t, law.cdf(t))))
    return np.where((at >= 0) & (age < t), reached * law.pdf(np.clip(age, 0.0, t)), 0.0)


def survival(law: Law, x: float, t: Floats, cost: float) -> Floats:
    """P(J > x) for each timeout t, under visible failures on the lattice of the clock."""
    if not derived.has_failures(law):
        return np.exp(log_survival(law, np.full(np.shape(t), x), np.asarray(t), cost))
    chances = []
    for timeout in np.ravel(t):
        step, F_J = _lattice(law, _last_time(law, float(timeout)), cost, x)
        chances.append(np.clip(1.0 - F_J[min(int(x / step * (1 + 1e-12)), F_J.size - 1)], 0.0, 1.0))
    return np.reshape(chances, np.shape(t))


def log_survival(law: Law, x: Floats, t: Floats, cost: float) -> Floats:
    """The log of P(J > x) with timeout t, both vectorised."""
    refuse_failures(law, "the distribution of the completion time")
    period = t + cost
    if law.jumps is not None:  # 0.3 + 0.3 + 0.1 must reach 0.7 in spite of rounding
        x = x * (1 + 1e-12)
    with np.errstate(all="ignore"):
        n = np.where(np.isfinite(period) & (period > 0), np.floor(x / period), 0.0)
    n = np.where(np.isfinite(n), n, 0.0)
    rest = np.clip(np.where(n > 0, x - n * np.where(n > 0, period, 0.0), x), 0.0, t)
    log_out = -product(n, -log_not_completed(law, t, law.cdf(t))) + log_not_completed(law, rest, law.cdf(rest))
    at_once = (period == 0) & (law.cdf(t) > 0)  # any number of attempts at 0 takes no time
    return np.where(at_once, -np.inf, log_out)


def completion_quantile(law: Law, q: float, t_inf: ArrayLike, *, cost: float = 0.0) -> Floats:
    """The smallest x with F_J(x) ≥ q: n (t+c) + F̃⁻¹(1 − (1−q)/(1−F̃(t))ⁿ), n failed attempts before it.

    Under visible failures on the lattice of the clock; ∞ too where that is too many steps away.
    """
    if not 0 < q < 1:
        raise RestartError(f"the level of a quantile is {q}; it must lie between 0 and 1")
    t, c = derived.check_timeouts(t_inf), derived.check_time("cost", cost)
    if derived.has_failures(law):
        x = np.reshape([_lattice_quantile(law, q, float(timeout), c) for timeout in t.ravel()], t.shape)
        if np.isnan(x).any() and not np.isfinite(x).any():
            raise _no_lattice()
        return np.where(np.isnan(x), np.inf, x)
    F, target = law.cdf(t), np.log1p(-q)
    log_out = log_not_completed(law, t, F)
    with np.errstate(all="ignore"):
        attempts = np.where(F > 0, target / log_out, 1.0)
    n = np.maximum(np.ceil(attempts * (1 - 1e-12)) - 1.0, 0.0)
    level = np.minimum(-np.expm1(target + product(n, -log_out)), F)
    # a timeout of ∞ that is never reached at this level (ρ ≥ 1 − q) leaves the quantile infinite
    reached = (F > 0) & ((n == 0) | np.isfinite(t)) & ((n > 0) | (q * (1 - 1e-12) <= F))
    u = np.minimum(law.ppf(np.where(reached, level, 0.0)), t)
    with np.errstate(all="ignore"):
        return np.where(reached, product(n, t + c) + u, np.inf)


def draw(law: Law, size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Latency and time of visible failure of `size` attempts; ∞ for what does not happen."""
    p, F = rng.random(size), derived.completion_probability(law)
    latency = np.where(p <= F, law.ppf(np.minimum(p, F)), np.inf)
    if not derived.has_failures(law):
        return latency, np.full(size, np.inf)
    times = derived.failure_times(law)
    failure = np.append(times, np.inf)[np.searchsorted(law.failed(times), p - F, side="left")]
    return latency, np.where(p > F, failure, np.inf)


def _lattice_quantile(law: Law, q: float, t: float, cost: float) -> float:
    """The quantile q of J under the timeout t, ∞ where it is not reached, NaN where it is too many steps away."""
    if not float(law.cdf(t)) > 0:
        return np.inf
    t = _last_time(law, t)
    if np.isfinite(t):  # by Cantelli's inequality the quantile lies no further up than this
        far = float(expected_duration(law, t, cost=cost) + np.sqrt(q / (1 - q)) * std_duration(law, t, cost=cost))
    else:  # what is still out at the end stays so
        last = max(law.support[1], *derived.failure_times(law)[-1:])
        far = min(MAX_LATTICE_STEPS // 2 * _resolution(law), 100.0 * float(last))
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
    resolution = _resolution(law)
    if law.jumps is None or not resolution > 0:
        return None
    times = np.concatenate([law.jumps, derived.failure_times(law), [t, cost]])
    times = times[np.isfinite(times) & (times <= t + cost)]
    for part in (1, 2, 10, 60, 100, 1000):
        steps = times * (part / resolution)
        if (np.abs(steps - np.rint(steps)) < 1e-6).all():
            return resolution / part
    return None


def _resolution(law: Law) -> float:
    return float(getattr(law, "resolution", 0.0))


def _no_lattice() -> RestartError:
    return RestartError(
        "the distribution of the completion time under visible failures needs times that are whole steps of one clock, "
        f"at most {MAX_LATTICE_STEPS} of them, and these are not: read failures as completed or as lost (--failed), or "
        "ask for mean, std or a moment"
    )
