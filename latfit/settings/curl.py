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
        "--retry also repeats after the answers 408, 429, 500, 502, 503 and 504, and waits as long as Retry-After asks",
        "a POST is retried too: the server may act twice",
    )

    def pause(self, restart: int, cost: float) -> float:
        """Whole seconds, at least 1."""
        return float(max(1, math.ceil(cost)))

    def notes(self, plan: Plan) -> tuple[str, ...]:
        """A delay that was rounded, and the failures that are not retried."""
        delay = self.pause(1, plan.pause)
        notes = []
        if plan.pause and delay != plan.pause:
            notes.append(f"--retry-delay is {delay:g} s for the cost of {plan.pause:g} s: whole seconds, at least 1")
        if plan.failures:
            notes.append(
                "connections that the server closes or resets are not retried: --retry-all-errors does so, but then "
                "--fail makes it repeat every 4xx answer too"
            )
        return tuple(notes)

    def snippet(self, plan: Plan) -> str:
        """A command line; URL is yours."""
        delay = int(self.pause(1, plan.pause))
        failures = " --retry-connrefused" if plan.failures else ""
        limits = f"--max-time {self.written(plan.timeout)} --retry {plan.retries} --retry-delay {delay}{failures}"
        return f"curl --fail --silent --show-error {limits} URL"
