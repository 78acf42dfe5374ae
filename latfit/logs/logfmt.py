"""Lines of names and values: logfmt (`level=info dur=12.3ms status=200`), Heroku's router log, and LTSV."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from latfit.logs.formats import DELIMITERS, SNIFFED_LINES, Head, InferredFormat, ReadOptions, register, split_record
from latfit.logs.jsonlines import read_lines
from latfit.logs.lines import MAX_CHARACTERS, LineFormat, Row
from latfit.logs.records import Records
from latfit.logs.schema import SAMPLED_ROWS
from latfit.logs.source import Source
from latfit.logs.times import MOMENT
from latfit.logs.vocabulary import NOTHING

PAIR = re.compile(r'(?:^|(?<=[\s,;\[({]))([A-Za-z_@][\w.@-]*)=("(?:[^"\\]|\\.)*"|[^\s"]*)')
BEGINS = re.compile(rf"\W?({MOMENT}(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)")
MIN_PAIRS = 2  # in a line of this format
HEROKU_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]{0,12}(?:Z|[+-]\d\d:\d\d)?")
HEROKU_ROUTER = r"heroku(?:\[router\]|/router): "
# request timeout, idle connection, client connection idle; the client gave up
HEROKU_ERRORS = {"H12": "timeout", "H15": "timeout", "H28": "timeout", "H27": "cancelled"}
LATENCIES = "reqtime request_time reqtime_microsec taken_sec response_time apptime upstream_response_time".split()
LABEL = re.compile(r"[A-Za-z0-9_.-]+:", re.ASCII)


@register
class Logfmt(InferredFormat):
    """One line a request, `name=value` or `name="some words"`; a date in front of it is the column `timestamp`."""

    name = "logfmt"
    description = "logfmt: name=value pairs, one line a request"
    rank = 85

    signs = (r"[\w@.-]=.*[\w@.-]=",)

    def sniff(self, head: Head) -> bool:
        lines = head.lines[:SNIFFED_LINES]
        names = [{name for name, _ in PAIR.findall(line[:MAX_CHARACTERS])} for line in lines]
        logfmt = [each for each in names if len(each) >= MIN_PAIRS]
        if not logfmt or 2 * len(logfmt) < len(names):
            return False
        _, shared = Counter(name for each in logfmt for name in each).most_common(1)[0]
        return shared >= 0.8 * len(logfmt) and not any(_is_delimited(lines[:8], mark) for mark in DELIMITERS)

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        yield from read_lines(source, options, _pairs, "lines with no pairs of a name and a value", every_line=False)


def _is_delimited(lines: list[str], mark: str) -> bool:
    rows = [split_record(line, mark)[1] for line in lines]
    if len(rows) < 2 or len(rows[0]) < 2 or len({len(row) for row in rows}) > 1:
        return False
    columns = zip(*rows[1:], strict=True)
    return any(all(re.fullmatch(r" *-?\d+(\.\d+)? *", cell) for cell in column) for column in columns)


def _pairs(line: str) -> dict[str, str] | None:
    row = {name: _value(value) for name, value in PAIR.findall(line)}
    if len(row) < MIN_PAIRS:
        return None
    if begins := BEGINS.match(line):
        row.setdefault("timestamp", begins[1].replace(",", "."))
    return row


def _value(text: str) -> str:
    if text.startswith('"'):
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text.rstrip(",;])}")


@register
class Heroku(LineFormat):
    """Latency is connect + service, in ms. H12 is the router's timeout (censored); other H codes failed."""

    name = "heroku"
    description = "Heroku router log; latency = connect + service"
    rank = 24
    unit = "ms"
    at_end = True
    others = "lines without a request and its service time"
    signs = (HEROKU_ROUTER,)

    def row(self, line: str) -> Row | None:
        """`… heroku[router]: at=info method=GET path="/" … dyno=web.1 connect=1ms service=12ms status=200 bytes=5`."""
        router = re.search(HEROKU_ROUTER, line)
        fields = _pairs(line[router.end() :]) if router else None
        if router is None or fields is None or not re.fullmatch(r"\d+ms", fields.get("service", "")):
            return None
        moment, error = HEROKU_TIME.search(line, 0, router.start()), fields.get("code")
        connect = re.fullmatch(r"(\d+)ms", fields.get("connect", ""))
        latency = int(fields["service"][:-2]) + (int(connect[1]) if connect else 0)
        status = fields.get("status") if error is None else HEROKU_ERRORS.get(error, "failed")
        groups = {name: fields.get(name) for name in ("code", "path", "method", "host", "dyno", "bytes")}
        return {"latency": latency, "submitted": moment and moment[0], "status": status, **groups}


@register
class Ltsv(InferredFormat):
    """Labels and values, by tabs (`status:200`). A request without a latency (`apptime:-`) is left out, and counted."""

    name = "ltsv"
    description = "LTSV access log; latency = reqtime, request_time, apptime, …"
    rank = 28
    begins = r"(?a)[\w.-]+:[^\t\n]*(?:\t[\w.-]+:[^\t\n]*){2,}\t?(?:\n|\Z)"

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """By the labels of ltsv.org, and what people add: the one that most of the first lines have, in s."""
        rows = [row for row in map(_labels, Head(source.text).lines[:SAMPLED_ROWS]) if isinstance(row, dict)]
        counts = Counter(label for row in rows for label in row if label in LATENCIES)
        label = options.columns.get("latency") or max(LATENCIES, key=lambda label: counts[label])
        known = label in counts
        unit = options.unit or (None if not known else "us" if label.endswith("microsec") else "s")
        how = replace(options, columns={**options.columns, "latency": label} if known else options.columns, unit=unit)
        for records in read_lines(source, how, _labels, "lines without labelled fields", every_line=False):
            records.notes += [f"latency is {label} in {unit}"] if known and records.line.size else []
            yield records


def _labels(line: str) -> dict[str, str] | str | None:
    fields = line.rstrip("\t ").split("\t")
    bad = [field for field in fields if not LABEL.match(field)]
    if bad or len(fields) == 1:
        return f"a field without a label: {(bad or [line])[0][:40]!r}" if len(bad) < len(fields) else None
    cells = (field.split(":", 1) for field in fields)
    return {label: value.strip("[] ") for label, value in cells if value not in NOTHING}
