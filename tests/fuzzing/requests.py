"""Valid small logs of requests, spans and queued jobs, as servers, load generators and schedulers write them."""

import json
import random
from datetime import datetime, timedelta

from fuzzing.logs import TextLog, moments, seconds

CODES = ("200", "200", "200", "404", "500", "504", "429")


def _code(rng: random.Random) -> str:
    return rng.choice(CODES)


def _epoch(moment: datetime, scale: int = 1) -> int:
    return int(moment.timestamp()) * scale


def access(rng: random.Random, n: int) -> TextLog:
    """Combined format, and the request time as nginx writes it, by name, or Apache's %D."""
    style = rng.choice(("{:.3f}", "rt={:.3f}", "{:.3f} 0.001, 0.002", "micro"))
    rows = []
    for moment in moments(rng, n):
        spent = f"{int(seconds(rng) * 1e3)}" if style == "micro" else style.format(seconds(rng) / 100)
        head = f'10.0.0.1 - - [{moment:%d/%b/%Y:%H:%M:%S} +0000] "GET /a?b HTTP/1.1" {_code(rng)} 512 "-" "a b"'
        rows.append([*head.split(" "), spent])
    return TextLog("access", ["started"][: rng.randrange(2)], rows, " ")


def ltsv(rng: random.Random, n: int) -> TextLog:
    rows = [
        [f"time:{m:%Y-%m-%dT%H:%M:%SZ}", "method:GET", "uri:/a", f"status:{_code(rng)}", f"apptime:{seconds(rng)}"]
        for m in moments(rng, n)
    ]
    return TextLog("ltsv", [], rows, "\t")


def haproxy(rng: random.Random, n: int) -> TextLog:
    """HTTP and TCP lines, with a syslog prefix or not."""
    prefix, rows = rng.choice(("", "Mar  1 00:00:00 lb haproxy[7]: ")), []
    for moment in moments(rng, n):
        when = f"{prefix}10.0.0.1:5001 [{moment:%d/%b/%Y:%H:%M:%S}.100]"
        total = int(seconds(rng))
        state = rng.choice(("----", "----", "sH--", "CD--", "SC--", "PR--"))
        if rng.random() < 0.7:
            timers, rest = f"0/0/1/{rng.choice((-1, 5))}/{total}", f'- - {state} 1/1/0/0/0 0/0 "GET /a HTTP/1.1"'
            rows.append(f"{when} web app/s1 {timers} {_code(rng)} 512 {rest}".split(" "))
        else:
            rows.append(f"{when} tcp db/s1 0/1/{total} 512 {state[:2]} 1/1/0/0/0 0/0".split(" "))
    return TextLog("haproxy", [f"{prefix}Proxy web started."][: rng.randrange(2)], rows, " ")


def envoy(rng: random.Random, n: int) -> TextLog:
    rows = []
    for moment in moments(rng, n):
        start, flags, spent = (
            f"{moment:%Y-%m-%dT%H:%M:%S}.310Z",
            rng.choice(("-", "-", "UT", "UF,URX")),
            int(seconds(rng)),
        )
        if rng.random() < 0.7:
            quoted = '"-" "curl" "id" "a" "10.0.0.1:80"'
            rows.append(f'[{start}] "GET /a HTTP/2" {_code(rng)} {flags} 1 2 {spent} 1 {quoted}'.split(" "))
        else:
            values = {
                "start_time": start,
                "method": "GET",
                "response_code": 200,
                "response_flags": flags,
                "duration": spent,
            }
            rows.append(json.dumps(values).split(" "))
    return TextLog("envoy", [], rows, " ")


def alb(rng: random.Random, n: int) -> TextLog:
    rows = []
    for moment in moments(rng, n):
        when = f"{moment:%Y-%m-%dT%H:%M:%S}.123456Z"
        target = rng.choice((f"{seconds(rng) / 1000:.3f}", "-1"))
        rest = f'"curl" - - arn "Root" "-" "-" 0 {when} "forward" "-"'
        times = f"0.001 {target} 0.000 {_code(rng)} 200 3 3"
        rows.append(f'http {when} app/lb/1 10.0.0.9:28 10.0.0.1:80 {times} "GET http://x/ HTTP/1.1" {rest}'.split(" "))
    return TextLog("alb", [], rows, " ")


def w3c(rng: random.Random, n: int) -> TextLog:
    rows = [[*f"{m:%Y-%m-%d %H:%M:%S}".split(), "GET", "/a", _code(rng), f"{seconds(rng):g}"] for m in moments(rng, n)]
    head = ["#Software: IIS", "#Fields: date time cs-method cs-uri-stem sc-status time-taken"]
    return TextLog("w3c", head, rows, " ")


def k6(rng: random.Random, n: int) -> TextLog:
    rows = []
    for moment in moments(rng, n):
        metric = rng.choice(("http_req_duration", "http_req_duration", "http_reqs", "vus"))
        told = rng.choice((["", "true", "200"], ["1050", "false", "0"], ["1503", "false", "503"], ["", "false", "404"]))
        rows.append([metric, str(_epoch(moment)), f"{seconds(rng):g}", *told, "GET"])
    head = "metric_name,timestamp,metric_value,error_code,expected_response,status,method"
    return TextLog("k6", [head], rows, ",", header=True)


def k6_json(rng: random.Random, n: int) -> TextLog:
    rows = []
    for moment in moments(rng, n):
        data = {"time": f"{moment:%Y-%m-%dT%H:%M:%SZ}", "value": seconds(rng), "tags": {"status": _code(rng)}}
        metric = rng.choice(("http_req_duration", "http_req_duration", "vus"))
        rows.append(json.dumps({"type": "Point", "metric": metric, "data": data}).split(" "))
    return TextLog("k6-json", ['{"type":"Metric","metric":"vus"}'], rows, " ")


def gatling(rng: random.Random, n: int) -> TextLog:
    rows = []
    for moment in moments(rng, n):
        start = _epoch(moment, 1000)
        told = rng.choice((["OK", " "], ["KO", "Request timeout after 60000 ms"], ["KO", "found 503"]))
        before = rng.choice(([""], ["S", "1", "g"]))
        rows.append(["REQUEST", *before, "home", str(start), str(start + int(seconds(rng))), *told])
    return TextLog("gatling", ["RUN\tSim\tsim\t1772323200000\t \t3.9.5"], rows, "\t")


def hey(rng: random.Random, n: int) -> TextLog:
    head = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset"
    rows = [[f"{seconds(rng) / 1000:.4f}", *["0.0010"] * 5, _code(rng), f"{i}.0"] for i in range(n)]
    return TextLog("hey", [head], rows, ",", header=True)


def ab(rng: random.Random, n: int) -> TextLog:
    rows = []
    for m in moments(rng, n):
        spent = int(seconds(rng))
        rows.append([f"{m:%a %b %d %H:%M:%S %Y}", str(_epoch(m)), "1", str(spent), str(spent + 1), "3"])
    return TextLog("ab", ["starttime\tseconds\tctime\tdtime\tttime\twait"], rows, "\t", header=True)


def vegeta(rng: random.Random, n: int) -> TextLog:
    rows = []
    for moment in moments(rng, n):
        code, error = rng.choice((("200", ""), ("503", "503"), ("0", "context deadline exceeded"), ("0", '"a, b"')))
        spent = str(int(seconds(rng) * 1e6))
        rows.append([str(_epoch(moment, 10**9)), code, spent, "0", "0", error, "", "load", "1", "GET", "http://x", ""])
    return TextLog("vegeta", [], rows, ",")


def otel(rng: random.Random, n: int) -> TextLog:
    rows = []
    for moment in moments(rng, n):
        start = _epoch(moment, 10**9)
        span = {"name": "a", "kind": 2, "startTimeUnixNano": str(start), "status": {"code": rng.choice((0, 2))}}
        span["endTimeUnixNano"] = str(start + int(seconds(rng) * 1e6))
        span["attributes"] = [{"key": "http.response.status_code", "value": {"intValue": _code(rng)}}]
        rows.append(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).split(" "))
    return TextLog("otel", [], rows, " ")


def jaeger(rng: random.Random, n: int) -> TextLog:
    spans = [
        {"traceID": "a", "operationName": "x", "startTime": _epoch(m, 10**6), "duration": int(seconds(rng)), "tags": []}
        for m in moments(rng, n)
    ]
    text = json.dumps({"data": [{"traceID": "a", "spans": spans, "processes": {}}]}, indent=rng.choice((None, 1)))
    return TextLog("jaeger", [], [line.split(" ") for line in text.split("\n")], " ")


def json_array(rng: random.Random, n: int) -> TextLog:
    probes = [
        {"sent": _epoch(m), "elapsed_ms": int(seconds(rng)), "code": _code(rng), "at": {"x": 1}}
        for m in moments(rng, n)
    ]
    kind, indent = rng.choice(("array", "document", "hits", "objects")), rng.choice((None, 1))
    whole: object = {"array": probes, "document": {"took": 1, "errors": [], "items": probes, "more": [{"a": 1}]},
                     "hits": {"hits": {"total": n, "hits": [{"_id": "a", "_source": each} for each in probes]}},
                     }.get(kind)  # fmt: skip
    text = json.dumps(whole, indent=indent) if whole else "\n".join(json.dumps(each, indent=1) for each in probes)
    return TextLog("json", [], [line.split(" ") for line in text.split("\n")], " ")


def text_table(rng: random.Random, n: int) -> TextLog:
    """By spaces as `column -t` has it, or with bars and rules as psql, mysql and Markdown do."""
    names = ["sent", "site", "latency_ms", "status"]
    rows = [[f"{m:%Y-%m-%d %H:%M:%S}", rng.choice("ab"), f"{seconds(rng):g}", rng.choice(("ok", "ok", "failed"))]
            for m in moments(rng, n)]  # fmt: skip
    style = rng.choice(("  ", " ", " | ", "│"))
    if style.isspace():
        return TextLog("table", [style.join(names)], rows, style, header=True)
    rule = "+".join("-" * (len(name) + 2) for name in names)
    edge = rng.choice(("", "| "))
    head = [*[f"+{rule}+"][: rng.randrange(2)], edge + style.join(names) + edge[::-1], rule]
    return TextLog("table", head, [*rows, [f"({n} rows)"]], style, edge, edge[::-1], header=True)


def logfmt(rng: random.Random, n: int) -> TextLog:
    prefix = rng.choice(("", "{:%Y-%m-%d %H:%M:%S},123 INFO app ", "{:%Y-%m-%dT%H:%M:%SZ} "))
    rows = []
    for i, m in enumerate(moments(rng, n)):
        told = [
            f"id={i}",
            'msg="all \\"well\\""',
            f"dur={seconds(rng):g}{rng.choice(('ms', 'ms', 's', ''))}",
            f"status={_code(rng)}",
        ]
        rows.append([prefix.format(m) + told[0], *told[1:]])
    return TextLog("logfmt", ["started"][: rng.randrange(2)], rows, " ")


def free_text(rng: random.Random, n: int) -> TextLog:
    """Sentences of an application, of which a pattern of fuzzing/cases.py knows some."""
    rows = []
    for i, m in enumerate(moments(rng, n)):
        ends = (f"done, took {seconds(rng):g}{rng.choice(('ms', 's', ''))}", "failed", "lost", "started")
        rows.append(f"{m:%Y-%m-%dT%H:%M:%SZ} INFO task {i} {rng.choices(ends, (9, 1, 1, 1))[0]}".split(" "))
    return TextLog("pattern", ["started"][: rng.randrange(2)], rows, " ")


def ping(rng: random.Random, n: int) -> TextLog:
    """Of Linux with its summary or not, of Windows, of fping."""
    style, rows = rng.choice(("linux", "linux", "windows", "fping")), []
    for i, m in enumerate(moments(rng, n), start=1):
        lost, ms = rng.random() < 0.1, f"{seconds(rng):g}"
        line = {
            "linux": f"[{_epoch(m)}.25] 64 bytes from 10.0.0.1: icmp_seq={i} ttl=64 time={ms} ms",
            "windows": f"Reply from 10.0.0.1: bytes=32 time={ms}ms TTL=64",
            "fping": f"10.0.0.1 : [{i}], 64 bytes, {ms} ms (1.0 avg, 0% loss)",
        }[style]
        gone = {"linux": f"no answer yet for icmp_seq={i}", "windows": "Request timed out.",
                "fping": f"10.0.0.1 : [{i}], timed out (1.0 avg, 9% loss)"}[style]  # fmt: skip
        rows.append((gone if lost else line).split(" "))
    rows += [f"{n} packets transmitted, {n - 1} received".split(" ")] if rng.random() < 0.5 else []
    return TextLog("ping", ["PING 10.0.0.1 (10.0.0.1) 56(84) bytes of data."][: rng.randrange(2)], rows, " ")


def pbs(rng: random.Random, n: int) -> TextLog:
    rows = []
    for i, moment in enumerate(moments(rng, n)):
        queued, start = _epoch(moment), _epoch(moment) + int(seconds(rng))
        told = f"user=a queue=q ctime={queued} qtime={queued} etime={queued} start={start}"
        events = [
            ("Q", 0, "queue=q"),
            ("S", 60, told),
            ("E", 99, f"{told} end={start + 60} Exit_status=0"),
            ("D", 9, "x=y"),
        ]
        for kind, later, rest in rng.choice((events[:3], events[2:3], [events[0], events[3]], events[:1], events[:2])):
            rows.append([f"{moment + timedelta(seconds=later):%m/%d/%Y %H:%M:%S}", kind, f"{i}.s", rest])
    return TextLog("pbs", [], rows, ";")


def sge(rng: random.Random, n: int) -> TextLog:
    rows, scale = [], rng.choice((1, 1000))
    for i, moment in enumerate(moments(rng, n)):
        submitted, start = _epoch(moment), _epoch(moment) + int(seconds(rng))
        times = rng.choice(((submitted, start, start + 60), (submitted, start, start + 60), (submitted, 0, start)))
        fields = ["q", "n1", "g", "ann", "run.sh", str(i), "sge", "0", *(str(t * scale) for t in times)]
        after = ["NONE", "1", str(rng.randrange(3)), "0", "0", "0", "NONE", "0", "NONE", "0", "0", "0"]
        rows.append([*fields, *["0"] * 20, "p", "d", *after])
    return TextLog("sge", ["# Version: 8.1.9"][: rng.randrange(2)], rows, ":")


def lsf(rng: random.Random, n: int) -> TextLog:
    rows = []
    for i, moment in enumerate(moments(rng, n)):
        submitted = _epoch(moment)
        start = rng.choice((submitted + int(seconds(rng)), 0))
        used = "0 " * 19
        rest = f'"ann" "q" "" "" "" "h" "/" "" "" "" "f" 0 1 "n1" 64 60.0 "a ""job""" "x" {used}"" "p" 0 1 "" "" {i} 0'
        rows.append(f'"JOB_FINISH" "10.1" {submitted + 9999} {i} 501 3 1 {submitted} 0 0 {start} {rest}'.split(" "))
    return TextLog("lsf", ['"EVENT_ADRSV_FINISH" "10.1" 1772323600 x'][: rng.randrange(2)], rows, " ")


def nextflow(rng: random.Random, n: int) -> TextLog:
    """With a start, or durations."""
    pair, rows = rng.random() < 0.4, []
    for i, moment in enumerate(moments(rng, n)):
        state = rng.choice(("COMPLETED", "COMPLETED", "FAILED", "CACHED", "ABORTED"))
        start = f"{moment + timedelta(seconds=int(seconds(rng))):%Y-%m-%d %H:%M:%S}.000"
        spent = (
            [start] if pair else [rng.choice(("1m 20s", "12.5s", "1h 2m 3s", "-")), rng.choice(("482ms", "7s", "-"))]
        )
        rows.append([str(i), "a1/b2", "MAP (s)", state, f"{moment:%Y-%m-%d %H:%M:%S}.000", *spent])
    columns = ["start"] if pair else ["duration", "realtime"]
    head = "\t".join(["task_id", "hash", "name", "status", "submit", *columns])
    return TextLog("nextflow", [head], rows, "\t", header=True)


def aslib(rng: random.Random, n: int) -> TextLog:
    attributes = ("instance_id STRING", "algorithm STRING", "runtime NUMERIC", "runstatus {ok, timeout}")
    head = ["@RELATION runs", *(f"@ATTRIBUTE {each}" for each in attributes), "@DATA"]
    rows = [
        [f"i{i}", rng.choice(("a", "'b, c'")), f"{seconds(rng):g}", rng.choice(("ok", "ok", "timeout", "crash"))]
        for i in range(n)
    ]
    return TextLog("aslib", head, rows, ",")


def upptime(rng: random.Random, n: int) -> TextLog:
    rows = [
        [f"{m:%Y-%m-%dT%H:%M:%S+05:30}", "https://a", rng.choice(("up", "up", "down")), "200", f"{seconds(rng):g}"]
        for m in moments(rng, n)
    ]
    return TextLog("upptime", ["checked_at,site,status,http_code,response_ms"], rows, ",", header=True)


def github_actions(rng: random.Random, n: int) -> TextLog:
    rows = []
    for i, moment in enumerate(moments(rng, n)):
        told = rng.choice(("success", "success", "failure", "cancelled", "skipped", ""))
        rows.append([str(i), "CI", "completed", told, "push", f"{moment:%Y-%m-%dT%H:%M:%SZ}", f"{seconds(rng):g}"])
    return TextLog(
        "github-actions", ["run_id,name,status,conclusion,event,created_at,duration_seconds"], rows, ",", header=True
    )


MAKERS = {
    "access": access, "ltsv": ltsv, "haproxy": haproxy, "envoy": envoy, "alb": alb, "w3c": w3c, "k6": k6,
    "k6-json": k6_json, "gatling": gatling, "hey": hey, "vegeta": vegeta, "otel": otel, "jaeger": jaeger, "pbs": pbs,
    "json": json_array, "table": text_table, "logfmt": logfmt, "pattern": free_text, "ping": ping, "ab": ab,
    "sge": sge, "lsf": lsf, "nextflow": nextflow, "aslib": aslib, "upptime": upptime, "github-actions": github_actions,
}  # fmt: skip
# formats in which every line that is not blank is a record, refused or skipped
BY_LINE = {
    "access", "ltsv", "haproxy", "envoy", "alb", "w3c", "k6", "k6-json", "gatling", "vegeta", "pbs", "sge", "lsf",
    "aslib", "logfmt", "pattern",
}  # fmt: skip
DOCUMENTS = {"otel", "jaeger", "json", "table", "ping"}  # a line is no row
SEPARATORS = {
    "k6": ",", "hey": ",", "upptime": ",", "github-actions": ",", "vegeta": ",", "aslib": ",", "ltsv": "\t",
    "gatling": "\t", "nextflow": "\t", "ab": "\t", "sge": ":", "pbs": ";",
}  # fmt: skip
WITH_HEADER = {"k6", "hey", "ab", "upptime", "github-actions", "nextflow"}
