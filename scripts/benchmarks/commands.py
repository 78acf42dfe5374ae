"""Rows on what users run: whole commands, process against process, start-up and output included.

Times are processor seconds of the process and its workers: a second thread or a busy machine does not flatter.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.data import FOLDER, command_log
from benchmarks.startup import LATFIT, LOG
from benchmarks.timing import Row, Timed, in_turns, ran, seconds

PLAIN = ["--resamples", "0", "--no-test"]
READ = "import pandas; pandas.read_{}({!r}{})"
GROUPED = READ + ".groupby('site').latency.quantile(.99).to_csv({!r})"
READERS = {"csv": ("csv", ""), "csv.gz": ("csv", ""), "jsonl": ("json", ", lines=True"), "parquet": ("parquet", "")}
RATE = 50  # groups per second and core that intervals and p-values should reach


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
    "timeout": Command("timeout LOG --json", "read", "≤ 2.2 ×", "≤"),
    "outliers": Command(OUTLIERS, "read", "≤ 2.2 ×", "≤"),
    "analyze": Command("analyze LOG --json", "read", "≤ 4 ×"),
    "replay": Command("replay LOG --json", "read", "≤ 2.5 ×"),
    "convert": Command("convert LOG -o OUT.parquet", "read", "≤"),
    "batch": Command("batch LOG --by site -o OUT.csv " + " ".join(PLAIN), "group", "≤ 6 ×", "≤"),
    "gzip": Command(OUTLIERS, "read", "≤ 2.2 ×", suffix="csv.gz"),
    "jsonl": Command(OUTLIERS, "read", "≤ 2.2 ×", suffix="jsonl"),
    "parquet": Command(OUTLIERS, "read", "≤ 2.2 ×", suffix="parquet"),
}
LARGE = {  # 10⁷ rows
    "timeout": Command("timeout LOG --json", "read", "≤ 2 ×", "≤ 0.6 ×"),
    "outliers": Command(OUTLIERS, "read", "≤ 1.5 ×", "≤ 0.5 ×"),
}


def rival(against: str, path: str, suffix: str) -> tuple[str, Callable[[], Timed]]:
    """What a command is measured against, in words and as a process."""
    kind, more = READERS[suffix]
    if against == "group":
        return "a pandas script: read, group by site, quantile(.99)", python(
            GROUPED.format(kind, path, more, result("theirs.csv"))
        )
    return f'python -c "import pandas; pandas.read_{kind}(…)"', python(READ.format(kind, path, more))


def command(key: str, asked: Command, rows: int, quick: bool) -> list[Row]:
    """One command: processor time, and peak memory; two rounds, one with --quick or on 10⁷ rows."""
    path = str(command_log(rows, asked.suffix))
    told, theirs = rival(asked.against, path, asked.suffix)
    words = [word.replace("LOG", path).replace("OUT", result("ours")) for word in asked.words.split()]
    a, b = in_turns(1 if quick or rows > 10**6 else 2, theirs, latfit(*words))
    shown = asked.words.replace("LOG", f"LOG.{asked.suffix}")
    work = f"`latfit {shown}`, {rows:.0e} rows"
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
    told = f"{rate:.1f} groups per second and core"
    return [Row(key, work, f"{RATE} groups per second and core", "≤ 1 ×", [groups / RATE], spent, "processor s",
                answers=told)]  # fmt: skip


def limited(key: str, words: str, rows: int, limit: float, quick: bool) -> list[Row]:
    """A command on so many rows, or on the bundled log (0), against a number of processor seconds."""
    path = LOG if not rows else command_log(rows, "csv")
    (found,) = in_turns(1 if quick else 2, latfit(*words.split(), str(path)))
    where = f"{rows:.3g} rows" if rows else "the bundled log"
    return [Row(key, f"`latfit {words}` on {where}", f"{limit:g} s", "≤ 1 ×", [limit], seconds(found), "processor s")]


BENCHES = {
    **{f"commands/{name}": partial(command, asked=asked, rows=10**6) for name, asked in COMMANDS.items()},
    **{f"commands-large/{name}": partial(command, asked=asked, rows=10**7) for name, asked in LARGE.items()},
    "commands/intervals": intervals,
    "commands/compare": partial(limited, words="compare", rows=0, limit=1.4),
    "commands/analyze-1e5": partial(limited, words="analyze --json", rows=100_000, limit=3.0),
    "commands/analyze-2.5e5": partial(limited, words="analyze --json", rows=250_000, limit=3.0),
}
