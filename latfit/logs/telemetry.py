"""Telemetry as JSON: spans of OpenTelemetry, Jaeger and Zipkin, each a probe, and OpenTelemetry's histograms."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from latfit.buckets import Histogram, from_cumulative
from latfit.errors import LogError, SampleError, listed
from latfit.logs.formats import register
from latfit.logs.histogram_format import HistogramFormat, Key, Series, exponential_buckets, with_sum
from latfit.logs.jsonlines import JsonRows
from latfit.logs.lines import EventFormat, Row, inside, json_object
from latfit.logs.records import Records
from latfit.logs.source import Source, numbered_lines
from latfit.logs.vocabulary import http_outcome
from latfit.units import UNIT_WORDS

KINDS = {"1": "internal", "2": "server", "3": "client", "4": "producer", "5": "consumer"}
DELTA = (1, "1", "AGGREGATION_TEMPORALITY_DELTA", "DELTA")
SEVERAL_NAMES = (
    "spans of different names are different operations, and children are part of their parents: choose one, "
    "by --by name or --where name=…"
)


def _documents(source: Source) -> Iterator[tuple[int, Any]]:
    """The line and value of each JSON document; a text says why there is none; (0, None): more may take a while."""
    first = source.text.lstrip().split("\n", 1)[0]
    if isinstance(json_object(first), dict):
        yield from (
            (number, json_object(each) if each else None) for number, each in numbered_lines(source, pauses=True)
        )
        return
    text, decoder, at, line = "".join(source.texts()), json.JSONDecoder(), 0, 1
    while begins := re.compile(r"\S").search(text, at):
        line, at = line + text.count("\n", at, begins.start()), begins.start()
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            value, end = f"unparseable line: {str(error)[:60]}", text.find("\n{", at) + 1 or len(text)
        yield from ((line, each) for each in (value if isinstance(value, list) else [value]))
        line, at = line + text.count("\n", at, end), end


def _get(value: Any, name: str) -> Any:
    """A value of an object by its camelCase name, or by the same name in snake_case."""
    if not isinstance(value, dict):
        return None
    return value.get(name, value.get(re.sub(r"([A-Z])", lambda match: "_" + match[1].lower(), name)))


def _objects(value: Any, name: str) -> list[dict[str, Any]]:
    items = _get(value, name)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _attributes(value: Any, name: str = "attributes") -> dict[str, str]:
    """Attributes by key, from an object, or from a list of keys and values, which OTLP writes as `{type: value}`."""
    known = value.get(name) if isinstance(value, dict) else None
    if not isinstance(known, dict):
        known = {item.get("key"): item.get("value") for item in _objects(value, name)}
    typed = {key: next(iter(each.values()), None) for key, each in known.items() if isinstance(each, dict)}
    return {str(key): plain_text(each) or "" for key, each in {**known, **typed}.items()}


def plain_text(value: object) -> str | None:
    """A plain value of JSON as text that a table can hold; None for objects and lists."""
    if value is None or isinstance(value, (dict, list)):
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text.encode("utf-8", "replace").decode()


class _Spans(EventFormat):
    """Latency is the span's length. A span whose status is an error failed.

    An HTTP code among its attributes that says more goes before (504: given up, so censored; 429: failed),
    and so does the gRPC code 4 (deadline exceeded: censored).
    """

    rank = 14
    nothing = "there is no span in this log"

    @abstractmethod
    def spans(self, document: Any) -> Iterator[Row | str]:
        """The spans of a document as rows, or the reason for which one is refused."""

    def probes(self, source: Source, last: Records) -> Iterator[tuple[int, Row | str | None]]:
        names: set[str | None] = set()
        for number, document in _documents(source):
            if not number:
                yield 0, None
                continue
            spans = [document] if isinstance(document, str) else list(self.spans(document))
            last.skipped["documents without spans"] += not spans
            names |= {span["name"] for span in spans if isinstance(span, dict)}
            yield from ((number, span) for span in spans)
        last.notes += [SEVERAL_NAMES] if len(names) > 1 else []


def _span(start: float, length: float, error: bool, tags: dict[str, str], **groups: str | None) -> Row:
    code = tags.get("http.response.status_code") or tags.get("http.status_code") or ""
    outcome = http_outcome(code) if code else "censored" if tags.get("rpc.grpc.status_code") == "4" else None
    status = "failed" if error else "completed"
    if outcome and (not error or outcome != "completed"):
        status = code or outcome
    return {"submitted": start, "latency": length, "status": status, **groups}


@register
class OpenTelemetry(_Spans):
    """OpenTelemetry spans (OTLP as JSON), times in ns."""

    name = "otel"
    description = "OpenTelemetry spans as JSON (resourceSpans); latency = end - start"
    begins, signs = r"[\[{]", ('"resourceSpans"',)

    def spans(self, document: Any) -> Iterator[Row | str]:
        for resource in _objects(document, "resourceSpans"):
            service = _attributes(resource.get("resource")).get("service.name")
            for scope in _objects(resource, "scopeSpans") + _objects(resource, "instrumentationLibrarySpans"):
                for span in _objects(scope, "spans"):
                    name, kind = plain_text(span.get("name")), plain_text(span.get("kind")) or ""
                    try:
                        start, end = (int(str(span[f"{which}TimeUnixNano"])[:25]) for which in ("start", "end"))
                    except (KeyError, ValueError):
                        start = end = 0
                    if not start or not end:
                        yield f"a span without start or end: {str(name)[:40]!r}"
                        continue
                    error = inside(span, "status.code") in (2, "2", "STATUS_CODE_ERROR")
                    parent = "child" if span.get("parentSpanId") else "root"
                    groups = {"name": name, "service": service, "kind": KINDS.get(kind, kind) or None, "parent": parent}
                    # whole nanoseconds are subtracted before they become seconds: as floats they would lose digits
                    yield _span(start / 1e9, (end - start) / 1e9, error, _attributes(span), **groups)


@register
class Jaeger(_Spans):
    """Jaeger traces as its query service and its user interface write them, times in µs."""

    name = "jaeger"
    by_line = False
    description = "Jaeger traces as JSON; latency = duration"
    begins, signs = r"[\[{]", ('"traceID"', '"operationName"')

    def spans(self, document: Any) -> Iterator[Row | str]:
        for trace in _objects(document, "data") or [document]:
            for span in _objects(trace, "spans"):
                name, start, duration = (span.get(key) for key in ("operationName", "startTime", "duration"))
                if not all(isinstance(time, int | float) and abs(time) < 1e18 for time in (start, duration)):
                    yield f"a span without start or duration: {str(name)[:40]!r}"
                    continue
                tags, process = _attributes(span, "tags"), inside(trace, f"processes.{span.get('processID')}")
                error = tags.get("error") == "true" or tags.get("otel.status_code") == "ERROR"
                groups = {
                    "name": plain_text(name),
                    "service": plain_text(inside(process, "serviceName")),
                    "kind": tags.get("span.kind"),
                    "parent": "child" if _objects(span, "references") or span.get("parentSpanID") else "root",
                }
                yield _span(float(start or 0) / 1e6, float(duration or 0) / 1e6, error, tags, **groups)


@register
class Zipkin(JsonRows):
    """Spans of Zipkin (v2). Latency is `duration`, in microseconds; a span with the tag `error` failed."""

    name = "zipkin"
    description = "Zipkin spans (JSON); latency = duration"
    rank = 21
    unit = "us"
    cells = "latency submitted status"
    begins, signs = r"\[", ('"traceId"', r'"(local|remote)Endpoint"')
    paths = "latency=duration submitted=timestamp name service=localEndpoint.serviceName kind trace=traceId tags"

    def probe(self, cells: Row) -> Row:
        tags = _attributes({"tags": cells.pop("tags")}, "tags")
        return {**cells, "status": tags.get("http.status_code") or ("failed" if "error" in tags else "completed")}


@register
class OtelHistogram(HistogramFormat):
    """Data points of histograms, explicit or exponential; of cumulative ones the latest of each series is taken."""

    name = "otel-histogram"
    description = "OpenTelemetry metrics as JSON (OTLP or SDK): explicit and exponential histograms"
    rank = 14
    begins = r'\{\s*"resource_?[mM]etrics"'

    def series(self, source: Source, unit: str | None, notes: dict[str, None]) -> Iterator[Series]:
        latest: dict[tuple[Key, int], tuple[int, Histogram]] = {}  # by series, and when its counts began
        others: set[str] = set()
        for metric in _metrics(source):
            name, data = str(metric.get("name", "")), _data(metric)
            if data is None:
                others.add(name)
                continue
            written = str(metric.get("unit") or "")
            if not unit and written not in UNIT_WORDS:
                guess = f"the unit of {name} is {written!r}: its buckets are taken to be in seconds"
                notes[f"{guess}; --unit says otherwise"] = None
            is_delta = _get(data, "aggregationTemporality") in DELTA
            for point in _objects(data, "dataPoints"):
                try:
                    histogram, problem_with_sum = _histogram(point, unit or UNIT_WORDS.get(written, "s"))
                    time, began = _whole(point, "timeUnixNano"), 0 if is_delta else _whole(point, "startTimeUnixNano")
                    key = (name, tuple(sorted(_attributes(point).items()))), began
                    earlier, so_far = latest.get(key, (-1, None))
                    if is_delta and so_far is not None:  # deltas add up
                        histogram = so_far + histogram
                    if is_delta or time >= earlier:
                        latest[key] = time, histogram
                except (SampleError, ValueError, TypeError, OverflowError) as problem:
                    raise LogError(f"{name or 'a histogram'}: {problem}") from problem
                notes |= {f"{name}: {problem_with_sum}": None} if problem_with_sum else {}
        if not latest:
            metrics_here = f"; it has: {listed(sorted(others))}" if others else ""
            raise LogError(f"there is no data point of a histogram here{metrics_here}")
        yield from (Series(name, dict(labels), histogram) for ((name, labels), _), (_, histogram) in latest.items())


def _metrics(source: Source) -> Iterator[dict[str, Any]]:
    for number, document in _documents(source):
        if isinstance(document, str):
            raise LogError(f"line {number}: the JSON is broken or cut short ({document})")
        for resource in _objects(document, "resourceMetrics"):
            for scope in _objects(resource, "scopeMetrics"):
                yield from _objects(scope, "metrics")


def _data(metric: dict[str, Any]) -> dict[str, Any] | None:
    """The data of a metric if it is a histogram; the SDK calls them `data` whatever they are."""
    known = _get(metric, "histogram") or _get(metric, "exponentialHistogram")
    if isinstance(known, dict):
        return known
    data = metric.get("data")
    first = next(iter(_objects(data, "dataPoints")), {})
    return data if {"bucketCounts", "bucket_counts", "scale"} & set(first) else None


def _histogram(point: dict[str, Any], unit: str) -> tuple[Histogram, str]:
    if "scale" in point:
        histogram = _exponential(point)
    else:
        bounds, counts = [float(bound) for bound in _get(point, "explicitBounds") or []], _counts(point)
        if counts.size != len(bounds) + 1 or (counts < 0).any():
            raise SampleError(
                f"{counts.size} counts do not match {len(bounds)} bounds: there must be one count more, for what "
                "lies above the last, and none below 0"
            )
        histogram = from_cumulative([*bounds, np.inf], np.cumsum(counts))
    if _get(point, "count") is not None and _whole(point, "count") != histogram.returned:
        raise SampleError(f"the count is {_whole(point, 'count')}, but the buckets have {histogram.returned}")
    total = point.get("sum")
    return with_sum(histogram.in_unit(unit), float(total) if isinstance(total, int | float) else None, unit)


def _counts(buckets: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array([int(count) for count in _get(buckets, "bucketCounts") or []], dtype=np.int64)


def _exponential(point: dict[str, Any]) -> Histogram:
    """Bucket i of OpenTelemetry is (b^i, b^(i+1)], which is i + 1 of Prometheus."""
    if _counts(point.get("negative")).any():
        raise SampleError("there are latencies below 0 in this histogram: clocks that disagree cannot tell latencies")
    counts, first = _counts(point.get("positive")), _whole(point.get("positive"), "offset") + 1
    zero = _whole(point, "zeroCount"), float(_get(point, "zeroThreshold") or 0.0)
    return exponential_buckets(range(first, first + counts.size), counts, int(point["scale"]), zero=zero)


def _whole(point: Any, name: str) -> int:
    """A whole number, which OTLP writes as a text."""
    return int(_get(point, name) or 0)
