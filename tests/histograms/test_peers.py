"""Histograms that the real libraries write, read back and compared with the latencies that went in."""

import io
import json

import numpy as np
import pytest

from latfit.logs import read_histograms
from latfit.logs.prometheus import parse_sample

X = np.round(np.random.default_rng(11).lognormal(-1.5, 1.2, 4000), 9)


def check(histogram, x, *, rel=1e-12, least=0):
    """Every edge has the number of latencies at or below it."""
    cumulative = np.cumsum(histogram.counts)
    edges = histogram.edges[1:] * (1 + rel)
    np.testing.assert_array_equal(np.searchsorted(np.sort(x), edges, side="right")[cumulative >= least],
                                  cumulative[cumulative >= least])  # fmt: skip
    assert histogram.returned == x.size


class TestPrometheusClient:
    @pytest.fixture
    def client(self):
        return pytest.importorskip("prometheus_client", reason="the package prometheus-client is not installed")

    @pytest.fixture
    def registry(self, client):
        registry = client.CollectorRegistry()
        histogram = client.Histogram("rpc_seconds", 'with "quotes"', ["path"], registry=registry)
        for path, x in (('/a"\\\n}', X[:1500]), ("/b", X[1500:])):
            for value in x:
                histogram.labels(path).observe(value)
        client.Counter("timeouts", "gave up", registry=registry).inc(17)
        return registry

    @pytest.mark.parametrize("kind", ["exposition", "openmetrics.exposition"])
    def test_round_trip(self, client, registry, tmp_path, kind):
        writer = __import__(f"prometheus_client.{kind}", fromlist=["generate_latest"])
        path = tmp_path / "scrape"
        path.write_bytes(writer.generate_latest(registry))
        log = read_histograms(path)
        check(log.histogram()[0], X)
        check(log.select(["path=/b"]).histogram()[0], X[1500:])
        assert log.histogram()[0].latency_sum == pytest.approx(X.sum())
        assert log.counter("timeouts") == 17
        assert log.histograms[0].labels == {"path": '/a"\\\n}'}

    def test_two_scrapes(self, client, registry, tmp_path):
        (tmp_path / "before").write_bytes(client.generate_latest(registry))
        extra = np.array([0.003, 0.2, 30.0])
        histogram = registry._names_to_collectors["rpc_seconds"]
        for value in extra:
            histogram.labels("/b").observe(value)
        (tmp_path / "after").write_bytes(client.generate_latest(registry))
        gained = read_histograms(tmp_path / "after").since(read_histograms(tmp_path / "before")).histogram()[0]
        check(gained, extra)
        assert gained.latency_sum == pytest.approx(extra.sum(), rel=1e-6)

    def test_every_line_as_its_parser_reads_it(self, client, registry):
        text = client.generate_latest(registry).decode()
        families = __import__("prometheus_client.parser", fromlist=["x"]).text_string_to_metric_families(text)
        theirs = {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}
        ours = [parse_sample(line) for line in text.splitlines() if not line.startswith("#")]
        assert {(s.name, tuple(sorted(s.labels.items()))): float(s.value) for s in ours} == theirs


class TestOpenTelemetry:
    @pytest.fixture
    def written(self):
        """What the SDK writes of some latencies, by the way in which it aggregates them."""
        metrics = pytest.importorskip("opentelemetry.sdk.metrics", reason="opentelemetry-sdk is not installed")
        export = __import__("opentelemetry.sdk.metrics.export", fromlist=["x"])
        view = __import__("opentelemetry.sdk.metrics.view", fromlist=["x"])

        def write(aggregation, x, unit="s"):
            reader = export.InMemoryMetricReader()
            kind = getattr(view, aggregation)()
            views = [view.View(instrument_name="rpc", aggregation=kind)]
            provider = metrics.MeterProvider(metric_readers=[reader], views=views)
            recorder = provider.get_meter("m").create_histogram("rpc", unit=unit)
            provider.get_meter("m").create_counter("other").add(3)
            for value in x:
                recorder.record(float(value), {"route": "/a"})
            text = reader.get_metrics_data().to_json()
            provider.shutdown()
            return text

        return write

    def test_explicit(self, written, tmp_path):
        path = tmp_path / "metrics.json"
        path.write_text(written("ExplicitBucketHistogramAggregation", 1000 * X, unit="ms"))
        log = read_histograms(path)
        assert log.histograms[0].labels == {"route": "/a"}
        check(log.histogram()[0], X)
        assert log.histogram()[0].latency_sum == pytest.approx(X.sum())

    def test_exponential(self, written, tmp_path):
        path = tmp_path / "metrics.json"
        path.write_text(written("ExponentialBucketHistogramAggregation", X))
        h = read_histograms(path).histogram()[0]
        check(h, X)
        assert np.count_nonzero(h.counts) > 20

    def test_counts_that_do_not_match_their_bounds(self, written, tmp_path):
        document = json.loads(written("ExplicitBucketHistogramAggregation", X))
        metrics = document["resource_metrics"][0]["scope_metrics"][0]["metrics"]
        next(m for m in metrics if m["name"] == "rpc")["data"]["data_points"][0]["bucket_counts"].pop()
        path = tmp_path / "metrics.json"
        path.write_text(json.dumps(document))
        with pytest.raises(Exception, match="do not match"):
            read_histograms(path)


class TestHdr:
    @pytest.fixture
    def write(self, tmp_path):
        """A log of tagged intervals in the order given, written by hdrh."""
        hdrh = pytest.importorskip("hdrh.histogram", reason="the package hdrhistogram is not installed")
        log = __import__("hdrh.log", fromlist=["x"])

        def write(intervals, digits=2, highest=10**12):
            text = io.StringIO()
            writer = log.HistogramLogWriter(text)
            writer.output_log_format_version()
            writer.output_legend()
            for at, (tag, x) in enumerate(intervals):
                histogram = hdrh.HdrHistogram(1, highest * (1 + at), digits)
                for value in x:
                    histogram.record_value(int(value * 1e9))
                start = 1000 * (len(intervals) - at)
                if tag:
                    text.write(f"Tag={tag},")  # hdrh reads tags, but does not write them
                writer.output_interval_histogram(histogram, start, start + 1000)
            path = tmp_path / "x.hlog"
            path.write_text(text.getvalue())
            return path

        return write

    @pytest.mark.slow
    def test_slow_values_that_come_together(self, write, run):
        """Stalls of a second, each written as what every millisecond of it had still to wait, as jHiccup does."""
        rng = np.random.default_rng(4)
        usual = [rng.uniform(1e-4, 4e-4, 400) for _ in range(30)]
        stalls = [np.concatenate([x, np.arange(1, 400) / 1000]) if at % 10 == 3 else x for at, x in enumerate(usual)]
        mixed = rng.permutation(np.concatenate(stalls))
        for intervals, withheld in ((stalls, True), (np.array_split(mixed, 30), False)):
            path = write([(None, x) for x in intervals])
            found = json.loads(run("analyze", path, "--json").stdout)
            own = found["timeout"]
            assert own["withheld"] == (["dependent"] if withheld else [])
            assert (own["timeout"] is None) == withheld
            assert (own["if_independent"] or own)["timeout"] < 1e-3
            assert ("dependence" if withheld else "untested") in [w["code"] for w in found["warnings"]]
            headline = run("timeout", path).stdout.split("\n\n")[1].splitlines()[0]
            assert any(letter.isdigit() for letter in headline) != withheld  # a time is named only if it is to be set

    def test_correlation_within_intervals(self, write):
        """The textbook's estimator on single values, against counts in buckets."""
        rng = np.random.default_rng(5)
        groups = [rng.lognormal(-6 + 0.8 * rng.normal(), 0.3, int(rng.integers(50, 90))) for _ in range(40)]
        found, _ = read_histograms(write([(None, x) for x in groups], digits=3)).histogram()
        limit = np.sort(np.concatenate(groups))[int(np.ceil(0.95 * sum(map(len, groups)))) - 1]
        slow = [x >= limit for x in groups]
        n, N = np.array(list(map(len, slow))), sum(map(len, slow))
        mean = np.concatenate(slow).mean()
        between = sum(len(x) * (x.mean() - mean) ** 2 for x in slow) / 39
        within = sum(((x - x.mean()) ** 2).sum() for x in slow) / (N - 40)
        size = (N - (n**2).sum() / N) / 39
        assert found.together == pytest.approx((between - within) / (between + (size - 1) * within), rel=0.05)
        assert found.together > 0.2

    def test_round_trip_with_tags_and_unordered_intervals(self, write):
        path = write([("a", X[:1000]), (None, X[1000:2000]), ("a", X[2000:])])
        log = read_histograms(path)
        whole = np.floor(X * 1e9) * 1e-9
        check(log.histogram()[0], whole, rel=1e-13)
        check(log.select(["tag=a"]).histogram()[0], np.concatenate([whole[:1000], whole[2000:]]), rel=1e-13)
        assert any("nanoseconds" in note for note in log.notes)
        widths = np.diff(log.histogram()[0].edges)[log.histogram()[0].counts > 0]
        assert (widths / log.histogram()[0].edges[1:][log.histogram()[0].counts > 0]).max() < 0.011

    def test_a_value_on_an_edge_is_in_the_bucket_that_begins_there(self, write):
        h = read_histograms(write([(None, [256.5e-9, 257.5e-9, 258.5e-9])], digits=2), unit="ns").histogram()[0]
        k = np.flatnonzero(h.counts)
        np.testing.assert_array_equal(h.counts[k], [2, 1])
        assert h.edges[k[0]] < 256e-9 <= h.edges[k[0] + 1]
        assert h.edges[k[1]] < 258e-9 <= h.edges[k[1] + 1]
