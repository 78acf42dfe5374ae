"""What a sample predicts, against simulation, the formula of `restart` and resampling."""

import numpy as np
import pytest

import latfit
from latfit.sample import LatencySample
from latfit.verify import predict
from pairs import law

RNG = np.random.default_rng


def sample_of(rng, n=3000, failures=0.0):
    x = law(rng, n)
    broken = rng.random(n) < failures
    gone = rng.uniform(0, 0.3, n)
    out = np.full((~broken & (x > 60)).sum(), 60.0)
    return LatencySample.of(x[~broken & (x <= 60)], failed=gone[broken], censored=out, cutoff=60.0)


@pytest.mark.parametrize("failures", [0.0, 0.2])
@pytest.mark.parametrize("cost", [0.0, 0.7])
def test_one_timeout_is_the_formula_of_restart(failures, cost):
    sample = sample_of(RNG(1), failures=failures)
    found, _ = predict(sample, (1.7,), cost=cost, rng=RNG(0))
    exact = latfit.evaluate_timeout(latfit.Empirical.of(sample), 1.7, cost=cost)
    assert found.expected_duration == pytest.approx(exact.expected_duration, rel=1e-9)
    assert found.submissions == pytest.approx(exact.submissions, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("cost", "failures"), [(0.0, 0.0), (0.7, 0.2)])
def test_the_standard_error_is_that_of_repeated_logs(cost, failures):
    rng = RNG(3)
    drawn = [predict(sample_of(rng, 400, failures), (1.5,), cost=cost, rng=rng) for _ in range(300)]
    spread = np.std(np.log([retry.expected_duration for retry, _ in drawn]))
    assert np.mean([error for _, error in drawn]) == pytest.approx(spread, rel=0.12)


def test_the_standard_error_with_early_censoring():
    rng, drawn = RNG(4), []
    for _ in range(30):
        x, c = law(rng, 300), rng.uniform(0, 6, 300)
        sample = LatencySample.of(x[x <= c], censored=c[x > c])
        drawn.append(predict(sample, (1.5,), rng=rng))
    spread = np.std(np.log([retry.expected_duration for retry, _ in drawn]))
    assert np.mean([error for _, error in drawn]) == pytest.approx(spread, rel=0.4)


def test_a_timeout_below_every_completion():
    with pytest.raises(latfit.SampleError, match="no job would be done"):
        predict(LatencySample.of([1.0, 2.0, 3.0, 4.0]), (0.5,), rng=RNG(0))


def test_resamples_of_zeros_have_no_spread():
    sample = LatencySample.of([0.0, 0.0, 0.0, 0.0, 0.0, 2.0], censored=[1.0])
    retry, error = predict(sample, (5.0,), rng=np.random.default_rng(1))
    assert retry.expected_duration > 0
    assert np.isfinite(error)
