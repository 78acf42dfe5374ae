"""The log-rank test: do two groups of censored latencies have one law?"""

from __future__ import annotations

import warnings

import numpy as np

from latfit.numbers import Bools, Floats


def log_rank(latency: Floats, completed: Bools, second: Bools) -> float:
    """The p-value of the log-rank test (Mantel 1966) of those in the `second` group against the others.

    1 where no time is left at which both groups are at risk.

    Examples
    --------
    >>> import numpy as np
    >>> x, of_second = np.arange(1.0, 41.0), np.arange(40) >= 20
    >>> bool(log_rank(x, np.ones(40, dtype=bool), of_second) < 1e-6)
    True

    """
    from statsmodels.duration.survfunc import survdiff

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a time at which nobody is left divides by 0 there
        try:
            p_value = float(survdiff(latency, completed.astype(int), second.astype(int))[1])
        except np.linalg.LinAlgError:  # no variance: one group is over before the other has its first completion
            return 1.0
    return p_value if np.isfinite(p_value) else 1.0
