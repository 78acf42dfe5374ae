"""Working on several things at once in threads: numpy, scipy and Arrow compute outside the interpreter's lock."""

from __future__ import annotations

import math
import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

MAX_THREADS = 8


def in_threads(work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """The results of `work` in the order of the items, of which a few are worked on ahead.

    Called from a thread or a process that somebody else started, as batches do, it works on one after the other:
    the processor is busy already.
    """
    if (isinstance(items, Sized) and len(items) < 2) or (threads := _free_threads()) == 1:
        yield from map(work, items)
        return
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
    """How many cores this process may use: by its affinity, and by the quotas of its control groups, rounded up."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        member_of = groups.read_text().splitlines()
    except OSError:  # not Linux
        member_of = []
    return max(1, min([cores, *(math.ceil(quota) for line in member_of for quota in _quotas(line, mounted))]))


def _quotas(member_of: str, mounted: Path) -> Iterator[float]:
    """Processor seconds a second that a control group and those above it allow, in version 2 and in version 1."""
    _, controllers, path = member_of.split(":", 2)
    names = PurePosixPath(path).parts[1:]
    for depth in range(len(names) + 1):
        folder = mounted.joinpath(controllers, *names[:depth])  # version 2 names no controllers
        for files in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
            try:
                quota, period = " ".join((folder / file).read_text() for file in files).split()
                if float(quota) > 0:
                    yield float(quota) / float(period)
            except (OSError, ValueError):  # there is none, or it is "max"
                continue


def _free_threads() -> int:
    if threading.current_thread() is not threading.main_thread() or multiprocessing.parent_process() is not None:
        return 1
    return min(MAX_THREADS, usable_cores())
