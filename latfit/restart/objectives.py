"""What to minimise: the objectives and their registry; `register` makes another one known."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from latfit.errors import LatfitError, RestartError
from latfit.laws.base import Law
from latfit.numbers import Floats
from latfit.restart.plan import Plan, restarted
from latfit.units import parse_duration

MAX_MOMENT = 20

Figure = Callable[[Floats], Floats]
"""A figure of J as a function of the timeout."""


@dataclass(frozen=True)
class Objective(ABC):
    """A figure of the completion time J to minimise; less is better.

    `parameter` is the number after the colon, as in `quantile:0.95`.
    """

    name: ClassVar[str]
    usage: ClassVar[str]
    shown: ClassVar[str] = "{0:.6g} s"  # {1} is the parameter
    takes_parameter: ClassVar[bool] = True
    parameter: float = 0.0

    @staticmethod
    def parse(text: str) -> Objective:
        """The objective that `text` writes, such as `mean`, `quantile:0.95` or `deadline:600`."""
        name, colon, number = text.partition(":")
        kind = REGISTRY.get(name)
        with suppress(ValueError):
            if kind is not None and kind.takes_parameter and kind.allows(value := kind.read(number)):
                return kind(value)
            if kind is not None and not kind.takes_parameter and not colon:
                return kind()
        usages = ", ".join(kind.usage for kind in REGISTRY.values())
        raise RestartError(f"the objective {text!r} is not understood: give one of {usages}")

    @classmethod
    def read(cls, number: str) -> float:
        return float(number)

    @classmethod
    def allows(cls, value: float) -> bool:
        """Whether a number after the colon makes sense."""
        return bool(np.isfinite(value))

    def __str__(self) -> str:
        return f"{self.name}:{self.parameter:.12g}" if self.takes_parameter else self.name

    @abstractmethod
    def of_plan(self, plan: Plan) -> Any:
        """The figure under a plan of attempts."""

    def value(self, law: Law, t: Floats, cost: float) -> Floats:
        """The figure under restarts for ever with the timeouts t."""
        return np.asarray(self.of_plan(restarted(law, t, cost)))

    def slope(self, law: Law, t: Floats, cost: float) -> Floats | None:
        """At each t a number with the sign of the figure's derivative, None where there is none to use."""
        return None

    def special_times(self, law: Law, cost: float) -> Floats:
        """Timeouts at which the figure may jump or bend though the law is smooth."""
        return np.empty(0)

    @property
    def latest(self) -> float:
        """The latest timeout that makes sense."""
        return np.inf

    def report(self, figure: float) -> float:
        """The figure as a user reads it."""
        return figure

    def text(self, reported: float) -> str:
        return self.shown.format(reported, self.parameter)


O = TypeVar("O", bound="type[Objective]")  # noqa: E741

REGISTRY: dict[str, type[Objective]] = {}


def register(objective: O) -> O:
    """Class decorator: make an objective known by its name to the parser and the command line."""
    if objective.name in REGISTRY:
        raise RestartError(f"two objectives are called {objective.name!r}")
    REGISTRY[objective.name] = objective
    return objective


@register
@dataclass(frozen=True)
class Mean(Objective):
    """E[J], the default."""

    name = "mean"
    usage = "mean"
    takes_parameter = False

    def of_plan(self, plan: Plan) -> Any:
        return plan.mean

    def slope(self, law: Law, t: Floats, cost: float) -> Floats:
        """S(t) − f̃(t) (E_J(t) + c), of the sign of dE_J/dt (van Moorsel & Wolter 2004, Theorem 2)."""
        with np.errstate(all="ignore"):
            lost = law.pdf(t) * (self.value(law, t, cost) + cost)
        return law.still_out(t) - np.where(np.isnan(lost), np.inf, lost)


@register
@dataclass(frozen=True)
class Moment(Objective):
    """E[Jⁿ], which weighs long durations more the higher n is."""

    name = "moment"
    usage = f"moment:n with a whole n from 1 to {MAX_MOMENT}"
    shown = "{0:.6g} s^{1:g}"

    @classmethod
    def allows(cls, value: float) -> bool:
        return bool(1 <= value <= MAX_MOMENT) and value == int(value)

    def of_plan(self, plan: Plan) -> Any:
        return plan.moments(int(self.parameter))[-1]


@register
@dataclass(frozen=True)
class Std(Objective):
    """√Var J, for steady rather than short durations."""

    name = "std"
    usage = "std"
    takes_parameter = False

    def of_plan(self, plan: Plan) -> Any:
        return plan.std


@register
@dataclass(frozen=True)
class Quantile(Objective):
    """The time within which a share q of the jobs is done; with visible failures on the lattice of the clock."""

    name = "quantile"
    usage = "quantile:q with 0 < q < 1"

    @classmethod
    def allows(cls, value: float) -> bool:
        return 0 < value < 1

    def of_plan(self, plan: Plan) -> Any:
        return plan.quantile(self.parameter)

    def special_times(self, law: Law, cost: float) -> Floats:
        """F̃(t) = 1 − (1−q)^(1/k): one attempt less is enough from here on."""
        t = law.ppf(-np.expm1(np.log1p(-self.parameter) / np.arange(1.0, 301.0)))
        return t[np.isfinite(t) & (t > 0)]


@register
@dataclass(frozen=True)
class Deadline(Objective):
    """P(J > D), reported as the chance 1 − P(J > D) to be done in time; with visible failures on the lattice.

    No timeout is later than D: what is still out then has missed the deadline. Windows and speed-up are those of
    the chance to miss: within 5 % means P(J > D) at most 1.05 times the least one.
    """

    name = "deadline"
    usage = "deadline:D with D seconds or a duration such as 20min"
    shown = "{0:.2%} of jobs in time"

    @classmethod
    def read(cls, number: str) -> float:
        try:
            return parse_duration(number)
        except LatfitError:
            return float(number)

    @classmethod
    def allows(cls, value: float) -> bool:
        return bool(0 < value < np.inf)

    @property
    def latest(self) -> float:
        return self.parameter

    def of_plan(self, plan: Plan) -> Any:
        return plan.survival(self.parameter)

    def special_times(self, law: Law, cost: float) -> Floats:
        """The timeouts with which k attempts fit exactly before D."""
        k = np.arange(1.0, 301.0)
        t = (self.latest - (k - 1) * cost) / k
        return t[t > 0]

    def report(self, figure: float) -> float:
        return 1.0 - figure
