"""The engine for data, worked by hand: rational numbers where Kaplan–Meier has them, and every edge of the choice."""

from fractions import Fraction

import numpy as np
import pytest

from latfit.restart.steps import CLEARLY, INSURANCE, StepCurves


def curves(times, done, gone=None, out=None, lost=0):
    """One row of counts."""

    def row(counts):
        return np.array([counts if counts is not None else [0] * len(times)], dtype=float)

    return StepCurves.of_counts(row(times), row(done), row(gone), row(out), np.array([float(lost)]))


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
def test_the_curves_are_the_fractions(times, done, gone, out, lost):
    made, cost = curves(times, done, gone, out, lost), 7
    for k, (F, S, W) in enumerate(by_hand(times, done, gone, out, lost)):
        assert (made.F[0, k], made.S[0, k], made.W[0, k]) == pytest.approx((float(F), float(S), float(W)), abs=1e-15)
        E = float((W + cost * (1 - F)) / F) if F else np.inf
        assert made.E_J(float(cost))[0, k] == pytest.approx(E, rel=1e-14)
        later = times[k] + (0.5 if k + 1 < len(times) else 100.0)
        E = float((W + S * Fraction(later - times[k]) + cost * (1 - F)) / F) if F else np.inf
        assert made.E_J_at(np.array([later]), float(cost))[0] == pytest.approx(E, rel=1e-14)
    assert made.done[0].tolist() == np.cumsum(done).tolist()
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
    made = StepCurves.of_counts(times, np.array([[1.0, 1.0], [0.0, 0.0]]), nothing, nothing, np.zeros(2))
    assert made.F.tolist() == [[0.5, 1.0], [0.0, 0.0]]
    assert made.S[1].tolist() == [1.0, 1.0]
    assert np.isinf(made.E_J(0.0)[1]).all()


def test_before_the_first_time_nothing_ends():
    made = curves([2, 5], [1, 1])
    assert made.index(np.array([1.9])).tolist() == [-1]
    assert made.index(np.array([2.0])).tolist() == [0]
    assert made.index(np.array([9.0])).tolist() == [1]
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


def test_where_a_timeout_may_lie():
    made = curves([0, 1, 2, 3, 4], [1, 3, 1, 0, 2], gone=[0, 0, 0, 1, 0])
    assert made.allowed(0.0).tolist() == [[False, False, True, False, True]]  # five completions; one must be there
    assert made.allowed(0.0, completions=1).tolist() == [[False, True, True, False, True]]  # never 0
    assert made.allowed(2.0, completions=1).tolist() == [[False, False, True, False, True]]
    assert made.allowed(2.5, completions=1).tolist() == [[False, False, False, False, True]]


def test_of_equal_figures_the_first_is_exact():
    made = curves([1, 2, 3], [1, 1, 1], lost=3)
    E = made.E_J(0.0)
    k, least = made.exact(0.0, np.ones((1, 3), dtype=bool))
    assert least[0] == E.min()
    assert k[0] == int(np.argmin(np.round(E[0], 12)))
    k, _ = made.exact(0.0, np.array([[False, False, True]]))
    assert k[0] == 2


def test_a_careful_timeout_is_doubled_only_where_nobody_is_out():
    """Where waiting is best: twice the last completion if all came back, the last completion itself if not."""
    times, done = [10.0, 11.0, 12.0], [10, 10, 10]
    for lost, want in ((0, INSURANCE * 12.0), (1, 12.0)):
        made = curves(times, done, lost=lost)
        k, t = made.careful(0.0, made.allowed(0.0))
        assert (k[0], t[0]) == (2, want)


def test_a_careful_timeout_must_beat_waiting_clearly():
    """log Ê + 1.5 s below log Ê at the last completion; else nothing that completes is cut."""
    for slow in np.linspace(2, 60, 30):
        made = curves([1.0, slow], [30, 3], lost=3)
        allowed = made.allowed(0.0)
        k, t = made.careful(0.0, allowed)
        E, F, n = made.E_J(0.0)[0], made.F[0], 36
        s = np.sqrt((1 - F) / (n * F))
        plain = int(np.argmin(np.log(E) + s))
        sure = np.log(E[plain]) + CLEARLY * s[plain] < np.log(E[1])
        assert (k[0], t[0]) == ((plain, made.times[0, plain]) if sure else (1, slow))


def test_at_most_ten_submissions_a_job():
    """A cheap success of one in twenty is not what anybody is told to wait for, where more is possible."""
    times, done = [0.001, 100.0], [5, 60]
    made = curves(times, done, lost=35)
    allowed = made.allowed(0.0)
    assert allowed.all()
    assert made.exact(0.0, allowed)[0][0] == 0
    assert made.careful(0.0, allowed)[0][0] == 1
    few = curves([0.001], [5], lost=95)
    assert few.careful(0.0, few.allowed(0.0))[0][0] == 0  # nothing else is possible


def test_half_an_outlier_is_always_there():
    """Where all came back, ρ = ½/(n+1): the choice flips where that makes waiting for the slow one dear enough."""
    n, slow = 33, np.linspace(1.01, 40, 20_000)
    counts = np.broadcast_to([30.0, 3.0], (slow.size, 2))
    nothing = np.zeros((slow.size, 2))
    made = StepCurves.of_counts(
        np.stack([np.ones(slow.size), slow], axis=1), counts, nothing, nothing, np.zeros(slow.size)
    )
    k, t = made.careful(0.0, made.allowed(0.0))
    rho = 0.5 / (n + 1)
    F = (1 - rho) * np.array([30 / n, 1.0])
    E = np.stack([np.full(slow.size, 1 / F[0]), (1 + (1 - F[0]) * (slow - 1)) / F[1]], axis=1)
    s = np.sqrt((1 - F) / (n * F))
    early = (np.log(E[:, 0]) + s[0] < np.log(E[:, 1]) + s[1]) & (np.log(E[:, 0]) + CLEARLY * s[0] < np.log(E[:, 1]))
    assert 0 < np.count_nonzero(early) < slow.size
    assert (k == np.where(early, 0, 1)).all()
    assert (t == np.where(early, 1.0, INSURANCE * slow)).all()


def test_a_restart_costs_nothing_unless_told():
    made = curves([1, 2, 5], [5, 2, 1], lost=2)
    assert made.E_J_at(np.array([2.0])).tolist() == made.E_J(0.0)[:, 1].tolist() == [(1 + 0.5) / 0.7]
    assert made.E_J().tolist() == made.E_J(0.0).tolist()
