"""How many records a damaged log holds, counted without latfit; None where that is a matter of opinion."""

import csv
import re
from datetime import datetime

from fuzzing.logs import TextLog
from fuzzing.requests import BY_LINE, DOCUMENTS

FAR = 1 << 15  # a header below so much white space is none
MAX_SPAN = 200  # lines that one quoted record may take


def count_rows(log: TextLog, data: bytes) -> int | None:
    """The records below the header of a text in UTF-8, every line end a line end."""
    text = re.sub("\r\n?", "\n", data.decode(errors="replace").removeprefix("\ufeff"))
    lines = text.split("\n")
    if log.format in ("swf", "gwf"):
        return sum(line.lstrip()[:1] not in ("", ";", "#") for line in lines)
    if log.format == "htcondor":
        return _events(text)
    if log.format in DOCUMENTS:
        return None
    if log.format == "jsonl" or log.format in BY_LINE:
        return sum(bool(line.strip()) for line in lines)
    start, first = next(((at, line) for at, line in enumerate(lines) if line.strip()), (0, ""))
    if first != log.lines()[0] or text.index(first) > FAR:
        return None  # which line the header is, and what the delimiter, is a guess
    quotes = text.count('"')
    if quotes > 1:
        records = _quoted(lines[start:], log.separator, may_be_cut=quotes % 2 == 1 and len(text) > FAR)
    else:  # a stray quote costs no more than its line
        records = sum(_filled(line, log.separator) for line in lines[start:])
    return None if records is None else records - log.header


def _filled(line: str, separator: str) -> bool:
    """Whether a line holds a record: tabs alone are empty fields where tabs separate."""
    return bool(line.strip()) or separator in line


def _quoted(texts: list[str], separator: str, *, may_be_cut: bool) -> int | None:
    """Records of a well-formed quoted text; None for quotes that do not close, or swallow whole records.

    Where a log is read in parts and has a stray quote, a record of several lines may be cut in two.
    """
    lines = [line + "\n" for line in texts]
    csv.field_size_limit(1 << 30)
    rows = before = 0
    reader = csv.reader(lines, delimiter=separator, strict=True)
    try:
        for fields in reader:
            span = reader.line_num - before
            if span > 1 and (len(fields) != texts[0].count(separator) + 1 or span > MAX_SPAN or may_be_cut):
                return None
            if any("".join(lines[before : before + n]).count('"') % 2 == 0 for n in range(1, span)):
                return None  # a stray quote in front of the one that opens
            rows += span > 1 or _filled(texts[before], separator)
            before = reader.line_num
    except csv.Error:
        return None
    return rows


def _events(text: str) -> int | None:
    """Jobs, an id submitted again being another, and events that name none."""
    jobs, known = 0, set()
    for part in re.split(r"^\.\.\..*$", text, flags=re.MULTILINE):
        lines = [line for line in part.split("\n") if line.strip()]
        if not lines:
            continue
        head = lines[0]
        event = re.match(r"(\d{3}) \((\d+\.\d+)\.\d+\) (\d{4}-\d\d-\d\d|\d\d/\d\d) (\d\d:\d\d:\d\d) ", head, re.ASCII)
        if not event:
            if re.match(r"\d", head):
                return None  # whether this is an event after all is a matter of opinion
            jobs += 1
            continue
        code, job, day, hour = event.groups()
        year = day if "-" in day else f"2000-{day.replace('/', '-')}"
        try:
            datetime.fromisoformat(f"{year}T{hour}")
        except ValueError:
            return None
        if code == "000" or job not in known:
            jobs += 1
        known.add(job)
    return jobs
