"""HTCondor: a job that waits too long removes itself, and DAGMan submits it again."""

from latfit.settings.base import Plan, Tool, register


@register
class Htcondor(Tool):
    """`periodic_remove` on the time in the queue, and `RETRY` of DAGMan."""

    name = "htcondor"
    title = "HTCondor with DAGMan"
    aliases = ("condor", "dagman")
    counts = "retries"
    step = 1.0
    waits = False
    limits = "the wait in the queue: JobStatus 1 is idle"
    validated = "expression evaluated by the ClassAd library 25.14.1; no schedd was run"
    traps = (
        "whole seconds, evaluated every 60 s and adaptively up to every 1200 s: an attempt lasts up to that longer",
        "`=` for == and `and` for && do not parse",
    )

    def pause(self, restart: int, cost: float) -> float:
        """Half of the shortest time between two evaluations, and the user's own cost."""
        return cost + 30.0

    def snippet(self, plan: Plan) -> str:
        """A line of the submit file and one of the DAG."""
        expression = f"(JobStatus == 1) && (time() - EnteredCurrentStatus > {self.written(plan.timeout)})"
        return f"# submit file\nperiodic_remove = {expression}\n# DAG file\nJOB A job.sub\nRETRY A {plan.retries}"
