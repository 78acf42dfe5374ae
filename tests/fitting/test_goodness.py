"""Goodness of fit: distances against scipy and by hand, p-values by simulation."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from conftest import EGEE
from latfit.errors import FitError
from latfit.fitting import assess, fit, ks_distance, ks_test, qq
from latfit.fitting.estimate import law_class
from latfit.fitting.kolmogorov import standard_gaps
from latfit.fitting.simulate import Simulator
from latfit.laws import ContinuousLaw, get_law, law_names, parse_law
from latfit.sample import LatencySample


def sample_of(spec, n, rng, rho=0.0, cutoff=None, step=0.0):
    x = np.where(rng.random(n) < rho, np.inf, parse_law(spec).sample(n, rng))
    if step:
        x = np.rint(x / step) * step
    seen = x[x <= (cutoff or np.inf)]
    return LatencySample.of(seen, censored=[cutoff] * (n - seen.size), cutoff=cutoff, resolution=step)


def test_complete_samples_against_scipy():
    sample = sample_of("gamma(shape=2,scale=100)", 300, np.random.default_rng(0))
    x = sample.completed.expand()
    for found in fit(sample, ["lognormal", "weibull", "gamma"], rho=0.0):
        theirs = stats.kstest(x, found.law.cdf, method="asymp")
        ours = ks_test(sample, found, bootstrap=0)
        assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-12)
        assert ours.p_asymptotic == pytest.approx(theirs.pvalue, rel=1e-9)
        assert ours.d_n == pytest.approx(np.sqrt(300) * ours.statistic)
        assert ours.p_bootstrap is None


@pytest.mark.parametrize(("law", "theirs"), [("lognormal", stats.lognorm), ("weibull", stats.weibull_min),
                                             ("log-logistic", stats.fisk)])  # fmt: skip
def test_standard_resamples_against_scipy(law, theirs):
    """Distances of resamples of log x, refitted: scipy fits and measures the same draws one by one."""
    ours = standard_gaps(law_class(law).kernel, 300, 4, np.random.default_rng(3))
    x = np.exp(law_class(law).kernel.standard_draws((4, 300), np.random.default_rng(3)))
    for gap, row in zip(ours, x, strict=True):
        best = theirs(*theirs.fit(row, floc=0))
        assert gap == pytest.approx(stats.kstest(row, best.cdf).statistic, abs=2e-4)


def test_censored_distance_by_hand():
    """Kaplan–Meier of 1, 2+, 3, 4+ (lost 1) against F(t) = t/10 with ρ = 0.2."""
    sample = LatencySample.of([1.0, 3.0], censored=[2.0, 4.0], lost=1, resolution=0)
    after = [1 / 5, 1 - (4 / 5) * (2 / 3)]
    before, model = [0.0, after[0]], [0.8 * 0.1, 0.8 * 0.3]
    expected = max(abs(a - m) for a, m in zip(after + before, model * 2, strict=True))
    assert ks_distance(sample, lambda t: np.asarray(t) / 10, 0.2) == pytest.approx(expected)


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("shape", [1.0, 1.01, 1.5])
def test_the_distance_of_a_large_sample_is_that_at_each_of_its_times(step, shape):
    """Most times of a large sample are passed over; here none is, for a law that fits and laws that do not."""
    x = np.random.default_rng(7).weibull(1.0, 30_000) * 20
    sample = LatencySample.of(np.ceil(x) if step else x, resolution=step)
    law = stats.weibull_min(shape, scale=20)
    times, after = sample.completed.values, np.cumsum(sample.completed.counts) / sample.n
    before = np.append(0.0, after[:-1])
    gaps = [after - 0.99 * law.cdf(times + step / 2), before - 0.99 * law.cdf(times - step / 2)]
    assert ks_distance(sample, law.cdf, 0.01) == pytest.approx(np.abs(gaps).max(), rel=1e-12)


def test_cells_are_compared_at_their_ends():
    """Exact cell probabilities have distance 0 though the recorded values are far apart."""
    sample = LatencySample.of([60.0] * 3 + [120.0] * 2 + [180.0] * 5, resolution=60.0)
    steps = {30.0: 0.0, 90.0: 0.3, 150.0: 0.5, 210.0: 1.0}
    assert ks_distance(sample, lambda t: np.array([steps[v] for v in t]), 0.0) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["lognormal(mu=5.5,sigma=1)", "weibull(shape=1.5,scale=300)"])
@pytest.mark.parametrize(("rho", "centile", "step"), [(0.0, None, 0.0), (0.025, 0.9, 0.0), (0.0, None, 60.0)])
def test_size(spec, rho, centile, step):
    """Under the null 5 % of p-values are below 5 %; 60 samples here, 400 in scripts/calibrate."""
    rng, law = np.random.default_rng(3), parse_law(spec)
    cutoff = None if centile is None else float(law.ppf(centile))
    p = []
    for _ in range(60):
        sample = sample_of(spec, 200, rng, rho, cutoff, step)
        p.append(ks_test(sample, fit(sample, [law.name])[0], bootstrap=99, rng=rng).p_bootstrap)
    p = np.array(p)
    assert (p <= 0.05).mean() <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)
    assert 0.5 - 3 * 0.289 / np.sqrt(60) < p.mean() < 0.5 + 3 * 0.289 / np.sqrt(60)


def test_power_and_honesty():
    """Exponential data are not log-normal; with fitted parameters the asymptotic p-value is far too large."""
    rng = np.random.default_rng(4)
    sample = sample_of("exponential(rate=0.01)", 500, rng)
    assert ks_test(sample, fit(sample, ["lognormal"])[0], bootstrap=199, rng=rng).p_bootstrap < 0.02
    null = sample_of("lognormal(mu=5,sigma=1)", 500, rng)
    found = ks_test(null, fit(null, ["lognormal"])[0], bootstrap=199, rng=rng)
    assert found.p_asymptotic > found.p_bootstrap + 0.1


@pytest.mark.slow
@pytest.mark.parametrize("method", ["mle", "ls"])
def test_early_censoring_failures_and_lost_probes(method):
    rng = np.random.default_rng(5)
    p = []
    for _ in range(30):
        x = np.where(rng.random(200) < 0.05, np.inf, rng.lognormal(5.5, 1, 200))
        c = np.minimum(rng.exponential(1500, 200), 2000.0)
        out = c[x > c]
        sample = LatencySample.of(x[x <= c], failed=out[:15], censored=out[15:-4], lost=4, resolution=0)
        p.append(ks_test(sample, fit(sample, ["lognormal"], method=method)[0], bootstrap=49, rng=rng).p_bootstrap)
    assert 0.5 - 3.5 * 0.289 / np.sqrt(30) < np.mean(p) < 0.5 + 3.5 * 0.289 / np.sqrt(30)


def test_resamples_look_like_the_log():
    rng = np.random.default_rng(6)
    x = np.where(rng.random(2000) < 0.05, np.inf, rng.lognormal(5.5, 1, 2000))
    c = np.where(rng.random(2000) < 0.3, rng.exponential(500, 2000), np.inf)
    limit = np.minimum(c, 1000.0)
    sample = LatencySample.of(
        np.rint(x[x <= limit]), censored=np.minimum(limit[x > limit], 1000), cutoff=1000.0, resolution=1.0
    )
    rows = Simulator(sample, fit(sample, ["lognormal"])[0]).rows(20, rng)
    again = [rows.sample(row, sample) for row in range(20)]
    for get in (
        lambda s: s.completed.total / s.n,
        lambda s: s.censored_early / s.n,
        lambda s: s.out_at_cutoff / s.n,
        lambda s: s.completed.expand().mean() / 300,
    ):
        assert np.mean([get(s) for s in again]) == pytest.approx(get(sample), abs=0.02)
    assert all(s.n == sample.n and (s.completed.values % 1 == 0).all() for s in again)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in law_names() if issubclass(get_law(name), ContinuousLaw)])
def test_draws_follow_the_law(name):
    law = parse_law(get_law(name).examples[0])
    x = law.draw((4000,), np.random.default_rng(7))
    assert stats.kstest(x, law.cdf).pvalue > 1e-4


def test_the_papers_procedure():
    with EGEE.open() as file:
        rows = list(csv.DictReader(file))
    x = [float(row["latency"]) for row in rows if row["status"] == "completed"]
    sample = LatencySample.of(x, censored=[10_000.0] * (len(rows) - len(x)), cutoff=10_000.0)
    found = fit(sample, ["lognormal-pareto"], method="ls")[0]
    paper = ks_test(sample, found, bootstrap=0, subsample=1000, rng=np.random.default_rng(1))
    assert paper.n == 1000
    assert paper.d_n == pytest.approx(np.sqrt(1000) * paper.statistic)
    assert 0.5 < paper.d_n < 2
    assert paper.p_asymptotic == pytest.approx(stats.kstwobign.sf(paper.d_n), rel=1e-9)
    assert paper == ks_test(sample, found, bootstrap=0, subsample=1000, rng=np.random.default_rng(1))
    whole = ks_test(sample, found, bootstrap=19)
    assert whole.d_n == pytest.approx(1.3701, abs=1e-3)
    assert whole.p_bootstrap == pytest.approx(1 / 20)
    small = ks_test(sample, found, bootstrap=0, subsample=10_000)
    assert small.n == len(x)


def test_plots_are_diagonal_where_the_law_is_right():
    rng = np.random.default_rng(9)
    sample = sample_of("lognormal(mu=5.5,sigma=1)", 5000, rng, rho=0.05, cutoff=1500.0)
    found = fit(sample, ["lognormal"])[0]
    model, observed = qq(sample, found)
    middle = (observed > 50) & (observed < 1000)
    np.testing.assert_allclose(model[middle], observed[middle], rtol=0.1)
    assert np.isfinite(model).all()


def test_a_failed_fit_cannot_be_tested():
    sample = LatencySample.of([5.0, 5.0], resolution=0)
    with pytest.raises(FitError, match="failed"):
        ks_test(sample, fit(sample, ["lognormal"])[0])


def test_p_values_of_large_logs_follow_the_rule_of_small_ones():
    """The true law keeps a p-value that is not small; another one is rejected without a bootstrap."""
    rng = np.random.default_rng(1)
    sample = LatencySample.of(rng.exponential(100, 200_000), resolution=0)
    true, other = (fit(sample, [name])[0] for name in ("exponential", "lognormal"))
    test = assess(sample, true, bootstrap=99, rng=rng)
    assert test.n == 200_000
    assert test.p_bootstrap > 0.02
    assert assess(sample, other, bootstrap=99, rng=rng).p_bootstrap == 0.01
    assert assess(sample, replace(true, law=None, error="none"), bootstrap=99, rng=rng) is None


@pytest.mark.slow
def test_p_values_of_parts_are_uniform_under_the_law():
    """Of logs above the limit, 10 % and 50 % of the p-values of the true law lie below .1 and .5."""
    rng = np.random.default_rng(2)
    values = []
    for _ in range(120):
        sample = LatencySample.of(rng.weibull(0.8, 6000), resolution=0)
        values.append(assess(sample, fit(sample, ["weibull"])[0], bootstrap=39, rng=rng).p_bootstrap)
    shares = [np.mean(np.array(values) <= level) for level in (0.1, 0.5)]
    assert shares == pytest.approx([0.1, 0.5], abs=0.13)


def test_to_dict_is_plain():
    sample = sample_of("exponential(rate=0.01)", 50, np.random.default_rng(1))
    shown = ks_test(sample, fit(sample, ["exponential"])[0], bootstrap=0).to_dict()
    assert set(shown) == {"statistic", "d_n", "n", "p_asymptotic", "p_bootstrap", "completed"}
    assert shown["p_bootstrap"] is None
    assert isinstance(shown["statistic"], float)
