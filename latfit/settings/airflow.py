"""Apache Airflow."""

from latfit.settings.base import Plan, Tool, number, register


@register
class Airflow(Tool):
    """`execution_timeout`, `retries` and `retry_delay` of an operator."""

    name = "airflow"
    title = "Airflow"
    counts = "retries"
    limits = "the run time of one try of the task, not its wait in the queue"
    validated = "operator built with Airflow 3.3.2; no scheduler was run"
    traps = ("retry_delay is 5 minutes by default: always write it", "numbers are refused: timedelta only")

    def snippet(self, plan: Plan) -> str:
        """The arguments of an operator."""
        return (
            "from datetime import timedelta\n"
            "\n"
            "limits = dict(\n"
            f"    execution_timeout=timedelta(seconds={self.written(plan.timeout)}),\n"
            f"    retries={plan.retries},\n"
            f"    retry_delay=timedelta(seconds={number(plan.pause)}),\n"
            ")  # OPERATOR(task_id=…, **limits)"
        )
