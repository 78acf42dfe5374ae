"""Lines of names and values: logfmt (`level=info dur=12.3ms status=200`), Heroku's router log, and LTSV."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pandas as pd

from latfit.errors import MissingColumn, listed
from latfit.logs.delimited import DELIMITERS, split_record
from latfit.logs.formats import ROLES, Format, ReadOptions, register
from latfit.logs.jsonlines import read_found
from latfit.logs.lines import APACHE_TIME, MAX_CHARACTERS, LineFormat, Parsed, absent, first_lines
from latfit.logs.records import Records
from latfit.logs.rows import Row, RowFormat, epoch, plain_path, sent_at
from latfit.logs.source import Source
from latfit.logs.times import MOMENT
from latfit.numbers import Bools

PAIR = re.compile(r'(?:^|(?<=[\s,;\[({]))([A-Za-z_@][\w.@-]*)=("(?:[^"\\]|\\.)*"|[^\s"]*)')
BEGINS = re.compile(rf"\W?({MOMENT}(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)")
MIN_PAIRS = 2  # in a line of this format
HEROKU_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]{0,12}(?:Z|[+-]\d\d:\d\d)?")
HEROKU_FIELD = re.compile(r'(\w+)=(?:"([^"]*)"|(\S*))')
# request timeout, idle connection, client connection idle; the client gave up
HEROKU_ERRORS = {"H12": "timeout", "H15": "timeout", "H28": "timeout", "H27": "cancelled"}
LABEL = re.compile(r"[A-Za-z0-9_.-]+:", re.ASCII)
# labels of a latency, best first: those of ltsv.org, and what people add; in s but for the one that says otherwise
LATENCIES = (
    "reqtime request_time reqtime_microsec taken_sec response_time duration runtime apptime upstream_response_time "
    "vhost_time"
).split()
LTSV_CODES = ("status", "code", "status_code")
LTSV_TIMES = ("time", "time_local", "timestamp", "date")
AFTERWARDS = ("size", "body_bytes_sent", "bytes", "cache", "upstream_status")  # known with the answer: no groups


@register
class Logfmt(Format):
    """One line a request, `name=value` or `name="some words"`; a date in front of it is the column `timestamp`."""

    name = "logfmt"
    description = "logfmt: name=value pairs, one line a request"
    rank = 85
    roles = ROLES
    uses = ("statuses", "unit", "time_format", "timezone")

    def sniff(self, head: str) -> bool:
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


@register
class Ltsv(LineFormat):
    """Latency is the label that most of the first lines have of reqtime, request_time, apptime, …; seconds.

    A request without it (`apptime:-`: no backend was asked) is left out, and counted.
    """

    name = "ltsv"
    description = "LTSV access log; latency = reqtime, request_time, apptime, …"
    rank = 28
    roles = ("latency",)
    uses = ("statuses", "unit", "time_format", "timezone")
    http = True
    others = "lines that are not labelled fields"
    nothing = "no line of this log has labelled fields"

    def sniff(self, head: str) -> bool:
        lines = first_lines(head, 1)
        fields = lines[0].split("\t") if lines else []
        return len(fields) > 2 and all(LABEL.match(field) for field in fields)

    def begin(self, source: Source) -> None:
        self.log = source.name

    def parse(self, line: str) -> Parsed:
        fields = line.rstrip("\t ").split("\t")
        bad = [field for field in fields if not LABEL.match(field)]
        if not bad and len(fields) > 1:
            return dict(field.split(":", 1) for field in fields)
        return f"a field without a label: {(bad or [line])[0][:40]!r}" if len(bad) < len(fields) else None

    def left_out(self, frame: pd.DataFrame) -> Bools:
        self.measured = self.measured or self._measured(frame)
        if self.measured not in frame:
            frame[self.measured] = None
        self.not_probes = f"requests without {self.measured}"
        self.unit = self.options.unit or ("us" if self.measured == "reqtime_microsec" else "s")
        self.code, self.time = (
            next((name for name in labels if name in frame), "") for labels in (LTSV_CODES, LTSV_TIMES)
        )
        apart = (self.measured, self.time, *LATENCIES, *LTSV_CODES, *AFTERWARDS)
        self.groups = [str(name) for name in frame.columns if name not in apart]
        return absent(frame[self.measured])

    def _measured(self, frame: pd.DataFrame) -> str:
        names = list(map(str, frame.columns))
        if wanted := self.options.columns.get("latency"):
            if wanted not in names:
                raise MissingColumn(f"{self.log}: there is no label {wanted!r}; there are: {listed(names)}")
            return wanted
        counts = {name: int((~absent(frame[name])).sum()) for name in LATENCIES if name in names}
        if not any(counts.values()):
            raise MissingColumn(
                f"{self.log}: no label is known as a latency ({listed(LATENCIES)}); there are: {listed(names)}. "
                "Name it: --column latency=NAME"
            )
        return max(counts, key=lambda name: counts[name])

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        if self.time:
            written = frame[self.time].str.strip("[] ")
            apache = written.str.match(r"\d\d/[A-Z][a-z]{2}/", na=False).any()
            self.time_style = self.options.time_format or (APACHE_TIME if apache else None)
            frame = frame.assign(**{self.time: written})
        super().fill(records, frame)
