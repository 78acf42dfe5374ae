"""The Standard Workload Format of the Parallel Workloads Archive."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import LogError, MissingColumn
from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.records import Records, shown
from latfit.logs.source import Source
from latfit.table import CENSORED, COMPLETED

NUMBER = re.compile(r"^[-+]?[\d.]+(?:[eE][-+]?\d+)?$")
CANCELLED = 5
EPOCH_FROM = 5e8  # submit times of this size are seconds since 1970
PARTIAL = (2, 3, 4)  # parts of a job that has a line of its own


class Workload(Format):
    """Logs of jobs with fields separated by white space, −1 for what is missing.

    Latency is the wait in the queue (`--column latency=wait+run` for the whole time in the system).
    A job that started is completed, whatever became of it; one cancelled before it ran is censored.
    """

    kind = "jobs"
    queue = True
    roles = ("latency",)
    fields: ClassVar[tuple[str, ...]]
    comment: ClassVar[str]
    added: ClassVar[int] = 0  # how many fields beyond its own a line may have that are columns too

    def sniff(self, head: str) -> bool:
        """Enough numeric fields in the first row that is not a comment."""
        rows = [line for line in head.split("\n")[:-1] or [head] if line.strip() and not line.startswith((";", "#"))]
        commented = head.lstrip().startswith(self.comment)
        if not rows:
            return commented and bool(re.search(r"^[;#]\s*\w+:", head, re.MULTILINE))
        first = rows[0].split()
        enough = len(first) >= len(self.fields)
        return enough and all(NUMBER.match(field) for field in first[:5])

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records by position."""
        measured = self._measured(options, source.name)
        start = re.search(rb"UnixStartTime:\s*(\d{1,11})\b", source.head)
        rows = waits = 0
        names = self._names(source.text)
        for block in source.blocks():
            texts, numbers, misshapen = self._split(block.lines(), block.first_line, len(names))
            if misshapen:
                yield Records.unusable(misshapen)
            rows += len(texts) + len(misshapen)
            frame = pd.DataFrame(texts, columns=names, index=numbers, dtype="str")
            partial = pd.to_numeric(frame["status"], errors="coerce").isin(PARTIAL)
            records = self._records(frame[~partial], measured, int(start[1]) if start else None)
            if partial.any():
                records.skipped["partial executions of jobs"] = int(partial.sum())
            waits += int(np.count_nonzero(records.latency >= 0))
            yield records
        if not rows:
            raise LogError(f"{source.name}: there is a header but no job below it")
        if not waits:
            raise LogError(
                f"{source.name}: every {'+'.join(measured)} is missing (-1), so the log has no latencies; "
                "measure another column, for example --column latency=run"
            )

    def _measured(self, options: ReadOptions, log: str) -> list[str]:
        measured = options.columns.get("latency", "wait").split("+")
        for name in measured:
            if name not in self.fields:
                raise MissingColumn(f"{log}: there is no field {name!r}; there are: {', '.join(self.fields)}")
        return measured

    def _names(self, head: str) -> list[str]:
        """The names of the fields; those that some logs add beyond the format's own are called by their number."""
        rows = (line.split() for line in head.split("\n")[:-1] if line.lstrip()[:1] not in ("", ";", "#"))
        width = max((len(row) for row in rows), default=0)
        added = range(len(self.fields) + 1, min(width, len(self.fields) + self.added) + 1)
        return [*self.fields, *(f"field{number}" for number in added)]

    def _split(self, lines: list[str], first: int, width: int) -> tuple[list[list[str]], list[int], dict[int, str]]:
        texts, numbers = [], []
        misshapen: dict[int, str] = {}
        for number, line in enumerate(lines, start=first):
            if line.lstrip()[:1] in ("", ";", "#"):
                continue
            fields = line.split()
            if len(fields) < len(self.fields):
                misshapen[number] = shown(
                    len(misshapen), "wrong number of fields", f"{len(fields)} instead of {len(self.fields)}"
                )
            else:
                texts.append([*fields[:width], *[""] * (width - len(fields))])
                numbers.append(number)
        return texts, numbers, misshapen

    def _records(self, frame: pd.DataFrame, measured: list[str], start: int | None) -> Records:
        """The records of rows whose index is their line number."""
        line = frame.index.to_numpy(dtype=np.int64)
        records = Records(line, np.empty(0), np.full(line.size, COMPLETED, dtype=np.int8))

        def number(name: str) -> NDArray[np.float64]:
            values = pd.to_numeric(frame[name], errors="coerce").to_numpy(dtype=np.float64)
            records.refuse(~np.isfinite(values), lambda row: f"unparseable {name}: {frame[name].iloc[row][:40]!r}")
            return values

        status, run = number("status"), number("run")
        parts = np.column_stack([number(name) for name in measured])
        for at, name in enumerate(measured):
            column = parts[:, at]
            records.refuse(column == -1, f"missing {name}: it is -1")
        records.latency = parts.sum(axis=1)
        records.status[(status == CANCELLED) & (run <= 0)] = CENSORED
        records.submitted = _submitted(number("submit"), start)
        records.ids = frame["id"].where(frame["id"] != "-1").to_numpy(dtype=object)
        records.extras = {str(name): frame[name] for name in frame if name not in (*measured, "submit")}
        records.raw = frame
        return records


def _submitted(submit: NDArray[np.float64], start: int | None) -> NDArray[np.datetime64] | None:
    """Submission times: seconds since 1970, or since the start that the header names, or unknown."""
    known = np.isfinite(submit) & (submit >= 0) & (submit < 1e11)
    if not known.any():
        return None
    if np.median(submit[known]) > EPOCH_FROM:
        start = 0
    if start is None or start > 1e11:
        return None
    times = np.full(submit.size, "NaT", "datetime64[us]")
    times[known] = ((submit[known] + start) * 1e6).astype(np.int64).astype("datetime64[us]")
    return times


@register
class Swf(Workload):
    """SWF, 18 fields; up to three more (19 to 21) are columns of their own."""

    name = "swf"
    description = "Standard Workload Format (Parallel Workloads Archive); latency = wait"
    rank = 40
    comment = ";"
    added = 3
    fields = (
        "id", "submit", "wait", "run", "procs", "avgcpu", "mem", "reqprocs", "reqtime", "reqmem", "status", "uid",
        "gid", "exe", "queue", "partition", "prev", "think",
    )  # fmt: skip
