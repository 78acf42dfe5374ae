"""Valid small logs of every format, taken apart so that they can be damaged field by field."""

import json
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

START = datetime(2026, 3, 1, tzinfo=UTC)


@dataclass
class TextLog:
    """A log of lines: what stands above the rows, the rows as fields, and what stands around and between these."""

    format: str
    head: list[str]
    rows: list[list[str]]
    separator: str
    opening: str = ""
    closing: str = ""
    header: bool = False  # the last line of the head names the columns

    def lines(self) -> list[str]:
        rows = [self.opening + self.separator.join(row) + self.closing for row in self.rows]
        return self.head + rows


def seconds(rng: random.Random) -> float:
    return round(rng.lognormvariate(5, 1), rng.choice((0, 0, 1, 3)))


def moments(rng: random.Random, n: int) -> list[datetime]:
    return [START + timedelta(seconds=10 * i + rng.randrange(10)) for i in range(n)]


def _outcome(rng: random.Random) -> str:
    return rng.choices(("completed", "failed", "censored", "lost"), (12, 1, 1, 1))[0]


def csv(rng: random.Random, n: int) -> TextLog:
    """One row a probe: latency, or a start and an end, in any order of columns."""
    columns: dict[str, list[str]] = {}
    when = moments(rng, n)
    pattern = rng.choice(("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S", "%s"))

    def written(moment: datetime) -> str:
        return str(int(moment.timestamp())) if pattern == "%s" else moment.strftime(pattern)

    if rng.random() < 0.5:
        columns["id"] = [str(i) for i in range(n)]
    if rng.random() < 0.3:
        columns["start"] = [written(moment) for moment in when]
        columns["end"] = [written(moment + timedelta(seconds=int(seconds(rng)))) for moment in when]
    else:
        columns[rng.choice(("latency", "rtt_ms", "elapsed"))] = [f"{seconds(rng):g}" for _ in when]
        if rng.random() < 0.6:
            columns["submitted"] = [written(moment) for moment in when]
    if rng.random() < 0.7:
        columns["status"] = [_outcome(rng) for _ in when]
    if rng.random() < 0.7:
        columns["site"] = [rng.choice(("a", "b", "café")) for _ in when]
    names = list(columns)
    rng.shuffle(names)
    rows = [list(row) for row in zip(*(columns[name] for name in names), strict=True)]
    separator = rng.choice(",,,\t;|")
    return TextLog("csv", [separator.join(names)], rows, separator, header=True)


def numbers(rng: random.Random, n: int) -> TextLog:
    """One number a line."""
    return TextLog("csv", [], [[f"{seconds(rng):g}"] for _ in range(n)], ",")


def jsonl(rng: random.Random, n: int) -> TextLog:
    rows = []
    for moment in moments(rng, n):
        record = {"ts": int(moment.timestamp()), "rtt_ms": seconds(rng), "result": _outcome(rng), "host": {"n": 1}}
        rows.append([f"{json.dumps(key)}: {json.dumps(value)}" for key, value in record.items()])
    return TextLog("jsonl", [], rows, ", ", "{", "}")


def swf(rng: random.Random, n: int) -> TextLog:
    rows = [
        f"{i + 1} {10 * i} {seconds(rng):g} {rng.randrange(-1, 99)} 1 -1 -1 1 100 -1 {rng.choice('0111115')} 1 1 -1 2 "
        "-1 -1 -1".split()
        for i in range(n)
    ]
    head = ["; Version: 2.2", "; UnixStartTime: 1000000000"]
    return TextLog("swf", head[: rng.randrange(3)], rows, rng.choice((" ", "  ", "\t")))


def gwf(rng: random.Random, n: int) -> TextLog:
    rows = [
        f"{i + 1} {1080000000 + 60 * i} {seconds(rng):g} 300 1 -1 -1 -1 -1 -1 {rng.choice('0115')} U1 G1 X1 Q0 P0 S1 "
        "S1 UNITARY -1 -1 -1 -1 -1 -1 -1 -1 VO1 -1".split()
        for i in range(n)
    ]
    return TextLog("gwf", ["# JobID SubmitTime WaitTime"][: rng.randrange(2)], rows, "\t")


def sacct(rng: random.Random, n: int) -> TextLog:
    """With sacct's header, or the 26 fields of XDMoD without it."""
    header, rows = rng.random() < 0.7, []
    for i, moment in enumerate(moments(rng, n)):
        start = moment + timedelta(seconds=int(seconds(rng)))
        submit, began, end = (f"{t:%Y-%m-%dT%H:%M:%S}" for t in (moment, start, start + timedelta(seconds=60)))
        job = rng.choice((str(i), str(i), f"{i}.batch", f"{i}_[1-3]"))
        state, node = rng.choice((("COMPLETED", "n1"), ("FAILED", "n1"), ("CANCELLED by 5", "None assigned")))
        if header:
            rows.append([job, submit, began, end, "00:01:00", state, node])
        else:
            asked = ("1", "12", "12", "48000Mn", "cpu=12", "cpu=12", "1-00:00:00")
            rows.append(
                [job, job, *"cpqagiu5", submit, submit, began, end, "00:01:00", "0:0", state, *asked, node, "job"]
            )
    head = ["JobID|Submit|Start|End|Elapsed|State|NodeList"] if header else []
    return TextLog("sacct", head, rows, "|", header=header)


def htcondor(rng: random.Random, n: int) -> TextLog:
    """Submissions, executions and ends of jobs; with or without years."""
    pattern, rows = rng.choice(("%m/%d %H:%M:%S", "%Y-%m-%d %H:%M:%S")), []
    for i, moment in enumerate(moments(rng, n)):
        events = [("000", 0, "Job submitted"), ("001", int(seconds(rng)), "Job executing"), ("005", 9999, "Job done")]
        for code, later, told in events[: rng.choice((1, 2, 3, 3))]:
            when = (moment + timedelta(seconds=later)).strftime(pattern)
            rows.append([code, f"({17 + i}.000.000)", *when.split(), told])
    return TextLog("htcondor", [], rows, " ", closing="\n...")


def jmeter(rng: random.Random, n: int) -> TextLog:
    head = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,failureMessage"
    answers = (
        ["200", "OK", "t1", "true", ""],
        ["200", '"OK, fine"', "t1", "true", ""],
        ["500", "Error", "t1", "false", '"two\nlines, ""quoted"""'],
        ["Non HTTP response code: java.net.SocketTimeoutException", "Read timed out", "t2", "false", ""],
    )
    rows = [
        [str(1767225600123 + 1000 * i), str(int(seconds(rng))), "Login", *rng.choices(answers, (9, 1, 1, 1))[0]]
        for i in range(n)
    ]
    return TextLog("jmeter", [head], rows, ",", header=True)


MAKERS = {
    "csv": csv, "numbers": numbers, "jsonl": jsonl, "swf": swf, "gwf": gwf, "sacct": sacct, "htcondor": htcondor,
    "jmeter": jmeter,
}  # fmt: skip
