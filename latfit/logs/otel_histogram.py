"""OpenTelemetry histograms as JSON: OTLP (camelCase) and what the Python SDK prints (snake_case)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from latfit.buckets import Histogram, from_cumulative
from latfit.errors import LogError, SampleError, listed
from latfit.logs.formats import register
from latfit.logs.histogram_format import HistogramFormat, HistogramLog, Series
from latfit.logs.native import native_buckets
from latfit.logs.source import Source
from latfit.units import UNIT_WORDS, in_seconds

MAX_DOCUMENT = 1 << 26  # characters of one JSON document
Run = tuple[str, tuple[tuple[str, str], ...], int]  # a series, and when its counts began
DELTA = (1, "1", "AGGREGATION_TEMPORALITY_DELTA", "DELTA")


@register
class OtelHistogram(HistogramFormat):
    """Data points of histograms, explicit or exponential; of cumulative ones the latest of each series is taken."""

    name = "otel-histogram"
    by_line = False
    description = "OpenTelemetry metrics as JSON (OTLP or SDK): explicit and exponential histograms"
    rank = 14

    def sniff(self, head: str) -> bool:
        """By the key of the outermost object."""
        return bool(re.match(r'\s*\{\s*"resource_?[mM]etrics"', head))

    def parse(self, source: Source, unit: str | None) -> HistogramLog:
        """The documents of a file, one after the other, on a line each or not."""
        found: dict[Run, tuple[int, Series]] = {}
        notes: dict[str, None] = {}
        others: set[str] = set()
        for document in _documents(source):
            for metric in _metrics(document):
                name, data = str(metric.get("name", "")), _data(metric)
                if data is None:
                    others.add(name)
                    continue
                used = unit or _unit(name, str(metric.get("unit") or ""), notes)
                for point in _objects(_get(data, "dataPoints")):
                    try:
                        one = Series(name, _labels(point), _histogram(point, used, notes, name))
                        _take(found, one, point, _get(data, "aggregationTemporality"))
                    except (SampleError, ValueError, TypeError, OverflowError) as problem:
                        raise LogError(f"{source.name}: {name or 'a histogram'}: {problem}") from problem
        if not found:
            told = f"; it has: {listed(sorted(others))}" if others else ""
            raise LogError(f"{source.name}: there is no data point of a histogram here{told}")
        return HistogramLog(source.name, self.name, tuple(one for _, one in found.values()), notes=tuple(notes))


def _documents(source: Source) -> Iterator[Any]:
    """JSON values that follow each other, with white space between them."""
    decoder, rest = json.JSONDecoder(), ""
    for block in source.blocks():
        rest, at = rest + block.data.decode(), 0
        while at < len(rest):
            if rest[at].isspace():
                at += 1
                continue
            try:
                value, at = decoder.raw_decode(rest, at)
            except (ValueError, RecursionError):
                break  # perhaps the rest is still to come
            yield value
        rest = rest[at:]
        if len(rest) > MAX_DOCUMENT:
            raise LogError(f"{source.name}: a JSON document is longer than {MAX_DOCUMENT >> 20} MiB")
    if rest:
        raise LogError(f"{source.name}: the JSON is broken or cut short where it reads {rest[:40]!r}")


def _get(thing: Mapping[str, Any], name: str) -> Any:
    """A value by its camelCase name, or by the same name in snake_case."""
    return thing.get(name, thing.get(re.sub(r"([A-Z])", lambda found: "_" + found[1].lower(), name)))


def _objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; anything else has none."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _metrics(document: Any) -> Iterator[dict[str, Any]]:
    """Every metric of a document."""
    for resource in _objects(_get(document, "resourceMetrics")) if isinstance(document, dict) else []:
        for scope in _objects(_get(resource, "scopeMetrics")):
            yield from _objects(scope.get("metrics"))


def _data(metric: dict[str, Any]) -> dict[str, Any] | None:
    """The data of a metric if it is a histogram; the SDK calls them `data` whatever they are."""
    known = _get(metric, "histogram") or _get(metric, "exponentialHistogram")
    if isinstance(known, dict):
        return known
    data = metric.get("data")
    points = _objects(_get(data, "dataPoints")) if isinstance(data, dict) else []
    kind = set(points[0]) if points else set()
    return data if kind & {"bucketCounts", "bucket_counts", "scale"} else None


def _labels(point: dict[str, Any]) -> dict[str, str]:
    """Attributes, which OTLP writes as a list of keys and typed values, and the SDK as an object."""
    attributes = point.get("attributes")
    if isinstance(attributes, dict):
        return {str(key): str(value) for key, value in attributes.items()}
    found = {}
    for item in _objects(attributes):
        value = item.get("value")
        found[str(item.get("key"))] = str(next(iter(value.values()), "")) if isinstance(value, dict) else str(value)
    return found


def _take(found: dict[Run, tuple[int, Series]], one: Series, point: dict[str, Any], temporality: Any) -> None:
    """Deltas add up; of cumulative points the latest since each start counts, whatever the order in the file."""
    run = (*one.key, 0 if temporality in DELTA else _whole(point, "startTimeUnixNano"))
    time = _whole(point, "timeUnixNano")
    earlier = found.get(run)
    if earlier is None:
        found[run] = time, one
    elif temporality in DELTA:
        both = (earlier[1].value, one.value)
        assert isinstance(both[0], Histogram)
        assert isinstance(both[1], Histogram)
        found[run] = time, Series(one.name, one.labels, both[0] + both[1])
    elif time >= earlier[0]:
        found[run] = time, one


def _histogram(point: dict[str, Any], unit: str, notes: dict[str, None], name: str) -> Histogram:
    """The histogram of a data point in seconds."""
    if "scale" in point:
        histogram = _exponential(point)
    else:
        bounds = [float(bound) for bound in _get(point, "explicitBounds") or []]
        counts = np.array([int(count) for count in _get(point, "bucketCounts") or []], dtype=np.int64)
        if counts.size != len(bounds) + 1:
            raise SampleError(
                f"{counts.size} counts do not match {len(bounds)} bounds: there must be one count more, for what "
                "lies above the last"
            )
        if (counts < 0).any():
            raise SampleError("there are counts below 0")
        histogram = from_cumulative([*bounds, np.inf], np.cumsum(counts))
    if _get(point, "count") is not None and _whole(point, "count") != histogram.returned:
        raise SampleError(f"the count is {_whole(point, 'count')}, but the buckets have {histogram.returned}")
    scaled = histogram.in_unit(unit)
    total = point.get("sum")
    if not isinstance(total, (int, float)) or not np.isfinite(total) or not scaled.returned:
        return scaled
    try:
        return scaled.with_outcomes(latency_sum=in_seconds(float(total), unit))
    except SampleError as problem:
        notes[f"{name}: the sum is not used: {problem}"] = None
        return scaled


def _exponential(point: dict[str, Any]) -> Histogram:
    """Bucket i of OpenTelemetry is (b^i, b^(i+1)], which is i + 1 of Prometheus."""
    positive, negative = point.get("positive") or {}, point.get("negative") or {}
    if any(int(count) for count in _get(negative, "bucketCounts") or []):
        raise SampleError("there are latencies below 0 in this histogram: clocks that disagree cannot tell latencies")
    counts = np.array([int(count) for count in _get(positive, "bucketCounts") or []], dtype=np.int64)
    first = int(positive.get("offset") or 0) + 1
    zero = int(_get(point, "zeroCount") or 0), float(_get(point, "zeroThreshold") or 0.0)
    return native_buckets(range(first, first + counts.size), counts, int(point["scale"]), zero=zero)


def _whole(point: dict[str, Any], name: str) -> int:
    """A whole number, which OTLP writes as a text."""
    return int(_get(point, name) or 0)


def _unit(name: str, unit: str, notes: dict[str, None]) -> str:
    """The metric's unit, or seconds and a note where it says none that is a time."""
    if unit in UNIT_WORDS:
        return UNIT_WORDS[unit]
    notes[f"the unit of {name} is {unit!r}: its buckets are taken to be in seconds; --unit says otherwise"] = None
    return "s"
