"""curl's own retries."""

import math

from latfit.settings.base import Plan, Tool, register


@register
class Curl(Tool):
    """`--max-time T --retry K−1 --retry-delay c`."""

    name = "curl"
    title = "curl"
    counts = "retries"
    limits = "the whole transfer of one attempt, connecting included"
    validated = "real: curl 7.88.1, attempts at 0, t + 1 s, 2 (t + 1 s)"
    traps = (
        "--retry-delay 0 means a back-off of 1, 2, 4 … s; before curl 8.16 only whole seconds are taken",
        "a POST is retried too: the server may act twice",
    )

    def pause(self, restart: int, cost: float) -> float:
        """Whole seconds, at least 1."""
        return float(max(1, math.ceil(cost)))

    def snippet(self, plan: Plan) -> str:
        """A command line; URL is yours."""
        delay = int(self.pause(1, plan.pause))
        failures = " --retry-all-errors" if plan.failures else ""
        limits = f"--max-time {self.written(plan.timeout)} --retry {plan.retries} --retry-delay {delay}{failures}"
        return f"curl --fail --silent --show-error {limits} URL"
