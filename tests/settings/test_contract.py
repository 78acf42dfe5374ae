"""Every tool that registers itself keeps the five rules."""

import ast
import functools
import json
import math
import re
import subprocess
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

import latfit
from conftest import EGEE
from latfit.errors import RestartError
from latfit.settings import TOOLS, Plan, Tool, get_tool, register, settings_for
from latfit.settings import write as writing
from latfit.settings.base import milliseconds, number

NAMES = sorted(TOOLS)
ROWS = [
    "timeout", "curl", "requests", "httpx", "tenacity", "stamina", "aiohttp", "fetch", "boto3", "grpc", "grpc-node",
    "envoy", "nginx", "haproxy", "slurm", "slurm-time", "htcondor", "snakemake", "airflow", "celery", "dask",
    "kubernetes", "cassandra", "nextflow", "resilience4j", "polly", "aws-batch",
]  # fmt: skip
PYTHON = [
    "requests",
    "httpx",
    "tenacity",
    "stamina",
    "aiohttp",
    "boto3",
    "grpc",
    "airflow",
    "celery",
    "dask",
    "cassandra",
]


@pytest.fixture(scope="module")
def log():
    return latfit.example_log()


@pytest.fixture(scope="module")
def analysed(log):
    """The analysis of the log for a cost, made once."""
    return functools.cache(lambda cost: latfit.analyze(log, laws=(), test=False, resamples=0, cost=cost))


@pytest.fixture(scope="module")
def from_log(log):
    """The settings of every tool; those with the same waits share an analysis."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "analyze", functools.cache(writing.analyze))
        return {name: settings_for(name, log) for name in NAMES}


def test_every_row_of_the_specification_is_there():
    assert set(ROWS) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_contract(name, from_log):
    found = from_log[name].to_dict()
    keys = {"tool", "timeout", "written", "unit", "attempts", "undone", "counts", "snippet", "notes", "validated"}
    assert keys <= set(found)
    assert found["tool"] == name
    assert found["counts"] in ("attempts", "retries")
    assert found["snippet"]
    assert found["validated"]
    json.dumps(found)
    told = " ".join(found["notes"])
    assert "it limits" in told
    assert (f"number counts {found['counts']}" in told) == TOOLS[name].resubmits
    assert "stay undone" in told


SCHEDULED = ["timeout", "tenacity", "httpx", "requests", "aiohttp", "stamina", "fetch", "grpc", "dask", "slurm",
             "slurm-time"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_schedule_is_written_and_ends_in_waiting(name, from_log, log, analysed):
    """A loop gets a limit for each attempt, the cutoff last; a tool with one timeout for all gets the longest."""
    tool, settings = TOOLS[name], from_log[name]
    cost = settings.cost
    retry = analysed(cost).timeout.retry
    assert tool.schedules == (name in SCHEDULED)
    assert settings.attempts == len(settings.timeouts) <= 8
    if tool.schedules:
        assert settings.timeouts == tuple(map(tool.rounded, (*retry.timeouts, 10_000.0)))
        assert all(tool.written(t) in settings.snippet for t in settings.timeouts)
        survivors = np.prod([1 - (log.frame["latency"][log.frame["status"] == "completed"] <= t).sum() / len(log.frame)
                             for t in settings.timeouts])  # fmt: skip
        assert settings.undone == pytest.approx(survivors)
    elif not tool.hedges:
        assert set(settings.timeouts) == {tool.rounded(retry.timeouts[-1])}
        assert ("one timeout for all attempts" in " ".join(settings.notes)) == (len(set(retry.timeouts)) > 1)
    assert settings.total >= sum(settings.timeouts)
    if tool.comment:
        first = settings.snippet.splitlines()[0]
        does = "resubmit after" if tool.schedules else "submit again after" if tool.hedges else "3 attempts of at most"
        assert first.startswith(f"{tool.comment} latfit: {does}")
        for warning in settings.warnings:
            assert warning[:60] in settings.snippet.replace(f"\n{tool.comment}", "")


def comment_of(settings, tool):
    begin = f"{tool.comment} "
    return " ".join(line.removeprefix(begin) for line in settings.snippet.splitlines() if line.startswith(begin))


@pytest.mark.parametrize("cost", [0.0, 30.0])
def test_the_comment_promises_what_the_snippet_does(log, cost):
    """Job by job: every retry repeats the first attempt, and the random wait is half of its maximum on average."""
    x = np.where(log.frame["status"] == "completed", log.frame["latency"], np.inf)
    settings = settings_for("tenacity", log, cost=cost)
    *limits, cutoff = settings.timeouts
    assert float(re.search(r"wait_random\(0, ([\d.]+)\)", settings.snippet)[1]) == pytest.approx(limits[0] / 10)
    rest = min(1.0, float((x <= cutoff).mean()))
    waiting = (np.minimum(x, cutoff).mean() + (cost + limits[0] / 20) * (1 - rest)) / rest
    lost = sum((t + cost + limits[0] / 20) * (x > t).mean() for t in limits)
    assert f"at most {100 * lost / waiting:.0f} % slower than waiting" in comment_of(settings, TOOLS["tenacity"])


def test_a_tool_that_cuts_the_last_attempt_too_does_not_promise_to_wait(log):
    x = np.where(log.frame["status"] == "completed", log.frame["latency"], np.inf)
    for settings in (settings_for("nginx", log), settings_for("tenacity", log, timeout=716.0, attempts=3)):
        comment = comment_of(settings, TOOLS[settings.tool])
        assert f"up to {100 * (x > 716).mean():.2g} % of the jobs end without a result" in comment
        assert "then wait" not in comment


def test_the_waits_of_the_tool_are_named_where_they_leave_no_schedule(log):
    fast = latfit.from_frame(log.frame.assign(latency=log.frame["latency"] / 100), latency="latency", status="status")
    (note,) = (note for note in settings_for("htcondor", fast).notes if note.startswith("nothing to paste"))
    assert "with the 30 s that HTCondor with DAGMan itself waits before a restart" in note


@pytest.mark.parametrize("attempts", [1, 2, 3, 6])
def test_more_or_fewer_attempts_than_scheduled(log, attempts):
    settings = settings_for("tenacity", log, attempts=attempts)
    assert settings.timeouts == (*[358.0, 716.0, 716.0, 716.0, 716.0][: attempts - 1], 10_000.0)


@pytest.mark.parametrize("name", NAMES)
def test_rounds_up_to_its_step_and_never_down(name):
    tool = TOOLS[name]
    for timeout in (0.0123456, 0.35, 1.0, 61.2, 358.0, 86400.5):
        rounded = tool.rounded(timeout)
        assert rounded >= timeout * (1 - 1e-12)
        assert rounded < max(timeout, tool.smallest) + tool.step * (1 + 1e-9)
        assert math.isclose(rounded / tool.step, round(rounded / tool.step), rel_tol=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("plan", [Plan((61.0,) * 3), Plan((120.0,) * 4, 2.0, True), Plan((60.0,) * 1)])
def test_the_counter_and_the_time_are_in_the_snippet(name, plan):
    tool = TOOLS[name]
    plan = Plan(tuple(map(tool.rounded, plan.limits)), plan.pause, plan.failures)
    text = tool.snippet(plan)
    assert tool.written(plan.limits[0]) in text
    if name != "aws-batch":
        count = plan.attempts - (tool.counts == "retries")
        assert re.search(rf"\b{count}\b", text)
    if name in PYTHON:
        ast.parse(text)
    if tool.waits and plan.pause:
        waits = [tool.pause(2, plan.pause), plan.pause + plan.jitter / 2]
        assert any(written in text for wait in waits for written in (number(wait), str(round(1000 * wait))))


@pytest.mark.parametrize("name", ["timeout", "curl", "slurm", "slurm-time"])
@pytest.mark.parametrize("pause", [0, 1.5])
def test_shell_snippets_parse(name, pause):
    text = TOOLS[name].snippet(Plan((60.0,) * 3, pause))
    assert subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True).stderr == ""


def test_documents_parse():
    plan = Plan((60.0,) * 3, 1.0, True)
    service = json.loads(TOOLS["grpc-node"].snippet(plan))
    assert service["methodConfig"][0]["hedgingPolicy"]["maxAttempts"] == 3
    assert 0 < service["retryThrottling"]["tokenRatio"] <= 1
    assert json.loads(TOOLS["aws-batch"].snippet(plan)) == {"timeout": {"attemptDurationSeconds": 60}}
    job = yaml.safe_load(TOOLS["kubernetes"].snippet(plan))
    assert job["spec"]["backoffLimit"] == 2
    assert job["spec"]["template"]["spec"]["activeDeadlineSeconds"] == 60
    envoy = yaml.safe_load(TOOLS["envoy"].snippet(plan))
    assert envoy["route"]["retry_policy"]["per_try_timeout"] == "60s"
    assert float(envoy["route"]["timeout"][:-1]) >= 3 * 60
    assert envoy["cluster"]["circuit_breakers"]["thresholds"][0]["retry_budget"]["budget_percent"]["value"] == 20
    assert yaml.safe_load(TOOLS["resilience4j"].snippet(plan))["resilience4j"]["retry"]


def test_bundled_log(from_log):
    found = from_log["haproxy"]
    retry = latfit.analyze(latfit.example_log(), laws=(), test=False, resamples=0).timeout.retry
    assert (found.timeout, found.written, found.attempts) == (retry.timeouts[-1], "716s", retry.attempts)
    assert found.undone == pytest.approx(0.00075, abs=5e-6)
    assert "retries 2" in found.snippet


def test_undone_and_attempts_by_counting(log):
    """K and the share undone, counted on the probes themselves."""
    latency = log.frame["latency"].to_numpy()
    done = (log.frame["status"] == "completed").to_numpy() & (latency <= 716)
    q = 1 - done.mean()
    for allowed in (0.3, 0.1, 0.01, 1e-4):
        found = settings_for("nginx", log, undone=allowed)
        assert found.undone == pytest.approx(q**found.attempts)
        assert found.undone <= allowed
        assert found.attempts == 2 or q ** (found.attempts - 1) > allowed


def test_attempts_beyond_the_cap(log):
    found = settings_for("grpc-node", log, undone=1e-12)
    assert found.attempts == 5
    assert any("at most 5 attempts" in note for note in found.notes)
    assert settings_for("grpc-node", timeout=1, attempts=9).attempts == 5


def test_a_hedge_leaves_undone_only_what_never_returns(log):
    rho = 1 - (log.frame["status"] == "completed").mean()
    found = settings_for("cassandra", log)
    assert found.undone == pytest.approx(rho**found.attempts)


def test_a_hedge_has_a_delay_of_its_own(log):
    """Simulated: with this delay jobs are done earlier than by cancelling, with as many submissions."""
    cancelling = latfit.analyze(log, laws=(), test=False, resamples=0).timeout
    found = settings_for("grpc-node", log)
    assert found.timeout < cancelling.timeout
    rng, latency = np.random.default_rng(5), log.frame["latency"].to_numpy()
    x = np.where(log.frame["status"] == "completed", latency, np.inf)
    drawn = rng.choice(x, (200_000, 30))
    ends = (drawn + found.timeout * np.arange(30)).min(axis=1)
    hedged = np.ceil(ends / found.timeout).clip(1)  # submissions by then
    first = (drawn <= cancelling.timeout).argmax(axis=1)
    took = first * cancelling.timeout + np.take_along_axis(drawn, first[:, None], axis=1)[:, 0]
    assert ends.mean() < 0.95 * took.mean()
    assert hedged.mean() == pytest.approx((first + 1).mean(), rel=0.01)
    assert ends.mean() == pytest.approx(274, abs=2)
    assert "274 s instead of 300 s" in found.notes[0]


def test_the_waits_of_the_tool_are_cost(log):
    """Kubernetes waits 10, 20, 40 … s: the constant cost is worth as much, by simulation."""
    rng = np.random.default_rng(1)
    q = 0.4
    restarts = rng.geometric(1 - q, 200_000) - 1
    waits = np.minimum(360, 10 * 2.0 ** np.arange(60))
    total = np.concatenate([[0], np.cumsum(waits)])[restarts]
    assert TOOLS["kubernetes"].mean_pause(q, 0.0) == pytest.approx(total.sum() / restarts.sum(), rel=0.02)
    assert TOOLS["kubernetes"].mean_pause(0.0, 0.0) == 10
    costs = {name: settings_for(name, log).cost for name in ("haproxy", "curl", "htcondor", "kubernetes")}
    assert costs["haproxy"] == 0
    assert costs["curl"] == 1
    assert costs["htcondor"] == pytest.approx(30)
    assert 10 < costs["kubernetes"] < 20


def test_the_optimum_with_the_tools_waits_is_that_of_timeout_with_their_cost():
    rng = np.random.default_rng(7)
    text = "latency,status\n" + "".join(
        f"{x:.3f},{'ok' if keep else 'lost'}\n"
        for x, keep in zip(rng.lognormal(0, 1.5, 2000), rng.random(2000) > 0.05, strict=True)
    )
    log = _read(text)
    found = settings_for("curl", log)
    free = settings_for("haproxy", log)
    retry = latfit.analyze(log, laws=(), test=False, resamples=0, cost=1.0).timeout.retry
    assert found.timeout == retry.timeouts[-1] != free.timeout


def _read(text):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        path.write_text(text)
        return latfit.read_log(path)


@pytest.fixture(scope="module")
def fast_log():
    rng = np.random.default_rng(3)
    x, lost = rng.lognormal(-3, 0.5, 2000), rng.random(2000) < 0.03
    rows = [f"{a:.4f},{'lost' if b else 'ok'}\n" for a, b in zip(x, lost, strict=True)]
    return _read("latency,status\n" + "".join(rows))


def test_rounding_out_of_the_window_is_a_warning(fast_log):
    minutes = settings_for("slurm-time", fast_log)
    assert minutes.written == "00:01:00"
    assert any(note.startswith("warning:") and "5 % window" in note for note in minutes.notes)
    assert not any(note.startswith("warning:") for note in settings_for("haproxy", fast_log).notes)
    alone = settings_for("aws-batch", timeout=0.35)
    assert any(note.startswith("warning:") for note in alone.notes)


def test_visible_failures_are_retried_too(fast_log):
    plan = settings_for("haproxy", fast_log)
    assert "500" not in plan.snippet
    rng = np.random.default_rng(5)
    word = rng.choice(["ok", "failed"], 500, p=[0.8, 0.2])
    rows = [f"{a:.4f},{b}\n" for a, b in zip(rng.lognormal(-3, 1.5, 500), word, strict=True)]
    with_failures = settings_for("haproxy", _read("latency,status\n" + "".join(rows)))
    assert "500 502" in with_failures.snippet


@pytest.mark.parametrize("verdict", ["withheld", "never", "any", None])
def test_without_a_schedule_there_is_no_snippet(monkeypatch, log, verdict):
    """A withheld decision, or one to wait, gives a reason instead of a snippet."""
    decision = latfit.analyze(log, laws=(), test=False, resamples=0).decision
    withheld = ("dependent", "queue") if verdict == "withheld" else ()
    timeout = replace(decision.timeout, verdict=verdict, timeout=None, retry=None, withheld=withheld)
    advice = SimpleNamespace(decision=replace(decision, timeout=timeout))
    monkeypatch.setattr(writing, "analyze", lambda *_, **__: advice)
    found = settings_for("haproxy", log)
    assert found.snippet is None
    assert found.timeout is None
    assert found.notes[0].startswith("nothing to paste")
    assert found.withheld == withheld
    if verdict == "withheld":
        assert "dependent, queue" in found.notes[0]


def test_mixed_traffic_gives_no_snippet():
    """Fast checks and slow reports in one log: the formula's timeout would never let a report end."""
    rng = np.random.default_rng(2)
    kind = rng.random(600) < 0.7
    x = np.where(kind, rng.uniform(0.002, 0.005, 600), rng.uniform(0.25, 0.35, 600))
    rows = [f"{a:.4f},ok,{'/health' if b else '/report'}\n" for a, b in zip(x, kind, strict=True)]
    found = settings_for("haproxy", _read("latency,status,endpoint\n" + "".join(rows)))
    assert found.snippet is None
    assert found.withheld == ("mixed",)


def test_values_that_polly_refuses():
    assert settings_for("polly", timeout=0.001).written == "0.01"
    assert settings_for("polly", timeout=86400).snippet
    assert "at most 86400 s" in settings_for("polly", timeout=86401).notes[0]


@pytest.mark.parametrize("name", ["polly", "grpc-node"])
def test_fewer_attempts_than_the_tool_makes(name, log):
    for found in (settings_for(name, timeout=1, attempts=1), settings_for(name, log, attempts=1)):
        assert (found.snippet, found.attempts) == (None, None)
        assert "at least 2 attempts" in found.notes[0]
    assert settings_for(name, timeout=1, attempts=2).snippet


def test_the_coordinator_of_cassandra_gets_the_same_delay():
    assert any("speculative_retry = '2500ms'" in note for note in settings_for("cassandra", timeout=2.5).notes)
    assert not any("350ms" in note for note in settings_for("cassandra", timeout=2.5).notes)


def test_the_waits_of_envoy_are_the_cost_on_average():
    found = settings_for("envoy", timeout=1, cost=2)
    interval = yaml.safe_load(found.snippet)["route"]["retry_policy"]["retry_back_off"]["base_interval"]
    drawn = np.random.default_rng(1).uniform(0, float(interval[:-1]), 100_000)
    jitter = Plan((1.0,)).jitter
    assert drawn.mean() == pytest.approx(2 + jitter / 2, rel=0.01)
    assert TOOLS["envoy"].pause(1, 2.0) == 2
    assert any("4.1s is the cost of 2 s and half of the jitter on average" in note for note in found.notes)


def test_the_waits_of_boto3_are_those_of_the_preset():
    preset = latfit.restart.parse_policy("botocore(attempts=12)").written_out
    means = [s * (1 - preset.jitter / 2) for s in preset.sleeps]
    assert means == pytest.approx([TOOLS["boto3"].pause(i, 0.0) for i in range(1, 12)])


def test_the_waits_of_boto3_are_those_of_botocore():
    pytest.importorskip("botocore", minversion="1.44")
    from botocore.retries import standard

    backoff = standard.ExponentialBackoff(random=lambda: 0.5)
    for i in range(1, 12):
        context = standard.RetryContext(attempt_number=i)
        assert backoff.delay_amount(context) == pytest.approx(TOOLS["boto3"].pause(i, 0.0))


def test_a_rounded_delay_of_curl_is_reported():
    assert any("1 s for the cost of 0.3 s" in note for note in settings_for("curl", timeout=1, cost=0.3).notes)
    for whole in (0, 2):
        assert not any("for the cost" in note for note in settings_for("curl", timeout=1, cost=whole).notes)


@pytest.mark.parametrize("name", ["kubernetes", "boto3", "curl", "tenacity"])
def test_notes_do_not_deny_a_tools_own_wait(name, log):
    for found in (settings_for(name, log, cost=5), settings_for(name, log, timeout=400, cost=5)):
        told = " ".join(found.notes)
        assert "has no wait" not in told
        assert ("no setting for the wait" in told) == (not TOOLS[name].waits)
    assert "optimum with that cost" not in told  # the timeout was given
    alone = " ".join(settings_for(name, timeout=400, cost=5).notes)
    assert "counted, not written" not in alone  # nothing counts without a log


def test_warnings_come_first(log, monkeypatch):
    real = latfit.analyze

    def without_waits_withheld(log, *, cost, **options):
        decision = real(log, cost=cost, **options).decision
        if not cost:
            decision = replace(decision, timeout=replace(decision.timeout, withheld=("queue",)))
        return SimpleNamespace(decision=decision)

    monkeypatch.setattr(writing, "analyze", without_waits_withheld)
    found = settings_for("kubernetes", log)
    assert found.snippet
    withheld = "without the waits of Kubernetes Job the decision on the log is withheld (queue)"
    assert any(withheld in warning for warning in found.warnings)
    assert found.warnings == found.notes[: len(found.warnings)]


def test_too_long_for_the_tool():
    found = settings_for("haproxy", timeout=26 * 86400, attempts=3)
    assert found.snippet is None
    assert "at most" in found.notes[0]


def test_wrong_input(log):
    with pytest.raises(RestartError, match="not a tool"):
        get_tool("curll")
    with pytest.raises(RestartError, match="nothing to write"):
        settings_for("curl")
    for wrong in (
        {"timeout": -1.0},
        {"timeout": math.nan},
        {"timeout": 1.0, "attempts": 0},
        {"timeout": 1.0, "undone": 2},
    ):
        with pytest.raises(RestartError):
            settings_for("curl", **wrong)


MINE = """
title = "mine"
counts = "attempts"
limits = "all"
validated = "here"
template = '''
mine %attempts
%each
%slowly
'''
each_attempt = {each = "%attempt: %timeout"}
if_pause = {slowly = "then %pause"}
"""


def test_a_new_tool_is_one_file(tmp_path):
    (tmp_path / "mine-of-the-test.toml").write_text(MINE)
    tool = register(Tool.read(tmp_path / "mine-of-the-test.toml"))
    try:
        assert settings_for("mine-of-the-test", timeout=0.35).snippet == "mine 3\n1: 0.35\n2: 0.35\n3: 0.35"
        assert tool.snippet(Plan((1.0,) * 2, 0.5)) == "mine 2\n1: 1\n2: 1\nthen 0.5"
    finally:
        del TOOLS["mine-of-the-test"]


def test_written_times():
    assert [number(x) for x in (358.0, 0.35, 1e-3, 0.1 + 0.2)] == ["358", "0.35", "0.001", "0.3"]
    assert [milliseconds(x) for x in (0.35, 358.0, 1.5)] == ["350ms", "358s", "1500ms"]
    written = {
        "fetch": "350",
        "grpc-node": "0.350000000s",
        "nginx": "350ms",
        "envoy": "0.35s",
        "slurm-time": "00:01:00",
    }
    assert {name: settings_for(name, timeout=0.35).written for name in written} == written
    assert TOOLS["slurm-time"].written(3700) == "01:02:00"


@pytest.mark.slow
def test_command_line(run):
    listed = run("settings")
    assert all(name in listed.stdout for name in NAMES)
    assert {tool["name"] for tool in json.loads(run("settings", "--json").stdout)["tools"]} == set(NAMES)
    assert "proxy_read_timeout 350ms;" in run("settings", "nginx", "--timeout", "350ms", "--attempts", 3).stdout
    document = json.loads(run("settings", "haproxy", EGEE, "--json").stdout)
    assert document["attempts"] == 3
    given = json.loads(run("settings", "haproxy", EGEE, "--timeout", "6m", "--json").stdout)
    assert given["timeout"] == 360
    assert given["undone"] is not None
    assert "'nosuch' is not a tool" in run("settings", "nosuch").stderr
    warned = run("settings", "polly", "--timeout", "1ms").stdout
    assert warned.startswith("// warning: Polly 8 takes 0.01")
    assert warned.index("warning:") < warned.index("AddRetry") < warned.index("it limits")
    assert run("settings", "polly", "--timeout", "1").stdout.startswith("var pipeline")
    for wrong in (["nonsense", EGEE], ["curl"], ["curl", "--timeout", "fast"], ["curl", "--timeout", "0"]):
        assert run("settings", *wrong).returncode == 2


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["curl", "envoy"])
def test_quick_returns_that_may_be_errors_give_no_snippet(tool, tmp_path):
    """The waits of curl move the optimum away from quick returns, which may be errors as before."""
    rng = np.random.default_rng(1)
    x = np.where(rng.random(400) < 0.3, rng.uniform(0.002, 0.006, 400), rng.lognormal(-1.5, 0.6, 400))
    (tmp_path / "x.csv").write_text("latency\n" + "".join(f"{y:.4f}\n" for y in x))
    log = latfit.read_log(tmp_path / "x.csv")
    assert latfit.analyze(log, resamples=0, test=False).timeout.withheld == ("no-outcomes",)
    found = settings_for(tool, log)
    assert (found.snippet, found.withheld) == (None, ("no-outcomes",))
    assert "withheld (no-outcomes)" in settings_for(tool, log, timeout=0.3).notes[0]
