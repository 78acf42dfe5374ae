"""Many logs and groups to one table: read each log, add up the samples of each group, analyse chunks of groups."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import astuple, dataclass
from functools import partial
from hashlib import blake2b
from importlib.metadata import version
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from latfit.batch.engines import Pool, open_pool
from latfit.batch.files import Grouping, LogFile, ReadFile, find_files, merged, read_file
from latfit.batch.histograms import histogram_rows
from latfit.batch.journal import Journal, open_journal
from latfit.batch.rows import RESULTS, Chunk, Row, chunk_text, rows_kept
from latfit.buckets import Histogram
from latfit.decision import Options, prepare
from latfit.errors import LogError, counted
from latfit.laws import Empirical, get_law
from latfit.resample import RESAMPLES
from latfit.restart import expected_duration
from latfit.table import Key, ProbeTable

Progress = Callable[[str, int, int], None]

REASONS = 3  # for which no log can be read are told
CHUNK_GROUPS = 256  # groups that are fitted together; fewer where each of them is resampled
RESAMPLED_GROUPS = 8
TESTED_GROUPS = 200  # up to this number of groups, the best law of each is tested unless told otherwise


@dataclass(frozen=True)
class BatchResult:
    """One row a group, then one for each log that could not be read; `columns` are the names and types.

    `bad_files` and `bad_groups` pair the names of what has an error with the reason. `refused` counts the
    rows of logs that were not taken, `notes` are what else is to be said.

    Examples
    --------
    >>> import latfit
    >>> table = latfit.BatchResult({"site": str, "timeout": float}, [{"site": "a", "timeout": 4.0}], [], [], 0, ())
    >>> table.to_frame()["timeout"].tolist()
    [4.0]
    """

    columns: dict[str, type]
    rows: list[Row]
    bad_files: list[tuple[str, str]]
    bad_groups: list[tuple[str, str]]
    refused: int
    notes: tuple[str, ...]

    def to_frame(self) -> Any:
        """The rows as a pandas DataFrame."""
        import pandas as pd

        kinds = {int: "Int64", float: "float64", str: "string"}  # "str" makes "None" of None before pandas 3
        return pd.DataFrame(self.rows, columns=list(self.columns)).astype(
            {name: kinds[kind] for name, kind in self.columns.items()}
        )


def run_batch(
    paths: str | Path | Sequence[str | Path],
    *,
    by: str | Sequence[str] = (),
    window: str | None = None,
    cutoff: float | None = None,
    failed: str = "retry",
    censoring: str = "auto",
    cost: float = 0.0,
    risk: float = 0.3,
    laws: Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    test: bool | None = None,
    seed: int = 0,
    engine: str = "processes",
    scheduler: str | None = None,
    workers: int | None = None,
    journal: str | Path | None = None,
    resume: bool = False,
    leave_out: Collection[str | Path] = (),
    progress: Progress | None = None,
    **how: Any,
) -> BatchResult:
    r"""One row of results for each value of the columns `by` and each time window, over any number of logs.

    `paths` are files, globs and folders; `by` may also name `file`, or a folder's column such as `site` of
    `site=cern/`. Without a `cutoff` each group has its own by the rule of `default_cutoff`. `test`: whether the
    best law of each group is tested (default: with at most 200 groups). `engine` is `processes`, on `workers` of
    them (one where other threads run, as in a notebook), or `dask`, with the address of a `scheduler` or a cluster
    on this machine. With a `journal`, what is finished is kept there for `resume`; the caller removes it. `how` is
    as for `read_log`. The rows do not depend on the engine, the workers or the order of anything.

    Parameters
    ----------
    paths
        Files, globs and folders.
    by, window
        What the rows are of.
    cutoff, failed, censoring, cost, risk, laws, resamples, test, seed
        As in `Options`.
    engine, scheduler, workers
        Where it runs.
    journal, resume
        What is kept of an unfinished run, and whether to go on with it.
    leave_out
        Files that are not logs, such as the output of the run before.
    progress
        Called with what is counted, how many are done and how many there are.
    how
        As for `read_log`.

    Returns
    -------
    BatchResult
        `.to_frame()` is the table of `latfit batch`.

    Examples
    --------
    >>> import pathlib, tempfile, latfit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "probes.csv"
    ...     latencies = "".join(f"{site},{10 + i % 7}\n" for i in range(40) for site in "ab")
    ...     _ = path.write_text("site,latency\n" + latencies)
    ...     done = latfit.run_batch(path, by="site", resamples=0, test=False, laws=["exponential"], workers=1)
    >>> done.to_frame()[["site", "probes"]].values.tolist()
    [['a', 40], ['b', 40]]
    """
    reading = Grouping((by,) if isinstance(by, str) else tuple(dict.fromkeys(by)), window, how)
    for law in laws or ():
        get_law(law)  # a name that is not known is told before anything is read
    skipped = {str(Path(path).absolute()) for path in leave_out}
    files = find_files([paths] if isinstance(paths, (str, Path)) else paths, leave_out=skipped)
    tell = progress or (lambda stage, done, total: None)
    with open_pool(engine, scheduler=scheduler, workers=workers) as pool:
        samples, histograms, bad_files, refused, notes = _read(pool, files, reading, tell)
        tested = len(samples) <= TESTED_GROUPS if test is None else test
        options = Options(cutoff=cutoff, failed=failed, censoring=censoring, cost=cost, resamples=resamples,
                          laws=None if laws is None else tuple(laws), test=tested, seed=seed, risk=risk)  # fmt: skip
        kept: AbstractContextManager[Journal | None] = nullcontext()
        if journal is not None:
            fingerprint = _fingerprint(samples, reading, options, bad_files)
            kept = open_journal(Path(journal), fingerprint, resume=resume)
        with kept as book:
            rows = analyse_groups(pool, samples, options, book, tell)
    counted = histogram_rows(histograms, cost)
    return _table(samples, rows, counted, reading, options, bad_files, refused, notes)


def _read(
    pool: Pool, files: Sequence[LogFile], reading: Grouping, tell: Progress
) -> tuple[dict[Key, ProbeTable], list[tuple[Key, Histogram]], list[tuple[str, str]], int, tuple[str, ...]]:
    """The samples of all groups, histograms, the logs that could not be read, how many rows were refused, and notes."""
    parts: dict[int, ReadFile] = {}
    bad, refused, queues = {}, 0, 0
    read = partial(read_file, how=reading)
    here = [place for place, file in enumerate(files) if file.path == "-"]  # workers have no standard input
    there = [place for place in range(len(files)) if place not in here]
    results = chain(
        ((place, read(files[place])) for place in here),
        ((there[at], found) for at, found in pool.unordered(read, [files[place] for place in there])),
    )
    for done, (place, found) in enumerate(results, 1):
        if found.error is not None:
            bad[place] = (files[place].name, found.error)
        elif found.facts is not None:
            refused += found.facts.refused.count
            queues += found.facts.queue
        parts[place] = found
        tell("logs", done, len(files))
    if len(bad) == len(files):
        raise LogError(_why_none([bad[place] for place in sorted(bad)]))
    every = [parts[place] for place in sorted(parts)]  # probes of one moment stay in the order of their files
    groups = merged(chain.from_iterable(one.groups.items() for one in every))
    histograms = [item for one in every for item in one.histograms.items()]
    notes = []
    if not reading.by and not reading.window and len(files) - len(bad) > 1:
        notes.append(f"{len(files) - len(bad)} logs are read as one; --by file has a row for each")
    if queues:
        notes.append(
            f"logs of queues: {queues}; resubmitting loses the place in a queue, which the theory does not count"
        )
    return groups, histograms, [bad[place] for place in sorted(bad)], refused, tuple(notes)


def _why_none(bad: Sequence[tuple[str, str]]) -> str:
    """Why no log can be read: each reason once, with the first log that has it, empty files last."""
    first: dict[str, str] = {}
    for name, reason in bad:
        first.setdefault(reason.replace(name, ""), reason)
    told = sorted(first.values(), key=lambda reason: "the file is empty" in reason)
    more = len(bad) - len(told[:REASONS])
    return "; ".join(told[:REASONS]) + (f" (and {counted(more, 'more log')} that cannot be read)" if more else "")


def analyse_groups(
    pool: Pool,
    samples: Mapping[Key, ProbeTable],
    options: Options,
    journal: Journal | None = None,
    tell: Progress = lambda stage, done, total: None,
) -> list[Row]:
    """One row a group, in order. Which groups are fitted together depends on their names only."""
    size = RESAMPLED_GROUPS if options.resamples or options.test else CHUNK_GROUPS
    groups = iter(samples.items())
    chunks = [Chunk(dict(islice(groups, size)), options) for _ in range(0, len(samples), size)]
    kept = journal.done.items() if journal else ()
    rows = {at: found for at, text in kept if at < len(chunks) and (found := rows_kept(text, chunks[at])) is not None}
    todo = [at for at in range(len(chunks)) if at not in rows]
    finished = sum(map(len, rows.values()))
    tell("groups", finished, len(samples))
    for place, text in pool.unordered(chunk_text, [chunks[at] for at in todo]):
        if journal:
            journal.add(todo[place], text)
        rows[todo[place]] = json.loads(text)
        finished += len(rows[todo[place]])
        tell("groups", finished, len(samples))
    return [row for at in range(len(chunks)) for row in rows[at]]


def _fingerprint(samples: Mapping[Key, ProbeTable], reading: Grouping, options: Options, bad: Any) -> str:
    """A checksum of everything that the rows depend on."""
    digest = blake2b(repr((version("latfit"), reading.columns, astuple(options), bad)).encode(), digest_size=16)
    for key, seen in samples.items():
        digest.update(
            repr((key, seen.facts.queue, seen.facts.has_outcomes, seen.resolution, sorted(seen.columns))).encode()
        )
        codes = [seen.columns[name].codes for name in sorted(seen.columns)]
        for array in (seen.latency, seen.status, seen.submitted, *codes):
            if array is not None:
                digest.update(array.size.to_bytes(8) + array.tobytes())
    return digest.hexdigest()


def _table(
    samples: Mapping[Key, ProbeTable],
    rows: list[Row],
    counted: Mapping[Key, Row],
    reading: Grouping,
    options: Options,
    bad_files: list[tuple[str, str]],
    refused: int,
    notes: tuple[str, ...],
) -> BatchResult:
    """The rows with the names of their groups in front, histograms and the logs that could not be read behind."""
    names = _names(reading)
    columns: dict[str, type] = dict.fromkeys(names, str) | RESULTS
    if reading.window is not None:
        columns["kept_regret"] = float
        for row, regret in zip(rows, kept_regrets(samples, rows, options), strict=True):
            row["kept_regret"] = regret
    columns.setdefault("file", str)
    columns["error"] = columns.pop("error")
    nothing = dict.fromkeys(columns)
    every = chain(zip(samples, rows, strict=True), counted.items())
    table = [nothing | dict(zip(names, key, strict=True)) | row for key, row in every]
    bad_groups = [
        (", ".join(f"{name}={row[name]}" for name in names) or "all logs", row["error"])
        for row in table
        if row["error"] is not None
    ]
    table += [nothing | {"file": name, "error": error} for name, error in bad_files]
    return BatchResult(columns, table, bad_files, bad_groups, refused, notes)


def _names(reading: Grouping) -> list[str]:
    """The columns that name a group; one that has the name of a result, or of another, is called log_NAME."""
    taken = {*RESULTS, "kept_regret", *(["window"] if reading.window is not None else [])}
    names: list[str] = []
    for name in reading.by:
        while name in taken:
            name = f"log_{name}"
        taken.add(name)
        names.append(name)
    return names if reading.window is None else [*names, "window"]


def kept_regrets(groups: Mapping[Key, ProbeTable], rows: Sequence[Row], options: Options) -> list[float | None]:
    """What it costs each window to keep the timeout of the last window of its group before it that had one.

    E_J of this window at that timeout over its own E_J, − 1; None where it is infinite or there is none.
    """
    found: list[float | None] = []
    before: tuple[Key, float] | None = None
    for (key, seen), row in zip(groups.items(), rows, strict=True):
        regret = None
        if row["expected_duration"] and key[-1] != "unknown":
            if before is not None and before[0] == key[:-1]:
                law = Empirical.of(prepare(seen, options).sample)
                E_J = float(expected_duration(law, before[1], cost=options.cost))
                regret = max(0.0, E_J / row["expected_duration"] - 1) if np.isfinite(E_J) else None
            before = key[:-1], np.inf if row["timeout"] is None else row["timeout"]
        found.append(regret)
    return found
