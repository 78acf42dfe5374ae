"""Every format of histograms: what is read, and what is refused with a reason."""

import base64
import gzip
import json
import struct
import zlib

import numpy as np
import pytest

from latfit.buckets import Histogram
from latfit.errors import LogError
from latfit.histograms import guaranteed_timeout
from latfit.logs import FORMATS, read_histograms, read_log
from latfit.logs.histogram_format import HistogramFormat
from latfit.logs.prometheus import parse_sample

GOLDEN = Histogram.of([0.05, 0.1, 0.25, 0.5, 1], [0, 10, 40, 30, 10], n_inf=6)
CSV = "le,count\n.05,0\n.1,10\n.25,40\n.5,30\n1,10\n+Inf,6\n"
CUMULATIVE = "le;cumulative\r\n+Inf;96\r\n.1;10\r\n.05;0\r\n.25;50\r\n.5;80\r\n1;90\r\n"


@pytest.fixture
def file(tmp_path):
    def write(content, name="h.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def one(path, where=(), **options):
    return read_histograms(path, where=where, **options).histogram()[0]


class TestCsv:
    @pytest.mark.parametrize("text", [CSV, CUMULATIVE, CSV.replace(",", "\t"), "\ufeff" + CSV])
    def test_reads(self, file, text):
        assert one(file(text)) == GOLDEN

    def test_gzip_and_unit(self, file):
        path = file(gzip.compress(b"le,count\n50,3\n100,4\n+Inf,1\n"))
        assert one(path, unit="ms") == Histogram.of([0.05, 0.1], [3, 4], n_inf=1)

    def test_other_columns_are_labels(self, file):
        path = file("site,le,count\na,1,5\na,inf,0\nb,1,7\nb,inf,1\n")
        assert one(path) == Histogram.of([1.0], [12], n_inf=1)
        assert one(path, ["site=b"]) == Histogram.of([1.0], [7], n_inf=1)
        assert one(path, ["site!=b"]) == Histogram.of([1.0], [5])
        assert one(path, ["site~^[b-z]"]) == Histogram.of([1.0], [7], n_inf=1)

    @pytest.mark.parametrize(
        ("text", "match"),
        [
            ("le,count\n1,5\n", r"\+Inf"),
            ("le,count\n1,5\n1,5\n+Inf,0\n", "line 3.*twice"),
            ("le,count\n1,5\n2\n", "line 3 has 1 fields instead of 2"),
            ("le,count\n1,many\n", "line 2: count is 'many'"),
            ("le,count\n1,-5\n+Inf,0\n", "not negative"),
            ("le,count\n1,2.5\n+Inf,0\n", "whole numbers"),
            ("le,cumulative\n1,5\n2,4\n+Inf,9\n", "le=1 has 5 and le=2 has 4: are they counts per bucket"),
            ("le,count\n-1,5\n2,4\n+Inf,9\n", "below 0"),
            ("le,count\n+Inf,9\n", "no bucket but"),
            ("le,count\n1,0\n+Inf,0\n", "empty"),
            ("le,count\n", "no row below"),
        ],
    )  # fmt: skip
    def test_refuses(self, file, text, match):
        with pytest.raises(LogError, match=match):
            one(file(text))

    def test_zeros_join_the_first_bucket(self, file):
        assert one(file("le,count\n0,3\n1,5\n+Inf,0\n")) == Histogram.of([1.0], [8])

    def test_rising_counts_are_not_guessed(self, file):
        rising = "le,count\n1,1\n2,2\n3,3\n4,4\n5,5\n+Inf,6\n"
        with pytest.raises(LogError, match=r"call the column count cumulative if .* per_bucket if"):
            read_histograms(file(rising))
        assert one(file(rising.replace("count", "per_bucket"))) == Histogram.of(
            [1, 2, 3, 4, 5], [1, 2, 3, 4, 5], n_inf=6
        )
        assert one(file(rising.replace("count", "cumulative"))) == Histogram.of([1, 2, 3, 4, 5], [1] * 5, n_inf=1)

    def test_a_falling_series_shows_that_counts_are_per_bucket(self, file):
        rising, falling = "a,1,0\na,2,0\na,3,0\na,4,1\na,+Inf,1\n", "b,1,3\nb,2,2\nb,3,1\nb,4,1\nb,+Inf,0\n"
        assert one(file("site,le,count\n" + rising + falling)) == Histogram.of([1, 2, 3, 4], [3, 2, 1, 2], n_inf=1)

    def test_one_bucket_with_all_is_the_same_either_way(self, file):
        assert one(file("le,count\n1,0\n2,0\n3,0\n4,0\n+Inf,7\n")) == Histogram.of([1, 2, 3, 4], [0] * 4, n_inf=7)


SCRAPE = """# HELP rpc_seconds How long
# TYPE rpc_seconds histogram
rpc_seconds_bucket{path="/a}",code="200",le="0.1"} 5 1395066363000
rpc_seconds_bucket{path="/a}",code="200",le="1.0"} 8
rpc_seconds_bucket{path="/a}",code="200",le="+Inf"} 9 # {trace_id="x"} 3.2 1520879607.789
rpc_seconds_sum{path="/a}",code="200"} 6.5
rpc_seconds_count{path="/a}",code="200"} 9
rpc_seconds_bucket{path="b \\"q\\" \\\\ \\n",le="0.1",} 1
rpc_seconds_bucket{path="b \\"q\\" \\\\ \\n",le="1.0",} 1
rpc_seconds_bucket{path="b \\"q\\" \\\\ \\n",le="+Inf",} 1
# TYPE gave_up counter
gave_up_total{path="/a}"} 3
gave_up_total{path="c"} 4
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 1.5
# TYPE up gauge
up 1
# EOF
"""


class TestPrometheus:
    def test_reads_series_labels_and_counters(self, file):
        log = read_histograms(file(SCRAPE))
        assert log.format == "prometheus"
        assert [s.labels["path"] for s in log.histograms] == ["/a}", 'b "q" \\ \n']
        assert log.histograms[0].value == Histogram.of([0.1, 1], [5, 3], n_inf=1, latency_sum=6.5)
        assert log.histogram()[0] == Histogram.of([0.1, 1], [6, 3], n_inf=1)
        assert log.select(["code=200"]).histogram()[0].latency_sum == 6.5
        assert log.counter("gave_up") == log.counter("gave_up_total") == 7
        assert log.counter('gave_up_total{path="c"}') == 4
        assert log.select(["path=/a}"]).counter("gave_up") == 3

    def test_two_scrapes(self, file):
        later = file(SCRAPE.replace('"0.1"} 5', '"0.1"} 6').replace('"1.0"} 8', '"1.0"} 10')
                     .replace('"+Inf"} 9', '"+Inf"} 11').replace("} 6.5", "} 7.1").replace("} 9\n", "} 11\n")
                     .replace('"/a}"} 3', '"/a}"} 5'), "later.prom")  # fmt: skip
        earlier = read_histograms(file(SCRAPE))
        gained = read_histograms(later).since(earlier)
        h = gained.histogram()[0]
        np.testing.assert_array_equal(h.counts, [1, 1])
        assert (h.n_inf, gained.counter("gave_up")) == (0, 2)
        with pytest.raises(LogError, match="restarted"):
            earlier.since(read_histograms(later))

    def test_the_sum_of_two_scrapes_tolerates_rounding(self, file):
        text = "".join(f'x_seconds_bucket{{le="{le}"}} {n}\n' for le, n in (("0.1", 10**9), ("+Inf", 10**9)))
        early = file(f"# TYPE x_seconds histogram\n{text}x_seconds_sum 50000000.1\n", "early")
        late = file(f"# TYPE x_seconds histogram\n{text.replace('000000', '000001')}x_seconds_sum 50000000.2\n", "late")
        h = read_histograms(late).since(read_histograms(early)).histogram()[0]
        assert h.returned > 0
        assert h.latency_sum == pytest.approx(0.1, rel=1e-6)

    @pytest.mark.parametrize(
        ("change", "match"),
        [
            (("} 8\n", "} 4\n"), "must not fall"),
            (('le="1.0"} 8', 'le="0.1"} 8'), "line 4.*twice"),
            (('rpc_seconds_count{path="/a}",code="200"} 9', 'rpc_seconds_count{path="/a}",code="200"} 10'),
             r"count is 10, but the bucket le=\+Inf has 9"),
            (('code="200",le="0.1"', 'code=200,le="0.1"'), "line 3.*label"),
            (("} 5 1395", "} five 1395"), "line 3.*five"),
            (('rpc_seconds_bucket{path="/a}",code="200",le="+Inf"} 9', "# "), r"\+Inf"),
        ],
    )  # fmt: skip
    def test_refuses(self, file, change, match):
        with pytest.raises(LogError, match=match):
            read_histograms(file(SCRAPE.replace(*change)))

    def test_an_impossible_sum_is_not_used(self, file):
        log = read_histograms(file(SCRAPE.replace("} 6.5", "} -3")))
        assert log.histograms[0].value.latency_sum is None
        assert any("sum is not used" in note for note in log.notes)

    def test_several_metrics_need_a_choice(self, file):
        path = file(SCRAPE + SCRAPE.replace("rpc_seconds", "db_milliseconds"))
        with pytest.raises(LogError, match="--where name=db_milliseconds"):
            one(path)
        np.testing.assert_allclose(one(path, ["name=db_milliseconds"]).edges, [0, 1e-4, 1e-3])
        with pytest.raises(LogError, match="no histogram meets"):
            one(path, ["name=nothing"])
        with pytest.raises(LogError, match="is not a condition"):
            one(path, ["name"])

    def test_summaries_are_refused(self, file):
        with pytest.raises(LogError, match="x is a summary: quantiles"):
            read_histograms(file('# TYPE x summary\nx{quantile="0.5"} 3\nx_sum 3\nx_count 1\n'))

    def test_names_inside_the_braces(self):
        sample = parse_sample('{"http.server.duration_bucket", "le"="1", le2="x"} 4')
        assert sample == ("http.server.duration_bucket", {"le": "1", "le2": "x"}, "4")

    def test_native_histograms_are_refused(self, file):
        text = "# TYPE x histogram\nx {count:3,sum:4,schema:0,positive_spans:[0:1],positive_deltas:[3]}\n"
        with pytest.raises(LogError, match="x is a native histogram"):
            read_histograms(file(text))


def otlp(**point):
    point = {"explicitBounds": [5, 10], "bucketCounts": ["1", "2", "3"], "count": "6", "sum": 60.0} | point
    metric = {"name": "latency", "unit": "ms", "histogram": {"dataPoints": [point], "aggregationTemporality": 2}}
    return {"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]}


class TestOtel:
    def test_reads(self, file):
        attributes = [{"key": "route", "value": {"stringValue": "/a"}}]
        log = read_histograms(file(json.dumps(otlp(attributes=attributes))))
        assert log.histograms[0].labels == {"route": "/a"}
        assert log.histogram()[0] == Histogram.of([0.005, 0.01], [1, 2], n_inf=3, latency_sum=0.06)

    def test_the_latest_cumulative_point_of_each_start_counts(self, file):
        later = otlp(bucketCounts=["2", "2", "3"], count="7", timeUnixNano="200", startTimeUnixNano="1")
        earlier = otlp(timeUnixNano="100", startTimeUnixNano="1")
        restarted = otlp(bucketCounts=["1", "0", "0"], count=1, sum=1, timeUnixNano="300", startTimeUnixNano="250")
        text = "\n".join(json.dumps(part) for part in (later, earlier, restarted))
        np.testing.assert_array_equal(one(file(text)).counts, [3, 2])

    def test_deltas_add_up(self, file):
        documents = [otlp(timeUnixNano="100"), otlp(timeUnixNano="50")]
        for document in documents:
            document["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]["histogram"]["aggregationTemporality"] = 1
        text = "".join(json.dumps(document, indent=2) for document in documents)
        assert one(file(text)) == Histogram.of([0.005, 0.01], [2, 4], n_inf=6, latency_sum=0.12)

    def test_exponential(self, file):
        document = otlp()
        metric = document["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]
        del metric["histogram"]
        metric["exponentialHistogram"] = {"dataPoints": [
            {"scale": 1, "zeroCount": 1, "positive": {"offset": 2, "bucketCounts": [3, 0, 5]}, "count": 9, "sum": 30}
        ]}  # fmt: skip
        h = one(file(json.dumps(document)))
        np.testing.assert_allclose(h.edges, 1e-3 * np.array([0, 2, 2**1.5, 4, 2**2.5]))
        np.testing.assert_array_equal(h.counts, [1, 3, 0, 5])

    @pytest.mark.parametrize(
        ("point", "match"),
        [
            ({"bucketCounts": ["1", "2"]}, "2 counts do not match 2 bounds"),
            ({"count": "7"}, "count is 7, but the buckets have 6"),
            ({"explicitBounds": [10, 5]}, "rise strictly"),
            ({"bucketCounts": ["1", "x", "3"]}, "invalid literal"),
            ({"bucketCounts": ["1", "-2", "3"]}, "below 0"),
        ],
    )
    def test_refuses(self, file, point, match):
        with pytest.raises(LogError, match=match):
            one(file(json.dumps(otlp(**point))))

    def test_refuses_broken_json_and_other_metrics(self, file):
        with pytest.raises(LogError, match="cut short"):
            one(file(json.dumps(otlp())[:-5]))
        document = otlp()
        document["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0].pop("histogram")
        with pytest.raises(LogError, match="no data point of a histogram here; it has: latency"):
            one(file(json.dumps(document)))


class TestHdr:
    @pytest.mark.parametrize(
        ("payload", "match"),
        [("HISTFAAAAEV42pNp", "line 2.*damaged"), ("HIST%%%", "base64"), ("HISTFAAAAA==", "damaged")],
    )
    def test_refuses_damage(self, file, payload, match):
        with pytest.raises(LogError, match=match):
            read_histograms(file(f"#[Histogram log format version 1.2]\n0.1,1.0,2.7,{payload}\n"))

    def test_a_line_that_is_not_an_interval_is_refused(self, file):
        with pytest.raises(LogError, match="line 2 is not an interval"):
            read_histograms(file("#[Histogram log format version 1.2]\n0.1,1.0\n"))

    @pytest.mark.parametrize(("version", "word"), [("V0", "q"), ("V1", "h"), ("V1", "i"), ("V1", "q")])
    def test_earlier_encodings(self, file, version, word):
        """Words of a fixed size: three values of 1, one of 5, and two of 2050, whose bucket is [2050, 2052)."""
        counts = [0] * 2050
        counts[1], counts[5], counts[2048 + 1] = 3, 1, 2
        words = struct.pack(f">{len(counts)}{word}", *counts)
        size = struct.calcsize(word) << 4
        if version == "V0":
            raw = struct.pack(">Iiqqq", 0x1C849308 | size, 3, 1, 1 << 20, 6) + words
        else:
            raw = struct.pack(">Iiiiqqd", 0x1C849301 | size, len(words), 0, 3, 1, 1 << 20, 1.0) + words
        packed = zlib.compress(raw)
        cookie = (0x1C849309 if version == "V0" else 0x1C849302) | size
        payload = base64.b64encode(struct.pack(">Ii", cookie, len(packed)) + packed).decode()
        h = one(file(f"#[Histogram log format version 1.2]\n0.1,1.0,2.7,{payload}\n"))
        used = h.counts > 0
        assert h.counts[used].tolist() == [3, 1, 2]
        assert h.edges[:-1][used] == pytest.approx([1e-9, 5e-9, 2050e-9])
        assert h.edges[1:][used] == pytest.approx([2e-9, 6e-9, 2052e-9])

    def test_jhiccup(self, shared):
        h = one(shared / "jhiccup.hlog")
        assert h.returned == 48_761
        assert h.edges[-1] == pytest.approx(1.8035507, rel=1e-6)


def test_other_commands_refuse_histograms_and_say_which_take_them(file):
    with pytest.raises(LogError, match="latfit timeout and latfit analyze take histograms"):
        read_log(file(CSV))


def test_formats_are_registered():
    kinds = {name for name, kind in FORMATS.items() if isinstance(kind, HistogramFormat)}
    assert kinds == {"prometheus", "hdrhistogram", "otel-histogram", "histogram-csv", "locust"}


def test_several_files_add_up(file, tmp_path):
    file(CSV, "a.csv")
    file(CUMULATIVE, "b.csv")
    assert one(tmp_path / "*.csv") == GOLDEN + GOLDEN
    file("latency\n5\n6\n", "c.csv")
    with pytest.raises(LogError, match="holds histograms"):
        one(tmp_path / "*.csv")


LOCUST = """Type,Name,Request Count,Failure Count,Median Response Time,50%,95%,100%
GET,/a,200,0,3,3,120,2100
GET,/b,100,40,3,3,7,9
,Aggregated,300,40,3,3,120,2100
"""


def test_locust_percentiles_are_buckets(tmp_path):
    path = tmp_path / "stats.csv"
    path.write_text(LOCUST)
    log = read_histograms(path)
    (series,) = log.histograms  # /b has failures, whose times are among its percentiles
    assert (series.name, series.labels) == ("/a", {"type": "GET"})
    assert series.value.edges.tolist() == [0.0, 0.0035, 0.125, 2.15]  # each percentile is rounded
    assert (series.value.counts.tolist(), series.value.n_inf) == ([100, 90, 10], 0)
    assert "1 rows with failures" in log.notes[0]
    path.write_text(LOCUST.replace(",0,3,3,120", ",1,3,3,120"))
    with pytest.raises(LogError, match=r"events\.request"):
        read_histograms(path)


def test_locust_statistics_of_a_real_test(shared):
    assert len(read_histograms(shared / "locust-stats.csv").histograms) == 1


@pytest.mark.parametrize("kind", ["count", "cumulative"])
def test_counts_beyond_what_can_be_counted_are_refused_with_their_line(kind, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(f"le,{kind}\n0.1,1e308\n0.5,1e308\n+Inf,6\n")
    with pytest.raises(LogError, match=r"line 2: 1e\+308 is more than anything can have counted"):
        read_histograms(path)


def scraped(label, *series):
    """A scrape with a histogram a value of the label: how many were at or below 10 ms, 100 ms, 1 s and in all."""
    lines = ["# TYPE rpc_seconds histogram"]
    for value, counts in series:
        for le, count in zip(("0.01", "0.1", "1", "+Inf"), counts, strict=True):
            lines.append(f'rpc_seconds_bucket{{{label}="{value}",le="{le}"}} {count}')
        lines.append(f'rpc_seconds_count{{{label}="{value}"}} {counts[-1]}')
    return "\n".join(lines) + "\n"


FAST_ERRORS = [("code", "200", "500", "504"), ("status", "2xx", "5xx", "504"), ("grpc_code", "OK", "Unavailable",
               "DeadlineExceeded"), ("outcome", "SUCCESS", "SERVER_ERROR", "timeout"),
               ("exception", "None", "IOException", "TimeoutException")]  # fmt: skip


@pytest.mark.parametrize(("label", "good", "bad", "out"), FAST_ERRORS)
def test_quick_errors_are_not_completions(file, label, good, bad, out):
    path = file(scraped(label, (good, (0, 100, 900, 900)), (bad, (500, 500, 500, 500)), (out, (0, 0, 0, 9))))
    found, notes = read_histograms(path).histogram()
    assert (found.counts.tolist(), found.failed, found.lost) == ([0, 100, 800], 500, 9)
    assert guaranteed_timeout(found).optimum.timeout != 0.01  # under which no answer ever came
    assert sum("have no result" in note for note in notes) == 2
    only, _ = read_histograms(path, where=[f"{label}={bad}"]).histogram()
    assert (only.returned, only.failed) == (500, 0)  # asked for, they are what is looked at


def test_series_that_one_timeout_would_harm(file, run, tmp_path):
    """Quick pages and slow reports in one scrape: under the timeout of the pages no report would ever come."""
    path = file(scraped("handler", ("/page", (5000, 5000, 5000, 5000)), ("/report", (0, 0, 100, 100))))
    found = guaranteed_timeout(read_histograms(path).histogram()[0])
    assert (found.withheld, found.harmed) == (("mixed",), '{handler="/report"}')
    assert '{handler="/report"}' in run("timeout", path).stdout
    told = json.loads(run("timeout", path, "--json").stdout)
    assert (told["verdict"], told["timeout"], told["withheld"]) == ("withheld", None, ["mixed"])
    run("batch", path, "-o", tmp_path / "out.jsonl")
    row = json.loads((tmp_path / "out.jsonl").read_text())
    assert (row["verdict"], row["withheld"], row["timeout"]) == ("withheld", "mixed", None)
    alike = file(scraped("handler", ("/page", (50, 80, 90, 90)), ("/other", (45, 85, 90, 90))), "alike")
    assert guaranteed_timeout(read_histograms(alike).histogram()[0]).withheld == ()


@pytest.mark.parametrize("name", ["le_ms", "le (ms)", "LE_MS"])
def test_units_in_the_name_of_bounds(file, name):
    assert one(file(f"{name},count\n50,3\n100,4\n+Inf,1\n")) == Histogram.of([0.05, 0.1], [3, 4], n_inf=1)
    assert one(file(f"{name},count\n50,3\n100,4\n+Inf,1\n"), unit="s") == Histogram.of([50, 100], [3, 4], n_inf=1)
