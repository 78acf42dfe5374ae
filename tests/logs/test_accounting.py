"""Accounting of schedulers, and runs of pipelines, solvers, monitors and CI."""

import pandas as pd
import pytest

import latfit
from conftest import DATA
from latfit.logs import FORMATS


def read(path, **options):
    return latfit.read_log(path, max_refused=1, **options)


def latencies(log, status):
    return sorted(log.frame.loc[log.frame["status"] == status, "latency"])


@pytest.mark.parametrize("name", ["pbs", "sge", "lsf", "nextflow"])
def test_logs_of_jobs_say_that_they_are_queues(name):
    assert FORMATS[name].queue is True


def test_pbs_follows_jobs_from_record_to_record():
    log = read(DATA / "jobs.pbs")
    # 1 ended; 3 has only ctime; 5 started and has not ended
    assert latencies(log, "completed") == [5, 50, 100]
    # 2 was deleted while queued; 4 was queued when the log ended, 80 s later
    assert latencies(log, "censored") == [80, 360]
    further = {"records of a job that came before": 3}
    assert log.facts.skipped == {"records of type D": 1, "records of type L": 1, **further}
    assert log.frame["submitted"][0] == pd.Timestamp("2026-03-01T00:00:00Z")
    fairer = read(DATA / "jobs.pbs", columns={"submitted": "etime"})
    assert latencies(fairer, "completed") == [5, 50, 70]


def test_pbs_dates_of_records_are_local(tmp_path):
    (tmp_path / "x").write_text("03/01/2026 01:00:00;Q;1.s;queue=q\n03/01/2026 01:10:00;D;1.s;requestor=a\n")
    log = read(tmp_path / "x", timezone="Europe/Paris")
    assert log.frame["submitted"][0] == pd.Timestamp("2026-03-01T00:00:00Z")
    assert latencies(log, "censored") == [600]


def test_sge_seconds_milliseconds_and_tasks():
    log = read(DATA / "jobs.sge")
    assert latencies(log, "completed") == [0.5, 15, 60, 70]
    assert latencies(log, "censored") == [600]  # never started
    assert log.facts.refused.reasons == {"duplicate id": 1, "no submission time": 1, "wrong number of fields": 1}
    assert log.facts.skipped == {"lines of comments or slave tasks": 2}
    assert (log.frame["submitted"] == pd.Timestamp("2026-03-01T00:00:00Z")).all()


def test_lsf_quoted_fields_and_arrays():
    log = read(DATA / "jobs.lsf")
    assert latencies(log, "completed") == [30, 90, 100]
    assert latencies(log, "censored") == [300]  # start 0: it was killed while pending
    assert list(log.frame["index"]) == ["0", "1", "2", "0"]
    assert set(log.frame["job_name"]) == {'my "job"'}
    assert set(log.frame["project"]) == {"default"}
    assert log.facts.skipped == {"events other than JOB_FINISH": 1}


def test_nextflow_waits_from_durations():
    log = read(DATA / "tasks.nextflow")
    assert latencies(log, "completed") == [0, 0.098, 79.759]  # 7s − 7.05s is rounding
    assert latencies(log, "censored") == [pytest.approx(69.759)]  # aborted: out until the log's end
    assert log.facts.skipped == {"tasks from the cache": 1}
    assert list(log.frame["process"][:2]) == ["MAP", "MAP"]
    assert "COMPLETED (2), FAILED (1) completed; ABORTED (1) censored" in log.facts.notes[1]


@pytest.mark.filterwarnings("error")
def test_nextflow_waits_of_days(tmp_path):
    head = "task_id\thash\tname\tstatus\tsubmit\tduration\trealtime\n"
    rows = [("1d 2h 3m", "1d 2h"), ("1d2h", "2h"), ("inf", "inf")]
    (tmp_path / "x").write_text(head + "".join(
        f"{k}\ta\tM\tCOMPLETED\t2026-03-01 00:00:00.000\t{duration}\t{real}\n"
        for k, (duration, real) in enumerate(rows, 1)
    ))  # fmt: skip
    log = read(tmp_path / "x")
    assert latencies(log, "completed") == [180, 86400]
    assert log.facts.refused.count == 1


def test_nextflow_waits_from_a_pair_and_raw_traces(tmp_path):
    head = "task_id\thash\tname\tstatus\tsubmit\t"
    (tmp_path / "x").write_text(
        f"{head}start\trealtime\n1\ta\tM\tCOMPLETED\t2026-03-01 00:00:00.000\t2026-03-01 00:00:12.500\t9s\n"
    )
    assert latencies(read(tmp_path / "x"), "completed") == [12.5]
    (tmp_path / "y").write_text(f"{head}duration\trealtime\n1\ta\tM\tFAILED\t1772323200000\t80000\t241\n")
    log = read(tmp_path / "y")
    assert latencies(log, "completed") == [79.759]
    assert log.frame["submitted"][0] == pd.Timestamp("2026-03-01T00:00:00Z")
    (tmp_path / "z").write_text(f"{head}duration\n1\ta\tM\tFAILED\t1772323200000\t80000\n")
    with pytest.raises(latfit.LogError, match="start or both duration and realtime"):
        read(tmp_path / "z", format="nextflow")


@pytest.mark.parametrize("name", ["description.txt", "runs.description.txt"])
def test_aslib_cutoff_from_the_description(name, tmp_path):
    (tmp_path / "runs.arff").write_bytes((DATA / "runs.aslib").read_bytes())
    (tmp_path / name).write_text("scenario_id: X\nalgorithm_cutoff_time: 2500.0\n")
    log = read(tmp_path / "runs.arff")
    assert latencies(log, "completed") == [641.1, 3000]
    assert latencies(log, "failed") == [12.5]
    assert latencies(log, "censored") == [2500]
    assert any("cut at 2500 s" in note for note in log.facts.notes)


def test_aslib_penalties_are_not_run_times(tmp_path):
    rows = (DATA / "runs.aslib").read_text().replace("5001.2", "50000")
    (tmp_path / "runs.arff").write_text(rows)
    with pytest.raises(latfit.LogError, match=r"PAR10.*description\.txt"):
        read(tmp_path / "runs.arff")
    (tmp_path / "description.txt").write_text("algorithm_cutoff_time: 5000\n")
    assert latencies(read(tmp_path / "runs.arff"), "censored") == [5000]


def test_aslib_with_a_run_near_the_largest_number(tmp_path):
    (tmp_path / "runs.arff").write_text((DATA / "runs.aslib").read_text().replace("641.1", "1.5e308"))
    assert "implausible latency" in read(tmp_path / "runs.arff").facts.refused.reasons


def test_upptime_words():
    log = read(DATA / "checks.upptime")
    assert latencies(log, "completed") == [0.384, 4]
    assert log.frame["submitted"][0] == pd.Timestamp("2026-02-28T18:30:00Z")
    assert latencies(read(DATA / "checks.upptime", statuses={"down": "failed"}), "failed") == [30.001]


def test_ci_runs_by_conclusion(tmp_path):
    log = read(DATA / "runs.github-actions")
    assert latencies(log, "completed") == [61]
    assert latencies(log, "failed") == [12]
    assert latencies(log, "censored") == [180, 300]  # one goes on when the log ends, at 00:07
    assert log.facts.skipped == {"runs without a result": 1}
    (tmp_path / "x").write_text(
        "databaseId,conclusion,event,createdAt,startedAt,updatedAt\n"
        "1,success,push,2026-03-01T00:00:00Z,2026-03-01T00:00:30Z,2026-03-01T00:01:00Z\n"
    )
    assert latencies(read(tmp_path / "x"), "completed") == [30]
