"""The empirical law against statsmodels, and against Aalen and Johansen's sum in exact fractions."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from statsmodels.duration.survfunc import SurvfuncRight

from latfit.errors import LawError, SampleError
from latfit.laws import Defective, Empirical, parse_law
from latfit.sample import LatencySample

latencies = st.lists(st.integers(0, 12), max_size=12)


@st.composite
def samples(draw):
    """Small samples with ties of every kind, and at least one completion."""
    return {
        "completed": [draw(st.integers(0, 12)), *draw(latencies)],
        "failed": draw(latencies),
        "censored": draw(latencies),
        "lost": draw(st.integers(0, 3)),
    }


def aalen_johansen(completed, failed, censored, lost):
    """(time, S(t−), mass completed, mass failed) at each time of a return, in fractions."""
    out, rows = Fraction(1), []
    at_risk_for_ever = lost
    for t in sorted({*completed, *failed}):
        n = sum(x >= t for x in [*completed, *failed, *censored]) + at_risk_for_ever
        done, gone = Fraction(completed.count(t), n), Fraction(failed.count(t), n)
        rows.append((t, out, out * done, out * gone))
        out *= 1 - done - gone
    return rows, out


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(samples())
def test_against_the_product_limit_in_fractions(raw):
    law = Empirical.of(LatencySample.of(**raw))
    rows, never = aalen_johansen(**raw)
    for t in np.arange(-0.5, 14, 0.5):
        seen = [row for row in rows if row[0] <= t]
        F, G = sum(row[2] for row in seen), sum(row[3] for row in seen)
        assert_allclose(law.cdf(t), float(F), rtol=1e-13)
        assert_allclose(law.failed(t), float(G), rtol=1e-13)
        assert_allclose(law.still_out(t), float(1 - F - G), rtol=1e-12, atol=1e-15)
        for n in (0, 1, 2, 3):
            assert_allclose(law.partial_moment(n, t), float(sum(row[2] * row[0] ** n for row in seen)), rtol=1e-12)
            assert_allclose(law.failed_moment(n, t), float(sum(row[3] * row[0] ** n for row in seen)), rtol=1e-12)
    assert_array_equal(law.completed, [sum(x <= t for x in raw["completed"]) for t in law.jumps])
    assert_allclose(law.never, float(never), rtol=1e-13, atol=1e-16)
    assert_allclose(law.rho, float(1 - sum(row[2] for row in rows)), rtol=1e-12, atol=1e-15)
    assert (law.rho == 0) == (never == 0 and not raw["failed"])
    assert_array_equal(law.jumps, sorted(set(raw["completed"])))
    assert law.support == (min(raw["completed"]), max(raw["completed"]))


@pytest.mark.parametrize("seed", range(5))
def test_against_statsmodels(seed):
    rng = np.random.default_rng(seed)
    completed, censored = rng.lognormal(5, 1, 400).round(), rng.lognormal(5.5, 1, 200).round()
    lost = int(rng.integers(0, 30))
    law = Empirical.of(LatencySample.of(completed, censored=censored, lost=lost))
    times = np.concatenate([completed, censored, np.full(lost, 1e9)])
    status = np.concatenate([np.ones(completed.size), np.zeros(censored.size + lost)])
    theirs = SurvfuncRight(times, status)
    ours = law.still_out(theirs.surv_times)
    assert_allclose(ours, theirs.surv_prob, rtol=1e-10, atol=1e-14)
    assert_allclose(1 - law.cdf(theirs.surv_times), theirs.surv_prob, rtol=1e-10, atol=1e-14)


def test_a_complete_sample_is_its_own_law_exactly():
    rng = np.random.default_rng(0)
    x = rng.lognormal(5, 1, 1237)
    law = Empirical.of(LatencySample.of(x))
    assert law.rho == law.never == 0
    assert law.cdf(x.max()) == law.cdf(np.inf) == 1
    assert law.still_out(x.max()) == 0
    assert_array_equal(law.cdf(np.sort(x)), np.arange(1, x.size + 1) / x.size)
    assert_allclose(law.partial_moment(1, np.inf), x.mean(), rtol=1e-13)
    assert_allclose(law.partial_moment(3, np.median(x)), (x[x <= np.median(x)] ** 3).sum() / x.size, rtol=1e-12)


def test_cut_samples_count_outliers():
    x = np.random.default_rng(1).lognormal(5.5, 1, 2000)
    law = Empirical.of(LatencySample.of(x, lost=17, cutoff=900.0))
    assert_allclose(law.rho, ((x > 900).sum() + 17) / 2017, rtol=1e-13)
    assert law.support[1] <= 900
    assert law.still_out(np.inf) == law.rho
    assert law.jumps.size == law.completed[-1] == (x <= 900).sum()


def test_a_completion_at_0_stays_there():
    law = Empirical.of(LatencySample.of([0, 0, 3, 5], resolution=1.0))
    assert law.cdf(0) == 0.5
    assert law.cdf(-1) == 0
    assert law.partial_moment(1, 0) == 0
    assert law.completed[0] == 2
    assert law.resolution == 1


def test_shapes_and_pickling():
    law = Empirical.of(LatencySample.of([1, 2, 2, 7], failed=[3], censored=[4], lost=1))
    for t in (2.5, [1.0, 2.0], np.ones((2, 3)), np.inf, []):
        for value in (law.cdf(t), law.still_out(t), law.failed(t), law.partial_moment(1, t), law.failed_moment(2, t)):
            assert np.shape(value) == np.shape(t)
    back = pickle.loads(pickle.dumps(law))
    t = np.linspace(0, 9, 19)
    assert_array_equal(back.still_out(t), law.still_out(t))
    assert back.rho == law.rho


@pytest.mark.parametrize("rho", [0.0, 0.1, 0.9])
def test_rescaled_keeps_the_shape(rho):
    law = Empirical.of(LatencySample.of([1, 2, 2, 7], censored=[1.5], lost=2))
    other = law.rescaled(rho)
    t = np.array([0.5, 1, 2, 5, 7, 9, np.inf])
    assert_allclose(other.rho, rho, rtol=1e-13)
    assert_allclose(other.cdf(t) / (1 - rho), law.cdf(t) / (1 - law.rho), rtol=1e-13)
    assert_allclose(other.partial_moment(2, t) / (1 - rho), law.partial_moment(2, t) / (1 - law.rho), rtol=1e-13)
    assert_allclose(other.cdf(t) + other.failed(t) + other.still_out(t), 1, rtol=1e-14)
    assert_array_equal(other.completed, law.completed)


def test_conditional_is_the_law_of_completed_probes():
    law = Empirical.of(LatencySample.of([1, 2, 2, 7], failed=[3], lost=5)).conditional()
    alone = Empirical.of(LatencySample.of([1, 2, 2, 7]))
    t = np.arange(9.0)
    assert law.rho == law.never == 0
    assert law.cdf(7.0) == 1
    assert_allclose(law.cdf(t), alone.cdf(t), rtol=1e-14)
    assert_allclose(law.still_out(t), alone.still_out(t), rtol=0, atol=1e-15)
    assert_allclose(law.partial_moment(1, t), alone.partial_moment(1, t), rtol=1e-14)
    assert (law.failed(t) == 0).all()


def test_a_complete_sample_can_be_given_outliers():
    law = Empirical.of(LatencySample.of([1, 2, 3])).rescaled(0.25)
    assert law.rho == law.never == law.still_out(3.0) == 0.25
    assert law.cdf(3.0) == 0.75


def test_samples_without_a_law():
    with pytest.raises(SampleError, match="empty"):
        Empirical.of(LatencySample())
    with pytest.raises(SampleError, match="none of the 4 probes completed"):
        Empirical.of(LatencySample.of([], failed=[1], censored=[2], lost=2))


@pytest.mark.parametrize("rho", [1.0, -0.1, np.nan, np.inf])
def test_shares_out_of_range(rho):
    with pytest.raises(LawError, match="rho"):
        Empirical.of(LatencySample.of([1, 2])).rescaled(rho)


def test_outliers_are_not_counted_twice():
    with pytest.raises(LawError, match=r"outliers of its own.*rescaled"):
        Defective(Empirical.of(LatencySample.of([1, 2], lost=1)), 0.1)
    assert Defective(Empirical.of(LatencySample.of([1, 2])), 0.1).cdf(2.0) == 0.9


def test_a_large_sample_approaches_its_law():
    truth = parse_law("weibull(shape=0.8,scale=100)")
    law = Empirical.of(LatencySample.of(truth.sample(200_000, np.random.default_rng(2))))
    t = truth.ppf(np.linspace(0.01, 0.99, 50))
    assert np.abs(law.cdf(t) - truth.cdf(t)).max() < 1.63 / np.sqrt(200_000)
    assert_allclose(law.partial_moment(1, t), truth.partial_moment(1, t), rtol=0.05, atol=0.5)
