"""Cycles: what is needed to see one, and how much slower its slowest part is, by loops."""

import numpy as np
import pytest

from latfit.evidence.changes import find_cycle
from latfit.table import A_MONDAY

DAY = 86_400
WEEK = 7 * DAY


def cycle(seconds, values, *, period=DAY, parts=24):
    return find_cycle(
        A_MONDAY + np.asarray(seconds), np.asarray(values), np.asarray(values), period=period, parts=parts
    )


def wave(seconds, rng, noise=0.2):
    return np.sin(np.asarray(seconds) / DAY * 2 * np.pi) + rng.normal(0, noise, len(seconds))


def test_each_hour_needs_a_probe_a_day_on_four_days():
    rng = np.random.default_rng(1)
    hourly = np.arange(96) * 3600.0
    values = wave(hourly, rng)
    assert cycle(hourly, values) > 1
    assert cycle(hourly[:95], values[:95]) is None
    three = np.arange(300) * 864.0
    assert cycle(three, wave(three, rng)) is None
    assert cycle(np.arange(400) * 864.0, wave(np.arange(400) * 864.0, rng)) is not None


def test_days_without_a_probe_do_not_count():
    rng = np.random.default_rng(2)
    hourly = np.arange(96) * 3600.0 + np.repeat([0, 5, 11, 30], 24) * DAY
    values = wave(hourly, rng)
    assert cycle(hourly, values) == cycle(np.arange(96) * 3600.0, values)


@pytest.mark.parametrize(("hours", "said"), [(5, False), (6, True)])
def test_a_quarter_of_all_hours_must_have_a_probe(hours, said):
    rng = np.random.default_rng(3)
    day, hour, again = np.meshgrid(np.arange(12), np.arange(hours) * 4, np.arange(3), indexing="ij")
    seconds = np.sort((day * DAY + hour * 3600.0 + again * 60).ravel())
    values = np.where(seconds % DAY < 5 * 3600, 1.0, 0.0) + rng.normal(0, 0.1, seconds.size)
    assert (cycle(seconds, values) is not None) == said


def test_a_week_begins_on_monday():
    rng = np.random.default_rng(4)
    seconds = np.arange(8 * 7 * 6) * DAY / 6
    values = np.where(seconds % WEEK >= 5 * DAY, 1.0, 0.0) + rng.normal(0, 0.1, seconds.size)
    assert cycle(seconds, values, period=WEEK, parts=7) == pytest.approx(np.e, rel=0.1)


@pytest.mark.parametrize(("noise", "step"), [(0.3, 2500.0), (1.5, 2500.0), (0.5, 3.1 * 3600.0)])
def test_offsets_by_loops(noise, step):
    """Means of parts less those of their days, about 0, times the share of their variance that noise leaves."""
    rng = np.random.default_rng(5)
    seconds = np.arange(0, 40 * DAY, step) + rng.uniform(0, 60)
    seconds = seconds[(seconds % DAY < 19 * 3600) | (seconds % DAY > 21 * 3600)]
    seconds = np.append(seconds, [40.9 * DAY, 41.85 * DAY, 42.9 * DAY])  # alone on their days; one is alone in its hour
    values = 1.5 * wave(seconds, rng, noise) + rng.normal(0, 2, 43)[(seconds // DAY).astype(int)]
    days, hours = (seconds // DAY).astype(int).tolist(), (seconds % DAY // 3600).astype(int).tolist()
    level = {day: np.mean([v for v, d in zip(values, days, strict=True) if d == day]) for day in set(days)}
    rest = [v - level[d] for v, d in zip(values, days, strict=True)]
    mine = {hour: [r for r, h in zip(rest, hours, strict=True) if h == hour] for hour in range(24)}
    mean = {hour: sum(each) / len(each) for hour, each in mine.items() if each}
    middle = sum(rest) / len(rest)
    offset = {hour: each - middle for hour, each in mean.items()}
    left = np.var([r - offset[h] for r, h in zip(rest, hours, strict=True)])
    error = {hour: left / len(mine[hour]) for hour in offset}
    between = max(0.0, np.var([*offset.values()]) - np.mean([*error.values()]))
    want = [offset[h] * between / (between + error[h]) if h in offset else 0.0 for h in range(24)]
    assert (len(mine[19]), len(mine[20])) == (0, 1)
    assert cycle(seconds, values) == pytest.approx(np.exp(max(want) - min(want)), rel=1e-9)


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
    found = find_cycle(A_MONDAY + seconds, scores, scores, period=86_400, parts=parts)
    sums, counts = np.zeros((days, parts)), np.zeros((days, parts))
    for day, part, score in zip(seconds // 86_400, hour, scores, strict=True):
        sums[day, part] += score
        counts[day, part] += 1
    rest = sums - counts * (sums.sum(axis=1) / counts.sum(axis=1))[:, None]
    observed, exceeded, own = spread(rest.sum(axis=0), counts.sum(axis=0)), 0, np.random.default_rng(0)
    for _ in range(499):
        turns = own.integers(0, parts, days)
        turned = [[np.roll(each[day], -turns[day]) for day in range(days)] for each in (rest, counts)]
        exceeded += spread(*(np.sum(each, axis=0) for each in turned)) >= observed
    p_value = (1 + exceeded) / (500)
    assert (found is None) == (p_value > 0.01)
