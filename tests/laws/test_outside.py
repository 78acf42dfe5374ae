"""Laws that are not part of the package: one file, and the command line, fits, p-values and batch know it."""

import json
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammainc
from scipy.stats import gamma

from latfit.errors import LawError
from latfit.laws import Defective, Law, parse_law
from latfit.restart import expected_duration, optimal_timeout

RAYLEIGH = """
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from latfit.laws import ContinuousLaw, Parameter, register

@register
@dataclass(frozen=True)
class Rayleigh(ContinuousLaw):
    name: ClassVar[str] = "rayleigh"
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("sigma", "positive", unit="time"),)
    formula: ClassVar[str] = "F(t) = 1 - exp(-t^2/(2 sigma^2))"
    examples: ClassVar[tuple[str, ...]] = ("rayleigh(sigma=100)",)
    tried_by: ClassVar[tuple[str, ...]] = ("mle", "ls")
    sigma: float
    @classmethod
    def start(cls, q1, q2, q3):
        return {"sigma": q2 / 1.1774}
    def _cdf(self, t):
        return -np.expm1(-0.5 * (t / self.sigma) ** 2)
    def _sf(self, t):
        return np.exp(-0.5 * (t / self.sigma) ** 2)
    def _logpdf(self, t):
        return np.log(t) - 2 * np.log(self.sigma) - 0.5 * (t / self.sigma) ** 2
"""

USE_IT = """
import json, sys
import numpy as np
import rayleigh
from click.testing import CliRunner
from latfit.cli import main
from latfit.fitting import SampleBatch, fit, fit_batch
from latfit.fitting import ks_test
from latfit.sample import LatencySample

rng = np.random.default_rng(0)
rows = [np.round(rng.rayleigh(100, 300), 1) for _ in range(2)]
samples = [LatencySample.of(row[row <= 250], censored=np.full((row > 250).sum(), 250.0), cutoff=250.0) for row in rows]
fits = fit(samples[0], rho=0.0)
found = next(f for f in fits if f.name == "rayleigh")
weibull = next(f for f in fits if f.name == "weibull")
together = fit_batch("rayleigh", SampleBatch.of_samples(samples).given(0.0))
np.savetxt("log.csv", rows[0], header="latency", comments="", fmt="%.1f")
said = CliRunner().invoke(main, ["laws"]).output
shown = CliRunner().invoke(main, ["fit", "log.csv", "--law", "rayleigh", "--unit", "s", "--json"])
print(json.dumps({
    "rank": [f.name for f in fits].index("rayleigh"), "error": found.error, "sigma": found.params["sigma"],
    "std_error": found.std_errors["sigma"], "gain": weibull.log_likelihood - found.log_likelihood,
    "batch": [float(x) for x in together.params[:, 0]],
    "sigmas": [fit(one, "rayleigh", rho=0.0)[0].params["sigma"] for one in samples],
    "p": ks_test(samples[0], found, bootstrap=19).p_bootstrap,
    "p_ls": ks_test(samples[0], fit(samples[0], "rayleigh", method="ls", resamples=0)[0], bootstrap=19).p_bootstrap,
    "laws": "rayleigh(sigma=100)" in said, "cli": json.loads(shown.stdout)["fits"][0],
}))
"""


@pytest.mark.slow
def test_a_law_registered_from_outside_works_everywhere(tmp_path):
    (tmp_path / "rayleigh.py").write_text(RAYLEIGH)
    (tmp_path / "use.py").write_text(USE_IT)
    ran = subprocess.run([sys.executable, "use.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    seen = json.loads(ran.stdout)
    assert seen["error"] is None
    assert seen["rank"] == 0  # it is the truth, with one parameter less than Weibull
    assert seen["sigma"] == pytest.approx(100, abs=4 * seen["std_error"])
    assert seen["std_error"] == pytest.approx(seen["sigma"] / (2 * 300**0.5), rel=0.1)
    assert 0 <= seen["gain"] < 8  # Weibull contains it
    assert seen["batch"] == pytest.approx(seen["sigmas"], rel=1e-6)
    assert seen["p"] > 0.025
    assert seen["p_ls"] > 0.025
    assert seen["laws"]
    assert seen["cli"]["law"] == "rayleigh"
    assert seen["cli"]["ks"]["p_asymptotic"] > 0.01


class Erlang2(Law):
    """A cdf and partial moments, and nothing else: gamma with shape 2 and scale 50."""

    name = "erlang-2"
    support = (0.0, np.inf)

    def cdf(self, t):
        return gammainc(2, np.maximum(np.asarray(t, dtype=float), 0) / 50)

    def partial_moment(self, n, t):
        rising = np.prod(np.arange(2, 2 + n)) * 50.0**n
        return rising * gammainc(2 + n, np.maximum(np.asarray(t, dtype=float), 0) / 50)


@pytest.mark.slow
def test_a_cdf_and_partial_moments_are_enough():
    full = parse_law("gamma(shape=2,scale=50)")
    t = np.geomspace(0.01, 2000, 30)
    assert_allclose(Erlang2().pdf(t), gamma(2, scale=50).pdf(t), rtol=1e-8, atol=1e-14)
    mine, theirs = Defective(Erlang2(), 0.025), Defective(full, 0.025)
    assert_allclose(mine.hazard(t), theirs.hazard(t), rtol=1e-8, atol=1e-14)
    for options in ({}, {"cost": 20.0}, {"objective": "std"}, {"objective": "quantile:0.9"}, {"copies": 2}):
        ours, known = optimal_timeout(mine, **options), optimal_timeout(theirs, **options)
        assert_allclose(ours.expected_duration, known.expected_duration, rtol=1e-9)
        assert_allclose(ours.timeout, known.timeout, rtol=1e-4)
        assert ours.verdict == known.verdict
    assert optimal_timeout(Erlang2()).verdict == optimal_timeout(full).verdict
    assert_allclose(expected_duration(Erlang2(), 80.0), expected_duration(full, 80.0), rtol=1e-12)


def test_a_step_law_has_no_density():
    with pytest.raises(LawError, match="no density"):
        Defective(parse_law("discrete(values=[1,2],probs=[0.5,0.5])"), 0.1).pdf(1.0)


def test_the_default_laws_declare_themselves():
    from latfit.fitting import DEFAULT_LAWS, default_laws

    assert tuple(default_laws("mle")) == DEFAULT_LAWS
    assert set(default_laws("ls")) - set(DEFAULT_LAWS) == {"lognormal-pareto"}
