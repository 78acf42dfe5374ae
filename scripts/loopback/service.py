"""An HTTP server on 127.0.0.1 whose latency has a known law, times a factor that can be changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import asynccontextmanager

import numpy as np

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
NEVER = 3600.0


class Service:
    """Answers after `factor` times a draw of the law; the share `rho` of requests is never answered."""

    def __init__(self, draw: Callable[[np.random.Generator], float], rho: float, seed: int = 0) -> None:
        self.draw, self.rho, self.factor = draw, rho, 1.0
        self.rng = np.random.default_rng(seed)
        self.requests = 0
        self.port = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            self.requests += 1
            wait = NEVER if self.rng.random() < self.rho else self.factor * self.draw(self.rng)
            gone = asyncio.ensure_future(reader.read(1))  # a client that gave up
            done, _ = await asyncio.wait([gone], timeout=wait)
            gone.cancel()
            if not done:
                writer.write(ANSWER)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    @asynccontextmanager
    async def running(self):
        server = await asyncio.start_server(self.answer, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self
            server.close()
