"""Replay against a dozen plain lines, on independent and dependent systems."""

import numpy as np
import pytest

from latfit.evidence import Observations, replay
from latfit.laws import Defective, parse_law
from latfit.restart import expected_duration


def plain(seen, cutoff, T, cost=0.0, groups=None):
    """Job after job, attempt after attempt."""
    groups = np.zeros(seen.n, int) if groups is None else groups
    sparse = np.median(np.diff(seen.submitted)) > np.median(seen.latency[(seen.status == 0) & (seen.latency <= cutoff)])
    total, done, sent = 0.0, 0, 0
    for start in range(seen.n):
        mine = np.flatnonzero(groups == groups[start])
        at, clock = int(np.flatnonzero(mine == start)[0]), seen.submitted[start]
        while True:
            x, status = seen.latency[mine[at]], seen.status[mine[at]]
            sent += 1
            if status == 0 and x <= min(T, cutoff):
                total, done = total + x, done + 1
                break
            used = (x if status == 1 and x <= min(T, cutoff) else T) + cost
            total, clock = total + used, clock + used
            at = max(int(np.searchsorted(seen.submitted[mine], clock)), at + sparse)
            if at >= mine.size:
                break
    return total / done, sent / done


def observations(x, status, gap, rng):
    return Observations(np.asarray(x), np.asarray(status), np.cumsum(rng.exponential(gap, len(x))))


@pytest.mark.parametrize("gap", [0.5, 20.0, 2000.0])
@pytest.mark.parametrize("cost", [0.0, 30.0])
def test_against_plain_lines(gap, cost):
    rng = np.random.default_rng(1)
    n = 300
    seen = observations(rng.lognormal(4, 1, n), rng.choice(4, n, p=[0.8, 0.1, 0.05, 0.05]), gap, rng)
    groups = rng.integers(0, 3, n)
    for codes in (None, groups):
        found = replay(seen, 800.0, at=[60.0, 200.0], cost=cost, groups=codes)
        for one in (*found.at, found.waiting):
            want = plain(seen, 800.0, one.timeout, cost, codes)
            assert (one.expected_duration, one.submissions) == pytest.approx(want, rel=1e-9)


def test_jobs_are_followed_to_their_end():
    """Hours without a probe, in which a short timeout is struck thousands of times: each of them takes time."""
    rng = np.random.default_rng(3)
    n = 300
    gaps = np.where(np.arange(n) % 30, 5.0, 200_000.0)
    slow = rng.random(n) < np.where(np.arange(n) % 30 > 26, 0.9, 0.1)
    seen = Observations(np.where(slow, 3000.0, 8.0) * rng.uniform(0.8, 1.2, n), np.zeros(n, int), np.cumsum(gaps))
    found = replay(seen, 4000.0, at=[10.0, 40.0])
    for one in (*found.at, found.waiting, found.best):
        assert (one.expected_duration, one.submissions) == pytest.approx(plain(seen, 4000.0, one.timeout), rel=1e-9)
    assert found.at[0].submissions > 100
    assert found.at[0].expected_duration > found.waiting.expected_duration
    assert found.at[0].ran_off < 0.05


def test_a_probe_at_the_very_moment_is_the_next_one():
    """Milliseconds as decimals do not add up: .736 + .001 < .737; the probe submitted then is still the next."""
    n = 400
    seen = Observations(np.tile([0.009, 0.001], n // 2), np.zeros(n, int), 1.5e9 + np.arange(n) / 1000)
    (one,) = replay(seen, 0.009, at=[0.001], groups=np.arange(n) // 40).at
    assert one.expected_duration == pytest.approx(0.0015)
    assert one.submissions == 1.5


def test_independent_attempts_agree_with_the_formula():
    law, rng = Defective(parse_law("lognormal(mu=5.5,sigma=1)"), 0.025), np.random.default_rng(2)
    x = law.sample(20_000, rng)
    lost = np.isinf(x)
    seen = observations(np.where(lost, 1e4, x), np.where(lost, 3, 0), 5.0, rng)
    found = replay(seen, 1e4, at=[384.0])
    E = float(expected_duration(law, 384.0))
    assert found.at[0].expected_duration == pytest.approx(E, rel=0.02)
    assert found.at[0].low < E < found.at[0].high
    assert found.best.expected_duration <= found.at[0].expected_duration


@pytest.mark.parametrize(("phi", "harm"), [(0.0, False), (0.9, False), (0.99, True)])
def test_what_dependence_does(phi, harm):
    """AR(1) in the log of the latency: at 0.99 a timeout does harm, whatever the formula says."""
    rng = np.random.default_rng(3)
    z = rng.standard_normal(20_000)
    for i in range(1, z.size):
        z[i] = phi * z[i - 1] + np.sqrt(1 - phi**2) * z[i]
    seen = observations(np.exp(5.5 + z), np.zeros(z.size, int), 5.0, rng)
    found = replay(seen, float(seen.latency.max()), at=[384.0])
    assert (found.at[0].expected_duration > found.waiting.expected_duration) == harm
    assert (found.at[0].gain_high < 0) == harm


def test_without_times_there_is_no_replay():
    assert replay(Observations(np.ones(100), np.zeros(100, int)), 10.0) is None
    assert replay(Observations(np.ones(10), np.zeros(10, int), np.arange(10.0)), 10.0) is None


def test_the_command(run, tmp_path):
    import json

    from conftest import EGEE

    done = run("replay", EGEE, "--at", "358", "--at", "6m", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["at"][0]["expected_duration"] == pytest.approx(297, abs=2)
    assert document["at"][1]["timeout"] == 360
    assert document["waiting"] > 2 * document["best"]["expected_duration"]
    (tmp_path / "x.csv").write_text("latency\n" + "\n".join(map(str, range(1, 100))))
    without = run("replay", tmp_path / "x.csv")
    assert without.returncode == 1
    assert "--column submitted=" in without.stderr
