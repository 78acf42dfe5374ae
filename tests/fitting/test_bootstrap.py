"""Standard errors of least squares against how much the estimates of fresh samples really differ."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from conftest import EGEE
from latfit.cli import main
from latfit.fitting import fit, with_std_errors
from latfit.laws import parse_law
from latfit.sample import LatencySample


def drawn(spec, n, rho, cutoff, rng):
    x = np.where(rng.random(n) < rho, np.inf, parse_law(spec).sample(n, rng))
    back = x <= cutoff
    return LatencySample.of(np.rint(x[back]), censored=[cutoff] * int((~back).sum()), cutoff=cutoff, resolution=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "logs"),
    [("lognormal(mu=5.5,sigma=0.8)", ("sigma",)), ("weibull(shape=1.5,scale=300)", ("shape", "scale"))],
)
def test_errors_are_the_spread_of_fresh_samples(spec, logs):
    law, rng = parse_law(spec), np.random.default_rng(1)
    samples = [drawn(spec, 300, 0.05, 10_000.0, rng) for _ in range(80)]
    fits = [fit(sample, law.name, method="ls")[0] for sample in samples]
    errors = [
        with_std_errors(sample, one, rng=rng).std_errors for sample, one in zip(samples[:8], fits[:8], strict=True)
    ]
    for name, true in law.params.items():
        values = np.array([one.params[name] for one in fits])
        spread = true * np.log(values).std() if name in logs else values.std()
        assert np.mean([each[name] for each in errors]) == pytest.approx(spread, rel=0.3), name
    assert np.mean([each["rho"] for each in errors]) == pytest.approx(np.sqrt(0.05 * 0.95 / 300), rel=0.25)


@pytest.mark.slow
def test_given_ratios_and_held_parameters_have_no_standard_error():
    sample = drawn("lognormal(mu=5.5,sigma=0.8)", 400, 0.05, 10_000.0, np.random.default_rng(2))
    given = with_std_errors(sample, fit(sample, "lognormal", method="ls", rho=0.05)[0], rho=0.05, count=20)
    assert set(given.std_errors) == {"mu", "sigma"}
    hybrid = with_std_errors(sample, fit(sample, "lognormal-pareto", method="ls")[0], count=20)
    assert hybrid.std_errors["t_min"] is None
    assert hybrid.std_errors["t_max"] is None
    assert hybrid.std_errors["mu"] > 0


def test_no_standard_error_at_the_exponential_limit_or_after_a_failure():
    x = np.linspace(0.02, 0.98, 200)
    sample = LatencySample.of(np.rint(1000 * -np.log1p(-(x**0.9))), resolution=1)
    limit = fit(sample, "pareto", method="ls")[0]
    assert limit.at_limit
    found = with_std_errors(sample, limit, count=10)
    assert found.std_errors["a"] is None
    failed = fit(LatencySample.of([5.0, 5.0]), "lognormal", method="ls")[0]
    assert failed.error
    assert with_std_errors(LatencySample.of([5.0, 5.0]), failed) == failed


def test_the_command_prints_them_and_its_p_values_do_not_depend_on_them():
    run = CliRunner()
    common = ["fit", str(EGEE), "--method", "ls", "--law", "lognormal", "--json"]
    told = json.loads(run.invoke(main, [*common, "--bootstrap", "9"]).stdout)["fits"][0]
    assert told["std_errors"]["mu"] == pytest.approx(0.0098, rel=0.4)
    assert told["std_errors"]["rho"] == pytest.approx(np.sqrt(0.0248 * 0.9752 / 2137), rel=0.3)
    plain = json.loads(run.invoke(main, [*common, "--bootstrap", "0"]).stdout)["fits"][0]
    assert plain["std_errors"] is None
    assert plain["params"] == told["params"]
