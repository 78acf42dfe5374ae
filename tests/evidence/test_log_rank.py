"""The log-rank test against scipy's, and where there is nothing to compare."""

import numpy as np
import pytest
from scipy.stats import CensoredData, logrank

from latfit.evidence.log_rank import log_rank


@pytest.mark.parametrize("seed", range(6))
def test_against_scipy(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 200))
    second = rng.random(n) < 0.4
    x = np.round(rng.lognormal(2, 1, n) * np.where(second, rng.choice([1.0, 1.8]), 1.0), int(rng.integers(0, 3)))
    completed = rng.random(n) < 0.8
    one, two = (CensoredData(x[of & completed], right=x[of & ~completed]) for of in (~second, second))
    assert log_rank(x, completed, second) == pytest.approx(logrank(one, two).pvalue, rel=1e-6)


def test_one_time_at_which_nobody_is_left_is_no_difference():
    x, second = np.array([1.0, 1.0, 2.0, 2.0]), np.array([True, True, False, False])
    assert log_rank(x, np.array([False, False, True, True]), second) == 1.0
