"""The bounds against a linear programme that knows every single latency, and against logs read whole."""

import numpy as np
import pytest
from scipy.optimize import linprog

from conftest import EGEE
from latfit.buckets import Histogram
from latfit.errors import SampleError
from latfit.histograms import bounds, worst_regret
from latfit.laws import Empirical
from latfit.logs import read_log
from latfit.restart import expected_duration, optimal_timeout

GOLDEN = Histogram.of([0.05, 0.1, 0.25, 0.5, 1], [0, 10, 40, 30, 10], n_inf=6, lost=4)


def test_golden():
    found = bounds(GOLDEN)
    np.testing.assert_allclose(found.low[1:], [0.95, 0.34, 0.275, 0.3], rtol=1e-12)
    np.testing.assert_allclose(found.high[1:], [1, 0.47, 0.45, 0.46 / 0.9], rtol=1e-12)
    assert found.least == pytest.approx(0.19, rel=1e-12)
    assert found.edges[found.high.argmin()] == 0.5
    assert np.isinf(found.low[0]), "nothing completes by 50 ms"
    assert np.isinf(found.high[0])


def test_golden_with_the_sum():
    found = bounds(GOLDEN.with_outcomes(latency_sum=26.0))
    np.testing.assert_allclose(found.high[1:], [1, 0.4, 0.3125, 1 / 3], rtol=1e-12)
    assert found.high.min() == pytest.approx(0.3125, rel=1e-12)


class Programme:
    """All latencies of a histogram as variables: x in its bucket, those beyond the last edge above it."""

    def __init__(self, histogram):
        self.h = histogram
        e, n = histogram.edges, histogram.counts
        self.bucket = np.concatenate([np.repeat(np.arange(n.size), n), np.full(histogram.n_inf, n.size)])
        upper = np.append(e[1:], np.inf)
        self.ranges = np.column_stack([e[self.bucket], upper[self.bucket]])

    def attempt(self, done, t, cost):
        """Weights of x, and of the constant 1, in Σ min(x, t) over attempts, with `done` those that complete."""
        out = self.h.n - done.sum()
        return done.astype(float), out * (t + cost)

    def extreme(self, k, cost, sign):
        """The least (sign 1) or largest (sign −1) E(e_k)."""
        done = self.bucket < k
        weights, constant = self.attempt(done, self.h.edges[k], cost)
        known = self.h.latency_sum
        equal = {} if known is None else {"A_eq": np.ones((1, done.size)), "b_eq": [known]}
        found = linprog(sign * weights, bounds=self.ranges, **equal)
        assert found.status == 0, found.message
        return (sign * found.fun + constant) / done.sum()

    def largest_ratio(self, k, at, q, cost):
        """max E(e_k)/E(t), t in bucket `at` (0-based; m is beyond the last), q of its latencies ≤ t, by Charnes–Cooper.

        Variables: x and t, both times y, and y itself; C E(t) is scaled to 1.
        """
        size = self.bucket.size
        inside = np.flatnonzero(self.bucket == at)
        done_t = self.bucket < at
        done_t[inside[:q]] = True
        if not done_t.any():
            return 0.0
        done_k = self.bucket < k
        top = np.concatenate([done_k.astype(float), [0.0, (self.h.n - done_k.sum()) * (self.h.edges[k] + cost)]])
        out = self.h.n - done_t.sum()
        below = np.concatenate([done_t.astype(float), [out, out * cost]])
        rows = []

        def at_most(i, a, j, b):  # a·v_i ≤ b·v_j
            row = np.zeros(size + 2)
            row[i] += a
            row[j] -= b
            rows.append(row)

        for i, (low, high) in enumerate([*self.ranges, (self.h.edges[at], np.append(self.h.edges, np.inf)[at + 1])]):
            at_most(size + 1, low, i, 1.0)
            if np.isfinite(high):
                at_most(i, 1.0, size + 1, high)
        for i in inside[:q]:
            at_most(i, 1.0, size, 1.0)
        for i in inside[q:]:
            at_most(size, 1.0, i, 1.0)
        found = linprog(-top, A_ub=np.array(rows), b_ub=np.zeros(len(rows)), A_eq=[below], b_eq=[1.0])
        assert found.status == 0, found.message
        return -found.fun * done_t.sum() / done_k.sum()


def random_histogram(rng):
    m = rng.integers(1, 5)
    edges = np.cumsum(rng.uniform(0.05, 2, m + 1)) - (0.02 if rng.random() < 0.5 else 0)
    counts = rng.integers(0, 4, m)
    counts[rng.integers(m)] += 1
    return Histogram(edges, counts, int(rng.integers(0, 3)), int(rng.integers(0, 3)))


@pytest.mark.parametrize("block", [0, *(pytest.param(block, marks=pytest.mark.slow) for block in (1, 2, 3))])
def test_linear_programme(block):
    """50 random histograms a block: every bound, and the worst regret of every edge of some."""
    rng = np.random.default_rng(block)
    for _ in range(50):
        h = random_histogram(rng)
        cost = float(rng.choice([0.0, 0.3]))
        if rng.random() < 0.5:
            x = rng.uniform(*Programme(h).ranges.clip(max=h.edges[-1] + 3).T)
            h = h.with_outcomes(latency_sum=float(x.sum()))
        found, programme = bounds(h, cost=cost), Programme(h)
        C = np.cumsum(h.counts)
        for k in np.flatnonzero(C) + 1:
            assert found.low[k - 1] == pytest.approx(programme.extreme(k, cost, 1), rel=1e-8)
            assert found.high[k - 1] == pytest.approx(programme.extreme(k, cost, -1), rel=1e-8)
        k = int(rng.choice(np.flatnonzero(C))) + 1
        sizes = [*h.counts, h.n_inf]
        pairs = [(at, q) for at, size in enumerate(sizes) for q in range(size + 1)]
        ratio = max(programme.largest_ratio(k, at, q, cost) for at, q in pairs)
        regret = worst_regret(h, k - 1, cost=cost)
        if h.latency_sum is None:
            simple = found.high[k - 1] / found.least
            assert 1 + regret == pytest.approx(ratio, rel=1e-7)
            assert ratio <= simple * (1 + 1e-9)
        else:
            assert 1 + regret <= ratio * (1 + 1e-7)


def test_no_latencies_within_the_buckets_break_a_bound():
    """Random latencies inside the buckets, failures at any time: E by its definition, over a fine grid of timeouts."""
    rng = np.random.default_rng(7)
    for _ in range(200):
        h = random_histogram(rng).with_outcomes(failed=int(rng.integers(0, 3)))
        cost = float(rng.choice([0.0, 0.5]))
        ranges = Programme(h).ranges.clip(max=h.edges[-1] + 2)
        spread = rng.beta(*rng.choice([0.1, 1.0, 3.0], 2), len(ranges))
        x = ranges[:, 0] + np.maximum(spread, 1e-9) * np.diff(ranges)[:, 0]
        known = h.with_outcomes(latency_sum=float(x.sum())) if rng.random() < 0.5 else h
        ends = np.concatenate([x, np.full(h.lost, np.inf), rng.exponential(1, h.failed)])
        t = np.concatenate([x, h.edges[1:]])[:, None]
        done = (np.arange(ends.size) < x.size) & (ends <= t)
        E = (np.minimum(ends, t) + cost * ~done).sum(axis=1) / np.maximum(done.sum(axis=1), 1e-300)
        found = bounds(known, cost=cost)
        at_edges = E[x.size :]
        assert E.min() >= found.least * (1 - 1e-9)
        seen = np.cumsum(h.counts) > 0
        assert (at_edges[seen] >= found.low[seen] * (1 - 1e-9)).all()
        assert (at_edges[seen] <= found.high[seen] * (1 + 1e-9)).all()
        for k in np.flatnonzero(seen):
            assert at_edges[k] / E.min() <= (1 + worst_regret(known, int(k), cost=cost)) * (1 + 1e-9)


def native(schema):
    base = 2.0 ** (2.0**-schema)
    return base ** np.arange(np.floor(np.log(1e-3) / np.log(base)), np.ceil(np.log(2e4) / np.log(base)))


LAYOUTS = {
    "prometheus": 1000 * np.array([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]),
    "factor 1.25": 1.25 ** np.arange(1, 46),
    "native schema 3": native(3),
    "hdr": np.unique(np.concatenate([np.arange(1, 128) * 2.0**k for k in range(8)])),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("cost", [0.0, 20.0])
@pytest.mark.parametrize("with_sum", [False, True])
def test_the_bounds_contain_the_answer_of_the_full_log(layout, cost, with_sum):
    sample = read_log(EGEE).sample(cutoff=10_000)
    x = sample.completed.expand()
    upper = LAYOUTS[layout]
    cumulative = np.searchsorted(np.sort(x), upper, side="right")
    h = Histogram.of(upper, np.diff(cumulative, prepend=0), n_inf=int(x.size - cumulative[-1]),
                     lost=sample.n - x.size, latency_sum=float(x.sum()) if with_sum else None)  # fmt: skip
    law = Empirical.of(sample)
    found = bounds(h, cost=cost)
    seen = cumulative > 0
    # what was still out at the cutoff of the whole log is lost in both, so E agrees up to the cutoff
    E = expected_duration(law, upper[seen], cost=cost)
    assert (found.low[seen] <= E * (1 + 1e-9)).all()
    assert (found.high[seen] >= E * (1 - 1e-9)).all()
    best = optimal_timeout(law, cost=cost).expected_duration
    choice = int(found.high.argmin())
    assert found.least <= best <= found.high[choice]
    true_regret = float(expected_duration(law, found.edges[choice], cost=cost)) / best - 1
    assert 0 <= true_regret <= worst_regret(h, choice, cost=cost)


def test_waiting_is_known_exactly_where_all_returned_and_the_sum_is_known():
    h = Histogram.of([1.0, 2.0], [1, 50], n_inf=1, latency_sum=90.0)
    found = bounds(h)
    assert found.waiting == pytest.approx(90 / 52)
    assert found.waiting <= found.high.min()
    assert bounds(h.with_outcomes(lost=1)).waiting == np.inf


def test_a_bucket_from_0_makes_the_worst_regret_infinite_unless_restarts_cost():
    h = Histogram.of([1.0, 2.0], [5, 5], lost=1)
    assert worst_regret(h, 1) == np.inf
    assert np.isfinite(worst_regret(h, 1, cost=0.1))


class TestHistogram:
    def test_adds_nested_and_sparse_layouts(self):
        fine = Histogram.of([1, 2, 3, 4], [1, 2, 3, 4], n_inf=5, lost=1, latency_sum=60.0)
        coarse = Histogram.of([2, 4], [10, 20], failed=2, latency_sum=80.0)
        both = fine + coarse
        assert both == coarse + fine
        assert both == Histogram.of([2, 4], [13, 27], n_inf=5, lost=1, failed=2, latency_sum=140.0)
        sparse = Histogram(np.array([1.0, 2.0, 8.0, 9.0]), [3, 0, 1])
        other = Histogram(np.array([3.0, 4.0]), [7])
        np.testing.assert_array_equal((sparse + other).edges, [1, 2, 3, 4, 8, 9])
        np.testing.assert_array_equal((sparse + other).counts, [3, 0, 7, 0, 1])

    def test_a_shorter_layout_sends_the_rest_beyond(self):
        short = Histogram.of([1.0], [5], n_inf=2)
        long = Histogram.of([1.0, 2.0], [1, 4], n_inf=1)
        assert short + long == Histogram.of([1.0], [6], n_inf=7)

    def test_refuses_layouts_that_do_not_fit(self):
        with pytest.raises(SampleError, match="do not fit"):
            _ = Histogram.of([1.0, 3.0], [1, 1]) + Histogram.of([2.0, 4.0], [1, 1])

    def test_subtracts_scrapes(self):
        later, earlier = Histogram.of([1, 2], [5, 7], n_inf=3), Histogram.of([1, 2], [4, 7], n_inf=1)
        assert later - earlier == Histogram.of([1, 2], [1, 0], n_inf=2)
        with pytest.raises(SampleError, match="restarted"):
            _ = earlier - later

    def test_compact_keeps_bounds(self):
        h = Histogram.of([1, 2, 3, 4, 5, 6], [0, 0, 4, 0, 0, 3], lost=1)
        small = h.compact()
        np.testing.assert_array_equal(small.edges, [2, 3, 5, 6])
        assert bounds(small).least == bounds(h).least
        assert bounds(small).high.min() == bounds(h).high.min()

    @pytest.mark.parametrize(
        ("edges", "counts", "others", "match"),
        [
            ([0, 1], [1, 2], {}, "needs 3 edges"),
            ([0, 1, 1], [1, 2], {}, "rise strictly"),
            ([-1, 1], [1], {}, "not negative"),
            ([0, 1], [-1], {}, "none of them negative"),
            ([0, 1], [0.5], {}, "whole numbers"),
            ([0, 1], [2], {"latency_sum": 3.0}, "other requests, or in another unit"),
            ([1, 2], [2], {"latency_sum": 1.0}, "other requests, or in another unit"),
        ],
    )  # fmt: skip
    def test_refuses(self, edges, counts, others, match):
        with pytest.raises(SampleError, match=match):
            Histogram(np.array(edges, dtype=float), np.array(counts), **others)
