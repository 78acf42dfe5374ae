"""Retry a callable with a timeout for each attempt, inside a client: tenacity with a log and a tracker.

tenacity decides when to stop and how long to wait; this module gives every attempt its timeout, measures it, and passes
the outcome to a `latfit.Tracker` and to a log that every command of latfit reads (`latfit verify before.csv LOG`).
It needs the extra `latfit[retry]`.

    from latfit.retrying import Retrying
    patient = Retrying.of(latfit.analyze(log), log="attempts.jsonl")                       # the recommended schedule
    patient = Retrying(0.35, attempts=3, log="attempts.jsonl")                             # or a timeout of your own

    patient.call(lambda t: subprocess.run(["make", "probe"], timeout=t, check=True))       # a command
    patient.call(lambda t: httpx.get(url, timeout=t))                                      # HTTP, sync
    await patient.acall(lambda t: client.get(url))                                         # HTTP, cut by asyncio
    patient.call(lambda t: stub.Call(request, timeout=t))                                  # gRPC

A synchronous call has to observe the timeout itself: nothing in Python can end a thread. An asynchronous one is cut by
`asyncio.timeout`.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING, Any, TypeVar

from latfit.errors import RestartError

if TYPE_CHECKING:
    from latfit.analysis import Analysis
    from latfit.decision import Decision
    from latfit.tracking.tracker import Tracker

T = TypeVar("T")
Errors = tuple[type[BaseException], ...]


class Retrying:
    """Attempts of a callable, each with a timeout; an instance is reusable, and threads may share it.

    `timeout` is in seconds; or several, for the first, second … attempt, the last for all that follow (inf: no limit);
    or a Tracker, or anything with its `next` and `observe`. `attempts` is K, `pause` the wait in seconds between two
    attempts. A timeout ends an attempt as censored (TimeoutError and subprocess.TimeoutExpired; the timeouts of httpx,
    requests and gRPC are recognised by name), an exception in `failures` as failed; both lead to the next attempt. Any
    other exception is raised at once.
    `log` is a file that gets a line of JSON for each attempt: job, attempt, submitted, latency, status.

    >>> Retrying(0.5, attempts=2).call(lambda t: t)
    0.5
    """

    def __init__(
        self,
        timeout: float | Sequence[float] | Tracker,
        *,
        attempts: int = 3,
        pause: float = 0.0,
        failures: Errors = (),
        timeouts: Errors = (),
        log: str | Path | None = None,
    ) -> None:
        if attempts < 1:
            raise RestartError(f"the number of attempts is {attempts}; it must be at least 1")
        if not pause >= 0:
            raise RestartError(f"the pause is {pause} s; it must not be negative")
        self._tracker: Any = timeout if hasattr(timeout, "observe") else None
        times = () if self._tracker else tuple(timeout) if isinstance(timeout, Sequence) else (timeout,)
        self._schedule = tuple(float(t) for t in times if isinstance(t, (int, float)) and t > 0)
        valid = self._tracker or (self._schedule and len(self._schedule) == len(times))
        if not valid or float("inf") in self._schedule[:-1]:
            raise RestartError(f"the timeout is {timeout!r}; it must be a positive number of seconds, or several")
        self.attempts, self.pause, self.failures = attempts, pause, failures
        self.timeouts: Errors = (TimeoutError, TimeoutExpired, *timeouts)
        self._log = None if log is None else Path(log)
        self._lock, self._run, self._jobs = threading.Lock(), token_hex(4), itertools.count(1)

    @classmethod
    def of(cls, advice: Analysis | Decision, *, limit: float | None = None, **options: Any) -> Retrying:
        """Retry as `timeout.retry` of an analysis advises: cancel after τ₁ … τ_K, then wait until the cutoff.

        `limit` replaces the cutoff; inf means no limit. If the advice is to wait, there is one attempt.
        `options` are those of `Retrying`; with more `attempts`, the last timeout is repeated.
        """
        decision: Any = getattr(advice, "decision", advice)
        retry = decision.timeout.retry if decision.timeout is not None else None
        if limit is None:
            limit = decision.cutoff.cutoff if decision.cutoff is not None else float("inf")
        timeouts = (*(retry.timeouts if retry else ()), limit)
        return cls(timeouts, **{"attempts": len(timeouts), **options})

    def call(self, function: Callable[[Any], T]) -> T:
        """The result of `function(t)`, which has to observe the timeout t itself; None means no limit."""
        from tenacity import Retrying as Loop

        job = f"{self._run}-{next(self._jobs)}"
        for attempt in Loop(**self._rules()):
            with attempt, self._recorded(job, attempt.retry_state.attempt_number) as t:
                return function(t)
        raise AssertionError("tenacity returns or raises")

    async def acall(self, function: Callable[[Any], Awaitable[T]]) -> T:
        """The result of awaiting `function(t)`, which is cancelled after t seconds; None means no limit."""
        from tenacity import AsyncRetrying as Loop

        job = f"{self._run}-{next(self._jobs)}"
        async for attempt in Loop(**self._rules()):
            with attempt, self._recorded(job, attempt.retry_state.attempt_number) as t:
                async with asyncio.timeout(t):
                    return await function(t)
        raise AssertionError("tenacity returns or raises")

    def _rules(self) -> dict[str, Any]:
        from tenacity import retry_if_exception, stop_after_attempt, wait_fixed

        return {
            "stop": stop_after_attempt(self.attempts),
            "wait": wait_fixed(self.pause),
            "retry": retry_if_exception(lambda error: self.is_timeout(error) or isinstance(error, self.failures)),
            "reraise": True,
        }

    def is_timeout(self, error: BaseException) -> bool:
        """Whether an attempt was cut: by the class of the error, or by its name in HTTP clients and gRPC."""
        if isinstance(error, self.timeouts):
            return True
        if any(kind.__name__ in ("TimeoutException", "Timeout") for kind in type(error).__mro__):  # httpx, requests
            return True
        code = getattr(error, "code", None)
        return callable(code) and getattr(code(), "name", "") == "DEADLINE_EXCEEDED"  # gRPC

    @contextmanager
    def _recorded(self, job: str, number: int) -> Iterator[float | None]:
        """Yield the timeout of an attempt, measure it, and pass its outcome to the tracker and the log."""
        with self._lock:
            limit = self._tracker.next() if self._tracker else self._schedule[min(number, len(self._schedule)) - 1]
        submitted, start, status = datetime.now(UTC), time.monotonic(), "completed"
        try:
            yield limit if limit < float("inf") else None
        except BaseException as error:  # one that is not an Exception has cancelled the whole call
            cut = self.is_timeout(error) or not isinstance(error, Exception)
            status = "censored" if cut else "failed"
            raise
        finally:
            latency = time.monotonic() - start
            if self._tracker is not None:
                with self._lock:
                    self._tracker.observe(latency, status)
            if self._log is not None:
                when = submitted.isoformat(timespec="microseconds").replace("+00:00", "Z")
                row = {"job": job, "attempt": number, "submitted": when, "latency": round(latency, 6), "status": status}
                with self._log.open("ab", buffering=0) as file:  # one write: the line is complete or absent
                    file.write((json.dumps(row) + "\n").encode())
