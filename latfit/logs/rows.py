"""Formats that take a line, or an object, apart into named cells, and know what each of them is."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

from latfit.logs.formats import ROLES, Format, ReadOptions
from latfit.logs.jsonlines import JsonArray, read_found
from latfit.logs.lines import first_lines, json_object
from latfit.logs.records import Records
from latfit.logs.source import Source
from latfit.logs.tabular import Row as Row
from latfit.logs.tabular import read_tables, row_tables
from latfit.logs.times import UNKNOWN_TIMES
from latfit.units import in_seconds


class KnownCells(Format):
    """A format whose `row` gives cells called latency, submitted, ended, status and id, or else extra columns.

    Times are ISO 8601 or seconds since 1970. `unit` is that of the latency, unless the cells have units.
    """

    unit: ClassVar[str] = "s"
    cells: ClassVar[tuple[str, ...]] = ("latency", "submitted", "status")
    paths: ClassVar[str] = ""  # the cells of an object of JSON: `method status=response.code`
    uses: ClassVar[tuple[str, ...]] = ("statuses", "timezone")

    def known(self, options: ReadOptions) -> ReadOptions:
        columns = {role: role if role in self.cells else "" for role in ROLES}
        return replace(options, columns=columns, unit=self.unit if "latency" in self.cells else None)

    def stated(self, chunks: Iterator[Records]) -> Iterator[Records]:
        """The records with what the format says of them: nothing was guessed."""
        for records in chunks:
            records.columns, records.id_column = {}, None
            records.unit_evidence = "format" if records.unit else ""
            if records.line.size:
                unit = f" in {self.unit}" if "latency" in self.cells else ""
                records.notes = [f"latency is {self.description.rpartition('latency = ')[2]}{unit}"]
            yield records


class RowFormat(KnownCells):
    """One probe a line: `line` takes it apart into cells, or it is an object with them at `paths`."""

    others: ClassVar[str] = "lines that are not probes"
    nothing: ClassVar[str] = "no line of this log is a record of this format"
    line: ClassVar[re.Pattern[str] | None] = None
    at_end: ClassVar[bool] = False  # whether `submitted` is when the probe ended, and was logged

    def row(self, line: str) -> Row | str | None:
        """The cells of a line, why it is refused (`kind: detail`), or None: it is not a probe."""
        if self.line is None:
            entry = json_line(line)
            return None if entry is None else cells_at(entry, self.paths)
        match = self.line.match(line)
        return match and match.groupdict()

    def rows(self, options: ReadOptions) -> Callable[[str], Row | str | None]:
        """What reads one line after another; formats with records of several lines keep what they have read here."""
        return self.row

    def sniff(self, head: str) -> bool:
        if self.begins or self.signs:
            return super().sniff(head)
        read, lines = self.rows(ReadOptions()), first_lines(head)
        count = sum(isinstance(read(line), dict) for line in lines)
        return count > 0 and 2 * count >= len(lines)

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        read = self.rows(options)

        def find(line: str) -> Row | str | None:
            row = read(line)
            if isinstance(row, dict):
                for name in {"path", "url"} & row.keys():
                    row[name] = plain_path(row[name])
                if self.at_end:
                    row["submitted"] = sent_at(row["submitted"], row["latency"], self.unit, options.timezone)
            return row

        chunks = read_found(source, self.known(options), find, self.others, nothing=self.nothing)
        yield from self.stated(chunks)


class EventFormat(KnownCells):
    """Events of one or several lines, of which probes are made; `last` is the chunk that says what holds for all."""

    nothing: ClassVar[str] = "there is no event of a job in this log"

    @abstractmethod
    def probes(self, source: Source, options: ReadOptions, last: Records) -> Iterator[tuple[int, Row | str | None]]:
        """The probes, or why one is refused (`kind: detail`), with their lines; None: more may take a while to come."""

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        last = Records.unusable({})
        tables = row_tables(self.probes(source, options, last))
        yield from self.stated(read_tables(tables, source.name, self.known(options), nothing=self.nothing))
        yield last


class JsonRows(KnownCells, JsonArray):
    """One probe for each object of an array inside a JSON document."""

    cells: ClassVar[tuple[str, ...]] = ("submitted", "ended", "status")
    roles = ()

    def row(self, value: Row) -> Row | None:
        return cells_at(value, self.paths)

    def sniff(self, head: str) -> bool:
        return Format.sniff(self, head)

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        yield from self.stated(super().read(source, self.known(options)))


def json_line(line: str) -> dict[str, Any] | None:
    """The object of a line of JSON, None where there is none."""
    value = json_object(line) if line.startswith("{") else None
    return value if isinstance(value, dict) else None


def inside(value: Any, path: str) -> Any:
    """The value at a path such as `request.uri` inside objects, None where there is none."""
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def cells_at(entry: Row, paths: str) -> Row | None:
    """The cells of an object at some paths; None where the latency, or the submission without one, is missing."""
    pairs = (pair.partition("=") for pair in paths.split())
    cells = {name: inside(entry, path or name) for name, _, path in pairs}
    if "latency" in cells:
        return cells if isinstance(cells["latency"], int | float) else None
    return None if cells.get("submitted") is None else cells


def epoch(moment: Any, timezone: str | None = None) -> float | None:
    """Seconds since 1970 of a number of them (or ms, us, ns, by its size), or of an ISO 8601 time (UTC by default)."""
    if isinstance(moment, str) and re.fullmatch(r"\d{9,19}(\.\d+)?", moment):
        moment = float(moment)
    if isinstance(moment, int | float) and not isinstance(moment, bool):
        size = next((size for size in (1e9, 1e6, 1e3) if moment > 1e8 * size), 1)
        return None if moment in UNKNOWN_TIMES else moment / size
    try:
        when = datetime.fromisoformat(str(moment).strip().replace("/", "-").replace(",", "."))
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=ZoneInfo(timezone or "UTC"))).timestamp()


def sent_at(ended: Any, latency: Any, unit: str = "s", timezone: str | None = None) -> float | None:
    """When a request was sent that ended at `ended`, after it had taken `latency`; at once where that is not known."""
    moment = epoch(ended, timezone)
    try:
        return None if moment is None else round(moment - max(0.0, in_seconds(float(latency or 0), unit)), 6)
    except ValueError:
        return moment


def plain_path(url: Any) -> str | None:
    """The path of a request without its query, which would make every request a group of its own."""
    return None if not isinstance(url, str) else url.split("?", 1)[0][:200]
