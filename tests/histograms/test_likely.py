"""The likely law of a histogram, and the decision made of it."""

import numpy as np
import pytest
from scipy import stats

from latfit.buckets import Histogram
from latfit.errors import SampleError
from latfit.histograms import bounds, fit_buckets, guaranteed_timeout, histogram_law
from latfit.laws import Defective, parse_law
from latfit.restart import evaluate_timeout, expected_duration, optimal_timeout

PROMETHEUS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
FINE = list(0.001 * 1.25 ** np.arange(1, 50))


def counted(x, upper, **others):
    cumulative = np.searchsorted(np.sort(x), upper, side="right")
    return Histogram.of(upper, np.diff(cumulative, prepend=0), n_inf=int(x.size - cumulative[-1]), **others)


def test_even_law_is_the_mean_of_uniforms():
    """Against a simulation: latencies spread evenly in their buckets, resubmitted by hand."""
    h = Histogram.of([0.1, 0.25, 0.5, 1.0], [10, 40, 30, 10], start=0.05, n_inf=6, lost=4)
    law, rng = histogram_law(h), np.random.default_rng(1)
    bucket = rng.choice(5, p=np.append(h.counts, 10) / 100, size=400_000)
    low, high = np.append(h.edges[:-1], np.inf), np.append(h.edges[1:], np.inf)
    x = np.where(bucket < 4, rng.uniform(low.clip(max=9)[bucket], high.clip(max=9)[bucket] + 1e-12), np.inf)
    for t in (0.2, 0.5, 0.9):
        E = np.minimum(x, t).sum() / (x <= t).sum()
        assert float(expected_duration(law, t)) == pytest.approx(E, rel=0.01)


def test_even_law_lies_inside_the_bounds():
    rng = np.random.default_rng(3)
    for _ in range(50):
        edges = np.cumsum(rng.uniform(0.1, 1, 7))
        h = Histogram(edges, rng.integers(0, 9, 6), int(rng.integers(3)), 1)
        if not h.counts.sum():
            continue
        found, law = bounds(h, cost=0.1), histogram_law(h)
        seen = np.cumsum(h.counts) > 0
        E = expected_duration(law, found.edges[seen], cost=0.1)
        assert (found.low[seen] <= E * (1 + 1e-9)).all()
        assert (found.high[seen] >= E * (1 - 1e-9)).all()


@pytest.mark.parametrize(
    "spec",
    ["lognormal(mu=-1.5,sigma=1)", "weibull(shape=1.7,scale=0.4)", "gamma(shape=3,scale=0.1)",
     "log-logistic(shape=2.5,scale=0.3)"],
)  # fmt: skip
def test_the_grouped_fit_finds_the_law_that_made_the_counts(spec):
    law = parse_law(spec)
    x = law.sample(20_000, np.random.default_rng(5))
    best = fit_buckets(counted(x, FINE, lost=200))[0]
    assert best.name == law.name
    assert best.rho == pytest.approx(200 / 20_200)
    for name, value in law.params.items():
        assert best.params[name] == pytest.approx(value, rel=0.05)


def test_the_grouped_likelihood_is_that_of_the_cells():
    """scipy's multinomial and its log-normal law, at the fitted parameters and around them."""
    h = Histogram.of(PROMETHEUS, [0, 0, 1, 12, 40, 90, 70, 50, 20, 4, 1], n_inf=2)
    fit = fit_buckets(h, ["lognormal"])[0]

    def scipys(mu, sigma):
        F = stats.lognorm(sigma, scale=np.exp(mu)).cdf(np.concatenate([h.edges, [np.inf]]))
        cells = np.append(h.counts, h.n_inf)
        return float((cells[cells > 0] * np.log(np.diff(F)[cells > 0])).sum())

    mu, sigma = fit.params["mu"], fit.params["sigma"]
    assert fit.log_likelihood == pytest.approx(scipys(mu, sigma), rel=1e-9)
    for step in (-1e-3, 1e-3):
        assert scipys(mu + step, sigma) < fit.log_likelihood
        assert scipys(mu, sigma + step) < fit.log_likelihood
    assert fit.bic == pytest.approx(2 * np.log(290) - 2 * fit.log_likelihood)


def test_two_buckets_cannot_determine_two_parameters():
    fits = fit_buckets(Histogram.of([1.0, 2.0], [10, 20]), ["lognormal", "exponential"])
    assert [fit.error is None for fit in fits] == [True, False]
    assert "2 parameters" in fits[1].error


@pytest.mark.parametrize(("upper", "worst"), [(PROMETHEUS, 0.75), (FINE, 0.16)])
def test_a_lognormal_in_buckets(upper, worst):
    """The likely regret comes near the true one, and both are far below what is guaranteed."""
    truth = parse_law("lognormal(mu=-1,sigma=1)")
    x = truth.sample(50_000, np.random.default_rng(2))
    found = guaranteed_timeout(counted(x, upper, lost=1250))
    law = Defective(truth, 1250 / 51_250)
    E = float(expected_duration(law, found.optimum.timeout))
    best = optimal_timeout(law).expected_duration
    assert found.least < best < E < found.guaranteed
    assert E / best - 1 < 0.02
    assert found.likely.regret == pytest.approx(E / best - 1, abs=0.005)
    assert found.likely.optimum.expected_duration == pytest.approx(best, rel=0.02)
    assert found.worst_regret > found.likely.regret
    assert found.guaranteed / found.least - 1 > worst / 2


def test_the_optimum_is_that_of_the_even_law():
    h = Histogram.of([0.05, 0.1, 0.25, 0.5, 1], [0, 10, 40, 30, 10], n_inf=6, lost=4)
    document = guaranteed_timeout(h).to_dict()
    even = evaluate_timeout(histogram_law(h), 0.5).to_dict()
    assert {key: document[key] for key in ("expected_duration", "submissions", "std_duration", "rho")} == {
        key: even[key] for key in ("expected_duration", "submissions", "std_duration", "rho")
    }
    assert document["verdict"] == "finite"
    assert document["law"] == "histogram"
    assert [bucket["le"] for bucket in document["buckets"]] == [0.05, 0.1, 0.25, 0.5, 1]


def test_a_known_sum_is_not_contradicted():
    h = Histogram.of([0.05, 0.1, 0.25, 0.5, 1], [0, 10, 40, 30, 10], n_inf=6, lost=4, latency_sum=26.0)
    found = guaranteed_timeout(h)
    assert found.optimum.expected_duration <= found.guaranteed == pytest.approx(0.3125)


def test_no_timeout_where_all_returned_in_time():
    found = guaranteed_timeout(Histogram.of([1.0, 2.0, 4.0], [0, 60, 40]))
    assert (found.optimum.verdict, found.optimum.timeout) == ("never", None)
    assert found.guaranteed == pytest.approx(2.8)
    known = guaranteed_timeout(Histogram.of([1.0, 2.0, 4.0], [0, 60, 40], n_inf=1, latency_sum=205.0))
    assert (known.optimum.verdict, known.guaranteed) == ("never", pytest.approx(205 / 101))
    assert known.optimum.expected_duration == known.guaranteed


def test_warnings():
    codes = {w.code for w in guaranteed_timeout(Histogram.of([1.0, 2.0], [30, 20], n_inf=1)).warnings}
    assert codes == {"not-identified", "lost-unknown", "untested"}
    few = guaranteed_timeout(Histogram.of([1.0, 2.0], [3, 1], n_inf=50))
    assert few.optimum is None
    assert [w.code for w in few.warnings] == ["few-completions"]
    two_humps = Histogram.of(FINE, [500 if k in (5, 40) else 1 for k in range(49)], lost=5)
    found = guaranteed_timeout(two_humps, cost=0.01)
    assert found.likely.law == "histogram"
    assert "no-law" in {w.code for w in found.warnings}


def test_an_empty_histogram_has_no_law():
    with pytest.raises(SampleError, match="no latency"):
        histogram_law(Histogram.of([1.0], [0], n_inf=5))
