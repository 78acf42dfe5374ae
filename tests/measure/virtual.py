"""A clock that moves on to the next event at once: what a loop does is exact, and takes no time on a busy machine."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from latfit.measure import Outcome, Target


class Loop(asyncio.SelectorEventLoop):
    """An event loop that never sleeps: where it would, its clock is put forward."""

    def __init__(self, clock):
        super().__init__()
        self.clock, ready = clock, self._selector.select

        def select(timeout):
            events = ready(None if timeout is None else 0)
            if not events and timeout:
                clock.now += timeout
            return events

        self._selector.select = select

    def time(self):
        return self.clock.now


class Clock:
    """The time of a test, from 0."""

    now = 0.0

    def run(self, main):
        with asyncio.Runner(loop_factory=lambda: Loop(self)) as runner:
            return runner.run(main)


@pytest.fixture
def clock(monkeypatch):
    """Measurements of this test run on a clock of their own."""
    clock = Clock()
    monkeypatch.setattr(asyncio, "run", clock.run)
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    return clock


@dataclass(frozen=True)
class Scripted(Target):
    """Answers when the script says, by the attempt: after some seconds, or fails after minus as many."""

    script: Callable[..., float]
    name = "scripted"

    @contextlib.asynccontextmanager
    async def open(self, run):
        async def probe(attempt):
            wait = self.script(attempt)
            await asyncio.sleep(abs(wait))
            return Outcome("completed" if wait > 0 else "failed", abs(wait), "scripted")

        yield probe

    def shown(self, attempt):
        return ""

    def public(self):
        return {}
