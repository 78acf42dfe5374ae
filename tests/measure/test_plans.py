"""Policies in a running client: their steps, and a loop that follows them with known latencies."""

import json
import math
from itertools import islice
from random import Random

import pytest

import latfit
from latfit.errors import ProbeError
from latfit.measure import (
    Breaker,
    Limits,
    Pace,
    careful,
    measure,
    paired,
    policy_plan,
    tracked,
)
from latfit.measure.loop import Step
from latfit.restart.policies import REGISTRY
from virtual import Scripted


def history(tmp_path, script, plan, attempts=20):
    """(attempt, submitted at, status, latency) of one job."""
    log = tmp_path / "log"
    target = Scripted(lambda attempt: script[min(attempt.attempt, len(script)) - 1])
    measured = measure(target, log, pace=Pace(1, pause=0, cutoff=5), limits=Limits(1, 100, attempts), plan=plan, seed=0)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    ends = {line["end"]: line for line in lines if "end" in line}
    submitted = [line for line in lines if "probe" in line]
    return [
        (line["attempt"], line["t"], *map(ends[line["probe"]].get, ("status", "latency"))) for line in submitted
    ], measured


CASES = {
    "careful": (
        careful(0.2), (9, 9, 0.3),
        [(1, 0, "censored", 0.2), (2, 0.2, "censored", 0.4), (3, 0.6, "completed", 0.3)],
    ),
    "timeout": (policy_plan("timeout(t=0.2)"), (9, 0.1), [(1, 0, "censored", 0.2), (2, 0.2, "completed", 0.1)]),
    "failure": (policy_plan("timeout(t=0.4)"), (-0.1, 0.1), [(1, 0, "failed", 0.1), (2, 0.1, "completed", 0.1)]),
    "schedule": (
        policy_plan("schedule(timeouts=[0.2,0.3],sleeps=[0.1])"), (9, 9),
        [(1, 0, "censored", 0.2), (2, 0.3, "censored", 0.3)],
    ),
    "schedule after a failure": (
        policy_plan("schedule(timeouts=[0.4,0.3],sleeps=[0.1])"), (-0.1, 0.1),
        [(1, 0, "failed", 0.1), (2, 0.2, "completed", 0.1)],
    ),
    "delayed": (
        policy_plan("delayed(t0=0.2,t_inf=0.3)"), (9, 9, 0.1),
        [(1, 0, "censored", 0.3), (2, 0.2, "censored", 0.3), (3, 0.4, "completed", 0.1)],
    ),
    "the first may still win": (
        policy_plan("delayed(t0=0.2,t_inf=0.4)"), (0.3, 9), [(1, 0, "completed", 0.3), (2, 0.2, "censored", 0.1)]
    ),
    "hedge": (
        policy_plan("hedge(d=0.15,t_inf=0.3)"), (9, 9, 0.05),
        [(1, 0, "censored", 0.3), (2, 0.15, "censored", 0.15), (3, 0.3, "completed", 0.05)],
    ),
    "resubmit": (
        policy_plan("resubmit(d=0.2)"), (0.5, 9, 9),
        [(1, 0, "completed", 0.5), (2, 0.2, "censored", 0.3), (3, 0.4, "censored", 0.1)],
    ),
    "copies": (
        policy_plan("copies(b=2,t_inf=0.2)"), (9, 9, 0.1, 9),
        [(1, 0, "censored", 0.2), (2, 0, "censored", 0.2), (3, 0.2, "completed", 0.1), (4, 0.2, "censored", 0.1)],
    ),
    "never cancelled, but failed": (
        policy_plan("hedge(d=0.2)"), (-0.1, 0.05), [(1, 0, "failed", 0.1), (2, 0.1, "completed", 0.05)]
    ),
    "hedge begun again": (
        policy_plan("hedge(d=0.3,t_inf=0.9)"), (-0.1, 9, 0.1),
        [(1, 0, "failed", 0.1), (2, 0.1, "censored", 0.4), (3, 0.4, "completed", 0.1)],
    ),
    "begun again": (
        policy_plan("timeout"), (-0.1, 0.05), [(1, 0, "failed", 0.1), (2, 0.1, "completed", 0.05)]
    ),
    "pair": (paired(0.2), (0.5, 0.4), [(1, 0, "completed", 0.5), (2, 0.2, "completed", 0.4)]),
    "pair that came back": (paired(0.2), (0.1, 9), [(1, 0, "completed", 0.1)]),
    "pair whose first failed": (paired(0.2), (-0.1, 9), [(1, 0, "failed", 0.1)]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_job_follows_its_policy(name, tmp_path, clock):
    plan, script, expected = CASES[name]
    attempts, _ = history(tmp_path, script, plan)
    for attempt, (number, at, status, latency) in zip(attempts, expected, strict=True):
        assert attempt == (number, pytest.approx(at, abs=1e-5), status, pytest.approx(latency, abs=1e-5))


def test_luby_is_the_sequence():
    steps = islice(policy_plan("luby(unit=2)").steps(Random(0)), 15)
    assert [step.timeout / 2 for step in steps] == [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8]


def test_hedges_come_with_their_probability():
    steps = policy_plan("hedge(d=1,t_inf=4,q=0.25)").steps(Random(1))
    seen = [next(steps) for _ in range(4000)]
    rounds = [step for step in seen if step.timeout == 4]
    assert 0.22 < sum(step.then == 1 for step in rounds) / len(rounds) < 0.28
    assert Step(3, 3, beside=True) in seen


@pytest.mark.parametrize("text", ["timeout(t=0)", "timeout(t=-1)", "schedule(timeouts=[])", "hedge(t_inf=1)", "x(t=1)"])
def test_wrong_policies(text):
    with pytest.raises(latfit.LatfitError):
        policy_plan(text)


@pytest.mark.parametrize("name", REGISTRY)
def test_every_policy_can_be_run(name):
    steps = list(islice(policy_plan(REGISTRY[name].example).steps(Random(0)), 4))
    assert all(step.timeout > 0 and step.then >= 0 and step.sleep >= 0 for step in steps)


def test_attempts_are_limited_and_submissions_too(tmp_path, clock):
    found, measured = history(tmp_path, (9,), policy_plan("timeout(t=0.05)"), attempts=3)
    assert len(found) == 3
    assert measured.jobs_done == 0


def test_a_tracker_supplies_timeouts_and_observes_results(tmp_path, clock):
    class Told:
        def __init__(self):
            self.seen = []

        def next(self):
            return 0.1 + 0.1 * len(self.seen)

        def observe(self, latency, status):
            self.seen.append((status, round(latency, 6)))

    told = Told()
    history(tmp_path, (9, -0.05, 0.05), tracked(told))
    assert told.seen == [("censored", 0.1), ("failed", 0.05), ("completed", 0.05)]


def test_the_tracker_of_latfit(tmp_path, run):
    state, log = tmp_path / "state", tmp_path / "log"
    before = latfit.Tracker(initial=0.2, cutoff=5.0).to_json()
    state.write_text(before)
    done = run(
        "probe", "command", "-o", log, "--tracker", state, "--probes", 20, "--pause", 0, "--in-flight", 4,
        "--", "sh", "-c", "sleep 0.0$((LATFIT_JOB % 7))",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert state.read_text() != before
    latfit.Tracker.from_json(state.read_text())
    assert latfit.read_log(log).frame["job"].nunique() == 20


def test_the_breaker_is_quiet_for_independent_attempts_and_trips_for_sticky_ones():
    rng = Random(2)
    alarms = trips = 0
    for _ in range(300):
        for sticky in (False, True):
            breaker = Breaker()
            for _ in range(400):
                sick = rng.random() < 0.3
                number = 1
                while breaker.tripped is None:
                    within = not sick if sticky or number == 1 else rng.random() >= 0.3
                    breaker.note(attempt=number, within=within)
                    if within or number == 4:
                        break
                    number += 1
            alarms += breaker.tripped is not None and not sticky
            trips += breaker.tripped is not None and sticky
    assert alarms <= 3
    assert trips == 300


def test_the_breaker_against_the_exact_binomial():
    """What it calls improbable is at least that improbable (Chernoff's bound is an upper one)."""
    for n in (10, 40, 200):
        for k in range(n):
            breaker = Breaker(0.7)
            breaker.later = [k, n - 1]
            breaker.note(attempt=2, within=False)
            exact = sum(math.comb(n, j) * 0.7**j * 0.3 ** (n - j) for j in range(k + 1))
            if breaker.tripped:
                assert exact < 1e-4
            elif k / n < 0.3:
                assert n < 20


def test_wrong_paces():
    with pytest.raises(ProbeError):
        Pace(arrivals="sometimes")


def test_a_breaker_stays_tripped():
    """What was on its way when it tripped may end well; the run was stopped all the same."""
    breaker = Breaker(0.7)
    for _ in range(20):
        breaker.note(attempt=2, within=False)
    why = breaker.tripped
    assert "0 completed within the first timeout" in why
    for _ in range(100):
        breaker.note(attempt=2, within=True)
    assert breaker.tripped == why
