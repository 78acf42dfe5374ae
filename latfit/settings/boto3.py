"""boto3 and botocore."""

from latfit.settings.base import Plan, Tool, register


@register
class Boto3(Tool):
    """`Config(connect_timeout=T, read_timeout=T, retries={"total_max_attempts": K, "mode": "standard"})`."""

    name = "boto3"
    title = "boto3"
    aliases = ("botocore", "aws-sdk")
    counts = "attempts"
    waits = False
    limits = "connecting, and the wait between two reads"
    validated = "real: boto3 1.44.0, arrivals at 0, t, 2t plus the jitter of its back-off"
    traps = (
        "total_max_attempts counts attempts, max_attempts in the same place counts retries, and the variable "
        "AWS_MAX_ATTEMPTS counts attempts",
        "answers 500, 502, 503, 504 and throttling are retried too, whether or not the log shows failures",
        "before the i-th restart boto3 waits a random time, evenly from 0 to 50 ms · 2ⁱ⁻¹ (25 ms · 2ⁱ⁻¹ with DynamoDB) "
        "and at most 20 s; before botocore 1.44 it was up to 2ⁱ⁻¹ s, unless AWS_NEW_RETRIES_2026=true was set: there "
        "the mean of the first wait is 0.5 s instead of 0.025 s",
    )

    def pause(self, restart: int, cost: float) -> float:
        """Half of the largest jitter of botocore 1.44, 50 ms · 2ⁱ⁻¹ up to 20 s, and the user's own cost."""
        return cost + float(min(20.0, 0.05 * 2 ** min(restart - 1, 20))) / 2

    def snippet(self, plan: Plan) -> str:
        """The configuration of a client."""
        limit = self.written(plan.timeout)
        return (
            "import boto3\n"
            "from botocore.config import Config\n"
            "\n"
            "config = Config(\n"
            f"    connect_timeout={limit},\n"
            f"    read_timeout={limit},\n"
            f'    retries={{"total_max_attempts": {plan.attempts}, "mode": "standard"}},\n'
            ")\n"
            'client = boto3.client("s3", config=config)'
        )
