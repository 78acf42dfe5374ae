"""Real timeouts in a client: commands, HTTP and coroutines, with a log and something like a tracker."""

import asyncio
import itertools
import json
import subprocess
import sys
import time
from contextlib import closing

import numpy as np
import pytest

import latfit
from hanging import HangingServer
from latfit.errors import RestartError
from latfit.retrying import Retrying
from latfit.verify import jobs_of, read_attempts

pytest.importorskip("tenacity")


class Noted:
    """Like a Tracker: gives a timeout, and takes what was seen."""

    def __init__(self, timeout):
        self.timeout, self.seen = timeout, []

    def next(self):
        return self.timeout

    def observe(self, latency, status):
        self.seen.append((latency, status))


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_a_command_is_cut_and_tried_again(tmp_path):
    seconds = itertools.chain([30, 30], itertools.repeat(0))  # a busy machine may be slow to start Python
    noted = Noted(0.5)

    def attempt(t):
        return subprocess.run(
            [sys.executable, "-c", f"import time; time.sleep({next(seconds)})"], timeout=t, check=True
        )

    Retrying(noted, attempts=9).call(attempt)
    assert [status for _, status in noted.seen][:2] == ["censored", "censored"]
    assert all(latency >= 0.5 for latency, status in noted.seen if status == "censored")


def test_a_coroutine_is_really_cut(tmp_path):
    started, cancelled = [], []

    async def hang(t):
        started.append(time.monotonic())
        try:
            await asyncio.sleep(0 if len(started) == 3 else 30)
        except asyncio.CancelledError:
            cancelled.append(t)
            raise
        return "done"

    path = tmp_path / "attempts.jsonl"
    assert asyncio.run(Retrying([0.05, 0.1, 60.0], attempts=4, log=path).acall(hang)) == "done"
    assert cancelled == [0.05, 0.1]
    told = rows(path)
    assert [row["attempt"] for row in told] == [1, 2, 3]
    assert [row["status"] for row in told] == ["censored", "censored", "completed"]
    assert len({row["job"] for row in told}) == 1


def assert_cut_and_repeated(noted, arrivals):
    """Two attempts hang and the next is answered; more are made if the machine stalls before they reach the server."""
    *cut, (_, last) = noted.seen
    assert last == "completed"
    assert all(status == "censored" and latency > 0.99 * noted.timeout for latency, status in cut)
    assert 3 <= len(arrivals) <= len(noted.seen)


@pytest.mark.slow
def test_http_by_httpx():
    httpx, noted = pytest.importorskip("httpx"), Noted(0.3)
    with closing(HangingServer()) as server, httpx.Client() as client:
        got = Retrying(noted, attempts=20).call(lambda t: client.get(server.url, timeout=t))
        assert got.content == b"<ok/>"
    assert_cut_and_repeated(noted, server.arrivals)


def test_grpc_deadlines_are_timeouts():
    grpc = pytest.importorskip("grpc")
    from real_tools import _grpc_server

    noted = Noted(0.3)
    with _grpc_server() as (target, port), grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary("/Echo/Call")
        assert Retrying(noted, attempts=20).call(lambda t: call(b"", timeout=t)) == b"ok"
    assert_cut_and_repeated(noted, target.arrivals)


def test_only_timeouts_and_errors_are_retried():
    noted, errors = Noted(1.0), [ConnectionError("refused"), ValueError("mine")]
    with pytest.raises(ValueError, match="mine"):
        Retrying(noted, attempts=5, failures=(ConnectionError,)).call(lambda t: (_ for _ in ()).throw(errors.pop(0)))
    assert [status for _, status in noted.seen] == ["failed", "failed"]
    with pytest.raises(TimeoutError):
        Retrying(1.0, attempts=2).call(lambda t: (_ for _ in ()).throw(TimeoutError))


def test_the_log_is_one_that_latfit_reads(tmp_path):
    path = tmp_path / "attempts.jsonl"
    patient = Retrying(0.2, attempts=50, log=path)

    async def work(k):
        calls = itertools.chain([30] * (k % 3), itertools.repeat(0.001))
        await patient.acall(lambda t: asyncio.sleep(next(calls)))

    async def all_of_it():
        await asyncio.gather(*(work(k) for k in range(30)))

    asyncio.run(all_of_it())
    jobs = jobs_of(read_attempts(path))
    assert jobs.durations.size == 30
    assert jobs.attempts.n >= 60  # on a busy machine a fast call may be cut too
    assert jobs.given_up.size == jobs.in_flight == 0
    assert latfit.read_log(path, columns={"id": ""}).counts["censored"] == jobs.attempts.n - 30


@pytest.mark.parametrize("limit", [None, float("inf")])
def test_the_recommended_schedule_is_run_and_ends_in_waiting(tmp_path, limit):
    """Every attempt that hangs is cut as scheduled, then the last one has the cutoff, or no limit."""
    rng = np.random.default_rng(1)
    x = np.where(rng.random(400) < 0.08, 4.0, rng.uniform(0.01, 0.03, 400))
    analysis = latfit.analyze(x, cutoff=5.0, laws=(), test=False, resamples=0)
    timeouts = list(analysis.decision.timeout.retry.timeouts)
    patient = Retrying.of(analysis, limit=limit, log=tmp_path / "attempts.jsonl")
    limits = []

    async def work(t):
        limits.append(t)
        await asyncio.sleep(30 if len(limits) <= len(timeouts) else 0.001)

    asyncio.run(patient.acall(work))
    assert limits == [*timeouts, 5.0 if limit is None else None]
    rows = [json.loads(line) for line in (tmp_path / "attempts.jsonl").read_text().splitlines()]
    assert [row["status"] for row in rows] == ["censored"] * len(timeouts) + ["completed"]
    assert all(row["latency"] > 0.99 * t for row, t in zip(rows, timeouts, strict=False))  # later on a busy machine
    limits.clear()
    with pytest.raises(TimeoutError):
        patient.call(lambda t: (_ for _ in ()).throw(TimeoutError(limits.append(t))))
    assert len(limits) == len(timeouts) + 1


def test_waiting_means_one_attempt():
    wait = latfit.analyze(np.linspace(1.0, 1.1, 200), cutoff=5.0, laws=(), test=False, resamples=0)
    assert wait.decision.timeout.retry is None
    limits = []
    with pytest.raises(TimeoutError):
        Retrying.of(wait).call(lambda t: (_ for _ in ()).throw(TimeoutError(limits.append(t))))
    assert limits == [5.0]


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), [float("inf"), 1], [], [1, 0], "soon"])
def test_wrong_timeouts(wrong):
    with pytest.raises(RestartError):
        Retrying(wrong)


def test_wrong_numbers():
    with pytest.raises(RestartError):
        Retrying(1.0, attempts=0)
    with pytest.raises(RestartError):
        Retrying(1.0, pause=-1)
