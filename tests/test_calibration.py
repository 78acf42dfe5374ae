"""Intervals that would be grossly off, where the other tests do not look: small samples, few outliers, boundaries."""

import importlib

import numpy as np
import pytest

from conftest import REPO
from latfit.decision import Options, decide
from latfit.fitting import Fit, SampleBatch, fit_batch, ks_test
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
    found, fixed = fit_batch(law.name, batch), fit_batch(law.name, batch.given(rho))
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_script_runs_and_fills_its_page(calibration):
    done = calibration.results(list(calibration.PARTS), 2, 1)
    page = calibration.page(done, 2)
    assert "{{" not in page
    assert all(table in page for table in calibration.tables(calibration.rows_of(done)).values())


def test_a_stopped_run_continues(calibration, tmp_path, capsys):
    journal = tmp_path / "journal.jsonl"
    first = calibration.results(["ratios"], 2, 1, journal)
    kept = journal.read_text().splitlines()
    assert len(kept) == len(first) > 1
    journal.write_text("\n".join(kept[:-1]) + "\n")
    capsys.readouterr()
    again = calibration.results(["ratios"], 2, 1, journal)
    assert [one.rows for one in again] == [one.rows for one in first]
    assert capsys.readouterr().err.count("ratios") == 1  # what was missing, alone
    calibration.results(["ratios"], 3, 1, journal)  # other rounds are other tasks
    assert len(journal.read_text().splitlines()) == 2 * len(first)


@pytest.fixture
def probed(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module("calibration.probed")


@pytest.mark.parametrize(
    "more", [{}, {"cost": 40.0}, {"fails": 0.002}, {"step": 60.0}, {"rho": 0.1, "cutoff": 1500.0}], ids=str
)
def test_the_oracle_of_the_calibration_against_simulated_jobs(probed, more):
    """Jobs of the case under a timeout, simulated attempt by attempt."""
    case = probed.Case("lognormal(mu=5.5,sigma=1)", 1, **more)
    truth, rng, timeout = probed.Truth(case), np.random.default_rng(6), 420.0
    jobs = 40_000
    spent, alive = np.zeros(jobs), np.arange(jobs)
    while alive.size:
        seen = case._replace(n=alive.size).probes(rng)
        done = (seen.status == 0) & (seen.latency <= timeout)
        failed = (seen.status == 1) & (seen.latency <= timeout)
        spent[alive] += np.where(done | failed, seen.latency, timeout) + np.where(done, 0.0, case.cost)
        alive = alive[~done]
    assert truth.at(timeout) == pytest.approx(spent.mean(), abs=4 * spent.std() / np.sqrt(jobs))
    assert truth.least == pytest.approx(min(truth.at(t) for t in truth.t[1:2000]), rel=1e-9)


def test_the_prose_says_what_the_tables_say(probed):
    claims = importlib.import_module("calibration.claims")
    row = importlib.import_module("calibration.cases").Row
    rows = [
        row("timeout", {"law": "a", "": ""}, {"timeout": "98.0", "E_J": "91.5 ↓", "speed-up": "95.0"}),
        row(
            "timeout", {"law": "b", "": "AR(0.97); ‡ few"}, {"timeout": "80.0 ↓", "E_J": "70.0 ↓", "speed-up": "60.0 ↓"}
        ),
        row("timeout", {"law": "c", "": "cost 5 s"}, {"timeout": "94.0", "E_J": "96.5", "speed-up": "99.0 ↑"}),
        row("profile", {"law": "pareto(1, 2)"}, {"first parameter": "a 99.2 ↑", "second parameter": "nu 98.0"}),
    ]
    said = claims.claims(rows)
    assert said["range timeout"] == "94 to 98 %"
    assert said["range E_J"] == "92 to 96 %"
    assert said["range speed-up"] == "95 to 99 %"
    assert said["range profile pareto"] == "98 to 99 %"
    assert said["range joint small"] == "–"


def test_coverage_is_marked_only_where_chance_does_not_explain_it(probed):
    cases = importlib.import_module("calibration.cases")
    assert cases.coverage([True] * 95 + [False] * 5) == "95.0"
    assert cases.coverage([True] * 80 + [False] * 20) == "80.0 ↓"
    assert cases.coverage([True] * 88 + [False] * 12) == "88.0"  # of 100 logs
    assert cases.coverage([True] * 880 + [False] * 120) == "88.0 ↓"  # of 1000
    assert cases.coverage([True] * 1000) == "100.0 ↑"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "n", "rho"), [("lognormal(mu=5.5,sigma=0.4)", 100, 0.02), ("weibull(shape=1.1,scale=300)", 200, 0.0)]
)
def test_few_outliers_and_flat_curves(probed, spec, n, rho):
    """The best timeout lies beyond the last completion, or anywhere: its interval covered 73 to 87 % here."""
    case, rng, hits = probed.Case(spec, n, rho), np.random.default_rng(7), []
    truth = probed.Truth(case)
    for _ in range(60):
        asked = Options(resamples=79, test=False, laws=(), cutoff=case.cutoff)
        own = decide([case.probes(rng).sample], asked)[0].timeout
        (early, late), (low, high) = own.intervals.timeout, own.intervals.expected_duration
        inside = ((truth.best >= early) & (truth.best <= late)).any()
        hits.append([inside, low <= truth.at(own.timeout) <= high])
    assert covers(np.array(hits)[:, 0], above=1)
    assert covers(np.array(hits)[:, 1], above=1)


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
