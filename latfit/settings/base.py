"""What a tool is to latfit, how it writes a time, and the registry that makes a new tool one new file."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

from latfit.errors import RestartError, listed

Counter = Literal["attempts", "retries"]
TINY = 1e-9  # what a division of decimals may be off by, relative to one step


@dataclass(frozen=True)
class Plan:
    """What a snippet is made from: all that latfit decided, in seconds.

    `timeout` is already a whole number of the tool's steps. `pause` is the wait between giving up an attempt and
    the next one, `failures` whether attempts fail visibly in the log, so that these have to be retried too.
    """

    timeout: float
    attempts: int
    pause: float = 0.0
    failures: bool = False

    @property
    def retries(self) -> int:
        """K − 1: the attempts after the first one."""
        return self.attempts - 1


class Tool(ABC):
    """A tool that can cut an attempt and start the next one: how it counts, rounds and waits, and what to paste."""

    name: ClassVar[str]
    """How the tool is called on the command line of latfit."""
    title: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    counts: ClassVar[Counter]
    """Whether the number in the snippet is that of attempts K or of retries K − 1."""
    limits: ClassVar[str]
    """Which wait the timeout limits."""
    validated: ClassVar[str]
    """How far the snippet was run."""
    unit: ClassVar[str] = "s"
    step: ClassVar[float] = 0.001
    """The smallest difference between two timeouts that the tool takes, in seconds."""
    smallest: ClassVar[float] = 0.0
    longest: ClassVar[float] = math.inf
    cap: ClassVar[int | None] = None
    """The largest number of attempts that the tool makes."""
    fewest: ClassVar[int] = 1
    """The smallest number of attempts that can be written."""
    resubmits: ClassVar[bool] = True
    """Whether the snippet starts the next attempt, so that it has a counter."""
    hedges: ClassVar[bool] = False
    """Whether the earlier attempts go on when the next one starts."""
    waits: ClassVar[bool] = True
    """Whether the snippet writes a pause between attempts."""
    traps: ClassVar[tuple[str, ...]] = ()
    """What surprises people about this tool."""

    def rounded(self, timeout: float) -> float:
        """The timeout rounded up to what the tool can express."""
        steps = math.ceil(max(timeout, self.smallest) / self.step - TINY)
        return float(f"{max(1, steps) * self.step:.9g}")

    def pause(self, restart: int, cost: float) -> float:
        """The seconds that pass before the `restart`-th restart (1, 2, …) where the user asks for `cost`."""
        return cost

    def written(self, timeout: float) -> str:
        """The timeout as the tool reads it."""
        return number(timeout)

    def notes(self, plan: Plan) -> tuple[str, ...]:
        """What to know about this plan in this tool beside its `traps`."""
        return ()

    @abstractmethod
    def snippet(self, plan: Plan) -> str:
        """What to paste."""


def number(value: float) -> str:
    """A number without an exponent and without zeros at its end: 358, 0.35."""
    return f"{value:.9f}".rstrip("0").rstrip(".")


def milliseconds(value: float) -> str:
    """Seconds as a whole number of milliseconds with its unit, or of seconds where it is one."""
    return f"{number(value)}s" if value == int(value) else f"{round(value * 1000)}ms"


def sleep_between(plan: Plan) -> str:
    """The line of a shell loop over `attempt` that waits, but not after the last attempt."""
    return f"    [ $attempt -lt {plan.attempts} ] && sleep {number(plan.pause)}\n" if plan.pause else ""


def mean_pause(tool: Tool, q: float, cost: float, *, restarts: int = 200) -> float:
    """The constant cost of a restart that is worth as much as the tool's own waits.

    An attempt is not done with probability q, so the i-th restart happens with probability qⁱ: the waits w_i add
    Σ qⁱ w_i to E_J, and a constant c adds c Σ qⁱ.
    """
    weights = [q**i for i in range(1, restarts + 1)]
    if not sum(weights) > 0:
        return tool.pause(1, cost)
    waited = sum(weight * tool.pause(i, cost) for i, weight in enumerate(weights, start=1))
    return waited / sum(weights)


TOOLS: dict[str, Tool] = {}


def register(kind: type[Tool]) -> type[Tool]:
    """Class decorator: make a tool known to the command line, the docs and the tests."""
    TOOLS[kind.name] = kind()
    return kind


def get_tool(name: str) -> Tool:
    """The tool called `name`, or a RestartError that lists those there are."""
    wanted = name.strip().lower()
    for tool in TOOLS.values():
        if wanted in (tool.name, *tool.aliases):
            return tool
    raise RestartError(f"{name!r} is not a tool that latfit can write for; choose from {listed(sorted(TOOLS), 600)}")
