"""Where the work runs: in this process, in processes on all cores, or on a Dask cluster."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TypeVar

from latfit._system import usable_cores
from latfit.errors import LatfitError

Item = TypeVar("Item")
Result = TypeVar("Result")

# by default Dask's workers return every freed page at once, and numpy's next array has to request it again
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": 1 << 28, "MALLOC_MMAP_THRESHOLD_": 1 << 25}


@dataclass(frozen=True)
class Pool:
    """An executor (None: work in this process); it raises `killed` if workers died, and the user gets `message`."""

    executor: Executor | None
    workers: int
    killed: type[Exception] = BrokenProcessPool
    message: str = "a worker process was killed, perhaps for lack of memory: continue with --resume and fewer --workers"

    def unordered(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        """(place, function(item)) for each item, as they complete; a limited number is under way at a time."""
        if self.executor is None or (len(items) == 1 and isinstance(self.executor, ProcessPoolExecutor)):
            yield from ((place, function(item)) for place, item in enumerate(items))
            return
        waiting, under_way = iter(enumerate(items)), dict[Future[Result], int]()
        while True:
            for place, item in waiting:
                under_way[self.executor.submit(function, item)] = place
                if len(under_way) >= max(64, 4 * self.workers):
                    break
            if not under_way:
                return
            for done in wait(under_way, return_when=FIRST_COMPLETED).done:
                try:
                    yield under_way.pop(done), done.result()
                except self.killed as problem:
                    raise LatfitError(self.message) from problem
                except ImportError as problem:
                    why = f"a worker cannot import what it needs ({problem}): install latfit there"
                    raise LatfitError(why) from problem


@contextmanager
def open_pool(engine: str, *, scheduler: str | None = None, workers: int | None = None) -> Iterator[Pool]:
    """The pool of an engine; if other Python threads run, `processes` works in this one (use `dask` there)."""
    if engine not in ("processes", "dask"):
        raise LatfitError(f"the engine is {engine!r}; it must be processes or dask")
    count = workers or usable_cores()
    if engine == "dask":
        with _dask(scheduler, count) as pool:
            yield pool
    elif count == 1 or (sys.platform == "linux" and threading.active_count() > 1):
        yield Pool(None, 1)  # a lock held by another thread, as in a notebook, would stay locked in a forked worker
    else:
        executor = _processes(count)
        try:
            yield Pool(executor, count)
        finally:
            executor.shutdown(cancel_futures=True)


def _processes(count: int) -> ProcessPoolExecutor:
    """Workers, forked on Linux: they import nothing again, and numpy's and Arrow's threads are prepared for a fork."""
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    executor = ProcessPoolExecutor(count, mp_context=context, initializer=_start_worker)
    if sys.platform != "linux":
        return executor
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until the workers have a handler for Ctrl-C
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*multi-threaded, use of fork", DeprecationWarning)
            executor.submit(int)  # forks them all
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return executor


def _start_worker() -> None:
    """Stop silently at Ctrl-C, and when the parent has gone: the workers of a pool would wait forever."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform == "linux":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


@contextmanager
def _dask(scheduler: str | None, workers: int) -> Iterator[Pool]:
    try:
        distributed = import_module("distributed")
    except ImportError as missing:
        raise LatfitError("the dask engine needs Dask: pip install 'latfit[dask]'") from missing
    with ExitStack() as stack:
        if scheduler is None:
            stack.enter_context(import_module("dask").config.set({"distributed.nanny.pre-spawn-environ": KEEP_MEMORY}))
            local = distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR
            )
            scheduler = stack.enter_context(local).scheduler_address
        try:
            client = stack.enter_context(distributed.Client(scheduler, timeout=10, set_as_default=False))
        except (OSError, ValueError) as problem:
            raise LatfitError(f"{scheduler}: no Dask scheduler answers there ({problem})") from problem
        executor = client.get_executor(pure=False)
        try:
            workers = max(1, sum(client.nthreads().values()))
            yield Pool(executor, workers, distributed.KilledWorker, "Dask gave up on a task whose workers died")
        finally:
            executor.shutdown(wait=False)
