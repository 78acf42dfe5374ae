"""Dask's futures."""

from latfit.settings.base import Plan, Tool, number, register


@register
class Dask(Tool):
    """`submit(…, pure=False)`, `.result(timeout=T)` and `.cancel()` in a loop."""

    name = "dask"
    title = "Dask"
    aliases = ("distributed",)
    counts = "attempts"
    limits = "the wait for the result, in the queue and running; a task that runs is not interrupted by cancelling"
    validated = "real: distributed 2026.8.0, attempts at 0, t, 2t"
    traps = ("without pure=False the resubmission has the key of the cancelled one and raises FutureCancelledError",)

    def snippet(self, plan: Plan) -> str:
        """A function to call instead of `client.submit(…).result()`."""
        errors = "Exception" if plan.failures else "TimeoutError"
        pause = f"            time.sleep({number(plan.pause)})\n" if plan.pause else ""
        imports = "import time\n\n" if plan.pause else ""
        return (
            f"{imports}"
            "def result(client, function, *arguments):\n"
            f"    for attempt in range({plan.attempts}):\n"
            "        future = client.submit(function, *arguments, pure=False)\n"
            "        try:\n"
            f"            return future.result(timeout={self.written(plan.timeout)})\n"
            f"        except {errors}:\n"
            "            future.cancel()\n"
            f"            if attempt == {plan.retries}:\n"
            "                raise\n"
            f"{pause}"
        ).rstrip("\n")
