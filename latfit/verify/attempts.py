"""A log of attempts as jobs: which attempts belong together, how long the job took, where its attempts were cut."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from latfit.errors import MissingColumn, SampleError, counted, listed
from latfit.logs import ProbeLog, read_log
from latfit.logs.formats import find_format
from latfit.logs.source import open_source
from latfit.numbers import Floats, Ints
from latfit.sample import LatencySample

JOB = ("job", "jobname", "requestid", "xrequestid", "traceid", "correlationid", "taskid", "jobid", "id")
ATTEMPT = ("attempt", "attemptnumber", "try", "trynumber", "retry")
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
    columns: Mapping[str, str] = options.get("columns") or {}
    if "id" in kind.roles and "id" not in columns:
        options["columns"] = {**columns, "id": ""}
    return read_log(path, **options)


def jobs_of(log: ProbeLog, *, job: str | None = None, attempt: str | None = None) -> Jobs:
    """The jobs of a log whose column `job` names the job of each attempt.

    `attempt` is the column with the number of the attempt; without one the attempts are ordered by their submission.
    Without names, columns such as job, attempt, request_id or sacct's jobname are taken.
    """
    frame = _ordered(log, _column(log, job, JOB, needed=True), _column(log, attempt, ATTEMPT, needed=False))
    last = ~frame["key"].duplicated(keep="last").to_numpy()
    codes = frame["status"].cat.codes.to_numpy()
    done, out = codes == 0, codes >= 2
    latency, number = frame["latency"].to_numpy(dtype=np.float64), frame["number"].to_numpy()
    cuts = _cuts(latency, number, out & ~last)
    pauses = _pauses(frame, last)
    known = frame.assign(done=done, end=_ends(frame))
    ends = known[known["done"]].groupby("key")["end"].min()
    sizes = known.groupby("key").size()
    expected = np.array([cuts[min(n, len(cuts)) - 1] if cuts else 0.0 for n in number])
    flying = last & (codes == 2) & (latency < STILL_OUT * expected)
    unfinished = frame["key"][last & ~frame["key"].isin(ends.index).to_numpy()]
    in_flight = frame["key"][flying & ~frame["key"].isin(ends.index).to_numpy()]
    given_up = sizes.loc[unfinished[~unfinished.isin(in_flight)]]
    if len(ends) < 2:
        raise SampleError(
            f"{log.facts.path}: only {counted(len(ends), 'job', 'was', 'were')} done: there is nothing to compare with"
        )
    return Jobs(
        durations=ends.to_numpy(dtype=np.float64),
        submissions=np.asarray(sizes.loc[ends.index], dtype=np.int64),
        given_up=np.asarray(given_up, dtype=np.int64),
        spent=np.asarray(known[~known["key"].isin(ends.index)].groupby("key")["end"].max(), dtype=np.float64),
        in_flight=len(in_flight),
        tried=len(frame),
        cuts=cuts,
        pause=float(np.maximum(pauses, 0.0).mean()) if pauses.size else 0.0,
        overlap=bool((pauses < -0.05 * np.median(latency)).mean() > 0.1) if pauses.size else False,
        first=_sample(log, frame, number == 1),
        later=_sample(log, frame, number > 1),
    )


def _column(log: ProbeLog, given: str | None, usual: tuple[str, ...], *, needed: bool) -> str | None:
    """The column that the caller named, or one with a usual name."""
    columns = [str(name) for name in log.frame.columns]
    if given is not None:
        if given not in columns:
            raise MissingColumn(f"{log.facts.path}: there is no column {given!r}; there are: {listed(columns)}")
        return given
    plain = {re.sub("[^a-z]", "", name.lower()): name for name in reversed(columns)}
    found = next((plain[name] for name in usual if name in plain), None)
    if needed and found is None:
        raise MissingColumn(
            f"{log.facts.path}: no column says which attempts belong to one job; name it with --job; "
            f"there are: {listed(columns)}"
        )
    return found


def _ordered(log: ProbeLog, job: str | None, attempt: str | None) -> pd.DataFrame:
    """The attempts in order, with `key` of the job and `number` of the attempt in it.

    A name that comes back after a completion (or with an attempt number that starts again) is a new job.
    """
    frame = log.frame[["submitted", "latency", "status"]].reset_index(drop=True)
    name = log.frame[job].astype("string").fillna("unknown").reset_index(drop=True)
    frame = frame.assign(name=name.to_numpy(), row=np.arange(len(frame)))
    if attempt is None:
        frame = frame.sort_values(["name", "submitted", "row"], kind="stable", na_position="last")
        done = (frame["status"] == "completed").astype(int)
        again = done.groupby(frame["name"]).cumsum() - done
    else:
        told = pd.to_numeric(log.frame[attempt], errors="coerce").fillna(0).to_numpy()
        frame = frame.assign(told=told)
        order = ["name", "submitted", "told", "row"] if frame["submitted"].notna().all() else ["name", "row"]
        frame = frame.sort_values(order, kind="stable")
        restarted = (frame.groupby("name")["told"].diff() <= 0).astype(int)
        again = restarted.groupby(frame["name"]).cumsum()
    frame = frame.assign(again=again.to_numpy())
    key = frame.groupby(["name", "again"], sort=False).ngroup()
    return frame.assign(key=key, number=frame.groupby(key).cumcount() + 1)


def _ends(frame: pd.DataFrame) -> Floats:
    """When each attempt ended, in seconds since its job was submitted."""
    latency = frame["latency"]
    if frame["submitted"].isna().any():  # no times: the attempts followed each other without a pause
        return latency.groupby(frame["key"]).cumsum().to_numpy(dtype=np.float64)
    started = (frame["submitted"] - frame.groupby("key")["submitted"].transform("min")).dt.total_seconds()
    return (started + latency).to_numpy(dtype=np.float64)


def _pauses(frame: pd.DataFrame, last: Any) -> Floats:
    """The waits between the end of an attempt and the submission of the next one of the same job."""
    if frame["submitted"].isna().any():
        return np.empty(0)
    gap = (frame["submitted"].shift(-1) - frame["submitted"]).dt.total_seconds() - frame["latency"]
    return np.asarray(gap[~last], dtype=np.float64)


def _cuts(latency: Floats, number: Ints, cut: Any) -> tuple[float, ...]:
    """The median time at which first, second … attempts were cut; the last known where few were."""
    found: list[float] = []
    for n in range(1, int(number.max()) + 1):
        here = latency[cut & (number == n)]
        if here.size >= 5 or (here.size and not found):
            found.append(float(np.median(here)))
        elif not found:
            return ()
        else:
            break
    return tuple(found)


def _sample(log: ProbeLog, frame: pd.DataFrame, rows: Any) -> LatencySample:
    """The sample of some attempts."""
    return ProbeLog(frame[rows], log.facts).sample()
