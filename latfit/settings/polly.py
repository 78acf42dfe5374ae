"""Polly 8 of .NET."""

from latfit.settings.base import Plan, Tool, number, register


@register
class Polly(Tool):
    """`AddRetry` before `AddTimeout`: the first added is the outer one."""

    name = "polly"
    title = "Polly 8"
    counts = "retries"
    smallest = 0.01
    longest = 86400.0
    fewest = 2
    limits = "one attempt, as the timeout is added after the retry"
    validated = "from its documentation; not run"
    traps = (
        "Delay is 2 s by default; the strategy added first is the outer one",
        "timeouts from 10 ms to 1 day are taken, and MaxRetryAttempts from 1",
        "every exception is retried by default, also those that a client makes of 4xx answers (ShouldHandle)",
    )

    def snippet(self, plan: Plan) -> str:
        """A pipeline."""
        delay = f"TimeSpan.FromSeconds({number(plan.pause)})" if plan.pause else "TimeSpan.Zero"
        return (
            "var pipeline = new ResiliencePipelineBuilder()\n"
            f"    .AddRetry(new() {{ MaxRetryAttempts = {plan.retries}, Delay = {delay} }})\n"
            f"    .AddTimeout(TimeSpan.FromSeconds({self.written(plan.timeout)}))\n"
            "    .Build();"
        )
