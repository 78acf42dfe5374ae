"""History of an uptime monitor (Upptime) as a table: one row a check of a site."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from latfit.errors import LogError, listed
from latfit.logs.delimited import Chunk, head_fields, read_delimited
from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.lines import floats, moments, told
from latfit.logs.outcomes import OutcomeTally
from latfit.logs.records import UNKNOWN, Records
from latfit.logs.source import Source
from latfit.logs.table import STATUSES
from latfit.units import in_seconds

NEEDED = ("checked_at", "site", "status", "response_ms")
WORDS = {"up": "completed", "degraded": "completed", "down": "lost"}


@register
class Upptime(Format):
    """Latency is response_ms. A site that is up is completed (degraded: slow, but up), one that is down lost."""

    name = "upptime"
    description = "Upptime history; latency = response_ms, down = lost"
    rank = 29
    uses = ("statuses", "timezone")

    def sniff(self, head: str) -> bool:
        """By the table's column names."""
        return set(NEEDED) <= set(head_fields(head, ","))

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the checks."""
        names = head_fields(source.text, ",")
        if not set(NEEDED) <= set(names):
            raise LogError(f"{source.name}: line 1 must name {', '.join(NEEDED)}; it has: {listed(names)}")
        table = WORDS | dict(zip(STATUSES, STATUSES, strict=True)) | options.lowered_statuses
        outcomes = OutcomeTally(
            "outcomes by status", change="; change it with --status, for example --status failed=down"
        )
        rest = [name for name in names if name not in ("checked_at", "response_ms", "status", "http_code")]
        note = told("response_ms", "checked_at", rest)

        def convert(chunk: Chunk) -> Records:
            frame = chunk.frame
            records = Records(chunk.line, np.empty(0), np.full(len(frame), UNKNOWN, dtype=np.int8))
            words = frame["status"].astype("string").str.strip().str.lower()
            for word, status in table.items():
                records.status[(words == word).to_numpy(dtype=bool, na_value=False)] = STATUSES.index(status)
            hint = "say what it means: --status completed|failed|censored|lost=WORD"
            records.refuse(
                records.status == UNKNOWN, lambda row: f"unknown status: {str(words.iloc[row])[:40]!r}; {hint}"
            )
            records.latency = in_seconds(floats(frame["response_ms"], "response_ms", records), "ms")
            records.submitted = moments(frame["checked_at"], "checked_at", None, options.timezone, records)
            records.raw = frame
            records.extras = {name: frame[name] for name in rest}
            outcomes.add(words, records)
            records.notes.append(note)
            return records

        types = {"checked_at": pa.string(), "response_ms": pa.float64()}
        yield from read_delimited(source, ",", names, types, convert, header=True)
        yield outcomes.last()
