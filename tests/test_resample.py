"""Intervals of the optimum: sane on edge cases, and covering what they should in simulation."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter

import latfit
from latfit.curve import Counts
from latfit.decision import Options, decide
from latfit.laws import Defective, Empirical, parse_law
from latfit.resample import (
    RESAMPLES,
    Bins,
    accelerations,
    bootstrap,
    combined,
    influence,
    interval,
    resampled_curves,
    resamples,
    silverman,
    tail_limit,
    unseen_tail_factor,
    variation_interval,
)
from latfit.restart import expected_duration, optimal_timeout
from latfit.sample import LatencySample
from latfit.table import ProbeTable


def draw(law, n, rng, cutoff=10_000.0):
    x = law.sample(n, rng)
    back = np.isfinite(x) & (x <= cutoff)
    return LatencySample.of(np.round(x[back]), censored=np.full(n - back.sum(), cutoff), resolution=1, cutoff=cutoff)


def plain_optimum(latencies, out=0):
    """E_i = (x_1 + … + x_i + (N−i) x_i)/i at every latency, and the least of them."""
    x = np.sort(latencies)
    i = np.arange(1, x.size + 1)
    E = (np.cumsum(x) + (x.size + out - i) * x) / i
    return float(x[E.argmin()]), float(E.min())


def intervals(sample, rng, resamples=299, cost=0.0):
    law = Empirical.of(sample)
    best = optimal_timeout(law, cost=cost, min_completions=5, min_timeout=sample.resolution)
    t = np.inf if best.timeout is None else best.timeout
    end = float(expected_duration(law, sample.cutoff or np.inf, cost=cost))
    factor = end / best.expected_duration
    return best, bootstrap(sample, t, best.expected_duration, factor, cost=cost, resamples=resamples, rng=rng)


@pytest.mark.slow
def test_coverage_and_regret():
    """Coverage of the timeout, E_J and the speed-up; a small version of scripts/calibrate."""
    law = Defective(parse_law("lognormal(mu=5.5,sigma=1)"), 0.025)
    truth = optimal_timeout(law)
    speed_up = float(expected_duration(law, 10_000)) / truth.expected_duration
    rng = np.random.default_rng(5)
    hits, regret = np.zeros(3), 0.0
    rounds = 60
    for _ in range(rounds):
        best, found = intervals(draw(law, 500, rng), rng)
        pairs = (
            (found.timeout, truth.timeout),
            (found.expected_duration, truth.expected_duration),
            (found.speed_up, speed_up),
        )
        hits += [low <= true <= high for (low, high), true in pairs]
        regret += float(expected_duration(law, best.timeout)) / truth.expected_duration - 1
    assert (hits / rounds > 0.95 - 3.5 * np.sqrt(0.95 * 0.05 / rounds)).all(), hits / rounds
    assert regret < 0.03 * rounds


def test_on_the_bundled_log():
    sample = latfit.example_log().sample(cutoff=10_000)
    best, found = intervals(sample, np.random.default_rng(0), resamples=499)
    low, high = found.timeout
    assert 300 < low < 345 < best.timeout < 365 < high < 420
    low, high = found.expected_duration
    assert 285 < low < 300 < high < 320
    assert found.speed_up[0] < 2.158 < found.speed_up[1]


def test_same_seed_same_intervals_and_time_scales():
    sample = latfit.example_log().sample(cutoff=10_000)
    _, one = intervals(sample, np.random.default_rng(7))
    _, two = intervals(sample, np.random.default_rng(7))
    assert one == two
    x = np.repeat(sample.completed.values, sample.completed.counts)
    slow = LatencySample.of(x * 1000, censored=np.full(53, 1e7), cutoff=1e7)
    _, three = intervals(slow, np.random.default_rng(7))
    assert np.array(three.timeout) / 1000 == pytest.approx(np.array(one.timeout), rel=1e-9)
    assert np.array(three.expected_duration) / 1000 == pytest.approx(np.array(one.expected_duration), rel=1e-9)


def test_the_interval_shows_if_no_timeout_helps():
    rng = np.random.default_rng(1)
    sample = LatencySample.of(np.round(rng.normal(1000, 10, 300)))
    best, found = intervals(sample, rng)
    assert best.verdict == "never"
    assert found.timeout[1] == np.inf  # none was out, and perhaps none ever is
    assert 980 < found.timeout[0] < 1100  # but for all that 300 probes say, one in a hundred may be


def test_zeros_and_a_coarse_clock_stay_where_they_are():
    rng = np.random.default_rng(2)
    minutes = np.floor(rng.lognormal(1.0, 2.0, 3000)) * 60
    sample = LatencySample.of(minutes, lost=30)
    best, found = intervals(sample, rng)
    assert found.timeout[0] % 60 == found.timeout[1] % 60 == 0
    assert found.timeout[0] <= best.timeout <= found.timeout[1]
    assert found.expected_duration[0] <= best.expected_duration <= found.expected_duration[1]


def test_completions_that_took_no_time():
    """Failures that took some, and an interval of ρ: the formula's duration is 0, and no figure is divided by it."""
    sample = LatencySample.of([0.0] * 5, failed=[0.074, 0.099, 0.133, 0.15], censored=[0.141, 0.143])
    assert decide([sample], Options(resamples=99, test=False, laws=()))[0].timeout.verdict == "withheld"


def test_censoring_and_failures_are_resampled_too():
    rng = np.random.default_rng(3)
    x, gone = rng.lognormal(5, 1, 2000), rng.exponential(600, 2000)
    kind = rng.random(2000) < 0.5
    early = gone < x
    sample = LatencySample.of(x[~early], failed=gone[early & kind], censored=gone[early & ~kind], resolution=0)
    best, found = intervals(sample, rng)
    assert found.timeout[0] < best.timeout < found.timeout[1]
    assert found.expected_duration[0] < best.expected_duration < found.expected_duration[1]


@pytest.mark.parametrize("cost", [0.0, 30.0])
@pytest.mark.parametrize("at", [550, 750, 1024])
def test_influence_is_the_derivative(at, cost):
    """Of log E_J with respect to the number of probes of each kind in a bin, by differences."""
    rng = np.random.default_rng(3)
    x, gone, kind = rng.lognormal(5, 1, 2000), rng.exponential(600, 2000), rng.random(2000) < 0.5
    early = gone < x
    sample = LatencySample.of(x[~early], failed=gone[early & kind], censored=gone[early & ~kind], lost=20)
    counts = Bins.of(sample, 0.35).counts
    moved = influence(counts, at, cost)

    def slope(name, i=None):
        logs = []
        for h in (1e-3, -1e-3):
            more = counts.lost + h if i is None else getattr(counts, name) + h * (np.arange(counts.times.size) == i)
            logs.append(np.log(replace(counts, **{name: more}).curves().E_J(cost)[0, at]))
        return (logs[0] - logs[1]) / 2e-3

    for row, name in enumerate(("completed", "failed", "censored")):
        for i in (350, 500, 600, 850, 1024):
            assert moved[row, i] == pytest.approx(slope(name, i), rel=1e-4, abs=1e-8)
    assert moved[2, -1] == pytest.approx(slope("lost"), rel=1e-4)


def test_no_return_after_the_last_censoring():
    """A sliver of a return that is blurred beyond it would end the survival, and the skewness would be unbounded."""
    rng = np.random.default_rng(6)
    x, gone = rng.lognormal(5.5, 1, 500), np.minimum(rng.exponential(3000, 500), 10_000)
    x[:12] = np.inf
    sample = LatencySample.of(x[x <= gone], censored=gone[x > gone], cutoff=10_000)
    bins, law = Bins.of(sample, 0.35), Empirical.of(sample)
    assert bins.counts.curves().S[0, -1] == pytest.approx(law.rho, rel=0.05)
    assert all(abs(a) <= 1 / 6 for a in accelerations(bins.unblurred, bins.index(400.0), 0.0))
    _, found = intervals(sample, rng)
    assert found.speed_up[0] < 1.5 < 2 < found.speed_up[1]


def test_smoothing_needs_some_spread():
    assert silverman(LatencySample.of([5.0] * 20)) == 0
    with pytest.raises(latfit.SampleError, match="every latency is 0"):
        Bins.of(LatencySample.of([0.0] * 20), 0.35)


@pytest.mark.slow
def test_bins_agree_with_a_plain_loop():
    """The timeout's interval: resample, blur every latency, take the exact optimum, 2000 times over."""
    rng = np.random.default_rng(11)
    sample = draw(Defective(parse_law("lognormal(mu=5.5,sigma=1)"), 0.025), 1000, rng)
    latencies, out = sample.completed.expand(), sample.n - sample.completed.total
    optima = []
    for _ in range(2000):
        back = rng.binomial(sample.n, latencies.size / sample.n)
        x = rng.choice(latencies, back) * np.exp(0.35 * silverman(sample) * rng.standard_normal(back))
        optima.append(plain_optimum(x, sample.n - back)[0])
    plain = np.quantile(optima, [0.025, 0.975])
    best = plain_optimum(latencies, out)
    width = plain[1] - plain[0]
    low, high = bootstrap(sample, *best, 2.0, resamples=2000, rng=rng).timeout
    assert low <= plain[0] + 0.1 * width < plain[1] - 0.1 * width <= high  # and where E_J is not clearly higher
    assert high - low < 1.6 * width


def test_no_probe_out_and_a_distant_cutoff():
    """The blur of the last latencies reaches far beyond them, and must not count as probes at risk."""
    x = np.random.default_rng(8).lognormal(5, 0.3, 200)
    sample = LatencySample.of(x, cutoff=10_000.0)
    best = plain_optimum(x)
    found = bootstrap(sample, *best, 1.0, resamples=199, rng=np.random.default_rng(1))
    assert 0.9 * best[1] < found.expected_duration[0] < best[1] < found.expected_duration[1] < 1.1 * best[1]
    assert np.isfinite(found.speed_up[1])


def test_the_best_timeout_may_lie_beyond_the_last_completion():
    """At one completion in E_J seconds at risk, two lost probes see none in 1.84 E_J with a chance of 2.5 %."""
    x = np.linspace(100, 300, 98)
    sample = LatencySample.of(x, censored=[5000.0, 5000.0], cutoff=5000.0)
    E = 250.0
    assert tail_limit(sample, E) == pytest.approx(300 - np.log(0.025) * E / 2)
    one_early = LatencySample.of(x, censored=[400.0, 5000.0], cutoff=5000.0)  # 200 s at risk until then, one after it
    assert tail_limit(one_early, E) == pytest.approx(400 + (-np.log(0.025) * E - 200) / 1)
    assert tail_limit(LatencySample.of(x), E) == np.inf
    assert tail_limit(LatencySample.of(x, lost=4), E) == pytest.approx(300 - np.log(0.025) * E / 4)


def test_a_second_minimum_as_low_is_inside():
    """Half within 100 to 200 s, half within 500 to 600 s: E_J is 350 s at 200 s and at 600 s."""
    rng = np.random.default_rng(4)
    x = np.concatenate([rng.uniform(100, 200, 250), rng.uniform(500, 600, 250)])
    best = plain_optimum(x)
    low, high = bootstrap(LatencySample.of(x), *best, 1.0, resamples=199, rng=rng).timeout
    assert low <= 201
    assert high >= 598


def test_the_interval_of_a_product_combines_both():
    """The logarithms of two independent estimates: distances of the ends add in quadrature."""
    low, middle, high = combined((90.0, 100.0, 120.0), (0.8, 1.5))
    assert middle == 100
    assert np.log(middle / low) == pytest.approx(np.hypot(np.log(100 / 90), np.log(0.8)))
    assert np.log(high / middle) == pytest.approx(np.hypot(np.log(1.2), np.log(1.5)))
    assert combined((90.0, 100.0, np.inf), (1.0, 2.0))[2] == np.inf


@pytest.mark.slow
@pytest.mark.parametrize(("phi", "n"), [(0.9, 1500)])
def test_blocks_cover_under_dependence(phi, n):
    """E_J if slow probes follow slow ones: resampled one by one, the interval covered 70 and 40 %."""
    law, rng, hits = Defective(parse_law("lognormal(mu=5.5,sigma=1)"), 0.025), np.random.default_rng(12), []
    for _ in range(30):
        z = lfilter([np.sqrt(1 - phi**2)], [1, -phi], rng.standard_normal(n + 300))[300:]
        x = np.where(rng.random(n) < 0.025, np.inf, np.exp(5.5 + z))
        latency, status = np.minimum(x, 10_000.0), np.where(x <= 10_000, 0, 2)
        seen = ProbeTable(latency, status, np.arange(n) * 60.0)
        made = decide([seen], Options(resamples=99, test=False, laws=(), cutoff=10_000.0))[0].timeout
        own = made.if_independent or made
        if own.intervals is not None:
            low, high = own.intervals.expected_duration
            hits.append(low <= float(expected_duration(law, own.timeout)) <= high)
    assert np.mean(hits) > 0.95 - 3.5 * np.sqrt(0.95 * 0.05 / len(hits)), np.mean(hits)


def test_a_timeout_at_the_smallest_latency_has_an_interval():
    """The smallest latency lies before the middle of its bin, at which the bins' own curve begins."""
    x = np.concatenate([np.full(400, 0.001), np.random.default_rng(0).lognormal(0, 1, 600).round(3)])
    found = bootstrap(LatencySample.of(x, lost=20), 0.001, 0.002, 3.0, resamples=50, rng=np.random.default_rng(1))
    assert 0 < found.expected_duration[0] < 0.002 < found.expected_duration[1] < 0.01
    assert 1 < found.speed_up[0] < 3 < found.speed_up[1] < 10


@pytest.mark.slow
def test_optimism_is_that_of_a_timeout_as_early():
    """Exponential latencies with outliers: the earlier the timeout that looks best, the more of that was luck."""
    rng, law, rows = np.random.default_rng(3), Defective(parse_law("exponential(rate=0.003)"), 0.025), []
    for _ in range(90):
        sample = draw(law, 300, rng)
        made = decide([sample], Options(resamples=99, test=False, laws=(), cutoff=10_000.0))[0].timeout
        luck = np.log(made.expected_duration / float(expected_duration(law, made.timeout)))
        rows.append((made.timeout, luck, -np.log1p(made.intervals.optimism)))
    early, _, late = np.array_split(np.array(sorted(rows)), 3)
    assert early[:, 1].mean() < -0.2
    assert early[:, 2].mean() < -0.14  # of all resamples, however they chose: −0.12
    assert abs(late[:, 1:].mean(axis=0)).max() < 0.06  # of all resamples: −0.08


def test_completions_after_the_timeout_may_be_unobserved():
    """Of m at risk none completed: a share q of them may, with (1 − q)ᵐ = 2.5 %; by hand, on a clock of bins."""
    x = np.repeat(np.linspace(10, 100, 40), 5)
    sample = LatencySample.of(x, censored=[1000.0] * 50, cutoff=1000.0)
    n, q = 250, 1 - 0.025 ** (1 / 50)
    waiting = (x.sum() + 50 * 1000) / n, 200 / n
    sooner = (x.sum() + 50 * 100 + 50 * (1 - q) * 900) / n, (200 + 50 * q) / n
    expected = sooner[0] / sooner[1] / (waiting[0] / waiting[1])
    counts = Bins.of(sample, 0.35).unblurred
    assert unseen_tail_factor(sample, counts, 100.0, 0.0) == pytest.approx(expected, rel=0.02)
    assert unseen_tail_factor(sample, counts, 90.0, 0.0) == 1  # later ones were seen
    all_back = LatencySample.of(x)
    assert unseen_tail_factor(all_back, Bins.of(all_back, 0.35).counts, 200.0, 0.0) == 1  # nobody is out


@pytest.mark.slow
def test_a_log_cut_in_half_is_not_counted_twice():
    """E_J at the cutoff T is mean(min(x, T))/F, whose variance is known."""
    rng, T, widths, found = np.random.default_rng(5), 250.0, [], []
    for _ in range(40):
        x = rng.lognormal(5.5, 1, 500)
        sample = LatencySample.of(x[x <= T], censored=[T] * int((x > T).sum()), cutoff=T)
        E, F = np.minimum(x, T).mean() / np.mean(x <= T), np.mean(x <= T)
        part = np.minimum(x, T) / np.minimum(x, T).mean() - (x <= T) / F
        widths.append(2 * 1.96 * part.std() / np.sqrt(500))
        low, high = bootstrap(sample, T, E, 1.0, resamples=199, rng=rng).expected_duration
        found.append(np.log(high / low))
    assert np.mean(found) == pytest.approx(np.mean(widths), rel=0.08)


@pytest.mark.slow
def test_a_chosen_minimum_is_never_too_high():
    """Resampled in blocks, a log whose level changes may seem to have too high a minimum; it is not lowered."""
    rng = np.random.default_rng(5)
    x = np.where(np.arange(600) < 300, 100.0, 400.0) * rng.lognormal(0, 0.7, 600)
    when = pd.date_range("2026-03-01", periods=600, freq="10min", tz="UTC")
    for seed in range(2):
        made = latfit.analyze(
            latfit.from_frame(pd.DataFrame({"submitted": when, "latency": x})), resamples=60, seed=seed
        ).timeout
        made = made if made.if_independent is None else made.if_independent
        assert made.expected_duration_corrected >= made.expected_duration


def test_the_ends_of_an_interval_are_values_that_occurred():
    values = np.array([1.0] * 10 + [np.inf] * 490)
    assert interval(values).tolist() == [np.inf, np.inf]  # ten of 500 are less than 2.5 %
    assert interval(-values).tolist() == [-np.inf, -np.inf]
    assert np.isnan(interval(np.full(9, np.nan))).all()
    x = np.random.default_rng(1).normal(size=(3, 499))
    assert interval(x).tolist() == np.quantile(x, [0.025, 0.975], axis=1, method="inverted_cdf").tolist()
    x[0, 100:] = np.nan
    assert interval(x)[:, 0].tolist() == np.quantile(x[0, :100], [0.025, 0.975], method="inverted_cdf").tolist()
    assert interval(np.arange(100.0), 0.5).tolist() == [24, 74]


def test_resamples_are_poisson_counts():
    sample = LatencySample.of([1.0, 2, 2, 3], failed=[1.5], censored=[4.0] * 3, lost=2, cutoff=4.0)
    drawn = list(resamples(sample, 2000, np.random.default_rng(3)))
    twos = np.array([int((each.completed.expand() == 2).sum()) for each in drawn])
    assert (twos.mean(), twos.var()) == pytest.approx((2, 2), abs=0.2)
    assert np.mean([each.n for each in drawn]) == pytest.approx(10, abs=0.3)
    assert np.mean([each.lost for each in drawn]) == pytest.approx(2, abs=0.12)


def test_durations_of_resamples_are_those_of_the_resampled_samples():
    """Their spread, against a plain loop over resamples and their laws."""
    rng = np.random.default_rng(2)
    x, gone = rng.lognormal(3, 1, 400), rng.exponential(60, 400)
    sample = LatencySample.of(x[x <= gone], censored=gone[x > gone], lost=8)
    t, cost = 40.0, 3.0
    loop = [float(expected_duration(Empirical.of(s), t, cost=cost)) for s in resamples(sample, 600, rng)]
    curves = list(resampled_curves(Counts.of_sample(sample), [t], rng, count=600))
    rows = np.concatenate([some.E_J_at(np.full(len(some.F), t), cost) for some in curves])
    assert rows.shape == (600,)
    assert np.log(rows).mean() == pytest.approx(np.mean(np.log(loop)), abs=0.02)
    assert np.log(rows).std() == pytest.approx(np.std(np.log(loop)), rel=0.15)
    assert sum(len(some.F) for some in resampled_curves(Counts.of_sample(sample), [t], rng)) == RESAMPLES
    assert np.isinf(curves[0].E_J_at(np.full(len(curves[0].F), 1e-6))).all()


def test_five_completions_have_an_interval_too():
    """A blur may leave fewer than five completions, and then no timeout at all, in what is resampled."""
    for seed in range(15):
        rng = np.random.default_rng(seed)
        sample = LatencySample.of(rng.lognormal(0, 0.3, 5) * np.where(rng.random(5) < 0.1, 30, 1))
        (decision,) = decide([sample], Options(laws=(), test=False))
        chosen = decision.timeout.formula
        for low, high in (chosen.intervals.timeout, chosen.intervals.expected_duration, chosen.intervals.speed_up):
            assert low <= high
        assert chosen.intervals.timeout[0] <= chosen.timeout <= chosen.intervals.timeout[1]


@pytest.mark.parametrize("lost", [0.0, 0.1])
def test_less_data_give_wider_intervals(lost):
    """Intervals of E_J are wider with fewer rows; 30 rows do not determine a timeout to a few per cent."""
    widths = {}
    for n in (12, 30, 400):
        rng, logs = np.random.default_rng(n), []
        for _ in range(6):
            x, out = rng.lognormal(0, 0.8, n), max(1, round(lost * n)) if lost else 0
            (decision,) = decide([LatencySample.of(x[out:], lost=out)], Options(laws=(), test=False))
            ends = decision.timeout.formula.intervals
            logs.append(np.log(ends.expected_duration[1] / ends.expected_duration[0]))
            assert n == 400 or ends.timeout[1] > 1.3 * ends.timeout[0]
            assert n > 12 or decision.timeout.retry is None
        widths[n] = np.mean(logs)
    assert widths[12] > 1.2 * widths[30] > 1.2**2 * widths[400]
    assert widths[30] > 1.5 * widths[400]


@pytest.mark.slow
def test_the_interval_of_the_variation_covers_it():
    rng, hits = np.random.default_rng(0), 0
    for _ in range(200):
        low, high = variation_interval(LatencySample.of(rng.gamma(2.0, size=400)), rng)
        hits += low <= np.sqrt(0.5) <= high
    assert 176 <= hits <= 200
