"""The log of a measurement: its contents, after a killed run too, and how it is read."""

import json
import math

import numpy as np
import pytest

import latfit
from latfit.errors import ProbeError
from latfit.measure.journal import new_run, open_journal
from latfit.measure.targets import Attempt, Outcome

HEADER = {
    "latfit": "probe",
    "run": "r1",
    "target": "command",
    "kind": "probes",
    "plan": "",
    "arrivals": "closed",
    "in_flight": 3,
}


def line(**values):
    return json.dumps(values) + "\n"


def submitted(probe, t, job=None, attempt=1):
    return line(probe=probe, job=job or probe, attempt=attempt, submitted=f"2026-03-01T00:00:{t:06.3f}000Z", t=t)


def ended(probe, latency, t, status="completed"):
    return line(end=probe, status=status, latency=latency, detail="exit 0", t=t)


def test_each_probe_is_one_row_and_unfinished_ones_are_censored(tmp_path, run):
    path = tmp_path / "log"
    path.write_text(
        json.dumps(HEADER) + "\n"
        + submitted(1, 0.0) + submitted(2, 0.5) + submitted(3, 1.0)
        + ended(1, 1.5, 1.5) + ended(3, 0.75, 1.75, "failed")
        + line(beat=4.0, lag=0.001)
        + json.dumps({**HEADER, "run": "r2"}) + "\n"
        + submitted(4, 0.25) + ended(4, 2.0, 2.25, "censored") + submitted(5, 2.5)
        + line(finished="done", t=9.0, lag=0.0)
    )  # fmt: skip
    log = latfit.read_log(path)
    assert log.facts.format == "probe"
    assert log.facts.refused.count == 0
    rows = log.frame.sort_values("submitted", kind="stable")
    got = sorted(zip(rows["run"], rows["latency"], rows["status"].astype(str), strict=True))
    assert got == [
        ("r1", 0.75, "failed"),
        ("r1", 1.5, "completed"),
        ("r1", 3.5, "censored"),  # submitted at .5; the beat at 4 is the last that is known of its run
        ("r2", 2.0, "censored"),
        ("r2", 6.5, "censored"),
    ]
    assert "job" not in rows.columns
    notes = " ".join(log.facts.notes)
    assert "closed loop of 3" in notes
    assert "without an end: 2" in notes
    assert "failed: 1 × exit 0" in notes
    assert "censored" in run("convert", path, "-o", tmp_path / "log.csv").stderr
    assert (tmp_path / "log.csv").read_text().count("\n") == 6


def test_jobs_have_their_columns(tmp_path):
    path = tmp_path / "log"
    path.write_text(
        json.dumps({**HEADER, "kind": "jobs"}) + "\n"
        + submitted(1, 0.0) + ended(1, 1.0, 1.0, "censored") + submitted(2, 1.0, job=1, attempt=2) + ended(2, 0.5, 1.5)
    )  # fmt: skip
    frame = latfit.read_log(path).frame
    assert frame[["job", "attempt"]].to_numpy().tolist() == [[1, 1], [1, 2]]


def test_only_a_torn_line_is_refused(tmp_path):
    path = tmp_path / "log"
    whole = (
        json.dumps(HEADER) + "\n" + "".join(submitted(k, k / 10) + ended(k, 0.05, k / 10 + 0.05) for k in range(1, 21))
    )
    path.write_text(whole + submitted(21, 3.0) + '{"end": 21, "sta')
    log = latfit.read_log(path)
    assert log.facts.refused.count == 1
    assert log.counts == {"completed": 20, "failed": 0, "censored": 1, "lost": 0}
    with open_journal(path, new_run(), resume=True) as (journal, earlier):
        journal.write({**HEADER, "run": journal.run})
    assert (earlier.probes, earlier.jobs, [a.probe for a in earlier.left]) == (21, 21, [21])
    assert latfit.read_log(path).counts == log.counts


def test_only_one_process_writes_and_only_to_a_probe_log(tmp_path):
    path = tmp_path / "log"
    with open_journal(path, "a", resume=False) as (journal, _):
        journal.write(HEADER)
        with pytest.raises(ProbeError, match="another latfit"), open_journal(path, "b", resume=True):
            pass
    with pytest.raises(ProbeError, match="--resume"), open_journal(path, "b", resume=False):
        pass
    (tmp_path / "x.csv").write_text("latency\n1\n")
    with (
        pytest.raises(ProbeError, match="line 1 is not one of a log"),
        open_journal(tmp_path / "x.csv", "b", resume=True),
    ):
        pass


def test_random_histories_are_read_as_they_were(tmp_path):
    """Whatever order things happen in, the reader finds each probe once, as an independent account of it has it."""
    rng = np.random.default_rng(5)
    for trial in range(8):
        path = tmp_path / f"{trial}"
        want, number = [], 0
        for run in range(int(rng.integers(1, 4))):
            with open_journal(path, f"run{run}", resume=True) as (journal, earlier):
                assert earlier.probes == number
                journal.write({**HEADER, "run": journal.run})
                out = {}
                for _ in range(int(rng.integers(0, 30))):
                    if out and rng.random() < 0.5:
                        attempt = out.pop(list(out)[int(rng.integers(len(out)))])
                        latency = round(float(rng.exponential()), 6)
                        journal.ended(attempt, Outcome("completed", latency, "x"))
                        want.append(latency)
                    else:
                        number += 1
                        out[number] = Attempt(journal.run, number, number, 1)
                        journal.submitted(out[number])
                want += [math.nan] * len(out)
        if not want:
            continue
        frame = latfit.read_log(path).frame
        done = frame[frame["status"] == "completed"]["latency"]
        assert sorted(done) == sorted(x for x in want if x == x)
        assert len(frame) == len(want) == number
