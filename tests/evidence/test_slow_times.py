"""Slow times that last: what a sparse log shows of them, and what following the advice really brings."""

import json

import numpy as np
import pandas as pd
import pytest

import latfit
from latfit.decision import Options, decide
from latfit.evidence import Observations
from latfit.evidence.slow_times import slow_times

PLAIN = Options(resamples=0, test=False, laws=())
CUTOFF = 200.0


class System:
    """A log-normal system that is `slow` times slower in random times of about `lasts` seconds, and loses some."""

    def __init__(self, seed, *, slow=15.0, lasts=3600.0, share=0.1, lost=0.01, days=10.0):
        self.rng, self.slow, self.lost, self.end = np.random.default_rng(seed), slow, lost, 86400 * days
        gaps = self.rng.exponential([lasts * (1 / share - 1), lasts], (int(4 * self.end * share / lasts) + 20, 2))
        self.edges = np.cumsum(gaps)

    def draw(self, when):
        inside = np.searchsorted(self.edges, when) % 2 == 1
        x = self.rng.lognormal(0, 0.5, when.size) * np.where(inside, self.slow, 1.0)
        return np.where(self.rng.random(when.size) < self.lost, np.inf, x)

    def log(self, n):
        when = np.sort(self.rng.uniform(0, self.end, n))
        x = self.draw(when)
        status = np.where(x > CUTOFF, "censored", "completed")
        return pd.DataFrame({"submitted": pd.to_datetime(when, unit="s", utc=True), "latency": np.minimum(x, CUTOFF),
                             "status": status})  # fmt: skip

    def followed(self, timeout, jobs=3000, most=3000):
        """The mean duration of jobs that are cancelled at the timeout and meet the system as it is then."""
        start = self.rng.uniform(0, 0.95 * self.end, jobs)
        clock, out = start.copy(), np.arange(jobs)
        for _ in range(most):
            x = self.draw(clock[out])
            clock[out] += np.minimum(x, timeout)
            out = out[x > timeout]
            if not out.size:
                break
        return float((clock - start).mean())


def decided(frame):
    return decide([Observations.of(latfit.from_frame(frame))], PLAIN)[0]


SYSTEMS = [
    {"slow": 15.0, "lasts": 3600.0}, {"slow": 30.0, "lasts": 1800.0, "share": 0.05, "days": 5},
    {"slow": 10.0, "lasts": 7200.0, "share": 0.2}, {"slow": 8.0, "lasts": 60.0, "days": 0.6},
    {"slow": 10.0, "lasts": 600.0, "share": 0.03, "lost": 0.0, "days": 2},
]  # fmt: skip


@pytest.mark.parametrize("kind", SYSTEMS)
def test_following_the_advice_does_no_harm(kind):
    """Four logs of each system, 1000 to 4000 probes: whatever is set is no slower than waiting in that system."""
    for seed, n in enumerate(np.geomspace(1000, 4000, 4).astype(int)):
        system = System(seed, **kind)
        made = decided(system.log(n)).timeout
        if made.verdict == "finite":
            assert system.followed(made.timeout) < 1.05 * system.followed(CUTOFF)


def test_the_formula_alone_would_do_harm():
    system = System(0, **SYSTEMS[0])
    made = decided(system.log(3000))
    assert made.timeout.basis == "replay"
    assert "slow-times" in made.codes
    assert system.followed(made.timeout.exact_timeout) > 10 * system.followed(CUTOFF)
    assert made.timeout.replayed == pytest.approx(system.followed(made.timeout.timeout), rel=0.3)


@pytest.mark.parametrize("lost", [0.0, 0.05, 0.3])
def test_independent_probes_have_none(lost):
    """Of 60 logs of 40 to 4000 probes, whichever timeout is asked for."""
    for seed, n in enumerate(np.geomspace(40, 4000, 20).astype(int)):
        frame = System(seed, slow=1.0, lost=lost).log(n)
        seen = Observations.of(latfit.from_frame(frame))
        assert all(slow_times(seen, t) is None for t in (0.3, 1.0, 3.0, 20.0))


def test_the_delay_by_counting():
    """Every third hour is slow: after a slow probe the next quick one comes (60, 50, … minutes) later."""
    when = np.arange(0, 86400 * 3, 600.0)
    slow = (when // 3600) % 3 == 2
    frame = pd.DataFrame({"submitted": pd.to_datetime(when, unit="s", utc=True), "latency": np.where(slow, 90.0, 1.0),
                          "status": "completed"})  # fmt: skip
    found = slow_times(Observations.of(latfit.from_frame(frame)), 2.0)
    quick = np.append(when[~slow], when[-1])
    after = [quick[np.searchsorted(quick, t)] - t - 2.0 for t in when[slow]]
    assert found.share == pytest.approx(slow.mean())
    assert found.lasts == pytest.approx(np.maximum(after, 0).mean())
    assert found.by_chance == pytest.approx(600 / (1 - slow.mean()), rel=0.02)
    assert found.held_up == pytest.approx(found.share * (found.lasts - found.by_chance))


def test_outages_hold_up_whoever_waits():
    """Nothing comes back in an outage: the timeout stays, and the warning says what a job takes."""
    system = System(3, slow=np.inf, lasts=1800.0, share=0.05)
    made = decided(system.log(3000))
    assert made.timeout.basis == "independent"
    slow = made.evidence.slow_times
    assert made.timeout.expected_duration + slow.held_up == pytest.approx(
        system.followed(made.timeout.timeout), rel=0.5
    )
    assert {"outages", "slow-times"} <= set(made.codes)


def test_every_command_says_so(tmp_path, run):
    path = tmp_path / "slow.csv"
    System(0, **SYSTEMS[0]).log(3000).to_csv(path, index=False)
    done = run("analyze", path, "--resamples", 0)
    assert "probes slower than" in " ".join(done.stdout.split())
    told = json.loads(run("timeout", path, "--json", "--resamples", 0).stdout)
    assert told["basis"] == "replay"
    found = json.loads(run("analyze", path, "--json", "--resamples", 0).stdout)["evidence"]["slow_times"]
    assert found["held_up"] > 60
    pasted = run("settings", "tenacity", path)
    assert "if attempts were independent" in pasted.stdout + pasted.stderr


def test_a_watch_does_not_offer_the_formula(tmp_path, run):
    path = tmp_path / "slow.csv"
    System(0, **SYSTEMS[0]).log(3000).to_csv(path, index=False)
    done = run("watch", path)
    assert "not to be set. Set the timeout to" in done.stderr
    assert done.stdout.rstrip().endswith("WITHHELD (dependent): not to be set")
