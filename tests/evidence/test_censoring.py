"""When giving up is a rule of the system: shares, common times and their edges, counted by hand."""

import numpy as np
import pytest

from latfit.decision.prepare import censoring
from latfit.sample import LatencySample


def sample(completed, given_up=(), lost=0):
    return LatencySample.of(np.array(completed, dtype=float), censored=np.array(given_up, dtype=float), lost=lost)


def test_the_share_is_that_of_all_probes():
    found = censoring(sample([1, 2, 3], [5, 9], lost=5))
    assert found.share == 0.2
    assert (found.common_time, found.informative, found.window, found.cut_at) == (None, False, None, None)


@pytest.mark.parametrize(("count", "common"), [(4, None), (5, 10.0), (6, 10.0)])
def test_five_at_one_time_are_the_fewest(count, common):
    found = censoring(sample([1, 2, 3], [10.0] * count))
    assert found.common_time == common
    assert not found.informative  # nothing completed later


@pytest.mark.parametrize(("elsewhere", "common"), [(4, 10.0), (6, 10.0), (7, None)])
def test_half_of_the_given_up_probes_must_share_the_time(elsewhere, common):
    """Six at one time, others far apart."""
    others = 100.0 * 1.5 ** np.arange(elsewhere)
    assert censoring(sample([1, 2, 3], [*[10.0] * 6, *others])).common_time == common


@pytest.mark.parametrize(("later", "rule"), [(2, False), (3, True), (4, True)])
def test_three_completions_beyond_make_it_a_rule(later, rule):
    found = censoring(sample([1, 2, *(20.0 + np.arange(later))], [10.0] * 6))
    assert found.informative is rule
    at_it = censoring(sample([1, 2, *[10.0] * later], [10.0] * 6))
    assert not at_it.informative  # as late as that, not later


def test_times_within_two_per_cent_count_as_one():
    times = [10.0, 10.05, 10.1, 10.15, 10.2]
    found = censoring(sample([1, 2, 30, 31, 32], [*times, 7.0, 14.0]))
    assert found.window == (10.0, 10.2)
    assert found.common_time == pytest.approx(np.mean(times))
    assert found.informative
    assert censoring(sample([1, 2], [*times[:-1], 10.21])).common_time is None


def test_a_cut_shows_in_a_log_without_outcomes_only():
    values = [*np.arange(1.0, 30), *[30.0] * 9]
    assert censoring(sample(values), has_outcomes=False).cut_at == 30
    assert censoring(sample(values), has_outcomes=True).cut_at is None
    assert censoring(sample(values, lost=1), has_outcomes=False).cut_at is None
    assert censoring(sample(values, [40.0]), has_outcomes=False).cut_at is None


@pytest.mark.parametrize(("last", "cut"), [(4, False), (8, False), (9, True)])
def test_a_cut_is_eight_times_as_common_as_those_below(last, cut):
    found = censoring(sample([*np.arange(1.0, 30), *[30.0] * last]), has_outcomes=False)
    assert (found.cut_at == 30) is cut


def test_a_cut_needs_five_rows_and_half_a_per_cent_and_ten_values():
    few = [*np.arange(1.0, 9), *[30.0] * 20]
    assert censoring(sample(few), has_outcomes=False).cut_at is None  # nine values
    many = np.concatenate([np.linspace(1, 29, 2500), np.full(12, 30.0)])
    assert censoring(sample(many), has_outcomes=False).cut_at is None  # 12 of 2512 are below 0.5 %
    assert censoring(sample([*many, 30.0]), has_outcomes=False).cut_at == 30  # 13 of 2513 are not


def test_half_a_per_cent_is_enough_and_the_nearest_below_counts():
    many = np.concatenate([np.linspace(1, 29, 2587), np.full(13, 30.0)])
    assert censoring(sample(many), has_outcomes=False).cut_at == 30  # 13 of 2600
    beside = [*np.arange(1.0, 29), 29.0, 29.0, *[30.0] * 9]
    assert censoring(sample(beside), has_outcomes=False).cut_at is None  # not eight times the two just below


def test_an_empty_sample_has_no_censoring():
    found = censoring(LatencySample.of([]))
    assert (found.share, found.common_time, found.cut_at) == (0.0, None, None)


def test_censoring_times_near_the_largest_float():
    found = censoring(sample([1, 2, 3, 4, 5], [1e308] * 8))
    assert found.common_time == 1e308
