"""HTTP requests as probes: the latency is the time from the request to the last byte of the answer."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from latfit.errors import ProbeError
from latfit.measure.targets import Attempt, Outcome, Probe, Target, argument, option, register

PORTS = {"http": 80, "https": 443}
NOT_SHOWN = "check its spelling; it is not shown, as it may hold a password"


@register
@dataclass(frozen=True)
class Http(Target):
    """A request; an expected answer is completed; any other answer, a refusal or a broken connection failed.

    By default 1xx to 4xx are expected, except 425 and 429: the server has answered, and would answer the same again.
    Redirections are answers; they are not followed.
    """

    name = "http"
    summary = "Send HTTP requests; an expected answer is completed, any other or a broken connection failed."
    example = "latfit probe http https://example.org/health -o probes.jsonl --expect 200 --cutoff 30"
    pause = 0.1
    same = ("url", "method")

    url: str = argument("URL")
    method: str = option("GET", "The method of the request.")
    headers: Path | None = option(None, "A file of header lines, `Name: value`; it is not logged.", kind="file")  # noqa: RUF009
    data: Path | None = option(None, "A file to send as the body; it is not logged.", kind="file")  # noqa: RUF009
    expect: str | None = option(None, "The codes that are completed, such as 200,204 or 2xx (default: 1xx to 4xx).")
    reuse: bool = option(True, "Use connections again, as browsers and most clients do.", kind="flag")

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            _ = parts.port
        except ValueError as error:
            raise ProbeError(f"this is not a URL ({type(error).__name__}): {NOT_SHOWN}") from error
        if parts.scheme not in PORTS or not parts.hostname:
            raise ProbeError(f"this is not a URL that begins with http:// or https:// and a host: {NOT_SHOWN}")
        if re.search(r"(:|//)[^/]*@", parts.path):  # the path is logged
            raise ProbeError(f"this URL seems to have a / in its user or password; write it as %2F: {NOT_SHOWN}")

    @asynccontextmanager
    async def open(self, run: str) -> AsyncIterator[Probe]:
        try:
            import aiohttp
        except ImportError as error:
            raise ProbeError("the http target needs aiohttp: pip install 'latfit[http]'") from error
        headers, body = self._headers(), self.data.read_bytes() if self.data else None
        parts = urlsplit(self.url)
        port = parts.port or PORTS[parts.scheme]
        try:
            _, writer = await asyncio.wait_for(asyncio.open_connection(parts.hostname, port), 10.0)
        except (OSError, TimeoutError) as error:
            why = getattr(error, "strerror", None) or str(error) or "no connection within 10 s"
            raise ProbeError(f"{parts.hostname}:{port}: the server is not there ({why})") from error
        writer.close()
        connector = aiohttp.TCPConnector(limit=0, force_close=not self.reuse)
        no_limits = aiohttp.ClientTimeout(total=None, sock_connect=None)
        async with aiohttp.ClientSession(
            connector=connector, timeout=no_limits, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
        ) as client:
            client._retry_connection = False  # aiohttp must not repeat a request by itself
            completes = lru_cache(self.completes)
            completes(200)  # load the table of codes before the first request

            async def probe(attempt: Attempt) -> Outcome:
                url, filled = attempt.fill(self.url), [(name, attempt.fill(value)) for name, value in headers]
                start = time.monotonic()
                try:
                    async with client.request(
                        self.method, url, headers=filled, data=body, allow_redirects=False
                    ) as answer:
                        await answer.read()
                        latency, code = time.monotonic() - start, answer.status
                except (aiohttp.ClientError, OSError) as error:
                    latency = time.monotonic() - start
                    cause: BaseException = getattr(error, "os_error", None) or error
                    reasons = {ConnectionRefusedError: "refused", ConnectionResetError: "reset"}
                    named = (name for kind, name in reasons.items() if isinstance(cause, kind))
                    return Outcome("failed", latency, next(named, type(cause).__name__))  # without the URL
                return Outcome("completed" if completes(code) else "failed", latency, f"HTTP {code}")

            yield probe

    def _headers(self) -> list[tuple[str, str]]:
        headers = []
        lines = self.headers.read_text(encoding="latin-1").splitlines() if self.headers else []
        for number, line in enumerate(lines, start=1):
            name, colon, value = line.partition(":")
            if line.strip():
                if not colon or not name.strip():
                    raise ProbeError(f"{self.headers}: line {number} is not of the form `Name: value`")
                headers.append((name.strip(), value.strip()))
        if urlsplit(self.url).username and any(name.lower() == "authorization" for name, _ in headers):
            raise ProbeError(f"{self.headers}: it has an Authorization, and the URL a user: leave out one of them")
        return headers

    def completes(self, code: int) -> bool:
        if self.expect is None:
            from latfit.logs.vocabulary import http_outcome

            return http_outcome(str(code)) == "completed"
        wanted = [word.strip().lower() for word in self.expect.split(",")]
        return str(code) in wanted or f"{code // 100}xx" in wanted

    def remarks(self, completed: Counter[str]) -> list[str]:
        """The codes of answers other than 2xx and 3xx, if the user did not say which to expect."""
        odd = [(code, n) for code, n in completed.most_common() if code.startswith("HTTP ") and code[5] not in "23"]
        if self.expect is not None or not odd:
            return []
        codes = ", ".join(f"{n} of {completed.total()} answers {'was' if n == 1 else 'were'} {code}" for code, n in odd)
        return [f"{codes}: they count as completed; with --expect 2xx,3xx they would count as failed"]

    def shown(self, attempt: Attempt) -> str:
        return "\n".join([f"{self.method} {attempt.fill(self.url)}", *(f"{name}: …" for name, _ in self._headers())])

    def public(self) -> dict[str, Any]:
        """The URL without user, password, query and fragment; no header."""
        parts = urlsplit(self.url)
        url = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
        return {"url": url, "method": self.method, "reuse": self.reuse}
