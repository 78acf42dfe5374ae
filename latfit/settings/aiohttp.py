"""aiohttp, in a loop."""

from latfit.settings.base import Plan, Tool, number, register


@register
class Aiohttp(Tool):
    """`ClientTimeout(total=T)` in a loop of K attempts."""

    name = "aiohttp"
    title = "aiohttp"
    counts = "attempts"
    limits = "the whole request of one attempt, from connecting to the last byte of the body"
    validated = "real: aiohttp 3.14.5, arrivals at 0, t, 2t"
    traps = ("aiohttp has no retry of its own",)

    def snippet(self, plan: Plan) -> str:
        """A coroutine to call instead of `session.get`."""
        errors = "(TimeoutError, aiohttp.ClientError)" if plan.failures else "TimeoutError"
        deep = " " * 20
        check = f"{deep}if response.status >= 500:\n{deep}    response.raise_for_status()\n" if plan.failures else ""
        pause = f"                await asyncio.sleep({number(plan.pause)})\n" if plan.pause else ""
        imports = "import asyncio\n\nimport aiohttp\n" if plan.pause else "import aiohttp\n"
        return (
            f"{imports}"
            "\n"
            "async def get(url):\n"
            f"    limit = aiohttp.ClientTimeout(total={self.written(plan.timeout)})\n"
            "    async with aiohttp.ClientSession(timeout=limit) as session:\n"
            f"        for attempt in range({plan.attempts}):\n"
            "            try:\n"
            "                async with session.get(url) as response:\n"
            f"{check}"
            "                    return await response.read()\n"
            f"            except {errors}:\n"
            f"                if attempt == {plan.retries}:\n"
            "                    raise\n"
            f"{pause}"
        ).rstrip("\n")
