"""Censored maximum likelihood with ρ: against scipy, against a general optimiser, and on hard samples."""

import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from latfit.errors import FitError, LawError
from latfit.fitting import CLASSICAL, DEFAULT_LAWS, SampleBatch, fit, fit_batch
from latfit.fitting.estimate import law_class
from latfit.laws import get_law, parse_law
from latfit.laws.kernel import DifferencesKernel
from latfit.sample import LatencySample
from likelihood_oracle import law_log_likelihood

REGULAR = (
    "exponential(rate=0.003)",
    "weibull(shape=1.5,scale=300)",
    "lognormal(mu=5.5,sigma=1)",
    "gamma(shape=2.5,scale=100)",
    "log-logistic(shape=2,scale=300)",
    "pareto(a=300,nu=2.5)",
    "truncated-gaussian(mu=300,sigma=100)",
)
SCIPY = {
    "exponential": stats.expon,
    "weibull": stats.weibull_min,
    "lognormal": stats.lognorm,
    "gamma": stats.gamma,
    "log-logistic": stats.fisk,
    "pareto": stats.lomax,
}


def latencies(spec, n, rho, seed):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < rho, np.inf, parse_law(spec).sample(n, rng))


def sample_of(x, cutoff, **options):
    seen = x[x <= cutoff]
    return LatencySample.of(seen, censored=[cutoff] * (x.size - seen.size), cutoff=cutoff, resolution=0, **options)


def one(sample, law, **options):
    found = fit(sample, [law], **options)[0]
    assert found.error is None, found.error
    return found


@pytest.mark.parametrize("spec", REGULAR)
def test_recovery_and_coverage(spec):
    """60 samples; scripts/recovery and scripts/calibrate do more."""
    law, rng, rho = parse_law(spec), np.random.default_rng(11), 0.025
    cutoff = float(law.ppf(0.975))
    x = np.where(rng.random((60, 2000)) < rho, np.inf, law.sample((60, 2000), rng))
    found = fit_batch(law.name, SampleBatch.of_rows(x, cutoff))
    assert found.converged.all()
    errors = np.sqrt(np.einsum("bii->bi", found.covariance))
    estimates = np.column_stack([found.params, found.rho])
    for i, true in enumerate([*law.params.values(), rho]):
        off = (estimates[:, i] - true) / errors[:, i]
        off = off[np.isfinite(off)]
        assert off.size > 50
        assert abs(np.median(off)) < 0.6
        assert (np.abs(off) < 1.96).mean() > 0.95 - 3.3 * np.sqrt(0.95 * 0.05 / 60)
        assert 0.7 < off.std() < 1.35


@pytest.mark.parametrize("spec", REGULAR[:6])
def test_no_worse_than_scipy(spec):
    law = parse_law(spec)
    x = latencies(spec, 600, 0.0, 3)
    cutoff = float(law.ppf(0.9))
    sample = sample_of(x, cutoff)
    theirs = SCIPY[law.name]
    data = stats.CensoredData.right_censored(np.minimum(x, cutoff), x > cutoff)
    args = theirs.fit(data, floc=0)
    value = theirs.logpdf(x[x <= cutoff], *args).sum() + (x > cutoff).sum() * theirs.logsf(cutoff, *args)
    ours = one(sample, law.name, rho=0.0)
    assert ours.log_likelihood >= value - 1e-6
    assert ours.log_likelihood <= value + 0.05  # the same likelihood, not a larger one
    assert one(sample, law.name).log_likelihood >= ours.log_likelihood - 1e-9


@pytest.mark.parametrize("spec", REGULAR)
@pytest.mark.parametrize("rho", ["joint", 0.03])
def test_general_censoring_against_an_optimiser(spec, rho):
    """Early censoring, failures and lost probes: the same maximum as Nelder–Mead on the written-out likelihood."""
    law = parse_law(spec)
    x = latencies(spec, 300, 0.05, 4)
    rng = np.random.default_rng(5)
    c = np.minimum(rng.exponential(900, 300), 1200.0)
    done, out = x[x <= c], c[x > c]
    sample = LatencySample.of(done, failed=out[:20], censored=out[20:-6], lost=6, resolution=0)
    found = one(sample, law.name, rho=rho)
    kernel = law_class(law.name).kernel

    def cost(v):
        try:
            built = type(law)(*kernel.to_params(v[:-1, None], 1.0)[0][:, 0])
        except LawError:
            return 1e9
        r = 1 / (1 + np.exp(-v[-1])) if rho == "joint" else rho
        out_part = np.log(r + (1 - r) * built.sf(out[:-6])).sum() + 6 * np.log(r)
        return -(built.logpdf(done).sum() + done.size * np.log1p(-r) + out_part)

    u = kernel.from_params(np.array(list(law.params.values()))[:, None], 1.0)[:, 0]
    start = np.append(u, -3.0)
    simplex = np.vstack([start, *(start + np.diag(np.append(np.abs(u) * 0.1 + 1e-7, 0.3)))])
    options = {"xatol": 1e-10, "fatol": 1e-9, "maxiter": 4000, "maxfev": 4000, "initial_simplex": simplex}
    best = minimize(cost, start, method="Nelder-Mead", options=options)
    assert found.log_likelihood == pytest.approx(-best.fun, abs=2e-4)
    assert found.log_likelihood >= -best.fun - 1e-5
    assert found.n == 300


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("rho", ["joint", 0.0])
def test_nested_laws_never_score_worse(seed, rho):
    spec = ("exponential(rate=0.01)", "weibull(shape=2,scale=90)", "pareto(a=50,nu=1.5)")[seed % 3]
    sample = sample_of(latencies(spec, (40, 400)[seed % 2], 0.02, seed), 200.0)
    simple = one(sample, "exponential", rho=rho)
    for law in ("weibull", "gamma", "pareto", "truncated-gaussian"):
        richer = one(sample, law, rho=rho)
        assert richer.log_likelihood >= simple.log_likelihood - 1e-9
        if richer.at_limit:
            batch = SampleBatch.of_samples([sample])
            own, _ = law_log_likelihood(richer.law, batch.given(richer.rho))
            assert own == pytest.approx(simple.log_likelihood, abs=1e-4)
            assert richer.std_errors[next(iter(richer.params))] is None


@pytest.mark.parametrize(("method", "unit"), [("mle", 1e-3), ("ls", 3600.0)])
def test_units_do_not_matter(method, unit):
    x = latencies("lognormal(mu=5.5,sigma=1)", 400, 0.03, 6)
    plain = {f.name: f for f in fit(sample_of(x, 1500.0), DEFAULT_LAWS, method=method, resamples=0)}
    other = {f.name: f for f in fit(sample_of(x / unit, 1500.0 / unit), DEFAULT_LAWS, method=method, resamples=0)}
    for name, a in plain.items():
        b = other[name]
        assert a.error is None
        assert b.error is None
        assert a.at_limit == b.at_limit
        assert b.rho == pytest.approx(a.rho, rel=1e-6, abs=1e-9)
        np.testing.assert_allclose(b.law.scaled(unit).cdf([50, 200, 900]), a.law.cdf([50, 200, 900]), rtol=1e-6)
        if method == "mle":
            n = (x <= 1500).sum()
            assert b.log_likelihood == pytest.approx(a.log_likelihood + n * np.log(unit), rel=1e-9, abs=1e-5)


def test_joint_ratio_sees_through_an_early_cutoff():
    """Log-normal(5.5, 1), ρ = .10, cut at 900 s: the count says .187."""
    x = latencies("lognormal(mu=5.5,sigma=1)", 20_000, 0.10, 1)
    sample = sample_of(x, 900.0)
    found = one(sample, "lognormal")
    assert sample.out_at_cutoff / sample.n == pytest.approx(0.187, abs=0.01)
    assert found.rho == pytest.approx(0.10, abs=3 * found.std_errors["rho"])
    assert found.law.sigma == pytest.approx(1.0, abs=3 * found.std_errors["sigma"])


def test_ranking():
    x = latencies("lognormal(mu=5.5,sigma=1)", 2137, 0.025, 2)
    sample = sample_of(x, 2000.0)
    fits = fit(sample)
    assert next(f.name for f in fits) == "lognormal"
    assert {f.name for f in fits} == set(DEFAULT_LAWS)
    assert [f.bic for f in fits] == sorted(f.bic for f in fits)
    best = fits[0]
    assert best.bic == pytest.approx(3 * np.log(2137) - 2 * best.log_likelihood)
    assert best.aic == pytest.approx(6 - 2 * best.log_likelihood)
    assert one(sample, "lognormal", rho=0.02).bic == pytest.approx(
        2 * np.log(2137) - 2 * one(sample, "lognormal", rho=0.02).log_likelihood
    )


def test_selection():
    """20 samples; scripts/recovery does 100."""
    called = [
        fit(sample_of(latencies("lognormal(mu=5.5,sigma=1)", 2137, 0.025, seed), 1739.0))[0].name for seed in range(20)
    ]
    assert called.count("lognormal") >= 19


def test_a_law_that_failed_is_listed_last_with_its_reason():
    fits = fit(LatencySample.of([5.0, 5.0, 5.0], resolution=0))
    assert {f.name for f in fits} == set(DEFAULT_LAWS)
    failed = [f for f in fits if f.error]
    assert {f.name for f in failed} >= {"lognormal", "weibull", "uniform"}
    assert fits[-len(failed) :] == failed
    for f in failed:
        assert "equal" in f.error
        assert f.law is None
        assert f.bic is None
        assert f.to_dict()["bic"] is None
    assert one(LatencySample.of([5.0, 5.0, 5.0], resolution=0), "exponential").params["rate"] == pytest.approx(0.2)


def test_hard_samples_give_an_answer_or_a_reason():
    rng = np.random.default_rng(0)
    samples = {
        "three": LatencySample.of([3.0, 40.0, 700.0], resolution=0),
        "three and a cut": LatencySample.of([3.0, 40.0], censored=[100.0], cutoff=100.0, resolution=0),
        "nine decades": LatencySample.of(10 ** rng.uniform(-5, 4, 300), resolution=0),
        "narrow": LatencySample.of(1000 + rng.normal(0, 0.5, 200), resolution=0),
        "two values": LatencySample.of([1.0, 1.0, 1.0, 2.0], resolution=0),
    }
    for sample in samples.values():
        for f in fit(sample):
            if f.error is None:
                assert np.isfinite(f.log_likelihood)
                own, _ = law_log_likelihood(f.law, SampleBatch.of_samples([sample]).given(f.rho))
                assert own == pytest.approx(f.log_likelihood, rel=1e-6, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["mle", "ls"])
@pytest.mark.parametrize(
    ("latencies", "options"),
    [
        ([3.0], {}),
        ([1.0, 2.0], {}),
        ([1e-5, 1e6], {}),
        ([1.0, 2.0, 5.0], {"censored": [6.0], "cutoff": 6.0}),
        ([7.0] * 50, {}),
        ([0.0] * 50, {"resolution": 1.0}),
        ([0.0] * 10 + [5.0], {"resolution": 1.0, "lost": 2}),
        (np.geomspace(1e-4, 1e5, 12), {}),
        ([0.1, 1938.5, 836.7, 49.8], {}),
    ],
)
def test_tiny_samples_need_little_memory(latencies, options, method):
    """Every law is listed, with an answer or a reason, and the hybrid's check of its cdf stays small."""
    sample = LatencySample.of(latencies, **options)
    tracemalloc.start()
    found = fit(sample, [*DEFAULT_LAWS, "lognormal-pareto"], method=method)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6
    assert {f.name for f in found} == {*DEFAULT_LAWS, "lognormal-pareto"}
    for f in found:
        assert (f.law is None) == bool(f.error)
        assert math.isfinite(f.score) == (f.error is None)


def test_nothing_completed_and_wrong_options():
    nothing = LatencySample(lost=3)
    assert all("none of the 3 probes" in f.error for f in fit(nothing))
    sample = LatencySample.of([1.0, 2.0, 3.5], lost=1, resolution=0)
    assert "cannot be 0" in fit(sample, ["lognormal"], rho=0.0)[0].error
    for wrong in ({"rho": 1.0}, {"rho": "both"}, {"method": "moments"}):
        with pytest.raises(FitError):
            fit(sample, ["lognormal"], **wrong)
    with pytest.raises(LawError):
        fit(sample, ["nosuch"])


def test_zeros_and_coarse_clocks():
    """Rounded to 60 s, with zeros: the cells' likelihood finds the truth, the density is far off."""
    rng = np.random.default_rng(8)
    x = np.rint(rng.lognormal(5.0, 1.0, 20_000) / 60) * 60
    sample = LatencySample.of(x)
    assert sample.resolution == 60
    assert sample.completed.values[0] == 0
    found = one(sample, "lognormal")
    assert found.params["mu"] == pytest.approx(5.0, abs=4 * found.std_errors["mu"])
    assert found.params["sigma"] == pytest.approx(1.0, abs=4 * found.std_errors["sigma"])
    shape = np.rint(300 * rng.weibull(1.5, 20_000) / 60) * 60
    weibull = one(LatencySample.of(shape), "weibull")
    assert weibull.params["shape"] == pytest.approx(1.5, abs=4 * weibull.std_errors["shape"])
    assert all("too coarse" in f.error for f in fit(LatencySample.of([0.0, 0.0, 0.0], resolution=1.0)))
    unknown = LatencySample.of([0.0, 1.5, 2.5, 7.25], resolution=0)
    assert "resolution" in fit(unknown, ["lognormal"])[0].error
    assert one(unknown, "exponential").rho == 0


@pytest.mark.parametrize("spec", [*REGULAR, "uniform(a=0,b=400)"])
def test_the_change_from_cells_to_points_is_smooth(spec):
    """A 1 s clock with latencies on both sides of 64 s: as if every latency were a cell."""
    law = parse_law(spec).scaled(0.4)
    x = np.rint(law.sample(3000, np.random.default_rng(5)))
    sample = LatencySample.of(np.append(x, 0.0), resolution=1.0)
    assert sample.completed.values[-1] > 100
    found = one(sample, law.name)
    low, high = np.maximum(sample.completed.values - 0.5, 0.0), sample.completed.values + 0.5
    far = found.law.cdf(low) > 0.5
    P = np.where(far, found.law.sf(low) - found.law.sf(high), found.law.cdf(high) - found.law.cdf(low))
    seen = np.log(P / (high - low))
    assert found.log_likelihood == pytest.approx(sample.completed.counts @ seen, abs=0.05)


def test_uniform():
    x = np.random.default_rng(1).uniform(100, 500, 1000)
    x[:50] = np.inf
    sample = sample_of(x, 450.0)
    joint = one(sample, "uniform")
    assert joint.params["a"] == pytest.approx(x.min(), rel=1e-14)
    assert joint.params["b"] == pytest.approx(x[x <= 450].max(), rel=1e-14)
    assert joint.law.cdf(x.min()) >= 0
    assert np.isfinite(joint.law.logpdf(x[x <= 450])).all()
    assert joint.rho == pytest.approx(1 - (x <= 450).mean())
    given = one(sample, "uniform", rho=0.05)
    grid = np.linspace(joint.params["b"], 700, 20_000)
    n, m, T, a = (x <= 450).sum(), (x > 450).sum(), 450.0, x.min()
    S = np.clip((grid - T) / (grid - a), 0, 1)
    values = n * np.log(0.95 / (grid - a)) + m * np.log(0.05 + 0.95 * S)
    assert given.params["b"] == pytest.approx(grid[values.argmax()], abs=0.05)
    assert given.log_likelihood == pytest.approx(values.max(), abs=1e-3)
    assert one(sample, "uniform", rho=0.0).log_likelihood <= given.log_likelihood + 1e-9 < joint.log_likelihood


@pytest.mark.parametrize("law", CLASSICAL)
def test_a_batch_is_its_samples(law):
    rng = np.random.default_rng(9)
    groups = [rng.lognormal(5.5, 1, n) for n in (30, 200, 77)]
    samples = [sample_of(x, 800.0) for x in groups]
    singles = [one(sample, law) for sample in samples]
    found = fit_batch(law, SampleBatch.of_samples(samples))
    np.testing.assert_allclose(found.log_likelihood, [f.log_likelihood for f in singles], rtol=1e-10)
    np.testing.assert_allclose(found.rho, [f.rho for f in singles], rtol=1e-5, atol=1e-9)


def test_weights_are_copies():
    x = np.random.default_rng(10).gamma(2, 50, 100)
    sample = LatencySample.of(x, resolution=0)
    counts = np.random.default_rng(11).poisson(1, (4, 100)).astype(float)
    found = fit_batch("gamma", replace(SampleBatch.of_samples([sample]), weights=counts, lost=np.zeros(4)))
    for row in range(4):
        copies = LatencySample.of(np.repeat(np.sort(x), counts[row].astype(int)), resolution=0)
        assert found.log_likelihood[row] == pytest.approx(one(copies, "gamma").log_likelihood, rel=1e-10)


def test_a_batch_says_which_samples_cannot_be_fitted():
    batch = SampleBatch.of_samples([LatencySample.of(v, resolution=0) for v in ([1.0, 2.0, 5.0], [3.0, 3.0])])
    found = fit_batch("weibull", batch)
    assert found.error[0] == ""
    assert "equal" in found.error[1]
    assert np.isnan(found.params[1]).all()
    assert np.isfinite(found.params[0]).all()


def test_hybrid_by_likelihood_needs_a_clock():
    sample = LatencySample.of(np.random.default_rng(0).lognormal(5, 1, 40), resolution=0)
    assert "density 0" in fit(sample, ["lognormal-pareto"])[0].error
    assert fit(sample, ["lognormal-pareto"], method="ls", resamples=0)[0].error is None


def test_hybrid_by_likelihood():
    law = parse_law("lognormal-pareto(mu=4.8,sigma=0.7,a=700,nu=2.2,k=0.45,t_min=100,t_max=9000)")
    rng = np.random.default_rng(12)
    x = np.rint(law.sample(1500, rng))
    sample = LatencySample.of(np.maximum(x, 101), cutoff=9000.0)
    found = one(sample, "lognormal-pareto")
    truth, _ = law_log_likelihood(law, SampleBatch.of_samples([sample]))
    assert found.log_likelihood > truth
    assert found.bic < one(sample, "lognormal").bic
    assert found.params["mu"] == pytest.approx(4.8, abs=4 * found.std_errors["mu"])


@pytest.mark.parametrize("method", ["mle", "ls"])
def test_a_law_without_a_kernel_can_be_fitted(method, monkeypatch):
    """A new law is one new file: what it states is enough for the general search."""
    law = "truncated-gaussian"
    sample = sample_of(latencies("gamma(shape=2.5,scale=100)", 500, 0.03, 13), 500.0)
    quick = one(sample, law, method=method)
    monkeypatch.setattr(get_law(law), "kernel", DifferencesKernel(get_law(law)))
    slow = one(sample, law, method=method)
    np.testing.assert_allclose(list(slow.params.values()), list(quick.params.values()), rtol=1e-4)
    assert slow.rho == pytest.approx(quick.rho, abs=1e-5)
    if method == "mle":
        assert slow.log_likelihood == pytest.approx(quick.log_likelihood, abs=1e-6)
        for name, error in quick.std_errors.items():
            assert slow.std_errors[name] == (error and pytest.approx(error, rel=1e-2))
    else:
        assert slow.sse == pytest.approx(quick.sse, rel=1e-6)


def test_many_values_are_thinned_only_for_the_starts():
    x = latencies("weibull(shape=1.3,scale=200)", 20_000, 0.02, 14)
    sample = sample_of(x, 600.0)
    assert SampleBatch.of_samples([sample]).thinned is not None
    rows = fit_batch("weibull", SampleBatch.of_rows(np.stack([x, x]), 600.0))
    assert one(sample, "weibull").log_likelihood == pytest.approx(rows.log_likelihood[0], rel=1e-12)


@pytest.mark.parametrize("rho", ["joint", 0.0])
@pytest.mark.parametrize("share", [0.5, 0.6])
def test_a_narrow_gamma_law_with_half_of_it_censored(share, rho):
    """A coefficient of variation of .3 %: no likelihood around the estimate is better, and it is the truth."""
    x = np.random.default_rng(1).gamma(1 / 0.003**2, 100 * 0.003**2, 400)
    cutoff = float(np.quantile(x, 1 - share))
    sample = sample_of(x, cutoff)
    found = one(sample, "gamma", rho=rho)
    assert found.error is None
    law = stats.gamma(found.params["shape"], scale=found.params["scale"])
    if rho == 0.0:
        assert law.mean() == pytest.approx(100, rel=1e-3)
        assert law.std() == pytest.approx(0.3, rel=0.2)
    done = x[x <= cutoff]

    def value(k, mean, r):
        moved = stats.gamma(k, scale=mean / k)
        out = np.log(r + (1 - r) * moved.sf(cutoff)) * (x.size - done.size)
        return moved.logpdf(done).sum() + done.size * np.log1p(-r) + out

    here = value(found.params["shape"], law.mean(), found.rho)
    assert found.log_likelihood == pytest.approx(here, abs=1e-4)
    for k, mean in ((1.02, 1.0), (0.98, 1.0), (1.0, 1.00003), (1.0, 0.99997)):
        assert value(found.params["shape"] * k, law.mean() * mean, found.rho) < here


def test_a_law_at_its_limit_is_named_after_the_limit():
    sample = LatencySample.of(np.random.default_rng(3).uniform(1, 9, 200))
    for name in ("pareto", "truncated-gaussian"):
        tied = LatencySample.of([1.0, 2, 3, 4, 5, 6, 7, 8, 30])
        found = one(tied, name)
        if found.at_limit:
            assert found.describe() == f"= exponential(rate={one(tied, 'exponential').params['rate']:.6g})"
    assert one(sample, "pareto").at_limit
    assert one(sample, "pareto").describe().startswith("= exponential(rate=")
    assert one(sample, "lognormal").describe().startswith("mu=")
    assert "not fitted: " in fit(LatencySample(lost=3), "lognormal")[0].describe()
