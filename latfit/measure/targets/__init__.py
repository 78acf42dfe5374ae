"""The systems that can be probed: each is one file in this folder, which registers itself."""

from __future__ import annotations

import asyncio
import importlib
import os
import pkgutil
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from latfit.errors import ProbeError


@dataclass(frozen=True)
class Attempt:
    """One submission: the run it belongs to, its number in the log, its job and its attempt number.

    >>> Attempt("0a1b", probe=7, job=3, attempt=2).fill("/item/{job}?try={attempt}")
    '/item/3?try=2'
    """

    run: str
    probe: int
    job: int
    attempt: int

    def fill(self, text: str) -> str:
        """The text with {run}, {probe} (a unique name), {job} and {attempt} filled in; other braces stay."""
        for word, value in self._words().items():
            text = text.replace(f"{{{word}}}", value)
        return text

    def _words(self) -> dict[str, str]:
        name = f"latfit-{self.run}-{self.probe}"
        return {"run": self.run, "probe": name, "job": str(self.job), "attempt": str(self.attempt)}

    @property
    def environment(self) -> dict[str, str]:
        """The environment of programs started for this probe; LATFIT_RUN and the like identify them later."""
        return {**os.environ, **{f"LATFIT_{word.upper()}": value for word, value in self._words().items()}}


@dataclass(frozen=True)
class Outcome:
    """How a probe ended: completed, failed, censored or lost, after `latency` seconds; `detail` says why."""

    status: str
    latency: float
    detail: str


Probe = Callable[[Attempt], Awaitable[Outcome]]
"""Submits one probe and waits for its end. If it is cancelled, it leaves nothing behind."""


class Target(ABC):
    """A kind of system that can be probed. Subclasses are frozen dataclasses whose fields are their options.

    A field created with `argument` follows the target's name on the command line, one created with `option` becomes an
    option.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    example: ClassVar[str]
    pause: ClassVar[float] = 1.0  # the longest random wait before the next probe (s), against locking to a tick
    same: ClassVar[tuple[str, ...]] = ()  # entries of `public` that must be the same throughout a log

    @abstractmethod
    def open(self, run: str) -> AbstractAsyncContextManager[Probe]:
        """The function that probes; raises ProbeError if the system is not there."""

    @abstractmethod
    def shown(self, attempt: Attempt) -> str:
        """What would be submitted, for --dry-run."""

    @abstractmethod
    def public(self) -> dict[str, Any]:
        """What may be logged: nothing that could be a credential."""

    async def clear(self, left: Sequence[Attempt], runs: Sequence[str]) -> int:
        """Remove what killed runs left behind (`left`: their probes without an end); returns how many things."""
        return 0

    def remarks(self, completed: Counter[str]) -> list[str]:
        """What a user should know about the completed probes, which are counted by their detail."""
        return []


def argument(metavar: str) -> Any:
    """A field that follows the target's name; `CMD...` takes all remaining words."""
    return field(metadata={"argument": metavar})


def option(default: Any, help: str, *, kind: str = "text", choices: tuple[str, ...] = ()) -> Any:  # noqa: A002
    """A field that is an option of the command line; `kind` is text, seconds, file, flag or choice."""
    return field(default=default, metadata={"help": help, "kind": "choice" if choices else kind, "choices": choices})


TARGETS: dict[str, type[Target]] = {}


def register(kind: type[Target]) -> type[Target]:
    """Class decorator: make a target known to the command line and the tests."""
    TARGETS[kind.name] = kind
    return kind


async def called(*words: str, environment: dict[str, str] | None = None) -> tuple[int, str, str]:
    """Run a short program of the system; its exit status (124 if it took longer than 30 s) and its output."""
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            *words, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=environment
        )
    except OSError as error:
        raise ProbeError(f"{words[0]}: cannot be run ({error.strerror})") from error
    try:
        output = await asyncio.wait_for(process.communicate(), 30.0)
    except TimeoutError:
        process.kill()
        await process.wait()
        return 124, "", f"{words[0]} took longer than 30 s"
    assert process.returncode is not None
    out, err = (text.decode(errors="replace").strip() for text in output)
    return process.returncode, out, err


for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
