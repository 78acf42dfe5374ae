"""JSON: one array of objects, however it is laid out over lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from latfit.errors import LogError
from latfit.logs.formats import ROLES, Format, ReadOptions, register
from latfit.logs.jsonlines import Parsed, flat_object, read_objects, whole_text
from latfit.logs.records import Records, shown
from latfit.logs.source import MAX_LINE_BYTES, Source

_NOT_BLANK = re.compile(r"[^ \t\n]|\Z")
ROWS = 1 << 14  # objects of one table


@register
class JsonArray(Format):
    """An array of objects with the same keys; values inside objects are columns such as `data.value`."""

    name = "json"
    by_line = False
    description = "JSON, an array of objects, one a probe"
    rank = 81
    roles = ROLES
    uses = ("statuses", "unit", "time_format", "timezone")

    def sniff(self, head: str) -> bool:
        """An array whose first element is an object, or that is empty."""
        start = head.lstrip()
        return start.startswith("[") and start[1:].lstrip()[:1] in ("{", "]", "")

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records by key; the line of an object is where it begins."""
        yield from read_objects(_tables(source), source.name, options)


def _tables(source: Source) -> Iterator[Parsed]:
    rows: list[dict[str, Any]] = []
    numbers: list[int] = []
    broken: dict[int, str] = {}
    for number, value in _elements(source):
        if isinstance(value, dict):
            rows.append({whole_text(key): whole_text(item) for key, item in flat_object(value).items()})
            numbers.append(number)
        else:
            broken[number] = shown(len(broken), "not an object", f"{str(value)[:40]!r}")
        if len(rows) == ROWS:
            yield pd.DataFrame(rows), np.array(numbers, dtype=np.int64), broken
            rows, numbers, broken = [], [], {}
    yield pd.DataFrame(rows), np.array(numbers, dtype=np.int64), broken


def _elements(source: Source) -> Iterator[tuple[int, Any]]:
    """The elements of the array, with the lines that they begin in."""
    text = _Text(source)
    if text.peek() == "[":
        text.at += 1
    while text.peek() != "]":
        yield text.line, text.value()
        mark = text.peek()
        if mark == ",":
            text.at += 1
        elif mark != "]":
            raise text.broken("a comma or ] is missing" if mark else "it ends too soon")


class _Text:
    """The text of a log as it comes; `at` is where reading has got to, `line` the line of that place."""

    def __init__(self, source: Source) -> None:
        self.name, self.pieces, self.decoder = source.name, source.texts(), json.JSONDecoder()
        self.text, self.at, self.line = "", 0, 1

    def more(self) -> bool:
        """Take in the next piece, and forget what is behind; False at the end of the log."""
        piece = next(self.pieces, None)
        self.text, self.at = self.text[self.at :] + (piece or ""), 0
        return piece is not None

    def peek(self) -> str:
        """The next character that is not blank, or nothing at the end."""
        while True:
            start = self.at
            self.at = _NOT_BLANK.search(self.text, start).start()  # type: ignore[union-attr]
            self.line += self.text.count("\n", start, self.at)
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more():
                return ""

    def value(self) -> Any:
        """The value that begins here."""
        while True:
            try:
                value, end = self.decoder.raw_decode(self.text, self.at)
            except (ValueError, RecursionError) as error:
                if isinstance(error, RecursionError) or len(self.text) > MAX_LINE_BYTES or not self.more():
                    raise self.broken(str(error)[:60]) from error
                continue
            if end < len(self.text) or not self.more():  # a number at the end of a piece may go on
                self.line += self.text.count("\n", self.at, end)
                self.at = end
                return value

    def broken(self, why: str) -> LogError:
        """The error that says where the array is no array."""
        return LogError(f"{self.name}: line {self.line}: this JSON array is damaged or cut short ({why})")
