"""The snippets, run for real against a target whose first two attempts hang; heavy tools: scripts/settings-real."""

import pytest

from hanging import gaps
from latfit.settings import TOOLS, settings_for
from real_tools import CHECKS, RUNNERS, missing

TIMEOUT = 0.7  # long enough for a busy machine to answer the third attempt
LIGHT = [name for name, (_, _, heavy, _) in RUNNERS.items() if not heavy]
HEAVY = [name for name in RUNNERS if name not in LIGHT]


def check(name, folder):
    run, needs, _, _ = RUNNERS[name]
    absent = missing(needs)
    if absent:
        pytest.skip(f"not here: {', '.join(absent)}")
    target = run(settings_for(name, timeout=TIMEOUT, attempts=3).snippet, folder)
    assert len(target.arrivals) == 3
    # the first attempt may arrive late, by the start of a program or a connection; none is cut early
    assert gaps(target)[-1] > 0.5 * TIMEOUT
    assert sum(gaps(target)) > TIMEOUT


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


def test_what_is_called_real_can_be_run():
    """No tool says that it was run for real without a runner here."""
    assert {name for name, tool in TOOLS.items() if tool.validated.startswith("real")} <= set(RUNNERS)
