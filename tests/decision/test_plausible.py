"""An implausible answer, which points to a misread log, is an error unless the user accepts it."""

import json

import numpy as np
import pytest


def _log(path, latencies, gap):
    rows = "".join(f"2026-01-05T09:00:{gap * at:09.6f}Z,{x:.6f},ok\n" for at, x in enumerate(latencies))
    path.write_text("submitted,latency,status\n" + rows)
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("slow", "gap", "words"),
    [(3.0e6, 0.2, "times faster than by waiting"), (40.0, 0.01, "longer than the log")],
)
def test_implausible_answers_name_the_rows_and_the_option(run, tmp_path, slow, gap, words):
    rng = np.random.default_rng(1)
    latencies = rng.lognormal(0 if slow > 100 else 1.3, 0.2, 200)
    latencies[::20] = slow
    log = _log(tmp_path / "log.csv", latencies, gap)
    refused = run("analyze", log, "--resamples", 0)
    assert refused.returncode == 1
    assert all(part in " ".join(refused.stderr.split()) for part in (words, f"{slow:g} s", "--accept-implausible"))
    assert run("timeout", log, "--resamples", 0).returncode == 1
    accepted = run("analyze", log, "--resamples", 0, "--accept-implausible", "--json")
    assert json.loads(accepted.stdout)["timeout"]["retry"] is not None


def test_batch_has_no_row_where_analyze_has_no_answer(run, tmp_path):
    latencies = np.random.default_rng(1).lognormal(0, 0.2, 200)
    latencies[::20] = 3e6
    log, out = _log(tmp_path / "log.csv", latencies, 0.2), tmp_path / "out.jsonl"
    assert run("batch", log, "-o", out, "--resamples", 0).returncode == 0
    (row,) = map(json.loads, out.read_text().splitlines())
    assert row["timeout"] is None
    assert "not plausible" in row["error"]
