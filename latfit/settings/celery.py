"""Celery."""

from latfit.settings.base import Plan, Tool, number, register


@register
class Celery(Tool):
    """`soft_time_limit` and `autoretry_for=(SoftTimeLimitExceeded,)` of a task."""

    name = "celery"
    title = "Celery"
    counts = "retries"
    limits = "the run time of one try, not its wait in the broker's queue"
    validated = "real: Celery 5.7.0 with Redis 7.0, prefork, attempts at 0, t, 2t"
    traps = (
        "default_retry_delay is 180 s by default: always write it",
        "a hard time_limit kills the process and never retries; soft limits need the prefork pool",
    )

    def snippet(self, plan: Plan) -> str:
        """The decorator of a task."""
        errors = "Exception" if plan.failures else "SoftTimeLimitExceeded"
        return (
            "from celery.exceptions import SoftTimeLimitExceeded\n"
            "\n"
            "@app.task(\n"
            f"    soft_time_limit={self.written(plan.timeout)},\n"
            f"    autoretry_for=({errors},),\n"
            f"    max_retries={plan.retries},\n"
            f"    default_retry_delay={number(plan.pause)},\n"
            ")\n"
            "def task(): ..."
        )
