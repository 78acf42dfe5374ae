"""The engine for data, worked by hand: rational numbers where Kaplan–Meier has them, and every edge of the choice."""

from fractions import Fraction

import numpy as np
import pytest

from latfit.curve import INSURANCE, Counts
from latfit.laws import Empirical
from latfit.restart import expected_duration, optimal_timeout
from latfit.restart.optimum import flat_windows
from latfit.sample import LatencySample


def curves(times, done, gone=None, out=None, lost=0):
    """One row of counts."""

    def row(counts):
        return np.array([counts if counts is not None else [0] * len(times)], dtype=float)

    return Counts(row(times), row(done), row(gone), row(out), np.array([float(lost)])).curves()


def by_hand(times, done, gone, out, lost):
    """F̃, S and ∫S at each time as fractions: Aalen and Johansen's sum, one time after the other."""
    at_risk = Fraction(sum(done) + sum(gone) + sum(out) + lost)
    F, S, W, before, found = Fraction(0), Fraction(1), Fraction(0), Fraction(0), []
    for t, d, g, c in zip(times, done, gone, out, strict=True):
        W += S * (Fraction(t) - before)
        if at_risk:
            F += S * Fraction(d) / at_risk
            S *= 1 - Fraction(d + g) / at_risk
        at_risk -= d + g + c
        before = Fraction(t)
        found.append((F, S, W))
    return found


@pytest.mark.parametrize(
    ("times", "done", "gone", "out", "lost"),
    [
        ([1, 2, 5], [1, 1, 1], [0, 0, 0], [1, 0, 0], 0),  # the last at risk completes, after an early give-up
        ([1, 2, 5], [1, 1, 1], [0, 0, 0], [0, 0, 0], 0),
        ([1, 2, 5, 9], [2, 0, 1, 1], [0, 1, 0, 0], [0, 2, 1, 0], 1),
        ([1, 2, 5, 9], [2, 0, 1, 0], [0, 1, 0, 1], [1, 0, 0, 3], 0),
        ([3, 4], [0, 1], [1, 0], [0, 0], 2),
        ([1, 2], [1, 1], [0, 0], [1, 1], 0),  # given up before the last return, and at it
    ],
)
def test_the_curves_against_exact_fractions(times, done, gone, out, lost):
    made, cost = curves(times, done, gone, out, lost), 7
    for k, (F, S, W) in enumerate(by_hand(times, done, gone, out, lost)):
        assert (made.F[0, k], made.S[0, k], made.W[0, k]) == pytest.approx((float(F), float(S), float(W)), abs=1e-15)
        E = float((W + cost * (1 - F)) / F) if F else np.inf
        assert made.E_J(float(cost))[0, k] == pytest.approx(E, rel=1e-14)
        later = times[k] + (0.5 if k + 1 < len(times) else 100.0)
        E = float((W + S * Fraction(later - times[k]) + cost * (1 - F)) / F) if F else np.inf
        assert made.E_J_at(np.array([later]), float(cost))[0] == pytest.approx(E, rel=1e-14)
    assert made.completed[0].tolist() == np.cumsum(done).tolist()
    assert made.probes.tolist() == [sum(done) + sum(gone) + sum(out) + lost]


@pytest.mark.parametrize(("n", "early"), [(4, 2), (5, 1), (9, 0)])
def test_probabilities_do_not_round_to_more_than_one(n, early):
    """All completed but one, given up on the way: the sum over the last at risk rounds up for these n."""
    made = curves(np.arange(1, n + 1), np.ones(n), out=np.arange(n) == early)
    assert made.F.max() == 1
    assert made.E_J(7.0)[0, -1] == made.W[0, -1]  # no restart is paid for where all complete


def test_a_row_without_probes_beside_others():
    times = np.array([[1.0, 2.0], [1.0, 2.0]])
    nothing = np.zeros((2, 2))
    made = Counts(times, np.array([[1.0, 1.0], [0.0, 0.0]]), nothing, nothing, np.zeros(2)).curves()
    assert made.F.tolist() == [[0.5, 1.0], [0.0, 0.0]]
    assert made.S[1].tolist() == [1.0, 1.0]
    assert np.isinf(made.E_J(0.0)[1]).all()


def test_before_the_first_time_nothing_ends():
    made = curves([2, 5], [1, 1])
    F, S, W = made.at(np.array([1.9, 2.0, 9.0]))
    assert (F.tolist(), S.tolist(), W.tolist()) == ([0, 0.5, 1], [1, 0.5, 0], [1.9, 2.0, 3.5])
    assert np.isinf(made.E_J_at(np.array([1.9]))[0])


def test_outliers_shrink_the_law_and_keep_its_shape():
    made = curves([1, 2, 4], [5, 3, 2])
    shrunk = made.with_outliers(np.array([0.2]))
    np.testing.assert_allclose(shrunk.F, 0.8 * made.F)
    np.testing.assert_allclose(shrunk.S, 1 - 0.8 * (1 - made.S))
    steps = np.diff(np.concatenate([[0.0], made.times[0]]))
    np.testing.assert_allclose(shrunk.W[0], np.cumsum(np.concatenate([[1.0], shrunk.S[0, :-1]]) * steps))
    more = curves([1, 2, 4], [5, 3, 2], lost=10)
    assert more.with_outliers(np.array([0.2])) is more  # it has more of them already
    np.testing.assert_allclose(more.with_outliers(np.array([0.2]), exactly=True).F, shrunk.F)


def test_the_candidates_for_a_timeout():
    made = curves([0, 1, 2, 3, 4], [1, 3, 1, 0, 2], gone=[0, 0, 0, 1, 0])
    assert made.allowed(0.0).tolist() == [[False, False, True, False, True]]  # five completions; one must be there
    assert made.allowed(0.0, completions=1).tolist() == [[False, True, True, False, True]]  # never 0
    assert made.allowed(2.0, completions=1).tolist() == [[False, False, True, False, True]]
    assert made.allowed(2.5, completions=1).tolist() == [[False, False, False, False, True]]


def test_among_equal_values_the_first_is_chosen_exactly():
    made = curves([1, 2, 3], [1, 1, 1], lost=3)
    E = made.E_J(0.0)
    k, least = made.exact(0.0, np.ones((1, 3), dtype=bool))
    assert least[0] == E.min()
    assert k[0] == int(np.argmin(np.round(E[0], 12)))
    k, _ = made.exact(0.0, np.array([[False, False, True]]))
    assert k[0] == 2


def test_a_robust_timeout_is_doubled_only_if_no_probe_is_out():
    """Where waiting is best: twice the last completion if all came back, the last completion itself if not."""
    times, done = [10.0, 11.0, 12.0], [10, 10, 10]
    for lost, want in ((0, INSURANCE * 12.0), (1, 12.0)):
        made = curves(times, done, lost=lost)
        k, t = made.robust_argmin(0.0, made.allowed(0.0))
        assert (k[0], t[0]) == (2, want)


def test_a_robust_timeout_must_beat_waiting_clearly():
    """log Ê + 1.5 s below log Ê at the last completion; else nothing that completes is cut."""
    for slow in np.linspace(2, 60, 30):
        made = curves([1.0, slow], [30, 3], lost=3)
        allowed = made.allowed(0.0)
        k, t = made.robust_argmin(0.0, allowed)
        E, F, n = made.E_J(0.0)[0], made.F[0], 36
        s = np.sqrt((1 - F) / (n * F))
        plain = int(np.argmin(np.log(E) + s))
        sure = np.log(E[plain]) + 1.5 * s[plain] < np.log(E[1])
        assert (k[0], t[0]) == ((plain, made.times[0, plain]) if sure else (1, slow))


def test_at_most_ten_submissions_a_job():
    """A timeout that succeeds once in twenty attempts is not recommended if a better one exists."""
    times, done = [0.001, 100.0], [5, 60]
    made = curves(times, done, lost=35)
    allowed = made.allowed(0.0)
    assert allowed.all()
    assert made.exact(0.0, allowed)[0][0] == 0
    assert made.robust_argmin(0.0, allowed)[0][0] == 1
    few = curves([0.001], [5], lost=95)
    assert few.robust_argmin(0.0, few.allowed(0.0))[0][0] == 0  # nothing else is possible


def test_at_least_half_an_outlier_is_assumed():
    """Where all came back, ρ = ½/(n+1): the choice flips where that makes waiting for the slow one dear enough."""
    n, slow = 33, np.linspace(1.01, 40, 20_000)
    counts = np.broadcast_to([30.0, 3.0], (slow.size, 2))
    nothing = np.zeros((slow.size, 2))
    made = Counts(np.stack([np.ones(slow.size), slow], axis=1), counts, nothing, nothing, np.zeros(slow.size)).curves()
    k, t = made.robust_argmin(0.0, made.allowed(0.0))
    rho = 0.5 / (n + 1)
    F = (1 - rho) * np.array([30 / n, 1.0])
    E = np.stack([np.full(slow.size, 1 / F[0]), (1 + (1 - F[0]) * (slow - 1)) / F[1]], axis=1)
    s = np.sqrt((1 - F) / (n * F))
    early = (np.log(E[:, 0]) + s[0] < np.log(E[:, 1]) + s[1]) & (np.log(E[:, 0]) + 1.5 * s[0] < np.log(E[:, 1]))
    assert 0 < np.count_nonzero(early) < slow.size
    assert (k == np.where(early, 0, 1)).all()
    assert (t == np.where(early, 1.0, INSURANCE * slow)).all()


def test_a_restart_costs_nothing_by_default():
    made = curves([1, 2, 5], [5, 2, 1], lost=2)
    assert made.E_J_at(np.array([2.0])).tolist() == made.E_J(0.0)[:, 1].tolist() == [(1 + 0.5) / 0.7]
    assert made.E_J().tolist() == made.E_J(0.0).tolist()


def random_sample(rng, k):
    """Ties, zeros, failures, early censoring, lost probes and a cutoff, each in some of them."""
    n = int(rng.integers(12, 120))
    x = rng.lognormal(3, rng.uniform(0.2, 1.5), n)
    x = np.floor(x) if k % 3 == 0 else x
    kind = rng.choice(4, n, p=[0.75, 0.1 * (k % 2), 0.1 * (k % 4 > 1), 0.25 - 0.1 * (k % 2) - 0.1 * (k % 4 > 1)])
    kind[:8] = 0
    lost = int(rng.integers(4)) if k % 5 else 0
    sample = LatencySample.of(x[(kind == 0) | (kind == 3)], failed=x[kind == 1], censored=x[kind == 2], lost=lost)
    return sample.cut(float(np.quantile(x, 0.9)) + 1) if k % 2 else sample


@pytest.mark.slow
@pytest.mark.parametrize("cost", [0.0, 5.0])
def test_rows_are_the_laws_of_their_samples(cost):
    rng = np.random.default_rng(1)
    samples = [random_sample(rng, k) for k in range(80)]
    curves = Counts.of_samples(samples).curves()
    allowed = curves.allowed(np.array([s.resolution for s in samples]))
    best, least = curves.exact(cost, allowed)
    for row, sample in enumerate(samples):
        law = Empirical.of(sample)
        k = np.union1d(law.jumps, sample.failed.values).size
        t = curves.times[row, :k]
        np.testing.assert_allclose(curves.F[row, :k], law.cdf(t), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(curves.S[row, :k], law.still_out(t), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(curves.E_J(cost)[row, :k], expected_duration(law, t, cost=cost), rtol=1e-9)
        limits = {"min_completions": 5, "min_timeout": sample.resolution}
        want = optimal_timeout(law, cost=cost, **limits)
        if want.timeout is not None:
            assert curves.times[row, best[row]] == want.timeout
            assert least[row] == pytest.approx(want.expected_duration, rel=1e-10)
            window = tuple(float(end[row]) for end in curves.windows(best, [1.05 * least], cost)[0])
            near = [
                flat_windows(law, want.timeout, [1.05 * least[row] * f], cost=cost)[0] for f in (1 - 1e-9, 1 + 1e-9)
            ]
            assert any(window == pytest.approx((max(w[0], 0), w[1]), rel=1e-6) for w in near)
        at = rng.uniform(t[0], t[-1] * 1.5, 5)
        for each in at:
            got = curves.E_J_at(np.full(80, each), cost)[row]
            assert got == pytest.approx(float(expected_duration(law, each, cost=cost)), rel=1e-9)


def test_rescaling_the_outliers_is_that_of_the_law():
    rng = np.random.default_rng(2)
    sample = LatencySample.of(rng.lognormal(3, 1, 300), lost=6)
    law = Empirical.of(sample)
    scaled = Counts.of_sample(sample).curves().with_outliers(np.array([0.1]), exactly=True)
    want = expected_duration(law.rescaled(0.1), scaled.times[0])
    np.testing.assert_allclose(scaled.E_J()[0], want, rtol=1e-9)
    floored = Counts.of_sample(sample).curves().with_outliers(np.array([0.001]))
    np.testing.assert_allclose(floored.F, Counts.of_sample(sample).curves().F)


def test_the_robust_rule_is_its_formula():
    rng = np.random.default_rng(3)
    for k in range(30):
        x = np.sort(rng.lognormal(4, 0.3 + 0.06 * k, 60))
        n, i = x.size, np.arange(1, x.size + 1)
        rho = 0.5 / (n + 1)
        F = (1 - rho) * i / n
        W = np.array([np.trapezoid(1 - (1 - rho) * np.searchsorted(x, g := np.linspace(0, t, 20001)[:-1] + t / 40000,
                                                                   side="right") / n, g) for t in x])  # fmt: skip
        log_E, s = np.log(W / F), np.sqrt((1 - F) / (n * F))
        k = 5 + int((log_E + s)[5:].argmin())  # at most ten submissions: the sixth of sixty
        waits = log_E[k] + 1.5 * s[k] >= log_E[-1]
        want = 2 * x[-1] if waits or k == n - 1 else x[k]
        curves = Counts.of_sample(LatencySample.of(x, resolution=0)).curves()
        assert curves.robust_argmin(0.0, curves.allowed(0.0))[1][0] == pytest.approx(want)


def test_merged_times_keep_the_curve_at_the_times_asked_for():
    """Exactly if no probe is censored early; closely with a fifth censored at random times."""
    rng = np.random.default_rng(5)
    x, failed = rng.lognormal(5, 1, 20_000), rng.exponential(50, 500)
    for censored, error in (([], 1e-12), (rng.uniform(10, 3000, 4000), 1e-3)):
        sample = LatencySample.of(x, failed=failed, censored=censored, lost=300, cutoff=5000.0)
        counts, at = Counts.of_sample(sample), np.array([20.0, 200.0, 400.0, 5000.0])
        merged = counts.merged(np.searchsorted(counts.times[0], at, side="right"), 2048)
        assert merged.times.size < 2060
        for mine, exact in zip(merged.curves().at(at), counts.curves().at(at), strict=True):
            assert mine == pytest.approx(exact, rel=error)
