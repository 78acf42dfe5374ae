"""GNU timeout, in a loop of the shell."""

from latfit.settings.base import Plan, Tool, register, sleep_between


@register
class GnuTimeout(Tool):
    """`timeout -k 5 T CMD` in a loop of K attempts, going on when an attempt was cut (exit 124 or 137)."""

    name = "timeout"
    title = "GNU timeout"
    aliases = ("gnu-timeout", "coreutils")
    counts = "attempts"
    limits = "the run time of the whole command"
    validated = "real: GNU coreutils 9.1, arrivals at 0, t, 2t"
    traps = (
        "GNU timeout takes 358, 358s, 0.35 or 6m; it refuses 350ms and 5m58s",
        "without -k a command that ignores SIGTERM lives on; exit 137 is a command that had to be killed",
    )

    def snippet(self, plan: Plan) -> str:
        """A loop that ends with the exit code of the last attempt."""
        ended = "[ $code -eq 0 ] && break" if plan.failures else "case $code in 124|137) ;; *) break ;; esac"
        return (
            f"for attempt in $(seq {plan.attempts}); do\n"
            f"    timeout -k 5 {self.written(plan.timeout)} CMD; code=$?\n"
            f"    {ended}\n{sleep_between(plan)}"
            "done\n"
            "(exit $code)"
        )
