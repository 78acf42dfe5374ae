"""The times that matter for a law: its jumps, its kinks, its quantiles, a grid over its whole range."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from latfit.errors import RestartError
from latfit.laws.base import Law, ParametricLaw
from latfit.laws.defective import Defective
from latfit.laws.steps import Steps
from latfit.numbers import Floats

CENTRE_LEVELS = 1500  # levels of F̃/F̃(∞) between e^-16 and 1 − e^-16, even on the logit scale
LOW_LEVELS = 250  # levels below, even in log F̃, down to e^-650
LOG_TIMES = 1000  # times even in log t over the centre
LATE_TIMES = 60  # times beyond the last level, up to 10⁴ times as late


@runtime_checkable
class Failing(Protocol):
    """A law that knows its visible failures and the step of the clock that measured it (0: too fine to see)."""

    @property
    def failures(self) -> Steps: ...  # noqa: D102

    @property
    def resolution(self) -> float: ...  # noqa: D102


def check_time(name: str, value: float) -> float:
    """`value` in seconds, if it is finite and not negative."""
    if not (np.isfinite(value) and value >= 0):
        raise RestartError(f"the {name} is {value}; it must be a finite number of seconds, not negative")
    return float(value)


def check_timeouts(t_inf: ArrayLike) -> Floats:
    """Timeouts in seconds, if none is negative; ∞ means no timeout."""
    t = np.asarray(t_inf, dtype=np.float64)
    if np.isnan(t).any() or (t < 0).any():
        raise RestartError("a timeout must be a number and not negative (∞ means no timeout)")
    return t


def completion_probability(law: Law) -> float:
    """F̃(∞): the probability that an attempt without timeout ever completes."""
    return float(law.cdf(np.inf))


def has_failures(law: Law) -> bool:
    """Whether an attempt can fail visibly, G̃(∞) > 0."""
    return type(law).failed is not Law.failed and float(law.failed(np.inf)) > 0


def failure_times(law: Law) -> Floats:
    """The times at which an attempt can fail visibly."""
    return law.failures.times if isinstance(law, Failing) else np.empty(0)


def still_out(law: Law, t: ArrayLike) -> Floats:
    """S(t); on a step law what is below any share of a sample is rounding and counts as 0."""
    S = law.still_out(t)
    return S if law.jumps is None else np.where(S < 1e-14, 0.0, S)


def not_completed(law: Law, t: Floats) -> Floats:
    """1 − F̃(t) = S(t) + G̃(t), accurate in the upper tail; 1 before age 0."""
    age = np.maximum(t, 0.0) if law.jumps is None else t  # a step law is 1 there anyway
    out = still_out(law, age)
    if has_failures(law):
        out = out + law.failed(age)
    return np.where(t < 0, 1.0, out) if law.jumps is None else out


def kinks(law: Law) -> Floats:
    """The times at which the density of a law may jump, the ends of its support among them."""
    edges = np.array([*law.support, *law.kinks], dtype=np.float64)
    return edges[np.isfinite(edges) & (edges > 0)]


def inverse_cdf(law: Law, p: ArrayLike) -> Floats:
    """The smallest t with F̃(t) ≥ p, ∞ where no t reaches p."""
    levels = np.asarray(p, dtype=np.float64)
    if law.jumps is not None:
        # a level computed from F̃ itself must find its own jump again in spite of rounding
        where = np.searchsorted(law.cdf(law.jumps), levels * (1 - 1e-12) - 1e-15, side="left")
        return np.concatenate([law.jumps, [np.inf]])[where]
    top = completion_probability(law)
    inner = law.law if isinstance(law, Defective) else law
    if isinstance(inner, ParametricLaw):
        return np.where(levels > top, np.inf, inner.ppf(np.clip(levels / top, 0.0, 1.0)))
    start = law.support[0]
    # bisect on y = log(t − start), so that every unit of time is resolved alike
    low, high = np.full(levels.shape, -700.0), np.full(levels.shape, 700.0)
    for _ in range(64):
        middle = 0.5 * (low + high)
        below = law.cdf(start + np.exp(middle)) < levels
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(levels > top, np.inf, np.where(levels > 0, start + np.exp(high), start))


def scan_times(law: Law) -> Floats:
    """Times over the whole range of a law with a density, dense where it has mass.

    Levels of F̃ even on the log scale below and on the logit scale above, times even in log t
    between them, times far beyond, and the kinks: a grid that follows the law, not the unit.
    """
    top, (start, end) = completion_probability(law), law.support
    low = np.linspace(-650, -16, LOW_LEVELS, endpoint=False)
    centre = np.linspace(-16, 16, CENTRE_LEVELS)
    levels = top * np.concatenate([np.exp(low), 1 / (1 + np.exp(-centre))])
    at_levels = inverse_cdf(law, levels)
    first, last = at_levels[LOW_LEVELS] - start, at_levels[-1] - start
    if not (first > 0 and np.isfinite(last)):
        raise RestartError(f"the times of {law!r} are too small, too large or too close to compute with")
    even = start + np.geomspace(first, last, LOG_TIMES)
    late = at_levels[-1] * np.geomspace(1, 1e4, LATE_TIMES)
    t = np.concatenate([at_levels, even, late, kinks(law)])
    return np.unique(t[(t > start) & (t <= end) & np.isfinite(t)])


def beyond_power_tail(last: float, before: float, total: float) -> float:
    """The rest of an integral after its last two panels, even in log t, if the tail is a power of t (geometric series).

    0 where the last panel is negligible beside the `total`, ∞ where the panels do not fall.
    """
    if not last > 1e-30 * total:
        return 0.0
    r = last / before
    return np.inf if r > 1 - 1e-9 else last * r / (1 - r)
