"""Likelihood intervals and the joint outlier ratio."""

import numpy as np
import pytest

from latfit.errors import FitError
from latfit.fitting import fit, joint_outlier_ratio, profile_interval
from latfit.sample import LatencySample


def sample_of(x, cutoff):
    seen = x[x <= cutoff]
    return LatencySample.of(seen, censored=[cutoff] * (x.size - seen.size), cutoff=cutoff, resolution=0)


def outliers(n, rho, seed):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < rho, np.inf, rng.lognormal(5.5, 1, n))


def test_profile_interval_of_the_exponential_by_hand():
    """2 n (v − 1 − log v) = χ² with v = rate/estimate, from both sides."""
    sample = LatencySample.of(np.random.default_rng(0).exponential(100, 60), resolution=0)
    found = fit(sample, ["exponential"], rho=0.0)[0]
    for end in profile_interval(sample, found, "rate"):
        v = end / found.params["rate"]
        assert 2 * 60 * (v - 1 - np.log(v)) == pytest.approx(3.841459, rel=1e-5)


@pytest.mark.parametrize(("law", "parameter"), [("lognormal", "mu"), ("lognormal", "sigma"), ("weibull", "shape")])
def test_profile_intervals_approach_the_normal_ones(law, parameter):
    sample = sample_of(outliers(5000, 0.03, 1), 2000.0)
    found = fit(sample, [law])[0]
    low, high = profile_interval(sample, found, parameter)
    value, error = found.params[parameter], found.std_errors[parameter]
    assert low == pytest.approx(value - 1.96 * error, abs=0.15 * error)
    assert high == pytest.approx(value + 1.96 * error, abs=0.15 * error)


def test_joint_ratio_where_the_count_is_wrong():
    """Log-normal(5.5, 1), ρ = .10, cut at 900 s: counted .187, joint .10 (theory.md)."""
    sample = sample_of(outliers(8000, 0.10, 2), 900.0)
    joint = joint_outlier_ratio(sample)
    assert joint.law == "lognormal"
    assert joint.low < 0.10 < joint.high < 0.15
    assert not joint.confounded


@pytest.mark.slow
@pytest.mark.parametrize("n", [25, 400])
def test_the_interval_of_rho_inverts_a_likelihood_ratio_test(n):
    """Each end given to a plain fit of one sample: the likelihood has fallen by χ²/2; or the end is 0."""
    rng = np.random.default_rng(n)
    x = np.where(rng.random(n) < 0.2, np.inf, rng.gamma(2.0, 100.0, n))
    sample = sample_of(x, 450.0)
    for law in ("exponential", "weibull", "lognormal", "gamma", "log-logistic", "pareto", "truncated-gaussian"):
        found = fit(sample, [law])[0]
        low, high = profile_interval(sample, found, "rho")
        assert low <= found.rho <= high
        for end in (low, high):
            fall = 2 * (found.log_likelihood - fit(sample, [law], rho=end)[0].log_likelihood)
            assert fall == pytest.approx(3.841459, rel=1e-5) if end else fall < 3.841459


@pytest.mark.slow
def test_joint_interval_covers():
    """95 % of 40 intervals, within 3 Monte Carlo standard errors."""
    hits = 0
    for seed in range(40):
        sample = sample_of(outliers(1000, 0.05, 100 + seed), 1500.0)
        low, high = profile_interval(sample, fit(sample, ["lognormal"])[0], "rho")
        hits += low <= 0.05 <= high
    assert hits / 40 >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 40)


def test_joint_interval_is_wide_enough_for_laws_that_compete():
    """Weibull latencies are called gamma or truncated Gaussian one time in seven: their intervals count too."""
    rng = np.random.default_rng(6)
    x = np.where(rng.random(300) < 0.05, np.inf, 300 * rng.weibull(1.5, 300))
    sample = sample_of(x, 700.0)
    fits = fit(sample)
    rivals = [found for found in fits if found.bic - fits[0].bic < 6]
    assert len(rivals) > 1
    ends = np.array([profile_interval(sample, found, "rho") for found in rivals])
    joint = joint_outlier_ratio(sample)
    assert (joint.low, joint.high) == (ends[:, 0].min(), ends[:, 1].max())


def test_confounded_when_the_cutoff_is_early():
    """With a cut near the median, a long tail cannot be told from outliers."""
    assert joint_outlier_ratio(sample_of(outliers(300, 0.05, 3), 260.0)).confounded


def test_no_probe_is_out():
    joint = joint_outlier_ratio(LatencySample.of(np.random.default_rng(4).lognormal(5, 1, 500), resolution=0))
    assert joint.estimate == 0
    assert joint.low == 0
    assert 0 < joint.high < 0.01
    assert not joint.confounded


def test_wrong_questions():
    sample = sample_of(outliers(100, 0.05, 5), 1500.0)
    with pytest.raises(FitError, match="no free parameter"):
        profile_interval(sample, fit(sample, ["lognormal"])[0], "shape")
    with pytest.raises(FitError, match="likelihood fit"):
        profile_interval(sample, fit(sample, ["lognormal"], method="ls")[0], "mu")
    with pytest.raises(FitError, match="level"):
        profile_interval(sample, fit(sample, ["lognormal"])[0], "mu", level=1.0)
    with pytest.raises(FitError, match="no law"):
        joint_outlier_ratio(LatencySample(lost=2))
