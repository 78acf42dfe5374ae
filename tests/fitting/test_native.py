"""Fits, laws and tests as people of pandas and scipy use them."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import latfit
from conftest import EGEE
from latfit.fitting import fit_many


@pytest.fixture(scope="module")
def egee():
    return latfit.example_log().sample(cutoff=10_000)


LATENCIES = np.random.default_rng(3).lognormal(5.0, 1.0, 400)


@pytest.mark.parametrize(
    ("frozen", "name", "params"),
    [
        (stats.lognorm(1.0, scale=np.exp(5.5)), "lognormal", {"mu": 5.5, "sigma": 1.0}),
        (stats.weibull_min(1.4, scale=300), "weibull", {"shape": 1.4, "scale": 300}),
        (stats.gamma(2.0, scale=100), "gamma", {"shape": 2, "scale": 100}),
        (stats.uniform(100, 400), "uniform", {"a": 100, "b": 500}),
    ],
)
def test_scipys_laws_and_names_are_laws(frozen, name, params):
    named = latfit.optimal_timeout(name, **params, cost=2.0)
    ours = latfit.optimal_timeout(frozen, cost=2.0)
    assert ours.verdict == named.verdict
    assert ours.expected_duration == pytest.approx(named.expected_duration, rel=1e-9)
    assert latfit.expected_duration(frozen, 250.0) == pytest.approx(latfit.expected_duration(name, 250.0, **params))
    assert latfit.moments((name, params), 250.0) == pytest.approx(latfit.moments(frozen, 250.0), rel=1e-9)
    spec = f"{name}({','.join(f'{key}={value}' for key, value in params.items())})"
    assert latfit.completion_cdf(spec, 300.0, 250.0) == latfit.completion_cdf(name, 300.0, 250.0, **params)


def test_a_name_may_have_outliers():
    one = latfit.optimal_timeout("lognormal", mu=5.5, sigma=1, rho=0.025)
    other = latfit.optimal_timeout(latfit.Defective(latfit.parse_law("lognormal", mu=5.5, sigma=1), 0.025))
    assert one == other


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (stats.norm(300, 100), "not negative"),
        (stats.poisson(3), "discrete"),
        (stats.lognorm([1.0, 2.0]), "one value"),
        ("probes.csv", "read_log"),
        ("lognormal", "mu"),
        ("lognorml(mu=1,sigma=1)", "did you mean lognormal"),
        (stats.lognorm, "freeze it"),
    ],
)
def test_arguments_that_are_not_laws_are_refused(wrong, words):
    with pytest.raises(latfit.LawError, match=words):
        latfit.optimal_timeout(wrong)
    with pytest.raises(latfit.LawError, match="parameters go with the name"):
        latfit.optimal_timeout(LATENCIES, mu=5.0)
    with pytest.raises(latfit.LawError, match=r"fits\[0\]"):
        latfit.optimal_timeout(latfit.fit(LATENCIES, ["lognormal", "gamma"]))


def test_laws_and_samples_are_accepted_in_any_form():
    frozen = stats.lognorm(1.0, scale=np.exp(5.5))
    assert latfit.Defective(frozen, 0.1).cdf(300.0) == pytest.approx(0.9 * frozen.cdf(300.0))
    assert latfit.Defective("exponential(rate=2)", 0.1).law == latfit.parse_law("exponential", rate=2)
    assert latfit.Empirical.of(pd.Series(LATENCIES)).rho == 0
    assert latfit.joint_outlier_ratio(LATENCIES, "lognormal").law == "lognormal"
    one = latfit.ks_test(LATENCIES, "lognormal", bootstrap=9, rng=5)
    assert one == latfit.ks_test(LATENCIES, "lognormal", bootstrap=9, rng=np.random.default_rng(5))


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: latfit.fit(LATENCIES, stats.lognorm), "names of laws"),
        (lambda: latfit.fit(LATENCIES, latfit.parse_law("exponential", rate=1)), "names of laws"),
        (lambda: latfit.fit(LATENCIES, []), "names of laws"),
        (lambda: latfit.fit(LATENCIES, "lognormal(mu=5,sigma=1)"), "such as 'lognormal'"),
        (lambda: latfit.fit(LATENCIES, method="MLE"), "mle or ls"),
        (lambda: latfit.fit(LATENCIES, rho=None), "joint"),
        (lambda: latfit.fit(LATENCIES, rho=np.array([0.1, 0.2])), "joint"),
        (lambda: latfit.ks_test(LATENCIES, LATENCIES), "not ndarray"),
        (lambda: latfit.ks_test(LATENCIES, "lognormal", bootstrap=-1), "0 or more"),
        (lambda: latfit.ks_test(LATENCIES, "lognormal", bootstrap=1.5), "whole number"),
        (lambda: latfit.ks_test(LATENCIES, "lognormal", bootstrap="9"), "whole number"),
        (lambda: latfit.ks_test(LATENCIES, "lognormal", rng="a"), "a seed"),
        (lambda: latfit.ks_test(LATENCIES, "lognormal", rng=-1), "a seed"),
        (lambda: latfit.ks_test(LATENCIES, "lognormal", subsample=0), "completions, 1 or more"),
        (lambda: latfit.ks_test(LATENCIES, "lognormal", subsample=1.5), "completions, 1 or more"),
        (lambda: latfit.fit([]), "sample is empty"),
        (lambda: latfit.fit(LATENCIES, resamples=-1), "resamples is -1; it must be a whole number"),
        (lambda: latfit.fit(LATENCIES, method="ls", seed="a"), "seed is 'a'; it must be a whole number"),
        (lambda: latfit.analyze(LATENCIES, resamples=-1), "resamples is -1; it must be a whole number"),
        (lambda: latfit.analyze(LATENCIES, seed="a"), "seed is 'a'; it must be a whole number"),
        (lambda: latfit.analyze(LATENCIES, seed=1.5), "seed is 1.5; it must be a whole number"),
        (lambda: latfit.analyze(LATENCIES, laws=5), "names of laws"),
        (lambda: latfit.analyze(LATENCIES, laws=[5]), "names of laws"),
        (lambda: latfit.analyze(LATENCIES, cost="a"), "cost is 'a'; it must be a number"),
        (lambda: latfit.analyze(LATENCIES, risk="a"), "risk is 'a'; it must be a number"),
        (lambda: latfit.analyze(LATENCIES, test="no"), "test is 'no'; it must be True or False"),
        (lambda: latfit.analyze(LATENCIES, by=5), "no column"),
        (lambda: latfit.Options(copies=None), "copies is None; it must be a whole number"),
        (lambda: latfit.Options(laws=[5]), "give names of laws"),
        (lambda: latfit.decide(latfit.as_log(LATENCIES)), "latfit.analyze takes"),
        (lambda: latfit.decide(LATENCIES), "latfit.analyze takes"),
        (lambda: latfit.run_batch("absent.csv", laws=5), "names of laws"),
        (lambda: latfit.outlier_ratio(LATENCIES, level="a"), "level is 'a'"),
        (lambda: latfit.optimal_timeout(LATENCIES, cost="a"), "cost is 'a'"),
        (lambda: latfit.parse_duration(None), "not a duration"),
        (lambda: latfit.parse_law(5), "not a law"),
        (lambda: latfit.LatencySample.of(["a", "b"]), "numbers in seconds"),
        (lambda: latfit.LatencySample.of(LATENCIES, cutoff="10m"), "'10m'"),
        (lambda: latfit.LatencySample.of(LATENCIES, lost=2.5), "whole number"),
    ],
)
def test_wrong_arguments_end_in_an_error_that_says_what_was_expected(ask, words):
    with pytest.raises(latfit.LatfitError, match=words) as raised:
        ask()
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("latency", [1e300, 1.1e12, 1e-16])
@pytest.mark.parametrize(
    "ask", [latfit.analyze, latfit.fit, latfit.outlier_ratio, latfit.optimal_timeout, latfit.as_log, latfit.as_sample]
)
def test_an_array_with_an_impossible_latency_is_refused_by_every_function(ask, latency):
    with pytest.raises(latfit.SampleError, match=r"out of range \(1e-15 s to 1e\+12 s; the first, at 400"):
        ask([*LATENCIES, latency])
    assert latfit.as_sample([1e-15, 0.0, 1e12]).n == 3


def test_the_cutoff_of_an_array_is_that_of_its_sample():
    sample = latfit.as_sample(LATENCIES)
    assert latfit.default_cutoff(LATENCIES) == latfit.default_cutoff(sample)
    assert latfit.ratio_by_cutoff(LATENCIES) == latfit.ratio_by_cutoff(sample)


def test_a_fit_prints_as_one_line(egee):
    shown = repr(latfit.fit(egee, "lognormal")[0])
    assert shown.startswith("<Fit of lognormal (mle) to 2137 probes: mu=5.55")
    assert "rho=0.0248, BIC 2" in shown
    assert "all latencies are equal" in repr(latfit.fit([3.0, 3.0], "lognormal")[0])


def test_scipy_stats_is_imported_only_with_one_of_its_laws():
    code = "import sys, latfit; latfit.optimal_timeout('lognormal', mu=5.5, sigma=1); assert 'scipy.stats' not in "
    code += "sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_fit_is_a_law_with_its_outliers_and_failures():
    sample = latfit.LatencySample.of(LATENCIES, failed=[3.0, 50.0, 50.0, 400.0], lost=12)
    fit = latfit.fit(sample, "lognormal")[0]
    best = latfit.optimal_timeout(fit)
    assert best.rho > fit.rho > 0
    assert best.submissions > latfit.optimal_timeout(latfit.Defective(fit.law, fit.rho)).submissions
    assert latfit.expected_duration(fit, 300.0) > 0


def test_ks_test_of_an_array():
    frozen = stats.lognorm(1.0, scale=np.exp(5.0))
    ours, theirs = latfit.ks_test(LATENCIES, frozen), stats.kstest(LATENCIES, frozen.cdf, mode="asymp")
    assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-12)
    assert ours.p_asymptotic == pytest.approx(theirs.pvalue, abs=1e-9)
    assert ours.p_bootstrap is None  # nothing was fitted
    fitted = latfit.ks_test(pd.Series(LATENCIES), "lognormal", bootstrap=39)
    assert (
        fitted.p_bootstrap == latfit.ks_test(LATENCIES, latfit.fit(LATENCIES, "lognormal")[0], bootstrap=39).p_bootstrap
    )
    assert fitted.statistic == fitted.completed.statistic  # everything returned


def test_the_papers_distance_uses_the_returned_probes(egee):
    fit = latfit.fit(egee, "lognormal-pareto", method="ls", resamples=0)[0]
    test = latfit.ks_test(egee, fit, bootstrap=0)
    assert (round(test.d_n, 3), round(test.completed.d_n, 3)) == (1.370, 1.387)
    plain = stats.kstest(egee.completed.expand(), fit.law.cdf, mode="asymp")
    assert test.completed.statistic == pytest.approx(plain.statistic, rel=1e-9)
    assert test.completed.p_asymptotic == pytest.approx(plain.pvalue, rel=1e-6)


def test_t_min_as_in_the_paper(egee):
    paper = latfit.fit(egee, "lognormal-pareto", method="ls", t_min="paper", resamples=0)[0]
    latencies = egee.completed.expand()
    assert paper.params["t_min"] == latencies.min()
    t = np.arange(latencies.min(), latencies.max() + 1)
    measured = np.searchsorted(np.sort(latencies), t, side="right") / latencies.size
    assert paper.sse == pytest.approx(((paper.law.cdf(t) - measured) ** 2).sum(), rel=1e-6)
    better = latfit.fit(egee, "lognormal-pareto", method="ls", resamples=0)[0]
    assert better.params["t_min"] == paper.params["t_min"] - egee.resolution
    with pytest.raises(latfit.FitError, match="least squares"):
        latfit.fit(egee, "lognormal-pareto", t_min="paper")


def test_least_squares_has_standard_errors_in_python_as_in_the_shell(egee, run):
    done = run("fit", EGEE, "--law", "lognormal", "--method", "ls", "--cutoff", 10_000, "--json")
    shell = json.loads(done.stdout)["fits"][0]
    assert latfit.fit(egee, "lognormal", method="ls")[0].std_errors == pytest.approx(shell["std_errors"])


def test_groups_of_a_frame():
    frame = pd.DataFrame({"site": np.repeat(["a", "b"], 200), "latency": LATENCIES})
    fits = frame.groupby("site")["latency"].apply(latfit.fit)
    assert fits["a"][0].bic == latfit.fit(LATENCIES[:200])[0].bic
    assert frame.groupby("site")[["latency"]].apply(latfit.fit)["b"][0].name == fits["b"][0].name


@pytest.mark.parametrize("method", ["mle", "ls"])
def test_fitting_samples_together_equals_fitting_each_alone(method):
    rng = np.random.default_rng(8)
    samples = [
        latfit.LatencySample.of(rng.weibull(shape, 300) * scale) for shape, scale in ((0.8, 5), (1.5, 9), (3, 7))
    ]
    samples.append(latfit.LatencySample.of([], lost=3))
    laws = ["weibull", "lognormal", "pareto"]
    for sample, fits in zip(samples, fit_many(samples, laws, method=method), strict=True):
        alone = {fit.name: fit for fit in latfit.fit(sample, laws, method=method, resamples=0)}
        assert [fit.name for fit in fits] == laws
        for fit in fits:
            assert (fit.error is None) == (alone[fit.name].error is None)
            if fit.error is None:
                assert fit.score == pytest.approx(alone[fit.name].score, rel=1e-7)
                assert fit.law.mean() == pytest.approx(alone[fit.name].law.mean(), rel=1e-3)


def test_a_summary_has_the_numbers_of_the_fit(egee):
    fit = latfit.fit(egee, "lognormal")[0]
    text = fit.summary()
    assert repr(text) == text
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.startswith(("mu", "sigma", "rho"))}
    estimate, error, low, high = map(float, rows["mu"])
    assert (estimate, error) == (
        pytest.approx(fit.params["mu"], rel=1e-4),
        pytest.approx(fit.std_errors["mu"], rel=1e-3),
    )
    assert (low, high) == (
        pytest.approx(estimate - 1.96 * error, rel=1e-3),
        pytest.approx(estimate + 1.96 * error, rel=1e-3),
    )
    with pytest.raises(latfit.FitError, match="failed"):
        latfit.fit([5.0], "lognormal")[0].summary()


def test_latex_is_written_as_people_print_it(egee):
    fits = latfit.fit(egee, ["lognormal-pareto", "weibull"], method="ls")
    text = fits[0].to_latex()
    assert r"$\mu = 4.72\,(0.03)$" in text
    assert r"$t_{\min} = 103$" in text
    assert r"\,(110)$" in text
    assert "e+" not in text + fits[1].to_latex()
