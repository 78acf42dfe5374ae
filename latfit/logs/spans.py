"""Traces as JSON: OpenTelemetry's resourceSpans, Jaeger's traces and Zipkin's spans; each span is a probe."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from latfit.errors import LogError
from latfit.logs.formats import ReadOptions, register
from latfit.logs.lines import RecordFormat, floats, json_object, moments, plain_text
from latfit.logs.records import Records, shown
from latfit.logs.rows import JsonRows, Row, inside
from latfit.logs.source import Block, Source
from latfit.logs.vocabulary import CHANGE, http_outcome
from latfit.table import FAILED, STATUSES

MAX_TRACES = 1 << 28  # bytes of one JSON document
KINDS = {"1": "internal", "2": "server", "3": "client", "4": "producer", "5": "consumer"}
Span = list[str | None]
SEVERAL_NAMES = (
    "spans of different names are different operations, and children are part of their parents: choose one, "
    "by --by name or --where name=…"
)


class _Spans(RecordFormat):
    """Latency is the span's length. A span whose status is an error failed.

    An HTTP code among its attributes that says more goes before (504: given up, so censored; 429: failed),
    and so does the gRPC code 4 (deadline exceeded: censored).
    """

    rank = 14
    uses = ("statuses",)
    names = ("start", "latency", "error", "code", "name", "service", "kind", "parent")
    groups = ("name", "service", "kind", "parent")
    outcomes, outcomes_change = "outcomes by the span's status and code", CHANGE
    latency_is, submitted_is = "the length of the span", "its start"

    @abstractmethod
    def spans(self, document: Any) -> Iterator[Span | str]:
        """The spans of a document as rows, or the reason for which one is refused."""

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        reader = self.reader(source, options)
        is_empty = True
        for documents in _documents(source):
            rows, numbers, refused_at, without = [], [], [], 0
            reasons: list[str] = []
            for number, document in documents:
                spans = [document] if isinstance(document, str) else list(self.spans(document))
                without += not spans
                for span in spans:
                    if isinstance(span, str):
                        kind, _, detail = span.partition(": ")
                        reasons.append(shown(len(reasons), kind, detail) if detail else kind)
                        refused_at.append(number)
                    else:
                        rows.append(span)
                        numbers.append(number)
            refused = Records.unusable(dict(enumerate(reasons)))
            refused.line = np.array(refused_at, dtype=np.int64)
            if without:
                refused.skipped["documents without spans"] = without
            yield refused
            if rows:
                frame = pd.DataFrame(rows, columns=list(self.names), dtype="str")
                yield reader.records(frame, np.array(numbers, dtype=np.int64))
            is_empty = is_empty and not rows
        if is_empty:
            raise LogError(f"{source.name}: there is no span in this log")
        yield reader.tally.last()

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        records.latency = floats(frame["latency"], "latency", records)
        failed = (frame["error"] == "True").to_numpy(dtype=bool)
        records.status[failed] = FAILED
        user_words = self.options.lowered_statuses
        for code in frame["code"].dropna().unique():
            outcome = "censored" if code == "grpc 4" else http_outcome(code, user_words)
            by_user = code.lower() in user_words or f"{code[:1]}xx" in user_words
            if outcome is not None and (outcome != "completed" or by_user):
                records.status[(frame["code"] == code).to_numpy(dtype=bool)] = STATUSES.index(outcome)
        words = pd.Series(np.where(failed, "error", "ok"), dtype="str") + " " + frame["code"].fillna("").astype("str")
        self.tally.add(words.str.strip(), records)
        records.submitted = moments(frame["start"], "start", "epoch", None, records)
        records.notes += [SEVERAL_NAMES] if len(frame["name"].dropna().unique()) > 1 else []


@register
class OpenTelemetry(_Spans):
    """OpenTelemetry spans (OTLP as JSON), times in ns."""

    name = "otel"
    description = "OpenTelemetry spans as JSON (resourceSpans); latency = end - start"
    begins, signs = r"[\[{]", ('"resourceSpans"',)

    def spans(self, document: Any) -> Iterator[Span | str]:
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
    begins, signs = r"[\[{]", ('"traceID"', '"operationName"')

    def spans(self, document: Any) -> Iterator[Span | str]:
        for trace in _listed(document, "data") or [document]:
            for span in _listed(trace, "spans"):
                process = inside(trace, "processes") or {}
                process = process.get(str(span.get("processID"))) if isinstance(process, dict) else None
                yield _jaeger_span(span, plain_text(inside(process, "serviceName")))


def _documents(source: Source) -> Iterator[Iterable[tuple[int, dict[str, Any] | str]]]:
    blocks = source.blocks()
    first = next(blocks)
    opening = next((line for line in first.lines() if line.strip()), "")
    if isinstance(json_object(opening), dict):
        yield from map(_by_line, chain([first], blocks))
        return
    data = bytearray(first.data)
    for block in blocks:
        data += block.data
        if len(data) > MAX_TRACES:
            raise LogError(f"{source.name}: one JSON document of more than {MAX_TRACES >> 20} MiB; write one a line")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:  # perhaps only the first line is damaged
        lines = list(_by_line(Block(bytes(data), 1, data.count(b"\n"))))
        if not any(isinstance(document, dict) for _, document in lines):
            raise LogError(f"{source.name}: this is no JSON document ({str(error)[:80]})") from error
        yield lines
        return
    documents = document if isinstance(document, list) else [document]
    yield ((1, each if isinstance(each, dict) else f"not an object: {str(each)[:40]!r}") for each in documents)


def _by_line(block: Block) -> Iterator[tuple[int, dict[str, Any] | str]]:
    for number, line in enumerate(block.lines(), start=block.first_line):
        if line.strip():
            yield number, json_object(line)


def _listed(value: Any, name: str) -> list[dict[str, Any]]:
    items = value.get(name) if isinstance(value, dict) else None
    return [each for each in items if isinstance(each, dict)] if isinstance(items, list) else []


def _attributes(value: Any) -> dict[str, str | None]:
    """Attributes by key: of OpenTelemetry (`value` holds a typed value), and Jaeger's tags."""
    attributes = {}
    for each in [*_listed(value, "attributes"), *_listed(value, "tags")]:
        held = each.get("value")
        attributes[str(each.get("key"))] = plain_text(
            next(iter(held.values()), None) if isinstance(held, dict) else held
        )
    return attributes


def _nanoseconds(value: Any) -> int | None:
    """Nanoseconds since 1970, written as text or as a number; 0 is none."""
    try:
        return int(value) or None if isinstance(value, (str, int)) and len(str(value)) < 25 else None
    except ValueError:
        return None


def _otel_span(span: dict[str, Any], service: str | None) -> Span | str:
    start, end = _nanoseconds(span.get("startTimeUnixNano")), _nanoseconds(span.get("endTimeUnixNano"))
    if start is None or end is None:
        return f"a span without start or end: {str(span.get('name'))[:40]!r}"
    error = inside(span, "status.code") in (2, "2", "STATUS_CODE_ERROR")
    parent = "root" if not span.get("parentSpanId") else "child"
    kind = plain_text(span.get("kind")) or ""
    # whole nanoseconds are subtracted before they become seconds: as floats they would lose digits
    times = [str(start / 1e9), repr((end - start) / 1e9)]
    name = plain_text(span.get("name"))
    return [*times, str(error), _code(_attributes(span)), name, service, KINDS.get(kind, kind) or None, parent]


def _jaeger_span(span: dict[str, Any], service: str | None) -> Span | str:
    start, duration = span.get("startTime"), span.get("duration")
    if not all(isinstance(x, (int, float)) and abs(x) < 1e18 for x in (start, duration)):
        return f"a span without start or duration: {str(span.get('operationName'))[:40]!r}"
    tags = _attributes(span)
    error = tags.get("error") == "true" or tags.get("otel.status_code") == "ERROR"
    parent = "child" if _listed(span, "references") or span.get("parentSpanID") else "root"
    name = plain_text(span.get("operationName"))
    times = [str(float(start or 0) / 1e6), repr(float(duration or 0) / 1e6)]
    return [*times, str(error), _code(tags), name, service, tags.get("span.kind"), parent]


def _code(attributes: dict[str, str | None]) -> str | None:
    http = attributes.get("http.response.status_code") or attributes.get("http.status_code")
    return http or ("grpc 4" if attributes.get("rpc.grpc.status_code") == "4" else None)


@register
class Zipkin(JsonRows):
    """Spans of Zipkin (v2). Latency is `duration`, in microseconds; a span with the tag `error` failed."""

    name = "zipkin"
    description = "Zipkin spans (JSON); latency = duration"
    rank = 21
    unit = "us"
    cells = ("latency", "submitted", "status")
    begins, signs = r"\[", ('"traceId"', r'"(local|remote)Endpoint"')

    def row(self, value: dict[str, Any]) -> Row | None:
        latency, began = value.get("duration"), value.get("timestamp")
        if not isinstance(latency, (int, float)):
            return None
        tags = value.get("tags") or {}
        status = tags.get("http.status_code") or ("failed" if "error" in tags else "completed")
        submitted = began / 1e6 if isinstance(began, (int, float)) else None
        groups = {"name": value.get("name"), "service": inside(value, "localEndpoint.serviceName")}
        span = {"kind": value.get("kind"), "trace": value.get("traceId")}
        return {"latency": latency, "submitted": submitted, "status": status, **groups, **span}
