"""The queue simulator: an empty system is an M/M/1 queue, and the rule of safe shares holds where it says so."""

import json
import subprocess
import sys

import pytest

from conftest import REPO


def simulate(*arguments):
    done = subprocess.run(
        [sys.executable, REPO / "scripts" / "simulate-queue", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_without_retries_it_is_an_mm1_queue():
    (run,) = simulate("--share", 0, "--utilisation", 0.7, "--burst", 0, "--duration", 60000)
    assert run["queue_at_end"] == pytest.approx(0.7**2 / 0.3, rel=0.4)  # mean number waiting
    assert run["submissions_per_job"] == 1


@pytest.mark.parametrize(("share", "recovers"), [(0.2, True), (0.3, False)])
def test_the_rule_of_safe_shares(share, recovers):
    (run,) = simulate("--utilisation", 0.7, "--attempts", 3, "--share", share, "--duration", 20000)
    assert run["safe_share"] == pytest.approx((1 / 0.7 - 1) / 2, abs=1e-4)
    assert run["recovered"] is recovers
    assert run["rule_says_safe"] is recovers


def test_cancelling_that_reaches_the_server_is_safe():
    (run,) = simulate("--utilisation", 0.7, "--attempts", 3, "--share", 1, "--cancel", "--duration", 20000)
    assert run["recovered"]


def test_a_budget_is_safe_below_its_share():
    (safe,) = simulate("--utilisation", 0.7, "--budget", 0.3, "--share", 1, "--duration", 20000)
    assert safe["rule_says_safe"]
    assert safe["recovered"]


def test_the_fixed_point_promises_too_much():
    (run,) = simulate("--utilisation", 0.7, "--attempts", 3, "--share", 0.3, "--duration", 20000)
    assert run["fixed_point"] is not None
    assert run["fixed_point"] < 1
    assert not run["recovered"]
