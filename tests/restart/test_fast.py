"""The exact optimum of raw arrays against the plain formula and the law-based engine."""

import numpy as np
import pytest

from latfit.errors import RestartError
from latfit.laws import Empirical
from latfit.restart import empirical_optimum, optimal_timeout
from latfit.sample import LatencySample


def plain(latencies, n_out, cost):
    """E_i = (Σ_{j≤i} x_j + (N−i)(x_i+c))/i for every i, then the smallest."""
    x = np.sort(latencies)
    i = np.arange(1, x.size + 1)
    E = (np.cumsum(x) + (x.size + n_out - i) * (x + cost)) / i
    return x[np.argmin(E)], E.min()


@pytest.mark.parametrize("size", [1, 2, 100, 1023, 1024, 1025, 50_000, 300_001])
@pytest.mark.parametrize("kind", ["lognormal", "seconds", "uniform", "exponential", "equal", "bimodal", "zeros"])
def test_against_the_plain_formula(size, kind):
    rng = np.random.default_rng(size)
    x = {
        "lognormal": lambda: rng.lognormal(5.5, 1, size),
        "seconds": lambda: np.round(rng.lognormal(3, 1, size)),
        "uniform": lambda: rng.uniform(10, 20, size),
        "exponential": lambda: rng.exponential(7, size),
        "equal": lambda: np.full(size, 3.5),
        "bimodal": lambda: np.where(rng.random(size) < 0.6, rng.normal(5, 0.01, size), rng.normal(50, 5, size)),
        "zeros": lambda: np.maximum(rng.normal(0, 5, size), 0),
    }[kind]()
    for n_out in (0, size // 30 + 1):
        for cost in (0.0, 4.0):
            timeout, E_J = empirical_optimum(x, n_out, cost=cost)
            _, expected = plain(x, n_out, cost)
            assert pytest.approx(expected, rel=1e-12, abs=1e-300) == E_J
            at = np.mean(x <= timeout) * size / (size + n_out)
            mean = (np.minimum(x, timeout).sum() + n_out * timeout) / (size + n_out) + cost * (1 - at)
            assert mean / at == pytest.approx(E_J, rel=1e-12, abs=1e-300)


def test_agrees_with_the_law():
    x = np.random.default_rng(4).lognormal(2, 1.2, 9000)
    best = optimal_timeout(Empirical.of(LatencySample.of(x, lost=200)), cost=1.5)
    timeout, E_J = empirical_optimum(x, 200, cost=1.5)
    assert timeout == best.timeout
    assert pytest.approx(best.expected_duration, rel=1e-12) == E_J


def test_input_is_left_alone_and_may_be_integers():
    x = np.array([30, 10, 20, 500])
    assert empirical_optimum(x, 1) == pytest.approx((30.0, (60 + 2 * 30) / 3))
    assert x.tolist() == [30, 10, 20, 500]


@pytest.mark.parametrize("bad", [[], [1.0, np.nan], [-1.0, 2.0], [1.0, np.inf]])
def test_wrong_latencies(bad):
    with pytest.raises(RestartError):
        empirical_optimum(bad)


def test_wrong_numbers():
    with pytest.raises(RestartError, match="never returned"):
        empirical_optimum([1.0], -1)
    with pytest.raises(RestartError, match="cost"):
        empirical_optimum([1.0], cost=-1)
