"""An HTTP service on loopback with the troubles of real ones; it keeps an access log of its own.

A request names its job in the path, `/7`. An answer comes after a latency that the system decides; a client that hangs
up is noted. Latencies are in the tenths of a second, so that a busy machine does not change them much.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

MEDIAN, SIGMA = 0.1, 0.8
HANGS, ERRORS = 0.04, 0.03
LONG = 2.0  # what the long jobs of the sticky system take
SERVICE = 0.02  # seconds of work that a request is to the server with one worker
BURST, BETWEEN = 60, 4.0  # requests of others that arrive at once, and the mean seconds until the next burst


@dataclass
class Service:
    """One system: independent, lossy, drifting, sticky or overloaded."""

    system: str
    rng: np.random.Generator
    log: list[tuple[str, float, float, str]] = field(default_factory=list)
    start: float = field(default_factory=time.monotonic)
    port: int = 0
    seed: int = 0
    scale: float = 1.0

    async def run(self) -> asyncio.Server:
        """Listen; the caller closes the server."""
        self.worker = asyncio.Lock()
        server = await asyncio.start_server(self._answer, "127.0.0.1", self.port)
        self.port = server.sockets[0].getsockname()[1]
        self.others = asyncio.create_task(self._bursts()) if self.system == "overloaded" else None
        return server

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            job, arrived = head.split(b" ", 2)[1].decode().strip("/"), time.monotonic()
            work = asyncio.ensure_future(self._work(job))
            gone = asyncio.ensure_future(reader.read(1))  # ends when the client hangs up
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            status = "censored"
            if work.done():
                ok = work.result()
                status = "completed" if ok else "failed"
                line = b"200 OK" if ok else b"500 Broken"
                writer.write(b"HTTP/1.1 " + line + b"\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
                with suppress(OSError):
                    await writer.drain()
            elif self.system != "overloaded":  # there a request that is given up is worked on all the same
                work.cancel()
            gone.cancel()
            self.log.append((job, arrived, time.monotonic() - arrived, status))
        writer.close()

    async def _work(self, job: str) -> bool:
        """Wait as this system does; whether the answer is a good one."""
        if self.system == "overloaded":
            async with self.worker:
                await asyncio.sleep(self.rng.exponential(SERVICE))
            return True
        if self.system == "lossy":
            await asyncio.sleep(self.rng.uniform(0.05, 0.15))
            return True
        rng = np.random.default_rng([int(job), self.seed]) if self.system == "sticky" else self.rng
        kind, x = rng.random(), self.scale * MEDIAN * rng.lognormal(0, SIGMA)
        if self.system == "sticky":  # the same job takes as long again; some jobs are just long
            x = self.scale * LONG if kind < HANGS else x
        elif kind < HANGS:
            await asyncio.sleep(3600)
        elif kind < HANGS + ERRORS:
            await asyncio.sleep(self.scale * 0.01)
            return False
        if self.system == "drifting":
            x *= 1 + (time.monotonic() - self.start) / 20
        await asyncio.sleep(x)
        return True

    async def _bursts(self) -> None:
        """The requests of others, many at once now and then."""
        while True:
            await asyncio.sleep(self.rng.exponential(BETWEEN))
            for _ in range(BURST):
                asyncio.create_task(self._work("0"))  # noqa: RUF006
