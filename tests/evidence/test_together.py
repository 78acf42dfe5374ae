"""Evidence worked on in arrays is what one thing after the other gives."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from latfit.evidence import replay
from latfit.evidence.cycles import MONDAY, SHUFFLES, find_cycle
from latfit.table import ProbeTable


@pytest.mark.parametrize("size", [1, 700, 10**9])
def test_timeouts_followed_together_or_one_by_one(size, monkeypatch):
    rng = np.random.default_rng(8)
    n = 300
    seen = ProbeTable(rng.lognormal(4, 1, n), rng.choice(4, n, p=[0.8, 0.1, 0.05, 0.05]), np.cumsum(rng.random(n)))
    whole = replay(seen, 800.0, at=[60.0], cost=2.0)
    monkeypatch.setattr(importlib.import_module("latfit.evidence.replay"), "TOGETHER", size)
    again = replay(seen, 800.0, at=[60.0], cost=2.0)
    assert repr((whole.curve, whole.at, whole.waiting, whole.best)) == repr(
        (again.curve, again.at, again.waiting, again.best)
    )


def spread(sums, counts):
    return sum(s**2 / c for s, c in zip(sums, counts, strict=True) if c)


@pytest.mark.parametrize("strength", [0.0, 0.1, 0.4])
def test_p_value_of_a_cycle_by_a_loop(strength):
    """Periods turned one by one, cells added one by one."""
    rng = np.random.default_rng(9)
    days, parts, n = 12, 24, 900
    seconds = np.sort(rng.integers(0, days * 86_400, n))
    hour = seconds % 86_400 * parts // 86_400
    scores = rng.normal(size=n) + strength * np.sin(hour / parts * 2 * np.pi)
    found = find_cycle(MONDAY + seconds.astype("timedelta64[s]"), scores, scores, period=86_400, parts=parts)
    sums, counts = np.zeros((days, parts)), np.zeros((days, parts))
    for day, part, score in zip(seconds // 86_400, hour, scores, strict=True):
        sums[day, part] += score
        counts[day, part] += 1
    rest = sums - counts * (sums.sum(axis=1) / counts.sum(axis=1))[:, None]
    observed, exceeded, own = spread(rest.sum(axis=0), counts.sum(axis=0)), 0, np.random.default_rng(0)
    for _ in range(SHUFFLES):
        turns = own.integers(0, parts, days)
        turned = [[np.roll(each[day], -turns[day]) for day in range(days)] for each in (rest, counts)]
        exceeded += spread(*(np.sum(each, axis=0) for each in turned)) >= observed
    p_value = (1 + exceeded) / (1 + SHUFFLES)
    assert (found is None) == (p_value > 0.01)
    assert found is None or found.p_value == p_value
