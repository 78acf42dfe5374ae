"""A client that gives up, resubmits and learns when to: asyncio alone, one tracker for all requests in flight."""

import asyncio
import time

from latfit import Tracker


async def attempt(host: str, port: int, path: str) -> bytes:
    """One request; closing the connection cancels it."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        return await reader.read()
    finally:
        writer.close()


async def fetch(host: str, port: int, path: str, tracker: Tracker) -> bytes:
    """The answer, however many attempts it takes."""
    while True:
        timeout, start = tracker.next(), time.perf_counter()
        try:
            async with asyncio.timeout(timeout):
                answer = await attempt(host, port, path)
        except TimeoutError:
            tracker.observe(timeout, "censored")
            continue
        except OSError:
            tracker.observe(time.perf_counter() - start, "failed")
            await asyncio.sleep(tracker.cost)
            continue
        status = "completed" if b" 200 " in answer.split(b"\r\n", 1)[0] else "failed"
        tracker.observe(time.perf_counter() - start, status)
        if status == "completed":
            return answer
