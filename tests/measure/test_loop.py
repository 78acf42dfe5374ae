"""What the loop promises: how many at a time, how often, until when, and that a breaker ends it."""

import json

import numpy as np
import pytest

import latfit
from latfit.measure import Limits, Pace, careful, measure
from latfit.measure.targets.command import Command
from virtual import Scripted


def measured(path, script, **options):
    """A run, and the lines of its log."""
    done = measure(Scripted(script), path, seed=3, **options)
    return done, [json.loads(line) for line in path.read_text().splitlines()]


def most_in_flight(lines):
    return int(np.cumsum([("probe" in line) - ("end" in line) for line in lines]).max())


def test_in_flight_is_kept_and_not_exceeded(tmp_path, clock):
    pace = Pace(3, pause=0.0)
    done, lines = measured(tmp_path / "log", lambda attempt: 0.1, pace=pace, limits=Limits(15, 15, 1))
    assert (most_in_flight(lines), done.jobs_done) == (3, 15)
    assert done.seconds == pytest.approx(0.5, abs=1e-4)


def test_poisson_arrivals_do_not_wait_for_the_slow(tmp_path, clock):
    pace = Pace(100, "poisson", 40.0)
    done, lines = measured(tmp_path / "log", lambda attempt: 0.5, pace=pace, limits=Limits(2000, 2000, 1))
    gaps = np.diff([line["t"] for line in lines if "probe" in line])
    assert done.skipped == 0
    assert gaps.mean() == pytest.approx(1 / 40, rel=0.07)  # a closed loop of n would give .5/n
    assert gaps.std() / gaps.mean() == pytest.approx(1, abs=0.07)  # exponential
    few = Pace(2, "poisson", 40.0)
    done, lines = measured(tmp_path / "few", lambda attempt: 0.5, pace=few, limits=Limits(1000, 1000, 1, 10.0))
    assert done.skipped > 100
    assert "arrivals were skipped" in done.warnings[0]
    assert most_in_flight(lines) == 2


def test_rate_and_duration_limit_a_closed_loop(tmp_path, clock):
    limits = Limits(1000, 1000, 1, 1.0)
    done, _ = measured(tmp_path / "log", lambda attempt: 0.1, pace=Pace(30, "closed", 20.0, 0.0), limits=limits)
    assert done.reason == "the duration is over"
    assert 19 <= done.submissions <= 21


def test_random_pauses_are_uniform(tmp_path, clock):
    limits = Limits(800, 800, 1)
    done, _ = measured(tmp_path / "log", lambda attempt: 1.0, pace=Pace(1, pause=2.0), limits=limits)
    assert done.seconds / 800 == pytest.approx(2.0, rel=0.04)


def sick(job):
    """A quarter of the jobs, whatever the attempt."""
    return job % 4 == 1


def sticky(attempt):
    return 0.42 if sick(attempt.job) else 0.025


def test_jobs_on_a_sticky_system_are_stopped_by_the_breaker(tmp_path, run, clock, monkeypatch):
    monkeypatch.setattr(Command, "open", lambda self, run: Scripted(sticky).open(run))
    words = ("--in-flight", 10, "--probes", 400, "--pause", 0, "--policy", "timeout(t=0.1)", "--seed", 1)
    done = run("probe", "command", "-o", tmp_path / "log", *words, "--", "true")
    assert done.returncode == 1
    assert "is not a new draw" in done.stderr
    frame = latfit.read_log(tmp_path / "log").frame
    assert 10 <= (frame["attempt"] > 1).sum() < 40
    assert frame["job"].nunique() < 100


def test_the_careful_schedule_completes_jobs_on_a_sticky_system(tmp_path, clock):
    done, _ = measured(
        tmp_path / "log", sticky, pace=Pace(10, pause=0.0), limits=Limits(60, 600, 20), plan=careful(0.1)
    )
    assert done.jobs_done == 60
    frame = latfit.read_log(tmp_path / "log").frame
    slow = frame[[sick(job) for job in frame["job"]]]
    assert slow["attempt"].max() == 4  # 100, 200, 400, 800 ms: the fourth is long enough
    limits = np.minimum(0.1 * 2.0 ** (slow["attempt"] - 1), 0.42)
    assert slow["latency"].to_numpy() == pytest.approx(limits.to_numpy(), abs=1e-5)
