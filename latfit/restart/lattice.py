"""The exact distribution of J under visible failures, where all times are whole steps of one clock."""

from __future__ import annotations

import numpy as np

from latfit.laws.base import Law
from latfit.restart.completion import expected_duration, std_duration
from latfit.restart.times import Failing, Floats, failure_times, still_out

LONGEST = 2**16  # steps of the clock that are followed at most
NEGLIGIBLE = 1e-16  # the chance of so many attempts that no more are counted


def lattice_quantiles(law: Law, levels: tuple[float, ...], t: float, cost: float) -> list[float | None]:
    """The smallest x with P(J ≤ x) ≥ q for each q; None where the times do not fit on a lattice that is short enough.

    The generating function of J is T(z)/(1 − D(z)), T that of an attempt that completes, D that of one
    that does not and the cost after it; 1/(1 − D) = Π (1 + D^(2^k)).
    """
    spread = max(np.sqrt(q / (1 - q)) for q in levels)  # Cantelli: no quantile q lies further up
    if np.isinf(t) and not float(still_out(law, t)) > 0:  # every attempt is over by the last time seen
        t = float(np.union1d(law.support, failure_times(law))[-1])
    upto = float(expected_duration(law, t, cost=cost) + spread * std_duration(law, t, cost=cost))
    step = _common_step(law, t, cost) if np.isfinite(upto) else None
    if step is None or upto / step >= LONGEST:
        return [None] * len(levels)
    n = int(upto / step) + 2
    total, lost = _attempt(law, t, cost, step, n)
    while lost.sum() > NEGLIGIBLE:
        total = total + _convolved(total, lost)
        lost = _convolved(lost, lost)
    F_J = np.maximum.accumulate(np.cumsum(total))
    return [float(step * np.searchsorted(F_J, q - 1e-12)) for q in levels]


def _convolved(a: Floats, b: Floats) -> Floats:
    """The law of a sum, as far as its parts are followed."""
    size = 2 * a.size
    return np.fft.irfft(np.fft.rfft(a, size) * np.fft.rfft(b, size), size)[: a.size]


def _attempt(law: Law, t: float, cost: float, step: float, n: int) -> tuple[Floats, Floats]:
    """The probabilities, step by step of the clock, to complete then, and to be over with its cost but not complete."""
    done, over = np.zeros(n), np.zeros(n)
    jumps, failures = (times[times <= t] for times in (np.asarray(law.jumps), failure_times(law)))
    for mass, times, probability in (
        (done, jumps, np.diff(law.cdf(jumps), prepend=0.0)),
        (over, failures + cost, np.diff(law.failed(failures), prepend=0.0)),
        (over, np.array([t + cost]), np.atleast_1d(still_out(law, t))),
    ):
        at = np.rint(times / step).astype(np.int64)
        np.add.at(mass, at[at < n], probability[at < n])
    return done, over


def _common_step(law: Law, t: float, cost: float) -> float | None:
    """A step of which the law's times, the timeout and the cost are all multiples."""
    if not isinstance(law, Failing) or law.jumps is None or not law.resolution > 0:
        return None
    times = np.concatenate([law.jumps, failure_times(law), [t, cost]])
    for part in (1, 2, 10, 60, 100, 1000):
        steps = times[times <= t + cost] * (part / law.resolution)
        if (np.abs(steps - np.rint(steps)) < 1e-6).all():
            return law.resolution / part
    return None
