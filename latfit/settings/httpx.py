"""httpx, retried by tenacity."""

from latfit.settings.base import Plan, Tool, register
from latfit.settings.tenacity import decorator


@register
class Httpx(Tool):
    """`Client(timeout=T)` in a function that tenacity retries."""

    name = "httpx"
    title = "httpx with tenacity"
    counts = "attempts"
    limits = "connecting, and the wait between two reads: a body that drips outlives it"
    validated = "real: httpx 0.28.1 with tenacity 9.2.1, arrivals at 0, t, 2t"
    traps = ("HTTPTransport(retries=…) retries connecting only",)

    def snippet(self, plan: Plan) -> str:
        """A client, and a function to call instead of its `get`."""
        errors = "(httpx.TransportError, httpx.HTTPStatusError)" if plan.failures else "httpx.TimeoutException"
        check = "    if response.status_code >= 500:\n        response.raise_for_status()\n" if plan.failures else ""
        return (
            "import httpx\n"
            "from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_fixed\n"
            "\n"
            f"client = httpx.Client(timeout={self.written(plan.timeout)})\n"
            "\n"
            f"{decorator(plan, f'retry_if_exception_type({errors})')}\n"
            "def get(url):\n"
            "    response = client.get(url)\n"
            f"{check}"
            "    return response\n"
            "\n"
            "response = get(URL)"
        )
