"""Rows on what users run: whole commands, process against process, start-up and output included.

Times are processor seconds of the process and its workers: a second thread or a busy machine does not flatter.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.data import FOLDER, command_log
from benchmarks.startup import LATFIT, LOG
from benchmarks.timing import Cost, Row, Timed, in_turns, seconds

PLAIN = ["--resamples", "0", "--no-test"]
READ = "import pandas; pandas.read_{}({!r}{})"
GROUPED = READ + ".groupby('site').latency.quantile(.99).to_csv({!r})"
READERS = {"csv": ("csv", ""), "csv.gz": ("csv", ""), "jsonl": ("json", ", lines=True"), "parquet": ("parquet", "")}
RATE = 300  # groups a second and core that intervals and p-values should reach


LAUNCH = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=sys.stderr)
_, code, used = os.wait4(child.pid, 0)
child.returncode = os.waitstatus_to_exitcode(code)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
sys.exit(child.returncode)
"""  # a small process of its own: a child begins with the peak memory of the one that started it


def ran(*words: str) -> Timed:
    """The processor time and the peak memory of a process, those that it waited for included."""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", LAUNCH, *words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-300:])
    spent, peak = map(float, done.stdout.split())
    return Timed(spent, Cost(peak, None))


def python(code: str) -> Callable[[], Timed]:
    return partial(ran, sys.executable, "-c", code)


def latfit(*words: str) -> Callable[[], Timed]:
    return partial(ran, str(LATFIT), *words)


def result(name: str) -> str:
    return str(Path(FOLDER.name) / name)


@dataclass(frozen=True)
class Command:
    """A command on the log (LOG in its words, OUT a file), what it is measured against, and the targets."""

    words: str
    against: str
    target: str
    memory: str | None = None
    suffix: str = "csv"


OUTLIERS = "outliers LOG --json"
COMMANDS = {
    "timeout": Command("timeout LOG --json", "read", "≤ 1.5 ×", "≤ 0.5 ×"),
    "outliers": Command(OUTLIERS, "read", "≤ 1.5 ×", "≤ 0.5 ×"),
    "analyze": Command("analyze LOG --json", "read", "≤ 4 ×"),
    "replay": Command("replay LOG --json", "read_log", "≤ 2 ×"),
    "convert": Command("convert LOG -o OUT.parquet", "read", "≤"),
    "batch": Command("batch LOG --by site -o OUT.csv " + " ".join(PLAIN), "group", "≤ 2 ×", "≤"),
    "gzip": Command(OUTLIERS, "read", "≤ 2 ×", suffix="csv.gz"),
    "jsonl": Command(OUTLIERS, "read", "≤ 2 ×", suffix="jsonl"),
    "parquet": Command(OUTLIERS, "read", "≤ 2 ×", suffix="parquet"),
}
LARGE = ("timeout", "outliers", "batch")  # whose targets are those of 10⁷ rows


def rival(against: str, path: str, suffix: str) -> tuple[str, Callable[[], Timed]]:
    """What a command is measured against, in words and as a process."""
    kind, more = READERS[suffix]
    if against == "read_log":
        return "latfit reading the log", python(f"import latfit; latfit.read_log({path!r})")
    if against == "group":
        return "a pandas script: read, group by site, quantile(.99)", python(
            GROUPED.format(kind, path, more, result("theirs.csv"))
        )
    return f'python -c "import pandas; pandas.read_{kind}(…)"', python(READ.format(kind, path, more))


def command(key: str, name: str, rows: int, quick: bool) -> list[Row]:
    """One command on 10⁶ rows, or 10⁷ (a tenth with --quick): processor time, and peak memory where it has a target."""
    asked = COMMANDS[name]
    n = rows // 10 if quick else rows
    path = str(command_log(n, asked.suffix))
    told, theirs = rival(asked.against, path, asked.suffix)
    words = [word.replace("LOG", path).replace("OUT", result("ours")) for word in asked.words.split()]
    a, b = in_turns(1 if n >= 10**6 else 2, theirs, latfit(*words))
    shown = asked.words.replace("LOG", f"LOG.{asked.suffix}")
    work = f"`latfit {shown}`, {n:.0e} rows"
    found = [Row(key, work, told, asked.target, seconds(a), seconds(b), "processor s")]
    if asked.memory is not None:
        peaks = [[one.result.peak for one in side] for side in (a, b)]
        found.append(Row(f"{key}/memory", f"{work}, peak memory", told, asked.memory, *peaks, "MiB"))
    return found


def intervals(key: str, quick: bool) -> list[Row]:
    """Intervals and a p-value for every group, less what the same command needs to read the log."""
    groups = 50 if quick else 200
    path = str(command_log(groups * 500, "csv", sites=groups))
    batch = ("batch", path, "--by", "site", "-o", result("ours.csv"), "--workers", "1")
    read, whole = in_turns(1, python(f"import latfit; latfit.read_log({path!r})"), latfit(*batch, "--test"))
    spent = [b - a for a, b in zip(seconds(read), seconds(whole), strict=True)]
    rate = groups / spent[0]
    work = f"`latfit batch --by site`, intervals and p-values of {groups} groups of 500 with times, after reading"
    told = f"{rate:.1f} groups a second and core"
    return [Row(key, work, f"{RATE} groups a second and core", "≤ 1 ×", [groups / RATE], spent, "processor s",
                answers=told)]  # fmt: skip


def compare(key: str, quick: bool) -> list[Row]:
    """`compare` on the bundled log against `analyze` on it, and against two seconds."""
    a, b = in_turns(2, latfit("analyze", str(LOG)), latfit("compare", str(LOG)))
    work = "`latfit compare` on the bundled log"
    return [
        Row(key, work, "`latfit analyze` on it", "≤ 1 ×", seconds(a), seconds(b), "processor s"),
        Row(f"{key}/seconds", work, "two seconds", "≤ 1 ×", [2.0], seconds(b), "processor s"),
    ]


BENCHES = {
    **{f"commands/{name}": partial(command, name=name, rows=10**6) for name in COMMANDS},
    **{f"commands-large/{name}": partial(command, name=name, rows=10**7) for name in LARGE},
    "commands/intervals": intervals,
    "commands/compare": compare,
}
