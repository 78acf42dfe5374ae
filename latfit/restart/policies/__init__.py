"""Policies, that is what to do about a slow job: base class and registry. A new file here is a new policy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from latfit.errors import LawError, RestartError, hint
from latfit.laws.base import Law, Parameter, _written
from latfit.laws.parse import parse_call
from latfit.numbers import Floats
from latfit.restart.plan import Plan

Written = Callable[[float], str]
"""How a time is written in a sentence."""


def in_seconds(time: float) -> str:
    """A time in seconds, with four digits."""
    return f"{time:.4g} s"


class Submission(NamedTuple):
    """One copy of a job: when it starts, at which age it is cancelled, and with which probability it is made.

    `after` is the delay since the copy before it started, which may be early because all copies of the round before
    failed. A copy that is only made `beside` another is left out if no copy is out.
    """

    start: float | Floats
    age: float
    probability: float = 1.0
    after: float | None = None
    beside: bool = False


@dataclass(frozen=True)
class Policy(ABC):
    """A strategy with all its numbers: what is submitted when, and what is cancelled when.

    With a cost c, every submission after the first starts to run c seconds after the decision to make it. All figures
    follow from the `plan` on a law; simulations use the `submissions`, which share no formula with it.
    """

    name: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...]]
    example: ClassVar[str]
    ratios: ClassVar[tuple[float, float] | None] = None
    """The limits of the ratio of the second free time to the first; None: one free time."""
    searched: ClassVar[bool] = False
    """Whether there are parameters to optimise: `from_times` makes the policy of one or two numbers."""
    needs_budget: ClassVar[bool] = False
    """Whether an optimum needs a budget: without one, the more submissions the better."""
    compared: ClassVar[bool] = True
    """Whether a comparison of all kinds shows its optimum."""
    copies_at_once: ClassVar[int | None] = None
    """The copies that run side by side under a policy with one timeout, whose exact optimum is known."""

    def __post_init__(self) -> None:
        for parameter in self.parameters:
            value = getattr(self, parameter.name)
            if value is None or (isinstance(value, tuple) and not value):
                continue
            try:
                object.__setattr__(self, parameter.name, parameter.read(self.name, value))
            except LawError as problem:
                raise RestartError(str(problem)) from problem

    @abstractmethod
    def plan(self, law: Law, cost: float) -> Plan:
        """The rounds of this policy on a law."""

    @abstractmethod
    def submissions(self, cost: float, size: int, rng: np.random.Generator) -> Iterator[Submission]:
        """The copies of `size` jobs in the order of their starts, until each job is done."""

    @classmethod
    def from_times(cls, time: float, ratio: float) -> Policy:
        """The policy whose free time is `time`; with two of them the second one is `ratio` times it."""
        return cls(**{cls.parameters[0].name: time})

    @property
    def most_submissions(self) -> int | None:
        """How many submissions a job makes at most, None where there is no limit."""
        return None

    @property
    def params(self) -> dict[str, Any]:
        values = {parameter.name: getattr(self, parameter.name) for parameter in self.parameters}
        return {name: value for name, value in values.items() if value is not None and value != ()}

    def spec(self, digits: int = 17) -> str:
        """The text that `parse_policy` reads as an equal policy; with fewer digits, as a similar one."""
        values = {name: _rounded(value, digits) for name, value in self.params.items()}
        return f"{self.name}({','.join(f'{name}={_written(value)}' for name, value in values.items())})"

    def sentence(self, time: Written = in_seconds) -> str:
        """The policy as an order to whoever runs it."""
        return self.spec()


class Shorthand(Policy):
    """A policy that is a way to write another one."""

    @property
    @abstractmethod
    def written_out(self) -> Policy:
        """The same policy, written out."""

    def plan(self, law: Law, cost: float) -> Plan:
        return self.written_out.plan(law, cost)

    def submissions(self, cost: float, size: int, rng: np.random.Generator) -> Iterator[Submission]:
        return self.written_out.submissions(cost, size, rng)

    @property
    def most_submissions(self) -> int | None:
        return self.written_out.most_submissions

    def sentence(self, time: Written = in_seconds) -> str:
        return self.written_out.sentence(time)


def _rounded(value: Any, digits: int) -> Any:
    if isinstance(value, tuple):
        return tuple(_rounded(item, digits) for item in value)
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


P = TypeVar("P", bound="type[Policy]")

REGISTRY: dict[str, type[Policy]] = {}


def register(policy: P) -> P:
    """Class decorator: make a policy known by its name to the parser and the command line."""
    if policy.name in REGISTRY:
        raise RestartError(f"two policies are called {policy.name!r}")
    REGISTRY[policy.name] = policy
    return policy


def parse_policy(text: str | Policy) -> Policy:
    """The policy that `text` writes, such as `timeout(t=384)` or `schedule(timeouts=[300,600],sleeps=[10])`."""
    if isinstance(text, Policy):
        return text
    try:
        name, values = parse_call(text, "hedge(d=300,t_inf=900)")
    except LawError as problem:
        raise RestartError(str(problem)) from problem
    if name not in REGISTRY:
        raise RestartError(f"there is no policy {name!r}{hint(name, REGISTRY)} (known: {', '.join(policy_names())})")
    kind = REGISTRY[name]
    required = {item.name: item.default is MISSING for item in fields(kind)}
    if unknown := values.keys() - required:
        raise RestartError(f"{name} has no parameter {min(unknown)!r}: write it like {kind.example}")
    if missing := [key for key, needed in required.items() if needed and key not in values]:
        raise RestartError(f"{name} lacks {' and '.join(missing)}: write it like {kind.example}")
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in values.items()})


def policy_names() -> list[str]:
    """The names of all policies, in alphabetical order."""
    return sorted(REGISTRY)


for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
