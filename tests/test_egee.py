"""The bundled log: every aggregate that Glatard et al. 2006 print, recomputed from the CSV alone."""

import csv
import subprocess
import sys

import numpy as np
import pytest

import latfit
from conftest import EGEE, REPO


def rows():
    with EGEE.open() as file:
        return list(csv.DictReader(file))


def optimum(latencies, n):
    """The least (Σ_{x≤t} x + (n − i) t)/i over the observed t: Glatard et al. 2006, eq. 6."""
    x = np.sort(latencies)
    i = np.arange(1, x.size + 1)
    expected = (np.cumsum(x) + (n - i) * x) / i
    return x[expected.argmin()], expected.min()


def test_aggregates_of_the_paper():
    log = rows()
    returned = np.array([float(r["latency"]) for r in log if r["status"] == "completed"])
    assert len(log) == 2137
    assert len({r["submitted"][:10] for r in log}) == 3
    assert len({r["broker"] for r in log}) == 3
    out = [r["latency"] for r in log if r["status"] == "censored"]
    assert out == ["10000"] * 53
    assert returned.mean() == pytest.approx(393, abs=1)
    assert returned.std(ddof=1) == pytest.approx(792, abs=3)
    assert np.array_equal(returned, np.rint(returned))
    t, e = optimum(returned, returned.size)
    assert (t, e) == (pytest.approx(360, abs=3), pytest.approx(289, abs=1))
    assert returned.mean() / e == pytest.approx(1.36, abs=0.006)
    t, e = optimum(returned, len(log))
    assert (t, e) == (pytest.approx(358, abs=3), pytest.approx(300, abs=1))


def test_a_constant_number_of_probes_is_in_flight():
    for broker in ("rb1", "rb2", "rb3"):
        for day in ("03", "05", "10"):
            mine = [r for r in rows() if r["broker"] == broker and r["submitted"][8:10] == day]
            start = np.array([np.datetime64(r["submitted"][:-1]) for r in mine]).astype(np.int64)
            end = start + np.array([int(r["latency"]) for r in mine])
            in_flight = [np.count_nonzero((start <= t) & (t < end)) for t in start]
            assert set(in_flight[3:]) == {3}


@pytest.mark.slow
def test_the_script_makes_this_file(tmp_path):
    subprocess.run([sys.executable, REPO / "scripts" / "make-egee-log", tmp_path / "log.csv"], check=True)
    assert (tmp_path / "log.csv").read_bytes() == EGEE.read_bytes()


def test_example_log():
    log = latfit.example_log()
    assert log.counts == {"completed": 2084, "failed": 0, "censored": 53, "lost": 0}
    assert log.facts.refused.count == 0
    assert log.facts.notes == ()
    assert log.resolution == 1
