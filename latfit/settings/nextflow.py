"""Nextflow."""

from latfit.settings.base import Plan, Tool, number, register


@register
class Nextflow(Tool):
    """`maxSubmitAwait` for the queue, `errorStrategy 'retry'` and `maxRetries`."""

    name = "nextflow"
    title = "Nextflow"
    counts = "retries"
    step = 1.0
    waits = False
    limits = "the wait in the queue; for the run time write the same time as `time`"
    validated = "from its documentation; not run"
    traps = ("maxRetries is 1 by default",)

    def written(self, timeout: float) -> str:
        """Seconds with an s."""
        return f"{number(timeout)}s"

    def snippet(self, plan: Plan) -> str:
        """The directives of a process."""
        return (
            "process {\n"
            f"    maxSubmitAwait = '{self.written(plan.timeout)}'\n"
            "    errorStrategy = 'retry'\n"
            f"    maxRetries = {plan.retries}\n"
            "}"
        )
