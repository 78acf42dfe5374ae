"""The exact distribution of J under visible failures, where all times are whole steps of one clock."""

from __future__ import annotations

import numpy as np

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.numbers import Floats
from latfit.restart.completion import expected_duration, std_duration
from latfit.restart.times import Failing, failure_times, still_out

LONGEST = 2**16  # steps of the clock that are followed at most
NEGLIGIBLE = 1e-16  # the chance of so many attempts that no more are counted


def lattice_quantiles(law: Law, levels: tuple[float, ...], t: float, cost: float) -> list[float | None]:
    """The smallest x with P(J ≤ x) ≥ q for each q; None where the times fit on no short lattice."""
    spread = max(np.sqrt(q / (1 - q)) for q in levels)  # Cantelli: no quantile q lies further up
    t = _last_time(law, t)
    upto = float(expected_duration(law, t, cost=cost) + spread * std_duration(law, t, cost=cost))
    found = _distribution(law, t, cost, upto)
    if found is None:
        return [None] * len(levels)
    step, F_J = found
    return [float(step * np.searchsorted(F_J, q - 1e-12)) for q in levels]


def lattice_quantile(law: Law, q: float, t: Floats, cost: float) -> Floats:
    """The quantile q of J for each timeout t; ∞ where it is not reached, an error where there is no lattice."""

    def one(timeout: float) -> float:
        if not float(law.cdf(timeout)) > 0:
            return np.inf
        last = _last_time(law, timeout)
        if np.isinf(last):  # what is still out at the end of what was seen stays so: one attempt, or none returns
            return _untimed_quantile(law, q, cost)
        found = lattice_quantiles(law, (q,), last, cost)[0]
        if found is None:
            raise RestartError(_refusal("a quantile"))
        return found

    return np.reshape([one(float(timeout)) for timeout in np.ravel(t)], np.shape(t))


def lattice_survival(law: Law, x: float, t: Floats, cost: float) -> Floats:
    """P(J > x) for each timeout t; an error where the times do not fit on a lattice."""

    def one(timeout: float) -> float:
        found = _distribution(law, _last_time(law, timeout), cost, x)
        if found is None:
            raise RestartError(_refusal("the chance to meet a deadline"))
        step, F_J = found
        return float(np.clip(1.0 - F_J[min(int(x / step * (1 + 1e-12)), F_J.size - 1)], 0.0, 1.0))

    return np.reshape([one(float(timeout)) for timeout in np.ravel(t)], np.shape(t))


def _refusal(what: str) -> str:
    return (
        f"{what} under visible failures needs times that are whole steps of one clock, at most {LONGEST} of them, and "
        "these are not: read failures as completed or as lost (--failed), or ask for mean, std or a moment"
    )


def _last_time(law: Law, t: float) -> float:
    """A finite timeout that is as good as t, where every attempt is over by the last time seen."""
    if np.isinf(t) and not float(still_out(law, t)) > 0:
        return float(np.union1d(law.support, failure_times(law))[-1])
    return t


def _untimed_quantile(law: Law, q: float, cost: float) -> float:
    """The quantile without a timeout, where some attempts never end."""
    times = np.union1d(np.asarray(law.jumps), failure_times(law))
    found = _distribution(law, np.inf, cost, min(LONGEST // 2 * law.resolution, 100.0 * float(times[-1])))  # type: ignore[attr-defined]
    if found is None:
        raise RestartError(_refusal("a quantile"))
    step, F_J = found
    at = int(np.searchsorted(F_J, q - 1e-12))
    return step * at if at < F_J.size else np.inf


def _distribution(law: Law, t: float, cost: float, upto: float) -> tuple[float, Floats] | None:
    """The step of the lattice and P(J ≤ k steps) for k = 0, 1, … up to `upto`; None where there is no lattice.

    The generating function of J is T(z)/(1 − D(z)), T that of an attempt that completes, D that of one
    that does not and the cost after it; 1/(1 − D) = Π (1 + D^(2^k)).
    """
    step = _common_step(law, t, cost) if np.isfinite(upto) else None
    if step is None or upto / step >= LONGEST:
        return None
    total, lost = _attempt(law, t, cost, step, int(upto / step) + 2)
    if lost[0] >= 1 - NEGLIGIBLE:
        return step, np.zeros(total.size)
    while lost.sum() > NEGLIGIBLE:
        total = total + _convolved(total, lost)
        lost = _convolved(lost, lost)
    return step, np.maximum.accumulate(np.cumsum(total))


def _convolved(a: Floats, b: Floats) -> Floats:
    """The law of a sum, as far as its parts are followed."""
    size = 2 * a.size
    return np.fft.irfft(np.fft.rfft(a, size) * np.fft.rfft(b, size), size)[: a.size]


def _attempt(law: Law, t: float, cost: float, step: float, n: int) -> tuple[Floats, Floats]:
    """The probabilities, step by step of the clock, to complete then, and to be over with its cost but not complete."""
    done, over = np.zeros(n), np.zeros(n)
    jumps, failures = (times[times <= t] for times in (np.asarray(law.jumps), failure_times(law)))
    cut = np.array([t + cost]) if np.isfinite(t) else np.empty(0)
    for mass, times, probability in (
        (done, jumps, np.diff(law.cdf(jumps), prepend=0.0)),
        (over, failures + cost, np.diff(law.failed(failures), prepend=0.0)),
        (over, cut, np.full(cut.shape, float(still_out(law, t)))),
    ):
        at = np.rint(times / step).astype(np.int64)
        np.add.at(mass, at[at < n], probability[at < n])
    return done, over


def _common_step(law: Law, t: float, cost: float) -> float | None:
    """A step of which the law's times, the timeout and the cost are all multiples."""
    if not isinstance(law, Failing) or law.jumps is None or not law.resolution > 0:
        return None
    times = np.concatenate([law.jumps, failure_times(law), [t, cost]])
    times = times[np.isfinite(times) & (times <= t + cost)]
    for part in (1, 2, 10, 60, 100, 1000):
        steps = times * (part / law.resolution)
        if (np.abs(steps - np.rint(steps)) < 1e-6).all():
            return float(law.resolution / part)
    return None
