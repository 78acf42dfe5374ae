"""What a latency law is, and the registry that makes a new law one new file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from latfit.errors import LawError
from latfit.numbers import Floats

LOG_STEP = 1e-3  # of log t, for the density of a law that states none: an error of LOG_STEP⁴/30


class Law(ABC):
    """A latency law: a cdf that may be defective, F̃(t) → 1 − rho.

    This is all that `latfit.restart` knows of a law. A law must state `name`, `support`, `cdf` and `partial_moment`;
    the rest follows, and whatever it knows better it states too. Every method takes scalars or arrays of
    times t ≥ 0, t = ∞ included, and returns float64 of the same shape.

    Examples
    --------
    >>> import latfit
    >>> law = latfit.parse_law("weibull(shape=0.5,scale=10)")
    >>> isinstance(law, latfit.Law), law.rho, round(float(law.cdf(10.0)), 6), law.support
    (True, 0.0, 0.632121, (0.0, inf))
    """

    name: ClassVar[str]
    rho: float = 0.0
    """The probability of never completing."""

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """The smallest and the largest latency that can occur (∞ if unbounded)."""

    @property
    def jumps(self) -> Floats | None:
        """The times at which F̃ jumps, between which it is flat; None for a continuous law."""
        return None

    @property
    def kinks(self) -> tuple[float, ...]:
        """The times at which the density of a continuous law jumps."""
        return ()

    @abstractmethod
    def cdf(self, t: ArrayLike) -> Floats:
        """F̃(t): the probability of having completed by t."""

    @abstractmethod
    def partial_moment(self, n: int, t: ArrayLike) -> Floats:
        """M̃ₙ(t) = ∫₀ᵗ uⁿ dF̃(u)."""

    def pdf(self, t: ArrayLike) -> Floats:
        """f̃(t), by five-point differences of F̃ in log t where a law does not state it: about 10 digits."""
        if self.jumps is not None:
            raise LawError(f"the {self.name} law has jumps and no density")
        times = np.asarray(t, dtype=np.float64)
        low, high = self.support
        inside = (times > low) & (times < high) & (times > 0)
        at = np.where(inside, times, 1.0)
        weights = ((-2, 1.0), (-1, -8.0), (1, 8.0), (2, -1.0))
        slope = sum(weight * self.cdf(at * np.exp(i * LOG_STEP)) for i, weight in weights) / (12 * LOG_STEP)
        return np.where(inside, np.maximum(slope / at, 0.0), 0.0)

    def still_out(self, t: ArrayLike) -> Floats:
        """The probability of having neither completed nor failed by t."""
        return 1.0 - self.cdf(t)

    def failed(self, t: ArrayLike) -> Floats:
        """G̃(t): the probability of having failed visibly by t."""
        return np.zeros(np.shape(t))

    def failed_moment(self, n: int, t: ArrayLike) -> Floats:
        """∫₀ᵗ uⁿ dG̃(u), the partial moment of visible failures."""
        return np.zeros(np.shape(t))


class SameTimes(Law):
    """A law made of another one, `law`, that can complete at the same times."""

    law: Law

    @property
    def support(self) -> tuple[float, float]:
        """The smallest and the largest latency of the law inside."""
        return self.law.support

    @property
    def jumps(self) -> Floats | None:
        """The jumps of the law inside; None for a continuous one."""
        return self.law.jumps

    @property
    def kinks(self) -> tuple[float, ...]:
        """The kinks of the law inside."""
        return self.law.kinks


Domain = Literal["real", "positive", "non-negative", "count"]

_DOMAINS: dict[Domain, tuple[Callable[[float], bool], str]] = {
    "real": (lambda _: True, "a finite number"),
    "positive": (lambda x: x > 0, "a positive, finite number"),
    "non-negative": (lambda x: x >= 0, "a finite number, not negative"),
    "count": (lambda x: x >= 1 and x == int(x), "a whole number of at least 1"),
}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a law: its name, which values are allowed, and whether it is a list of such values."""

    name: str
    domain: Domain
    many: bool = False

    def read(self, law: str, value: Any) -> Any:
        """`value` as float, int (counts) or tuple of them, or a LawError that says what is wrong."""
        if not self.many:
            return self._read_one(f"{law}: {self.name}", value)
        if isinstance(value, str) or not np.iterable(value):
            raise LawError(f"{law}: {self.name} is {value!r}; it must be a list, as in {self.name}=[1,2]")
        items = tuple(self._read_one(f"{law}: {self.name}[{i}]", item) for i, item in enumerate(value))
        if not items:
            raise LawError(f"{law}: {self.name} is empty; it needs at least one value")
        return items

    def _read_one(self, what: str, value: Any) -> float:
        allows, allowed = _DOMAINS[self.domain]
        if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
            raise LawError(f"{what} is {value!r}; it must be {allowed}")
        number = float(value)
        if not (np.isfinite(number) and allows(number)):
            raise LawError(f"{what} is {number:g}; it must be {allowed}")
        return int(number) if self.domain == "count" else number


class ParametricLaw(Law):
    """A proper law with named parameters: a frozen dataclass, valid from construction."""

    parameters: ClassVar[tuple[Parameter, ...]]
    formula: ClassVar[str]
    """The cdf in one line, for `latfit laws`."""
    examples: ClassVar[tuple[str, ...]]
    """Specifications that span the law's shapes, for `latfit laws` and the contract tests."""

    def __post_init__(self) -> None:
        for parameter in self.parameters:
            value = parameter.read(self.name, getattr(self, parameter.name))
            object.__setattr__(self, parameter.name, value)

    @property
    def params(self) -> dict[str, Any]:
        """The parameters by name, in the order of declaration."""
        return {parameter.name: getattr(self, parameter.name) for parameter in self.parameters}

    def spec(self) -> str:
        """The text that `parse_law` turns back into an equal law, such as `lognormal(mu=5.5,sigma=1)`."""
        return f"{self.name}({','.join(f'{name}={_written(value)}' for name, value in self.params.items())})"

    @abstractmethod
    def scaled(self, factor: float) -> Self:
        """The law of factor · T: the same law in another unit of time."""

    @abstractmethod
    def ppf(self, q: ArrayLike) -> Floats:
        """The smallest t with F(t) ≥ q."""

    @abstractmethod
    def std(self) -> float:
        """The standard deviation, ∞ where it does not exist."""

    def sf(self, t: ArrayLike) -> Floats:
        """S(t) = 1 − F(t), accurate in the upper tail."""
        return self.still_out(t)

    def moment(self, n: int) -> float:
        """E[Tⁿ], ∞ where it does not exist."""
        return float(self.partial_moment(n, np.inf))

    def mean(self) -> float:
        """E[T], ∞ where it does not exist."""
        return self.moment(1)

    def sample(self, size: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Independent latencies, by inversion of the cdf."""
        return self.ppf(rng.random(size))


def _written(value: Any) -> str:
    """A parameter's value with all its digits."""
    if isinstance(value, tuple):
        return f"[{','.join(map(_written, value))}]"
    return repr(value).removesuffix(".0")


def check_order(n: int) -> None:
    """Refuse an order of a moment that is not a whole number ≥ 0."""
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
        raise LawError(f"the order of a moment is {n!r}; it must be a whole number, 0 or more")


def check_probabilities(law: str, name: str, values: tuple[float, ...]) -> None:
    """Refuse probabilities that do not add up to 1."""
    total = float(np.sum(values))
    if abs(total - 1.0) > 1e-9:
        raise LawError(f"{law}: {name} adds up to {total:.10g}; it must add up to 1")


L = TypeVar("L", bound="type[Law]")

REGISTRY: dict[str, type[Law]] = {}


def register(law: L) -> L:
    """Class decorator: make a law known by its name to the command line, the parser and the tests."""
    if law.name in REGISTRY:
        raise LawError(f"two laws are called {law.name!r}")
    REGISTRY[law.name] = law
    return law
