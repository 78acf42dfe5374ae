"""History of an uptime monitor (Upptime) as a table: one row a check of a site."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa

from latfit.logs.delimited import TableFormat
from latfit.logs.formats import register
from latfit.logs.lines import floats, moments
from latfit.logs.records import UNKNOWN, Records
from latfit.logs.source import Source
from latfit.table import STATUSES
from latfit.units import in_seconds

WORDS = {"up": "completed", "degraded": "completed", "down": "lost", **dict(zip(STATUSES, STATUSES, strict=True))}


@register
class Upptime(TableFormat):
    """Latency is response_ms. A site that is up is completed (degraded: slow, but up), one that is down lost."""

    name = "upptime"
    description = "Upptime history; latency = response_ms, down = lost"
    rank = 29
    uses = ("statuses", "timezone")
    needed = ("checked_at", "site", "status", "response_ms")
    outcomes = "outcomes by status"
    outcomes_change = "; change it with --status, for example --status failed=down"
    latency_is, submitted_is = "response_ms", "checked_at"

    def begin(self, source: Source) -> None:
        """Which columns are left to group by."""
        apart = ("checked_at", "response_ms", "status", "http_code")
        self.groups = [name for name in self.names if name not in apart]

    def types(self) -> dict[str, pa.DataType]:
        """Times as text, and numbers."""
        return {"checked_at": pa.string(), "response_ms": pa.float64()}

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        """By the word of the monitor, or of the user."""
        words = frame["status"].astype("string").str.strip().str.lower()
        records.status[:] = UNKNOWN
        for word, status in (WORDS | self.options.lowered_statuses).items():
            records.status[(words == word).to_numpy(dtype=bool, na_value=False)] = STATUSES.index(status)
        hint = "say what it means: --status completed|failed|censored|lost=WORD"
        records.refuse(records.status == UNKNOWN, lambda row: f"unknown status: {str(words.iloc[row])[:40]!r}; {hint}")
        records.latency = in_seconds(floats(frame["response_ms"], "response_ms", records), "ms")
        records.submitted = moments(frame["checked_at"], "checked_at", None, self.options.timezone, records)
        self.tally.add(words, records)
