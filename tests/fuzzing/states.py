"""Files that latfit writes for itself and reads again, damaged: the state of a tracker or a watch, the two journals."""

import copy
import functools
import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import latfit
from fuzzing.mutate import BYTES
from latfit.batch import run_batch
from latfit.errors import LatfitError
from latfit.measure.journal import open_journal
from latfit.tracking.watch import Watch

CUTOFF = 60.0
LEAVES: tuple[Any, ...] = (
    None, True, 0, -1, 1, 3, 1e308, -1e308, 1e-320, math.nan, math.inf, 2**70, "", "x", "1", [], [[]], [1, 2], {}, "🤯",
    [None] * 5, {"a": 1},
)  # fmt: skip
LOG = "latency,status,site\n" + "".join(
    f"{1 + 7 * i % 11 + i % 3 / 10},{'lost' if i % 17 == 4 else 'completed'},{'abc'[i % 3]}\n" for i in range(60)
)


@functools.cache
def tracker_state() -> str:
    """The state of a tracker that has seen some hundred attempts and an alarm."""
    tracker, rng = latfit.Tracker(initial=1.0, cutoff=CUTOFF), np.random.default_rng(1)
    for i in range(300):
        t = tracker.next(at=1.7e9 + 3600 * i)
        x = float(rng.lognormal(0 if i < 200 else 2, 1))
        tracker.observe(min(x, t), "completed" if x <= t else "censored", at=1.7e9 + 3600 * i)
    return tracker.to_json()


def _damaged_json(text: str, rng: random.Random) -> str:
    """A document with some of its values or keys changed."""
    document = json.loads(text)
    for _ in range(rng.choice((1, 1, 2, 5))):
        _damage(document, rng)
    return json.dumps(document)


def _damage(value: Any, rng: random.Random) -> None:
    """Change a random part of a nested document."""
    while isinstance(value, (dict, list)) and value:
        keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = rng.choice(keys)
        if isinstance(value[key], (dict, list)) and value[key] and rng.random() < 0.85:
            value = value[key]
            continue
        if rng.random() < 0.2:
            del value[key]
        else:
            value[key] = copy.deepcopy(rng.choice(LEAVES))  # a leaf may be damaged in its turn
        return


def damaged(text: str, rng: random.Random) -> bytes:
    """A document damaged as one, or as bytes."""
    if rng.random() < 0.6:
        return _damaged_json(text, rng).encode()
    data = bytearray(text.encode())
    BYTES[rng.choice(list(BYTES))](data, rng)
    return bytes(data)


def _damaged_lines(data: bytes, rng: random.Random) -> bytes:
    """Journals are lines: some are damaged, doubled, dropped or out of order."""
    lines = data.splitlines(keepends=True)
    for _ in range(rng.choice((1, 2, 4))):
        at = rng.randrange(len(lines))
        how = rng.randrange(5)
        if how == 0:
            lines.insert(at, lines[at])
        elif how == 1 and len(lines) > 1:
            del lines[at]
        elif how == 2:
            rng.shuffle(lines)
        elif how == 3:
            lines[at] = _damaged_line(lines[at], rng)
        else:
            lines[at] = rng.choice(
                (b"[" * 100_000 + b"\n", b"null\n", b'"latfit"\n', b"\xff\xfe\n", b"{}\n", b"1" * 5000)
            )
    return b"".join(lines)[: rng.choice((None, None, -3))]


def _damaged_line(line: bytes, rng: random.Random) -> bytes:
    try:
        return damaged(line.decode(), rng) + b"\n"
    except (ValueError, RecursionError):  # it is damaged already
        return line[: len(line) // 2]


def tracker_content(rng: random.Random) -> bytes:
    return damaged(tracker_state(), rng)


@functools.cache
def _watch_state() -> dict[str, Any]:
    return {"latfit-watch": 2, "path": "PATH", "tail": {"inode": 1, "offset": 20, "head": b"latency,status\n".hex()},
            "refused": 0, "announced": 1.5, "tracker": json.loads(tracker_state())}  # fmt: skip


def watch_content(rng: random.Random) -> bytes:
    return damaged(json.dumps(_watch_state()), rng)


@functools.cache
def journal() -> bytes:
    """The journal of a batch of three groups, all finished."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "log").write_text(LOG)
        batch_rows(Path(folder), resume=False)
        return (Path(folder) / "journal").read_bytes()


def journal_content(rng: random.Random) -> bytes:
    return _damaged_lines(journal(), rng)


def probe_content(rng: random.Random) -> bytes:
    from fuzzing.probes import probe

    return _damaged_lines("".join(line + "\n" for line in probe(rng, 10).lines()).encode(), rng)


def batch_rows(folder: Path, *, resume: bool) -> list[dict[str, Any]]:
    return run_batch(folder / "log", by="site", laws=["exponential"], resamples=0, test=False, workers=1,
                     journal=folder / "journal", resume=resume).rows  # fmt: skip


def wrong_tracker(content: bytes, folder: Path) -> list[str]:
    """Refused, or a tracker that works: its timeouts lie in (0, cutoff], and it can be written and read again."""
    try:
        tracker = latfit.Tracker.from_json(content.decode(errors="surrogateescape"))
    except latfit.LatfitError:
        return []
    for k in range(40):
        t = tracker.next()
        if not 0 < t <= tracker.cutoff:
            return [f"the timeout is {t} of {tracker.cutoff}"]
        tracker.observe(t / 2 if k % 3 else t, "completed" if k % 3 else "censored", at=1.8e9 + 600 * k)
    low, high = tracker.interval()
    again = latfit.Tracker.from_json(tracker.to_json())
    told = [] if again.next() == tracker.next() else ["another tracker is read than was written"]
    return told if low <= high else [*told, f"interval {low} to {high}"]


def wrong_watch(content: bytes, folder: Path) -> list[str]:
    """Refused, or a watch that reads the log from somewhere."""
    log, state = folder / "log", folder / "state"
    log.write_text(LOG)
    inode, path = str(log.stat().st_ino).encode(), json.dumps(str(log.resolve()))[1:-1].encode()
    state.write_bytes(content.replace(b'"inode": 1,', b'"inode": ' + inode + b",").replace(b"PATH", path))
    try:
        with Watch(log, cutoff=CUTOFF, state=state) as watch:
            read = watch.read()
            watch.notice()
            watch.save()
    except LatfitError:
        return []
    return [] if 0 <= read <= 60 else [f"{read} attempts of 60 were read"]


def wrong_journal(content: bytes, folder: Path) -> list[str]:
    """Whatever a journal contains, a batch resumed from it writes the rows of an undisturbed one, or refuses."""
    (folder / "log").write_text(LOG)
    whole = batch_rows(folder, resume=False)
    (folder / "journal").write_bytes(content)
    try:
        rows = batch_rows(folder, resume=True)
    except LatfitError:
        return []
    return [] if rows == whole else ["a damaged journal changed the rows"]


def wrong_probe(content: bytes, folder: Path) -> list[str]:
    """What is known of earlier runs are numbers, and names of runs that cannot be taken for anything else."""
    path = folder / "log"
    path.write_bytes(content)
    try:
        with open_journal(path, "run", resume=True) as (_, earlier):
            pass
    except LatfitError:
        return []
    numbers = [n for a in earlier.left for n in (a.probe, a.job, a.attempt)] + [earlier.probes, earlier.jobs]
    odd = [run for run in earlier.unfinished if not run.replace("-", "").isalnum()]
    told = [f"numbers that are none: {numbers}"] if not all(type(n) is int for n in numbers) else []
    return told + ([f"names of runs: {odd}"] if odd else [])


KINDS: dict[str, tuple[Callable[[random.Random], bytes], Callable[[bytes, Path], list[str]]]] = {
    "tracker state": (tracker_content, wrong_tracker),
    "watch state": (watch_content, wrong_watch),
    "batch journal": (journal_content, wrong_journal),
    "probe journal": (probe_content, wrong_probe),
}
