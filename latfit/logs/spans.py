"""Traces as JSON: OpenTelemetry's resourceSpans and Jaeger's traces; each span is a probe."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from latfit.errors import LogError
from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.lines import floats, json_object, moments, plain_text, told
from latfit.logs.outcomes import CHANGE, OutcomeTally
from latfit.logs.records import Records, shown
from latfit.logs.source import Block, Source
from latfit.logs.vocabulary import http_outcome
from latfit.table import COMPLETED, FAILED, STATUSES

MAX_DOCUMENT = 1 << 28
NAMES = ("start", "latency", "error", "code", "name", "service", "kind", "parent")
GROUPS = ("name", "service", "kind", "parent")
CODES = ("http.response.status_code", "http.status_code")
GRPC, DEADLINE_EXCEEDED = "rpc.grpc.status_code", "4"
KINDS = {"1": "internal", "2": "server", "3": "client", "4": "producer", "5": "consumer"}
Row = list[str | None]


class _Spans(Format):
    """Latency is the span's length. A span whose status is an error failed.

    An HTTP code among its attributes that says more goes before (504: given up, so censored; 429: failed),
    and so does the gRPC code 4 (deadline exceeded: censored).
    """

    rank = 14
    uses = ("statuses",)

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the spans; a document over several lines is read as a whole."""
        outcomes = OutcomeTally("outcomes by the span's status and code", change=CHANGE)
        found = False
        for some in _documents(source, self):
            found = found or bool(some.rows)
            yield some.others()
            if some.rows:
                yield _records(some.rows, some.lines, options, outcomes)
        if not found:
            raise LogError(f"{source.name}: there is no span in this log")
        yield outcomes.last()

    @abstractmethod
    def spans(self, document: Any) -> Iterator[Row | str]:
        """The spans of a document as rows, or the reason for which one is refused."""


@register
class OpenTelemetry(_Spans):
    """OpenTelemetry spans (OTLP as JSON), times in ns."""

    name = "otel"
    description = "OpenTelemetry spans as JSON (resourceSpans); latency = end - start"

    def sniff(self, head: str) -> bool:
        """By the name of its outermost list."""
        return head.lstrip()[:1] in ("{", "[") and '"resourceSpans"' in head

    def spans(self, document: Any) -> Iterator[Row | str]:
        """Every span of every resource and scope."""
        for resource in _listed(document, "resourceSpans"):
            service = _attributes(resource.get("resource")).get("service.name")
            for scope in [*_listed(resource, "scopeSpans"), *_listed(resource, "instrumentationLibrarySpans")]:
                for span in _listed(scope, "spans"):
                    yield _otel_span(span, service)


@register
class Jaeger(_Spans):
    """Jaeger traces as its query service and its user interface write them, times in µs."""

    name = "jaeger"
    by_line = False
    description = "Jaeger traces as JSON; latency = duration"

    def sniff(self, head: str) -> bool:
        """By the names of a trace's parts."""
        return head.lstrip()[:1] in ("{", "[") and all(f'"{name}"' in head for name in ("traceID", "operationName"))

    def spans(self, document: Any) -> Iterator[Row | str]:
        """Every span of every trace."""
        traces = _listed(document, "data") or ([document] if isinstance(document, dict) else [])
        for trace in traces:
            processes = trace.get("processes")
            processes = processes if isinstance(processes, dict) else {}
            for span in _listed(trace, "spans"):
                process = processes.get(str(span.get("processID")))
                service = plain_text(process.get("serviceName")) if isinstance(process, dict) else None
                yield _jaeger_span(span, service)


@dataclass
class _Found:
    """The spans of some documents as rows, with line numbers; what was refused; documents without spans."""

    rows: list[Row] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    refused_at: list[int] = field(default_factory=list)
    empty: int = 0

    def add(self, document: Any, line: int, kind: _Spans) -> None:
        """Take the spans of a document in; a text is the reason for which there is none."""
        spans = [document] if isinstance(document, str) else list(kind.spans(document))
        self.empty += not spans
        for span in spans:
            if isinstance(span, str):
                reason, _, detail = span.partition(": ")
                self.reasons.append(shown(len(self.reasons), reason, detail) if detail else reason)
                self.refused_at.append(line)
            else:
                self.rows.append(span)
                self.lines.append(line)

    def others(self) -> Records:
        """A chunk of what is no span."""
        records = Records.unusable(dict(enumerate(self.reasons)))
        records.line = np.array(self.refused_at, dtype=np.int64)
        if self.empty:
            records.skipped["documents without spans"] = self.empty
        return records


def _documents(source: Source, kind: _Spans) -> Iterator[_Found]:
    """Spans line by line if the first line is a document, else those of the whole as one document."""
    blocks = source.blocks()
    first = next(blocks)
    opening = next((line for line in first.lines() if line.strip()), "")
    if isinstance(json_object(opening), dict):
        yield from (_by_line(block, kind) for block in chain([first], blocks))
        return
    data = bytearray(first.data)
    for block in blocks:
        data += block.data
        if len(data) > MAX_DOCUMENT:
            raise LogError(f"{source.name}: one JSON document of more than {MAX_DOCUMENT >> 20} MiB; write one a line")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        whole = Block(bytes(data), 1, data.count(b"\n"))
        found = _by_line(whole, kind)  # perhaps only the first line is damaged
        if not found.rows:
            raise LogError(f"{source.name}: this is no JSON document ({str(error)[:80]})") from error
        yield found
        return
    found = _Found()
    for each in document if isinstance(document, list) else [document]:
        found.add(each if isinstance(each, dict) else f"not an object: {str(each)[:40]!r}", 1, kind)
    yield found


def _by_line(block: Block, kind: _Spans) -> _Found:
    found = _Found()
    for number, line in enumerate(block.lines(), start=block.first_line):
        if line.strip():
            found.add(json_object(line), number, kind)
    return found


def _listed(value: Any, name: str) -> list[dict[str, Any]]:
    """The objects of a list within an object; nothing where it is not one."""
    found = value.get(name) if isinstance(value, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _attributes(value: Any) -> dict[str, str | None]:
    """Attributes by key: of OpenTelemetry (`value` holds a typed value), and Jaeger's tags."""
    found = {}
    for each in [*_listed(value, "attributes"), *_listed(value, "tags")]:
        held = each.get("value")
        if isinstance(held, dict):
            held = next(iter(held.values()), None)
        found[str(each.get("key"))] = plain_text(held)
    return found


def _nanoseconds(value: Any) -> int | None:
    """Nanoseconds since 1970, written as text or as a number; 0 is none."""
    try:
        return int(value) or None if isinstance(value, (str, int)) and len(str(value)) < 25 else None
    except ValueError:
        return None


def _otel_span(span: dict[str, Any], service: str | None) -> Row | str:
    start, end = _nanoseconds(span.get("startTimeUnixNano")), _nanoseconds(span.get("endTimeUnixNano"))
    if start is None or end is None:
        return f"a span without start or end: {str(span.get('name'))[:40]!r}"
    attributes = _attributes(span)
    status = span.get("status")
    error = status.get("code") in (2, "2", "STATUS_CODE_ERROR") if isinstance(status, dict) else False
    parent = "root" if not span.get("parentSpanId") else "child"
    told_kind = plain_text(span.get("kind"))
    kind = KINDS.get(told_kind or "", told_kind)
    # whole nanoseconds are subtracted before they become seconds: as floats they would lose digits
    latency = repr((end - start) / 1e9)
    return [
        str(start / 1e9),
        latency,
        str(error),
        _code(attributes),
        plain_text(span.get("name")),
        service,
        kind,
        parent,
    ]


def _jaeger_span(span: dict[str, Any], service: str | None) -> Row | str:
    start, duration = span.get("startTime"), span.get("duration")
    if not all(isinstance(x, (int, float)) and abs(x) < 1e18 for x in (start, duration)):
        return f"a span without start or duration: {str(span.get('operationName'))[:40]!r}"
    assert start is not None
    assert duration is not None
    tags = _attributes(span)
    error = tags.get("error") == "true" or tags.get("otel.status_code") == "ERROR"
    parent = "child" if _listed(span, "references") or span.get("parentSpanID") else "root"
    name = plain_text(span.get("operationName"))
    return [
        str(start / 1e6),
        repr(duration / 1e6),
        str(error),
        _code(tags),
        name,
        service,
        tags.get("span.kind"),
        parent,
    ]


def _code(attributes: dict[str, str | None]) -> str | None:
    """The HTTP code of a span, or the gRPC code where it says that the deadline was exceeded."""
    http = next((attributes[name] for name in CODES if attributes.get(name)), None)
    return http or ("grpc 4" if attributes.get(GRPC) == DEADLINE_EXCEEDED else None)


def _records(rows: list[Row], numbers: list[int], options: ReadOptions, outcomes: OutcomeTally) -> Records:
    frame = pd.DataFrame(rows, columns=list(NAMES), dtype="str")
    n = len(frame)
    records = Records(np.array(numbers, dtype=np.int64), np.empty(0), np.full(n, COMPLETED, dtype=np.int8))
    records.latency = floats(frame["latency"], "latency", records)
    failed = (frame["error"] == "True").to_numpy(dtype=bool)
    records.status[failed] = FAILED
    said = options.lowered_statuses
    for code in frame["code"].dropna().unique():
        outcome = "censored" if code == "grpc 4" else http_outcome(code, said)
        by_user = code.lower() in said or f"{code[:1]}xx" in said
        if outcome is not None and (outcome != "completed" or by_user):
            records.status[(frame["code"] == code).to_numpy(dtype=bool)] = STATUSES.index(outcome)
    words = pd.Series(np.where(failed, "error", "ok"), dtype="str") + " " + frame["code"].fillna("").astype("str")
    outcomes.add(words.str.strip(), records)
    records.submitted = moments(frame["start"], "start", "epoch", None, records)
    records.raw = frame
    records.extras = {name: frame[name] for name in GROUPS}
    records.notes.append(told("the length of the span", "its start", GROUPS))
    names = frame["name"].nunique()
    if names > 1:
        records.notes.append(
            "spans of different names are different operations, and children are part of their parents: choose one, "
            "by --by name or --where name=…"
        )
    return records
