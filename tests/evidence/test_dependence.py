"""Dependence between probes: correlations and losses counted by loops, the p-value by statsmodels."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy.stats import rankdata
from statsmodels.stats.diagnostic import acorr_ljungbox

from latfit.evidence import Dependence, dependence
from latfit.table import CENSORED, COMPLETED, FAILED, LOST, ProbeTable


def rising_and_falling(n, seed, phi=0.6):
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(n)
    for i in range(1, n):
        z[i] += phi * z[i - 1]
    return np.exp(z)


def correlations(x):
    """At lags 0, 1, … by the definition."""
    mean, n = sum(x) / len(x), len(x)
    sums = [sum((x[i] - mean) * (x[i + k] - mean) for i in range(n - k)) for k in range(n)]
    return [each / sums[0] for each in sums]


@pytest.mark.parametrize("n", [40, 49, 50, 55, 300])
@pytest.mark.parametrize("phi", [0.1, -0.4, 0.9])
def test_against_loops_and_statsmodels(n, phi):
    """A fifth of the probes are looked back at, ten at most; the sum of correlations ends in the noise."""
    x, lags = rising_and_falling(n, n, phi), min(10, n // 5)
    found = dependence(ProbeTable(x, np.full(n, COMPLETED), np.arange(float(n))))
    r = correlations(rankdata(x).tolist())
    assert found.lag1 == pytest.approx(r[1], rel=1e-9)
    assert found.strongest == pytest.approx(max(r[1 : lags + 1]), rel=1e-9)
    boxed = acorr_ljungbox(rankdata(x), lags=[lags], return_df=True)["lb_pvalue"].iloc[0]
    assert found.p_value == pytest.approx(boxed, rel=1e-9)
    time = 1.0
    for each in r[1:]:
        if each < 2 / n**0.5:
            break
        time += 2 * each
    assert found.autocorrelation_time == pytest.approx(time, rel=1e-9)
    assert found.lost_after_lost is None


def test_incomplete_probes_rank_last():
    x = rising_and_falling(60, 1)
    status = np.where(np.arange(60) % 7 == 0, np.array([CENSORED, LOST, FAILED])[np.arange(60) % 3], COMPLETED)
    ranks = rankdata(np.where(status == COMPLETED, x, 1e9))
    found = dependence(ProbeTable(x, status, np.arange(60.0)))
    assert found.lag1 == pytest.approx(correlations(ranks.tolist())[1], rel=1e-9)


def test_losses_after_losses_are_counted():
    """Three of the six that follow one still out or lost were so too; what follows the failure does not count."""
    status = np.full(60, COMPLETED)
    status[[5, 6, 7, 20, 40, 41]] = [LOST, CENSORED, LOST, CENSORED, LOST, LOST]
    status[[8, 30, 31]] = FAILED
    found = dependence(ProbeTable(rising_and_falling(60, 2), status, np.arange(60.0)))
    assert found.lost_after_lost == pytest.approx(3 / 6)


def test_an_empty_log_has_no_dependence():
    x, done = rising_and_falling(41, 3), np.full(41, COMPLETED)
    assert dependence(ProbeTable(x, done)) is None
    assert dependence(ProbeTable(x[:39], done[:39], np.arange(39.0))) is None
    assert dependence(ProbeTable(x[:40], done[:40], np.arange(40.0))) is not None
    assert dependence(ProbeTable(np.ones(41), done, np.arange(41.0))) is None


def test_the_threshold_of_dependence():
    """Stronger than .1 and less likely than 1 in 1000."""
    cases = [(0.15, 5e-4, True), (0.1, 5e-4, False), (0.15, 1e-3, False), (0.15, 1.5e-3, False), (0.05, 1e-9, False)]
    for strongest, p, said in cases:
        assert Dependence(0.0, strongest, p, 1.0, None).found == said
    one = Dependence(0.2, 0.3, 0.01, 1.5, 0.4)
    assert one.to_dict() == {
        "lag1": 0.2, "p_value": 0.01, "strongest": 0.3, "autocorrelation_time": 1.5, "lost_after_lost": 0.4
    }  # fmt: skip
    with pytest.raises(FrozenInstanceError):
        one.lag1 = 0.0
