"""Many logs to one table: read each log, join the probes of each group, analyse the groups in chunks."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import astuple, fields, replace
from functools import partial
from hashlib import blake2b
from importlib.metadata import version
from itertools import chain, islice
from pathlib import Path
from typing import Any
from zlib import crc32

from latfit._system import write_all
from latfit.batch.engines import Pool, open_pool
from latfit.batch.files import LogFile, ReadFile, collected, find_files, merged, read_file
from latfit.batch.output import BatchResult
from latfit.batch.rows import FIELDS, FIT_FIELDS, Row, are_rows, chunk_rows, fit_rows, histogram_row
from latfit.decision import Options, prepare
from latfit.errors import LatfitError, LogError, counted
from latfit.laws import Empirical, get_law
from latfit.numbers import finite
from latfit.restart.completion import regret
from latfit.table import Key, ProbeTable

Progress = Callable[[str, int, int], None]
Journal = tuple[dict[int, list[list[Row]]], Callable[[int, list[list[Row]]], None]]
NO_JOURNAL: Journal = ({}, lambda chunk, rows: None)

TESTED_GROUPS = 200  # with more groups, their laws are not tested unless the caller asks for it


def run_batch(
    paths: str | Path | Sequence[str | Path],
    *,
    by: str | Sequence[str] = (),
    window: str | None = None,
    method: str | None = None,
    test: bool | None = None,
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

    The rows do not depend on the engine, the workers or the order of anything.

    Parameters
    ----------
    paths
        Files, globs and folders.
    by, window
        The columns and time windows that make a group; `by` may also name `file`, or a folder's column such as `site`
        of `site=cern/`.
    method
        `mle` or `ls`: each row is then one of the `laws` fitted to a group, with the timeout that follows from it.
        Whether attempts are independent is not checked.
    test
        Whether the best law of each group is tested (default: with at most 200 groups).
    engine, scheduler, workers
        `processes`, on `workers` of them (one where other threads run, as in a notebook), or `dask`, with the address
        of a `scheduler` or a cluster on this machine.
    journal, resume
        The file that keeps what is finished, and whether to continue from it; the caller removes it.
    leave_out
        Files that are not logs, such as the output of an earlier run.
    progress
        Called with what is counted (logs or groups), how many are done and how many there are.
    how
        The other fields of `Options`, such as `cost=5.0`, and what `read_log` takes. Without a `cutoff` each group has
        its own by the rule of `default_cutoff`.

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
    by = (by,) if isinstance(by, str) else tuple(dict.fromkeys(by))
    asked = {field.name: how.pop(field.name) for field in fields(Options) if field.name in how}
    options = Options(**asked, method=method or "mle")
    for law in options.laws or ():
        get_law(law)  # an unknown name is an error before anything is read
    skipped = {str(Path(path).absolute()) for path in leave_out}
    files = find_files([paths] if isinstance(paths, (str, Path)) else paths, leave_out=skipped)
    tell = progress or (lambda stage, done, total: None)
    with open_pool(engine, scheduler=scheduler, workers=workers) as pool:
        logs = _read(pool, files, partial(read_file, by=by, window=window, options=how), tell)
        bad_files = [(file.name, log.error) for file, log in zip(files, logs, strict=True) if log.error is not None]
        if len(bad_files) == len(files):
            raise LogError(_why_none(bad_files))
        samples = merged(chain.from_iterable(log.groups.items() for log in logs))
        options = replace(options, test=len(samples) <= TESTED_GROUPS if test is None else test)
        kept: AbstractContextManager[Journal] = nullcontext(NO_JOURNAL)
        if journal is not None:
            run = (version("latfit"), by, window is not None, astuple(options), method, bad_files)
            kept = open_journal(Path(journal), _fingerprint(run, samples), resume=resume)
        with kept as book:
            work = partial(fit_rows if method else chunk_rows, options=options)
            rows = analyse_groups(pool, samples, work, book, tell)
    named = [(key, row) for key, several in zip(samples, rows, strict=True) for row in several]
    if window is not None and not method:
        _add_kept_regrets(dict(named), samples, options)
    histograms = collected(item for log in logs for item in log.histograms.items())
    no_fit: Row = {"error": "a histogram: `latfit timeout FILE --law NAME` fits a law to its counts"}
    named += [(key, no_fit if method else histogram_row(several, options.cost)) for key, several in histograms.items()]
    return _table(named, by, [] if window is None else ["window"], logs, bad_files, fits=method is not None)


def _read(pool: Pool, files: Sequence[LogFile], read: Callable[[LogFile], ReadFile], tell: Progress) -> list[ReadFile]:
    logs = {0: read(files[0])} if files[0].path == "-" else {}  # sorted first; workers have no standard input
    here = len(logs)
    tell("logs", here, len(files))
    for place, log in pool.unordered(read, files[here:]):
        logs[here + place] = log
        tell("logs", len(logs), len(files))
    return [log for _, log in sorted(logs.items())]


def _why_none(bad: Sequence[tuple[str, str]]) -> str:
    first: dict[str, str] = {}
    for name, reason in bad:
        first.setdefault(reason.replace(name, ""), reason)
    reasons = sorted(first.values(), key=lambda reason: "the file is empty" in reason)[:3]
    more = len(bad) - len(reasons)
    return "; ".join(reasons) + (f" (and {counted(more, 'more log')} that cannot be read)" if more else "")


def analyse_groups(
    pool: Pool,
    samples: Mapping[Key, ProbeTable],
    work: partial[list[list[Row]]],
    journal: Journal = NO_JOURNAL,
    tell: Progress = lambda stage, done, total: None,
) -> list[list[Row]]:
    """The rows of each group, in order. Which groups are fitted together depends on their names only."""
    options: Options = work.keywords["options"]
    size = max(8, min(256, len(samples) // 8)) if options.resamples or options.test else 256
    groups = iter(samples.items())
    chunks = [dict(islice(groups, size)) for _ in range(0, len(samples), size)]
    (kept, add), fields = journal, FIT_FIELDS if work.func is fit_rows else FIELDS
    rows = {at: kept[at] for at, chunk in enumerate(chunks) if at in kept and are_rows(kept[at], len(chunk), fields)}
    todo = [at for at in range(len(chunks)) if at not in rows]
    tell("groups", sum(map(len, rows.values())), len(samples))
    for place, results in pool.unordered(work, [chunks[at] for at in todo]):
        rows[todo[place]] = results
        add(todo[place], results)
        tell("groups", sum(map(len, rows.values())), len(samples))
    return [several for at in range(len(chunks)) for several in rows[at]]


def _fingerprint(run: tuple[Any, ...], samples: Mapping[Key, ProbeTable]) -> str:
    digest = blake2b(repr(run).encode(), digest_size=16)
    for key, probes in samples.items():
        columns = sorted(probes.columns)
        group = (key, probes.facts.queue, probes.facts.has_outcomes, probes.resolution, columns)
        digest.update(repr(group).encode())
        for array in (probes.latency, probes.status, probes.submitted, *(probes.columns[c].codes for c in columns)):
            if array is not None:
                digest.update(array.size.to_bytes(8) + array.tobytes())
    return digest.hexdigest()


def _table(
    rows: Sequence[tuple[Key, Row]],
    by: Sequence[str],
    window: list[str],
    logs: Sequence[ReadFile],
    bad_files: list[tuple[str, str]],
    *,
    fits: bool,
) -> BatchResult:
    fields = FIT_FIELDS if fits else FIELDS
    names: list[str] = []
    for name in by:  # a column that has the name of a result, or of another one, is called log_NAME
        while name in {*fields, "kept_regret", *window, *names}:
            name = f"log_{name}"
        names.append(name)
    names += window
    columns: dict[str, type] = dict.fromkeys(names, str) | fields
    columns |= {"kept_regret": float} if window and not fits else {}
    columns.setdefault("file", str)
    columns["error"] = columns.pop("error")
    empty = dict.fromkeys(columns)
    table = [empty | dict(zip(names, key, strict=True)) | row for key, row in rows]
    bad_groups = [
        (", ".join(f"{name}={row[name]}" for name in names) or "all logs", row["error"])
        for row in table
        if row["error"] is not None
    ]
    table += [empty | {"file": name, "error": error} for name, error in bad_files]
    facts = [log.facts for log in logs if log.facts is not None]
    queues, good = sum(each.queue for each in facts), len(logs) - len(bad_files)
    alike = "timeouts of fitted laws take attempts to be independent and alike; without --law, batch checks that too"
    loses = "resubmitting loses the place in a queue, which the theory does not count"
    notes = [alike] if fits else []
    notes += [f"{good} logs are read as one; --by file has a row for each"] if not names and good > 1 else []
    notes += [f"logs of queues: {queues}; {loses}"] if queues else []
    return BatchResult(columns, table, bad_files, bad_groups, sum(each.refused.count for each in facts), tuple(notes))


def _add_kept_regrets(rows: Mapping[Key, Row], groups: Mapping[Key, ProbeTable], options: Options) -> None:
    """By what share the timeout of the group's previous window makes jobs slower in each window; None if infinite."""
    before: tuple[Key, float] | None = None
    for key, row in rows.items():
        row["kept_regret"] = None
        if row["expected_duration"] and key[-1] != "unknown":
            if before is not None and before[0] == key[:-1]:
                law = Empirical.of(prepare(groups[key], options).sample)
                row["kept_regret"] = finite(regret(law, before[1], row["expected_duration"], cost=options.cost))
            before = key[:-1], math.inf if row["timeout"] is None else row["timeout"]


@contextmanager
def open_journal(path: Path, fingerprint: str, *, resume: bool) -> Iterator[Journal]:
    """The chunks that an earlier run finished, if it is to be resumed, and a function that adds one.

    The journal is JSON lines: the run's fingerprint, then each finished chunk with a checksum. A damaged line ends it.
    """
    header = json.dumps({"fingerprint": fingerprint}).encode() + b"\n"
    if path.is_symlink():
        raise LatfitError(f"{path}: this is a link; a journal is not written through one: remove it")
    lines = path.read_bytes().splitlines(keepends=True) if resume and path.exists() else []
    if not lines or not lines[0].endswith(b"\n"):  # a new one, or killed before the first line was out
        path.write_bytes(header)
        lines = [header]
    if lines[0] != header:
        raise LatfitError(
            f"{path}: this journal is of a run with other logs or other options, or of another version of latfit; "
            "give the same, or start again without --resume"
        )
    done, length = {}, len(header)
    for line in lines[1:]:
        try:
            record = json.loads(line)
            chunk, rows = int(record["chunk"]), record["rows"]
            if _line(chunk, rows) != line:
                break
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            break
        done[chunk] = rows
        length += len(line)
    with path.open("r+b", buffering=0) as file:  # nothing is left to write when it is closed
        file.truncate(length)
        file.seek(length)
        yield done, lambda chunk, rows: write_all(file.fileno(), _line(chunk, rows), path)


def _line(chunk: int, rows: list[list[Row]]) -> bytes:
    text = json.dumps(rows, ensure_ascii=False, allow_nan=False)
    return f'{{"chunk": {chunk}, "crc": {crc32(text.encode())}, "rows": {text}}}\n'.encode()
