"""LatencySample: merging, cutting, the clock, and Kaplan–Meier against other code."""

import itertools
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.duration.survfunc import CumIncidenceRight, SurvfuncRight

from latfit.curve import kaplan_meier
from latfit.errors import SampleError
from latfit.sample import LatencySample, Tally, _common_divisor, clock_resolution

waits = st.lists(st.integers(0, 50), max_size=30)


@given(waits, waits, waits, st.integers(0, 5))
def test_merging_is_the_sample_of_all_values(a, b, c, lost):
    parts = [LatencySample.of(x, lost=lost, resolution=1) for x in (a, b, c)]
    together = LatencySample.of([*a, *b, *c], lost=3 * lost, resolution=1)
    for order in itertools.permutations(parts):
        assert LatencySample.sum(order) == together
    assert (parts[0] + parts[1]) + parts[2] == parts[0] + (parts[1] + parts[2]) == together


@given(st.lists(st.integers(0, 50), min_size=1, max_size=300), st.lists(st.floats(0, 1), min_size=1))
def test_quantiles_are_those_of_numpy(values, levels):
    found = Tally.of(values).quantiles([*levels, 0.05, 0.5, 0.9, 0.95, 0.99, 1.0])
    want = np.quantile(values, [*levels, 0.05, 0.5, 0.9, 0.95, 0.99, 1.0], weights=np.ones(len(values)),
                       method="inverted_cdf")  # fmt: skip
    assert found.tolist() == want.tolist()


def test_large_tallies_are_merged():
    rng = np.random.default_rng(5)
    parts = [np.round(rng.lognormal(5, 1, n), 3) for n in (300_000, 200_000, 7)]
    assert Tally.sum(map(Tally.of, parts)) == Tally.of(np.concatenate(parts))


@given(waits, waits, waits, st.integers(1, 60))
def test_cutting_keeps_every_probe(completed, failed, censored, cutoff):
    sample = LatencySample.of(completed, failed=failed, censored=censored, lost=2, resolution=1)
    cut = sample.cut(cutoff)
    assert cut.n == sample.n
    assert cut.completed.total == sum(x <= cutoff for x in completed)
    assert cut.failed.total == sum(x <= cutoff for x in failed)
    assert cut.lost == 2
    beyond = [x for x in completed + failed if x > cutoff] + [x for x in censored if x >= cutoff]
    assert cut.out_at_cutoff == len(beyond) + 2
    assert cut.censored_early == sum(x < cutoff for x in censored)
    assert cut.cut(cutoff) == cut


def test_a_latency_equal_to_the_cutoff_did_return():
    cut = LatencySample.of([5, 10, 11], cutoff=10)
    assert cut.completed == Tally.of([5, 10])
    assert cut.censored == Tally.of([10])


def test_different_cutoffs_do_not_add_up():
    with pytest.raises(SampleError, match=r"different cutoffs \(10 s, 20 s\)"):
        LatencySample.of([1], cutoff=10) + LatencySample.of([1], cutoff=20)
    with pytest.raises(SampleError, match="was cut at 10 s already"):
        LatencySample.of([1], cutoff=10).cut(20)


@pytest.mark.parametrize("bad", [[-1], [np.nan], [np.inf]])
def test_impossible_latencies(bad):
    with pytest.raises(SampleError, match="finite and not negative"):
        LatencySample.of(bad)


@pytest.mark.parametrize("cutoff", [0, -5, np.nan, np.inf])
def test_impossible_cutoffs(cutoff):
    with pytest.raises(SampleError, match="cutoff"):
        LatencySample.of([1, 2]).cut(cutoff)


def test_immutable_and_picklable():
    sample = LatencySample.of([3, 1, 1], censored=[9], lost=1)
    with pytest.raises(ValueError, match="read-only"):
        sample.completed.values[0] = 5
    assert pickle.loads(pickle.dumps(sample)) == sample
    assert sum([sample, sample]) == sample + sample


def test_failures_can_be_read_three_ways():
    sample = LatencySample.of([1, 2], failed=[3, 3], lost=1)
    assert sample.with_failed("retry") is sample
    assert sample.with_failed("completed").completed == Tally.of([1, 2, 3, 3])
    assert sample.with_failed("lost").lost == 3
    with pytest.raises(SampleError, match="retry, completed or lost"):
        sample.with_failed("other")


rng = np.random.default_rng(5)
seconds = np.round(rng.lognormal(5.5, 1, 2000)) + 1


@pytest.mark.parametrize(
    ("values", "step"),
    [
        (seconds, 1),
        (seconds / 1000, 0.001),
        (seconds / 3600, 1 / 3600),
        (seconds * 60, 60),
        (np.append(np.round(seconds) * 60, [61, 77]), 60),
        (np.append(seconds[:50] * 60, [61, 77]), 1),
        (np.round(seconds / 7, 2), 0.01),
        (rng.lognormal(5, 1, 500), 0),
        ([100, 200, 300], 1),
        ([0.25] * 40, 0.01),
        ([0, 0, 0], 0),
        ([], 0),
    ],
)
def test_clock(values, step):
    assert clock_resolution([Tally.of(values)]) == pytest.approx(step, rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_kaplan_meier_against_statsmodels_and_scipy(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 200))
    time = rng.integers(1, 40, n).astype(float)
    status = rng.choice([0, 1], n, p=[0.3, 0.7])
    status[np.argmin(time)] = 1
    lost = int(rng.integers(0, 5))
    km = kaplan_meier(LatencySample.of(time[status == 1], censored=time[status == 0], lost=lost))
    all_time, all_status = np.append(time, [1e6] * lost), np.append(status, [0] * lost)
    oracle = SurvfuncRight(all_time, all_status)
    assert km.times.tolist() == oracle.surv_times.tolist()
    np.testing.assert_allclose(km.still_out, oracle.surv_prob, atol=1e-14)
    finite = km.still_out > 0
    np.testing.assert_allclose(
        (km.still_out * np.sqrt(km.greenwood))[finite], np.asarray(oracle.surv_prob_se)[finite], atol=1e-12
    )
    ecdf = stats.ecdf(stats.CensoredData.right_censored(all_time, all_status == 0))
    np.testing.assert_allclose(km.completed, ecdf.cdf.evaluate(km.times), atol=1e-14)


@pytest.mark.parametrize("seed", range(20))
def test_competing_failures_against_statsmodels(seed):
    rng = np.random.default_rng(100 + seed)
    n = int(rng.integers(10, 150))
    time = rng.integers(1, 30, n).astype(float)
    status = rng.choice([0, 1, 2], n, p=[0.2, 0.6, 0.2])
    sample = LatencySample.of(time[status == 1], failed=time[status == 2], censored=time[status == 0])
    km = kaplan_meier(sample)
    np.testing.assert_allclose(km.still_out + km.completed + km.failed, 1, atol=1e-12)
    with np.errstate(divide="ignore", invalid="ignore"):
        oracle = CumIncidenceRight(time, status)
    for ours, theirs in ((km.completed, oracle.cinc[0]), (km.failed, oracle.cinc[1])):
        np.testing.assert_allclose(ours, theirs[np.isin(oracle.times, km.times)], atol=1e-12)


@pytest.mark.parametrize("n", [9, 11, 12, 39])
def test_probabilities_do_not_round_to_more_than_one(n):
    """n times 1/n, one after the other, is more than 1 for these n."""
    times = np.arange(1.0, n + 1)
    assert kaplan_meier(LatencySample.of(times)).completed.max() == 1
    assert kaplan_meier(LatencySample.of([], failed=times)).failed.max() == 1


def test_a_sample_and_its_estimate_do_not_change():
    sample = LatencySample.of([1.0, 2.0], lost=1)
    for value, name in ((sample, "lost"), (kaplan_meier(sample), "times"), (sample.completed, "values")):
        with pytest.raises(FrozenInstanceError):
            setattr(value, name, 3)


@pytest.mark.parametrize(("values", "step"), [([14.0, 35.0, 49.0], 7.0), ([10 / 3, 25 / 3, 55 / 3], 5 / 3),
                                              ([6 / 7, 15 / 7, 20 / 7], 1 / 7)])  # fmt: skip
def test_a_clock_that_is_not_decimal(values, step):
    """Euclid's algorithm finds the greatest common divisor, whatever the order of the remainders."""
    assert _common_divisor(np.array(values)) == pytest.approx(step, rel=1e-12)


def test_a_tally_rises_and_may_begin_at_zero():
    assert Tally(np.array([0.0, 1.0]), np.array([2, 1])).total == 3
    with pytest.raises(SampleError, match="strictly rising"):
        Tally(np.array([1.0, 1.0]), np.array([1, 1]))


def test_a_sample_describes_itself_and_keeps_the_finest_clock():
    assert repr(LatencySample()) == "<LatencySample: 0 probes, none, resolution 0 s>"
    assert (
        repr(LatencySample.of([1.0, 2.0], lost=1)) == "<LatencySample: 3 probes, 2 completed, 1 lost, resolution 1 s>"
    )
    coarse, fine = LatencySample.of([60.0], resolution=60.0), LatencySample.of([0.5], resolution=0.5)
    assert (coarse + fine).resolution == (fine + coarse).resolution == 0.5
    assert (coarse + LatencySample(lost=3)).resolution == 60.0
    assert LatencySample.sum([coarse]) == coarse


def test_samples_without_returns_add_up_in_any_order():
    """Without returns the clock is unknown, and the sum must not depend on the order of the logs."""
    coarse, fine = (LatencySample.of([], censored=[600.0], resolution=step) for step in (60.0, 1.0))
    assert coarse + fine == fine + coarse
    assert (coarse + fine).resolution == 1.0
