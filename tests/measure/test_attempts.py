"""Later attempts against first ones: the sticky service must be caught, and independent attempts not accused."""

import json

import numpy as np
import pandas as pd
import pytest

import latfit
from latfit.evidence.attempts import _Attempts, later_attempts
from latfit.evidence.log_rank import log_rank
from latfit.logs.table import STATUSES, LogFacts, ProbeLog
from systems import Service
from test_http import sticky

CUTOFF = 10.0


def pairs(draw, jobs, d, rng, cutoff=CUTOFF):
    """The log of paired probes: `draw(rng, sick)` is a latency, `sick` being the fate of the job."""
    rows = []
    for job in range(jobs):
        fate = rng.random()
        x = draw(rng, fate)
        rows.append((job, 1, x))
        if x > d:
            rows.append((job, 2, draw(rng, fate)))
    job, attempt, latency = map(np.array, zip(*rows, strict=True))
    return table(job, attempt, np.minimum(latency, cutoff), np.where(latency > cutoff, "censored", "completed"))


def table(job, attempt, latency, status):
    frame = pd.DataFrame(
        {
            "submitted": pd.Series(pd.NaT, index=range(len(job))).dt.tz_localize("UTC"),
            "latency": latency,
            "status": pd.Categorical(status, categories=STATUSES),
            "job": job,
            "attempt": attempt,
        }
    )
    return ProbeLog(frame, LogFacts("x", "probe"))


def independent(rng, fate):
    return rng.lognormal(-3, 0.5) if rng.random() < 0.8 else rng.lognormal(0, 0.5)


def by_job(rng, fate):
    return rng.lognormal(-3, 0.5) if fate < 0.8 else rng.lognormal(0, 0.5)


def simulated(draw, t, rng, jobs=20_000, most=200):
    """The mean duration of jobs that are cancelled at t and tried again, at most so often, without any formula."""
    total = 0.0
    for _ in range(jobs):
        fate = rng.random()
        for _ in range(most):
            x = draw(rng, fate)
            total += min(x, t)
            if x <= t:
                break
    return total / jobs


def test_independent_attempts_are_new_draws():
    found = later_attempts(pairs(independent, 1500, 0.2, np.random.default_rng(1)))
    assert found.same
    assert not found.harmful
    truth = simulated(independent, found.timeout, np.random.default_rng(2))
    assert found.low < truth < found.high
    assert found.expected_duration == pytest.approx(truth, rel=0.15)
    assert found.gain_left == pytest.approx(1, abs=0.2)
    assert found.best_timeout is not None


def test_the_sticky_service_is_caught():
    """The optimum of the formula is near .2 s; jobs whose server is sick would be cancelled again and again."""
    found = later_attempts(pairs(by_job, 1500, 0.2, np.random.default_rng(1)))
    assert found.p_value < 1e-6
    assert found.ratio < 0.5
    assert not found.same
    assert found.harmful
    assert found.gain_left < 0
    truth = simulated(by_job, found.timeout, np.random.default_rng(3), jobs=2000)
    assert truth > 2 * found.waiting
    assert found.expected_duration > 2 * found.waiting
    assert found.predicted < 0.5 * found.waiting  # what single probes say


def test_the_duration_with_two_laws_against_simulation():
    """First attempts are quick or slow, later ones come from another law: the mean of simulated jobs is E_J."""

    def draw(rng, number):
        return rng.exponential(1.0) if number == 1 else rng.exponential(2.0)

    rng = np.random.default_rng(4)
    first, later = rng.exponential(1.0, 20_000), rng.exponential(2.0, 20_000)
    log = table(
        np.concatenate([np.arange(20_000)] * 2),
        np.repeat([1, 2], 20_000),
        np.minimum(np.concatenate([first, later]), 9.0),
        np.where(np.concatenate([first, later]) > 9.0, "censored", "completed"),
    )
    found = later_attempts(log, timeout=0.7, cost=0.25)
    total = []
    for _ in range(20_000):
        spent, number = 0.0, 1
        while (x := draw(rng, number)) > 0.7:
            spent, number = spent + 0.7 + 0.25, number + 1
        total.append(spent + x)
    assert found.expected_duration == pytest.approx(np.mean(total), rel=0.03)
    assert not found.same


def test_jobs_that_differ_against_simulation():
    """Each job has its own chance to be slow, Beta(1, 4): the mean of simulated jobs is `if_jobs_differ`."""
    rng = np.random.default_rng(7)

    def draw(rng, theta):
        return 0.1 + 0.1 * rng.random() if rng.random() > theta else 2.0 + rng.random()

    rows, total = [], []
    for job in range(8000):
        theta = rng.beta(1, 4)
        first = draw(rng, theta)
        rows.append((job, 1, first))
        if first > 0.5:
            rows.append((job, 2, draw(rng, theta)))
            if rows[-1][2] > 0.5 and sum(row[1] == 3 for row in rows[:2000]) < 12:
                rows.append((job, 3, draw(rng, theta)))
        spent = 0.0
        while (x := draw(rng, theta)) > 0.25:
            spent += 0.25
        total.append(spent + x)
    job, attempt, latency = map(np.array, zip(*rows, strict=True))
    found = later_attempts(table(job, attempt, latency, np.full(len(rows), "completed")), timeout=0.25)
    assert found.if_jobs_differ == pytest.approx(np.mean(total), rel=0.05)
    two = attempt < 3  # from two attempts alone nobody can tell that no job is slow for ever
    alone = later_attempts(table(job[two], attempt[two], latency[two], np.full(two.sum(), "completed")), timeout=0.25)
    assert alone.if_jobs_differ == np.inf
    assert alone.harmful
    assert found.expected_duration < found.if_jobs_differ


def test_failures_end_an_attempt():
    rng = np.random.default_rng(5)
    n = 4000
    latency = rng.exponential(1.0, 2 * n)
    status = np.where(rng.random(2 * n) < 0.3, "failed", "completed")
    found = later_attempts(
        table(np.concatenate([np.arange(n)] * 2), np.repeat([1, 2], n), latency, status), timeout=50.0
    )
    assert found.expected_duration == pytest.approx(1 / 0.7, rel=0.05)  # geometric attempts of 1 s each
    assert found.same


def test_the_test_has_its_size():
    rng = np.random.default_rng(6)
    p = []
    for _ in range(200):
        attempts = _Attempts.of(pairs(independent, 150, 0.2, rng).frame)
        p.append(log_rank(attempts.latency, attempts.completed, attempts.number > 1))
    assert sum(x < 0.05 for x in p) <= 20


def test_nothing_is_said_without_enough():
    assert later_attempts(latfit.example_log()) is None
    assert later_attempts(pairs(independent, 20, 5.0, np.random.default_rng(1))) is None


def test_paired_probes_of_a_real_sticky_service(tmp_path, run):
    """Single probes predict a gain, pairs say that it is a loss, and running jobs shows that it is."""
    pytest.importorskip("aiohttp", reason="the http target needs aiohttp")
    with Service(sticky(0.25)).running() as service:
        url = service.url + "/{job}"
        words = ("--in-flight", 20, "--pause", "10ms", "--cutoff", 5)
        run("probe", "http", url, "-o", tmp_path / "pairs", *words, "--probes", 200, "--again-after", "60ms")
        pairs_ = latfit.read_log(tmp_path / "pairs")
        found = later_attempts(pairs_)
        jobs = run(
            "probe", "http", url, "-o", tmp_path / "jobs", *words, "--probes", 40, "--no-breaker", "--attempts", 12,
            "--submissions", 400, "--policy", f"timeout(t={found.timeout})", "--json",
        )  # fmt: skip
    firsts = pairs_.frame[pairs_.frame["attempt"] == 1]
    single = later_attempts(pairs_)
    assert single.predicted < 0.6 * firsts["latency"].mean()  # 2 × faster and more, says the formula
    assert found.harmful
    assert found.if_jobs_differ > found.waiting
    told = json.loads(jobs.stdout)
    assert told["jobs_done"] < 40  # sick ones are cancelled twelve times and are not done
    spent = latfit.read_log(tmp_path / "jobs").frame["latency"].sum() / told["jobs_done"]
    assert spent > firsts["latency"].mean()
