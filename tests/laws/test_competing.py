"""Failures as a risk beside a law: against quadrature, and against a simulation that knows no formula."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

from latfit.errors import FitError, LawError
from latfit.fitting import Fit, fit, fitted_law
from latfit.laws import Competing, Defective, Empirical, parse_law
from latfit.restart import evaluate_timeout, expected_duration, optimal_timeout
from latfit.sample import LatencySample

LAW = Defective(parse_law("lognormal(mu=5.5,sigma=0.7)"), 0.05)
TIMES, MASSES = np.array([10.0, 40, 200, 900]), np.array([0.1, 0.2, 0.3, 0.15])


def unfailed(t):
    return 1 - MASSES[t >= TIMES].sum()


@pytest.mark.parametrize("t", [5.0, 10.0, 39.0, 200.0, 550.0, 4000.0])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_completions_and_failures_are_integrals_of_the_density(n, t):
    law = Competing.of(LAW, TIMES, MASSES)
    done = quad(lambda u: u**n * unfailed(u) * LAW.pdf(u), 0, t, points=[x for x in TIMES if x < t], limit=200)[0]
    gone = sum(x**n * p * LAW.still_out(x) for x, p in zip(TIMES, MASSES, strict=True) if x <= t)
    assert_allclose(law.partial_moment(n, t), done, rtol=1e-8)
    assert_allclose(law.failed_moment(n, t), gone, rtol=1e-13)
    assert_allclose(law.cdf(t) + law.failed(t) + law.still_out(t), 1, rtol=1e-13)
    assert_allclose(law.pdf(t), unfailed(t) * LAW.pdf(t), rtol=1e-13)


def test_rho_and_support_of_the_combined_law():
    law = Competing.of(LAW, TIMES, MASSES)
    assert_allclose(law.rho, 1 - law.cdf(1e9), rtol=1e-9)
    assert_allclose(law.never, 0.05 * 0.25)
    assert law.support == (0.0, np.inf)
    certain = Competing.of(LAW, [100.0], [1.0])
    assert certain.support == (0.0, 100.0)
    assert certain.never == 0


def simulated(rng, law, hazard, t, jobs):
    """Mean duration and submissions of jobs, attempt by attempt."""
    total, attempts, waiting = np.zeros(jobs), 0, np.arange(jobs)
    while waiting.size:
        latency, failure = law.sample(waiting.size, rng), rng.exponential(1 / hazard, waiting.size)
        end = np.minimum(np.minimum(latency, failure), t)
        total[waiting] += end
        attempts += waiting.size
        waiting = waiting[latency > end]
    return total.mean(), attempts / jobs


def probes(rng, n, cutoff=5000.0, rho=0.05):
    latency = np.where(rng.random(n) < rho, np.inf, rng.lognormal(5.5, 0.7, n))
    failure, end = rng.exponential(100, n), np.full(n, cutoff)
    end = np.minimum(np.minimum(latency, failure), cutoff)
    return LatencySample.of(
        end[latency == end], failed=end[failure == end], censored=end[end == cutoff], cutoff=cutoff, resolution=0.0
    )


def test_a_fitted_law_does_not_forget_failures():
    """Log-normal(5.5, .7), rho .05, failure hazard 1/100: E_J = 646 s and 7.47 submissions."""
    rng = np.random.default_rng(4)
    sample = probes(rng, 40_000)
    law = fitted_law(sample, fit(sample, ["lognormal"])[0])
    best = optimal_timeout(law)
    assert_allclose(best.submissions, 7.47, rtol=0.03)
    E, submissions = simulated(rng, LAW, 0.01, best.timeout, 20_000)
    assert_allclose(best.expected_duration, E, rtol=0.03)
    assert_allclose(best.submissions, submissions, rtol=0.03)
    exact = Competing.of(LAW, np.arange(3000) + 0.5, np.exp(-np.arange(3000) / 100) * -np.expm1(-0.01))
    assert_allclose(optimal_timeout(exact).expected_duration, 646.5, rtol=1e-3)
    # S_f cancels in the condition S = f (E_J + c) of the optimum
    assert_allclose(LAW.hazard(optimal_timeout(exact).timeout), 1 / 646.5, rtol=1e-3)
    assert_allclose(expected_duration(exact, best.timeout), optimal_timeout(exact).expected_duration, rtol=1e-3)
    assert optimal_timeout(LAW).submissions < 1.3  # what the law promised without them


def test_without_failures_it_is_the_defective_law():
    sample = LatencySample.of([3.0, 5, 6, 8, 9, 14], lost=1)
    found = fit(sample, ["lognormal"])[0]
    assert fitted_law(sample, found) == Defective(found.law, found.rho)
    with pytest.raises(FitError, match="no reason"):
        fitted_law(sample, Fit("weibull", "mle", 7, error="no reason"))


def test_laws_that_cannot_compete_are_refused():
    with pytest.raises(LawError, match="continuous"):
        Competing.of(Empirical.of(LatencySample.of([1, 2])), [1.0], [0.5])
    with pytest.raises(LawError, match="exceed 1"):
        Competing.of(LAW, [1.0, 2.0], [0.5, 0.6])
    with pytest.raises(LawError, match="rise"):
        Competing.of(LAW, [2.0, 1.0], [0.5, 0.4])


@pytest.mark.parametrize("rho", [0.0, 0.05, 0.3])
def test_a_rescaled_empirical_law_keeps_its_failures(rho):
    """Probes with ρ = .15 rescaled to another ρ give the same result as probes with that ρ."""
    rng = np.random.default_rng(11)
    law = Empirical.of(probes(rng, 100_000, rho=0.15)).rescaled(rho)
    assert_allclose(law.rho_without_failures, rho, atol=1e-12)
    assert_allclose(law.cdf(500.0) + law.failed(500.0) + law.still_out(500.0), 1, rtol=1e-12)
    E, submissions = simulated(rng, Defective(LAW.law, rho), 0.01, 600.0, 40_000)
    assert_allclose(expected_duration(law, 600.0), E, rtol=0.03)
    assert_allclose(evaluate_timeout(law, 600.0).submissions, submissions, rtol=0.03)


def test_rescaled_to_its_own_ratio_nothing_changes():
    sample = LatencySample.of([1, 2, 2, 7], failed=[2, 5, 9, 9], censored=[1.5, 4], lost=2)
    law = Empirical.of(sample)
    again = law.rescaled(law.rho_without_failures)
    t = np.array([0.5, 1, 2, 5, 7, 9, np.inf])
    for figure in ("cdf", "failed", "still_out"):
        assert_allclose(getattr(again, figure)(t), getattr(law, figure)(t), rtol=1e-13, atol=1e-15)
    assert math.isclose(again.rho, law.rho)
