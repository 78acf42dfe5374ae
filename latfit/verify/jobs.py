"""A log of attempts as jobs: which attempts belong together, how long the job took, where its attempts were cut."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from latfit.errors import MissingColumn, SampleError, counted, listed
from latfit.logs import ProbeLog, read_log
from latfit.logs.formats import find_format
from latfit.logs.source import open_source
from latfit.numbers import Bools, Floats, Ints
from latfit.sample import CENSORED, COMPLETED, LatencySample
from latfit.table import ProbeTable

JOB_COLUMNS = ("job", "jobname", "requestid", "xrequestid", "traceid", "correlationid", "taskid", "jobid", "id")
ATTEMPT_COLUMNS = ("attempt", "attemptnumber", "try", "trynumber", "retry")
STILL_OUT = 0.9  # a last attempt censored before this share of the usual cut was in flight when the log ended


@dataclass(frozen=True, eq=False)
class Jobs:
    """The jobs of a log of attempts.

    `durations` are those of the jobs that were done, from the first submission to the completion; `submissions` the
    attempts of each of them. `given_up` holds the attempts of each job that was not done, `spent` what each job
    that is not done took so far; `in_flight` counts the jobs still under way when the log ended, `tried` the attempts
    of all jobs. `cuts` are the times at which first, second … attempts were cut, () where none was; `pause` is the
    mean wait between two attempts of a job, `overlap` whether attempts of a job overlap.
    """

    durations: Floats
    submissions: Ints
    given_up: Ints
    spent: Floats
    in_flight: int
    tried: int
    cuts: tuple[float, ...]
    pause: float
    overlap: bool
    first: LatencySample
    later: LatencySample

    @property
    def attempts(self) -> int | None:
        """K: after how many attempts jobs were given up; None where none was."""
        return int(self.given_up.max()) if self.given_up.size else None


def read_attempts(path: str | Path, **options: Any) -> ProbeLog:
    """Read a log of attempts: as `read_log`, but an id may come back, as each attempt of a job has the job's."""
    with open_source(path) as source:
        kind = find_format(source, options.get("format"), pattern=options.get("pattern"))
    columns = options.get("columns") or {}
    if "id" in kind.roles and "id" not in columns:
        options["columns"] = {**columns, "id": ""}
    return read_log(path, **options)


def jobs_of(log: ProbeLog, *, job: str | None = None, attempt: str | None = None) -> Jobs:
    """The jobs of a log whose column `job` names the job of each attempt.

    `attempt` is the column with the number of the attempt; without one the attempts are ordered by their submission.
    Without names, columns such as job, attempt, request_id or sacct's jobname are taken.
    """
    job = _column(log, job, JOB_COLUMNS)
    if job is None:
        raise MissingColumn(
            f"{log.facts.path}: no column says which attempts belong to one job; name it with --job; "
            f"there are: {listed(list(log.table.columns))}"
        )
    order, begins = _in_order(log.table, job, _column(log, attempt, ATTEMPT_COLUMNS))
    probes = log.table.take(order)
    latency, status = np.nan_to_num(probes.latency), probes.status
    sizes = np.diff(np.append(begins, probes.n))
    key = np.repeat(np.arange(begins.size), sizes)
    number = np.arange(probes.n) - begins[key] + 1
    last = begins + sizes - 1
    followed = np.append(key[:-1] == key[1:], False)
    spent, pauses = np.cumsum(latency), np.empty(0)  # without times, attempts follow each other without a pause
    ends = spent - (spent - latency)[begins][key]
    if probes.submitted is not None and not np.isnan(probes.submitted).any():
        ends = probes.submitted - np.minimum.reduceat(probes.submitted, begins)[key] + latency
        pauses = (np.diff(probes.submitted) - latency[:-1])[followed[:-1]]
    cuts = _cuts(latency, number, followed & (status >= CENSORED))
    finished = np.minimum.reduceat(np.where(status == COMPLETED, ends, np.inf), begins)
    done = np.isfinite(finished)
    if done.sum() < 2:
        raise SampleError(
            f"{log.facts.path}: only {counted(int(done.sum()), 'job', 'was', 'were')} done: "
            "there is nothing to compare with"
        )
    usual = np.asarray(cuts)[np.minimum(sizes, len(cuts)) - 1] if cuts else 0.0
    in_flight = ~done & (status[last] == CENSORED) & (latency[last] < STILL_OUT * usual)
    return Jobs(
        durations=finished[done],
        submissions=sizes[done],
        given_up=sizes[~done & ~in_flight],
        spent=np.maximum.reduceat(ends, begins)[~done],
        in_flight=int(in_flight.sum()),
        tried=probes.n,
        cuts=cuts,
        pause=float(np.maximum(pauses, 0.0).mean()) if pauses.size else 0.0,
        overlap=bool((pauses < -0.05 * np.median(latency)).mean() > 0.1) if pauses.size else False,
        first=probes.take(number == 1).sample,
        later=probes.take(number > 1).sample,
    )


def _column(log: ProbeLog, name: str | None, usual: tuple[str, ...]) -> str | None:
    """The column that the caller named, or one with a usual name."""
    columns = list(log.table.columns)
    if name is not None and name not in columns:
        raise MissingColumn(f"{log.facts.path}: there is no column {name!r}; there are: {listed(columns)}")
    plain = {re.sub("[^a-z]", "", column.lower()): column for column in reversed(columns)}
    return name or next((plain[word] for word in usual if word in plain), None)


def _in_order(table: ProbeTable, job: str, attempt: str | None) -> tuple[Ints, Ints]:
    """The rows in the order of jobs and attempts, and where in it each job begins.

    A name that comes back after a completion (or with an attempt number that starts again) is a new job.
    """
    name = table.columns[job].as_text().codes
    submitted = np.full(table.n, np.nan) if table.submitted is None else table.submitted
    if attempt is None:
        order = np.lexsort((submitted, name))
        again = table.status[order][:-1] == COMPLETED
    else:
        numbers = pd.to_numeric(table.columns[attempt].cells(), errors="coerce").fillna(0).to_numpy()
        timed = not np.isnan(submitted).any()
        order = np.lexsort((numbers, submitted, name)) if timed else np.argsort(name, kind="stable")
        again = np.diff(numbers[order]) <= 0
    return order, np.flatnonzero(np.append(True, (np.diff(name[order]) != 0) | again))


def _cuts(latency: Floats, number: Ints, cut: Bools) -> tuple[float, ...]:
    """The median time at which first, second … attempts were cut; the last known where few were."""
    medians: list[float] = []
    for n in range(1, int(number.max()) + 1):
        times = latency[cut & (number == n)]
        if times.size < (5 if medians else 1):
            break
        medians.append(float(np.median(times)))
    return tuple(medians)
