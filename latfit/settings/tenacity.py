"""tenacity, around a function that cuts itself."""

from latfit.settings.base import Plan, Tool, number, register


def decorator(plan: Plan, retried: str) -> str:
    """The decorator that retries what `retried` chooses, of a module that imports its parts."""
    return (
        "@retry(\n"
        f"    stop=stop_after_attempt({plan.attempts}),\n"
        f"    wait=wait_fixed({number(plan.pause)}),\n"
        f"    retry={retried},\n"
        "    reraise=True,\n"
        ")"
    )


@register
class Tenacity(Tool):
    """`retry(stop=stop_after_attempt(K), wait=wait_fixed(c), …)`; the call itself is given the timeout."""

    name = "tenacity"
    title = "tenacity"
    counts = "attempts"
    limits = "what the call inside limits: tenacity never cuts an attempt itself, so pass the timeout to the call"
    validated = "real: tenacity 9.2.1 around urllib, arrivals at 0, t, 2t"
    traps = (
        "without reraise=True the caller gets a RetryError instead of the timeout",
        "urllib raises a URLError around the timeout of connecting, and the TimeoutError itself for that of reading",
    )

    def snippet(self, plan: Plan) -> str:
        """A function that is retried when it times out; where attempts fail visibly, also on network errors and 5xx."""
        imports = "import http.client\n" if plan.failures else ""
        timed_out = 'isinstance(getattr(error, "reason", error), TimeoutError)'
        failed = 'isinstance(error, (OSError, http.client.HTTPException)) and getattr(error, "code", 500) >= 500'
        return (
            f"{imports}import urllib.request\n"
            "from tenacity import retry, retry_if_exception, stop_after_attempt, wait_fixed\n"
            "\n"
            "def again(error):\n"
            f"    return {failed if plan.failures else timed_out}\n"
            "\n"
            f"{decorator(plan, 'retry_if_exception(again)')}\n"
            "def attempt():\n"
            f"    return urllib.request.urlopen(URL, timeout={self.written(plan.timeout)}).read()\n"
            "\n"
            "response = attempt()"
        )
