"""In long logs only some probes are examined; the result must be that of all of them."""

import numpy as np
import pandas as pd
import pytest

from latfit.evidence import dependence
from latfit.evidence.changes import find_changes
from latfit.evidence.probes import MAX_ROWS_LOOKED_AT as MOST
from latfit.evidence.probes import evenly
from latfit.table import COMPLETED, LOST, Column, ProbeTable

N = 450_000


@pytest.fixture(scope="module")
def log():
    """Three sites in turn, the third one three times slower; everything twice as slow after 300 000 probes."""
    rng = np.random.default_rng(3)
    site = np.arange(N) % 3
    latency = rng.lognormal(5.5, 1, N) * np.where(site == 2, 3.0, 1.0) * np.where(np.arange(N) < 300_000, 1.0, 2.0)
    status = np.where(rng.random(N) < 0.02, LOST, COMPLETED)
    return ProbeTable(latency, status, np.arange(N) * 10.0, {"site": Column("site", site, pd.Index(["a", "b", "c"]))})


def test_rows_are_spread_evenly_and_at_random():
    rows = evenly(N)
    assert rows.size == MOST
    assert (np.diff(rows) > 0).all()
    assert np.abs(rows - np.arange(MOST) * N / MOST).max() <= N / MOST + 1
    assert np.bincount(rows % 3) / MOST == pytest.approx([1 / 3] * 3, abs=0.01)
    assert evenly(7).tolist() == list(range(7))


def test_a_change_is_found_where_it_is(log):
    found = find_changes(log.submitted, log.latency, log.status)
    assert found.probes == N
    (change,) = found.changes
    assert change.kind == "scale"
    assert abs(change.index - 300_000) < 2 * N / found.blocks
    assert abs(change.at - np.datetime64(int(log.submitted[change.index]), "s")) < np.timedelta64(60, "s")
    assert change.median[1] / change.median[0] == pytest.approx(2, rel=0.02)


def test_dependence_of_the_latest_million():
    rng, n = np.random.default_rng(4), 1_100_000
    calm = rng.lognormal(5, 1, n)
    slow = np.repeat(rng.lognormal(5, 1, n // 10), 10)
    latency = np.where(np.arange(n) < n - 1_000_000, calm, slow)
    found = dependence(ProbeTable(latency, np.full(n, COMPLETED), np.arange(n) * 1.0))
    assert found.lag1 == pytest.approx(0.9, abs=0.01)
