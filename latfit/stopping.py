"""Being told to stop by a signal: at once, with one line, and with no half-written file left behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from latfit.errors import printable
from latfit.files import remove_unfinished

_hints: list[Callable[[], str]] = []


@contextmanager
def if_stopped(hint: Callable[[], str]) -> Iterator[None]:
    """What the last line is to add if the process is stopped meanwhile."""
    _hints.append(hint)
    try:
        yield
    finally:
        _hints.remove(hint)


def stop_cleanly() -> None:
    """From now on Ctrl-C, SIGTERM and SIGHUP end this process with the exit code 128 + their number.

    It ends in the handler itself: an exception would be lost, or become another one, where it falls into an import or
    a destructor. What the parent process said to ignore stays ignored.
    """
    here = os.getpid()

    def stop(number: int, _: FrameType | None) -> None:
        if os.getpid() == here:  # and not a worker that was forked from it
            remove_unfinished()
            told = printable(f"latfit: stopped{''.join(hint() for hint in _hints)}") + "\n"
            with suppress(OSError):
                os.write(2, ("\n" if os.isatty(2) else "").encode() + told.encode(errors="backslashreplace"))
        os._exit(128 + number)

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, stop)
