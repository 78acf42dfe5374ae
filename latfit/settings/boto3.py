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
        "before a restart boto3 waits a random time of up to 50 ms · 2ⁱ",
    )

    def pause(self, restart: int, cost: float) -> float:
        """Half of the largest jitter, 50 ms · 2ⁱ up to 20 s, and the user's own cost."""
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
