"""Measuring: single probes, and jobs under a policy by tenacity (latfit.retrying) or through HAProxy."""

from __future__ import annotations

import asyncio
import csv
import socket
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import numpy as np

from latfit.retrying import Retrying


@dataclass(frozen=True)
class Setup:
    """The cutoff in seconds and how many requests are on their way: as many a second whatever the scale is."""

    scale: float = 1.0

    @property
    def cutoff(self) -> float:
        """When a probe is recorded as still out."""
        return 4.0 * self.scale

    @property
    def in_flight(self) -> int:
        """How many are on their way."""
        return round(20 * self.scale)


class Broken(Exception):
    """An answer that is an error: seen at once."""


@dataclass
class Lag:
    """How late this process is on average: a busy machine adds it to what is measured."""

    total: float = 0.0
    looks: int = 0

    async def watch(self) -> None:
        """Look again and again."""
        while True:
            start = time.monotonic()
            await asyncio.sleep(0.02)
            self.total, self.looks = self.total + time.monotonic() - start - 0.02, self.looks + 1

    def mean(self) -> float:
        """The mean lag since the last question, in seconds."""
        found = self.total / max(1, self.looks)
        self.total, self.looks = 0.0, 0
        return found


async def get(session: aiohttp.ClientSession, url: str) -> None:
    """One request, to the last byte."""
    async with session.get(url) as answer:
        await answer.read()
        if answer.status != 200:
            raise Broken


async def many(setup: Setup, count: int, work: Callable[[int], object], rng: np.random.Generator) -> None:
    """Run `work(0)`, `work(1)` … with a few in flight, and a random pause before each."""
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            await asyncio.sleep(rng.uniform(0, 0.02))
            await work(number)

    await asyncio.gather(*(worker() for _ in range(setup.in_flight)))


async def timed(setup: Setup, session: aiohttp.ClientSession, url: str) -> tuple[str, str, str]:
    """When a request was sent, what it took up to the cutoff, and how it ended."""
    when, start, status = datetime.now(UTC), time.monotonic(), "completed"
    try:
        async with asyncio.timeout(setup.cutoff):
            await get(session, url)
    except TimeoutError:
        status = "censored"
    except (Broken, aiohttp.ClientError):
        status = "failed"
    return when.isoformat(), f"{min(time.monotonic() - start, setup.cutoff):.6f}", status


async def probes(setup: Setup, port: int, count: int, path: Path, rng: np.random.Generator) -> None:
    """A log of single probes, each of another job, cut at the cutoff."""
    rows: list[tuple[str, ...]] = []

    async def probe(number: int) -> None:
        rows.append(await timed(setup, session, f"http://127.0.0.1:{port}/{number}"))

    async with new_session() as session:
        await many(setup, count, probe, rng)
    write(path, ("submitted", "latency", "status"), sorted(rows))


def new_session() -> aiohttp.ClientSession:
    """A session with a connection for each request and no timeout of its own."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=True), timeout=aiohttp.ClientTimeout(total=None)
    )


async def jobs(setup: Setup, port: int, count: int, arms: dict[str, list[float]], attempts: int, folder: Path,
               rng: np.random.Generator) -> dict[str, list[tuple[float, bool]]]:  # fmt: skip
    """The same jobs under several policies in turn, so that all see the same system; a log for each.

    Returns what each job took under each policy, and whether it was done.
    """
    errors = (Broken, aiohttp.ClientError)
    runs = {
        name: Retrying(times, attempts=attempts, failures=errors, log=folder / f"{name}.jsonl")
        for name, times in arms.items()
    }

    took = {name: [(0.0, False)] * count for name in runs}

    async def job(number: int) -> None:
        name, same = list(runs)[number % len(runs)], number // len(runs)
        start, done = time.monotonic(), False
        with suppress(TimeoutError, *errors):
            await runs[name].acall(lambda _: get(session, f"http://127.0.0.1:{port}/{100_000 + same}"))
            done = True
        took[name][same] = time.monotonic() - start, done

    async with new_session() as session:
        await many(setup, count * len(runs), job, rng)
    return took


async def through_haproxy(
    setup: Setup, service, snippet: str, count: int, path: Path, rng: np.random.Generator
) -> None:
    """Jobs through HAProxy with the backend that latfit wrote; the attempts are those of the service's own log."""
    with tempfile.TemporaryDirectory() as folder:
        config, front = Path(folder) / "haproxy.cfg", free_port()
        backend = snippet.replace("HOST:PORT", f"127.0.0.1:{service.port}")
        config.write_text(
            "defaults\n    timeout connect 5s\n    timeout client 600s\n    timeout queue 600s\n"
            f"frontend front\n    mode http\n    bind 127.0.0.1:{front}\n    default_backend NAME\n{backend}\n"
        )
        proxy = await asyncio.create_subprocess_exec(
            "haproxy", "-db", "-f", str(config), stderr=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL
        )
        await asyncio.sleep(1)
        service.log.clear()
        try:
            async with new_session() as session:

                async def job(number: int) -> None:
                    with suppress(Broken, aiohttp.ClientError):
                        await get(session, f"http://127.0.0.1:{front}/{200_000 + number}")

                await many(setup, count, job, rng)
        finally:
            proxy.terminate()
            await proxy.wait()
    began = datetime.now(UTC) - timedelta(seconds=time.monotonic())
    rows = [
        (name, (began + timedelta(seconds=at)).isoformat(), f"{x:.6f}", status) for name, at, x, status in service.log
    ]
    write(path, ("request_id", "submitted", "latency", "status"), sorted(rows))


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def write(path: Path, names: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """A table as CSV."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *rows])
