"""JSON documents: an array of objects, one inside a document around it, or one object after the other."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from latfit.errors import LogError
from latfit.logs.formats import ROLES, Format, ReadOptions, register
from latfit.logs.jsonlines import Parsed, flat_object, read_objects, whole_text
from latfit.logs.records import Records, shown
from latfit.logs.source import MAX_LINE_BYTES, Source

_NOT_BLANK = re.compile(r"[^ \t\n]|\Z")
ROWS = 1 << 14  # objects of one table
DEPTH = 8  # objects around an array, one in the other
AROUND_SOURCE = re.compile("_.*|sort|fields|highlight|ignored")  # beside the _source of a hit of Elasticsearch
OTHERS = "objects of other arrays in the document"


@register
class JsonArray(Format):
    """An array of objects with the same keys; values inside objects are columns such as `data.value`.

    The array may stand inside a document (`{"items": […]}`, `{"hits": {"hits": […]}}`); of several
    the first one counts, and a longer one after it is an error.
    Objects one after the other may take several lines each, as jq prints them.
    """

    name = "json"
    by_line = False
    description = "JSON: an array of objects, also inside a document, or objects over several lines"
    rank = 79
    roles: ClassVar[tuple[str, ...]] = ROLES
    uses: ClassVar[tuple[str, ...]] = ("statuses", "unit", "time_format", "timezone")

    array: ClassVar[str] = ""  # the path of the array that counts, where it need not be the first

    def row(self, value: dict[str, Any]) -> dict[str, Any] | None:
        """The cells of an object, None where it is to be left out."""
        return flat_object(_unwrapped(value))

    def sniff(self, head: str) -> bool:
        """An array whose first element is an object, or that is empty; or an object that is not one line of many."""
        start = head.lstrip()
        if start.startswith("["):
            return start[1:].lstrip()[:1] in ("{", "]", "")
        if not start.startswith("{"):
            return False
        first, _, rest = start.partition("\n")
        found = _whole_object(first)
        if found is not None:  # alone it may be the first of many lines to come
            return not rest.strip() and _objects_in(found[0]) > 1
        return not rest.lstrip().startswith("{") and (bool(rest.strip()) or _has_array(start))

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records by key; the line of an object is where it begins."""
        others: Counter[str] = Counter()
        yield from read_objects(_tables(source, others, self.row, self.array), source.name, options)
        if others:
            left = Records.unusable({})
            left.skipped[OTHERS] = others.total()
            yield left


def _whole_object(text: str) -> tuple[dict[str, Any], int] | None:
    """The object that a text begins with and where it ends, None where it does not end there."""
    try:
        value, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return (value, end) if isinstance(value, dict) else None


def _has_array(text: str) -> bool:
    """Whether an array of objects begins in a text."""
    return re.search(r":\s*\[\s*\{", text) is not None


def _objects_in(value: dict[str, Any], depth: int = 0) -> int:
    """The most objects of an array that is reached through objects."""
    arrays = [sum(isinstance(each, dict) for each in item) for item in value.values() if isinstance(item, list)]
    if depth < DEPTH:
        arrays += [_objects_in(item, depth + 1) for item in value.values() if isinstance(item, dict)]
    return max(arrays, default=0)


def _is_envelope(head: str) -> bool:
    """Whether an object at the beginning of a log is one around all of it, and not the first of many."""
    found = _whole_object(head)
    return _has_array(head) if found is None else not head[found[1] :].strip() and _objects_in(found[0]) > 0


def _tables(
    source: Source, others: Counter[str], row: Callable[[dict[str, Any]], dict[str, Any] | None], array: str
) -> Iterator[Parsed]:
    rows: list[dict[str, Any]] = []
    numbers: list[int] = []
    broken: dict[int, str] = {}
    for number, value in _elements(source, others, array):
        if isinstance(value, dict):
            if (cells := row(value)) is None:
                others[array] += 1
                continue
            rows.append({whole_text(key): whole_text(item) for key, item in cells.items()})
            numbers.append(number)
        else:
            broken[number] = shown(len(broken), "not an object", f"{str(value)[:40]!r}")
        if len(rows) == ROWS:
            yield pd.DataFrame(rows), np.array(numbers, dtype=np.int64), broken
            rows, numbers, broken = [], [], {}
    yield pd.DataFrame(rows), np.array(numbers, dtype=np.int64), broken


def _unwrapped(value: dict[str, Any]) -> dict[str, Any]:
    """The object inside a hit of Elasticsearch or an edge of GraphQL, else the object itself."""
    source, node = value.get("_source"), value.get("node")
    if isinstance(source, dict) and all(map(AROUND_SOURCE.fullmatch, value)):
        return source
    return node if isinstance(node, dict) and set(value) <= {"node", "cursor"} else value


def _elements(source: Source, others: Counter[str], array: str) -> Iterator[tuple[int, Any]]:
    """The objects of a log, with the lines that they begin in; `others` counts those that are left out."""
    text = _Text(source)
    if text.peek() != "{":
        yield from text.array()
    elif _is_envelope(source.text.lstrip()):
        yield from _of_one_array(text, others, array)
    else:
        while text.peek():
            yield text.line, text.value()


def _of_one_array(text: _Text, others: Counter[str], array: str) -> Iterator[tuple[int, Any]]:
    """The objects of one array inside a document, or inside each of several: the first unless `array` names it."""
    first, many = array, 0
    while text.peek() == "{":
        for path, line, value in text.members():
            first = first or path
            if path == first:
                many += 1
                yield line, value
            else:
                others[path] += 1
    if text.peek():
        raise text.broken("something follows the document")
    longer = max(others, key=others.__getitem__, default="")
    if not array and others[longer] > many:
        raise LogError(
            f"{text.name}: the document holds arrays of objects {first!r} ({many}) and {longer!r} "
            f"({others[longer]}); take out the one that is meant, for example with jq '.{longer}'"
        )


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

    def array(self) -> Iterator[tuple[int, Any]]:
        """The elements of the array that begins here, with the lines that they begin in."""
        if self.peek() == "[":
            self.at += 1
        while self.peek() != "]":
            yield self.line, self.value()
            self.comma("]")
        self.at += 1

    def members(self, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, int, Any]]:
        """The objects in arrays of the object that begins here: the path of the array, their line, and they."""
        self.at += 1
        while self.peek() != "}":
            key = self.value()
            if not isinstance(key, str) or self.peek() != ":":
                raise self.broken("a name or a colon is missing")
            self.at += 1
            mark, path = self.peek(), f"{prefix}{whole_text(key)[:40]}"
            if mark == "{" and depth < DEPTH:
                yield from self.members(f"{path}.", depth + 1)
            elif mark == "[":
                yield from ((path, line, value) for line, value in self.array() if isinstance(value, dict))
            else:
                self.value()
            self.comma("}")
        self.at += 1

    def comma(self, end: str) -> None:
        """Pass over a comma, or stay before the end."""
        mark = self.peek()
        if mark == ",":
            self.at += 1
        elif mark != end:
            raise self.broken(f"a comma or {end} is missing" if mark else "it ends too soon")

    def broken(self, why: str) -> LogError:
        """The error that says where the document is none."""
        return LogError(f"{self.name}: line {self.line}: this JSON document is damaged or cut short ({why})")
