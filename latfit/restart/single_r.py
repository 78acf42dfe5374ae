"""SingleR: the best single hedge for a percentile, when only a share of extra requests may be made."""

from __future__ import annotations

import numpy as np

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.numbers import Floats
from latfit.restart.coarse import coarse
from latfit.restart.policies.hedge import Hedge
from latfit.restart.rounds import knots, not_completed
from latfit.restart.times import has_failures, inverse_cdf, scan_times

CELLS = 4000


def single_r(law: Law, level: float, extra: float) -> tuple[Hedge, float]:
    """The hedge with the least quantile `level` and at most a share `extra` of extra requests; and that quantile.

    P(J ≤ t) = F̃(t) + q S(t) F̃(t−d) with q S(d) ≤ B: for fixed t maximise min(1, B/S(d)) F̃(t−d) over d, and bisect
    on t. Kaler, He and Elnikety, SPAA 2017.

    Examples
    --------
    >>> import latfit
    >>> from latfit.restart import single_r
    >>> law = latfit.Defective(latfit.parse_law("lognormal(mu=5.5,sigma=1)"), 0.025)
    >>> hedge, t = single_r(law, 0.95, 0.05)
    >>> round(t), round(hedge.d), round(hedge.q, 3)
    (1313, 942, 0.448)

    """
    if has_failures(law):
        raise RestartError("a hedge is not computed for a law with visible failures: read them as lost (--failed lost)")
    if not 0 < level < 1 or not extra >= 0:
        raise RestartError(f"the level {level} must lie between 0 and 1 and the extra requests {extra} not below 0")
    rough = coarse(law, CELLS) if law.jumps is not None else law
    starts = np.append(0.0, knots(rough) if rough.jumps is not None else scan_times(rough))

    def best(t: float, d: Floats) -> tuple[float, float]:
        """P(J ≤ t) for the best of the starts d, and that start."""
        out, later = not_completed(rough, np.array(t)), d[d <= t]
        gain = _probability(rough, later, extra) * rough.cdf(t - later)
        i = int(np.argmax(gain))
        return float(rough.cdf(t) + out * gain[i]), float(later[i])

    high = float(inverse_cdf(rough, level))
    if not np.isfinite(high):
        high = 1e3 * float(knots(rough)[-1])
        if best(high, starts)[0] < level:
            return Hedge(0.0, None, 0.0), np.inf
    low = 0.0
    for _ in range(60):
        t = 0.5 * (low + high)
        low, high = (low, t) if best(t, starts)[0] >= level else (t, high)
    d = best(high, starts)[1]
    if rough.jumps is None:
        d, high = _finer(best, starts, d, high, level)
    return Hedge(d, None, float(_probability(rough, np.array(d), extra))), high


def _probability(law: Law, d: Floats, extra: float) -> Floats:
    """The largest probability of a hedge at d that makes at most `extra` more requests."""
    S = not_completed(law, d)
    return np.where(extra >= S, 1.0, extra / np.where(S > 0, S, 1.0))


def _finer(best, starts: Floats, d: float, t: float, level: float) -> tuple[float, float]:  # type: ignore[no-untyped-def]
    """The same between the neighbours of the best start on a fine grid."""
    i = int(np.searchsorted(starts, d))
    between = np.linspace(starts[max(i - 1, 0)], starts[min(i + 1, starts.size - 1)], 400)
    low, high = 0.98 * t, t
    for _ in range(45):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if best(middle, between)[0] >= level else (middle, high)
    return best(high, between)[1], high
