"""What to minimise: the base class of objectives and their registry. A new file in this folder may add one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import ClassVar, TypeVar

import numpy as np

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.numbers import Floats
from latfit.restart.plan import Plan

Figure = Callable[[Floats], Floats]
"""A figure of J as a function of the timeout."""


@dataclass(frozen=True)
class Objective(ABC):
    """A figure of the completion time J to minimise; less is better.

    J = r + J′, where J′ is the completion time with cost c + r and `shift` is the wall-clock time r that each
    attempt needs beside its latency. `parameter` is the number after the colon, as in `quantile:0.95`.

    An objective states `name`, `value` and `of_plan`; the rest where the general way is not right for it.

    Examples
    --------
    >>> from latfit.restart.objectives import Objective
    >>> str(Objective.parse("quantile:0.95"))
    'quantile:0.95'

    """

    name: ClassVar[str]
    usage: ClassVar[str]
    """How a user writes it, for help and messages."""
    takes_parameter: ClassVar[bool] = True
    parameter: float = 0.0
    shift: float = 0.0

    @staticmethod
    def parse(text: str, *, shift: float = 0.0) -> Objective:
        """The objective that `text` writes, such as `mean`, `quantile:0.95` or `deadline:600`."""
        name, colon, number = text.partition(":")
        kind = REGISTRY.get(name)
        if kind is not None and not kind.takes_parameter and not colon:
            return kind(shift=shift)
        try:
            value = kind.read(number) if kind is not None else np.nan
        except ValueError:
            value = np.nan
        if kind is None or not kind.takes_parameter or not kind.allows(value, shift):
            usages = ", ".join(kind.usage for kind in REGISTRY.values())
            raise RestartError(f"the objective {text!r} is not understood: give one of {usages}")
        return kind(value, shift)

    @classmethod
    def read(cls, number: str) -> float:
        """What is written after the colon."""
        return float(number)

    @classmethod
    def allows(cls, value: float, shift: float) -> bool:
        """Whether a number after the colon makes sense, `shift` being the wall-clock time."""
        return bool(np.isfinite(value))

    def __str__(self) -> str:
        return f"{self.name}:{self.parameter:.12g}" if self.takes_parameter else self.name

    @abstractmethod
    def value(self, law: Law, t: Floats, cost: float) -> Floats:
        """The figure under restarts for ever with the timeouts t."""

    @abstractmethod
    def of_plan(self, plan: Plan) -> float:
        """The figure under any plan of attempts."""

    def slope(self, law: Law, cost: float) -> Figure | None:
        """A function of t with the sign of the figure's derivative, None where there is none to use."""
        return None

    def limit(self, E_0: float) -> float:
        """The figure for t → 0, where J is exponential with mean E_0 (c = r = 0)."""
        return E_0

    def special_times(self, law: Law, cost: float) -> Floats:
        """Timeouts at which the figure may jump or bend though the law is smooth."""
        return np.empty(0)

    @property
    def latest(self) -> float:
        """The latest timeout, less r, that makes sense."""
        return np.inf

    def report(self, figure: float) -> float:
        """The figure as a user reads it."""
        return figure

    def text(self, reported: float) -> str:
        """The reported figure with its unit."""
        return f"{reported:.6g} s"


O = TypeVar("O", bound="type[Objective]")  # noqa: E741

REGISTRY: dict[str, type[Objective]] = {}


def register(objective: O) -> O:
    """Class decorator: make an objective known by its name to the parser and the command line."""
    if objective.name in REGISTRY:
        raise RestartError(f"two objectives are called {objective.name!r}")
    REGISTRY[objective.name] = objective
    return objective


for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
