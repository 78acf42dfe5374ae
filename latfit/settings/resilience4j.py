"""resilience4j, in the configuration of Spring Boot."""

from latfit.settings.base import Plan, Tool, milliseconds, register


@register
class Resilience4j(Tool):
    """A TimeLimiter inside a Retry."""

    name = "resilience4j"
    title = "resilience4j"
    counts = "attempts"
    unit = "ms"
    limits = "one attempt: by default the Retry lies outside the TimeLimiter"
    validated = "from its documentation; not run"
    traps = (
        "waitDuration is 500 ms by default",
        "every exception is retried by default, also those that a client makes of 4xx answers (ignoreExceptions)",
    )

    def written(self, timeout: float) -> str:
        """Milliseconds or whole seconds, with the unit."""
        return milliseconds(timeout)

    def snippet(self, plan: Plan) -> str:
        """Part of application.yml."""
        return (
            "resilience4j:\n"
            "  timelimiter:\n"
            f"    instances: {{NAME: {{timeoutDuration: {self.written(plan.timeout)}}}}}\n"
            "  retry:\n"
            f"    instances: {{NAME: {{maxAttempts: {plan.attempts}, waitDuration: {milliseconds(plan.pause)}}}}}"
        )
