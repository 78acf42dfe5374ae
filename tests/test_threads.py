"""Threads: results in order, errors as they are, and the same numbers however many there are."""

import os
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pandas as pd
import pytest

import latfit
from latfit import _system
from latfit._system import in_threads, usable_cores
from latfit.fitting import ks_test


def thread_of(_):
    return threading.current_thread()


def test_in_order_and_ahead_of_the_reader(monkeypatch):
    monkeypatch.setattr(_system, "usable_cores", lambda: 3)
    assert list(in_threads(lambda k: k * k, range(50))) == [k * k for k in range(50)]
    assert threading.main_thread() not in in_threads(thread_of, range(5))
    taken = []
    results = in_threads(str, (taken.append(k) or k for k in range(100)))
    next(results)
    assert len(taken) <= 8  # what comes in is not read to its end at once
    results.close()


def test_errors_and_numpy_settings_pass_through(monkeypatch):
    monkeypatch.setattr(_system, "usable_cores", lambda: 2)
    with pytest.raises(ZeroDivisionError):
        list(in_threads(lambda k: 1 / k, [1, 0]))
    with warnings.catch_warnings(), np.errstate(divide="ignore"):
        warnings.simplefilter("error")
        assert list(in_threads(lambda k: float(np.divide(1.0, k)), [np.float64(0)])) == [np.inf]


def test_one_by_one_inside_a_pool():
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: {*in_threads(thread_of, range(3))} == {threading.current_thread()}).result()


@pytest.mark.parametrize("law", ["lognormal", "weibull", "pareto"])
def test_the_number_of_threads_changes_no_number(law, monkeypatch):
    sample = latfit.example_log().sample(cutoff=10_000)
    best = latfit.fit(sample, [law])[0]
    found = []
    for count in (1, 3):
        monkeypatch.setattr(_system, "usable_cores", lambda count=count: count)
        found.append(ks_test(sample, best, bootstrap=199, rng=np.random.default_rng(4)))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("member_of", "files", "cores"),
    [
        ("0::/", {"cpu.max": "100000 100000"}, 1),
        ("0::/a/b", {"a/cpu.max": "50000 100000", "a/b/cpu.max": "max 100000"}, 1),
        ("0::/", {"cpu.max": "max 100000"}, None),
        ("0::/", {}, None),
        ("4:cpu,cpuacct:/job", {"cpu,cpuacct/job/cpu.cfs_quota_us": "150000",
                                "cpu,cpuacct/job/cpu.cfs_period_us": "100000"}, 2),
        ("4:cpu:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ("0::/", {"cpu.max": "9900000 100000"}, None),
    ],
)  # fmt: skip
def test_the_quota_of_a_container_counts(member_of, files, cores, tmp_path, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(16)), raising=False)
    (tmp_path / "member").write_text(member_of + "\n")
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert usable_cores(tmp_path / "member", tmp_path) == (cores or 16)
    assert usable_cores(tmp_path / "absent", tmp_path) == 16


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_no_parser_is_left_running_when_a_command_ends(tmp_path, ending):
    """A pool of threads that is still starting when a process ends aborts it."""
    log = tmp_path / f"log.{ending}"
    frame = pd.DataFrame({"latency": np.arange(1.0, 400), "status": "ok"})
    write = {"csv": frame.to_csv, "parquet": frame.to_parquet, "jsonl": partial(frame.to_json, lines=True)}[ending]
    write(log, **({"orient": "records"} if ending == "jsonl" else {"index": False}))
    count = "import os; print(len(os.listdir('/proc/self/task')))"
    code = f"from latfit import read_log; read_log({str(log)!r}, unit='s'); {count}"
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert int(done.stdout) <= 3, done.stderr  # Python's own, jemalloc's and the one that reads
