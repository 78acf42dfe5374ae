"""Attempts of one job in ordinary logs: what is sticky is withheld, independent retries change nothing."""

import csv
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import latfit
from latfit.decision import Options, decide
from latfit.evidence import as_logged, probes_of
from latfit.evidence.probes import attempts_of
from latfit.table import ProbeTable

PLAIN = Options(resamples=0, test=False, laws=())
LIMITS = {"last awaited": [2, 2, 30], "all cut": [2, 2, 2, 2], "doubling": [1, 2, 4, 8, 16]}


def draw(rng, heavy):
    return (6.0 if heavy else 0.2) * rng.lognormal(0, 0.3)


def attempts(rng, jobs, *, sticky, limits, share=0.15):
    """Rows of jobs that are retried after each limit; `sticky` ones keep their fate."""
    rows, now = [], 1_770_000_000.0
    for job in range(jobs):
        now += rng.exponential(2.0)
        at, fate = now, rng.random() < share
        for number, limit in enumerate(limits, 1):
            x = draw(rng, fate if sticky else rng.random() < share)
            rows.append((f"j{job}", number, at, min(x, limit), "ok" if x <= limit else "timeout"))
            if x <= limit:
                break
            at += limit
    return rows


def write(path, rows, names=("job", "attempt", "start", "latency", "status"), keep=range(5)):
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow([names[k] for k in keep])
        out.writerows([row[k] for k in keep] for row in rows)
    return path


def mean_duration(rng, t, *, sticky, jobs=3000, most=100, share=0.15):
    """What jobs take that are cancelled at t again and again, by trying: the oracle of following the advice."""
    total = 0.0
    for _ in range(jobs):
        fate = rng.random() < share
        for _ in range(most):
            x = draw(rng, fate if sticky else rng.random() < share)
            total += min(x, t)
            if x <= t:
                break
    return total / jobs


@pytest.mark.slow
@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
def test_sticky_jobs_are_withheld_and_independent_ones_decided(tmp_path, limits):
    """Twelve logs of either population, 60 to 600 jobs: no false alarm, and what would do harm is caught."""
    rng, caught, tested = np.random.default_rng(11), 0, 0
    for jobs in np.geomspace(60, 600, 12).astype(int):
        log = latfit.read_log(write(tmp_path / "x.csv", attempts(rng, jobs, sticky=False, limits=limits)))
        seen = probes_of(log)
        assert seen.attempt is not None
        made, blind = (decide([each], PLAIN)[0].timeout for each in (seen, replace(seen, job=None, attempt=None)))
        assert made.timeout == blind.timeout
        assert made.verdict == "finite"
        log = latfit.read_log(write(tmp_path / "y.csv", attempts(rng, jobs, sticky=True, limits=limits)))
        found = decide([probes_of(log)], PLAIN)[0]
        tested += any(world.kind == "job" for world in found.evidence.worlds)
        caught += found.timeout.retry is None and "dependent" in found.timeout.withheld
    assert tested >= 11
    assert caught >= tested - 1


def test_the_withheld_timeout_would_have_done_harm(tmp_path):
    rng = np.random.default_rng(3)
    path = write(tmp_path / "x.csv", attempts(rng, 300, sticky=True, limits=LIMITS["last awaited"]))
    made = decide([probes_of(latfit.read_log(path))], PLAIN)[0]
    t = made.timeout.if_independent.timeout
    awaited = 0.85 * 0.21 + 0.15 * (2 + 2 + 6.3)
    assert made.timeout.retry is None
    assert mean_duration(rng, t, sticky=True) > 2 * awaited  # jobs are given up after 100 attempts, or it were endless
    assert mean_duration(rng, t, sticky=False) < 0.5


def test_retries_that_never_return_withhold_the_timeout(tmp_path):
    path = write(tmp_path / "x.csv", attempts(np.random.default_rng(4), 200, sticky=True, limits=[1, 1, 1]))
    made = decide([probes_of(latfit.read_log(path))], PLAIN)[0]
    assert "dependent" in made.timeout.withheld
    assert made.timeout.retry is None


NAMES = [("job", "attempt"), ("request_id", "try"), ("Trace-Id", "retryNumber"), ("task_id", "retry_count")]


@pytest.mark.parametrize("names", NAMES)
def test_the_usual_column_names_of_attempts_are_recognised(tmp_path, names):
    rows = attempts(np.random.default_rng(5), 300, sticky=True, limits=LIMITS["last awaited"])
    first = 0 if names[1].startswith("retry") else 1
    counted = [(job, number - 1 + first, *rest) for job, number, *rest in rows]
    log = latfit.read_log(write(tmp_path / "x.csv", counted, (*names, "start", "latency", "status")))
    assert attempts_of(log.table)[2].tolist() == [row[1] for row in rows]
    assert not log.facts.refused.count
    assert not any("one probe each" in note for note in log.facts.notes)
    assert decide([probes_of(log)], PLAIN)[0].timeout.withheld == ("dependent",)
    assert latfit.analyze(log.frame, resamples=0, test=False, laws=()).timeout.withheld == ("dependent",)


@pytest.mark.slow
def test_every_command_reports_sticky_jobs(tmp_path, run):
    rows = attempts(np.random.default_rng(5), 300, sticky=True, limits=LIMITS["last awaited"])
    path = write(tmp_path / "x.csv", rows, ("request_id", "attempt", "start", "latency", "status"))
    done = run("analyze", path, "--resamples", 0)
    assert re.search(r"Wait\b.* Attempts of the same job resemble each other", " ".join(done.stdout.split()))
    assert "column 'request_id' names the job, 'attempt' numbers its attempts" in done.stderr
    assert json.loads(run("timeout", path, "--json").stdout)["withheld"] == ["dependent"]
    run("batch", path, "-o", tmp_path / "out.csv", "--resamples", 0, "--no-test")
    (row,) = csv.DictReader((tmp_path / "out.csv").read_text().splitlines())
    assert (row["verdict"], row["withheld"]) == ("withheld", "dependent")
    told = json.loads(run("analyze", path, "--resamples", 0, "--json").stdout)
    assert told["timeout"]["retry"] is None
    assert "job" in [world["kind"] for world in told["evidence"]["worlds"]]


def test_jobs_that_are_slow_again_half_of_the_time_wait(tmp_path):
    """A slow job is slow again at every second attempt: jobs that are sticky beyond chance are not cancelled."""
    rng = np.random.default_rng(10)

    def tried(limits):
        """The latency of each attempt of one job, cut at its limit."""
        fate, found = rng.random() < 0.15, []
        for number, limit in enumerate(limits, 1):
            x = draw(rng, fate if number == 1 or rng.random() < 0.5 else rng.random() < 0.15)
            found.append(min(x, limit))
            if x <= limit:
                break
        return found

    rows = []
    for job in range(500):
        for number, x in enumerate(tried([2, 2, 30]), 1):
            rows.append((f"j{job}", number, 1.77e9 + 30 * job + 2 * number, x, "timeout" if x == 2 else "ok"))
    made = decide([probes_of(latfit.read_log(write(tmp_path / "x.csv", rows)))], PLAIN)[0]
    assert "later-attempts" in made.codes
    assert made.timeout.retry is None


@pytest.mark.parametrize("name", ["job", "request_id"])
def test_ids_that_recur_after_a_failure_are_attempts(tmp_path, name):
    rows = attempts(np.random.default_rng(6), 300, sticky=True, limits=LIMITS["last awaited"])
    names = (name, "attempt", "start", "latency", "status")
    log = latfit.read_log(write(tmp_path / "x.csv", rows, names, keep=(0, 2, 3, 4)))
    assert len(log.frame) == len(rows)
    assert not log.facts.refused.count
    assert not any("one probe each" in note for note in log.facts.notes)
    assert attempts_of(log.table)[2].tolist() == [row[1] for row in rows]
    assert decide([probes_of(log)], PLAIN)[0].timeout.withheld == ("dependent",)


def test_rows_written_twice_are_still_refused(tmp_path):
    rows = attempts(np.random.default_rng(6), 40, sticky=False, limits=[30])
    log = latfit.read_log(
        write(
            tmp_path / "x.csv", [*rows, *rows[:2]], ("request_id", "", "start", "latency", "status"), keep=(0, 2, 3, 4)
        )
    )
    assert log.facts.refused.reasons == {"duplicate id": 2}


def test_an_id_that_recurs_after_an_answer_is_not_an_attempt(tmp_path):
    """The spans of a trace, or a job that runs every night."""
    rng = np.random.default_rng(7)
    rows = [
        (f"j{k // 3}", 1, 1.77e9 + k, rng.lognormal(), "timeout" if rng.random() < 0.2 else "ok") for k in range(300)
    ]
    log = latfit.read_log(write(tmp_path / "x.csv", rows, keep=(0, 2, 3, 4)))
    assert attempts_of(log.table) is None
    assert attempts_of(latfit.read_log(write(tmp_path / "y.csv", rows)).table) is None  # every attempt is the first


def test_numbers_that_do_not_number_attempts(tmp_path):
    """Jobs with one name, all with attempts 1 and 2: it is unclear to which job a second attempt belongs."""
    rows = [("nightly", 1 + k % 2, 1.77e9 + k, 1.0 + k % 7, "ok") for k in range(100)]
    assert attempts_of(latfit.read_log(write(tmp_path / "x.csv", rows)).table) is None
    named = [(f"j{k // 2}", "first" if k % 2 else "second", 1.77e9 + k, 1.0 + k % 7, "ok") for k in range(100)]
    assert attempts_of(latfit.read_log(write(tmp_path / "y.csv", named)).table) is None


@pytest.mark.parametrize("cell", [[1, 2], {"a": 1}, None])
def test_values_that_are_not_names_are_not_jobs(cell):
    log = latfit.from_frame(
        pd.DataFrame({"latency": np.arange(1.0, 41.0), "id": [cell] * 40, "attempt": [1, 2] * 20}), unit="s"
    )
    assert attempts_of(log.table) is None
    assert probes_of(log).job is None


def test_attempt_numbers_are_not_groups_of_the_log(tmp_path):
    rows = attempts(np.random.default_rng(8), 200, sticky=True, limits=[2, 2, 2, 2], share=0.6)
    log = latfit.read_log(write(tmp_path / "x.csv", rows, ("job", "try", "start", "latency", "status")))
    assert not probes_of(log).columns


def test_jobs_of_several_logs(tmp_path):
    rng = np.random.default_rng(9)
    logs = [
        latfit.read_log(write(tmp_path / f"{k}.csv", attempts(rng, 50, sticky=True, limits=[2, 2, 30]))) for k in "ab"
    ]
    one, other = (as_logged(log) for log in logs)
    both = ProbeTable.concat([one, other])
    assert both.job.max() == 99
    assert both.attempt.tolist() == [*one.attempt, *other.attempt]
    assert ProbeTable.concat([one, replace(other, job=None, attempt=None)]).job is None


def test_monitors_that_are_mostly_down_are_not_jobs(tmp_path):
    rng, names = np.random.default_rng(3), ("id", "attempt", "start", "latency", "status")
    words = np.where(rng.random(200) < 0.03, "ok", "timeout")
    rows = [(f"m{k % 4}", 0, 1_770_000_000 + 60 * k, 30.0, word) for k, word in enumerate(words)]
    log = latfit.read_log(write(tmp_path / "x.csv", rows, names, (0, 2, 3, 4)), columns={"id": ""})
    assert attempts_of(log.table) is None
