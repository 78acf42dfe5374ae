"""Valid small histograms of every format, to be damaged, and the commands that meet them."""

import base64
import json
import random
import zlib

from fuzzing.logs import TextLog, seconds

EDGES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


def _counts(rng: random.Random, n: int) -> list[int]:
    return [rng.choice((0, rng.randrange(9), rng.randrange(1000))) for _ in range(n)]


def _edges(rng: random.Random, n: int) -> list[float]:
    return sorted(rng.sample(EDGES, min(n, len(EDGES))))


def bucket_csv(rng: random.Random, n: int) -> TextLog:
    """Counts in each bucket, or at or below its end; perhaps with a label."""
    edges = [*map(str, _edges(rng, n)), "+Inf"]
    counts = _counts(rng, len(edges))
    kind = rng.choice(("count", "cumulative"))
    if kind == "cumulative":
        counts = [sum(counts[: i + 1]) for i in range(len(counts))]
    rows = [[le, str(count)] for le, count in zip(edges, counts, strict=True)]
    if rng.random() < 0.3:
        return TextLog("histogram-csv", [f"le,{kind},site"], [[*row, "a"] for row in rows], ",", header=True)
    return TextLog("histogram-csv", [f"le,{kind}"], rows, ",", header=True)


def prometheus(rng: random.Random, n: int) -> TextLog:
    """A scrape of one metric with some paths, its sum and count, and a counter."""
    rows = []
    edges = _edges(rng, n)
    for path in ("/a", "/b")[: rng.choice((1, 2))]:
        counts = _counts(rng, len(edges) + 1)
        cumulative = [sum(counts[: i + 1]) for i in range(len(counts))]
        for le, count in zip([*map(str, edges), "+Inf"], cumulative, strict=True):
            rows.append([f'rpc_seconds_bucket{{path="{path}",le="{le}"}}', str(count)])
        mean = sum(count * end for count, end in zip(counts, [*edges, 20], strict=True))
        rows += [[f'rpc_seconds_sum{{path="{path}"}}', f"{mean:g}"],
                 [f'rpc_seconds_count{{path="{path}"}}', str(cumulative[-1])]]  # fmt: skip
    rows.append(["timeouts_total", str(rng.randrange(9))])
    return TextLog("prometheus", ["# TYPE rpc_seconds histogram"], rows, " ")


def otel(rng: random.Random, n: int) -> TextLog:
    """One document a line, each with a data point."""
    rows = []
    edges = _edges(rng, n)
    for at in range(rng.choice((1, 3))):
        counts = _counts(rng, len(edges) + 1)
        point = {"explicitBounds": edges, "bucketCounts": counts, "count": sum(counts), "timeUnixNano": str(at)}
        name = "histogram"
        if rng.random() < 0.3:
            point = {"scale": rng.randrange(-3, 6), "zeroCount": 1, "count": sum(counts) + 1,
                     "positive": {"offset": rng.randrange(-9, 9), "bucketCounts": counts}}  # fmt: skip
            name = "exponentialHistogram"
        metric = {
            "name": "rpc",
            "unit": "s",
            name: {"dataPoints": [point], "aggregationTemporality": rng.choice((1, 2))},
        }
        text = json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]})
        rows.append(text.split(", "))
    return TextLog("otel-histogram", [], rows, ", ")


def hdr(rng: random.Random, n: int) -> TextLog:
    """Intervals with V2 payloads that are made here, byte by byte."""
    rows = []
    for at in range(n):
        varints = bytes(rng.choice((0, 1, 2, 40)) for _ in range(rng.randrange(40)))  # zigzag: 0, −1 (a zero), 1, 20
        header = (0x1C849303 | 0x10, len(varints), 0, 2, 1, 3_600_000_000)
        widths = (4, 4, 4, 4, 8, 8)
        data = b"".join(part.to_bytes(width) for part, width in zip(header, widths, strict=True))
        data += bytes.fromhex("3ff0000000000000") + varints
        packed = zlib.compress(data)
        payload = base64.b64encode((0x1C849304 | 0x10).to_bytes(4) + len(packed).to_bytes(4) + packed).decode()
        tag = rng.choice(("", "", "Tag=a,"))
        rows.append([f"{tag}{at}.127", "1.007", "2.769", payload])
    return TextLog("hdrhistogram", ["#[Histogram log format version 1.3]"], rows, ",")


def locust(rng: random.Random, n: int) -> TextLog:
    """Percentiles only: a histogram."""
    head = "Type,Name,Request Count,Failure Count,Median Response Time,Average Response Time,50%,66%,99%,100%"
    return TextLog("locust", [head], [["GET", "/", str(n), "0", *[f"{seconds(rng):g}"] * 6]], ",", header=True)


MAKERS = {"bucket-csv": bucket_csv, "prometheus": prometheus, "otel-histogram": otel, "hdr": hdr, "locust": locust}


def arguments(rng: random.Random, log: str, output: str, known: str | None) -> tuple[str, ...]:
    """A command that takes histograms, with some of their options."""
    if rng.random() < 0.1:
        return ("batch", log, "-o", output + ".csv", "--workers", "1", "--resamples", "0", "--no-test")
    options = {
        "--lost": ("0", "4", "timeouts_total", "timeouts", "nothing", "-1", "99999999999999999999"),
        "--failures": ("2", "timeouts_total"),
        "--sum": ("0", "5", "1e300", "100ms"),
        "--cost": ("0", "0.01", "1e300", "1e-300"),
        "--where": ("path=/a", "name~rpc", "tag=a", "site!=a", "path~["),
        "--unit": ("ms", "ns"),
        "--before": (log,),
        "--copies": ("2",),
        "--law": ("lognormal", "gamma", "pareto"),
    }
    chosen = [name for name in options if rng.random() < 0.12]
    told = ("--format", known) if known else ()
    words = (word for name in chosen for word in (name, rng.choice(options[name])))
    return (
        rng.choice(("timeout", "timeout", "analyze")),
        log,
        *words,
        *told,
        *(("--json",) if rng.random() < 0.8 else ()),
    )
