"""AWS Batch: it cuts, but does not retry what it has cut."""

from latfit.errors import counted
from latfit.settings.base import Plan, Tool, register


@register
class AwsBatch(Tool):
    """`timeout: {attemptDurationSeconds}` of a job definition, submitted again by a loop of yours."""

    name = "aws-batch"
    title = "AWS Batch"
    counts = "attempts"
    step = 1.0
    smallest = 60.0
    waits = False
    resubmits = False
    limits = "the run time of one attempt, not the wait in the queue"
    validated = "from its documentation; not run"
    traps = ("at least 60 s; a job that timed out is not retried by retryStrategy: submit it again yourself",)

    def snippet(self, plan: Plan) -> str:
        """Part of a job definition."""
        return f'{{"timeout": {{"attemptDurationSeconds": {self.written(plan.timeout)}}}}}'

    def notes(self, plan: Plan) -> tuple[str, ...]:
        """The loop is the user's."""
        return (
            f"AWS Batch cannot express the resubmission: submit the job again up to {counted(plan.retries, 'time')}",
        )
