"""Quantiles of the completion time under visible failures, against exact recursion and simulation."""

from fractions import Fraction

import numpy as np
import pytest

from latfit.errors import RestartError
from latfit.laws import Empirical
from latfit.restart import Copies, evaluate_policy, evaluate_timeout, optimal_timeout, simulate_policy
from latfit.sample import LatencySample


def exact_cdf(completed, failed, lost, t, cost, upto):
    """P(J ≤ x) for whole x by P(J = x) = P(T = x) + Σ P(D = d) P(J = x − d), in fractions."""
    n = len(completed) + len(failed) + lost
    over = [u + cost for u in failed if u <= t] + [t + cost] * (lost + sum(u > t for u in [*completed, *failed]))
    p = []
    for x in range(upto):
        value = Fraction(sum(u == x for u in completed if u <= t), n)
        p.append(value + sum(Fraction(1, n) * p[x - d] for d in over if d <= x))
    return np.cumsum([float(v) for v in p])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cost", [0, 3])
@pytest.mark.slow
def test_quantiles_exactly(seed, cost):
    rng = np.random.default_rng(seed)
    completed, failed = rng.integers(1, 20, 12).tolist(), rng.integers(1, 25, 5).tolist()
    t = int(rng.choice(completed))
    law = Empirical.of(LatencySample.of(completed, failed=failed, lost=2, resolution=1.0))
    F_J = exact_cdf(completed, failed, 2, t, cost, 1200)
    result = evaluate_timeout(law, t, cost=cost)
    for q, x in result.quantiles.items():
        assert x == np.searchsorted(F_J, float(q) - 1e-12)


@pytest.mark.parametrize("copies", [1, 2])
def test_quantiles_by_simulation(copies):
    rng = np.random.default_rng(1)
    sample = LatencySample.of(
        np.round(rng.lognormal(5, 1, 300)), failed=np.round(rng.lognormal(3, 1, 60)), lost=9, resolution=1.0
    )
    law = Empirical.of(sample)
    best = optimal_timeout(law, cost=2.5, copies=copies)
    several = law if copies == 1 else Copies(law, copies)
    J = simulate_policy(several, f"timeout(t={best.timeout!r})", 50_000, rng, cost=2.5).durations
    for q, x in best.quantiles.items():
        assert abs(np.mean(x + 1e-6 >= J) - float(q)) <= 4 * np.sqrt(0.25 / J.size) + 2e-3


def test_quantiles_need_a_lattice():
    law = Empirical.of(LatencySample.of([0.1234567891, 2**0.5, np.pi], failed=[np.e]))
    assert optimal_timeout(law).quantiles == {"0.5": None, "0.95": None, "0.99": None}
    whole = Empirical.of(LatencySample.of([4, 5, 6], failed=[1, 2], resolution=1.0))
    assert None in evaluate_timeout(whole, 6, cost=np.pi).quantiles.values()
    assert None not in evaluate_timeout(whole, 6, cost=0.5).quantiles.values()
    # .2 (4) + .2 + .2² (5) + .2 + 2 · .2² + .2³ (6)
    assert optimal_timeout(whole).verdict == "never"
    assert optimal_timeout(whole).quantiles["0.5"] == 6
    stuck = Empirical.of(LatencySample.of([4, 5, 6], failed=[1, 2], lost=1, resolution=1.0))
    without = evaluate_timeout(stuck, np.inf).quantiles  # half of the jobs are done by then, though not all ever are
    assert without == evaluate_policy(stuck, "timeout()").quantiles == {"0.5": 6, "0.95": None, "0.99": None}


@pytest.mark.slow
def test_a_tail_where_bad_timeouts_are_too_many_steps_away():
    """Where the report has the p99 at a timeout, p99 can be minimised, though early timeouts take 65 536 steps."""
    rng = np.random.default_rng(2)
    x = np.round(rng.lognormal(0, 0.8, 120), 3)
    law = Empirical.of(LatencySample.of(x[:110], failed=x[110:], lost=4, resolution=0.001))
    assert None in evaluate_timeout(law, float(law.jumps[0])).quantiles.values()
    best = optimal_timeout(law, objective="quantile:0.99")
    assert best.objective["value"] == best.quantiles["0.99"]
    figures = [evaluate_timeout(law, float(t)).quantiles["0.99"] for t in law.jumps]
    assert best.objective["value"] == min(figure for figure in figures if figure is not None)
    J = simulate_policy(law, f"timeout(t={best.timeout!r})", 100_000, rng).durations
    assert np.quantile(J, 0.99) == pytest.approx(best.objective["value"], rel=0.03)
    with pytest.raises(RestartError, match="65536"):
        evaluate_timeout(law, float(law.jumps[0]), objective="quantile:0.99")
    whole = Empirical.of(LatencySample.of(x[:110], failed=x[110:], resolution=0.001))  # every attempt ends
    with pytest.raises(RestartError, match="65536"):
        evaluate_timeout(whole, float(whole.jumps[0]), objective="quantile:0.99")
