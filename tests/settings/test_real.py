"""The snippets, run for real against a target whose first two attempts hang; heavy tools: scripts/settings-real."""

import numpy as np
import pandas as pd
import pytest

import latfit
from hanging import Lateness, gaps
from latfit.settings import TOOLS, settings_for
from real_tools import CHECKS, RUNNERS, missing

TIMEOUT, PATIENT_TIMEOUT = 0.7, 3.0  # if a busy machine does not answer the third attempt in time: once again
LIGHT = [name for name, (_, _, heavy, _) in RUNNERS.items() if not heavy]
HEAVY = [name for name in RUNNERS if name not in LIGHT]


def check(name, folder):
    run, needs, _, _ = RUNNERS[name]
    absent = missing(needs)
    if absent:
        pytest.skip(f"not here: {', '.join(absent)}")
    for timeout in (TIMEOUT, PATIENT_TIMEOUT):
        place = folder / f"{timeout:g}"
        place.mkdir()
        try:
            target = run(settings_for(name, timeout=timeout, attempts=3).snippet, place)
            assert len(target.arrivals) == 3
        except Exception:  # an attempt was cut before it reached the target, or the third before it was answered
            if timeout == PATIENT_TIMEOUT:
                raise
            continue
        # the first attempt may arrive late, by the start of a program or a connection; none is cut early
        assert gaps(target)[-1] > 0.5 * timeout
        assert sum(gaps(target)) > timeout
        return


@pytest.fixture(scope="module")
def hanging_log():
    """Answers within 0.3 to 0.4 s; two in a hundred take 8 s, so that the schedule cancels early and waits at last."""
    rng = np.random.default_rng(1)
    x = np.where(rng.random(2000) < 0.02, 8.0, rng.uniform(0.3, 0.4, 2000))
    return latfit.from_frame(pd.DataFrame({"latency": x, "status": "completed"}))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in RUNNERS if TOOLS[name].schedules])
def test_attempts_arrive_as_scheduled(name, tmp_path, hanging_log):
    """The target hangs twice: the second and the third attempt arrive when the schedule says, but for the jitter."""
    run, needs, _, _ = RUNNERS[name]
    if absent := missing(needs):
        pytest.skip(f"not here: {', '.join(absent)}")
    settings = settings_for(name, hanging_log, cutoff=20.0, attempts=3)
    assert settings.timeouts[-1] == 20.0
    with Lateness() as late:
        target = run(settings.snippet, tmp_path)
    assert len(target.arrivals) == 3
    jitter = 0.1 * settings.timeouts[0]
    for gap, limit in zip(gaps(target), settings.timeouts, strict=False):
        assert 0.5 * limit < gap < 1.05 * limit + jitter + 0.8 + 10 * late.worst  # a start takes many turns


@pytest.mark.slow
@pytest.mark.parametrize("name", LIGHT)
def test_light_tools(name, tmp_path):
    check(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", HEAVY)
def test_heavy_tools(name, tmp_path):
    check(name, tmp_path)


@pytest.mark.parametrize("name", CHECKS)
def test_parts_of_tools(name):
    run, needs, _, _ = CHECKS[name]
    absent = missing(needs)
    if absent:
        pytest.skip(f"not here: {', '.join(absent)}")
    run(settings_for(name, timeout=TIMEOUT, attempts=3).snippet)


def test_tools_marked_as_real_can_be_run():
    """Every tool marked as run for real has a runner here."""
    assert {name for name, tool in TOOLS.items() if tool.validated.startswith("run with")} <= set(RUNNERS)
