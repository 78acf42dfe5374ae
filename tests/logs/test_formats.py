"""Every format: what is read from a small log of it, and from the real logs beside the checkout."""

import gzip
import io
import itertools
import shutil

import numpy as np
import pandas as pd
import pytest

import latfit
from conftest import DATA, EGEE
from latfit.logs import FORMATS
from latfit.logs.histogram_format import HistogramFormat

# file: (format, completed, failed, censored, lost, lines refused)
EXPECTED = {
    "probes.csv": ("csv", 2, 1, 1, 1, [7]),
    "pairs.tsv": ("csv", 2, 1, 1, 0, [3]),
    "requests.jsonl": ("jsonl", 2, 1, 1, 0, [4]),
    "jobs.swf": ("swf", 3, 0, 1, 0, [7, 10, 11]),
    "jobs.gwf": ("gwf", 2, 0, 1, 0, []),
    "sacct-header.txt": ("sacct", 2, 0, 2, 0, [8, 9]),
    "sacct.txt": ("sacct", 1, 0, 1, 0, []),
    "yearless.log": ("htcondor", 1, 0, 2, 0, [17]),
    "iso.log": ("htcondor", 1, 0, 0, 0, [5]),
    "results.jtl": ("jmeter", 2, 2, 1, 0, [6]),
    "array.json": ("json", 2, 1, 1, 0, [9]),
    "requests.access": ("access", 2, 1, 1, 0, [7, 8]),
    "requests.ltsv": ("ltsv", 1, 1, 1, 0, [6]),
    "requests.haproxy": ("haproxy", 3, 1, 4, 0, [11]),
    "requests.envoy": ("envoy", 2, 1, 2, 0, [7]),
    "requests.alb": ("alb", 2, 1, 1, 0, [5, 6]),
    "requests.w3c": ("w3c", 1, 1, 1, 0, [6, 7]),
    "results.k6": ("k6", 2, 2, 1, 0, [9]),
    "results.k6-json": ("k6-json", 1, 1, 1, 0, [6]),
    "simulation.gatling": ("gatling", 1, 1, 1, 0, [6]),
    "results.hey": ("hey", 1, 1, 0, 0, [4]),
    "results.vegeta": ("vegeta", 1, 1, 1, 0, [4]),
    "spans.otel": ("otel", 1, 1, 1, 0, [2, 4]),
    "spans.jaeger": ("jaeger", 1, 1, 0, 0, []),
    "jobs.pbs": ("pbs", 3, 0, 2, 0, [11, 12]),
    "jobs.sge": ("sge", 4, 0, 1, 0, [5, 8, 10]),
    "jobs.lsf": ("lsf", 3, 0, 1, 0, [6]),
    "tasks.nextflow": ("nextflow", 3, 0, 1, 0, [7]),
    "runs.aslib": ("aslib", 2, 1, 1, 0, [16, 17]),
    "checks.upptime": ("upptime", 2, 0, 0, 1, [5]),
    "runs.github-actions": ("github-actions", 1, 1, 2, 0, [7, 8]),
    "run.probe": ("probe", 1, 1, 2, 0, [10]),
    "results.ab": ("ab", 2, 0, 0, 0, [4]),
    "output.ping": ("ping", 3, 0, 0, 3, []),
    "requests.logfmt": ("logfmt", 2, 1, 1, 0, [6]),
    "checks.table": ("table", 2, 1, 1, 0, [6, 7]),
    "requests.squid": ("squid", 2, 1, 1, 0, []),
    "requests.caddy": ("caddy", 2, 1, 0, 0, []),
    "requests.traefik": ("traefik", 1, 1, 1, 0, []),
    "server.mongod": ("mongod", 1, 1, 0, 0, []),
    "queries.mysql-slow": ("mysql-slow", 1, 1, 0, 0, []),
    "report.lambda": ("lambda", 1, 1, 1, 0, []),
    "worker.celery": ("celery", 1, 1, 0, 0, []),
    "router.heroku": ("heroku", 1, 1, 1, 0, []),
    "transactions.pgbench": ("pgbench", 2, 0, 0, 1, []),
    "samples.jmeter-xml": ("jmeter-xml", 1, 1, 1, 0, []),
    "jobs.slurm-json": ("slurm-json", 1, 0, 2, 0, []),
    "history.condor-history": ("condor-history", 1, 0, 2, 0, []),
    "workflow.wfinstances": ("wfinstances", 2, 0, 0, 0, []),
    "spans.zipkin": ("zipkin", 1, 1, 0, 0, []),
    "runs.github-runs": ("github-runs", 1, 1, 1, 0, []),
}
SUMMARIES = {"wrk"}  # recognised, and always refused


def read(path, **options):
    return latfit.read_log(path, max_refused=1, **options)


def latencies(log, status):
    return sorted(log.frame.loc[log.frame["status"] == status, "latency"])


def test_every_format_has_a_fixture():
    histograms = {name for name, kind in FORMATS.items() if isinstance(kind, HistogramFormat)}  # tests/histograms
    assert {expected[0] for expected in EXPECTED.values()} | {"parquet", "pattern"} | SUMMARIES | histograms == set(
        FORMATS
    )


@pytest.mark.parametrize("name", EXPECTED)
def test_counts_and_refused_lines(name):
    kind, *counts, refused = EXPECTED[name]
    log = read(DATA / name)
    assert log.facts.format == kind
    assert list(log.counts.values()) == counts
    assert sorted(r.line for r in log.facts.refused.first) == refused
    assert log.facts.refused.count == len(refused)
    assert sum(log.facts.refused.reasons.values()) == len(refused)


CHANGES = ["gzip", "bom", "crlf", "stdin", "no last line end", "utf-16"]


@pytest.mark.parametrize(("name", "change"), [*zip(EXPECTED, itertools.cycle(CHANGES), strict=False)])
def test_the_wrapping_does_not_matter(name, change, tmp_path, monkeypatch):
    data = (DATA / name).read_bytes()
    if change == "bom":
        data = b"\xef\xbb\xbf" + data
    elif change == "crlf":
        data = data.replace(b"\n", b"\r\n")
    elif change == "no last line end":
        data = data.rstrip(b"\n")
    elif change == "utf-16":
        data = data.decode().encode("utf-16")
    path = tmp_path / "log"
    path.write_bytes(gzip.compress(data) if change == "gzip" else data)
    if change == "stdin":
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data))))
    there = read("-" if change == "stdin" else path)
    plain = read(DATA / name)
    pd.testing.assert_frame_equal(there.frame, plain.frame)
    assert [r.line for r in there.facts.refused.first] == [r.line for r in plain.facts.refused.first]


ENDINGS = ["csv", "parquet", "jsonl"]


@pytest.mark.parametrize(("name", "ending"), [*zip(EXPECTED, itertools.cycle(ENDINGS), strict=False)])
def test_the_canonical_table_reads_back_the_same(name, ending, tmp_path):
    log = read(DATA / name)
    facts, counts = latfit.convert_log(DATA / name, tmp_path / f"out.{ending}", max_refused=1)
    again = read(tmp_path / f"out.{ending}")
    assert counts == log.counts == again.counts
    assert facts.refused.count == log.facts.refused.count
    assert (again.facts.queue, again.facts.work) == (log.facts.queue, log.facts.work)
    for column in ("latency", "submitted"):
        pd.testing.assert_series_equal(again.frame[column], log.frame[column])
    assert [p.name for p in tmp_path.iterdir()] == [f"out.{ending}"]


def test_csv_outcomes_times_and_columns():
    log = read(DATA / "probes.csv")
    assert latencies(log, "completed") == [12.5, 17]
    assert latencies(log, "failed") == [30]
    assert latencies(log, "censored") == [600]
    assert log.frame["submitted"][0] == pd.Timestamp("2026-03-01T00:00:00Z")
    assert list(log.frame["site"]) == ["a", "a", "b", "b", "b"]
    assert "negative latency" in log.facts.refused.first[0].reason


def test_pairs_of_times_and_probes_out_at_the_end():
    log = read(DATA / "pairs.tsv")
    assert latencies(log, "completed") == [90, 90]
    assert latencies(log, "failed") == [120]
    assert latencies(log, "censored") == [160]  # submitted 00:00:20, the log ends at 00:03:00
    assert any("'End Time' minus 'Start Time'" in note for note in log.facts.notes)


def test_json_lines_units_and_epochs():
    log = read(DATA / "requests.jsonl")
    assert latencies(log, "completed") == [0.25, 1.2505]
    assert log.frame["submitted"][0] == pd.Timestamp("2026-01-01T00:00:00Z")


def test_swf_waits_runs_and_cancellations():
    log = read(DATA / "jobs.swf")
    assert latencies(log, "completed") == [0, 10, 35.5]
    assert latencies(log, "censored") == [70]
    assert log.facts.skipped == {"executions of a part of a job": 1}
    assert log.frame["submitted"][0] == pd.Timestamp(10**9, unit="s", tz="UTC")
    whole = read(DATA / "jobs.swf", columns={"latency": "wait+run"})
    assert latencies(whole, "completed") == [20, 50, 95.5, 110]


def test_sacct_from_eligible_and_pending():
    log = read(DATA / "sacct-header.txt")
    assert latencies(log, "completed") == [30, 1200]
    assert latencies(log, "censored") == [1200, 9000]
    assert log.facts.skipped == {"steps of jobs": 2}
    fairer = read(DATA / "sacct-header.txt", columns={"submitted": "eligible"})
    assert latencies(fairer, "completed") == [30, 900]


def test_sacct_times_are_local(tmp_path):
    log = read(DATA / "sacct.txt", timezone="Europe/Paris")
    assert log.frame["submitted"][0] == pd.Timestamp("2026-03-01T20:43:34Z")


def test_condor_over_new_year():
    log = read(DATA / "yearless.log", year=2019)
    assert latencies(log, "completed") == [120]
    assert latencies(log, "censored") == [240, 600]
    assert log.frame["submitted"].max() == pd.Timestamp("2020-01-01T00:06:00Z")
    guessed = read(DATA / "yearless.log")
    assert any("writes no years" in note for note in guessed.facts.notes)
    assert guessed.frame["submitted"].max() <= pd.Timestamp.now(tz="UTC")


def test_jmeter_errors_fail_and_timeouts_are_censored():
    log = read(DATA / "results.jtl")
    assert latencies(log, "completed") == [0.537, 0.64]
    assert latencies(log, "failed") == [0.012, 21]
    assert latencies(log, "censored") == [30]
    assert any("200 (2) completed; 500 (1), org.apache.http.conn.HttpHost" in note for note in log.facts.notes)


def test_parquet_with_types_of_its_own(tmp_path):
    frame = pd.DataFrame(
        {
            "when": pd.to_datetime(["2026-03-01", "2026-03-02", "2026-03-03"], utc=True),
            "rtt": pd.to_timedelta([1.5, 2.5, 3.5], unit="s"),
            "ok": [True, False, True],
            "tags": [["a"], ["b"], []],
        }
    )
    frame.to_parquet(tmp_path / "p")
    log = read(tmp_path / "p", columns={"submitted": "when"})
    assert log.facts.format == "parquet"
    assert latencies(log, "completed") == [1.5, 3.5]
    assert latencies(log, "failed") == [2.5]


def test_bare_numbers_are_latencies(tmp_path):
    (tmp_path / "x").write_text("3\n1.5\n2\n")
    assert latencies(read(tmp_path / "x", unit="s"), "completed") == [1.5, 2, 3]


@pytest.mark.parametrize(
    ("unit", "factor"), [("s", 1), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("min", 60), ("h", 3600)]
)
def test_units(unit, factor, tmp_path):
    (tmp_path / "x.csv").write_text("latency\n250\n3\n")
    assert latencies(read(tmp_path / "x.csv", unit=unit), "completed") == pytest.approx(
        [3 * factor, 250 * factor], rel=1e-15
    )
    (tmp_path / "y.csv").write_text(f"latency_{unit}\n250\n3\n")
    assert latencies(read(tmp_path / "y.csv"), "completed") == pytest.approx([3 * factor, 250 * factor], rel=1e-15)


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("response_ms,checked_at", "250,2026-03-01"),
        ("Elapsed Time [s],x", "0.25,y"),
        ("rtt_us", "250000"),
        ("duration", "0.25"),
    ],
)
def test_guesses_are_printed(header, row, tmp_path):
    (tmp_path / "x.csv").write_text(f"{header}\n{row}\n")
    log = read(tmp_path / "x.csv")
    assert latencies(log, "completed") == [0.25]
    assert any("is read as the latency" in note for note in log.facts.notes)


@pytest.mark.parametrize(
    ("header", "row", "told"),
    [
        ("when,latency", "2026-03-01 12:00:00,3", "when"),
        ("seen by proxy,latency", "2026-03-01T12:00:00Z,3", "seen by proxy"),
        ("seen by proxy,latency,finished", "2026-03-01T12:00:00Z,3,2026-03-01T12:00:03Z", "seen by proxy"),
        ("planned,seen,latency", "2026-03-01T12:00:00Z,2026-03-01T12:00:00Z,3", None),  # which of them?
        ("finished,latency", "2026-03-01T12:00:03Z,3", None),
        ("version,latency", "2026-03-01,3", None),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "frame"])
def test_the_only_column_of_times_is_the_submission(header, row, told, kind, tmp_path):
    table = pd.DataFrame([dict(zip(header.split(","), row.split(","), strict=True))]).astype({"latency": float})
    path = tmp_path / f"x.{kind}"
    if kind == "frame":
        log = latfit.from_frame(table)
    else:
        {"csv": lambda: table.to_csv(path, index=False), "parquet": lambda: table.to_parquet(path),
         "jsonl": lambda: table.to_json(path, orient="records", lines=True)}[kind]()  # fmt: skip
        log = read(path)
    assert log.frame["submitted"].notna().all() == (told is not None)
    assert (f"column {told!r} is read as submitted" in log.facts.notes) == (told is not None)


def test_status_option_names_outcomes(tmp_path):
    (tmp_path / "x.csv").write_text("latency,status\n1,up\n2,UP\n3,down\n")
    log = read(tmp_path / "x.csv", statuses={"up": "completed", "down": "lost"})
    assert list(log.counts.values()) == [2, 0, 0, 1]


def test_several_files_and_globs(tmp_path):
    for name in ("a.csv", "b.csv"):
        shutil.copy(DATA / "probes.csv", tmp_path / name)
    log = read(str(tmp_path / "*.csv"))
    assert log.counts == read([tmp_path / "a.csv", tmp_path / "b.csv"]).counts
    assert list(log.counts.values()) == [4, 2, 2, 2]
    assert {r.path for r in log.facts.refused.first} == {str(tmp_path / "a.csv"), str(tmp_path / "b.csv")}


def test_chunks_merge_to_the_same_sample(monkeypatch):
    whole = read(EGEE)
    monkeypatch.setattr("latfit.logs.source.HEAD_BYTES", 1000)
    monkeypatch.setitem(latfit.logs.source.Source.blocks.__kwdefaults__, "size", 5000)
    chunked = latfit.read_log(EGEE)
    assert chunked.samples("broker", window="1d") == whole.samples("broker", window="1d")
    assert len(chunked.samples("broker", window="1d")) == 9
    assert chunked.sample() == whole.sample()


@pytest.mark.parametrize("name", ["probes.csv", "EGEE", "odd"])
def test_whole_blocks_and_single_rows_give_the_same_log(name, monkeypatch, tmp_path):
    path = {"EGEE": EGEE, "odd": tmp_path / "odd.csv"}.get(name, DATA / name)
    (tmp_path / "odd.csv").write_text(
        'submitted,latency,status,note\n2026-03-01T00:00:00.5Z,1e3,completed,"a, b"\n2026-03-01 00:00:01+01:00,,lost,\n'
        ",0.1,Completed,\u00e9\n2026-03-01T00:00:02Z,7,censored,\n"
    )
    fast = latfit.read_log(path, max_refused=1.0)
    monkeypatch.setattr("latfit.logs.delimited._fast", lambda *_: None)
    by_row = latfit.read_log(path, max_refused=1.0)
    canonical = ["submitted", "latency", "status"]
    pd.testing.assert_frame_equal(fast.frame[canonical], by_row.frame[canonical])
    rest = [log.frame.drop(columns=canonical).astype("string") for log in (fast, by_row)]
    pd.testing.assert_frame_equal(*rest)
    assert fast.facts == by_row.facts


def test_duplicate_ids_are_found_across_chunks(monkeypatch, tmp_path):
    lines = [f"{i % 700},{i}" for i in range(1000)]
    (tmp_path / "x.csv").write_text("id,latency\n" + "\n".join(lines) + "\n")
    monkeypatch.setattr("latfit.logs.source.HEAD_BYTES", 500)
    monkeypatch.setitem(latfit.logs.source.Source.blocks.__kwdefaults__, "size", 600)
    log = read(tmp_path / "x.csv", unit="s")
    assert log.counts["completed"] == 700
    assert [r.line for r in log.facts.refused.first] == list(range(702, 1002))
    assert read(tmp_path / "x.csv", columns={"id": ""}, unit="s").counts["completed"] == 1000


def test_windows_begin_at_their_start(tmp_path):
    (tmp_path / "x.csv").write_text(
        "submitted,latency\n2026-03-04T13:00:00Z,1\n2026-03-08T23:59:59Z,2\n2026-03-09T00:00:00Z,3\n"
    )
    log = read(tmp_path / "x.csv")
    assert list(log.groups(window="7d")) == [("2026-03-02T00:00:00Z",), ("2026-03-09T00:00:00Z",)]  # Mondays
    assert len(log.groups(window="1h")) == 3
    with pytest.raises(latfit.LogError, match="not a time window"):
        log.groups(window="soon")
    with pytest.raises(latfit.LogError, match="no column 'site' to group by"):
        log.groups("site")


REAL = {
    "kth-sp2.swf.gz": ([28489, 0, 0, 0], {}),
    "sacct-pozidriv.log.gz": ([11285, 0, 419, 0], {}),
    "htcondor-evictions.log.gz": ([50, 0, 0, 0], {}),
    "jmeter-slow.jtl": ([536, 63, 0, 0], {}),
    "uptime-probes.csv.gz": ([8585, 0, 0, 3275], {"statuses": {"up": "completed", "down": "lost"}}),
}


@pytest.mark.parametrize("name", REAL)
def test_real_logs(name, shared):
    counts, options = REAL[name]
    log = latfit.read_log(shared / name, **options)
    assert list(log.counts.values()) == counts
    assert log.facts.refused.count == 0


def test_real_logs_medians_and_clocks(shared):
    kth = latfit.read_log(shared / "kth-sp2.swf.gz")
    assert kth.frame["latency"].median() == 300
    assert kth.resolution == 60
    assert np.isclose((kth.frame["latency"] == 0).mean(), 0.23, atol=0.005)
    jmeter = latfit.read_log(shared / "jmeter-slow.jtl")
    assert np.median(latencies(jmeter, "completed")) == pytest.approx(0.537, abs=5e-4)
    assert jmeter.resolution == 0.001


def test_real_condor_log_without_a_submit_event(shared):
    log = latfit.read_log(shared / "htcondor-mesa.log")
    assert log.counts == {"completed": 3, "failed": 0, "censored": 0, "lost": 0}
    assert [(r.line, r.reason) for r in log.facts.refused.first] == [(64, "no submit event")]


def test_swf_fields_beyond_the_eighteenth_are_columns(tmp_path):
    text = (DATA / "jobs.swf").read_text()
    rows = [line for line in text.splitlines() if line and line[0] not in ";#" and len(line.split()) == 18]
    (tmp_path / "x.swf").write_text("\n".join([f"{rows[0]} a b c d", *rows[1:3]]) + "\n")
    frame = read(tmp_path / "x.swf").frame
    assert frame.filter(like="field").columns.tolist() == ["field19", "field20", "field21"]
    assert frame["field21"].tolist()[0] == "c"
    (tmp_path / "y.swf").write_text("\n".join(rows[:3]) + "\n")
    assert not [name for name in read(tmp_path / "y.swf").frame if name.startswith("field")]


CONDOR = """\
000 (7.000.000) 2026-03-01 00:00:00 Job submitted
...
001 (7.000.000) 2026-03-01 00:01:00 Job executing
...
004 (7.000.000) 2026-03-01 00:03:00 Job was evicted.
	(0) Job was not checkpointed.
...
001 (7.000.000) 2026-03-01 00:03:30 Job executing
...
012 (7.000.000) 2026-03-01 00:04:00 Job was held.
...
013 (7.000.000) 2026-03-01 00:05:00 Job was released.
...
001 (7.000.000) 2026-03-01 00:05:05 Job executing
...
005 (7.000.000) 2026-03-01 00:06:00 Job terminated.
	(1) Normal termination (return value 0)
...
000 (8.000.000) 2026-03-01 00:00:00 Job submitted
...
001 (8.000.000) 2026-03-01 00:00:10 Job executing
...
004 (8.000.000) 2026-03-01 00:01:00 Job was evicted.
...
009 (8.000.000) 2026-03-01 00:02:00 Job was aborted.
...
000 (9.000.000) 2026-03-01 00:06:30 Job submitted
...
006 (9.000.000) 2026-03-01 00:06:40 Image size
...
"""


def test_condor_counts_evictions_and_takes_the_first_wait(tmp_path):
    (tmp_path / "x.log").write_text(CONDOR)
    log = read(tmp_path / "x.log")
    assert (latencies(log, "completed"), latencies(log, "censored")) == ([10, 60], [10])
    assert log.frame.set_index("id").loc[["7.000", "8.000"], ["executions", "evictions"]].to_numpy().tolist() == [
        [3, 1], [1, 1],
    ]  # fmt: skip
    assert any(note.startswith("2 evictions and 2 re-executions of 3 jobs") for note in log.facts.notes)


def test_jmeter_refused_and_reset_have_failed(tmp_path):
    told = ["HttpHostConnectException: Connection refused", "SocketException: Connection reset", "UnknownHostException",
            "NoHttpResponseException", "SocketTimeoutException: Read timed out", "ConnectTimeoutException"]  # fmt: skip
    rows = "".join(
        f"17672256{at:05d},{at + 1},L,Non HTTP response code: {word},false\n" for at, word in enumerate(told)
    )
    (tmp_path / "x.jtl").write_text("timeStamp,elapsed,label,responseCode,success\n" + rows)
    assert list(read(tmp_path / "x.jtl").counts.values()) == [0, 4, 2, 0]
