"""Policies replayed on a log against plain lines, job after job; against the formula where attempts are independent."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from conftest import EGEE
from latfit.cli import main
from latfit.evidence import replay, replay_policies
from latfit.laws import Defective, Empirical, parse_law
from latfit.restart import evaluate_policy
from latfit.restart.policies import parse_policy
from latfit.sample import LatencySample
from latfit.table import ProbeTable


class Plain:
    """One job on the log: which probe an attempt takes, and how it ends."""

    def __init__(self, seen, cutoff, groups, start):
        between = np.diff(seen.submitted, prepend=seen.submitted[0])  # nobody waits through a gap of the log
        seen = replace(seen, submitted=np.cumsum(np.minimum(between, np.quantile(between, 0.99))))
        self.mine = [i for i in range(seen.n) if groups[i] == groups[start]]
        self.seen, self.cutoff, self.now = seen, cutoff, seen.submitted[start]
        back = seen.latency[(seen.status == 0) & (seen.latency <= cutoff)]
        self.sparse = np.median(np.diff(seen.submitted)) > np.median(back)
        self.own, self.last, self.sent, self.out = self.mine.index(start), None, 0, []

    def attempt(self, u, age):
        """Submit at u: when it ends, and whether it is done then; IndexError beyond the log."""
        self.spent = u
        if self.last is None:
            at = self.own
        else:
            at = next((k for k, i in enumerate(self.mine) if self.seen.submitted[i] >= self.now + u), len(self.mine))
            at = max(at, self.last + 1 if self.sparse else self.own)
            while not self.sparse and any(index == at and end > u for index, end in self.out):
                at += 1
        i = self.mine[at]
        self.last, self.sent = at, self.sent + 1
        x, status = self.seen.latency[i], self.seen.status[i]
        ended = status in (0, 1) and x <= min(self.cutoff, age)
        end = u + (x if ended else age)
        self.out.append((at, end))
        return end, bool(ended and status == 0)


def hedge(job, cost, d, t_inf):
    begin = 0.0
    while True:
        ends = [job.attempt(begin, t_inf)]
        second = begin + d + cost
        if second < begin + t_inf and ends[0][0] > second:
            ends.append(job.attempt(second, t_inf - d - cost))
        done = [end for end, ok in ends if ok]
        if done:
            return min(done)
        begin = max(end for end, _ in ends) + cost


def delayed(job, cost, t0, t_inf):
    start, copies = 0.0, []
    while not any(ok and end <= start for end, ok in copies):
        copies.append(job.attempt(start, t_inf))
        start = min(start + t0 + cost, max(end for end, _ in copies) + cost)
    return min(end for end, ok in copies if ok)


def at_once(job, cost, b, t_inf):
    begin = 0.0
    while True:
        ends = [job.attempt(begin, t_inf) for _ in range(b)]
        done = [end for end, ok in ends if ok]
        if done:
            return min(done)
        begin = max(end for end, _ in ends) + cost


def in_turn(job, cost, timeouts, sleeps):
    begin = 0.0
    for timeout, sleep in zip(timeouts, [*sleeps, 0.0], strict=True):
        end, ok = job.attempt(begin, timeout)
        if ok:
            return end
        begin = end + cost + sleep
    return -end  # given up then


CASES = {
    "hedge(d=50,t_inf=150)": (hedge, 50.0, 150.0),
    "hedge(d=0,t_inf=90)": (hedge, 0.0, 90.0),
    "delayed(t0=60,t_inf=100)": (delayed, 60.0, 100.0),
    "delayed(t0=40,t_inf=80)": (delayed, 40.0, 80.0),
    "copies(b=2,t_inf=120)": (at_once, 2, 120.0),
    "copies(b=3,t_inf=70)": (at_once, 3, 70.0),
    "resubmit(d=45)": (delayed, 45.0, np.inf),
    "resubmit(d=11)": (delayed, 11.0, np.inf),
    "schedule(timeouts=[40,80,160],sleeps=[5,10])": (in_turn, [40.0, 80.0, 160.0], [5.0, 10.0]),
}


def told(seen, cutoff, groups, rule, cost, arguments):
    """Mean, submissions, the share that ran off, and that left undone."""
    spent, ended, sent, off, undone = 0.0, 0, 0, 0, 0
    for start in range(seen.n):
        job = Plain(seen, cutoff, groups, start)
        try:
            took = rule(job, cost, *arguments)
        except IndexError:
            off += 1
            sent += job.sent
            spent += job.spent
            continue
        spent, ended, sent, undone = spent + abs(took), ended + 1, sent + job.sent, undone + (took < 0)
    return spent / ended, sent / ended, off / seen.n, undone / seen.n


def observations(x, status, gap, rng):
    return ProbeTable(np.asarray(x), np.asarray(status), np.cumsum(rng.exponential(gap, len(x))))


@pytest.mark.slow
@pytest.mark.parametrize("gap", [0.5, 20.0, 2000.0])
@pytest.mark.parametrize("cost", [0.0, 15.0])
def test_against_plain_lines(gap, cost):
    rng = np.random.default_rng(1)
    seen = observations(rng.lognormal(4, 1, 200), rng.choice(4, 200, p=[0.8, 0.1, 0.05, 0.05]), gap, rng)
    for codes in (np.zeros(200, int), rng.integers(0, 3, 200)):
        log = replay(seen, 800.0, cost=cost, groups=codes)
        for spec, (rule, *arguments) in CASES.items():
            (one,) = replay_policies(log, [parse_policy(spec)])
            want = told(seen, 800.0, codes, rule, cost, arguments)
            assert (one.expected_duration, one.submissions, one.ran_off, one.undone) == pytest.approx(want), spec


@pytest.mark.parametrize("gap", [2.0, 300.0])
def test_a_timeout_is_that_of_the_replay(gap):
    rng = np.random.default_rng(4)
    seen = observations(rng.lognormal(4, 1, 2000).round(1), rng.choice(4, 2000, p=[0.8, 0.1, 0.05, 0.05]), gap, rng)
    log = replay(seen, 800.0, at=[40.3, 117.7], cost=2.0)
    found = replay_policies(log, [parse_policy(f"timeout(t={one.timeout})") for one in (*log.at, log.waiting)])
    for one, policy in zip((*log.at, log.waiting), found, strict=True):
        ours = (policy.expected_duration, policy.low, policy.high, policy.submissions, policy.ran_off, policy.gain_low)
        want = (one.expected_duration, one.low, one.high, one.submissions, one.ran_off, one.gain_low)
        assert ours == pytest.approx(want, rel=1e-9)
        assert policy.undone == 0
        levels = [[np.inf if x is None else x for x in each.quantiles.values()] for each in (policy, one)]
        assert levels[0] == pytest.approx(levels[1], rel=1e-9)


POLICIES = ["hedge(d=300,t_inf=900)", "hedge(d=300,t_inf=900,q=0.5)", "delayed(t0=300,t_inf=450)",
            "delayed(t0=101,t_inf=202)", "copies(b=2,t_inf=435)", "resubmit(d=306)", "luby(unit=60)",
            "schedule(timeouts=[300,600,1200],sleeps=[10,20],jitter=1)"]  # fmt: skip


def test_independent_attempts_agree_with_the_formulas():
    law, rng = Defective(parse_law("lognormal(mu=5.5,sigma=1)"), 0.025), np.random.default_rng(2)
    x = law.sample(50_000, rng)
    lost = np.isinf(x)
    log = replay(observations(np.where(lost, 1e4, x), np.where(lost, 3, 0), 5.0, rng), 1e4, cost=7.0)
    for one in replay_policies(log, [parse_policy(spec) for spec in POLICIES]):
        says = evaluate_policy(law, one.policy, cost=7.0)
        slack = one.high - one.low  # about four standard errors
        assert abs(one.expected_duration - says.expected_duration) < slack, one
        assert slack < 0.05 * says.expected_duration
        assert one.submissions == pytest.approx(says.submissions, rel=0.02)
        assert one.quantiles["0.95"] == pytest.approx(says.quantiles["0.95"], rel=0.04)
        assert one.undone == pytest.approx(1 - says.success, abs=0.003)
        assert one.ran_off < 0.01


@pytest.mark.slow
def test_independent_failures_agree_with_the_formulas():
    rng = np.random.default_rng(7)
    x, status = rng.lognormal(5.5, 1, 50_000), rng.choice([0, 1, 3], 50_000, p=[0.8, 0.17, 0.03])
    log = replay(observations(x, status, 5.0, rng), 1e5, cost=7.0)
    sample = LatencySample.of(x[status == 0], failed=x[status == 1], lost=int((status == 3).sum()))
    for one in replay_policies(log, [parse_policy(spec) for spec in POLICIES if not spec.startswith("resubmit")]):
        says = evaluate_policy(Empirical.of(sample), one.policy, cost=7.0)
        assert abs(one.expected_duration - says.expected_duration) < one.high - one.low < 0.06 * one.expected_duration
        assert one.submissions == pytest.approx(says.submissions, rel=0.02)


@pytest.mark.parametrize("spec", ["hedge(d=200,t_inf=900)", "delayed(t0=250,t_inf=500)"])
def test_a_hedge_gains_less_if_slow_attempts_follow_slow_ones(spec):
    """AR(1) in the log of the latency: the formula sees the same law, the log knows better."""
    rng, z = np.random.default_rng(3), np.zeros(20_000)
    for i in range(1, z.size):
        z[i] = 0.9 * z[i - 1] + np.sqrt(1 - 0.9**2) * rng.standard_normal()
    seen = observations(np.exp(5.5 + z), np.zeros(z.size, int), 60.0, rng)
    one, shuffled = (
        replay_policies(replay(each, float(seen.latency.max())), [parse_policy(spec)])[0]
        for each in (seen, ProbeTable(rng.permutation(seen.latency), seen.status, seen.submitted))
    )
    law = Empirical.of(LatencySample.of(seen.latency))
    says = 1 - evaluate_policy(law, spec).expected_duration / seen.latency.mean()
    assert shuffled.gain_low < says < shuffled.gain_high
    assert one.gain_high < 0.8 * says


def test_gains_over_another_policy():
    rng = np.random.default_rng(5)
    log = replay(observations(rng.lognormal(5.5, 1, 5000), np.zeros(5000, int), 5.0, rng), 1e5)
    slow, fast = parse_policy("timeout(t=380)"), parse_policy("copies(b=2,t_inf=435)")
    one, same = replay_policies(log, [fast, slow], against=slow)
    assert one.gain_low < 1 - one.expected_duration / same.expected_duration < one.gain_high
    assert (same.gain_low, same.gain_high) == pytest.approx((0, 0))


def test_a_policy_that_never_ends_is_reported():
    rng = np.random.default_rng(6)
    x = rng.lognormal(4, 1, 500)
    log = replay(observations(x, rng.choice([0, 3], 500, p=[0.9, 0.1]), 1.0, rng), 1e4)
    (one,) = replay_policies(log, [parse_policy("hedge(d=50)")])
    assert one.undone == pytest.approx(0.01, abs=0.015)
    assert one.to_dict()["expected_duration"] is None
    assert (one.low, one.gain_high) == (np.inf, -np.inf)


def test_the_command():
    def call(*words):
        return CliRunner().invoke(main, ["replay", str(EGEE), *words])

    spec = "hedge(d=312,t_inf=937)"
    done = call("--policy", spec, "--policy", "delayed(t0=326,t_inf=652)", "--json")
    assert done.exit_code == 0, done.stderr
    first, second = json.loads(done.stdout)["policies"]
    assert first["policy"] == "hedge(d=312,t_inf=937,q=1)"
    assert first["expected_duration"] == pytest.approx(272, abs=2)
    assert second["submissions"] == pytest.approx(1.25, abs=0.02)
    shown = call("--policy", spec).stdout.splitlines()
    assert "hedge(d=312" in shown[-1]
    assert all(len(line) <= 80 for line in shown[1:])
    wrong = call("--policy", "hedge(x=1)")
    assert (wrong.exit_code, "no parameter 'x'" in wrong.stderr) == (1, True)
