"""A batch killed at random moments continues with --resume; the table is the same to the last byte."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from batch_logs import write_logs
from latfit.cli import main

LATFIT = Path(sys.executable).parent / "latfit"
KILLS = 3  # `scripts/kill 100` makes more of them


def in_session(session):
    """The processes of a session that are still there, zombies apart."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, *numbers = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if state != "Z" and int(numbers[2]) == session:
            found.append(stat.parent.name)
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_kill_9_at_random_moments(tmp_path):
    logs = write_logs(tmp_path / "logs", 4, count=60, sites=8)
    base = ["batch", str(logs), "--by", "site", "--window", "1d", "--resamples", "1", "--no-test", "--seed", "3"]

    def run(output, *more):
        assert not main([*base, "-o", str(output), *more], standalone_mode=False)
        return output.read_bytes()

    start = time.monotonic()
    subprocess.run([LATFIT, *base, "-o", tmp_path / "whole.csv"], check=True, capture_output=True)
    want, whole = (tmp_path / "whole.csv").read_bytes(), time.monotonic() - start
    moments, interrupted = random.Random(4), 0
    for k in range(KILLS):
        output = tmp_path / f"{k}.csv"
        journal = tmp_path / f"{k}.csv.journal"
        workers = ("--workers", str(1 + k % 2))
        process = subprocess.Popen(
            [LATFIT, *base, "-o", output, *workers], stderr=subprocess.DEVNULL, start_new_session=True
        )
        if k % 4:  # at any moment once it has begun to finish groups; every fourth at any moment at all
            while process.poll() is None and not journal.exists():
                time.sleep(0.002)
            time.sleep(moments.uniform(0, 0.15 * whole))
        else:
            time.sleep(moments.uniform(0, whole))
        process.kill()
        process.wait()
        interrupted += journal.exists() and not output.exists()
        gone = time.monotonic() + 10
        while in_session(process.pid) and time.monotonic() < gone:
            time.sleep(0.01)
        assert not in_session(process.pid), "workers outlived the run"
        assert run(output, "--resume", "--workers", "1") == want
        assert not journal.exists()
    assert interrupted >= 1
