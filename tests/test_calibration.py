"""Intervals that would be grossly off, where the other tests do not look: small samples, few outliers, boundaries."""

import importlib

import numpy as np
import pytest

from conftest import REPO
from latfit.decision import Options, decide
from latfit.fitting import Fit, SampleBatch, fit_batch
from latfit.goodness import ks_test
from latfit.laws import Defective, parse_law
from latfit.outliers import outlier_ratio
from latfit.restart import expected_duration, optimal_timeout
from latfit.sample import LatencySample

SCRIPTS = REPO / "scripts"


def sample_of(x, cutoff):
    back = x <= cutoff
    return LatencySample.of(x[back], censored=[cutoff] * int((~back).sum()), cutoff=cutoff, resolution=0)


def covers(hits, above=0.99):
    """Whether the share of hits is between 95 % less 3.5 binomial standard errors and `above`."""
    return 0.95 - 3.5 * np.sqrt(0.95 * 0.05 / len(hits)) <= np.mean(hits) <= above


@pytest.mark.parametrize("spec", ["weibull(shape=1.5,scale=300)", "lognormal(mu=5.5,sigma=1)"])
def test_small_samples_cut_early(spec):
    """One in ten to thirty has ρ estimated as 0: errors of a known ρ covered Weibull's scale in 86 %."""
    law, rng, rho = parse_law(spec), np.random.default_rng(1), 0.1
    x = np.where(rng.random((400, 200)) < rho, np.inf, law.sample((400, 200), rng))
    batch = SampleBatch.of_rows(x, float(law.ppf(0.9)))
    found, fixed = fit_batch(law.name, batch), fit_batch(law.name, batch, rho=rho)
    assert (found.rho == 0).any()
    assert covers(2 * (found.log_likelihood - fixed.log_likelihood) <= 3.841459)
    for i, true in enumerate(law.params.values()):
        error = np.sqrt(found.covariance[:, i, i])
        assert np.isfinite(error).all()
        assert covers(np.abs(np.log(found.params[:, i] / true)) <= 1.96 * error / found.params[:, i])


def test_counted_ratio_of_small_samples():
    rng = np.random.default_rng(2)
    k = rng.binomial(60, 0.1, 300)
    ratios = [outlier_ratio(LatencySample.of([1.0] * (60 - i), lost=int(i), resolution=0), cutoff=5) for i in k]
    assert covers([ratio.low <= 0.1 <= ratio.high for ratio in ratios])


def test_speed_up_with_few_outliers():
    """Two outliers expected in 200 probes, none in one sample of seven: a plain interval covered 85 %."""
    law, cutoff, n = Defective(parse_law("gamma(shape=2.5,scale=100)"), 0.01), 5000.0, 200
    best = optimal_timeout(law).expected_duration
    truth = best, float(expected_duration(law, cutoff)) / best
    rng, hits = np.random.default_rng(3), []
    for _ in range(120):
        sample = sample_of(law.sample(n, rng), cutoff)
        got = decide([sample], Options(resamples=79, test=False, laws=("exponential",)))[0].timeout.intervals
        pairs = zip((got.expected_duration, got.speed_up), truth, strict=True)
        hits.append([low <= true <= high for (low, high), true in pairs])
    duration, speed_up = np.array(hits).T
    assert covers(duration)
    assert covers(speed_up, above=1)


def test_p_values_with_known_parameters():
    law, rng, p = parse_law("gamma(shape=2,scale=50)"), np.random.default_rng(4), []
    truth = Fit(law.name, "mle", 300, law=law, rho=0.0, params=dict(law.params))
    for _ in range(400):
        p.append(ks_test(LatencySample.of(law.sample(300, rng), resolution=0), truth, bootstrap=0).p_asymptotic)
    for level in (0.1, 0.5, 0.9):
        assert np.mean(np.array(p) <= level) == pytest.approx(
            level, abs=3.5 * np.sqrt(level * (1 - level) / 400) + 0.02
        )


@pytest.fixture
def calibration(monkeypatch):
    """The package of scripts/calibrate, with one task of each kind."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    script = importlib.import_module("calibration.__main__")
    for part in script.PARTS:
        module = importlib.import_module(f"calibration.{part}")
        kinds = {task.run: task for task in reversed(module.tasks())}
        monkeypatch.setattr(module, "tasks", lambda kinds=kinds: list(kinds.values()))
    return script


def test_the_script_runs_and_fills_its_page(calibration):
    rows = list(calibration.results(list(calibration.PARTS), 2, 1))
    page = calibration.page(rows, 2)
    assert "{{" not in page
    assert all(table in page for table in calibration.tables(rows).values())


def test_the_script_from_the_shell(calibration, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["calibrate", "--quick", "ratios"])
    calibration.main()
    done = capsys.readouterr()
    assert "| ρ | n = 50 |" in done.out
    assert "1/4 ratios" in done.err
    monkeypatch.setattr("sys.argv", ["calibrate", "3", "nonsense"])
    with pytest.raises(SystemExit):
        calibration.main()
    assert "there is no part nonsense" in capsys.readouterr().err


def test_the_report_is_that_of_the_page():
    report, page = (REPO / "docs/calibration.md").read_text(), (SCRIPTS / "calibration/page.md").read_text()
    for paragraph in page.split("\n\n"):
        if "{{" not in paragraph:
            assert paragraph.strip() in report
