"""Sections of a report, and how a terminal, Markdown and LaTeX show them."""

from __future__ import annotations

import math
import re
import shlex
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain, repeat, zip_longest
from typing import Any, Self

from latfit.errors import printable
from latfit.units import UNITS, seconds

WORDS: dict[str, dict[str, Any]] = tomllib.loads(
    (files("latfit.report") / "templates" / "words.toml").read_text(encoding="utf-8")
)
"""Sentences by codes: headlines, reasons, remedies and others."""
NO_BREAK = "\u00a0"
TEXT_WIDTH = 80
INDENT = " " * 4
LONGEST_KEY = 60  # characters of a group's name in a table


@dataclass(frozen=True)
class Section:
    """A heading (or none), sentences, and perhaps a table.

    The first `keys` columns name a row and may be cut to fit a terminal; the column `below` may go below its row.
    `as_items` makes a list of the sentences, and `literal` lines are shown as they are, such as settings to paste.
    A title with a `tone` is the verdict: `set`, `group`, `wait` or `ask`, each with its colour.
    """

    title: str = ""
    sentences: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    keys: int = 1
    below: str = ""
    as_items: bool = False
    literal: tuple[str, ...] = ()
    tone: str = ""


class Number(str):
    """A number as text, with the value that a table on the page sorts by."""

    __slots__ = ("value",)
    value: float | None

    def __new__(cls, text: str, value: float | None) -> Self:
        self = super().__new__(cls, text)
        self.value = value
        return self


class Command(str):
    """A command to paste and what it is for; a terminal breaks it only so that it can still be pasted."""

    __slots__ = ("comment", "step")
    step: str
    comment: str

    def __new__(cls, step: str, comment: str) -> Self:
        self = super().__new__(cls, f"{step}  # {comment}")
        self.step, self.comment = step, comment
        return self

    def lines(self, width: int) -> list[str]:
        """One line, or the comment and then the command, continued by backslashes."""
        if len(self) <= width:
            return [self]
        words = (shlex.quote(word).replace(" ", NO_BREAK) for word in shlex.split(self.step))
        *parts, last = textwrap.wrap(" ".join(words), width - 2, break_on_hyphens=False)
        comment = textwrap.wrap(self.comment, width, initial_indent="# ", subsequent_indent="# ")
        return [*comment, *(f"{part} \\" for part in parts), last]


def number(value: float | None, write: Callable[[float], str] = seconds, missing: str = "") -> Number:
    """A number as `write` writes it (a time), or the word for one that is missing or infinite.

    >>> number(0.25), number(None, missing="infinite")
    ('250 ms', 'infinite')
    """
    return Number(missing if value is None or value == math.inf else write(value), value)


def in_one_unit(*times: float) -> list[str]:
    """Times in the unit of the longest.

    >>> in_one_unit(0.25, 1.5), in_one_unit(1800.0, 9000.0)
    (['0.25 s', '1.5 s'], ['0.5 h', '2.5 h'])
    """
    unit = seconds(max(times)).split()[1]
    scaled = (time / UNITS[unit.replace("µ", "u")] for time in times)
    return [f"{value:.{0 if value >= 999.5 else 3}{'f' if value >= 999.5 else 'g'}} {unit}" for value in scaled]


def between(low: float | None, high: float | None) -> str:
    """A range of times; ∞ to ∞ is no timeout.

    >>> between(0.317, 0.402), between(5.0, None)
    ('317 to 402 ms', '5 s to no limit')
    """
    if low == math.inf:
        return "none"
    if high is None or high == math.inf:
        return f"{seconds(low)} to no limit"
    first, last = seconds(low), seconds(high)
    unit = last.rsplit(" ", 1)[-1]
    return f"{first.removesuffix(' ' + unit) if first.count(' ') == 1 else first} to {last}"


def percent(share: float) -> str:
    """A share with two decimals."""
    return f"{100 * share:.2f} %"


def table_of(rows: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """The columns and rows of a section from rows of cells by column; empty columns are left out.

    >>> table_of([{"site": "a", "load": ""}, {"site": "b", "timeout": "2 s"}])
    {'columns': ('site', 'timeout'), 'rows': (('a', ''), ('b', '2 s'))}
    """
    filled = {name for row in rows for name, cell in row.items() if cell}
    columns = tuple(name for name in dict.fromkeys(chain.from_iterable(rows)) if name in filled)
    return {"columns": columns, "rows": tuple(tuple(row.get(name, "") for name in columns) for row in rows)}


def kept_together(sentence: str) -> str:
    """A sentence in which a line break cannot part a number from its unit, or the parts of a duration."""
    units = re.sub(r"(?<=\d) (?=(?:ns|µs|ms|s|min|h|d|%|×)(?:\W|$))", NO_BREAK, sentence)
    return re.sub(rf"(?<={NO_BREAK}[hd]) (?=\d+{NO_BREAK}(?:min|h)(?:\W|$))", NO_BREAK, units)


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters of a text: its beginning and its end, as names often differ at the end."""
    return text if len(text) <= limit else f"{text[: limit // 2]}…{text[len(text) - (limit - 1) // 2 :]}"


def shortened_apart(texts: Sequence[str], limit: int) -> list[str]:
    """The texts, shortened; those that would look alike are cut to where they begin to differ.

    >>> shortened_apart(["the first part: site one of many", "the first part: site two of many", "ce1"], 10)
    ['…te one o…', '…te two o…', 'ce1']
    """
    alike: dict[str, set[str]] = {}
    for text in texts:
        alike.setdefault(shortened(text, limit), set()).add(text)
    window: dict[str, str] = {}
    for short, several in alike.items():
        differ = (at for at, letters in enumerate(zip_longest(*several)) if len(set(letters)) > 1)
        start = max(0, next(differ, 0) - limit // 3)
        window |= {text: short if len(several) < 2 else f"…{text[start:][: limit - 2]}…" for text in several}
    return [window[text] for text in texts]


def as_text(
    sections: Iterable[Section], *, width: int = TEXT_WIDTH, styled: Callable[[str, str], str] = lambda text, tone: text
) -> str:
    """Sections as plain text in which a terminal finds no command; titles are `styled` by their tone."""
    blocks = []
    for section in sections:
        margin = "  " if section.title or section.literal else ""
        lines = []
        bullet = "- " if section.as_items else ""
        for sentence in map(kept_together, section.sentences):
            hanging = margin + " " * len(bullet)
            lines += textwrap.wrap(bullet + sentence, width - 2, initial_indent=margin, subsequent_indent=hanging)
        if section.rows:
            table = text_table(section.columns, section.rows, width - 2, section.keys, section.below)
            gap = [""] if lines and any(section.columns) else []
            lines += [*gap, *(f"  {line}" for line in table)]
        lines = [*map(printable, lines), *section.literal]
        title = kept_together(printable(section.title if section.tone else section.title.upper()))
        titles = [styled(line, section.tone) for line in textwrap.wrap(title, width)]
        blocks.append("\n".join([*titles, *lines]))
    return "\n\n".join(blocks).replace(NO_BREAK, " ") + "\n"


def text_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: int = TEXT_WIDTH - 2, keys: int = 1, below: str = ""
) -> list[str]:
    """The lines of a table; if no column has a name there is no head, and the last column is wrapped.

    If another table is too wide, the column `below` moves to a second line, then the first `keys` columns are cut,
    then each row becomes a sentence.

    >>> for line in text_table(("site", "timeout"), [("a", "358 s"), ("b", "5.6 ms")]):
    ...     print(line)
    site  timeout
    ----  -------
    a       358 s
    b      5.6 ms
    """
    if not any(columns):
        return _definitions(rows, width)
    moved = columns.index(below) if below in columns and _total(_widths([columns, *rows])) > width else None
    inline = [i for i in range(len(columns)) if i != moved]
    cells = [[row[i] for i in inline] for row in (columns, *rows)]
    for longest in range(LONGEST_KEY, 5, -2):
        names = [shortened_apart(column, longest) for column in list(zip(*cells, strict=True))[:keys]]
        cut = [[*key, *row[keys:]] for key, row in zip(zip(*names, strict=True), cells, strict=True)] if keys else cells
        if _total(widths := _widths(cut)) <= width:
            break
    else:
        return _as_records(columns, rows, width)
    lines = []
    for number, row in enumerate(cut):
        figures = "".join(f"  {cell.rjust(size)}" for cell, size in zip(row[1:], widths[1:], strict=True))
        lines.append(f"{row[0].ljust(widths[0])}{figures}".rstrip())
        if moved is not None:  # the head has its second line too
            text = kept_together(rows[number - 1][moved] if number else below)
            lines += textwrap.wrap(text, width - 4, initial_indent=INDENT, subsequent_indent=INDENT)
        if number == 0:
            lines.append("  ".join("-" * size for size in widths))
    return lines


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _total(widths: list[int]) -> int:
    return sum(widths) + 2 * (len(widths) - 1)


def _definitions(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    widths, lines = _widths(rows)[:-1], []
    for row in rows:
        names = "".join(f"{cell.ljust(size)}  " for cell, size in zip(row, widths, strict=False))
        room = width - len(names)
        parts = row[-1].lines(room) if isinstance(row[-1], Command) else textwrap.wrap(kept_together(row[-1]), room)
        starts = chain([names], repeat(" " * len(names)))
        lines += [f"{start}{part}".rstrip() for start, part in zip(starts, parts or [""], strict=False)]
    return lines


def _as_records(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    lines = []
    for row in rows:
        cells = "; ".join(f"{name} {cell}".strip() for name, cell in zip(columns, row, strict=True) if cell)
        lines += textwrap.wrap(kept_together(cells), width, subsequent_indent=INDENT)
    return lines


def as_markdown(sections: Iterable[Section], *, heading: str, figures: Sequence[str] = ()) -> str:
    """Sections as Markdown; what came from a log is escaped."""
    blocks = [f"# {markdown_escaped(heading)}"]
    for section in sections:
        blocks += [f"## {markdown_escaped(section.title)}"] if section.title else []
        sentences = [markdown_escaped(sentence) for sentence in section.sentences]
        blocks += ["\n".join(f"- {line}" for line in sentences)] if section.as_items else sentences
        if section.rows:
            rows = [[markdown_escaped(cell) for cell in row] for row in (section.columns, *section.rows)]
            rows.insert(1, ["---"] * len(section.columns))
            blocks.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
    blocks += [f"![{name}]({name})" for name in figures]
    return "\n\n".join(block for block in blocks if block) + "\n"


def markdown_escaped(text: str) -> str:
    """Text that Markdown and HTML show as it is; plain numbers need no escape, nor does `<.001`."""
    text = printable(re.sub(r"\s+", " ", text))
    if re.search(r"<(?![.\d\s])|&|>", text):  # a tag or an entity
        text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"([\\`*\[\]|#!~$@]|(?<!\w)_|_(?!\w)|:(?=//)|(?<=www)\.|^[-+=](?!\d))", r"\\\1", text)
    return re.sub(r"^(\d+)([.)])(?=\s)", r"\1\\\2", text)


def p_value(value: float | None) -> str:
    """A p-value with three decimals, empty where there is none."""
    return "" if value is None else f"{value:.3f}" if value >= 0.001 else "<.001"
