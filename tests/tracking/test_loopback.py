"""Real requests on loopback: the examples of the documentation, and a service that slows down and heals."""

import asyncio
import importlib

import pytest

import latfit
from conftest import REPO

pytestmark = pytest.mark.slow


@pytest.fixture
def loopback(monkeypatch):
    """The package of scripts/loopback."""
    monkeypatch.syspath_prepend(str(REPO / "scripts"))
    return importlib.import_module("loopback.__main__")


def test_the_tracker_follows_a_service_that_slows_down_and_heals(loopback):
    """Under the old timeout nearly every request of the slow service is cut short, ten times over."""
    tracked, fixed = (asyncio.run(loopback.measured(policy, 30)) for policy in ("tracker", "fixed"))
    assert tracked[1] < fixed[1] / 2
    assert sum(tracked) < sum(fixed) / 1.5


def assert_every_attempt_was_observed(tracker, requests, answers):
    """An attempt sends at most one request, and an answer needs one: an attempt that is cut while it connects has none.

    So requests and observations need not be equal, however close they are on a quiet machine.
    """
    assert answers <= requests <= tracker.observations


def test_asyncio_example(loopback):
    fetch = loopback.example("tracked_asyncio").fetch

    async def some(n):
        tracker = latfit.Tracker(initial=0.2, cutoff=2.0)
        async with loopback.Service(loopback.draw, 0.1).running() as service:
            answers = [await fetch("127.0.0.1", service.port, "/", tracker) for _ in range(n)]
            return answers, tracker, service.requests

    answers, tracker, requests = asyncio.run(some(40))
    assert all(answer.endswith(b"ok") for answer in answers)
    assert_every_attempt_was_observed(tracker, requests, len(answers))
    assert 0.02 < tracker.timeout <= 2.0


def test_httpx_example(loopback):
    httpx = pytest.importorskip("httpx")
    get = loopback.example("tracked_httpx").get

    async def some(n):
        tracker = latfit.Tracker(initial=0.2, cutoff=2.0)
        async with loopback.Service(loopback.draw, 0.1).running() as service, httpx.AsyncClient() as client:
            url = f"http://127.0.0.1:{service.port}/"
            return [await get(client, url, tracker) for _ in range(n)], tracker, service.requests

    responses, tracker, requests = asyncio.run(some(40))
    assert all(response.text == "ok" for response in responses)
    assert_every_attempt_was_observed(tracker, requests, len(responses))
