"""Special functions that scipy lacks, or loses where a latency law needs them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaincc, gammaln

from latfit.numbers import Floats


def log_gammaincc(a: ArrayLike, x: ArrayLike) -> Floats:
    """Logarithm of Q(a, x), the regularised upper incomplete gamma function, also where Q is below the smallest float.

    There x lies far above a and Legendre's continued fraction converges at once:
    Γ(a, x) = e⁻ˣ xᵃ / (x + 1 − a − 1(1 − a)/(x + 3 − a − 2(2 − a)/(x + 5 − a − …))).
    """
    a, x = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(x, dtype=np.float64))
    plain = gammaincc(a, x)
    with np.errstate(all="ignore"):
        fraction = np.zeros_like(x)
        for k in range(60, 0, -1):
            fraction = k * (k - a) / (x + 2 * k + 1 - a - fraction)
        far = -x + a * np.log(x) - gammaln(a) - np.log(x + 1 - a - fraction)
        return np.where(plain > 1e-290, np.log(plain), np.where(x == np.inf, -np.inf, far))


def log1p_ratio(t: Floats, a: float) -> Floats:
    """log(1 + t/a), also where t/a is beyond the largest float."""
    with np.errstate(all="ignore"):
        return np.where(t > a, np.log(t) - np.log(a) + np.log1p(a / t), np.log1p(t / a))
