"""Tables with known truth, drawn from a grammar of names, units, orders, outcomes and noise.

`grammar(0)` is the part that weights may be chosen on; `grammar(1)` holds other synonyms and is only measured.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd

from latfit.errors import LogError
from latfit.logs.formats import ReadOptions
from latfit.logs.schema import resolve_roles
from latfit.logs.vocabulary import OutcomeWords, word_of

SCALE = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0}


@dataclass
class Truth:
    """What a table is: `latency` names one column or a start and an end; None where nothing in it is a latency."""

    latency: tuple[str, ...] | None
    unit: str | None = None
    submitted: str | None = None
    status: str | None = None
    meaning: dict[str, str] = field(default_factory=dict)
    kind: str = ""
    named: bool = True


# kind: (median seconds, sigma of log, unit of a column without one, latency names, other durations that are not it)
KINDS = {
    "grid": {
        "law": (300, 1.2),
        "units": ["s", "s", "s", "min"],
        "plain": "s",
        "gap": 60,
        "latency": (
            ["wait", "wait time", "queue wait", "latency", "waiting time"],
            ["queue time", "time in queue", "pending time", "queuing delay", "scheduling latency"],
        ),
        "others": (["run time", "cpu time", "requested time"], ["walltime used", "cpu seconds used", "time limit"]),
        "start": (["submit time", "submitted", "submission time"], ["arrival time", "enqueued at", "qtime"]),
        "end": (["start time", "started"], ["begin time", "scheduled at"]),
        "status": ["job"],
        "noise": ["nodes", "queue", "user", "memory", "procs", "priority", "site"],
    },
    "web": {
        "law": (0.15, 0.9),
        "units": ["ms", "ms", "s", "us"],
        "plain": "ms",
        "gap": 0.5,
        "latency": (
            ["response time", "latency", "duration", "request time", "elapsed", "time taken"],
            ["resp time", "total time", "processing time", "time total", "took", "request duration"],
        ),
        "others": (["ttfb", "connect time", "dns time"], ["upstream connect time", "tls handshake", "db time"]),
        "start": (["timestamp", "time", "start time", "date"], ["ts", "@timestamp", "request start", "logged at"]),
        "end": (["end time", "finished at"], ["completed at", "response end"]),
        "status": ["http", "http", "flag", "error"],
        "noise": ["url", "method", "bytes", "ip", "agent", "port", "cache"],
    },
    "cluster": {
        "law": (40, 1.4),
        "units": ["s", "s", "ms"],
        "plain": "s",
        "gap": 20,
        "latency": (
            ["startup latency", "schedule delay", "queue delay", "wait", "pending duration"],
            ["time to start", "provisioning time", "launch delay", "queued duration", "admission wait"],
        ),
        "others": (["runtime", "cpu usage", "timeout"], ["lifetime", "active deadline", "cpu time"]),
        "start": (["created at", "creation time", "queued at"], ["creation timestamp", "requested at", "enqueue time"]),
        "end": (["started at", "scheduled time"], ["running at", "bound at"]),
        "status": ["job", "exit"],
        "noise": ["cpu request", "gpu limit", "namespace", "node", "memory limit", "replicas"],
    },
    "monitoring": {
        "law": (0.04, 0.7),
        "units": ["ms", "ms", "s"],
        "plain": "ms",
        "gap": 60,
        "latency": (
            ["rtt", "ping", "latency", "response time", "round trip time"],
            ["rtt value", "ping time", "delay", "roundtrip", "check duration"],
        ),
        "others": (["jitter"], ["mdev", "interval"]),
        "start": (["timestamp", "time", "checked at"], ["probe time", "measured at", "date time"]),
        "end": (["received at"], ["reply time"]),
        "status": ["up", "blank", "flag", "none"],
        "noise": ["host", "ttl", "seq", "loss", "size", "region"],
    },
    "llm": {
        "law": (4, 0.8),
        "units": ["s", "ms", "ms"],
        "plain": "s",
        "gap": 3,
        "latency": (
            ["latency", "duration", "response time", "elapsed", "total latency"],
            ["generation time", "e2e latency", "request latency", "inference time", "completion latency"],
        ),
        "others": (["ttft", "timeout"], ["time to first token", "inter token latency"]),
        "start": (["timestamp", "created", "start time"], ["created at", "request time stamp", "sent at"]),
        "end": (["end time", "finished at"], ["completed at", "responded at"]),
        "status": ["words", "http", "error", "none"],
        "noise": ["prompt tokens", "completion tokens", "cost", "model", "temperature", "rate"],
    },
    "ci": {
        "law": (240, 0.9),
        "units": ["s", "s", "min", "ms"],
        "plain": "s",
        "gap": 900,
        "latency": (
            ["duration", "build duration", "elapsed", "build time", "run duration"],
            ["job duration", "elapsed time", "wall time", "total duration", "time elapsed"],
        ),
        "others": (["timeout minutes"], ["avg duration"]),
        "start": (["started at", "start time", "created at"], ["run started at", "begin", "triggered at"]),
        "end": (["finished at", "completed at", "end time"], ["ended at", "stopped at", "finish time"]),
        "status": ["ci", "ci", "exit"],
        "noise": ["branch", "run number", "commit", "coverage", "attempt", "workflow"],
    },
    "db": {
        "law": (0.02, 1.3),
        "units": ["ms", "us", "s", "ms"],
        "plain": "ms",
        "gap": 1,
        "latency": (
            ["query time", "duration", "execution time", "elapsed", "latency"],
            ["statement duration", "exec time", "query duration", "runtime", "elapsed time"],
        ),
        "others": (["lock time", "cpu time"], ["planning time", "mean exec time"]),
        "start": (["timestamp", "start time", "log time"], ["event time", "query start", "started"]),
        "end": (["end time", "finished"], ["query end", "completed"]),
        "status": ["words", "error", "none", "flag"],
        "noise": ["rows sent", "rows examined", "database", "user", "pid", "statement"],
    },
    "mobile": {
        "law": (0.6, 0.9),
        "units": ["ms", "ms", "s"],
        "plain": "ms",
        "gap": 30,
        "latency": (
            ["network latency", "load time", "response time", "duration", "latency"],
            ["app start time", "api latency", "request duration", "screen load time", "call duration"],
        ),
        "others": (["dns lookup", "cpu time"], ["tcp connect", "render time"]),
        "start": (["event time", "timestamp", "client time"], ["sent at", "recorded at", "ts"]),
        "end": (["server time end", "end time"], ["received at", "responded at"]),
        "status": ["http", "words", "flag", "error"],
        "noise": ["app version", "battery", "signal", "latitude", "longitude", "download mbps", "os"],
    },
}

# name, then the words of good rows, failed rows and rows given up, for both halves of the grammar
OUTCOMES = {
    "http": (
        (
            ["status", "status code", "response code", "http status"],
            ["200", "201", "304", "404"],
            ["500", "502", "503"],
            ["504", "408"],
        ),
        (
            ["code", "http code", "sc status", "response status", "http.response.status_code"],
            ["200", "204", "301", "422"],
            ["500", "501", "429"],
            ["599", "524"],
        ),
    ),
    "words": (
        (["status", "result", "outcome"], ["ok", "success", "completed"], ["error", "failed"], ["timeout"]),
        (
            ["state", "verdict", "final status", "result status"],
            ["done", "succeeded", "finished", "passed"],
            ["failure", "rejected", "aborted"],
            ["timed out", "deadline exceeded"],
        ),
    ),
    "job": (
        (["state", "status", "job state"], ["COMPLETED", "DONE"], ["FAILED", "ABORTED"], ["CANCELLED", "PENDING"]),
        (
            ["final state", "job status", "phase"],
            ["FINISHED", "SUCCEEDED"],
            ["NODE_FAIL", "ERROR"],
            ["QUEUED", "TIMEOUT"],
        ),
    ),
    "ci": (
        (["conclusion", "status", "result"], ["success"], ["failure"], ["cancelled", "timed_out"]),
        (
            ["outcome", "build result", "state"],
            ["SUCCESS", "passed"],
            ["FAILURE", "errored"],
            ["ABORTED BY TIMEOUT", "canceled"],
        ),
    ),
    "flag": (
        (["success", "ok", "successful"], ["true"], ["false"], []),
        (["is ok", "passed", "succeeded"], ["True", "1", "yes"], ["False", "0", "no"], []),
    ),
    "up": (
        (["status", "result"], ["OK"], ["FAILED"], ["TIMEOUT"]),
        (["state", "check result"], ["ok"], ["unreachable", "error"], ["timed out"]),
    ),
    "exit": (
        (["exit code", "exit status"], ["0"], ["1", "137"], ["124"]),
        (["return code", "rc"], ["0"], ["2", "255", "-9"], ["124"]),
    ),
    "error": (
        (["error", "error message"], [""], ["connection refused", "ECONNRESET"], ["timeout", "request timed out"]),
        (
            ["exception", "error type", "failure reason"],
            [""],
            ["ConnectionError", "500 Internal Server Error"],
            ["ReadTimeout", "deadline exceeded"],
        ),
    ),
}
ALWAYS_OK = {"0": ["status", "run status"], "1": ["lifecycle state", "run state"]}

# names in both halves, and what they hold
NOISE = {
    "nodes": (
        ["nodes", "n nodes"],
        ["node count", "num hosts"],
        lambda r, n: [str(r.choice([1, 1, 2, 4, 8, 16])) for _ in range(n)],
    ),
    "queue": (
        ["queue", "partition"],
        ["queue name", "broker"],
        lambda r, n: [r.choice(["short", "long", "gpu", "debug"]) for _ in range(n)],
    ),
    "user": (["user", "username"], ["owner", "account"], lambda r, n: [f"u{r.randrange(12)}" for _ in range(n)]),
    "memory": (
        ["memory mb", "req mem"],
        ["max rss", "memory used"],
        lambda r, n: [str(r.choice([2000, 4000, 16000, 64000]) + r.randrange(900)) for _ in range(n)],
    ),
    "procs": (["procs", "ncpus"], ["cores", "slots"], lambda r, n: [str(r.choice([1, 4, 8, 28])) for _ in range(n)]),
    "priority": (["priority"], ["nice value"], lambda r, n: [str(r.randrange(1, 1000)) for _ in range(n)]),
    "site": (
        ["site", "ce"],
        ["computing element", "endpoint"],
        lambda r, n: [f"ce{r.randrange(5)}.example.org" for _ in range(n)],
    ),
    "url": (
        ["url", "path"],
        ["uri", "request path"],
        lambda r, n: [f"/api/{r.choice('abcd')}/{r.randrange(9)}" for _ in range(n)],
    ),
    "method": (
        ["method", "http method"],
        ["verb", "request method"],
        lambda r, n: [r.choice(["GET", "GET", "POST", "PUT"]) for _ in range(n)],
    ),
    "bytes": (
        ["bytes", "response size"],
        ["content length", "body bytes sent"],
        lambda r, n: [str(int(r.lognormvariate(7, 1.5))) for _ in range(n)],
    ),
    "ip": (
        ["client ip", "remote addr"],
        ["source ip", "peer"],
        lambda r, n: [f"10.0.{r.randrange(9)}.{r.randrange(250)}" for _ in range(n)],
    ),
    "agent": (
        ["user agent", "client"],
        ["browser", "ua"],
        lambda r, n: [r.choice(["curl/8.1", "Mozilla/5.0", "k6"]) for _ in range(n)],
    ),
    "port": (
        ["port", "remote port"],
        ["server port", "src port"],
        lambda r, n: [str(r.randrange(1024, 65000)) for _ in range(n)],
    ),
    "cache": (
        ["cache status", "cache"],
        ["x cache", "cdn cache result"],
        lambda r, n: [r.choice(["HIT", "MISS"]) for _ in range(n)],
    ),
    "cpu request": (
        ["cpu request", "cpu cores"],
        ["requested millicores", "cpu limit"],
        lambda r, n: [str(r.choice([0.5, 1, 2, 4])) for _ in range(n)],
    ),
    "gpu limit": (
        ["gpu limit", "gpu share"],
        ["gpu quota", "gpu fraction"],
        lambda r, n: [f"{r.random():.2f}" for _ in range(n)],
    ),
    "namespace": (
        ["namespace", "app name"],
        ["team", "deployment"],
        lambda r, n: [r.choice(["web", "batch", "ml"]) for _ in range(n)],
    ),
    "node": (["node", "host"], ["worker", "instance"], lambda r, n: [f"n{r.randrange(9):02d}" for _ in range(n)]),
    "memory limit": (
        ["memory limit", "mem request"],
        ["memory quota", "mem limit gb"],
        lambda r, n: [str(r.choice([1.5, 4.0, 16.0, 120.0])) for _ in range(n)],
    ),
    "replicas": (
        ["replicas", "max instances"],
        ["replica count", "restarts"],
        lambda r, n: [str(r.randrange(1, 9)) for _ in range(n)],
    ),
    "host": (
        ["host", "target"],
        ["hostname", "destination"],
        lambda r, n: [r.choice(["8.8.8.8", "1.1.1.1", "gw.local"]) for _ in range(n)],
    ),
    "ttl": (["ttl"], ["hop limit"], lambda r, n: [str(r.choice([52, 53, 54, 117])) for _ in range(n)]),
    "seq": (["seq", "sequence"], ["icmp seq", "packet number"], lambda r, n: [str(i + 1) for i in range(n)]),
    "loss": (
        ["packet loss", "loss percent"],
        ["loss pct", "dropped percent"],
        lambda r, n: [r.choice(["0.0", "0.0", "10.0"]) for _ in range(n)],
    ),
    "size": (["packet size", "size"], ["payload size", "data bytes"], lambda r, n: ["64"] * n),
    "region": (
        ["region", "probe location"],
        ["city", "country"],
        lambda r, n: [r.choice(["eu", "us", "ap"]) for _ in range(n)],
    ),
    "prompt tokens": (
        ["prompt tokens", "input tokens"],
        ["tokens in", "prompt length"],
        lambda r, n: [str(int(r.lognormvariate(6, 1))) for _ in range(n)],
    ),
    "completion tokens": (
        ["completion tokens", "output tokens"],
        ["tokens out", "generated tokens"],
        lambda r, n: [str(int(r.lognormvariate(5, 1))) for _ in range(n)],
    ),
    "cost": (["cost", "cost usd"], ["price", "usd"], lambda r, n: [f"{r.lognormvariate(-5, 1):.6f}" for _ in range(n)]),
    "model": (
        ["model", "model name"],
        ["engine", "deployment id"],
        lambda r, n: [r.choice(["small-1", "large-2"]) for _ in range(n)],
    ),
    "temperature": (
        ["temperature", "top p"],
        ["sampling temperature"],
        lambda r, n: [r.choice(["0.0", "0.7", "1.0"]) for _ in range(n)],
    ),
    "rate": (
        ["tokens per second", "throughput"],
        ["tps", "output speed"],
        lambda r, n: [f"{r.uniform(10, 120):.2f}" for _ in range(n)],
    ),
    "branch": (
        ["branch", "ref"],
        ["head branch", "git ref"],
        lambda r, n: [r.choice(["main", "dev", "fix/a"]) for _ in range(n)],
    ),
    "run number": (
        ["run number", "build number"],
        ["build id", "pipeline id"],
        lambda r, n: [str(1000 + i) for i in range(n)],
    ),
    "commit": (
        ["commit", "sha"],
        ["head sha", "revision"],
        lambda r, n: [f"{r.getrandbits(40):010x}" for _ in range(n)],
    ),
    "coverage": (
        ["coverage", "test count"],
        ["tests passed count", "code coverage pct"],
        lambda r, n: [f"{r.uniform(60, 95):.1f}" for _ in range(n)],
    ),
    "attempt": (
        ["attempt", "retry count"],
        ["run attempt", "retries"],
        lambda r, n: [str(r.choice([1, 1, 1, 2])) for _ in range(n)],
    ),
    "workflow": (
        ["workflow", "job name"],
        ["pipeline", "stage"],
        lambda r, n: [r.choice(["build", "test", "lint"]) for _ in range(n)],
    ),
    "rows sent": (
        ["rows sent", "rows"],
        ["rows returned", "n rows"],
        lambda r, n: [str(int(r.lognormvariate(3, 2))) for _ in range(n)],
    ),
    "rows examined": (
        ["rows examined"],
        ["rows scanned", "docs examined"],
        lambda r, n: [str(int(r.lognormvariate(6, 2))) for _ in range(n)],
    ),
    "database": (["database", "db"], ["schema", "table"], lambda r, n: [r.choice(["shop", "auth"]) for _ in range(n)]),
    "pid": (
        ["pid", "thread id"],
        ["session id", "connection id"],
        lambda r, n: [str(r.randrange(100, 30000)) for _ in range(n)],
    ),
    "statement": (
        ["statement", "query"],
        ["sql", "command"],
        lambda r, n: [f"SELECT {r.randrange(9)} FROM t" for _ in range(n)],
    ),
    "app version": (
        ["app version", "version"],
        ["build", "release"],
        lambda r, n: [r.choice(["4.2.1", "4.3.0"]) for _ in range(n)],
    ),
    "battery": (
        ["battery", "battery level"],
        ["battery pct", "charge"],
        lambda r, n: [str(r.randrange(5, 100)) for _ in range(n)],
    ),
    "signal": (
        ["signal dbm", "rssi"],
        ["signal strength", "rsrp"],
        lambda r, n: [str(-r.randrange(60, 115)) for _ in range(n)],
    ),
    "latitude": (
        ["lat", "latitude"],
        ["geo lat", "gps latitude"],
        lambda r, n: [f"{r.uniform(40, 55):.5f}" for _ in range(n)],
    ),
    "longitude": (
        ["lon", "longitude"],
        ["geo lon", "lng"],
        lambda r, n: [f"{r.uniform(-5, 20):.5f}" for _ in range(n)],
    ),
    "download mbps": (
        ["download mbps", "bandwidth"],
        ["throughput mbps", "down speed"],
        lambda r, n: [f"{r.uniform(1, 300):.2f}" for _ in range(n)],
    ),
    "os": (
        ["os", "platform"],
        ["device", "device model"],
        lambda r, n: [r.choice(["iOS", "Android"]) for _ in range(n)],
    ),
    "id": (
        ["id", "request id", "uuid"],
        ["trace id", "job id", "correlation id"],
        lambda r, n: [f"{r.getrandbits(64):016x}" for _ in range(n)],
    ),
    "day": (["date", "day"], ["date only", "partition date"], lambda r, n: ["2026-03-02"] * n),
    "avg": (
        ["avg latency ms", "p95 ms", "mean response time"],
        ["rolling mean ms", "p99 latency", "latency avg"],
        lambda r, n: [f"{r.uniform(80, 120):.2f}" for _ in range(n)],
    ),
    "zone": (["zone", "datacenter"], ["rack", "cell"], lambda r, n: [r.choice(["ok", "ko", "eu"]) for _ in range(n)]),
    "level": (["level", "log level"], ["severity", "lvl"], lambda r, n: ["INFO"] * n),
    "threshold": (["timeout ms", "timeout"], ["deadline ms", "sla ms"], lambda r, n: ["30000"] * n),
    "distance": (
        ["distance km", "geo distance"],
        ["hops", "altitude m"],
        lambda r, n: [f"{r.uniform(50, 9000):.3f}" for _ in range(n)],
    ),
    "load": (
        ["load", "cpu percent"],
        ["load avg", "queue depth"],
        lambda r, n: [f"{r.uniform(0, 8):.2f}" for _ in range(n)],
    ),
    "offset": (
        ["offset", "line"],
        ["cursor", "position"],
        lambda r, n: [str(100 * i + r.randrange(90)) for i in range(n)],
    ),
}
COMMON = ["id", "day", "avg", "zone", "level", "threshold", "distance", "load", "offset"]


def style_of(r):
    return r.choice(["snake", "snake", "camel", "title", "kebab", "upper", "dotted", "pascal", "joined"])


def styled(words: str, style: str, unit: str | None, r: random.Random) -> str:
    parts = words.replace("@", "@").split()
    if style == "snake" or (style == "joined" and len(parts) > 2):
        name = "_".join(parts)
    elif style == "camel":
        name = parts[0] + "".join(p.capitalize() for p in parts[1:])
    elif style == "pascal":
        name = "".join(p.capitalize() for p in parts)
    elif style == "title":
        name = " ".join(p.capitalize() for p in parts)
    elif style == "kebab":
        name = "-".join(parts)
    elif style == "upper":
        name = "_".join(parts).upper()
    elif style == "joined":
        name = "".join(parts)
    else:
        name = r.choice(["data", "attrs", "event"]) + "." + "_".join(parts)
    if unit is None:
        return name
    spelled = {
        "s": ["s", "sec", "seconds"],
        "ms": ["ms", "ms", "millis", "msec"],
        "us": ["us", "micros", "usec"],
        "min": ["min", "minutes"],
        "h": ["hours"],
    }[unit]
    word = r.choice(spelled)
    if style in ("camel", "pascal"):
        return name + word.capitalize()
    if style == "title":
        return f"{name} ({word})"
    if style == "upper":
        return f"{name}_{word.upper()}"
    if style == "kebab":
        return f"{name}-{word}"
    return (
        r.choice([f"{name}_{word}", f"{name}_{word}", f"{name}_in_{word}"]) if style != "joined" else f"{name}_{word}"
    )


def number(x: float, integer: bool, digits: int) -> str:
    return str(round(x)) if integer else f"{x:.{digits}f}"


def duration_text(x: float, r: random.Random, how: str) -> str:
    if how == "clock":
        h, rest = divmod(round(x), 3600)
        return f"{h:02d}:{rest // 60:02d}:{rest % 60:02d}"
    if x < 1:
        return f"{x * 1e3:.1f}ms"
    if x < 60:
        return f"{x:.2f}s"
    return f"{int(x // 60)}m{int(x % 60)}s"


def time_text(seconds: np.ndarray, how: str) -> list[str]:
    start = datetime(2026, 3, 2, 6, 0, 0, tzinfo=UTC)
    base = start.timestamp()
    if how == "epoch":
        return [str(int(base + t)) for t in seconds]
    if how == "epoch.":
        return [f"{base + t:.3f}" for t in seconds]
    if how == "epoch-ms":
        return [str(int((base + t) * 1e3)) for t in seconds]
    if how == "epoch-us":
        return [str(int((base + t) * 1e6)) for t in seconds]
    if how == "relative":
        return [f"{t:.3f}" for t in seconds]
    moments = [start + timedelta(seconds=float(t)) for t in seconds]
    if how == "isoz":
        return [m.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z" for m in moments]
    if how == "space":
        return [m.strftime("%Y-%m-%d %H:%M:%S") for m in moments]
    return [m.strftime("%d/%b/%Y:%H:%M:%S +0000") for m in moments]


def make(seed: int, half: int) -> tuple[dict[str, list[str]], Truth]:
    """A table (columns of text) and its truth; `half` chooses the synonyms."""
    r, g = random.Random(f"{half}-{seed}"), np.random.default_rng([half, seed])
    kind = r.choice(sorted(KINDS))
    spec, style, n = KINDS[kind], style_of(r), r.choice([30, 60, 120, 250])
    median, sigma = spec["law"]
    scale = median * float(np.exp(g.normal(0, 0.5)))
    latency = scale * np.exp(sigma * g.normal(size=n)) + scale * 0.05
    sent = np.cumsum(g.exponential(spec["gap"] * r.choice([0.3, 1, 3]), n))
    columns: dict[str, list[str]] = {}
    truth = Truth(None, kind=kind)

    # outcomes
    what = r.choice(spec["status"])
    rows = np.array(["good"] * n, dtype=object)
    blank = np.zeros(n, bool)
    status_name, words = None, []
    if what == "blank":
        blank = g.random(n) < 0.06
        blank[3] = True
    elif what != "none":
        names, good, failed, late = OUTCOMES[what][half]
        share = r.choice([0.02, 0.05, 0.15])
        draws = g.random(n)
        rows[draws < share] = "failed" if failed else "good"
        if late:
            rows[draws > 1 - share / 2] = "late"
        rows[:3] = ["good", "failed", "late" if late else "failed"]
        flags = what == "flag"
        pick = r.randrange(len(good))
        words = [
            (good[pick] if flags else r.choice(good))
            if x == "good"
            else (failed[pick] if flags else r.choice(failed))
            if x == "failed"
            else r.choice(late)
            for x in rows
        ]
        if what in ("words", "ci", "job"):  # one log has one word for what is well
            words = [good[pick] if x == "good" else w for x, w in zip(rows, words, strict=False)]
        status_name = styled(r.choice(names), style if "." not in names[0] else "snake", None, r)
        outcome = {"good": "completed", "failed": "failed", "late": "censored"}
        truth.meaning = {w: outcome[x] for w, x in zip(words, rows, strict=False)}
    failed_fast = rows == "failed"
    latency[failed_fast] *= 0.3

    # times
    layout = r.choices(["column", "pair", "both", "text"], [62, 14, 10, 14])[0]
    times = r.choices(
        ["isoz", "space", "epoch", "epoch.", "epoch-ms", "epoch-us", "clf", "none", "relative"],
        [24, 16, 8, 6, 20, 3, 5, 14, 4],
    )[0]
    if layout in ("pair", "both") and times in ("none", "relative", "space", "epoch", "clf") and scale < 5:
        times = r.choice(["isoz", "epoch-ms", "epoch."])
    if layout in ("pair", "both") and times in ("none", "relative"):
        times = "isoz"
    start_name = styled(r.choice(spec["start"][half]), style, None, r)
    end_name = styled(r.choice(spec["end"][half]), style, None, r)
    if times != "none":
        columns[start_name] = time_text(sent, times)
        truth.submitted = start_name
    if layout in ("pair", "both"):
        columns[end_name] = time_text(sent + latency, times)

    # the latency
    if layout != "pair":
        named = r.random() < 0.68
        unit = r.choice(spec["units"]) if named else spec["plain"]
        stem = r.choice(spec["latency"][half])
        values = latency / SCALE[unit]
        if layout == "text":
            how = "clock" if scale > 60 and r.random() < 0.5 else "unit"
            cells, unit_name, named = [duration_text(x, r, how) for x in latency], None, True
            unit = None
        else:
            integer = r.random() < (0.6 if np.median(values) > 8 else 0.0)
            cells = [
                number(x, integer, r.choice([2, 3]) if unit in ("ms", "us", "min", "h") else r.choice([3, 6]))
                for x in values
            ]
            unit_name = unit if named else None
        name = styled(stem, style, unit_name, r)
        for at in np.flatnonzero(blank):
            cells[at] = ""
        columns[name] = cells
        truth.latency, truth.unit, truth.named = (name,), unit, named
        # other durations of the same rows, always with the same naming of units
        for other in r.sample(spec["others"][half], r.choice([0, 0, 1, 2]) % (len(spec["others"][half]) + 1)):
            if "timeout" in other or "limit" in other or "deadline" in other or "interval" in other:
                part = [number(30 * scale / SCALE[unit or "s"], True, 0)] * n
            else:
                factor = g.uniform(0.05, 0.4, n) if kind not in ("grid", "cluster") else np.exp(g.normal(0.7, 1, n))
                part = [number(x, False, 3) for x in factor * latency / SCALE[unit or "s"]]
            columns[styled(other, style, unit_name, r)] = part
    else:
        truth.latency = (start_name, end_name)

    # noise
    if status_name is not None:
        columns[status_name] = list(words)
        truth.status = status_name
        if what in ("ci", "job") and r.random() < 0.2:
            decoy = styled(r.choice(ALWAYS_OK[str(half)]), style, None, r)
            columns.setdefault(decoy, ["completed"] * n)
    for key in r.sample(spec["noise"], r.randrange(1, 5)) + r.sample(COMMON, r.choice([0, 1, 1, 2, 3])):
        names, other_names, fill = NOISE[key]
        name = styled(r.choice((names, other_names)[half]), style, None, r)
        if name not in columns and not (key == "day" and times == "none"):
            columns[name] = fill(r, n)

    # tables without any latency: averages, counters and times alone
    if r.random() < 0.06:

        def plain(text):
            return "".join(x for x in text.lower() if x.isalpha())

        others = [plain(other) for other in spec["others"][half]]
        gone = {*(truth.latency or ()), end_name} - {start_name}
        gone |= {name for name in columns if any(other in plain(name) for other in others)}
        columns = {name: cells for name, cells in columns.items() if name not in gone}
        columns[
            styled(
                r.choice(
                    (["avg latency", "p95", "mean duration"], ["latency p50", "max response time", "median rtt"])[half]
                ),
                style,
                "ms",
                r,
            )
        ] = [f"{r.uniform(80, 120):.2f}" for _ in range(n)]
        columns[styled((["request count", "bytes total"], ["hits", "total requests"])[half][0], style, None, r)] = [
            str(r.randrange(50, 900)) for _ in range(n)
        ]
        truth.latency = truth.unit = truth.status = None
        if truth.submitted not in columns:
            truth.submitted = None
    order = list(columns)
    r.shuffle(order)
    if r.random() < 0.5:  # times come first in most logs
        order.sort(key=lambda name: name != start_name)
    return {name: columns[name] for name in order}, truth


def population(half: int, size: int = 300):
    return [make(seed, half) for seed in range(size)]


def judge(columns, truth):
    """Whether a table is read right, asked about, rightly refused, or what is wrong about it."""
    frame = pd.DataFrame(columns, dtype="str").replace("", None)
    try:
        roles, _ = resolve_roles(list(frame.columns), ReadOptions(), "table", frame)
    except LogError:
        return "refused" if truth.latency is None else "asked"
    words = {word_of(word) for word in columns.get(truth.status, ())}
    meaning = OutcomeWords(truth.status or "", {}, words)
    pairs = {
        "latency": (roles.latency or (roles.submitted, roles.ended), truth.latency),
        "unit": (roles.unit, truth.unit),
        "submitted": (roles.submitted, truth.submitted),
        "status": (roles.status, truth.status),
        "meaning": ({word: meaning.outcome(word_of(word)) for word in truth.meaning if truth.status}, truth.meaning),
    }
    if truth.latency is None:
        return "wrong: read"
    return next((f"wrong: {what}" for what, (reading, right) in pairs.items() if reading != right), "right")


def main():
    """Print how many tables of both halves of the grammar are read right, asked about and read wrongly."""
    for half in (0, 1):
        verdicts = Counter(judge(*table) for table in population(half))
        wrong = sum(count for verdict, count in verdicts.items() if verdict.startswith("wrong"))
        total = verdicts.total()
        print(f"half {half}: wrong {wrong / total:.2%}, asked {verdicts['asked'] / total:.2%}", dict(verdicts))


if __name__ == "__main__":
    main()
