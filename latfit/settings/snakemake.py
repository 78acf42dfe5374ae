"""Snakemake."""

import math

from latfit.settings.base import Plan, Tool, register


@register
class Snakemake(Tool):
    """`retries: K−1` of a rule, and GNU timeout in its shell line."""

    name = "snakemake"
    title = "Snakemake"
    counts = "retries"
    waits = False
    limits = "the run time of the shell line (timeout), and that of the cluster's job in whole minutes (runtime)"
    validated = "real: Snakemake 9.27.1, attempts at 0, t, 2t plus its own start-up"
    traps = (
        'runtime is in minutes; "358s" becomes 5, rounded down, and 0.35 becomes 0: hence timeout in the shell line',
    )

    def snippet(self, plan: Plan) -> str:
        """A rule."""
        return (
            "rule NAME:\n"
            '    output: "OUTPUT"\n'
            f"    retries: {plan.retries}\n"
            f"    resources: runtime={max(1, math.ceil(plan.timeout / 60))}\n"
            f'    shell: "timeout -k 5 {self.written(plan.timeout)} CMD"'
        )
