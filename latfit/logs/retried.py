"""Which columns say that a job or request was tried several times: its name, and the number of the attempt."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from latfit.logs.words import NOTHING, is_blank, name_words

# names without case and separators, the surest first
JOBS = ("job", "jobid", "requestid", "xrequestid", "reqid", "traceid", "correlationid", "xcorrelationid", "taskid",
        "messageid", "callid", "transactionid", "operationid", "workid", "jobkey", "requestkey", "idempotencykey",
        "jobname", "request", "task", "uuid", "id")  # fmt: skip
ATTEMPTS = ("attempt", "attemptnumber", "attemptno", "attemptid", "attemptcount", "nattempt", "runattempt", "try",
            "trynumber", "tryno", "trycount", "retry", "retrynumber", "retryno", "retrycount", "retryattempt",
            "retryindex")  # fmt: skip


def job_columns(names: Iterable[str]) -> list[str]:
    """The columns that may name the job of an attempt, the surest first.

    >>> job_columns(["Request-ID", "latency", "job"]), attempt_column(["retryNumber", "latency"])
    (['job', 'Request-ID'], 'retryNumber')
    """
    return _named(names, JOBS)


def attempt_column(names: Iterable[str]) -> str | None:
    """The column that numbers the attempts of a job."""
    return next(iter(_named(names, ATTEMPTS)), None)


def _named(names: Iterable[str], usual: tuple[str, ...]) -> list[str]:
    found = {name: "".join(name_words(name)) for name in names}
    return sorted((name for name, plain in found.items() if plain in usual), key=lambda name: usual.index(found[name]))


def comes_back(ids: pd.Series[Any], times: pd.Series[Any]) -> bool:
    """Whether ids come back at times of their own: attempts of one job, not one row written twice."""
    known = ~is_blank(ids, NOTHING)
    rows = pd.DataFrame({"id": ids[known].astype(str), "time": times[known].astype(str)})
    rows = rows[rows["id"].duplicated(keep=False)]
    return len(rows) > 0 and not bool(rows.duplicated().any())
