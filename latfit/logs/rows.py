"""Formats that take a line, or an object, apart into named cells, and know what each of them is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, ClassVar

from latfit.logs.formats import ROLES, Format, ReadOptions
from latfit.logs.jsonlines import JsonArray, read_found
from latfit.logs.lines import first_lines, json_object
from latfit.logs.records import Records
from latfit.logs.source import Source

Row = dict[str, Any]
UNKNOWN_TIMES = (0, -1, 4294967294, 4294967295)  # in place of a time; the last two are 2^32 - 2 and 2^32 - 1


class _KnownCells(Format):
    """A format whose `row` gives cells called latency, submitted, ended, status and id, or else extra columns.

    Times are ISO 8601 or seconds since 1970. `unit` is that of the latency, unless the cells have units.
    """

    unit: ClassVar[str] = "s"
    cells: ClassVar[tuple[str, ...]] = ("latency", "submitted", "status")
    uses: ClassVar[tuple[str, ...]] = ("statuses", "timezone")

    def known(self, options: ReadOptions) -> ReadOptions:
        columns = {role: role if role in self.cells else "" for role in ROLES}
        return replace(options, columns=columns, unit=self.unit if "latency" in self.cells else None)


class RowFormat(_KnownCells):
    """One probe a line."""

    others: ClassVar[str] = "lines that are not probes"
    nothing: ClassVar[str] = "no line of this log is a record of this format"

    @abstractmethod
    def row(self, line: str) -> Row | None:
        """The cells of a line, None where it is not a probe."""

    def rows(self) -> Callable[[str], Row | None]:
        """What reads one line after another; formats with records of several lines keep what they have read here."""
        return self.row

    def sniff(self, head: str) -> bool:
        if self.begins or self.signs:
            return super().sniff(head)
        read, lines = self.rows(), first_lines(head)
        count = sum(read(line) is not None for line in lines)
        return count > 0 and 2 * count >= len(lines)

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        yield from read_found(source, self.known(options), self.rows(), self.others, nothing=self.nothing)


class JsonRows(_KnownCells, JsonArray):
    """One probe for each object of an array inside a JSON document."""

    cells: ClassVar[tuple[str, ...]] = ("submitted", "ended", "status")
    roles = ()

    def sniff(self, head: str) -> bool:
        return Format.sniff(self, head)

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        yield from super().read(source, self.known(options))


def json_line(line: str) -> dict[str, Any] | None:
    """The object of a line of JSON, None where there is none."""
    value = json_object(line) if line.startswith("{") else None
    return value if isinstance(value, dict) else None


def inside(value: Any, path: str) -> Any:
    """The value at a path such as `request.uri` inside objects, None where there is none."""
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def epoch(moment: Any) -> float | None:
    """Seconds since 1970 of a number of them, or of an ISO 8601 time (UTC unless it has an offset)."""
    if isinstance(moment, (int, float)) and not isinstance(moment, bool):
        return None if moment in UNKNOWN_TIMES else float(moment)
    try:
        when = datetime.fromisoformat(str(moment).strip().replace("/", "-").replace(",", "."))
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def sent_at(ended: float | None, latency: float) -> float | None:
    """When a request was sent that was logged at `ended`, after it had taken `latency` seconds."""
    return None if ended is None else round(ended - latency, 6)


def plain_path(url: Any) -> str | None:
    """The path of a request without its query, which would make every request a group of its own."""
    return None if not isinstance(url, str) else url.split("?", 1)[0][:200]
