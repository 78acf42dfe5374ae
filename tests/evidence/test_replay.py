"""Replay against a dozen plain lines, on independent and dependent systems."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from latfit.errors import LogError
from latfit.evidence import replay, replay_policies
from latfit.evidence.replay import SAME_MOMENT, replay_logs, require_times
from latfit.laws import Defective, parse_law
from latfit.restart import expected_duration
from latfit.restart.policies.timeout import Timeout
from latfit.table import ProbeTable


def without_gaps(submitted):
    """Submissions with every time between two of them cut at the 99 % quantile: nobody waits through a gap."""
    between = np.diff(submitted, prepend=submitted[0])
    return np.cumsum(np.minimum(between, np.quantile(between, 0.99)))


def jobs(seen, cutoff, T, cost=0.0, groups=None, tick=0.0):
    """Job after job, attempt after attempt: what each spent, whether it was done, its submissions."""
    groups = np.zeros(seen.n, int) if groups is None else groups
    seen = replace(seen, submitted=without_gaps(seen.submitted))
    sparse = np.median(np.diff(seen.submitted)) > np.median(seen.latency[(seen.status == 0) & (seen.latency <= cutoff)])
    for start in range(seen.n):
        mine = np.flatnonzero(groups == groups[start])
        at, clock = int(np.flatnonzero(mine == start)[0]), seen.submitted[start]
        spent, sent = 0.0, 0
        while at < mine.size:
            x, status = seen.latency[mine[at]], seen.status[mine[at]]
            sent += 1
            if status == 0 and x <= min(T, cutoff):
                yield spent + x, True, sent
                break
            used = (x if status == 1 and x <= min(T, cutoff) else T) + cost
            spent, clock = spent + used, clock + used
            at = max(int(np.searchsorted(seen.submitted[mine], clock - tick)), at + sparse)
        else:
            yield spent, False, sent


def plain(seen, cutoff, T, cost=0.0, groups=None, tick=0.0):
    """Mean and submissions."""
    spent, done, sent = zip(*jobs(seen, cutoff, T, cost, groups, tick), strict=True)
    return sum(spent) / sum(done), sum(sent) / sum(done)


def observations(x, status, gap, rng):
    return ProbeTable(np.asarray(x), np.asarray(status), np.cumsum(rng.exponential(gap, len(x))))


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
    seen = ProbeTable(np.where(slow, 3000.0, 8.0) * rng.uniform(0.8, 1.2, n), np.zeros(n, int), np.cumsum(gaps))
    found = replay(seen, 4000.0, at=[10.0, 40.0])
    for one in (*found.at, found.waiting, found.best):
        assert (one.expected_duration, one.submissions) == pytest.approx(plain(seen, 4000.0, one.timeout), rel=1e-9)
    assert found.at[0].submissions > 100
    assert found.at[0].expected_duration > found.waiting.expected_duration
    assert found.at[0].ran_off < 0.05


def test_a_probe_submitted_at_the_same_moment_is_the_next_one():
    """Milliseconds as decimals do not add up: .736 + .001 < .737; the probe submitted then is still the next."""
    n = 400
    seen = ProbeTable(np.tile([0.009, 0.001], n // 2), np.zeros(n, int), 1.5e9 + np.arange(n) / 1000)
    (one,) = replay(seen, 0.009, at=[0.001], groups=np.arange(n) // 40).at
    assert one.expected_duration == pytest.approx(0.0015)
    assert one.submissions == 1.5


@pytest.mark.parametrize("apart", [0.2, 2000.0])
def test_a_probe_at_the_very_moment_of_thousands_of_groups(apart):
    """Two probes each: the first is given up when the second one is submitted, within seconds or over four months."""
    groups, first = np.repeat(np.arange(5000), 2), 1.5e9 + np.arange(5000) * apart
    first += np.random.default_rng(6).integers(0, apart * 900, 5000) / 1000
    when = np.column_stack([first, first + 0.001]).ravel()
    (one,) = replay(ProbeTable(np.tile([0.003, 0.001], 5000), np.zeros(10_000, int), when), 0.003, at=[0.001],
                    groups=groups).at  # fmt: skip
    assert (one.expected_duration, one.submissions, one.ran_off) == (pytest.approx(0.0015), 1.5, 0.0)


def test_independent_attempts_agree_with_the_formula():
    law, rng = Defective(parse_law("lognormal(mu=5.5,sigma=1)"), 0.025), np.random.default_rng(2)
    x = law.sample(20_000, rng)
    lost = np.isinf(x)
    seen = observations(np.where(lost, 1e4, x), np.where(lost, 3, 0), 5.0, rng)
    found = replay(seen, 1e4, at=[384.0])
    E = float(expected_duration(law, 384.0))
    assert found.at[0].expected_duration == pytest.approx(E, rel=0.02)
    assert found.at[0].low < E < found.at[0].high
    assert found.best.expected_duration <= 1.01 * found.at[0].expected_duration  # 60 timeouts were tried


@pytest.mark.parametrize(("phi", "harm"), [(0.0, False), (0.9, False), (0.99, True)])
def test_with_dependence_a_timeout_can_do_harm(phi, harm):
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
    assert replay(ProbeTable(np.ones(100), np.zeros(100, int)), 10.0) is None
    assert replay(ProbeTable(np.ones(10), np.zeros(10, int), np.arange(10.0)), 10.0) is None


def test_the_command(run, tmp_path):
    import json

    from conftest import EGEE

    done = run("replay", EGEE, "--at", "358", "--at", "6m", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["at"][0]["expected_duration"] == pytest.approx(300, rel=0.05)
    assert document["at"][1]["timeout"] == 360
    assert document["waiting"] > 2 * document["best"]["expected_duration"]
    (tmp_path / "x.csv").write_text("latency\n" + "\n".join(map(str, range(1, 100))))
    without = run("replay", tmp_path / "x.csv", "--unit", "s")
    assert without.returncode == 1
    assert "--column submitted=" in without.stderr


def central(values):
    """Of what is a number, the least values with 2.5 % and 97.5 % at or below."""
    known = sorted(v for v in values if not math.isnan(v))
    return [known[math.ceil(level * len(known)) - 1] for level in (0.025, 0.975)]


def resampled(spent, done, drawn):
    """Time spent over jobs done, with each stretch of jobs as often as it was drawn."""
    edges = [int(k * len(spent) / len(drawn[0])) for k in range(len(drawn[0]) + 1)]
    pairs = [(sum(spent[a:b]), sum(done[a:b])) for a, b in pairwise(edges)]
    for times in drawn:
        total = sum(k * time for k, (time, _) in zip(times, pairs, strict=True))
        ended = sum(k * count for k, (_, count) in zip(times, pairs, strict=True))
        yield total / ended if ended else math.inf


@pytest.mark.parametrize(("n", "gap", "lost", "seed"), [(45, 9.0, 0.1, 0), (300, 9.0, 0.3, 5), (60, 40.0, 0.95, 1),
                                                       (2900, 3.0, 0.1, 2)])  # fmt: skip
def test_every_figure_by_loops(n, gap, lost, seed):
    """Quantiles, jobs that ran off, and the intervals by resampling at least fifty stretches of consecutive jobs."""
    rng = np.random.default_rng(n)
    status = rng.choice([0, 1, 3], n, p=[0.95 - lost, 0.05, lost] if lost < 0.95 else [0.05, 0.0, 0.95])
    seen = ProbeTable(rng.lognormal(3, 1, n).round() + 1, status, np.cumsum(rng.exponential(gap, n)).round())
    found, blocks = replay(seen, 60.0, at=[15.0, 31.0], cost=1.0, seed=seed), min(n, max(50, math.isqrt(n)))
    drawn = np.random.default_rng(seed).poisson(1.0, (199, blocks)).tolist()
    base = [*resampled(*list(zip(*jobs(seen, 60.0, 60.0, 1.0), strict=True))[:2], drawn)]
    for one in (found.waiting, *found.at):
        spent, done, sent = zip(*jobs(seen, 60.0, one.timeout, 1.0), strict=True)
        assert (one.expected_duration, one.submissions) == pytest.approx(
            (sum(spent) / sum(done), sum(sent) / sum(done))
        )
        assert one.ran_off == pytest.approx(1 - sum(done) / n)
        order = sorted(time if ended else math.inf for time, ended in zip(spent, done, strict=True))
        for level, value in one.quantiles.items():
            want = order[math.ceil(round(float(level) * n, 9)) - 1]
            assert value == (pytest.approx(want) if want < math.inf else None)
        means = [*resampled(spent, done, drawn)]
        assert (one.low, one.high) == pytest.approx(central(means))
        gains = [math.nan if a == b == math.inf else 1 - a / b for a, b in zip(means, base, strict=True)]
        assert (one.gain_low, one.gain_high) == pytest.approx(central(gains))


@pytest.mark.parametrize(("n", "gap"), [(60, 4.0), (74, 4.0), (150, 60.0)])
def test_the_curve_and_its_best_by_loops(n, gap):
    """At quantiles of what completed within the cutoff; the best lets at most 5 % more jobs run off than waiting."""
    rng = np.random.default_rng(n)
    x = np.where(rng.random(n) < 0.3, rng.uniform(150, 250, n), rng.lognormal(2, 0.7, n)).round(1)
    x[:3] = 0.0
    x[-15:] = np.maximum(x[-15:], 100.0)
    x[5:9] = 240.0
    seen = ProbeTable(x, rng.choice([0, 1, 2], n, p=[0.8, 0.1, 0.1]), np.cumsum(rng.exponential(gap, n)))
    cutoff = 240.0
    found = replay(seen, cutoff, at=[37.0])
    back = sorted(v for v, status in zip(x, seen.status, strict=True) if status == 0 and 0 < v <= cutoff)
    levels = [1 / (1 + math.exp(3.5 - k * 9.5 / 59)) for k in range(60)]
    tried = {back[math.ceil(level * len(back)) - 1] for level in levels if level * len(back) >= 5}
    assert [one.timeout for one in found.curve] == sorted(t for t in tried if t < cutoff)
    told = {}
    for t in (*(one.timeout for one in found.curve), 37.0, cutoff):
        spent, done, _ = zip(*jobs(seen, cutoff, t), strict=True)
        told[t] = sum(spent) / sum(done), 1 - sum(done) / n
    for one in found.curve:
        assert (one.expected_duration, one.ran_off) == pytest.approx(told[one.timeout])
    usable = [pair[0] for pair in told.values() if pair[1] <= told[cutoff][1] + 0.05 + 1e-12]
    assert found.best.expected_duration == pytest.approx(min(usable))
    assert min(usable) > min(pair[0] for pair in told.values())


@pytest.mark.parametrize(("gap", "resolution"), [(1.0, 0.25), (1.0, 0.0), (40.0, 0.25)])
def test_failures_that_took_no_time_take_a_step_of_the_clock(gap, resolution):
    """Or the least that was measured, on a clock too fine to see: else a job would fail a million times a second."""
    rng, n = np.random.default_rng(5), 300
    status = rng.choice([0, 1], n, p=[0.7, 0.3])
    x = np.where(status == 1, 0.0, rng.lognormal(1, 1, n))
    seen = ProbeTable(x, status, np.arange(n) * gap, clock=resolution)
    read = ProbeTable(np.where(status == 1, resolution or x[x > 0].min(), x), status, seen.submitted)
    log = replay(seen, 50.0, at=[5.0])
    for one, policy in zip((log.waiting, *log.at), replay_policies(log, [Timeout(50.0), Timeout(5.0)]), strict=True):
        want = plain(read, 50.0, one.timeout)
        assert (one.expected_duration, one.submissions) == pytest.approx(want)
        assert (policy.expected_duration, policy.submissions) == pytest.approx(want)


def test_a_timeout_of_zero_takes_no_time():
    """Every other probe took no time at all: under a timeout of 0 a job takes the next that did."""
    seen = ProbeTable(np.tile([3.0, 0.0], 30), np.zeros(60, int), np.arange(60.0) / 10)
    (one,) = replay(seen, 10.0, at=[0.0]).at
    assert (one.expected_duration, one.submissions, one.ran_off) == (0.0, 1.5, 0.0)


def test_without_completions_there_is_no_replay():
    found = replay(ProbeTable(np.ones(50), np.full(50, 3), np.arange(50.0)), 10.0, at=[5.0])
    for one in (found.waiting, *found.at, found.best):
        assert (one.expected_duration, one.ran_off, one.gain_high) == (math.inf, 1.0, -math.inf)
    assert found.curve == ()
    assert found.at[0].to_dict() == {
        "timeout": 5.0, "expected_duration": None, "low": None, "high": None,
        "quantiles": {"0.5": None, "0.95": None, "0.99": None}, "submissions": None, "ran_off": 1.0}  # fmt: skip


def test_at_least_forty_probes_with_a_time_are_needed():
    when = np.arange(41.0)
    when[3] = np.nan
    whole = ProbeTable(np.append(np.ones(40), 9.0), np.zeros(41, int), when)
    assert replay(whole, 10.0).waiting.expected_duration == pytest.approx(48 / 40)
    require_times(whole)
    few = whole.take(np.arange(40))
    assert replay(few, 10.0) is None
    with pytest.raises(LogError, match="at least 40 probes"):
        require_times(few)
    with pytest.raises(LogError, match="submission times"):
        require_times(ProbeTable(np.ones(50), np.zeros(50, int)))


def test_in_a_long_log_only_some_jobs_are_followed():
    """Of 60 000 jobs 50 000 are followed; waiting and the best timeout agree with following all."""
    rng, n = np.random.default_rng(9), 60_000
    seen = ProbeTable(
        rng.exponential(1.0, n) + np.where(rng.random(n) < 0.1, 30.0, 0.0), np.zeros(n, int), np.arange(n) * 0.1
    )
    found = replay(seen, 100.0)
    assert found.waiting.expected_duration == pytest.approx(seen.latency.mean(), rel=0.01)
    assert found.waiting.quantiles["0.5"] == pytest.approx(np.median(seen.latency), rel=0.01)
    spread = seen.latency.std() / math.sqrt(50_000)
    assert found.waiting.high - found.waiting.low == pytest.approx(3.92 * spread, rel=0.2)
    p, t = 0.9 * (1 - math.exp(-found.best.timeout)), found.best.timeout
    assert found.best.submissions == pytest.approx(1 / p, rel=0.01)
    assert found.best.expected_duration == pytest.approx(1 + 0.1 * t / p, rel=0.02)


@pytest.mark.parametrize("groups", [1, 3])
def test_a_log_of_less_than_a_second(groups):
    """300 probes within 0.3 s, with latencies of some milliseconds; a microsecond is one moment."""
    rng = np.random.default_rng(9)
    seen = observations(rng.lognormal(-6, 1, 300), rng.choice(4, 300, p=[0.8, 0.1, 0.05, 0.05]), 0.001, rng)
    assert np.ptp(seen.submitted) < 0.5
    codes = rng.integers(0, groups, 300)
    for one in replay(seen, 0.05, at=[0.002, 0.01], groups=codes).at:
        want = plain(seen, 0.05, one.timeout, 0.0, codes, SAME_MOMENT)
        assert (one.expected_duration, one.submissions) == pytest.approx(want, rel=1e-9)


def test_logs_replayed_together_are_each_as_alone():
    """Dense and sparse logs, with and without groups, one of them without times."""
    rng = np.random.default_rng(8)
    logs = []
    for n, gap, groups in ((300, 0.5, None), (500, 40.0, rng.integers(0, 3, 500)), (60, 3.0, None)):
        x, status = rng.lognormal(1, 1, n), rng.choice([0, 1, 3], n, p=[0.8, 0.1, 0.1])
        when = 1.6e9 + np.cumsum(rng.exponential(gap, n))
        logs.append((ProbeTable(x, status, when), 50.0, [4.0, 9.0], groups))
    logs.insert(1, (ProbeTable(np.ones(100), np.zeros(100, int)), 10.0, [], None))
    together = replay_logs(logs, cost=0.5)
    alone = [replay(table, cutoff, at=at, cost=0.5, groups=groups) for table, cutoff, at, groups in logs]
    assert together[1] is alone[1] is None
    for one, other in zip(together, alone, strict=True):
        for mine, its in zip((one.waiting, *one.at), (other.waiting, *other.at), strict=True) if one else ():
            assert np.array_equal(mine.spent, its.spent)
            assert np.array_equal(mine.off, its.off)
            assert mine.expected_duration == its.expected_duration
