"""The same with httpx: a total timeout for each attempt, set by the tracker."""

import asyncio
import time

import httpx

from latfit import Tracker


async def get(client: httpx.AsyncClient, url: str, tracker: Tracker) -> httpx.Response:
    """The first response that is not a server's error, however many attempts it takes."""
    while True:
        timeout, start = tracker.next(), time.perf_counter()
        try:
            async with asyncio.timeout(timeout):  # httpx's own timeouts are for each read, not for the whole
                response = await client.get(url, timeout=None)
        except TimeoutError:
            tracker.observe(timeout, "censored")
            continue
        except httpx.TransportError:
            tracker.observe(time.perf_counter() - start, "failed")
            await asyncio.sleep(tracker.cost)
            continue
        status = "failed" if response.is_server_error else "completed"
        tracker.observe(time.perf_counter() - start, status)
        if status == "completed":
            return response
