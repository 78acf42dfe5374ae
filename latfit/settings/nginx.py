"""nginx as a proxy."""

from latfit.settings.base import Plan, Tool, milliseconds, register


@register
class Nginx(Tool):
    """`proxy_read_timeout` and `proxy_next_upstream`, with the server listed K times."""

    name = "nginx"
    title = "nginx"
    counts = "attempts"
    unit = "ms"
    waits = False
    limits = "connecting, and the wait between two reads of the response"
    validated = "real: nginx 1.22.1, arrivals at 0, t, 2t"
    traps = (
        "a server that is listed once is never retried, and max_fails=0 keeps it in use: list your servers so that "
        "there are at least as many as attempts",
        "a bare number is seconds; 0.35s is refused; a POST is retried only with non_idempotent",
    )

    def written(self, timeout: float) -> str:
        """Milliseconds or whole seconds, with the unit."""
        return milliseconds(timeout)

    def snippet(self, plan: Plan) -> str:
        """The upstream and the directives of a location."""
        servers = "".join("    server HOST:PORT max_fails=0;\n" for _ in range(plan.attempts))
        limit = self.written(plan.timeout)
        failures = " http_500 http_502 http_503 http_504" if plan.failures else ""
        return (
            "upstream backend {\n"
            f"{servers}"
            "}\n"
            "server {\n"
            "    listen LISTEN;\n"
            "    location / {\n"
            "        proxy_pass http://backend;\n"
            f"        proxy_connect_timeout {limit};\n"
            f"        proxy_read_timeout {limit};\n"
            f"        proxy_next_upstream error timeout{failures};\n"
            f"        proxy_next_upstream_tries {plan.attempts};\n"
            "    }\n"
            "}"
        )
