"""The check of a decision: a plain loop over the rows of a log. It shares no line with latfit.

Times are whole nanoseconds, so that equal moments are equal. A job begins where each row was submitted. What is not
back after its timeout is sent again, and takes what the next row of its group took, by the rule of `follow`.
"""

from __future__ import annotations

import bisect
import random
from dataclasses import dataclass

import numpy as np
import pandas as pd

NANO = 1_000_000_000
BINS = 8
CATEGORIES = 12
BLOCKS, RESAMPLES = 50, 400


@dataclass(frozen=True)
class Outcome:
    """What a policy brings: the time spent a job that was done, submissions, the share of jobs never done."""

    mean: float
    submissions: float
    never: float
    jobs: pd.DataFrame

    def only(self, jobs: pd.Series) -> Outcome:
        """The same for some of the jobs."""
        return summary(self.jobs[jobs])

    def against(self, other: Outcome) -> tuple[float, float]:
        """The 95 % interval of the ratio of the means: blocks of jobs that follow each other are drawn again."""
        draw = random.Random(0)
        jobs = np.column_stack([self.jobs["spent"], self.jobs["done"], other.jobs["spent"], other.jobs["done"]])
        blocks = np.array([part.astype(float).sum(axis=0) for part in np.array_split(jobs, BLOCKS)])
        ratios = []
        for _ in range(RESAMPLES):
            a, b, c, d = blocks[draw.choices(range(BLOCKS), k=BLOCKS)].sum(axis=0)
            ratios.append(np.inf if b == 0 else 1.0 if c == 0 else (a / b) / (c / max(d, 1)))
        return float(np.quantile(ratios, 0.025)), float(np.quantile(ratios, 0.975))


def groups_of(rows: pd.DataFrame, column: str | None) -> pd.Series:
    """The group of each row: one for all, a word, or the bin of a number between eighths of all of them."""
    if column is None:
        return pd.Series("all", index=rows.index)
    numbers = pd.to_numeric(rows[column], errors="coerce")
    if numbers.notna().all() and numbers.nunique() > CATEGORIES:
        edges = np.unique(np.quantile(numbers, np.arange(1, BINS) / BINS))
        return pd.Series(np.digitize(numbers, edges, right=True).astype(str), index=rows.index)
    return rows[column].astype("string").fillna("unknown")


def ordered(rows: pd.DataFrame, *, gaps: bool = True) -> pd.DataFrame:
    """The rows with a time of submission in its order, in nanoseconds; `gaps` beyond the 99 % quantile are cut."""
    at = pd.to_datetime(rows["submitted"], format="ISO8601", utc=True)
    known = rows[at.notna()].assign(at=at[at.notna()].dt.as_unit("ns").astype("int64"))
    known = known.assign(took=(known["latency"].fillna(0) * NANO).round().astype("int64"))
    known = known.sort_values("at", kind="stable")
    if known.empty or not gaps:
        return known
    between = np.diff(known["at"], prepend=known["at"].iloc[0])
    return known.assign(at=np.cumsum(np.minimum(between, np.quantile(between, 0.99)).astype("int64")))


def follow(
    rows: pd.DataFrame, timeouts: dict[str, tuple[float, ...]], waiting: float, sparse: bool | None = None
) -> Outcome:
    """Every job under the timeouts of its group, the last one repeated, resubmitted into its own group.

    A group without timeouts waits; a schedule that ends in waiting has `waiting` as its last.

    The next row is the first submitted at or after the moment of the resubmission. Until its own time it answers every
    resubmission alike. Where rows are sparser than their latencies (`sparse`), each attempt takes the next in order.
    """
    back = rows[(rows["status"] == "completed") & (rows["took"] <= waiting * NANO)]
    if sparse is None:
        sparse = len(back) == 0 or rows["at"].diff().median() > back["took"].median()
    ends = []
    for name, part in rows.groupby("group", sort=False):
        limits = [round(t * NANO) for t in timeouts.get(str(name), (waiting,))]
        at, took, status = part["at"].tolist(), part["took"].tolist(), part["status"].tolist()
        for k, label in enumerate(part.index):
            ends.append((label, *_job(at, took, status, k, limits, sparse)))
    jobs = pd.DataFrame(ends, columns=["row", "spent", "sent", "done"]).set_index("row").loc[rows.index]
    return summary(jobs)


def _job(
    at: list[int], took: list[int], status: list[str], k: int, limits: list[int], sparse: bool
) -> tuple[float, int, bool]:
    begun = clock = at[k]
    sent = 1
    while True:
        t = limits[min(sent, len(limits)) - 1]
        if status[k] == "completed" and took[k] <= t:
            return (clock + took[k] - begun) / NANO, sent, True
        used = took[k] if status[k] == "failed" and took[k] <= t else t
        clock += used
        if not sparse and used and at[k] > clock and sent >= len(limits):
            again = -((clock - at[k]) // used)
            clock, sent = clock + again * used, sent + again
        k = max(bisect.bisect_left(at, clock), k + (sparse or not used))
        if k >= len(at):
            return (clock - begun) / NANO, sent, False
        sent += 1


def summary(jobs: pd.DataFrame) -> Outcome:
    """Time spent by all over the number that was done."""
    done = int(jobs["done"].sum())
    if not done:
        return Outcome(np.inf, np.inf, 1.0, jobs)
    return Outcome(jobs["spent"].sum() / done, jobs["sent"].sum() / done, 1 - done / len(jobs), jobs)


def drawn(rows: pd.DataFrame, timeouts: dict[str, tuple[float, ...]], waiting: float) -> Outcome:
    """Without times: attempts are drawn from the own group of the job."""
    ends = []
    for name, part in rows.groupby("group", sort=False):
        *first, last = timeouts.get(str(name), (waiting,))
        spent, sent, reached = 0.0, 0.0, 1.0
        for t in (*first, last):
            done = (part["status"] == "completed") & (part["latency"] <= t)
            early = done | ((part["status"] == "failed") & (part["latency"] <= t))
            share, used = done.mean(), part["latency"].where(early, t).mean()
            rounds = 1 / share if t == last and share else 1.0
            spent, sent, reached = spent + reached * used * rounds, sent + reached * rounds, reached * (1 - share)
        ends += [(label, spent, sent, bool(done.any())) for label in part.index]
    return summary(pd.DataFrame(ends, columns=["row", "spent", "sent", "done"]).set_index("row").loc[rows.index])
