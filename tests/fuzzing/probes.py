"""Valid small logs of `latfit probe`, and the summaries of load generators that hold no single request."""

import json
import random
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from fuzzing.logs import TextLog, moments, seconds


def probe(rng: random.Random, n: int) -> TextLog:
    """One or two runs of probes or jobs; some have no end, one run may lack its last line."""
    rows: list[list[str]] = []
    number = 0
    for run in range(rng.choice((1, 1, 2))):
        kind = rng.choice(("probes", "probes", "jobs", "pairs"))
        header = {"latfit": "probe", "run": f"20260301t00000{run}-abc", "target": "command", "kind": kind, "plan": "",
                  "arrivals": rng.choice(("closed", "poisson")), "in_flight": 3}  # fmt: skip
        lines: list[dict[str, object]] = [header]
        for at, moment in enumerate(moments(rng, max(1, n // 2))):
            number += 1
            when = f"{moment + timedelta(days=run):%Y-%m-%dT%H:%M:%S.000000Z}"
            attempt = rng.choice((1, 1, 1, 2)) if kind != "probes" else 1
            lines.append({"probe": number, "job": number, "attempt": attempt, "submitted": when, "t": 10.0 * at})
            if rng.random() < 0.9:
                status = rng.choices(("completed", "failed", "censored", "lost"), (12, 1, 1, 1))[0]
                lines.append({"end": number, "status": status, "latency": seconds(rng), "detail": "exit 0",
                              "t": 10.0 * at + 5})  # fmt: skip
            if rng.random() < 0.1:
                lines.append({"beat": 10.0 * at + 6, "lag": 0.001})
        lines += [{"finished": "done", "t": 1e4, "lag": 0.0}][: rng.choice((0, 1))]
        rows += [json.dumps(line)[1:-1].split(", ") for line in lines]
    return TextLog("probe", [], rows, ", ", "{", "}")


def wrk(rng: random.Random, _: int) -> TextLog:
    text = """Running 30s test @ http://127.0.0.1:8080/
  12 threads and 400 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   635.91us    0.89ms  12.92ms   93.69%
  Latency Distribution
     50%  250.00us
Requests/sec: 748868.53"""
    rows = [line.split(" ") for line in text.split("\n")]
    return TextLog("wrk", [], rows[: rng.choice((3, 7))], " ")


def _of_fixture(path: Path) -> Callable[[random.Random, int], TextLog]:
    """Logs made of a fixture's lines: repeated where each is a record, as they are where all are one document."""

    def make(rng: random.Random, n: int) -> TextLog:
        lines = path.read_text().splitlines()
        if path.suffix in LINES:
            lines = [rng.choice(lines) for _ in range(max(n, len(lines)))] + lines
        return TextLog(path.suffix[1:], [], [line.split(" ") for line in lines], " ")

    return make


LINES = (".squid", ".caddy", ".traefik", ".lambda", ".heroku", ".pgbench")
FIXTURES = (
    "requests.squid", "requests.caddy", "requests.traefik", "server.mongod", "queries.mysql-slow", "report.lambda",
    "worker.celery", "router.heroku", "transactions.pgbench", "samples.jmeter-xml", "jobs.slurm-json",
    "history.condor-history", "workflow.wfinstances", "spans.zipkin", "runs.github-runs",
)  # fmt: skip
DATA = Path(__file__).parent.parent / "data"
MAKERS = {"probe": probe, "wrk": wrk} | {name.split(".")[1]: _of_fixture(DATA / name) for name in FIXTURES}
UNCOUNTED = {*MAKERS}  # a line is no row
