"""Logs as programs print them: tables of terminals, logfmt, ping, and documents of JSON."""

import json
import re
import shlex

import numpy as np
import pytest

import latfit
from latfit.errors import LogError, MissingColumn

PROBES = [{"sent": f"2026-03-02T06:00:0{i}Z", "elapsed_ms": 100 * i, "code": code}
          for i, code in enumerate((200, 200, 500, 200), start=1)]  # fmt: skip


def read(tmp_path, text, **options):
    path = tmp_path / "log"
    path.write_text(text)
    return latfit.read_log(path, **options)


def latencies(log):
    return log.frame["latency"].tolist()


DOCUMENTS = {
    "items": json.dumps({"count": 4, "errors": [], "items": PROBES}),
    "items over lines": json.dumps({"count": 4, "items": PROBES}, indent=2),
    "hits": json.dumps({"took": 1, "hits": {"total": {"n": 4}, "hits": [{"_id": "a", "_source": p} for p in PROBES]}}),
    "edges": json.dumps({"data": {"runs": {"edges": [{"cursor": "x", "node": p} for p in PROBES]}}}),
    "objects over lines": "\n".join(json.dumps({**p, "tags": [{"k": 1}]}, indent=2) for p in PROBES),
}  # fmt: skip


@pytest.mark.parametrize("text", DOCUMENTS.values(), ids=DOCUMENTS)
def test_objects_inside_documents(tmp_path, text):
    log = read(tmp_path, text)
    assert log.facts.format == "json"
    assert latencies(log) == [0.1, 0.2, 0.3, 0.4]
    assert log.frame["status"].tolist() == ["completed", "completed", "failed", "completed"]


def test_lines_of_objects_stay_lines(tmp_path):
    lines = [json.dumps({**probe, "tags": [{"k": 1}]}) for probe in PROBES]
    assert read(tmp_path, "\n".join(lines)).facts.format == "jsonl"
    assert read(tmp_path, lines[0]).facts.format == "jsonl"
    assert read(tmp_path, json.dumps(PROBES[0])).facts.format == "jsonl"
    damaged = read(tmp_path, '{"latency": 1,\n' + "\n".join(lines), max_refused=1)
    assert (damaged.facts.format, damaged.facts.refused.count) == ("jsonl", 1)


def test_objects_of_other_arrays_are_counted(tmp_path):
    log = read(tmp_path, json.dumps({"items": PROBES, "links": [{"a": 1}, {"a": 2}]}))
    assert latencies(log) == [0.1, 0.2, 0.3, 0.4]
    assert dict(log.facts.skipped) == {"objects of other arrays in the document": 2}


def test_the_choice_between_two_arrays_is_not_guessed(tmp_path):
    with pytest.raises(LogError, match=r"'pages' \(1\) and 'data.runs' \(4\).*jq '.data.runs'"):
        read(tmp_path, json.dumps({"pages": [{"page": 1, "latency": 3}], "data": {"runs": PROBES}}))


@pytest.mark.parametrize(
    "text",
    ['{"items": [{"latency": 1}, {"latency": 2}', '{"items": [{"latency": 1} {"latency"',
     '{"items": [{"latency": 1}]} x', '{"a": 1,\n"items": [{"latency": 1}],\n3}'],
)  # fmt: skip
def test_a_truncated_document_is_reported_with_its_line(tmp_path, text):
    with pytest.raises(LogError, match=r"line [13]: this JSON document is damaged or cut short"):
        read(tmp_path, text, format="json")


TABLES = {
    "two spaces": "sent                 latency (ms)  state\n"
    "2026-03-02 06:00:01  100           ok\n2026-03-02 06:00:02  200.5         failed\n"
    "2026-03-02 06:00:03  -             ok\n",
    "one space": "sent latency_ms state\n"
    "2026-03-02 06:00:01 100 ok\n2026-03-02 06:00:02 200.5 failed\n2026-03-02 06:00:03 - ok\n",
    "psql": "        sent         | latency_ms | state  \n---------------------+------------+--------\n"
    " 2026-03-02 06:00:01 |        100 | ok\n 2026-03-02 06:00:02 |      200.5 | failed\n"
    " 2026-03-02 06:00:03 |          - | ok\n(3 rows)\n\n",
    "mysql": "+---------------------+------------+--------+\n| sent                | latency_ms | state  |\n"
    "+---------------------+------------+--------+\n| 2026-03-02 06:00:01 | 100        | ok     |\n"
    "| 2026-03-02 06:00:02 | 200.5      | failed |\n| 2026-03-02 06:00:03 | -          | ok     |\n"
    "+---------------------+------------+--------+\n3 rows in set (0.00 sec)\n",
    "Markdown": "| sent | latency_ms | state |\n|:--|--:|---|\n| 2026-03-02 06:00:01 | 100 | ok |\n"
    "| 2026-03-02 06:00:02 | 200.5 | failed |\n| 2026-03-02 06:00:03 | - | ok |\n",
    "boxes": "┌──────┬────────────┬───────┐\n│ sent │ latency_ms │ state │\n├──────┼────────────┼───────┤\n"
    "│ 2026-03-02 06:00:01 │ 100 │ ok │\n│ 2026-03-02 06:00:02 │ 200.5 │ failed │\n│ 2026-03-02 06:00:03 │ - │ ok │\n"
    "└──────┴────────────┴───────┘\n",
}  # fmt: skip


@pytest.mark.parametrize("text", TABLES.values(), ids=TABLES)
def test_tables_of_terminals(tmp_path, text):
    log = read(tmp_path, text, max_refused=1)
    assert log.facts.format == "table"
    assert latencies(log) == [0.1, 0.2005]
    assert log.facts.refused.reasons == {"no latency": 1}
    assert log.frame["status"].tolist() == ["completed", "failed"]
    assert str(log.frame["submitted"].iloc[1]) == "2026-03-02 06:00:02+00:00"


def test_rows_of_a_table_that_do_not_fit_are_refused_with_their_line(tmp_path):
    rows = "".join(f"job{i}   {i}s   ok\n" for i in range(1, 20))
    log = read(tmp_path, f"NAME   DURATION   STATUS\n{rows}job20   7s\n")
    assert latencies(log) == list(range(1, 20))
    assert [(each.line, each.reason) for each in log.facts.refused.first] == [
        (21, "wrong number of fields: 2 instead of 3")
    ]


def test_rows_of_a_time_and_a_number_by_spaces(tmp_path):
    log = read(tmp_path, "2026-03-02 06:00:01 1.5\n2026-03-02 06:00:02 2.5\n2026-03-02 06:00:04 0.5\n", unit="s")
    assert latencies(log) == [1.5, 2.5, 0.5]
    assert log.frame["submitted"].notna().all()


def test_prose_is_not_a_table(tmp_path):
    with pytest.raises(LogError, match="no format recognises"):
        read(tmp_path, "This is a text.\nIt has some lines, and words in them.\nNo column at all, nor a number.\n")


@pytest.mark.parametrize(
    ("lines", "unit"),
    [
        ("worker {i} done, it took {x}ms\nheartbeat\n", None),
        ("request {i} finished ({x} ms) on a\n", None),
        ("[job {i}] 'mail' succeeded in {x}ms: None\n", None),
        ("retry in 5s\nfetch <b{i}> response time={x} ms!\n", None),
        ("job <{i}> is over; it took {x}\n", "ms"),
    ],
)
def test_durations_in_a_text_give_a_pattern_that_reads_them(tmp_path, lines, unit):
    text = "started, and ready\n" + "".join(lines.format(i=i, x=12.5 + i) for i in range(9))
    with pytest.raises(LogError, match="hold a duration") as error:
        read(tmp_path, text)
    pattern = re.search("--pattern '(.*?)'", str(error.value))[1]
    log = read(tmp_path, text, pattern=pattern, unit=unit)
    assert latencies(log) == pytest.approx([(12.5 + i) / 1000 for i in range(9)])


def test_logfmt(tmp_path):
    lines = [f'time=2026-03-02T06:00:0{i}Z level=info msg="it \\"ended\\"" dur={i}00ms status={code}'
             for i, code in enumerate((200, 503, 200), start=1)]  # fmt: skip
    log = read(tmp_path, "\n".join(["starting", *lines, "path=/x"]))
    assert log.facts.format == "logfmt"
    assert latencies(log) == [0.1, 0.2, 0.3]
    assert log.frame["status"].tolist() == ["completed", "failed", "completed"]
    assert log.frame["msg"].tolist() == ['it "ended"'] * 3
    assert dict(log.facts.skipped) == {"lines with no pairs of a name and a value": 2}
    assert any("the units in its cells" in note for note in log.facts.notes)


def test_pairs_behind_the_words_of_a_logger(tmp_path):
    lines = [f"2026-03-02 06:00:0{i},500 INFO app: done path=/x, took={i}.5s, status=200" for i in range(1, 5)]
    log = read(tmp_path, "\n".join(lines))
    assert latencies(log) == [1.5, 2.5, 3.5, 4.5]
    assert log.frame["path"].tolist() == ["/x"] * 4
    assert str(log.frame["submitted"].iloc[0]) == "2026-03-02 06:00:01.500000+00:00"


def test_the_choice_between_two_durations_is_asked(tmp_path):
    lines = [f"level=info took={i}1ms elapsed={i}8ms status=200" for i in range(1, 5)]
    with pytest.raises(MissingColumn, match="--column latency=took, or --column latency=elapsed"):
        read(tmp_path, "\n".join(lines))
    assert latencies(read(tmp_path, "\n".join(lines), columns={"latency": "elapsed"})) == [0.018, 0.028, 0.038, 0.048]


LINUX = "64 bytes from one.example (10.0.0.1): icmp_seq={} ttl=57 time={} ms"


def test_ping_counts_the_numbers_that_are_missing(tmp_path):
    answers = [LINUX.format(seq, seq / 2) for seq in (2, 3, 6)]
    text = ["PING one.example (10.0.0.1) 56(84) bytes of data.", *answers, "", "--- one.example ping statistics ---",
            "8 packets transmitted, 3 received, 62% packet loss, time 7000ms"]  # fmt: skip
    whole = read(tmp_path, "\n".join(text))
    assert whole.facts.format == "ping"
    assert latencies(whole)[:3] == [0.001, 0.0015, 0.003]
    assert whole.counts == {"completed": 3, "failed": 0, "censored": 0, "lost": 5}
    assert read(tmp_path, "\n".join(text[:4])).counts["lost"] == 3  # 1, 4 and 5, without its last words
    assert read(tmp_path, "\n".join(answers)).counts["lost"] == 2  # of the middle of a log


def test_ping_numbers_begin_again_and_answers_come_late_or_twice(tmp_path):
    seqs = [65534, 65535, 0, 2, 1, 4]
    late = [LINUX.format(4, 11) + " (DUP!)", "no answer yet for icmp_seq=1", "no answer yet for icmp_seq=5"]
    log = read(tmp_path, "\n".join([*(LINUX.format(seq, 10) for seq in seqs), *late]))
    assert log.counts == {"completed": 6, "failed": 0, "censored": 0, "lost": 2}  # 3 and 5


def test_ping_with_times_of_windows_and_of_fping(tmp_path):
    timed = read(tmp_path, "\n".join(f"[1767225600.{i}] {LINUX.format(i, 250)}" for i in (1, 2)))
    assert str(timed.frame["submitted"].iloc[0]) == "2025-12-31 23:59:59.850000+00:00"
    windows = ["Reply from 10.0.0.1: bytes=32 time=12ms TTL=57", "Request timed out.",
               "Reply from 10.0.0.1: bytes=32 time<1ms TTL=57"]  # fmt: skip
    log = read(tmp_path, "\n".join(windows))
    assert (latencies(log)[0], log.counts["completed"], log.counts["lost"]) == (0.012, 2, 1)
    fping = ["10.0.0.1  : [0], 64 bytes, 1.50 ms (1.5 avg, 0% loss)", "10.0.0.2  : [0], timed out (NaN avg, 100% loss)"]
    log = read(tmp_path, "\n".join(fping))
    assert (latencies(log)[0], log.counts["lost"], log.frame["host"].tolist()) == (0.0015, 1, ["10.0.0.1", "10.0.0.2"])


def test_the_table_of_apache_bench(tmp_path):
    head = "starttime\tseconds\tctime\tdtime\tttime\twait\n"
    log = read(tmp_path, head + "Mon Mar 02 06:00:11 2026\t1772431211\t1\t30\t31\t29\n" * 2)
    assert (log.facts.format, latencies(log)) == ("ab", [0.031, 0.031])
    assert str(log.frame["submitted"].iloc[0]) == "2026-03-02 06:00:11+00:00"


def test_runs_of_another_ci_are_a_plain_table(tmp_path):
    log = read(tmp_path, "workflow,queued_at,started_at,finished_at,conclusion\n"
               "a,2026-03-02T06:00:00Z,2026-03-02T06:00:02Z,2026-03-02T06:00:12Z,success\n")  # fmt: skip
    assert (log.facts.format, latencies(log)) == ("csv", [2.0])


BLOCKS = "    time_namelookup:  0.004000s\n       time_connect:  0.012000s\n         time_total:  0.058677s\n\n"


@pytest.mark.parametrize("text", [BLOCKS * 9, "\nreal\t0m26.590s\nuser\t0m0.012s\nsys\t0m0.004s\n" * 9])
def test_values_are_not_column_names(tmp_path, text):
    """Blocks of curl and of bash: every part of a request would be a request."""
    with pytest.raises(LogError, match=r"no format recognises|no header names the columns"):
        read(tmp_path, text)


def test_rows_of_a_time_a_number_and_a_word(tmp_path):
    rows = [f"2026-03-02 06:00:0{i} 0.{9 - i} {'TIMEOUT' if i == 5 else 'OK'}" for i in range(1, 9)]
    for text in ("\n".join(rows), "\n".join(rows).replace(" ", ",").replace(",06", " 06")):
        log = read(tmp_path, text, unit="s")
        assert latencies(log) == [0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]
        assert log.counts["censored"] == 1


def test_rows_without_a_header_are_read_by_what_they_hold(tmp_path):
    rows = [f"host unreachable;0ms;Sun Nov  7 22:33:{i} 2021\nok;{5 + i % 7}ms;Sun Nov  7 22:33:{i} 2021"
            for i in range(10, 40)]  # fmt: skip
    log = read(tmp_path, "\n".join(rows))
    assert log.counts == {"completed": 30, "failed": 30, "censored": 0, "lost": 0}
    assert log.frame["submitted"].notna().all()


def test_a_question_about_rows_without_a_header_gives_options_that_work(tmp_path):
    rng = np.random.default_rng(3)
    pings = np.sort(rng.lognormal(3, 0.5, (60, 3)), axis=1).round(3)
    rows = [f"2026-03-02 06:{i:02d}:00,8.8.8.8,{'OK' if i % 9 else 'FAILED'},{a},{b},{c}"
            for i, (a, b, c) in enumerate(pings)]  # fmt: skip
    with pytest.raises(LogError, match="no header names the columns") as error:
        read(tmp_path, "\n".join(rows))
    option, unit = re.search(r"--column (latency=column5) --unit (\w+)", str(error.value)).groups()
    log = read(tmp_path, "\n".join(rows), columns=dict([option.split("=")]), unit=unit)
    assert log.counts["failed"] == 7
    assert latencies(log) == pytest.approx(pings[:, 1] / 1000)


@pytest.mark.parametrize("mark", [",", "\t", ";"])
def test_labels_in_table_cells_are_not_logfmt(tmp_path, mark):
    rows = [mark.join([f"2026-03-02T06:00:0{i}Z", f"{i}.5", '"job=a, zone=b, rack=c"']) for i in range(1, 6)]
    log = read(tmp_path, "\n".join([mark.join(["time", "latency", "labels"]), *rows]))
    assert (log.facts.format, latencies(log)) == ("csv", [1.5, 2.5, 3.5, 4.5, 5.5])


def test_pings_that_begin_again_lose_nothing_between_them(tmp_path):
    """One packet a run from cron; a second ping after a long first one; two hosts that take turns."""
    once = read(tmp_path, "\n".join([LINUX.format(1, 10)] * 40))
    assert (once.counts["completed"], once.counts["lost"]) == (40, 0)
    again = read(tmp_path, "\n".join(LINUX.format(seq, 10) for seq in (*range(39_990, 40_000), *range(1, 11))))
    assert (again.counts["completed"], again.counts["lost"]) == (20, 0)
    two = [LINUX.format(seq, 10).replace("one", name) for seq in (1, 2, 4) for name in ("one", "two")]
    log = read(tmp_path, "\n".join(["PING one.example (10.0.0.1)", "PING two.example (10.0.0.2)", *two]))
    assert (log.counts["completed"], log.counts["lost"]) == (6, 2)
    assert set(log.frame["host"][log.frame["status"] == "lost"]) == {"one.example", "two.example"}


def test_a_ping_without_any_answer_has_lost_all(tmp_path):
    log = read(
        tmp_path,
        "PING x (10.0.0.1): 56 data bytes\n" + "\n".join(f"Request timeout for icmp_seq {i}" for i in range(5)),
    )
    assert log.counts == {"completed": 0, "failed": 0, "censored": 0, "lost": 5}


@pytest.mark.parametrize(
    "row",
    ["2026-03-02T06:00:0{},web1,200,12ms", "2026-03-02T06:00:0{} web1 GET /index.html 200 12ms",
     "2026-03-02T06:00:0{} INFO worker started pid 4000"],
)  # fmt: skip
def test_a_lone_unnamed_number_is_not_a_latency(tmp_path, row):
    text = "\n".join(row.format(i) for i in range(9))
    try:
        log = read(tmp_path, text)
    except LogError as error:
        assert re.search("no column looks like a latency|no format recognises", str(error))  # noqa: PT017
    else:
        assert set(latencies(log)) == {0.012}


@pytest.mark.parametrize("text", [
    "NAME   CPU(cores)   MEMORY(bytes)\n" + "".join(f"pod-{i}   1{i}m   5{i}Mi\n" for i in range(9)),
    "LAST SEEN   TYPE   OBJECT\n" + "".join(f"1{i}m   Normal   pod/{i}\n" for i in range(9)),
    "site,rows/s\n" + "".join(f"a,10{i}\n" for i in range(9)),
    "site,mem\n" + "".join(f"a,51{i}m\n" for i in range(9)),
])  # fmt: skip
def test_values_in_other_units_are_not_latencies(tmp_path, text):
    with pytest.raises(MissingColumn, match="no column looks like a latency"):
        read(tmp_path, text)


def test_objects_next_to_a_latency_are_not_the_latency(tmp_path):
    log = read(tmp_path, json.dumps([{"latency": 0.5, "status": "ok", "node": {"name": "n", "latency": 9}}] * 3))
    assert latencies(log) == [0.5] * 3
    assert log.facts.notes


def test_other_application_events_are_not_lost_probes(tmp_path):
    events = ['ts=2026-03-02T06:00:0{0}Z level=info msg="config reloaded" file=a.yml',
              "ts=2026-03-02T06:00:0{0}Z level=info msg=request path=/x dur=0.{0}s"]  # fmt: skip
    log = read(tmp_path, "\n".join(event.format(i) for i in range(1, 9) for event in events))
    assert (log.counts["completed"], log.counts["lost"]) == (8, 0)
    assert dict(log.facts.skipped) == {"lines without dur": 8}


def test_rows_without_a_latency_of_another_kind_are_asked_about(tmp_path):
    """Read as lost probes, other events of an application led to advice to resubmit where nothing was lost."""
    calls = [{"ts": f"2026-03-02T06:00:{i:02d}Z", "msg": "upstream call", "elapsed": f"{i}.5ms"} for i in range(1, 30)]
    other = [{"ts": f"2026-03-02T06:01:{i:02d}Z", "msg": "cache refreshed"} for i in range(12)]
    text = "\n".join(map(json.dumps, calls + other))
    with pytest.raises(LogError, match="12 rows without a latency") as caught:
        read(tmp_path, text)
    first, second = (shlex.split(option) for option in str(caught.value).split("Choose one: ")[1].split(", or "))
    assert read(tmp_path, text, where=first[1:]).counts == {"completed": 29, "failed": 0, "censored": 0, "lost": 0}
    assert second[1] == "status=msg"
    statuses = {word: status for status, word in (option.split("=") for option in second[3::2])}
    assert read(tmp_path, text, columns={"status": "msg"}, statuses=statuses).counts["lost"] == 12
    lost = [{**row, "msg": "upstream call"} for row in other]
    assert read(tmp_path, "\n".join(map(json.dumps, calls + lost))).counts["lost"] == 12


def test_a_status_of_two_words_in_the_last_column_by_spaces(tmp_path):
    rows = [f"2026-03-02T06:00:{i:02d} {'- timed out' if i % 10 == 5 else f'0.{i} ok'}" for i in range(40)]
    log = read(tmp_path, "time latency status\n" + "\n".join(rows))
    assert (log.counts["completed"], log.counts["censored"] + log.counts["lost"]) == (36, 4)


def test_delimited_rows_with_pairs_in_a_cell_are_not_logfmt(tmp_path):
    rows = "\n".join(f"2026-03-02 06:00:0{i},0.{9 - i},user=bob size=1 zone=b" for i in range(1, 9))
    log = read(tmp_path, rows, unit="s")
    assert (log.facts.format, latencies(log)[:2]) == ("csv", [0.8, 0.7])


def test_a_long_line_of_dashes_is_read_quickly(tmp_path):
    with pytest.raises(LogError):
        read(tmp_path, "-" * 60_000 + "x\n" + "-" * 60_000 + "y\n")


def test_a_late_key_with_outcomes_is_used(tmp_path):
    rows = [
        {"ts": f"2026-03-02T06:{i // 60:02d}:{i % 60:02d}Z", "latency": 0.5, "pad": "x" * 4000} for i in range(3000)
    ]
    rows += [{**row, "error": "connection reset"} for row in rows[:100]]
    with pytest.raises(LogError, match=r"error first appears .* --column status=, or --column status=error"):
        read(tmp_path, "\n".join(map(json.dumps, rows)))
