"""Polly 8 of .NET."""

from latfit.settings.base import Plan, Tool, number, register


@register
class Polly(Tool):
    """`AddRetry` before `AddTimeout`: the first added is the outer one."""

    name = "polly"
    title = "Polly 8"
    counts = "retries"
    limits = "one attempt, as the timeout is added after the retry"
    validated = "from its documentation; not run"
    traps = ("Delay is 2 s by default; the strategy added first is the outer one",)

    def snippet(self, plan: Plan) -> str:
        """A pipeline."""
        delay = f"TimeSpan.FromSeconds({number(plan.pause)})" if plan.pause else "TimeSpan.Zero"
        return (
            "var pipeline = new ResiliencePipelineBuilder()\n"
            f"    .AddRetry(new() {{ MaxRetryAttempts = {plan.retries}, Delay = {delay} }})\n"
            f"    .AddTimeout(TimeSpan.FromSeconds({self.written(plan.timeout)}))\n"
            "    .Build();"
        )
