"""logfmt: pairs of a name and a value in every line (`level=info dur=12.3ms status=200`); Heroku's router log."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from latfit.logs.delimited import DELIMITERS, split_record
from latfit.logs.formats import ROLES, Format, ReadOptions, register
from latfit.logs.jsonlines import read_found
from latfit.logs.lines import MAX_CHARACTERS, first_lines
from latfit.logs.records import Records
from latfit.logs.rows import Row, RowFormat, epoch, plain_path, sent_at
from latfit.logs.source import Source
from latfit.logs.times import MOMENT

PAIR = re.compile(r'(?:^|(?<=[\s,;\[({]))([A-Za-z_@][\w.@-]*)=("(?:[^"\\]|\\.)*"|[^\s"]*)')
BEGINS = re.compile(rf"\W?({MOMENT}(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)")
MIN_PAIRS = 2  # in a line of this format
HEROKU_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]{0,12}(?:Z|[+-]\d\d:\d\d)?")
HEROKU_FIELD = re.compile(r'(\w+)=(?:"([^"]*)"|(\S*))')
# request timeout, idle connection, client connection idle; the client gave up
HEROKU_ERRORS = {"H12": "timeout", "H15": "timeout", "H28": "timeout", "H27": "cancelled"}


@register
class Logfmt(Format):
    """One line a request, `name=value` or `name="some words"`; a date in front of it is the column `timestamp`."""

    name = "logfmt"
    description = "logfmt: name=value pairs, one line a request"
    rank = 85
    roles = ROLES
    uses = ("statuses", "unit", "time_format", "timezone")

    def sniff(self, head: str) -> bool:
        """Pairs in half of the first lines, with a name that most of them share; but not in the cells of a table."""
        lines = first_lines(head)
        names = [{name for name, _ in PAIR.findall(line[:MAX_CHARACTERS])} for line in lines]
        logfmt = [each for each in names if len(each) >= MIN_PAIRS]
        if not logfmt or 2 * len(logfmt) < len(names):
            return False
        _, shared = Counter(name for each in logfmt for name in each).most_common(1)[0]
        return shared >= 0.8 * len(logfmt) and not any(_is_delimited(lines[:8], mark) for mark in DELIMITERS)

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        yield from read_found(source, options, _pairs, "lines with no pairs of a name and a value", every_line=False)


def _is_delimited(lines: list[str], mark: str) -> bool:
    """Whether a delimiter sets apart as many fields in all lines, one of them numbers below the first."""
    rows = [split_record(line, mark)[1] for line in lines]
    if len(rows) < 2 or len(rows[0]) < 2 or len({len(row) for row in rows}) > 1:
        return False
    columns = zip(*rows[1:], strict=True)
    return any(all(re.fullmatch(r" *-?\d+(\.\d+)? *", cell) for cell in column) for column in columns)


def _pairs(line: str) -> dict[str, str] | None:
    """The pairs of a line, and the date in front of them; None where they are too few."""
    row = {name: _value(value) for name, value in PAIR.findall(line)}
    if len(row) < MIN_PAIRS:
        return None
    if begins := BEGINS.match(line):
        row.setdefault("timestamp", begins[1].replace(",", "."))
    return row


def _value(text: str) -> str:
    """A value without its quotes, or the comma and the space behind it."""
    if text.startswith('"'):
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text.rstrip(",;])}")


@register
class Heroku(RowFormat):
    """Latency is connect + service, in ms. H12 is the router's timeout (censored); other H codes failed."""

    name = "heroku"
    description = "Heroku router log; latency = connect + service"
    rank = 24
    unit = "ms"

    def row(self, line: str) -> Row | None:
        """`… heroku[router]: at=info method=GET path="/" … dyno=web.1 connect=1ms service=12ms status=200 bytes=5`."""
        prefix, router, rest = line.partition("heroku[router]: ")
        fields = {key: quoted or plain for key, quoted, plain in HEROKU_FIELD.findall(rest)}
        parts = [fields.get(name, "").removesuffix("ms") for name in ("connect", "service")]
        if not router or not parts[1].isdigit():
            return None
        moment = HEROKU_TIME.search(prefix)
        latency, error = sum(int(part) for part in parts if part.isdigit()), fields.get("code")
        status = fields.get("status") if error is None else HEROKU_ERRORS.get(error, "failed")
        submitted = sent_at(epoch(moment[0] if moment else None), latency / 1e3)
        groups = {name: fields.get(name) for name in ("method", "host", "dyno", "bytes")}
        cells = {"latency": latency, "submitted": submitted, "status": status, "code": error}
        return {**cells, "path": plain_path(fields.get("path")), **groups}
