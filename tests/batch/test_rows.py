"""The batch: rows against the single analysis, files, engines that agree, windows, journals, interruptions."""

import csv
import gzip
import json
import os
import pickle
import pty
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from batch_logs import CUTOFF, write_logs
from conftest import EGEE
from latfit.analysis import analyze
from latfit.batch import engines, run_batch
from latfit.batch.rows import chunk_rows
from latfit.batch.run import open_journal
from latfit.decision import Options, decide
from latfit.errors import LatfitError, LogError
from latfit.evidence import probes_of
from latfit.fitting import fit
from latfit.laws import Empirical
from latfit.logs import read_log
from latfit.restart import expected_duration
from latfit.sample import LatencySample

LATFIT = Path(sys.executable).parent / "latfit"
NEAR = (1 - 1e-9, 1 + 1e-9)
QUICK = {"resamples": 0, "test": False, "workers": 1}


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    return write_logs(tmp_path_factory.mktemp("batch") / "logs", 6)


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_rows_are_those_of_analyze():
    log = read_log(EGEE)
    result = run_batch(EGEE, by="broker", cutoff=10_000, **QUICK)
    groups = analyze(log, by="broker", cutoff=10_000, laws=["exponential"], resamples=0, test=False).groups
    samples = log.samples("broker")
    assert [row["broker"] for row in result.rows] == ["rb1", "rb2", "rb3"]
    for row, group in zip(result.rows, groups, strict=True):
        want, ratio = group.decision.timeout, group.decision.outliers
        assert (row["timeout"], row["probes"], row["count"]) == (want.timeout, ratio.n, ratio.count)
        assert row["expected_duration"] == pytest.approx(want.expected_duration, rel=1e-12)
        assert row["speed_up_vs_cutoff"] == pytest.approx(want.speed_up_vs_cutoff, rel=1e-12)
        assert (row["ratio"], row["ratio_low"]) == (ratio.estimate, ratio.low)
        sample = samples[row["broker"],].cut(10_000)
        best, latencies = fit(sample, [row["best"]])[0], sample.completed.expand()
        assert best.bic <= fit(sample)[0].bic  # laws of many parameters are tried too where the others are far off
        assert json.loads(row["params"]) == pytest.approx(best.params, rel=1e-6)
        assert (row["mean"], row["std"]) == pytest.approx((latencies.mean(), latencies.std(ddof=1)), rel=1e-12)
        assert row["median"] == np.quantile(latencies, 0.5, method="inverted_cdf")


def test_failures_and_early_losses_are_analysed_too():
    rng = np.random.default_rng(2)
    x = rng.lognormal(3, 1, 120)
    sample = LatencySample.of(x[:80], failed=x[80:100], censored=x[100:], resolution=0.0)
    row = chunk_rows({("a",): sample}, Options(resamples=99, test=True))[0][0]
    cut = sample.cut(row["cutoff"])
    want = decide([cut], Options(resamples=0, test=False))[0].timeout
    assert (row["timeout"], row["error"]) == (want.timeout, None)
    assert row["low"] <= row["timeout"] <= (row["high"] or np.inf)
    assert 0 < row["p_bootstrap"] <= 1
    counted = chunk_rows({("a",): sample}, Options(resamples=0, test=False, failed="lost"))[0][0]
    assert counted["count"] >= 20
    assert counted["failed"] == 20


@pytest.mark.slow
def test_groups_of_many_clocks_and_sizes_share_a_chunk():
    rng = np.random.default_rng(3)
    kinds = {
        ("minutes",): LatencySample.of(60.0 * rng.integers(0, 9, 300)),
        ("seconds",): LatencySample.of(np.ceil(rng.lognormal(1, 1, 200))),
        ("fine",): LatencySample.of(rng.lognormal(1, 1, 3000)),
        ("constant",): LatencySample.of(np.full(50, 7.0)),
        ("zeros",): LatencySample.of(np.zeros(50)),
        ("few",): LatencySample.of([1.0, 2.0]),
        ("none",): LatencySample.of([], censored=[5.0, 6.0]),
        ("empty",): LatencySample(),
    }
    made = chunk_rows(kinds, Options(resamples=20, test=True))
    rows = {key: row for key, (row,) in zip(kinds, made, strict=True)}
    for key in kinds:  # the company of others does not change a row, but for rounding in the fits
        alone = chunk_rows({key: kinds[key]}, Options(resamples=20, test=True))[0][0]
        assert {k: v for k, v in alone.items() if k not in ("params", "joint_ratio")} == {
            k: v for k, v in rows[key].items() if k not in ("params", "joint_ratio")
        }
    assert "only 2 of 2 probes completed" in rows["few",]["error"]
    assert rows["none",]["error"]
    assert rows["empty",]["error"]
    assert rows["constant",]["exact_timeout"] is None  # no timeout helps: what is set is an insurance beyond them all
    assert rows["constant",]["timeout"] >= 7
    assert rows["constant",]["expected_duration"] == 7
    assert [rows[key]["error"] for key in list(kinds)[:4]] == [None] * 4


@pytest.mark.slow
def test_three_formats_hold_the_same_table(run, logs, tmp_path):
    for ending in ("csv", "jsonl", "parquet"):
        done = run("batch", logs, "--by", "site", "--resamples", 20, "-o", tmp_path / f"x.{ending}")
        assert (done.returncode, done.stdout) == (0, "")
        assert "10 groups: " in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.csv", "x.jsonl", "x.parquet"]
    rows = rows_of(tmp_path / "x.jsonl")
    assert pq.read_table(tmp_path / "x.parquet").to_pylist() == rows
    with (tmp_path / "x.csv").open() as file:
        written = [["" if value is None else str(value) for value in row.values()] for row in rows]
        assert list(csv.reader(file)) == [list(rows[0]), *written]
    assert all(row["low"] <= row["timeout"] <= (row["high"] or np.inf) for row in rows)
    assert sum(row["probes"] for row in rows) == 6 * 200
    assert {row["cutoff"] for row in rows} == {CUTOFF}


@pytest.mark.slow
def test_rows_do_not_depend_on_files_order_or_workers(logs, tmp_path):
    files = sorted(logs.iterdir())
    together = tmp_path / "one.csv"
    lines = [line for file in files for line in file.read_text().splitlines()[1:]]
    together.write_text("\n".join([files[0].read_text().splitlines()[0], *reversed(lines)]) + "\n")
    options = {"by": "site", "resamples": 20}
    want = run_batch(logs, workers=1, **options).rows
    assert len(want) == 10
    assert run_batch([together], workers=1, **options).rows == want
    assert run_batch([*reversed(files), logs, str(logs / "*.csv")], workers=2, **options).rows == want
    assert run_batch(logs, workers=1, by="site", resamples=20, seed=1).rows != want


@pytest.mark.slow
def test_unreadable_files_have_rows_and_the_others_are_correct(run, tmp_path):
    good = write_logs(tmp_path / "good", 40, count=12, sites=4)
    mixed = write_logs(tmp_path / "mixed", 40, count=12, sites=4)
    (mixed / "empty.csv").write_bytes(b"")
    (mixed / "binary.csv").write_bytes(bytes(range(256)) * 20)
    (mixed / "cut.csv.gz").write_bytes(gzip.compress((mixed / "000.csv").read_bytes())[:-30])
    (mixed / "cut.parquet").write_bytes(b"PAR1" + bytes(100))
    (mixed / "other.csv").write_text("latency,status\n" + "1.5,completed\n" * 20)
    (mixed / ".hidden").write_text("nothing")
    for folder in (good, mixed):
        done = run("batch", folder, "--by", "site", "--resamples", 0, "-o", tmp_path / f"{folder.name}.jsonl")
        assert done.returncode == 0
    bad = ["binary.csv", "cut.csv.gz", "cut.parquet", "empty.csv", "other.csv"]
    assert "logs could not be read: 5" in done.stderr
    assert all(name in done.stderr for name in bad)
    rows = rows_of(tmp_path / "mixed.jsonl")
    assert rows[:4] == rows_of(tmp_path / "good.jsonl")
    assert [Path(row["file"]).name for row in rows[4:]] == bad
    assert all(row["file"] in row["error"] and row["probes"] is None for row in rows[4:])
    assert "empty" in rows[7]["error"]
    assert "no column 'site'" in rows[8]["error"]
    strict = run("batch", mixed, "--by", "site", "--resamples", 0, "--strict", "-o", tmp_path / "strict.jsonl")
    assert strict.returncode == 1
    assert (tmp_path / "strict.jsonl").read_bytes() == (tmp_path / "mixed.jsonl").read_bytes()


def test_a_group_that_is_too_small_still_has_a_row(run, tmp_path):
    (tmp_path / "x.csv").write_text("latency,status,site\n" + "".join(f"{k}.5,completed,a\n" for k in range(1, 30))
                                    + "2,completed,b\n3,completed,b\n")  # fmt: skip
    done = run("batch", tmp_path / "x.csv", "--by", "site", "-o", tmp_path / "x.jsonl")
    rows = rows_of(tmp_path / "x.jsonl")
    assert (done.returncode, [row["site"] for row in rows]) == (0, ["a", "b"])
    assert (rows[0]["error"], rows[1]["timeout"], rows[1]["mean"]) == (None, None, 2.5)
    assert "site=b: only 2 of 2 probes completed" in done.stderr
    assert run("batch", tmp_path / "x.csv", "--by", "site", "-o", tmp_path / "x.jsonl", "--strict").returncode == 1


def test_folders_of_partitioned_parquet_and_files_name_groups(tmp_path):
    rng = np.random.default_rng(4)
    for site in ("a", "b%20c"):
        for day in (1, 2):
            folder = tmp_path / f"site={site}" / f"day={day}"
            folder.mkdir(parents=True)
            frame = pd.DataFrame({"latency": rng.lognormal(1, 1, 20), "status": "completed", "queue": "q"})
            frame.to_parquet(folder / "part-0.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    result = run_batch(tmp_path, by=["queue", "site"], **QUICK)
    assert [(row["queue"], row["site"], row["probes"]) for row in result.rows] == [("q", "a", 40), ("q", "b c", 40)]
    by_file = run_batch(tmp_path, by="file", **QUICK)
    assert [Path(row["file"]).parts[-3:-1] for row in by_file.rows] == [
        ("site=a", "day=1"), ("site=a", "day=2"), ("site=b%20c", "day=1"), ("site=b%20c", "day=2"),
    ]  # fmt: skip
    assert run_batch(tmp_path, **QUICK).rows[0]["probes"] == 80
    frame = by_file.to_frame()
    assert (len(frame), int(frame["probes"].sum()), frame["error"].isna().all()) == (4, 80, True)


def test_names_of_groups_never_hide_results(tmp_path):
    (tmp_path / "x.csv").write_text("latency,status,mean\n" + "".join(f"{k}.5,completed,m\n" for k in range(1, 30)))
    row = run_batch(tmp_path / "x.csv", by="mean", **QUICK).rows[0]
    assert (row["log_mean"], row["mean"]) == ("m", 15.5)


@pytest.mark.slow
def test_the_output_is_not_read_as_a_log(run, logs, tmp_path):
    folder = write_logs(tmp_path / "logs", 2)
    for _ in range(2):
        done = run("batch", folder, "--by", "site", "--resamples", 0, "-o", folder / "out.csv", "--strict")
        assert done.returncode == 0, done.stderr


def test_windows_show_what_keeping_a_timeout_costs(tmp_path):
    rng = np.random.default_rng(5)
    lines = ["submitted,site,latency,status"]
    for day, scale in ((1, 10.0), (8, 10.0), (15, 40.0), (22, 0.0)):
        for site in ("a", "b"):
            for x in rng.lognormal(0, 1, 150 if scale else 2) * (scale or 1):
                lines.append(f"2026-06-{day:02d}T01:00:00Z,{site},{x:.4f},completed")
            lines += [f"2026-06-{day:02d}T01:00:00Z,{site},,lost"] * 5
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    rows = run_batch(tmp_path / "x.csv", by="site", window="7d", **QUICK).rows
    assert [row["window"][:10] for row in rows[:4]] == ["2026-06-01", "2026-06-08", "2026-06-15", "2026-06-22"]
    samples = read_log(tmp_path / "x.csv").samples("site", window="7d")
    for k in range(len(rows)):
        if k % 4 in (0, 3):
            assert rows[k]["kept_regret"] is None
            continue
        law = Empirical.of(samples[rows[k]["site"], rows[k]["window"]].cut(rows[k]["cutoff"]))
        kept, own = (float(expected_duration(law, rows[at]["timeout"])) for at in (k - 1, k))
        assert rows[k]["kept_regret"] == pytest.approx(max(0.0, kept / own - 1), rel=1e-9)
    assert rows[1]["kept_regret"] < 0.1 < 0.3 < rows[2]["kept_regret"]


def test_nothing_to_read_is_an_error(run, tmp_path):
    for given, reason in (
        (tmp_path, "no log"),
        (tmp_path / "*.csv", "no file matches"),
        (tmp_path / "a", "no such file"),
    ):
        done = run("batch", given, "-o", tmp_path / "x.csv")
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert reason in done.stderr
    for name, text in (
        ("a.csv", ""),
        ("b.csv", ""),
        ("c.csv", "site,latency\nx,1\n"),
        ("d.csv", "site,latency\nx,1\n"),
    ):
        (tmp_path / name).write_text(text)
    done = run("batch", tmp_path, "--by", "nosuch", "-o", tmp_path / "x.jsonl")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.index("c.csv: there is no column 'nosuch'") < done.stderr.index("a.csv: the file is empty")
    assert "2 more logs" in done.stderr
    with pytest.raises(LogError, match="not a time window"):
        run_batch(EGEE, window="soon", **QUICK)


@pytest.mark.slow
def test_wrong_usage(run, tmp_path):
    for arguments in ([EGEE], ["-o", tmp_path / "x.csv"], [EGEE, "-o", tmp_path / "x.csv", "--engine", "cloud"],
                      [EGEE, "-o", tmp_path / "x.csv", "--engine", "processes", "--scheduler", "x"]):  # fmt: skip
        assert run("batch", *arguments).returncode == 2
    for output, code, reason in (
        ("x.txt", 2, "use one of .csv"),
        (".", 2, "use one of"),
        ("none/x.csv", 1, "no such folder"),
    ):
        done = run("batch", EGEE, "-o", tmp_path / output)
        assert done.returncode == code
        assert reason in done.stderr
    for window in ("1x", "0", "500ms", "-1d"):
        done = run("batch", EGEE, "-o", tmp_path / "x.csv", f"--window={window}")
        assert (done.returncode, "--window" in done.stderr) == (2, True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_without_dask_the_error_says_how_to_install_it(tmp_path):
    arguments = ["batch", str(EGEE), "-o", str(tmp_path / "x.csv"), "--engine", "dask"]
    code = f"import sys; sys.modules['distributed'] = None; from latfit.cli import main; main({arguments})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'latfit[dask]'" in done.stderr


@pytest.mark.slow
def test_finished_groups_are_not_computed_again(logs, tmp_path):
    options = {"by": "site", "resamples": 20, "workers": 1, "journal": tmp_path / "j"}
    want = run_batch(logs, **options).rows
    whole = (tmp_path / "j").read_bytes()
    header, first, second = whole.splitlines(keepends=True)
    done = json.loads(first)
    done["rows"][0][0]["mean"] = -1.0  # so that it shows where this row came from
    fingerprint = json.loads(header)["fingerprint"]
    with open_journal(tmp_path / "j", fingerprint, resume=False) as (_, add):
        add(0, done["rows"])
    kept = (tmp_path / "j").read_bytes()
    for rest in (b"", second[:-40], second[:40], second.replace(b'"mean"', b'"moan"'), b"\xff\0", b'{"chunk": 1}\n'):
        (tmp_path / "j").write_bytes(kept + rest)
        rows = run_batch(logs, resume=True, **options).rows
        assert (rows[0]["mean"], rows[1:]) == (-1.0, want[1:])
        assert (tmp_path / "j").read_bytes() == kept + second
    for cut in (0, len(header) // 2, len(header)):
        (tmp_path / "j").write_bytes(whole[:cut])
        assert run_batch(logs, resume=True, **options).rows == want


@pytest.mark.slow
def test_a_journal_of_another_run_is_refused(logs, tmp_path):
    options = {"by": "site", "workers": 1, "journal": tmp_path / "j", "resume": True}
    run_batch(logs, resamples=0, **options)
    for other in ({"resamples": 20}, {"resamples": 0, "seed": 1}, {"resamples": 0, "cost": 1.0}):
        with pytest.raises(LatfitError, match="other logs or other options"):
            run_batch(logs, **other, **options)
    with pytest.raises(LatfitError, match="other logs or other options"):
        run_batch(sorted(logs.iterdir())[1:], resamples=0, **options)


@pytest.mark.slow
def test_ctrl_c_stops_with_one_line_and_resume_continues(run, tmp_path):
    logs = write_logs(tmp_path / "logs", 6, count=150, sites=12)
    output, journal = tmp_path / "x.csv", tmp_path / "x.csv.journal"
    arguments = ["batch", logs, "--by", "site", "--window", "1d", "--resamples", 299, "--no-test", "--workers", 2, "-o",
                 output]  # fmt: skip
    process = subprocess.Popen(
        [LATFIT, *map(str, arguments)], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    wait_for(lambda: journal.exists() and journal.read_bytes().count(b"\n") > 1)
    os.killpg(process.pid, signal.SIGINT)
    told = process.communicate(timeout=30)[1]
    assert (process.returncode, told.count("\n")) == (130, 1)
    assert "--resume" in told
    assert not output.exists()
    assert run(*arguments, "--resume").returncode == 0
    assert not journal.exists()
    assert run(*arguments[:-3], 1, "-o", tmp_path / "y.csv").returncode == 0
    assert output.read_bytes() == (tmp_path / "y.csv").read_bytes()


@pytest.mark.slow
def test_progress_on_a_terminal_only(logs, tmp_path):
    terminal, end = pty.openpty()
    arguments = [LATFIT, "batch", logs, "--by", "site", "-o", tmp_path / "x.csv", "--workers", "1"]
    process = subprocess.Popen(arguments, stderr=end)
    os.close(end)
    shown = b""
    try:
        while part := os.read(terminal, 4096):
            shown += part
    except OSError:  # the other end is closed
        pass
    os.close(terminal)
    assert process.wait(timeout=60) == 0
    assert b"groups: " in shown
    assert b" of 10" in shown


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def test_no_worker_is_forked_beside_other_threads(logs, monkeypatch):
    """A lock held by another thread would stay locked in the worker forever."""
    forked = []
    monkeypatch.setattr(engines, "_processes", lambda count: forked.append(count))
    end = threading.Event()
    other = threading.Thread(target=end.wait)
    other.start()
    try:
        rows = run_batch(logs, by="site", resamples=0, test=False, workers=2).rows
    finally:
        end.set()
        other.join()
    assert not forked
    assert len(rows) > 1


def test_a_chunk_survives_pickling_to_a_worker():
    groups, options = {("egee",): probes_of(read_log(EGEE))}, Options(resamples=0, test=False)
    assert chunk_rows(pickle.loads(pickle.dumps(groups)), options) == chunk_rows(groups, options)
