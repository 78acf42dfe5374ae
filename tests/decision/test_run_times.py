"""Run times of tasks and waits in queues: a retry cannot be a new draw, so the answer is to wait."""

import numpy as np
import pandas as pd
import pytest

import latfit


def written(tmp_path, **columns):
    path = tmp_path / "log.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    return latfit.analyze(latfit.read_log(path), resamples=0, test=False).to_dict()["timeout"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "code"), [("runtime_s", "work"), ("exec_time_seconds", "work"), ("queue_wait_s", "queue")]
)
def test_column_names_show_what_is_measured(name, code, tmp_path):
    x = np.random.default_rng(0).lognormal(0, 1.6, 400).round(3)
    timeout = written(tmp_path, **{name: x, "status": "ok"})
    assert (timeout["retry"], timeout["verdict"], timeout["withheld"][0]) == (None, "withheld", code)


def test_a_latency_of_the_same_values_is_answered(tmp_path):
    x = np.random.default_rng(0).lognormal(0, 1.6, 400).round(3)
    assert written(tmp_path, latency_s=x, status="ok")["retry"] is not None


def test_pods_from_creation_to_scheduling_wait_in_a_queue(tmp_path):
    rng = np.random.default_rng(1)
    created = 1_700_000_000 + np.sort(rng.uniform(0, 1e6, 300)).round()
    scheduled = created + rng.lognormal(3, 1.5, 300).round() + 1
    timeout = written(tmp_path, creation_time=created, scheduled_time=scheduled)
    assert timeout["retry"] is None
    assert "queue" in timeout["withheld"]


def test_rows_with_neither_a_start_nor_an_end_are_skipped(tmp_path):
    path = tmp_path / "pods.csv"
    rows = [f"{1_700_000_000 + 60 * i},{1_700_000_005 + 61 * i}" for i in range(30)] + [","] * 20
    path.write_text("creation_time,scheduled_time\n" + "\n".join(rows) + "\n")
    facts = latfit.read_log(path).facts
    assert facts.skipped == {"rows with neither a start nor an end": 20}
    assert facts.queue
