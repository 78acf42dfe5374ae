"""OpenTelemetry histograms as JSON: OTLP (camelCase) and what the Python SDK prints (snake_case)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from latfit.buckets import Histogram, from_cumulative
from latfit.errors import LogError, SampleError, listed
from latfit.logs.formats import register
from latfit.logs.histogram_format import HistogramFormat, HistogramLog, Key, Series, native_buckets, with_sum
from latfit.logs.source import Source
from latfit.units import UNIT_WORDS

MAX_METRICS = 1 << 26  # characters of one JSON document
DELTA = (1, "1", "AGGREGATION_TEMPORALITY_DELTA", "DELTA")


@register
class OtelHistogram(HistogramFormat):
    """Data points of histograms, explicit or exponential; of cumulative ones the latest of each series is taken."""

    name = "otel-histogram"
    description = "OpenTelemetry metrics as JSON (OTLP or SDK): explicit and exponential histograms"
    rank = 14
    begins = r'\{\s*"resource_?[mM]etrics"'

    def parse(self, source: Source, unit: str | None) -> HistogramLog:
        latest: dict[tuple[Key, int], tuple[int, Histogram]] = {}  # by series, and when its counts began
        notes: dict[str, None] = {}
        others: set[str] = set()
        metrics = (metric for document in _documents(source) for metric in _metrics(document))
        for metric in metrics:
            name, data = str(metric.get("name", "")), _data(metric)
            if data is None:
                others.add(name)
                continue
            written = str(metric.get("unit") or "")
            if not unit and written not in UNIT_WORDS:
                guess = f"the unit of {name} is {written!r}: its buckets are taken to be in seconds"
                notes[f"{guess}; --unit says otherwise"] = None
            is_delta = _get(data, "aggregationTemporality") in DELTA
            for point in _objects(_get(data, "dataPoints")):
                try:
                    histogram, problem_with_sum = _histogram(point, unit or UNIT_WORDS.get(written, "s"))
                    labels, time = _labels(point), _whole(point, "timeUnixNano")
                    began = 0 if is_delta else _whole(point, "startTimeUnixNano")
                    key = (name, tuple(sorted(labels.items()))), began
                    earlier, so_far = latest.get(key, (-1, None))
                    if is_delta and so_far is not None:  # deltas add up
                        histogram = so_far + histogram
                    if is_delta or time >= earlier:
                        latest[key] = time, histogram
                except (SampleError, ValueError, TypeError, OverflowError) as problem:
                    raise LogError(f"{source.name}: {name or 'a histogram'}: {problem}") from problem
                notes |= {f"{name}: {problem_with_sum}": None} if problem_with_sum else {}
        if not latest:
            metrics_here = f"; it has: {listed(sorted(others))}" if others else ""
            raise LogError(f"{source.name}: there is no data point of a histogram here{metrics_here}")
        series = (Series(name, dict(labels), histogram) for ((name, labels), _), (_, histogram) in latest.items())
        return HistogramLog(source.name, self.name, tuple(series), notes=tuple(notes))


def _documents(source: Source) -> Iterator[Any]:
    decoder, blank, rest = json.JSONDecoder(), re.compile(r"\s*"), ""
    for block in source.blocks():
        rest, at = (rest + block.data.decode()).lstrip(), 0
        while at < len(rest):
            try:
                value, at = decoder.raw_decode(rest, at)
            except (ValueError, RecursionError):
                break  # perhaps the rest is still to come
            yield value
            at += len(blank.match(rest, at)[0])  # type: ignore[index]
        rest = rest[at:]
        if len(rest) > MAX_METRICS:
            raise LogError(f"{source.name}: a JSON document is longer than {MAX_METRICS >> 20} MiB")
    if rest:
        raise LogError(f"{source.name}: the JSON is broken or cut short where it reads {rest[:40]!r}")


def _get(value: Any, name: str) -> Any:
    """A value of an object by its camelCase name, or by the same name in snake_case."""
    if not isinstance(value, dict):
        return None
    return value.get(name, value.get(re.sub(r"([A-Z])", lambda match: "_" + match[1].lower(), name)))


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _metrics(document: Any) -> Iterator[dict[str, Any]]:
    for resource in _objects(_get(document, "resourceMetrics")):
        for scope in _objects(_get(resource, "scopeMetrics")):
            yield from _objects(scope.get("metrics"))


def _data(metric: dict[str, Any]) -> dict[str, Any] | None:
    """The data of a metric if it is a histogram; the SDK calls them `data` whatever they are."""
    known = _get(metric, "histogram") or _get(metric, "exponentialHistogram")
    if isinstance(known, dict):
        return known
    data = metric.get("data")
    first = next(iter(_objects(_get(data, "dataPoints"))), {})
    return data if {"bucketCounts", "bucket_counts", "scale"} & set(first) else None


def _labels(point: dict[str, Any]) -> dict[str, str]:
    """Attributes, which OTLP writes as a list of keys and typed values, and the SDK as an object."""
    attributes = point.get("attributes")
    if not isinstance(attributes, dict):
        attributes = {item.get("key"): item.get("value") for item in _objects(attributes)}
        typed = {key: value for key, value in attributes.items() if isinstance(value, dict)}
        attributes |= {key: next(iter(value.values()), "") for key, value in typed.items()}
    return {str(key): str(value) for key, value in attributes.items()}


def _histogram(point: dict[str, Any], unit: str) -> tuple[Histogram, str]:
    if "scale" in point:
        histogram = _exponential(point)
    else:
        bounds = [float(bound) for bound in _get(point, "explicitBounds") or []]
        counts = _counts(point)
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
    total = point.get("sum")
    return with_sum(histogram.in_unit(unit), float(total) if isinstance(total, (int, float)) else None, unit)


def _counts(buckets: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array([int(count) for count in _get(buckets, "bucketCounts") or []], dtype=np.int64)


def _exponential(point: dict[str, Any]) -> Histogram:
    """Bucket i of OpenTelemetry is (b^i, b^(i+1)], which is i + 1 of Prometheus."""
    if _counts(point.get("negative")).any():
        raise SampleError("there are latencies below 0 in this histogram: clocks that disagree cannot tell latencies")
    counts = _counts(point.get("positive"))
    first = int(_get(point.get("positive"), "offset") or 0) + 1
    zero = int(_get(point, "zeroCount") or 0), float(_get(point, "zeroThreshold") or 0.0)
    return native_buckets(range(first, first + counts.size), counts, int(point["scale"]), zero=zero)


def _whole(point: dict[str, Any], name: str) -> int:
    """A whole number, which OTLP writes as a text."""
    return int(_get(point, name) or 0)
