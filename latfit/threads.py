"""Working on several things at once in threads: numpy, scipy and Arrow compute outside the interpreter's lock."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

MAX_THREADS = 8


def in_threads(work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """The results of `work` in the order of the items, of which a few are worked on ahead.

    Called from a thread or a process that somebody else started, as batches do, it works on one after the other:
    the processor is busy already.
    """
    threads = _free_threads()
    if threads == 1:
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


def usable_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _free_threads() -> int:
    if threading.current_thread() is not threading.main_thread() or multiprocessing.parent_process() is not None:
        return 1
    return min(MAX_THREADS, usable_cores())
