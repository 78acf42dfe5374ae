"""Advice does no harm: decisions on logs of many kinds."""

import numpy as np
import pandas as pd
import pytest

import latfit
from latfit import analyze
from latfit.decision.prepare import censoring
from latfit.evidence import dependence, probes_of
from latfit.report import to_text
from latfit.sample import LatencySample

FAST = {"laws": ("lognormal",), "resamples": 99, "test": False}


def log_of(latency, status=None, submitted=None, **columns):
    frame = pd.DataFrame({"latency": latency, **columns})
    if status is not None:
        frame["status"] = status
    if submitted is not None:
        frame["submitted"] = pd.Timestamp("2026-01-05", tz="UTC") + pd.to_timedelta(submitted, unit="s")
    return latfit.from_frame(frame)


def ar(phi, n, rng, mu=5.5):
    z = rng.standard_normal(n)
    for i in range(1, n):
        z[i] = phi * z[i - 1] + np.sqrt(1 - phi**2) * z[i]
    return np.exp(mu + z)


def test_two_endpoints_are_decided_one_by_one():
    """70 % of 2 to 5 ms and 30 % of 300 ms: 0.1.0 advised 5 ms, with which one endpoint never answers."""
    rng = np.random.default_rng(1)
    fast = rng.random(3000) < 0.7
    x = np.where(fast, rng.uniform(0.002, 0.005, 3000), rng.normal(0.3, 0.01, 3000))
    result = analyze(log_of(x, endpoint=np.where(fast, "/health", "/report")), **FAST)
    own = result.timeout
    assert (own.verdict, own.withheld, own.timeout) == ("withheld", ("mixed",), None)
    assert own.if_independent.timeout < 0.006
    mixed = result.decision.evidence.mixing
    assert (mixed.column.name, mixed.groups) == ("endpoint", 2)
    assert np.isinf(mixed.worst_cost)
    assert own.retry is None
    assert [group.key["endpoint"] for group in result.groups] == ["/health", "/report"]
    assert all(group.decision.timeout.verdict == "finite" for group in result.groups)


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9, 0.99])
def test_dependence(phi):
    rng = np.random.default_rng(4)
    n = 4000
    result = analyze(log_of(ar(phi, n, rng), submitted=np.cumsum(rng.exponential(5.0, n))), **FAST)
    own, found = result.timeout, result.decision.evidence
    assert found.dependence.found == (phi > 0)
    if phi <= 0.5:
        assert own.timeout is not None
    if phi == 0.99:
        assert own.retry is None
        assert "\nWait\n  why         Slow probes come" in to_text(result)


def test_a_regime_that_is_slow_from_time_to_time():
    """Slow by 30 for 5 % of the time, in spells of 200 probes: a resubmission meets the same spell."""
    rng = np.random.default_rng(5)
    slow = np.repeat(rng.random(60) < 0.05, 200)
    slow[:200] = True
    x = rng.lognormal(1, 0.3, slow.size) * np.where(slow, 30, 1)
    result = analyze(log_of(x, submitted=np.cumsum(rng.exponential(1.0, slow.size))), **FAST)
    found = result.decision.evidence
    assert found.dependence.found
    assert found.drift.changes
    own = result.timeout
    plain = own.if_independent or own
    (here,) = found.replay.at
    assert here.expected_duration > 1.2 * plain.expected_duration
    assert own.timeout is None or own.basis == "replay" or here.gain_low > 0


def test_a_daily_cycle_is_detected():
    rng = np.random.default_rng(6)
    when = np.sort(rng.uniform(0, 14 * 86400, 6000))
    level = 1 + 5 * (np.sin(2 * np.pi * when / 86400) > 0)
    result = analyze(log_of(level * rng.lognormal(0, 0.3, 6000), submitted=when), **FAST)
    assert result.decision.evidence.drift.daily_cycle > 3
    assert "drift" in {w.code for w in result.warnings}


def test_a_client_timeout_below_later_completions_is_a_failure():
    """89 % cut by the client at 75 s while others completed up to 158 s: measured 689 s and 9 submissions a success."""
    rng = np.random.default_rng(7)
    n = 2000
    cut = rng.random(n) < 0.89
    x = np.where(cut, rng.uniform(75.0, 75.8, n), rng.uniform(40, 158, n))
    result = analyze(log_of(x, status=np.where(cut, "timeout", "ok")), **FAST)
    found = result.decision.evidence.censoring
    assert found.informative
    assert found.common_time == pytest.approx(75.4, abs=0.1)
    own = result.timeout.if_independent or result.timeout
    assert own.submissions > 7
    assert own.expected_duration > 400
    assert "given-up" in {w.code for w in result.warnings}
    taken = analyze(log_of(x, status=np.where(cut, "timeout", "ok")), censoring="independent", **FAST)
    assert (taken.timeout.if_independent or taken.timeout).submissions < own.submissions


def test_refused_connections_count_as_submissions(tmp_path):
    """60 % refused after 1 ms: 0.1.0 printed 1.27 submissions where 3.11 are true."""
    rng = np.random.default_rng(8)
    n = 2000
    refused = rng.random(n) < 0.6
    rows = ["timeStamp,elapsed,label,responseCode,responseMessage,success"]
    for i, bad in enumerate(refused):
        told = "Non HTTP response code: java.net.ConnectException,Connection refused,false" if bad else "200,OK,true"
        ms = 1 if bad else int(rng.lognormal(5, 0.5))
        rows.append(f"{1700000000000 + 500 * i},{ms},a,{told}")
    (tmp_path / "x.jtl").write_text("\n".join(rows))
    result = analyze(latfit.read_log(tmp_path / "x.jtl"), **FAST)
    assert result.decision.counts["failed"] == refused.sum()
    own = result.timeout.if_independent or result.timeout
    assert own.submissions >= 1 / (1 - refused.mean()) * 0.99


def test_a_cut_without_a_status_column_is_a_cut():
    rng = np.random.default_rng(9)
    x = np.minimum(np.round(rng.lognormal(-2, 1.2, 5000), 6), 0.25)
    cut = int((x == 0.25).sum())
    result = analyze(log_of(x), **FAST)
    assert result.decision.outliers.count == cut
    assert "cut" in {w.code for w in result.warnings}
    whole = analyze(log_of(np.round(rng.lognormal(-2, 1.2, 5000), 3)), **FAST)
    assert whole.decision.evidence.censoring.cut_at is None


@pytest.mark.slow
def test_irrelevant_columns_explain_nothing():
    """Identifiers, random hosts, times and constants in independent logs: at most 1 % are withheld."""
    rng = np.random.default_rng(10)
    withheld = 0
    for _ in range(60):
        n = int(rng.choice([100, 300, 1000]))
        innocent = {"id": np.arange(n), "host": rng.integers(0, 9, n).astype(str), "size": rng.pareto(1, n),
                    "user": rng.integers(0, n // 3, n).astype(str), "kind": ["a"] * n}  # fmt: skip
        status, when = np.where(rng.random(n) < 0.03, "lost", "ok"), np.cumsum(rng.exponential(10, n))
        log = log_of(rng.lognormal(3, 1, n), status=status, submitted=when, **innocent)
        own = analyze(log, laws=("lognormal",), resamples=0, test=False).timeout
        withheld += own.verdict == "withheld"
    assert withheld <= 1


@pytest.mark.slow
def test_small_logs_of_similar_probes_get_a_decision():
    rng = np.random.default_rng(12)
    withheld = []
    for _ in range(200):
        n = int(rng.integers(10, 30))
        log = log_of(rng.lognormal(0, 1, n), host=rng.choice(["a", "b", "c"], n), note=rng.choice(["x", "y"], n))
        withheld.append("mixed" in analyze(log, laws=(), resamples=0, test=False).timeout.withheld)
    assert np.mean(withheld) < 0.04


def test_dependence_against_statsmodels():
    from statsmodels.stats.diagnostic import acorr_ljungbox
    from statsmodels.tsa.stattools import acf

    rng = np.random.default_rng(12)
    seen = probes_of(log_of(ar(0.6, 1000, rng), submitted=np.arange(1000.0)))
    found = dependence(seen)
    from scipy.stats import rankdata

    ranks = rankdata(seen.latency)
    assert found.lag1 == pytest.approx(acf(ranks, nlags=1)[1], rel=1e-9)
    weak = dependence(probes_of(log_of(ar(0.05, 400, rng), submitted=np.arange(400.0))))
    assert 1e-12 < weak.p_value < 1
    again = probes_of(log_of(ar(0.1, 300, rng), submitted=np.arange(300.0)))
    boxed = acorr_ljungbox(rankdata(again.latency), lags=[10], return_df=True)["lb_pvalue"].iloc[0]
    assert dependence(again).p_value == pytest.approx(boxed, rel=1e-9)
    assert found.autocorrelation_time == pytest.approx((1 + 0.58) / (1 - 0.58), rel=0.4)


def test_scattered_censoring_times_have_no_common_time():
    sample = LatencySample.of(np.arange(1.0, 100.0), censored=np.arange(10.0, 30.0))
    assert censoring(sample).common_time is None
    last = LatencySample.of(np.arange(1.0, 100.0), censored=np.full(20, 100.0))
    assert censoring(last).common_time == 100
    assert not censoring(last).informative


@pytest.mark.slow
def test_a_queue_never_follows_the_formula(shared):
    for name in ("kth-sp2.swf.gz", "sacct-pozidriv.log.gz"):
        own = analyze(latfit.read_log(shared / name), laws=("lognormal",), resamples=0, test=False).timeout
        assert own.verdict == "withheld" or own.basis == "replay"


def test_the_decision_on_the_bundled_log_is_unchanged():
    result = analyze(latfit.example_log(), **FAST)
    own = result.timeout
    assert (own.verdict, own.basis, own.timeout, own.exact_timeout) == ("finite", "independent", 358.0, 358.0)
    assert own.expected_duration == pytest.approx(300, abs=0.1)
    assert "EVIDENCE" in to_text(result, full=True)
