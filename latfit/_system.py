"""The operating system: files that are written whole or not at all, signals that stop the process, threads."""

from __future__ import annotations

import math
import os
import re
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import lru_cache
from pathlib import Path, PurePosixPath
from types import FrameType
from typing import TYPE_CHECKING, TypeVar

from latfit.errors import LatfitError, printable

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
R = TypeVar("R")

FORMULA = r"^[=+\-@\t\r]"
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
"""The beginning of a cell that a spreadsheet runs as a formula, and a plain number."""

_unfinished: set[Path] = set()
_hints: list[Callable[[], str]] = []


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A path to write to, beside `path`, which it replaces only if all went well.

    Its bytes are on the disk before its name is: a power cut leaves the old file or the new one.
    It is a new file: if `path` is a link, the link is replaced and not followed.
    """
    with whole_files([path]) as (beside,):
        yield beside


@contextmanager
def whole_files(paths: Sequence[str | Path]) -> Iterator[list[Path]]:
    """The same for files of one folder: all are on the disk before any gets its name; only SIGKILL can come between."""
    parts: dict[Path, Path] = {}
    for path in map(Path, paths):
        if path.is_dir():
            raise LatfitError(f"{path}: this is a directory; name a file to write")
        if not path.parent.is_dir():
            raise LatfitError(f"{path}: there is no folder {path.parent}")
        parts[path.with_name(f".{path.name}.{os.getpid()}.part")] = path
    try:
        for beside, path in parts.items():  # empty files with the permissions of the old ones
            _unfinished.add(beside)
            beside.unlink(missing_ok=True)
            beside.touch(exist_ok=False)
            if path.is_file() and not path.is_symlink():
                beside.chmod(path.stat().st_mode & 0o777)
        yield list(parts)
        for beside in parts:
            _on_disk(beside)
        with _undisturbed():
            for beside, path in parts.items():
                beside.replace(path)
        with suppress(OSError):  # not every file system can; the files themselves are safe
            _on_disk(path.parent)
    except OSError as error:  # name the file that was asked for; the first if the error has no name
        names: dict[str | None, Path] = {str(beside): path for beside, path in parts.items()}
        names[None] = next(iter(parts.values()))
        name = None if error.filename is None else str(error.filename)
        if name not in names:
            raise
        raise LatfitError(f"{names[name]}: cannot be written ({error.strerror or error})") from error
    finally:
        for beside in parts:
            _remove(beside)


@contextmanager
def _undisturbed() -> Iterator[None]:
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _on_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(file: int, data: bytes, name: object) -> None:
    """Write to a file descriptor until nothing is left; an error names the file."""
    try:
        while data:
            data = data[os.write(file, data) :]
    except OSError as error:
        raise LatfitError(f"{name}: cannot be written ({error.strerror})") from error


def inert(text: str) -> str:
    """The text of a CSV cell that no spreadsheet runs as a formula; plain numbers stay as they are.

    >>> inert("=1+2"), inert("-5.5"), inert("rb1")
    ("'=1+2", '-5.5', 'rb1')
    """
    return f"'{text}" if re.match(FORMULA, text) and not re.match(NUMBER, text) else text


def _remove(beside: Path) -> None:
    with suppress(OSError):
        beside.unlink(missing_ok=True)
    _unfinished.discard(beside)


@contextmanager
def if_stopped(hint: Callable[[], str]) -> Iterator[None]:
    """A hint for the last line if the process is stopped meanwhile."""
    _hints.append(hint)
    try:
        yield
    finally:
        _hints.remove(hint)


def stop_cleanly() -> None:
    """Exit with 128 + number in the signal handler: an exception could be lost in imports or destructors.

    Signals that are ignored stay ignored.
    """
    parent = os.getpid()

    def stop(number: int, _: FrameType | None) -> None:
        if os.getpid() == parent:  # not in a forked worker
            for beside in list(_unfinished):
                _remove(beside)
            message = printable(f"latfit: stopped{''.join(hint() for hint in _hints)}") + "\n"
            with suppress(OSError):
                os.write(2, ("\n" if os.isatty(2) else "").encode() + message.encode(errors="backslashreplace"))
        os._exit(128 + number)

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, stop)


def in_threads(work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Results in order, computed a few items ahead; without more threads in a thread or process started by others."""
    import multiprocessing

    started_by_others = threading.current_thread() is not threading.main_thread() or multiprocessing.parent_process()
    threads = 1 if started_by_others else min(8, usable_cores())
    if (isinstance(items, Sized) and len(items) < 2) or threads == 1:
        yield from map(work, items)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[R]] = deque()
        for item in items:
            waiting.append(pool.submit(copy_context().run, work, item))  # numpy's errstate belongs to the context
            if len(waiting) > 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@lru_cache
def usable_cores(groups: Path = Path("/proc/self/cgroup"), mounted: Path = Path("/sys/fs/cgroup")) -> int:
    """The number of cores that this process may use, by its affinity and the quotas of its control groups."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        member_of = groups.read_text().splitlines()
    except OSError:  # not Linux
        member_of = []
    return max(1, min([cores, *(math.ceil(quota) for line in member_of for quota in _quotas(line, mounted))]))


def _quotas(member_of: str, mounted: Path) -> Iterator[float]:
    """The processor seconds per second that a control group and its parents allow (cgroup versions 2 and 1)."""
    _, controllers, path = member_of.split(":", 2)
    names = PurePosixPath(path).parts[1:]
    for depth in range(len(names) + 1):
        folder = mounted.joinpath(controllers, *names[:depth])  # version 2 names no controllers
        for files in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
            try:
                quota, period = " ".join((folder / file).read_text() for file in files).split()
                if float(quota) > 0:
                    yield float(quota) / float(period)
            except (OSError, ValueError):  # no such file, or "max"
                continue
