"""The outlier ratio against formulas worked by hand, other code, and simulation."""

import json
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

import latfit
from conftest import EGEE
from latfit import LatencySample, outlier_ratio
from latfit.errors import SampleError
from latfit.outliers import cutoff_verdict, default_cutoff, ratio_by_cutoff


@pytest.mark.parametrize(("out", "n"), [(0, 20), (1, 20), (20, 20), (53, 2137)])
def test_wilson_against_statsmodels(out, n):
    sample = LatencySample.of(np.arange(1.0, n - out + 1), lost=out, cutoff=1e6)
    ratio = outlier_ratio(sample)
    assert ratio.method == "wilson"
    assert (ratio.count, ratio.n) == (out, n)
    low, high = proportion_confint(out, n, method="wilson")
    assert ratio.estimate == out / n
    assert (ratio.low, ratio.high) == pytest.approx((low, high), abs=1e-12)


@pytest.mark.filterwarnings("ignore:The confidence interval is undefined")
@pytest.mark.parametrize("seed", range(10))
def test_kaplan_meier_interval_against_scipy(seed):
    rng = np.random.default_rng(seed)
    time = np.round(rng.lognormal(5, 1, 300))
    seen = np.round(rng.uniform(1, 1500, 300))
    sample = LatencySample.of(time[time <= seen], censored=seen[time > seen])
    ratio = outlier_ratio(sample, cutoff=400)
    assert ratio.method == "kaplan-meier"
    data = stats.CensoredData.right_censored(np.minimum(time, seen), time > seen)
    survival = stats.ecdf(data).sf
    assert ratio.estimate == pytest.approx(survival.evaluate(400), abs=1e-12)
    interval = survival.confidence_interval(0.95, method="log-log")
    assert ratio.low == pytest.approx(interval.low.evaluate(400), abs=1e-12)
    assert ratio.high == pytest.approx(interval.high.evaluate(400), abs=1e-12)


def test_early_censoring_biases_the_count_and_not_kaplan_meier():
    """theory.md: the count over all probes gives .035 where ρ is .050, Kaplan–Meier .0502."""
    rng = np.random.default_rng(3)
    n, rho, T = 200_000, 0.05, 5000.0
    latency = np.where(rng.random(n) < rho, np.inf, rng.lognormal(5.0, 0.8, n))
    gone = np.where(rng.random(n) < 0.5, rng.exponential(3000.0, n), np.inf)
    seen = np.minimum(gone, T)
    sample = LatencySample.of(latency[latency <= seen], censored=seen[latency > seen], resolution=0, cutoff=T)
    ratio = outlier_ratio(sample)
    assert sample.out_at_cutoff / n < 0.04
    assert ratio.low < rho < ratio.high
    assert ratio.estimate == pytest.approx(rho, abs=0.002)


@pytest.mark.slow
@pytest.mark.parametrize("early", [False, True])
def test_intervals_cover(early):
    rng = np.random.default_rng(11)
    hits, rounds = 0, 500
    for _ in range(rounds):
        latency = np.where(rng.random(400) < 0.05, np.inf, rng.lognormal(5, 0.8, 400))
        seen = np.minimum(rng.exponential(4000, 400), 2000) if early else np.full(400, 2000.0)
        sample = LatencySample.of(latency[latency <= seen], censored=seen[latency > seen], resolution=0)
        ratio = outlier_ratio(sample, cutoff=2000)
        truth = 0.05 + 0.95 * stats.lognorm.sf(2000, 0.8, scale=np.exp(5))
        hits += ratio.low <= truth <= ratio.high
    assert 0.95 - 3.5 * np.sqrt(0.95 * 0.05 / rounds) - 0.005 < hits / rounds < 0.985


def test_where_kaplan_meier_has_no_variance_the_interval_is_still_honest():
    nothing = outlier_ratio(LatencySample.of([], censored=[3, 4, 10], cutoff=10))
    assert (nothing.estimate, nothing.high) == (1, 1)
    assert nothing.low < 0.5
    everybody = outlier_ratio(LatencySample.of([5, 10], censored=[3], cutoff=10))
    assert (everybody.estimate, everybody.low) == (0, 0)
    assert everybody.high > 0.5


def test_a_failure_counts_as_censored():
    """Nobody knows whether it would have come back: Kaplan–Meier 9/10 · 6/7 · 5/6, by hand."""
    sample = LatencySample.of([1, 2, 3], failed=[1, 1], lost=5)
    ratio = outlier_ratio(sample, cutoff=10)
    assert (ratio.method, ratio.count) == ("kaplan-meier", 5)
    assert ratio.estimate == pytest.approx(9 / 10 * 6 / 7 * 5 / 6)
    assert outlier_ratio(sample.with_failed("lost"), cutoff=10).estimate == 0.7


@pytest.mark.parametrize(("completed", "of"), [(7, 7), (1, 1), (0, 1)])
def test_no_probe_is_out_if_all_others_failed(completed, of):
    sample = LatencySample.of(np.arange(1.0, completed + 1), failed=[2.5, 9.0, 9.0])
    ratio = outlier_ratio(sample, cutoff=20.0)
    low, high = proportion_confint(0, of, method="wilson")
    assert (ratio.estimate, ratio.low, ratio.high) == pytest.approx((0.0, low, high), abs=1e-12)
    assert (ratio.method, ratio.count, ratio.n) == ("wilson", 0, completed + 3)


@pytest.mark.parametrize(
    ("sample", "cutoff"),
    [
        (LatencySample.of([1, 2, 3], cutoff=7), 7),
        (LatencySample.of([1, 2, 300]), 300),
        (LatencySample.of([1, 2, 300], lost=4), 300),
        (LatencySample.of(np.arange(1, 300), censored=[500] * 9 + [30] * 4), 500),
        (LatencySample.of(np.arange(1, 300), censored=[500] * 9 + [*range(9)]), 500),  # half of the censored
        (LatencySample.of(np.arange(1, 300), censored=[500] * 9 + [*range(10)]), 299),  # less than half: ten at risk
        (LatencySample.of(np.arange(1, 300), censored=[200] * 9), 290),  # others came back later
        (LatencySample.of(np.arange(1, 300), censored=np.arange(100, 120)), 290),  # ten at risk
        (LatencySample.of([1, 2], censored=[1.5]), 2),
    ],
)
def test_default_cutoff(sample, cutoff):
    assert default_cutoff(sample).cutoff == cutoff


def test_verdict():
    steady = LatencySample.of(np.linspace(1, 100, 900), lost=100)
    assert cutoff_verdict(steady, outlier_ratio(steady, cutoff=1000)) == "stable"
    falling = LatencySample.of(np.linspace(1, 1000, 1000))
    assert cutoff_verdict(falling, outlier_ratio(falling, cutoff=800)) == "still falling"
    assert cutoff_verdict(falling, outlier_ratio(falling)) == "stable"  # nobody is out
    assert cutoff_verdict(falling, outlier_ratio(falling, cutoff=0.5)) == "stable"  # everybody is, and was before


@pytest.mark.parametrize(("middle", "verdict"), [(440.0, "stable"), (460.0, "still falling")])
def test_the_verdict_looks_at_half_the_cutoff(middle, verdict):
    """A tenth is out at 900 s, and half of all returned shortly before or after 450 s."""
    sample = LatencySample.of([10.0] * 400 + [middle] * 500, censored=[900.0] * 100)
    assert cutoff_verdict(sample, outlier_ratio(sample, cutoff=900.0)) == verdict


def test_a_longer_cutoff_never_raises_the_ratio():
    ratios = [r.estimate for r in ratio_by_cutoff(latfit.example_log().sample())]
    assert ratios == sorted(ratios, reverse=True)
    assert len(ratios) >= 10


def test_a_ratio_and_the_choice_of_its_cutoff_do_not_change():
    sample = LatencySample.of([1.0, 2.0], lost=1)
    for value in (outlier_ratio(sample), default_cutoff(sample)):
        with pytest.raises(FrozenInstanceError):
            value.cutoff = 3.0


def test_wrong_input():
    with pytest.raises(SampleError, match="empty"):
        outlier_ratio(LatencySample(), cutoff=5)
    with pytest.raises(SampleError, match="level is 95"):
        outlier_ratio(LatencySample.of([1]), level=95)
    with pytest.raises(SampleError, match="none of the 3 probes returned"):
        outlier_ratio(LatencySample.of([], lost=3))


def test_bundled_log_from_the_shell(run):
    document = json.loads(run("outliers", EGEE, "--json").stdout)
    assert document["ratio"] == 53 / 2137
    assert (document["cutoff"], document["count"], document["method"]) == (10000, 53, "wilson")
    assert document["by_cutoff"][-1]["ratio"] == document["ratio"]
    assert document["verdict"] == "still falling"
    assert set(document) >= {"low", "high", "joint_ratio"}


def test_the_text_output(run):
    done = run("outliers", EGEE)
    assert "2.48 % of 2137 probes were still out at 2 h 47 min" in done.stdout
    assert "the cutoff is 2 h 47 min: 53 of the 53 censored probes" in done.stderr


@pytest.mark.parametrize("n", [1, 2, 7])
def test_where_nothing_returned_the_interval_is_wilsons(n):
    """S = 1: all that were out at the cutoff are still out, and nothing is known of those given up before."""
    sample = LatencySample.of([], censored=[*[10.0] * n, 3.0])
    ratio = outlier_ratio(sample, cutoff=10.0)
    low, high = proportion_confint(n, n, method="wilson")
    assert (ratio.estimate, ratio.low, ratio.high) == pytest.approx((1.0, low, high), abs=1e-12)


def test_where_the_last_at_risk_returned_the_interval_is_wilsons():
    """S = 0: two were at risk last, and both came back."""
    sample = LatencySample.of([1.0, 2.0, 9.0, 9.0], censored=[3.0])
    ratio = outlier_ratio(sample, cutoff=20.0)
    assert ratio.method == "kaplan-meier"
    low, high = proportion_confint(0, 2, method="wilson")
    assert (ratio.estimate, ratio.low, ratio.high) == pytest.approx((0.0, low, high), abs=1e-12)


@pytest.mark.parametrize(
    ("values", "last", "first"),
    [
        ([10, 20, 30, 40], 1000, 20),  # the median return
        ([300, 500, 600, 700], 1000, 250),  # at most a quarter of the last
        ([0.001, 0.002, 0.003, 900], 1000, 0.1),  # at least a ten-thousandth of it
        ([10], 1000, 10),  # half did not return: a hundredth
    ],
)
def test_cutoffs_begin_at_the_median_return(values, last, first):
    lost = 0 if len(values) > 1 else 9
    rows = ratio_by_cutoff(LatencySample.of(np.array(values, dtype=float), lost=lost), cutoff=float(last))
    assert rows[0].cutoff == pytest.approx(first, rel=0.01)
    assert rows[-1].cutoff == last
    assert last / 2 in [row.cutoff for row in rows]


def test_a_tenth_of_a_small_log_is_enough_at_risk():
    """Of 41 probes five: 37 came back one by one, and four given up early leave five out at 33 s and four at 34 s."""
    sample = LatencySample.of(np.arange(1.0, 38.0), censored=[0.1, 0.2, 0.3, 0.4])
    assert default_cutoff(sample).cutoff == 33.0
