"""Pairs of logs whose truth is known: as predicted, and each way to be worse."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import latfit
from latfit.errors import MissingColumn, SampleError
from latfit.verify import jobs_of, read_attempts, verify
from pairs import decided, frame_of, jobs, probes, schedule

RNG = np.random.default_rng


def pair(seed, n=800, k=300, **after):
    rng = RNG(seed)
    before = probes(rng, n, failures=after.get("failures", 0.0))
    return before, jobs(rng, k, decided(before), **after)


@pytest.mark.slow
def test_size():
    """Nothing has changed: at most one pair in twenty is called different (here by fixed seeds)."""
    results = [verify(*pair(seed, 400, 250)) for seed in range(16)]
    assert sum(not one.agrees for one in results) <= 3
    agreed = [one for one in results if one.agrees]
    assert all(one.reasons == () and one.sentence.startswith("As predicted") for one in agreed)

    assert np.median([one.speed_up["measured"] / one.speed_up["predicted"] for one in results]) == pytest.approx(
        1, abs=0.05
    )


CASES = {
    "later-attempts": {"sticky": True},
    "drift": {"scale": 1.6},
    "waits": {"pause": 1.0},
}


@pytest.mark.slow
@pytest.mark.parametrize("code", CASES)
def test_power_and_reason(code):
    results = [verify(*pair(seed, **CASES[code])) for seed in range(5)]
    assert all(one.verdict == "worse" for one in results)
    assert sum(code in [reason.code for reason in one.reasons] for one in results) >= 4


def test_rounding():
    before, after = pair(7)
    assert verify(before, after).agrees
    rng = RNG(7)
    before = probes(rng, 2000)
    late = jobs(rng, 600, 20.0)  # the tool made 20 s of it
    found = verify(before, late, timeout=2.0)
    assert found.verdict == "worse"
    assert [reason.code for reason in found.reasons] == ["rounding"]
    assert verify(before, late, timeout=20.0).agrees


def test_sticky_jobs_are_slower_than_waiting():
    found = verify(*pair(11, k=200, sticky=True))
    assert found.measured.given_up > 0
    assert found.tests["later_attempts"] < 1e-6
    assert "later attempts are not like first ones" in found.sentence


@pytest.mark.slow
def test_failures_and_given_up_jobs_are_as_predicted():
    """All the time over the jobs done is E_J, also with at most 2 attempts and with visible failures."""
    for seed, after in enumerate([{"attempts": 2}, {"failures": 0.2}, {"failures": 0.2, "attempts": 2}]):
        found = verify(*pair(40 + seed, 1500, 1000, **after))
        assert found.agrees, found.sentence
        if "attempts" in after:
            assert found.measured.undone == pytest.approx(found.predicted.undone, abs=0.04)


def test_jobs_that_are_not_done_are_later_than_every_time(run, tmp_path):
    """Counted by hand: 10 jobs, of which 6 were done, 3 given up after 4 attempts, and one was still running."""
    rows = {name: [] for name in ("submitted", "latency", "status", "job", "attempt")}

    def attempt(job, number, at, latency, status):
        for name, value in zip(rows, (at, latency, status, job, number), strict=True):
            rows[name].append(value)

    for job in range(6):
        attempt(job, 1, 100.0 * job, 1.0 + job / 10, "completed")
    for job in range(6, 9):
        for k in range(4):
            attempt(job, k + 1, 100.0 * job + 2 * k, 2.0, "censored")
    attempt(9, 1, 900.0, 2.0, "censored")
    attempt(9, 2, 902.0, 0.5, "censored")
    before, after = probes(RNG(3), 400), frame_of(rows)
    found = verify(before, after, timeout=2.0).measured
    assert (found.jobs, found.given_up, found.in_flight) == (6, 3, 1)
    assert found.undone == pytest.approx(0.4)
    assert found.submissions == pytest.approx((6 + 12 + 2) / 10)
    assert found.quantiles == {"0.5": 1.4, "0.95": None, "0.99": None}
    left, right = written(before, tmp_path / "before.csv"), written(after, tmp_path / "after.csv")
    document = json.loads(run("verify", left, right, "--timeout", 2, "--json").stdout)
    assert document["measured"]["quantiles"]["0.95"] is None
    shown = run("verify", left, right, "--timeout", 2).stdout
    assert "predicted for a timeout of 2 s" in " ".join(shown.split())
    assert re.search(r"95% of jobs within .* not reached$", shown, re.MULTILINE)
    assert re.search(r"50% of jobs within .* 1\.4 s$", shown, re.MULTILINE)
    assert re.search(r"timeout +- +2 s +2 s$", shown, re.MULTILINE)


def test_predictions_for_abandoned_jobs_are_consistent():
    """At most 2 attempts: the submissions and the quantiles are those of what was simulated."""
    found = verify(*pair(41, 1500, 3000, attempts=2))
    assert 0.01 < found.predicted.undone < 0.5
    assert found.predicted.submissions == pytest.approx(found.measured.submissions, rel=0.03)
    assert found.predicted.quantiles["0.5"] == pytest.approx(found.measured.quantiles["0.5"], rel=0.1)
    for q in ("0.95", "0.99"):
        assert (found.predicted.quantiles[q] is None) == (float(q) > 1 - found.predicted.undone)


def test_better():
    found = verify(*pair(31, scale=0.6))
    assert found.verdict == "better"
    assert [reason.code for reason in found.reasons] == ["drift"]


def test_jobs_by_hand():
    log = frame_of(
        {
            "submitted": [0.0, 2.5, 10.0, 20.0, 22.0, 24.0, 30.0],
            "latency": [2.0, 1.0, 1.5, 2.0, 2.0, 2.0, 0.5],
            "status": ["censored", "completed", "completed", "censored", "censored", "censored", "censored"],
            "job": ["a", "a", "b", "c", "c", "c", "d"],
            "attempt": [1, 2, 1, 1, 2, 3, 1],
        }
    )
    found = jobs_of(log)
    assert sorted(found.durations) == [1.5, 3.5]
    assert list(found.given_up) == [3]
    assert sorted(found.spent) == [0.5, 6.0]
    assert found.in_flight == 1
    assert found.cuts[0] == 2.0
    assert found.pause == pytest.approx(0.5 / 3)
    assert (found.first.n, found.later.n) == (4, 3)


def test_a_recurring_name_is_a_new_job():
    rows = {"submitted": [0.0, 10.0, 20.0, 22.0], "latency": [1.0, 3.0, 2.0, 1.0],
            "status": ["completed", "completed", "censored", "completed"], "jobname": ["x"] * 4}  # fmt: skip
    assert sorted(jobs_of(frame_of(rows)).durations) == [1.0, 3.0, 3.0]
    numbered = rows | {"attempt": [1, 1, 1, 2]}
    assert sorted(jobs_of(frame_of(numbered)).durations) == [1.0, 3.0, 3.0]


def test_attempts_without_times_follow_each_other_as_logged():
    rows = {"latency": [2.0, 1.0, 1.5, 2.0, 0.5], "job": list("aabaa"), "attempt": [1, 2, 1, 1, 2],
            "status": ["censored", "completed", "completed", "censored", "completed"]}  # fmt: skip
    log = latfit.from_frame(pd.DataFrame(rows), latency="latency", status="status")
    assert sorted(jobs_of(log).durations) == [1.5, 2.5, 3.0]


@pytest.mark.parametrize("timed", [True, False])
def test_lost_attempts_without_a_latency_were_cut_by_the_next_submission(timed):
    rows = {"latency": [np.nan, 1.0, 2.0, np.nan, 3.0], "job": list("aabcc"), "attempt": [1, 2, 1, 1, 2],
            "status": ["lost", "completed", "completed", "lost", "completed"]}  # fmt: skip
    if timed:
        found = jobs_of(frame_of(rows | {"submitted": [0.0, 4.0, 10.0, 20.0, 24.0]}))
        assert (found.cuts, found.pause, sorted(found.durations)) == ((4.0,), 0.0, [2.0, 5.0, 7.0])
    else:
        found = jobs_of(latfit.from_frame(pd.DataFrame(rows), latency="latency", status="status"))
        assert (found.cuts, sorted(found.durations)) == ((), [1.0, 2.0, 3.0])


def test_hedged_attempts_end_with_the_first_completion():
    rows = {"submitted": [0.0, 1.0, 5.0, 6.0], "latency": [1.5, 3.0, 9.0, 1.0],
            "status": ["completed", "censored", "censored", "completed"], "job": list("aabb"),
            "attempt": [1, 2, 1, 2]}  # fmt: skip
    assert sorted(jobs_of(frame_of(rows)).durations) == [1.5, 2.0]


def test_errors():
    log = frame_of({"submitted": [0.0], "latency": [1.0], "status": ["completed"], "job": ["a"]})
    with pytest.raises(SampleError, match="only 1 job was done"):
        jobs_of(log)
    with pytest.raises(MissingColumn, match="--job"):
        jobs_of(frame_of({"submitted": [0.0], "latency": [1.0], "status": ["completed"]}))
    with pytest.raises(MissingColumn, match="no column 'nothing'"):
        jobs_of(log, job="nothing")


def test_the_schedule_that_ran_is_predicted_by_the_rule_of_timeout(run, tmp_path):
    """The prediction is `timeout.retry` of BEFORE to the last digit, and the jobs of a simulation agree with it."""
    rng = RNG(21)
    before = probes(rng, 1500)
    limits = schedule(before)
    after = jobs(rng, 800, limits)
    verification = verify(before, after)
    retry = latfit.analyze(before, laws=(), test=False, resamples=0).decision.timeout.retry
    assert (verification.basis, verification.limits) == ("schedule", limits)
    assert verification.predicted.expected_duration == pytest.approx(retry.expected_duration, rel=1e-9)
    assert verification.predicted.submissions == pytest.approx(retry.submissions, rel=0.01)
    assert verification.loss["promised"] == pytest.approx(retry.worst_loss, rel=1e-9)
    assert verification.agrees, verification.sentence
    assert verification.loss["within"]
    left, right = written(before, tmp_path / "before.csv"), written(after, tmp_path / "after.csv")
    timeout = json.loads(run("timeout", left, "--json").stdout)
    document = json.loads(run("verify", left, right, "--json").stdout)
    assert document["predicted"]["expected_duration"] == pytest.approx(timeout["retry"]["expected_duration"], rel=1e-9)
    assert document["limits"] == pytest.approx([*timeout["retry"]["timeouts"], 60.0])
    given = json.loads(run("verify", left, right, "--timeout", ",".join(map(repr, limits)), "--json").stdout)
    assert given["basis"] == "given"
    assert given["predicted"] == document["predicted"]


def test_sticky_jobs_under_a_schedule_lose_no_more_than_promised():
    rng = RNG(22)
    before = probes(rng, 1500, rho=0.0)
    limits = schedule(before)
    verification = verify(before, jobs(rng, 600, limits, sticky=True, rho=0.0))
    assert verification.basis == "schedule"
    assert verification.verdict == "worse"
    assert verification.loss["low"] <= verification.loss["promised"]
    assert verification.loss["within"]
    assert "later-attempts" in [reason.code for reason in verification.reasons]


@pytest.mark.parametrize(
    ("limits", "shown"),
    [((2.0,) * 30, (2.0,)), ((1.0, 5.0, 60.0), (1.0, 5.0, 60.0)), ((60.0, 60.0), (60.0,))],
    ids=["constant", "schedule", "waiting"],
)
def test_the_timeout_in_use_is_detected(limits, shown):
    rng = RNG(23)
    before = probes(rng, 1000)
    verification = verify(before, jobs(rng, 1500, limits))
    assert verification.basis == "detected"
    assert verification.limits == pytest.approx(shown)
    assert verification.agrees, verification.sentence
    if len(limits) > 2:
        assert "BEFORE's advice is to resubmit after" in verification.warnings[0]


def written(log, path, **more):
    frame = log.frame.assign(**more)
    frame.to_csv(path, index=False)
    return path


def test_command_line(run, tmp_path):
    before, after = pair(3, 500, 200)
    left, right = written(before, tmp_path / "before.csv"), written(after, tmp_path / "after.csv")
    done = run("verify", left, right, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    keys = {"timeout", "predicted", "measured", "before", "speed_up", "agrees"}
    assert keys <= set(found)
    for part in ("predicted", "measured", "before"):
        assert {"expected_duration", "low", "high", "submissions"} <= set(found[part])
    assert set(found["speed_up"]) == {"predicted", "measured", "low", "high"}
    assert found["agrees"] is True
    # measured is the plain mean of the jobs' durations, counted by hand
    frame = after.frame.assign(end=after.frame["submitted"] + latfit_seconds(after.frame["latency"]))
    took = (frame.groupby("job")["end"].max() - frame.groupby("job")["submitted"].min()).dt.total_seconds()
    assert found["measured"]["expected_duration"] == pytest.approx(took.mean(), rel=1e-4)
    assert run("verify", left, right).stdout.startswith("As predicted")


def latfit_seconds(latency):
    import pandas as pd

    return pd.to_timedelta(latency, unit="s")


def test_jmeter_with_a_request_id(tmp_path):
    _, after = pair(5, 300, 100)
    frame = after.frame
    lines = ["timeStamp,elapsed,label,responseCode,responseMessage,success,request_id"]
    for at, x, status, job in zip(frame["submitted"], frame["latency"], frame["status"], frame["job"], strict=True):
        code, told = (
            ("200", "true") if status == "completed" else ("Non HTTP response code: SocketTimeoutException", "false")
        )
        lines.append(f"{int(at.timestamp() * 1000)},{round(1000 * x)},GET,{code},read timed out,{told},r{job}")
    path = tmp_path / "after.jtl"
    path.write_text("\n".join(lines) + "\n")
    found, made = jobs_of(read_attempts(path)), jobs_of(after)
    assert found.durations.size == made.durations.size
    assert found.durations.mean() == pytest.approx(made.durations.mean(), rel=0.01)
    assert found.cuts[0] == pytest.approx(made.cuts[0], rel=0.01)


def test_sacct_with_resubmissions_by_name(tmp_path):
    path = tmp_path / "sacct.txt"
    path.write_text(
        "JobID|JobName|Submit|Start|End|State|NodeList\n"
        "1|sim-a|2026-01-05T08:00:00|2026-01-05T08:10:00|2026-01-05T08:10:00|CANCELLED by 0|None assigned\n"
        "2|sim-a|2026-01-05T08:10:00|2026-01-05T08:12:00|2026-01-05T08:30:00|COMPLETED|n1\n"
        "3|sim-b|2026-01-05T08:00:00|2026-01-05T08:01:00|2026-01-05T08:30:00|COMPLETED|n2\n"
        "4|sim-a|2026-01-05T09:00:00|2026-01-05T09:03:00|2026-01-05T09:30:00|COMPLETED|n2\n"
    )
    found = jobs_of(read_attempts(path))
    assert sorted(found.durations) == [60.0, 180.0, 720.0]
    assert found.cuts == (600.0,)
