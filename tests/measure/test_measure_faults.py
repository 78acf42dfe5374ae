"""Faults of what is measured: a clock that jumps, a server that vanishes, a scheduler that restarts, closed folders."""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import latfit
from latfit.measure import Limits, Pace, journal, measure
from latfit.measure.targets import TARGETS
from systems import slurm, until, why_no_slurm

LATFIT = Path(sys.executable).parent / "latfit"
JUMPS = [timedelta(0), timedelta(hours=-1), timedelta(hours=1), timedelta(days=-400)]


@pytest.mark.parametrize("jump", JUMPS[1:], ids=str)
def test_a_clock_that_jumps_changes_no_latency(jump, tmp_path, monkeypatch):
    """Latencies are those of a monotonic clock; only the times of submission show the jump."""
    calls = itertools.count()

    class Jumping(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + (jump if next(calls) > 8 else timedelta(0))

    monkeypatch.setattr(journal, "datetime", Jumping)
    target = TARGETS["command"](words=("sleep", "0.02"))
    done = measure(target, tmp_path / "log", pace=Pace(2, pause=0.0), limits=Limits(16, 16, 1), seed=1)
    assert done.outcomes["completed"] == 16
    log = latfit.read_log(tmp_path / "log")
    assert log.counts["completed"] == 16
    assert (log.frame["latency"] > 0.02).all()
    assert (log.frame["latency"] < 30).all()
    span = log.frame["submitted"].max() - log.frame["submitted"].min()
    assert abs(span - abs(jump)) < timedelta(minutes=5)


@pytest.mark.parametrize("jump", JUMPS[1:], ids=str)
def test_a_log_whose_clock_jumped_is_read_whole(jump):
    """Whatever the clock did, every probe counts once, and the plain minimum of E_J is the same."""
    rng = np.random.default_rng(3)
    when = pd.date_range("2026-03-01", periods=400, freq="10s")
    frame = pd.DataFrame({"latency": rng.lognormal(2, 1, 400).round(2), "status": "completed", "submitted": when})
    frame.loc[rng.choice(400, 20, replace=False), "status"] = "lost"
    jumped = frame.assign(submitted=[t + jump if i >= 200 else t for i, t in enumerate(when)])
    made = [latfit.analyze(latfit.from_frame(each, latency="latency", status="status", submitted="submitted"),
                           laws=[], test=False, resamples=0) for each in (frame, jumped)]  # fmt: skip
    assert made[0].decision.counts == made[1].decision.counts
    assert made[0].timeout.exact_timeout == made[1].timeout.exact_timeout
    assert made[0].decision.outliers.estimate == made[1].decision.outliers.estimate


def test_a_tracker_whose_clock_jumps():
    """Back by an hour or forth by a century: the timeout stays one, and the state can be kept."""
    rng = np.random.default_rng(4)
    tracker = latfit.Tracker(initial=5.0, cutoff=60.0)
    start = datetime(2026, 3, 1, tzinfo=UTC).timestamp()
    for k in range(2000):
        jump = (0, -3600, 3600, 3e9, -3e9)[k // 400]
        at = start + 300 * k + jump
        t, x = tracker.next(at=at), float(rng.lognormal(0, 1))
        assert 0 < t <= 60
        tracker.observe(min(x, t), "completed" if x <= t else "censored", at=at)
    assert 0.3 < tracker.timeout < 30
    assert latfit.Tracker.from_json(tracker.to_json()).next() == tracker.next()


class Fleeting(BaseHTTPRequestHandler):
    """Answers ten requests; then the server is gone."""

    protocol_version = "HTTP/1.0"

    def do_GET(self):
        with self.server.lock:
            self.server.answered += 1
            if self.server.answered == 10:
                threading.Thread(target=self.server.shutdown, daemon=True).start()
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def test_a_server_that_vanishes(tmp_path, run):
    """Its probes fail with the reason; the run continues to its end, and the log is complete."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Fleeting) as server:
        server.lock, server.answered = threading.Lock(), 0

        def serve():
            server.serve_forever(poll_interval=0.01)
            server.server_close()

        threading.Thread(target=serve, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        done = run("probe", "http", url, "-o", tmp_path / "log", "--probes", 40, "--in-flight", 2, "--pause", "10ms",
                   "--cutoff", "5s", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    outcomes = json.loads(done.stdout)["outcomes"]
    assert sum(outcomes.values()) == 40
    assert outcomes["completed"] >= 9
    assert outcomes["failed"] >= 20
    assert latfit.read_log(tmp_path / "log").counts["failed"] == outcomes["failed"]
    assert '"detail": "refused"' in (tmp_path / "log").read_text()


@pytest.mark.slow
@pytest.mark.skipif(why_no_slurm() is not None, reason=str(why_no_slurm()))
def test_a_scheduler_that_restarts(tmp_path):
    """SLURM's controller is killed and started again while jobs are out: none is lost or counted twice."""
    with slurm(tmp_path / "slurm", nodes=2) as cluster:
        words = ["-o", tmp_path / "log", "--poll", "200ms", "--pause", "50ms", "--in-flight", "3", "--probes", "12"]
        process = subprocess.Popen([LATFIT, "probe", "slurm", *words, "--job", "sleep 0.3", "--cutoff", "90s"],
                                   env=cluster.environment, stderr=subprocess.PIPE, text=True)  # fmt: skip
        log = tmp_path / "log"
        until(lambda: log.exists() and '"end"' in log.read_text(), 60)
        os.kill(int((tmp_path / "slurm" / "ctld.pid").read_text()), signal.SIGKILL)
        time.sleep(1)
        conf = tmp_path / "slurm" / "slurm.conf"
        subprocess.run(["slurmctld", "-f", conf], env=cluster.environment, check=True, capture_output=True, timeout=60)
        said = process.communicate(timeout=240)[1]
        assert process.returncode == 0, said
        until(lambda: cluster.jobs() == [], 60)
    counts = latfit.read_log(log).counts
    assert sum(counts.values()) == 12
    assert counts["completed"] >= 6  # a submission that the controller did not hear has failed
    assert counts["lost"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("words", [["probe", "command", "-o", "closed/log", "--probes", "1", "--", "true"],
                                   ["watch", "log.csv", "--cutoff", "60", "--state", "closed/state"],
                                   ["watch", "log.csv", "--cutoff", "60", "--textfile", "closed/x.prom"]])  # fmt: skip
def test_a_folder_that_cannot_be_written(words, tmp_path):
    from test_faults import bind_root

    (tmp_path / "log.csv").write_text("latency\n" + "1\n2\n3\n" * 20)
    (tmp_path / "closed").mkdir(mode=0o555)
    done = subprocess.run([LATFIT, *words], cwd=tmp_path, capture_output=True, text=True, preexec_fn=bind_root)
    assert done.returncode == 1
    assert done.stderr.count("latfit: ") == 1
    assert "closed" in done.stderr
    assert "Traceback" not in done.stderr
    assert list((tmp_path / "closed").iterdir()) == []
