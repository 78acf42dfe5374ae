"""stamina, around a function that cuts itself."""

from latfit.settings.base import Plan, Tool, number, register


@register
class Stamina(Tool):
    """`stamina.retry(on=…, attempts=K, timeout=None, wait_initial=c, wait_max=c, wait_jitter=0)`."""

    name = "stamina"
    title = "stamina"
    counts = "attempts"
    limits = "what the call inside limits: stamina never cuts an attempt itself, so pass the timeout to the call"
    validated = "real: stamina 26.1.0 around httpx 0.28.1, arrivals at 0, t, 2t"
    traps = (
        "stamina's own timeout is for all attempts together and 45 s by default: timeout=None switches it off",
        "its default back-off starts at 0.1 s, doubles and has jitter: all three are switched off here",
    )

    def snippet(self, plan: Plan) -> str:
        """A function that is retried when it times out."""
        errors = "(httpx.TransportError, httpx.HTTPStatusError)" if plan.failures else "httpx.TimeoutException"
        check = "    if response.status_code >= 500:\n        response.raise_for_status()\n" if plan.failures else ""
        c = number(plan.pause)
        waits = f"wait_initial={c}, wait_max={c}, wait_jitter=0"
        return (
            "import httpx\n"
            "import stamina\n"
            "\n"
            f"@stamina.retry(on={errors}, attempts={plan.attempts}, timeout=None, {waits})\n"
            "def get(url):\n"
            f"    response = httpx.get(url, timeout={self.written(plan.timeout)})\n"
            f"{check}"
            "    return response\n"
            "\n"
            "response = get(URL)"
        )
