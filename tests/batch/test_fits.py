"""Batch fitting: a row a group and law, as the single commands have it, on every engine, resumable."""

import json

import numpy as np
import pandas as pd
import pytest

import latfit
from conftest import EGEE
from latfit.batch.rows import FIT_FIELDS
from latfit.batch.run import run_batch

QUICK = {"resamples": 0, "test": False, "workers": 1, "cutoff": 10_000}


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("method", ["ls", "mle"])
def test_rows_are_those_of_fit_and_timeout(run, tmp_path, method):
    out = tmp_path / "fits.jsonl"
    laws = ("--law", "lognormal", "--law", "weibull")
    done = run("batch", EGEE, "--by", "broker", *laws, "--method", method, "--cutoff", 10_000, "--no-test", "-o", out)
    assert done.returncode == 0, done.stderr
    rows = rows_of(out)
    assert [(row["broker"], row["law"]) for row in rows] == [
        (broker, law) for broker in ("rb1", "rb2", "rb3") for law in ("lognormal", "weibull")
    ]
    row = rows[2]
    shared = ("--where", "broker=rb2", "--cutoff", 10_000, "--json")
    fit = json.loads(run("fit", EGEE, "--law", "lognormal", "--method", method, "--bootstrap", 0, *shared).stdout)[
        "fits"
    ][0]
    assert json.loads(row["params"]) == pytest.approx(fit["params"], rel=1e-6)
    for name in ("rho", "sse" if method == "ls" else "bic"):
        assert row[name] == pytest.approx(fit[name], rel=1e-6)
    assert (row["ks"], row["d_n"]) == pytest.approx((fit["ks"]["statistic"], fit["ks"]["d_n"]), rel=1e-5)
    assert row["d_n_completed"] == pytest.approx(fit["ks"]["completed"]["d_n"], rel=1e-5)
    best = json.loads(run("timeout", EGEE, "--law", "lognormal", "--method", method, "--resamples", 0, *shared).stdout)
    assert row["timeout"] == pytest.approx(best["timeout"], rel=1e-5)
    assert row["expected_duration"] == pytest.approx(best["expected_duration"], rel=1e-7)
    assert row["speed_up_vs_cutoff"] == pytest.approx(best["speed_up_vs_cutoff"], rel=1e-7)
    assert set(json.loads(row["std_errors"])) == {"mu", "sigma", "rho"}
    assert row["speed_up"] is None  # with outliers waiting for ever is infinite


@pytest.mark.slow
def test_engines_agree_and_a_run_can_resume(tmp_path):
    rng, logs = np.random.default_rng(2), tmp_path / "probes.csv"
    sites = np.repeat([f"s{i:02d}" for i in range(20)], 60)
    pd.DataFrame({"site": sites, "latency": rng.lognormal(3, 1, 1200)}).to_csv(logs, index=False)
    how = {"by": "site", "laws": ["lognormal", "weibull"], "method": "ls", "resamples": 0, "test": True}
    one, two, dask = (
        run_batch(logs, **how, engine=engine, workers=workers).rows
        for engine, workers in (("processes", 1), ("processes", 2), ("dask", 2))
    )
    assert len(one) == 40
    assert one == two == dask
    assert all(0 < row["p_bootstrap"] <= 1 for row in one)
    journal = tmp_path / "journal"
    run_batch(logs, **how, journal=journal, workers=1)
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:2]))  # killed after the first chunk
    asked = []
    resumed = run_batch(
        logs,
        **how,
        journal=journal,
        resume=True,
        workers=1,
        progress=lambda stage, done, _: asked.append((stage, done)),
    )
    assert resumed.rows == one
    assert ("groups", 8) in asked


def test_a_failed_fit_gives_its_reason(tmp_path):
    logs = tmp_path / "probes.csv"
    frame = pd.DataFrame(
        {"site": list("aaab"), "latency": [1.0, 2.0, 5.0, 3.0], "status": ["ok", "ok", "ok", "timeout"]}
    )
    frame.to_csv(logs, index=False)
    for method in ("mle", "ls"):
        result = run_batch(logs, by="site", laws=["lognormal"], method=method, resamples=0, test=False, workers=1)
        good, bad = result.rows
        assert good["error"] is None
        assert good["timeout"] is None or good["timeout"] >= 0
        assert bad["error"]
        assert bad["timeout"] is None
    with pytest.raises(latfit.LawError, match="cannot be fitted"):
        run_batch(logs, by="site", laws=["discrete"], method="mle", workers=1)


@pytest.mark.slow
def test_groups_of_a_frame_are_the_rows_of_batch():
    rows = run_batch(EGEE, by="broker", laws=["gamma"], method="mle", **QUICK).rows
    frame = latfit.example_log().frame.rename(columns={"latency": "rtt"})
    fits = latfit.fit_groups(frame, "broker", "gamma", latency="rtt", unit="s", cutoff=10_000)
    assert list(fits.columns) == ["broker", *FIT_FIELDS]
    assert fits["timeout"].tolist() == [row["timeout"] for row in rows]
    assert fits["params"][1] == json.loads(rows[1]["params"])
    alone = latfit.fit(latfit.example_log().groups("broker")[("rb1",)].sample(cutoff=10_000), "gamma")[0]
    assert fits["params"][0] == pytest.approx(alone.params, rel=1e-6)
    default = latfit.fit_groups(latfit.example_log(), ["broker"], method="ls", cutoff=10_000)
    assert set(default["law"]) == set(latfit.fitting.default_laws("ls"))
