"""HAProxy."""

from latfit.settings.base import Plan, Tool, milliseconds, register


@register
class Haproxy(Tool):
    """`timeout connect T`, `timeout server T`, `retries K−1` and `retry-on` of a backend."""

    name = "haproxy"
    title = "HAProxy"
    counts = "retries"
    unit = "ms"
    waits = False
    longest = 25 * 86400 - 1
    limits = "connecting, then the wait for the response of the server, and every silence of it after that"
    validated = "real: HAProxy 2.6.12, arrivals at 0, t, 2t"
    traps = (
        "a bare number is milliseconds; 0.35s is refused, and so are 25 days and more",
        "without response-timeout in retry-on a timeout is not retried, and without conn-failure, its default, a "
        "connection that fails is not; a POST is replayed too (http-request disable-l7-retry prevents it)",
    )

    def written(self, timeout: float) -> str:
        """Milliseconds or whole seconds, with the unit."""
        return milliseconds(timeout)

    def snippet(self, plan: Plan) -> str:
        """A backend."""
        limit = self.written(plan.timeout)
        failures = " empty-response 500 502 503 504" if plan.failures else ""
        return (
            "backend NAME\n"
            "    mode http\n"
            f"    timeout connect {limit}\n"
            f"    timeout server {limit}\n"
            f"    retries {plan.retries}\n"
            f"    retry-on conn-failure response-timeout{failures}\n"
            "    server s1 HOST:PORT"
        )
