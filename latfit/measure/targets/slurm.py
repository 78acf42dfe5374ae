"""SLURM jobs as probes: submitted with sbatch, watched with one squeue for all of them, cancelled with scancel."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from latfit.errors import ProbeError
from latfit.measure.targets import Attempt, Outcome, Probe, Target, argument, called, option, register

WAITING = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT"}
GOING = {"RUNNING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"}
DONE = {"COMPLETED", "COMPLETING"}
NOT_REACHED = ("contact", "connect", "socket", "timed out", "longer than")  # words in scancel's errors


@register
@dataclass(frozen=True)
class Slurm(Target):
    """A job of one short program. Any end other than COMPLETED (FAILED, NODE_FAIL, CANCELLED, …) is failed.

    All jobs of a run have the same name, and the number of their probe as comment. An end is noticed by squeue, so the
    latency is up to `poll` too long.
    """

    name = "slurm"
    summary = "Submit SLURM jobs with sbatch; ARGS are options of sbatch."
    example = "latfit probe slurm -o probes.jsonl --in-flight 5 --cutoff 2h -- --partition=short --time=5"
    same = ("until",)

    arguments: tuple[str, ...] = argument("ARGS...")
    job: str = option("/bin/hostname", "What a job runs, as a line of a shell script.")
    until: str = option(
        "end", "Whether the latency ends when the job has started or when it has ended.", choices=("start", "end")
    )
    poll: float = option(0.5, "How often squeue is asked, once for all jobs; sites dislike it often.", kind="seconds")

    @asynccontextmanager
    async def open(self, run: str) -> AsyncIterator[Probe]:
        for program in ("sbatch", "squeue", "scancel"):
            if shutil.which(program) is None:
                raise ProbeError(f"{program}: SLURM's programs are not here; run this on a machine that submits jobs")
        code, _, errors = await called("squeue", "--noheader", "--name", _name(run))
        if code:
            raise ProbeError(f"squeue: SLURM does not answer ({_last_line(errors)})")
        jobs = _Jobs(self, run)
        polling = asyncio.create_task(jobs.watch())
        try:
            yield jobs.probe
        finally:
            polling.cancel()
            await _cancel("--name", _name(run))

    def words(self, attempt: Attempt) -> list[str]:
        fixed = ["sbatch", "--parsable", "--no-requeue", "--output=/dev/null", "--error=/dev/null", "--input=/dev/null"]
        named = [f"--job-name={_name(attempt.run)}", f"--comment={attempt.probe}"]
        return [*fixed, *named, *map(attempt.fill, self.arguments), f"--wrap={attempt.fill(self.job)}"]

    def shown(self, attempt: Attempt) -> str:
        return shlex.join(self.words(attempt))

    def public(self) -> dict[str, Any]:
        """What is measured; options and script may contain secrets."""
        return {"until": self.until, "poll": self.poll}

    async def clear(self, left: Sequence[Attempt], runs: Sequence[str]) -> int:
        """Cancel the jobs of killed runs by name, including those whose id was never known."""
        from latfit.measure.targets.command import end_processes_of

        await asyncio.to_thread(end_processes_of, runs)  # a submission may still be under way
        cancelled = 0
        for run in runs:
            _, jobs, _ = await called("squeue", "--noheader", "--name", _name(run), "--format=%i")
            cancelled += len(jobs.split())
            await _cancel("--name", _name(run))
        return cancelled


def _name(run: str) -> str:
    return f"latfit-{run}"


def _last_line(text: str) -> str:
    return text.splitlines()[-1] if text else "it said nothing"


async def _cancel(*words: str) -> None:
    """Cancel jobs; try again if the controller could not be reached. A job may be over already."""
    for wait in (0.2, 1.0, 3.0):
        code, _, errors = await called("scancel", *words)
        if not code or not any(word in errors.lower() for word in NOT_REACHED):
            return
        await asyncio.sleep(wait)


class _Jobs:
    def __init__(self, target: Slurm, run: str) -> None:
        self.target, self.run = target, run
        self.waiting: dict[str, asyncio.Future[tuple[float, str]]] = {}
        self.completing: dict[str, float] = {}  # since when; after two seconds the exit code decides

    async def probe(self, attempt: Attempt) -> Outcome:
        start = time.monotonic()
        submitting = asyncio.ensure_future(called(*self.target.words(attempt), environment=attempt.environment))
        try:
            code, output, errors = await asyncio.shield(submitting)
        except asyncio.CancelledError:  # wait for the id: without it the job cannot be cancelled
            code, output, _ = await submitting
            if not code:
                await _cancel(output.partition(";")[0])
            raise
        if code:
            return Outcome("failed", time.monotonic() - start, f"sbatch: {_last_line(errors)}")
        job = output.partition(";")[0]
        end: asyncio.Future[tuple[float, str]] = asyncio.get_running_loop().create_future()
        self.waiting[job] = end
        try:
            at, state = await end
        except asyncio.CancelledError:
            await asyncio.shield(_cancel(job))
            raise
        finally:
            del self.waiting[job]
            self.completing.pop(job, None)
        return Outcome("completed" if state in DONE | GOING else "failed", at - start, state)

    async def watch(self) -> None:
        """Ask squeue for all jobs of the run, again and again; an answer may fail to come."""
        fields = "--Format=jobid:20,state:20,exit_code:12"
        ask = ("squeue", "--noheader", "--states=all", "--name", _name(self.run), fields)
        while True:
            await asyncio.sleep(self.target.poll)
            asked = list(self.waiting)
            code, output, _ = await called(*ask) if asked else (1, "", "")
            if code:
                continue
            states = {words[0]: words[1:] for words in map(str.split, output.splitlines()) if len(words) == 3}
            for job in asked:
                state, status = states.get(job, ("GONE", "0"))  # the controller has forgotten it, so it is over
                if job in self.waiting and not self.waiting[job].done():
                    self._note(job, state, failed=status != "0")

    def _note(self, job: str, state: str, *, failed: bool) -> None:
        """End a job's wait if its state allows. The end is when COMPLETING begins; the next state shows its outcome."""
        now, ends = time.monotonic(), self.target.until == "end"
        if state in WAITING or (state in GOING and ends):
            return
        if state == "COMPLETING" and ends:
            since = self.completing.setdefault(job, now)
            if now - since < 2.0:
                return
            state = "FAILED" if failed else state
        self.waiting[job].set_result((self.completing.get(job, now), state))
