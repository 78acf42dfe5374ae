"""The batch on a real Dask cluster: a scheduler and two workers on loopback, one of them killed."""

import json
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from batch_logs import write_logs
from latfit.batch import run_batch
from latfit.errors import LatfitError

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not find_spec("distributed"), reason="distributed is not installed")]
DASK = Path(sys.executable).parent / "dask"
LATFIT = Path(sys.executable).parent / "latfit"


def wait_for(condition, seconds=180):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


@pytest.fixture
def cluster(tmp_path):
    """The address of a scheduler, and its two workers, each one process with one thread."""
    about, started = tmp_path / "scheduler.json", []

    def start(*arguments):
        with (tmp_path / f"dask-{len(started)}.txt").open("w") as told:
            started.append(subprocess.Popen([DASK, *map(str, arguments)], stdout=told, stderr=told))
        return started[-1]

    try:
        start("scheduler", "--host", "127.0.0.1", "--port", 0, "--no-dashboard", "--scheduler-file", about)
        wait_for(lambda: about.exists() and about.read_text().endswith("}"))
        address = json.loads(about.read_text())["address"]
        here = ("--no-nanny", "--nthreads", 1, "--no-dashboard", "--local-directory", tmp_path)
        workers = [start("worker", address, "--host", "127.0.0.1", *here) for _ in range(2)]
        yield address, workers
    finally:
        for process in started:  # Dask's own orderly end may take for ever
            process.kill()
            process.wait()


def test_two_workers_give_the_rows_of_processes_and_one_may_die(cluster, tmp_path):
    address, workers = cluster
    logs = write_logs(tmp_path / "logs", 6, count=150, sites=6)
    arguments = ["batch", logs, "--by", "site", "--window", "1d", "--resamples", 499, "--no-test"]
    outputs = {name: tmp_path / f"{name}.jsonl" for name in ("processes", "dask", "killed")}

    def begin(name, *more):
        return subprocess.Popen(
            [LATFIT, *map(str, [*arguments, "-o", outputs[name], *more])], stderr=subprocess.PIPE, text=True
        )

    for name, more in (("processes", ["--workers", 2]), ("dask", ["--scheduler", address])):
        process = begin(name, *more)
        told = process.communicate(timeout=120)[1]
        assert process.returncode == 0, told
        assert "36 groups: " in told
    assert outputs["dask"].read_bytes() == outputs["processes"].read_bytes()

    process = begin("killed", "--scheduler", address)
    journal = tmp_path / "killed.jsonl.journal"
    wait_for(lambda: journal.exists() and journal.read_bytes().count(b"\n") > 1)
    workers[0].kill()
    assert workers[0].wait() == -9
    assert not outputs["killed"].exists()
    told = process.communicate(timeout=120)[1]
    assert process.returncode == 0, told
    assert outputs["killed"].read_bytes() == outputs["processes"].read_bytes()


def test_a_local_cluster_is_started_and_stopped(run, tmp_path):
    logs = write_logs(tmp_path / "logs", 3, count=60, sites=3)
    arguments = ["batch", logs, "--by", "site", "--resamples", 0, "--no-test"]
    done = run(*arguments, "--engine", "dask", "--workers", 1, "-o", tmp_path / "a.csv")
    assert done.returncode == 0, done.stderr
    assert run(*arguments, "--workers", 1, "-o", tmp_path / "b.csv").returncode == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert done.stderr.count("\n") == 1, done.stderr


def test_no_scheduler_there(run, tmp_path):
    logs = write_logs(tmp_path / "logs", 1)
    done = run("batch", logs, "-o", tmp_path / "x.csv", "--scheduler", "tcp://127.0.0.1:1")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "no Dask scheduler answers" in done.stderr
    with pytest.raises(LatfitError, match="no Dask scheduler answers"):
        run_batch(logs, engine="dask", scheduler="nonsense://here")
