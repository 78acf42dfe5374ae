"""Whether a restart helps at all: criteria that need little knowledge of the law, and bounds that hold for any law."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.laws.empirical import as_law
from latfit.restart.completion import completion_quantile
from latfit.restart.derived import check_time, check_timeouts, completion_probability, has_failures, log_not_completed
from latfit.restart.result import Optimum


def variation(law: Any, **params: Any) -> float:
    """The coefficient of variation std/mean of a latency; ∞ where some attempts never complete.

    Above 1, some timeout lowers the mean time to completion, whatever the law. Reuveni, PRL 116, 170601 (2016); Pal and
    Reuveni, PRL 118, 030603 (2017). Below 1 one still may. `law` and `params` are as in
    `expected_duration`. Returns a number.

    Examples
    --------
    >>> import latfit
    >>> round(latfit.variation("exponential", rate=3.0), 9), latfit.variation([1.0, 1.0, 1.0, 9.0]) > 1
    (1.0, True)
    """
    law = as_law(law, **params)
    if completion_probability(law) < 1 - 1e-12:
        return np.inf
    mean, square = (float(law.partial_moment(n, np.inf)) for n in (1, 2))
    if not np.isfinite(square):
        return np.inf
    return float(np.sqrt(max(square - mean * mean, 0.0)) / mean) if mean > 0 else 0.0


def tail_rate(law: Any, t_inf: float = np.inf, *, cost: float = 0.0, **params: Any) -> float:
    """The rate at which P(J > x) falls for large x: −ln(1−F̃(t))/(t + c) with the timeout t, h(∞) without one.

    A timeout makes the tail lighter where its rate is above h(∞) = lim −ln S(x)/x, which is 0 for heavy tails and where
    attempts may never complete. Eliazar and Reuveni, arXiv:2004.09289 (2020). `law`, `t_inf`, `cost`
    and `params` are as in `expected_duration`, with one timeout. Returns a rate in 1/s.

    Examples
    --------
    >>> import latfit
    >>> latfit.tail_rate("weibull", 1.0, shape=2.0, scale=1.0), latfit.tail_rate("lognormal", mu=0.0, sigma=1.0)
    (1.0, 0.0)
    """
    law, t, c = as_law(law, **params), float(check_timeouts(t_inf)), check_time("cost", cost)
    if np.isfinite(t):
        return float(-log_not_completed(law, t, law.cdf(t)) / (t + c)) if t + c > 0 else np.inf
    if completion_probability(law) < 1 - 1e-12:
        return 0.0
    if np.isfinite(law.support[1]):  # nothing is slower than its last latency
        return np.inf
    # the limit of −ln S(x)/x from its growth over factors of ten in x: 0 or ∞ if it keeps falling or rising
    x = float(law.ppf(0.999)) * 10.0 ** np.arange(1, 60)
    with np.errstate(all="ignore"):
        logsf = law.logsf(x) if hasattr(law, "logsf") else np.log(law.still_out(x))
        rates = (-logsf / x)[np.isfinite(logsf)]
    growth = rates[-1] / rates[-2] if rates.size > 1 else np.inf
    return 0.0 if growth < 1 - 1e-3 else np.inf if growth > 1 + 1e-3 else float(rates[-1])


def tail_quantiles(law: Law, t_inf: float, *, level: float = 0.99, cost: float = 0.0) -> tuple[float, float] | None:
    """The quantile of the completion time with a timeout and without one; None if either is unknown."""
    if has_failures(law) or completion_probability(law) < level:
        return None
    return float(completion_quantile(law, level, t_inf, cost=cost)), float(law.ppf(level))


@dataclass(frozen=True)
class QuantileBound:
    """A timeout at a known quantile, with upper bounds on its `expected_duration` and `submissions`.

    `least` is a lower bound on the mean with any timeout at a known quantile, `waiting` on the mean without a timeout.
    """

    timeout: float
    level: float
    expected_duration: float
    least: float
    waiting: float
    submissions: float

    def to_dict(self) -> dict[str, Any]:
        """The fields of an `Optimum`, None where only a bound is known, which is `guaranteed`."""
        return dict.fromkeys([*(each.name for each in fields(Optimum)), "parallel"]) | {
            "verdict": "bound",
            "timeout": self.timeout,
            "objective": {"name": "mean", "value": None},
            "level": self.level,
            "guaranteed": self.expected_duration,
            "least": self.least,
            "waiting": self.waiting,
            "most_submissions": self.submissions,
        }


def quantile_bound(quantiles: Mapping[float, float], *, cost: float = 0.0) -> QuantileBound:
    """The timeout with the smallest upper bound on E_J if only some quantiles of the latency are known.

    E_J(t) = (∫₀ᵗ S + c S(t))/F̃(t), and between two quantiles t_i < t_{i+1} S lies in [1−q_{i+1}, 1−q_i]. With one
    quantile this is E_J ≤ (t + c (1−q))/q: twice the median. Starkov and Belan, arXiv:2209.06611 (2022).

    Parameters
    ----------
    quantiles
        The latency in seconds at each level, such as `{0.5: 0.12, 0.95: 0.4, 0.99: 2.0}`. Attempts that never complete
        are beyond every level.
    cost
        Seconds between a cancellation and the next attempt.

    Returns
    -------
    QuantileBound
        The timeout with its bounds on the expected duration and the submissions.

    Examples
    --------
    >>> import latfit
    >>> bound = latfit.quantile_bound({0.5: 0.12, 0.95: 0.4, 0.99: 2.0})
    >>> bound.timeout, round(bound.expected_duration, 3)
    (0.12, 0.24)
    """
    c = check_time("cost", cost)
    q, t = np.array(sorted(quantiles.items()), dtype=np.float64).reshape(-1, 2).T
    if not q.size or not (q[0] > 0 and q[-1] < 1 and t[0] >= 0 and (np.diff(t) >= 0).all() and np.isfinite(t[-1])):
        raise RestartError(
            f"the quantiles are {dict(quantiles)}: give latencies of at least 0 that rise with their levels, which lie "
            "between 0 and 1, as in {0.5: 0.12, 0.99: 2.0}"
        )
    steps = np.diff(t, prepend=0.0)
    most, least = np.cumsum(steps * (1 - np.append(0.0, q[:-1]))), np.cumsum(steps * (1 - q))
    high, low = ((spent + c * (1 - q)) / q for spent in (most, least))
    best = int(np.argmin(high))
    bounds = float(high[best]), float(low.min()), float(least[-1])
    return QuantileBound(float(t[best]), float(q[best]), *bounds, submissions=float(1 / q[best]))
