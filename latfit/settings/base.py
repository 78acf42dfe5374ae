"""What latfit knows about a tool, how a tool writes a time, and the registry: a new tool is a TOML file in `tools/`."""

from __future__ import annotations

import math
import string
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from latfit.errors import RestartError, counted, hint, listed

Counter = Literal["attempts", "retries"]
JITTER = 0.1  # of the first timeout


@dataclass(frozen=True)
class Plan:
    """What to write, in seconds: the limits of the attempts in whole steps of the tool, and the `pause` between them.

    `failures` says whether visible failures are retried, `budget` how many retries per request are allowed on average.
    """

    limits: tuple[float, ...]
    pause: float = 0.0
    failures: bool = False
    budget: float = 0.2

    @property
    def attempts(self) -> int:
        return len(self.limits)

    @property
    def jitter(self) -> float:
        """The longest random wait on top of the pause, so that clients do not come back together."""
        return JITTER * self.limits[0]


@dataclass(frozen=True)
class Waits:
    """The seconds that a tool waits before the i-th restart, in addition to the user's cost: first · 2ⁱ⁻¹, ≤ `longest`.

    The user's cost is rounded up to a multiple of `step`, and to at least `least`.
    """

    first: float = 0.0
    longest: float = math.inf
    least: float = 0.0
    step: float = 0.0


@dataclass(frozen=True)
class Tool:
    """A tool that can cut an attempt and start the next one: how it counts, rounds and waits, and what to paste.

    A file `tools/NAME.toml` has these fields. `template` is what to paste, with `%timeout`, `%attempts`, `%retries`,
    `%pause`, `%jitter` … for the values of a `Plan`, and `%name` for one of the tool's `parts`. A template with
    `%limits` (or `%limits_spaced`) runs a schedule: one limit for each attempt. The parts of `if_failures` (attempts
    fail visibly in the log), `if_pause` (there is a wait between attempts) and `if_rounded_pause` (the tool cannot wait
    exactly that long) are used only in these cases; a line `%name` without its part is left out. Those of
    `each_attempt` are repeated. The parts called `note` become notes.
    """

    name: str  # its name on latfit's command line
    title: str
    counts: Counter  # whether the number in the snippet is that of attempts K or of retries K − 1
    limits: str  # which wait the timeout limits
    validated: str  # how the snippet was tested
    template: str
    aliases: tuple[str, ...] = ()
    writes: str = "0.35"  # how the tool writes 0.35 s: a key of `WRITTEN`
    unit: str = "s"
    step: float = 0.001  # the smallest difference between two timeouts that the tool takes, in seconds
    smallest: float = 0.0
    longest: float = math.inf
    cap: int | None = None  # the largest number of attempts that the tool makes
    fewest: int = 1  # the smallest number of attempts that can be written
    resubmits: bool = True  # whether the snippet starts the next attempt, so that it has a counter
    hedges: bool = False  # whether the earlier attempts go on when the next one starts
    comment: str = "#"  # how a line of comment begins, empty where there are none
    waits: bool = True  # whether the snippet writes a pause between attempts
    own_waits: Waits = Waits()
    traps: tuple[str, ...] = ()  # what surprises people about this tool
    parts: Mapping[str, str] = field(default_factory=dict)
    if_failures: Mapping[str, str] = field(default_factory=dict)
    if_pause: Mapping[str, str] = field(default_factory=dict)
    if_rounded_pause: Mapping[str, str] = field(default_factory=dict)
    each_attempt: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | Path) -> Tool:
        path = Path(path)
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        for key in ("aliases", "traps"):
            data[key] = tuple(data.get(key, ()))
        data["own_waits"] = Waits(**data.get("own_waits", {}))
        return cls(name=path.stem, **data)

    @property
    def schedules(self) -> bool:
        return "%limits" in self.template

    @property
    def jitters(self) -> bool:
        return any(name in self.template for name in ("%jitter", "%wait_mean", "%{interval}"))

    def rounded(self, timeout: float) -> float:
        steps = math.ceil(max(timeout, self.smallest) / self.step - 1e-9)  # what a division of decimals may be off by
        return float(f"{max(1, steps) * self.step:.9g}")

    def limits_for(self, timeouts: Sequence[float], cutoff: float, attempts: int) -> tuple[float, ...]:
        """The limits of `attempts` attempts under a schedule that ends in waiting until the cutoff.

        A tool that runs a schedule gets its timeouts, the longest repeated if needed, then the cutoff; any other tool
        gets the longest for all attempts.
        """
        longest = max(timeouts)
        if not self.schedules:
            return (self.rounded(longest),) * attempts
        cancelled = [*timeouts, *[longest] * attempts][: attempts - 1]
        return tuple(self.rounded(t) for t in (*cancelled, max(min(cutoff, self.longest), *cancelled, 0.0)))

    def pause(self, restart: int, cost: float) -> float:
        """The mean seconds before the `restart`-th restart (1, 2, …) if the user asks for `cost`."""
        waits = self.own_waits
        cost = math.ceil(cost / waits.step) * waits.step if waits.step else cost
        return max(waits.least, cost) + min(waits.longest, waits.first * 2.0 ** (restart - 1))

    def mean_pause(self, q: float, cost: float) -> float:
        """The constant cost of a restart that adds as much to E_J as the tool's own waits.

        An attempt fails with probability q, so the i-th restart happens with probability qⁱ: the waits w_i add
        Σ qⁱ w_i to E_J, and a constant c adds c Σ qⁱ.
        """
        weights = [q**i for i in range(1, 201)]
        if not sum(weights) > 0:
            return self.pause(1, cost)
        return sum(weight * self.pause(i, cost) for i, weight in enumerate(weights, start=1)) / sum(weights)

    def written(self, timeout: float) -> str:
        return WRITTEN[self.writes](timeout)

    def snippet(self, plan: Plan) -> str:
        values = self._values(plan)
        for name, part in self.each_attempt.items():
            attempts = (values | {"attempt": str(attempt)} for attempt in range(1, plan.attempts + 1))
            values[name] = "\n".join(_filled(part, attempt) for attempt in attempts)
        absent = dict.fromkeys((*self.if_failures, *self.if_pause), "")
        parts = {name: _filled(part, values) for table in self._tables(plan) for name, part in table.items()}
        kept = [line for line in self.template.split("\n") if line[1:] in parts or line[1:] not in absent]
        return _filled("\n".join(kept), absent | values | parts)

    def notes(self, plan: Plan) -> tuple[str, ...]:
        """What to know about this plan, in addition to the tool's `traps`: the parts called `note`."""
        return tuple(_filled(table["note"], self._values(plan)) for table in self._tables(plan) if "note" in table)

    def _tables(self, plan: Plan) -> list[Mapping[str, str]]:
        rounded = plan.pause and self.pause(1, plan.pause) != plan.pause
        conditions = ((self.if_pause, plan.pause), (self.if_rounded_pause, rounded), (self.if_failures, plan.failures))
        return [self.parts, *(table for table, holds in conditions if holds)]

    def total(self, plan: Plan) -> float:
        """The longest that all attempts of a plan can take together, waits included."""
        waits = sum(self.pause(restart, plan.pause) + plan.jitter for restart in range(1, plan.attempts))
        return self.rounded(sum(plan.limits) + waits)

    def _values(self, plan: Plan) -> dict[str, str]:
        timeout, total = plan.limits[0], self.total(plan)
        mean = plan.pause + plan.jitter / 2
        return {
            "timeout": self.written(timeout),
            "limits": ", ".join(map(self.written, plan.limits)),
            "limits_spaced": " ".join(map(self.written, plan.limits)),
            "total": number(total),
            "total_whole": str(math.ceil(total)),
            "total_written": self.written(total),
            "jitter": number(plan.jitter),
            "jitter_written": self.written(plan.jitter),
            "wait_mean": number(mean),
            "wait_mean_written": self.written(mean),
            "wait_most": number(plan.pause + plan.jitter),
            "budget": number(100 * plan.budget),
            "token_ratio": number(plan.budget),
            "minutes": str(max(1, math.ceil(timeout / 60))),
            "milliseconds": str(round(timeout * 1000)),
            "attempts": str(plan.attempts),
            "retries": str(plan.attempts - 1),
            "retries_counted": counted(plan.attempts - 1, "time"),
            "pause": number(plan.pause),
            "pause_written": self.written(plan.pause),
            "wait": number(self.pause(1, plan.pause)),
            "interval": number(2 * self.pause(1, plan.pause) + plan.jitter),  # of a wait drawn evenly from 0 to it
        }


class _Template(string.Template):
    delimiter = "%"  # $ belongs to shells and JavaScript


def _filled(template: str, values: Mapping[str, str]) -> str:
    return _Template(template.removeprefix("\n").removesuffix("\n")).substitute(values)


def number(value: float) -> str:
    """A number without an exponent and without trailing zeros: 358, 0.35."""
    return f"{value:.9f}".rstrip("0").rstrip(".")


def milliseconds(value: float) -> str:
    """A time as a whole number of seconds if it is one, else of milliseconds, with its unit."""
    return f"{number(value)}s" if value == int(value) else f"{round(value * 1000)}ms"


WRITTEN: dict[str, Callable[[float], str]] = {
    "0.35": number,
    "0.35s": lambda t: f"{number(t)}s",
    "0.350000000s": lambda t: f"{t:.9f}s",
    "350": lambda t: str(round(t * 1000)),
    "350ms": milliseconds,
    "00:01:00": lambda t: "{:02d}:{:02d}:00".format(*divmod(math.ceil(t / 60), 60)),
}
"""The ways to write a time, by what 0.35 s looks like."""

TOOLS: dict[str, Tool] = {}


def register(tool: Tool) -> Tool:
    """Make a tool known to the command line, the docs and the tests."""
    TOOLS[tool.name] = tool
    return tool


def get_tool(name: str) -> Tool:
    """The tool called `name`, or a RestartError that lists the known ones."""
    wanted = name.strip().lower()
    for tool in TOOLS.values():
        if wanted in (tool.name, *tool.aliases):
            return tool
    known = f"{hint(wanted, TOOLS)} (known: {listed(sorted(TOOLS), 600)})"
    raise RestartError(f"{name!r} is not a tool that latfit can write for{known}")


for _file in sorted((Path(__file__).parent / "tools").glob("*.toml")):
    register(Tool.read(_file))
