"""SLURM: the wait in the queue, and the run time."""

import math

from latfit.settings.base import Plan, Tool, register, sleep_between


@register
class SlurmQueue(Tool):
    """`sbatch -t L` resubmitted by a loop with `scancel --state=PENDING`: the wait in the queue."""

    name = "slurm"
    title = "SLURM, wait in the queue"
    aliases = ("slurm-queue", "sbatch")
    counts = "attempts"
    step = 1.0
    limits = "the wait in the queue: a job that runs is not cancelled"
    validated = (
        "real: SLURM 22.05.8, jobs held in the queue cancelled and submitted again at 0, t, 2t, and the third ran once"
    )
    traps = (
        "the deadline is for the end of the job, hence T + L and a minute: it removes what a killed loop leaves behind",
        "resubmitting loses the place in the queue: latfit withholds a decision where that matters",
    )

    def snippet(self, plan: Plan) -> str:
        """A loop that ends with 0 when a job left the queue, with 1 when none did; MINUTES is the job's time limit."""
        end = f"now+$(({self.written(plan.timeout)} + 60 + 60 * limit))"
        return (
            "limit=MINUTES; code=1\n"
            f"for attempt in $(seq {plan.attempts}); do\n"
            f'    job=$(sbatch --parsable -t $limit --deadline="{end}" JOB.sh)\n'
            '    if [ -n "$job" ]; then\n'
            f"        sleep {self.written(plan.timeout)}\n"
            '        scancel --state=PENDING "$job" 2>/dev/null\n'
            '        cancelled=$(squeue --noheader --states=CANCELLED --format=%i --jobs="$job" 2>/dev/null)\n'
            '        if [ -z "$cancelled" ]; then code=0; break; fi  # it runs, or is done\n'
            f"    fi\n{sleep_between(plan)}"
            "done\n"
            "(exit $code)"
        )


@register
class SlurmTime(Tool):
    """`sbatch -t HH:MM:SS`: the run time."""

    name = "slurm-time"
    title = "SLURM, run time"
    counts = "attempts"
    unit = "min"
    step = 60.0
    smallest = 60.0
    limits = "the run time: the wait in the queue is not counted"
    validated = "run by hand on SLURM 22.05.8: cut after 60.6 s with -t 00:01:00 and tried again"
    traps = ("SLURM rounds up to whole minutes; -t 358 is 358 minutes; SLURM does not resubmit: the loop does",)

    def written(self, timeout: float) -> str:
        """Hours, minutes and seconds, always whole minutes."""
        minutes = math.ceil(timeout / 60)
        return f"{minutes // 60:02d}:{minutes % 60:02d}:00"

    def snippet(self, plan: Plan) -> str:
        """A loop over srun, which waits for the job, that ends with the exit code of the last attempt."""
        return (
            f"for attempt in $(seq {plan.attempts}); do\n"
            f"    srun -t {self.written(plan.timeout)} CMD; code=$?\n"
            f"    [ $code -eq 0 ] && break\n{sleep_between(plan)}"
            "done\n"
            "(exit $code)"
        )
