"""Cassandra: speculative execution by the driver, or by the coordinator."""

from latfit.settings.base import Plan, Tool, register


@register
class Cassandra(Tool):
    """`ConstantSpeculativeExecutionPolicy(T, K−1)`: the next attempt goes to another node."""

    name = "cassandra"
    title = "Cassandra"
    aliases = ("cassandra-driver",)
    counts = "retries"
    hedges = True
    waits = False
    limits = "the delay until the query is sent to the next node beside the earlier ones"
    validated = "policy of the Python driver 3.30.1 asked for its plan; no cluster was run"
    traps = ("a statement is not idempotent by default, and then there is no speculative execution",)

    def notes(self, plan: Plan) -> tuple[str, ...]:
        """The same delay for the coordinator."""
        delay = f"{round(plan.timeout * 1000)}ms"
        return (f"the coordinator can do it for reads, once: ALTER TABLE … WITH speculative_retry = '{delay}'",)

    def snippet(self, plan: Plan) -> str:
        """The execution profile of the Python driver."""
        return (
            "from cassandra.cluster import ExecutionProfile\n"
            "from cassandra.policies import ConstantSpeculativeExecutionPolicy\n"
            "\n"
            f"policy = ConstantSpeculativeExecutionPolicy({self.written(plan.timeout)}, {plan.retries})\n"
            "profile = ExecutionProfile(speculative_execution_policy=policy)\n"
            "statement.is_idempotent = True"
        )
