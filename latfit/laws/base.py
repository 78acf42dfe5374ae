"""What a latency law is, and the registry of laws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from latfit.errors import LawError
from latfit.laws.kernel import DifferencesKernel, Kernel
from latfit.laws.quadrature import quadrature_moment
from latfit.numbers import Floats, is_count, is_number

if TYPE_CHECKING:
    from latfit.laws.discrete import Steps


class Law(ABC):
    """A latency law: a cdf that may be defective, F̃(t) → 1 − rho.

    This is all that `latfit.restart` knows of a law. A law defines `name`, `cdf` and `partial_moment`, and `support` if
    that is not [0, ∞). The rest is derived, and can be overridden by better formulas. Every method takes a scalar or an
    array of times t ≥ 0, ∞ included, and returns float64 of the same shape.

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
    support: tuple[float, float] = (0.0, np.inf)
    """The smallest and the largest latency that can occur."""
    jumps: Floats | None = None
    """The times at which F̃ jumps, if it is flat between them; None for a continuous law."""
    kinks: tuple[float, ...] = ()
    """The times at which the density of a continuous law jumps."""
    resolution: float = 0.0
    """The step of the clock of a law that comes from a log."""
    failures: Steps | None = None
    """The probabilities of failing visibly, whose sum is G̃; None if attempts cannot fail."""

    @abstractmethod
    def cdf(self, t: ArrayLike) -> Floats:
        """F̃(t): the probability of having completed by t."""

    @abstractmethod
    def partial_moment(self, n: int, t: ArrayLike) -> Floats:
        """M̃ₙ(t) = ∫₀ᵗ uⁿ dF̃(u)."""

    def pdf(self, t: ArrayLike) -> Floats:
        """f̃(t), by default from five-point differences of F̃ in log t, which give about 10 digits."""
        if self.jumps is not None:
            raise LawError(f"the {self.name} law has jumps and no density")
        times = np.asarray(t, dtype=np.float64)
        low, high = self.support
        inside = (times > low) & (times < high) & (times > 0)
        at = np.where(inside, times, 1.0)
        step = 1e-3  # of log t: an error of step⁴/30
        weights = ((-2, 1.0), (-1, -8.0), (1, 8.0), (2, -1.0))
        slope = sum(weight * self.cdf(at * np.exp(i * step)) for i, weight in weights) / (12 * step)
        return np.where(inside, np.maximum(slope / at, 0.0), 0.0)

    def _cdf_above(self, v: Floats) -> Floats:
        """F̃ at the lower end of the support plus v, for laws that compute it more accurately from v."""
        return self.cdf(self.support[0] + v)

    def _logpdf_above(self, v: Floats) -> Floats:
        return np.log(self.pdf(self.support[0] + v))

    def ppf(self, q: ArrayLike) -> Floats:
        """The smallest t with F̃(t) ≥ q, ∞ where no t reaches q; by default by bisection in log(t − lower end)."""
        levels, start = np.asarray(q, dtype=np.float64), self.support[0]
        if self.jumps is not None:
            # a level computed from F̃ itself must find its own jump again in spite of rounding
            place = np.searchsorted(self.cdf(self.jumps), levels * (1 - 1e-12) - 1e-15, side="left")
            return np.append(self.jumps, np.inf)[place]
        low, high = np.full(levels.shape, -700.0), np.full(levels.shape, 700.0)
        for _ in range(64):
            middle = 0.5 * (low + high)
            below = self.cdf(start + np.exp(middle)) < levels
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.where(levels > self.cdf(np.inf), np.inf, np.where(levels > 0, start + np.exp(high), start))

    def still_out(self, t: ArrayLike) -> Floats:
        """The probability of having neither completed nor failed by t."""
        return 1.0 - self.cdf(t)

    def hazard(self, t: ArrayLike) -> Floats:
        """f̃(t)/S̃(t), the completion rate of attempts still out; NaN where none is."""
        with np.errstate(all="ignore"):
            return np.asarray(self.pdf(t) / self.still_out(t))

    def failed(self, t: ArrayLike) -> Floats:
        """G̃(t): the probability of having failed visibly by t."""
        return self.failed_moment(0, t)

    def failed_moment(self, n: int, t: ArrayLike) -> Floats:
        """∫₀ᵗ uⁿ dG̃(u), the partial moment of visible failures."""
        return np.zeros(np.shape(t)) if self.failures is None else self.failures.moment(n, t)


def check_order(n: int) -> None:
    """Refuse an order of a moment that is not a whole number ≥ 0."""
    if not is_count(n):
        raise LawError(f"the order of a moment is {n!r}; it must be a whole number, 0 or more")


Domain = Literal["real", "positive", "non-negative", "count"]

_DOMAINS: dict[Domain, tuple[Callable[[float], bool], str]] = {
    "real": (lambda _: True, "a finite number"),
    "positive": (lambda x: x > 0, "a positive, finite number"),
    "non-negative": (lambda x: x >= 0, "a finite number, not negative"),
    "count": (lambda x: x >= 1 and x == int(x), "a whole number of at least 1"),
}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a law: its name, the values allowed, whether it is a list of such values (`many`), and its unit.

    The `unit` determines the parameter of the law of factor · T: a `time` is multiplied by the factor, a `rate` divided
    by it, and its logarithm is added to a `log-time`. The `rule` of a list is that it rises strictly or adds up to 1.
    All lists of a law have the same number of entries, apart from `extra` ones.
    """

    name: str
    domain: Domain
    many: bool = False
    unit: Literal["time", "rate", "log-time"] | None = None
    rule: Literal["rises", "adds up to 1"] | None = None
    extra: int = 0

    def read(self, law: str, value: Any) -> Any:
        """`value` as a float, an int (for counts) or a tuple of them; a LawError if it is not allowed."""
        if not self.many:
            return self._read_one(f"{law}: {self.name}", value)
        if isinstance(value, str) or not np.iterable(value):
            raise LawError(f"{law}: {self.name} is {value!r}; it must be a list, as in {self.name}=[1,2]")
        items = tuple(self._read_one(f"{law}: {self.name}[{i}]", item) for i, item in enumerate(value))
        if not items:
            raise LawError(f"{law}: {self.name} is empty; it needs at least one value")
        if self.rule == "rises" and not (np.diff(items) > 0).all():
            raise LawError(f"{law}: {self.name} is {list(items)}; the {self.name} must rise strictly")
        if self.rule == "adds up to 1" and abs(np.sum(items) - 1.0) > 1e-9:
            raise LawError(f"{law}: {self.name} adds up to {np.sum(items):.10g}; it must add up to 1")
        return items

    def scaled(self, value: Any, factor: float) -> Any:
        """The value in the law of factor · T."""
        if self.many:
            return tuple(replace(self, many=False).scaled(item, factor) for item in value)
        if self.unit == "log-time":
            return value + float(np.log(factor))
        return value * factor if self.unit == "time" else value / factor if self.unit == "rate" else value

    def _read_one(self, what: str, value: Any) -> float:
        allows, allowed = _DOMAINS[self.domain]
        if not is_number(value):
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
    list_sizes: ClassVar[str] = "they must have the same number of entries"
    params: dict[str, Any]
    """The values of the parameters by their names."""

    def __post_init__(self) -> None:
        params = {each.name: each.read(self.name, getattr(self, each.name)) for each in self.parameters}
        vars(self).update(params, params=params)
        lists = [parameter for parameter in self.parameters if parameter.many]
        if len({len(params[each.name]) - each.extra for each in lists}) > 1:
            sizes = " and ".join(f"{len(params[each.name])} {each.name}" for each in lists)
            raise LawError(f"{self.name}: there are {sizes}; {self.list_sizes}")

    def spec(self) -> str:
        """The text that `parse_law` turns back into an equal law, such as `lognormal(mu=5.5,sigma=1)`."""
        return f"{self.name}({','.join(f'{name}={_written(value)}' for name, value in self.params.items())})"

    def scaled(self, factor: float) -> Self:
        """The law of factor · T: the same law in another unit of time."""
        return type(self)(**{each.name: each.scaled(self.params[each.name], factor) for each in self.parameters})

    @abstractmethod
    def _ppf(self, q: Floats) -> Floats: ...

    def ppf(self, q: ArrayLike) -> Floats:
        """The smallest t with F(t) ≥ q."""
        levels = np.asarray(q, dtype=np.float64)
        if not ((levels >= 0) & (levels <= 1)).all():
            raise LawError(f"{self.name}: a probability must lie in [0, 1], to ask for its quantile")
        low, high = self.support
        with np.errstate(all="ignore"):
            inside = np.clip(self._ppf(levels), low, high)
        return np.where(levels == 0, low, np.where(levels == 1, high, inside))

    @abstractmethod
    def std(self) -> float:
        """The standard deviation, ∞ if it does not exist."""

    def sf(self, t: ArrayLike) -> Floats:
        """S(t) = 1 − F(t), accurate in the upper tail."""
        return self.still_out(t)

    def moment(self, n: int) -> float:
        """E[Tⁿ], ∞ if it does not exist."""
        return float(self.partial_moment(n, np.inf))

    def mean(self) -> float:
        """E[T], ∞ if it does not exist."""
        return self.moment(1)

    def sample(self, size: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Independent latencies, by inversion of the cdf."""
        return self.ppf(rng.random(size))


class ContinuousLaw(ParametricLaw):
    """A proper law with a density.

    A law defines `_logpdf`, and `_cdf` or `_logsf`; also `_sf`, `_ppf`, `_partial_moment` and `draw` if a formula
    is better than the general method. They are called with arrays of times ≥ 0, ∞ included, and with floating-point
    warnings off. A law can be fitted if it has a `kernel`, or a classmethod `start(q1, q2, q3)` that returns rough
    parameters for given quartiles.
    """

    kernel: ClassVar[Kernel | None] = None
    """The law as batched fitting uses it; if it has only `start`, derivatives are finite differences."""
    tried_by: ClassVar[tuple[str, ...]] = ("mle", "ls")
    """The methods that try this law by default, if it can be fitted."""

    @abstractmethod
    def _logpdf(self, t: Floats) -> Floats: ...

    def _cdf(self, t: Floats) -> Floats:
        return -np.expm1(self._logsf(t))

    def _sf(self, t: Floats) -> Floats:
        states_logsf = type(self)._logsf is not ContinuousLaw._logsf
        return np.exp(self._logsf(t)) if states_logsf else 1.0 - self._cdf(t)

    def _logsf(self, t: Floats) -> Floats:
        return np.log(self._sf(t))

    def _logpdf_above(self, v: Floats) -> Floats:
        return self._logpdf(self.support[0] + v)

    _partial_moment = quadrature_moment

    def _ppf(self, q: Floats) -> Floats:
        """F⁻¹ by bisection in log(t − lower end), with S instead of F above the median."""
        bottom, top = self.support
        low = np.full(q.shape, -740.0)
        high = np.full(q.shape, min(709.0, np.log(top - bottom)))
        for _ in range(64):
            middle = 0.5 * (low + high)
            t = bottom + np.exp(middle)
            below = np.where(q < 0.5, self._cdf(t) < q, self._sf(t) > 1.0 - q)
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(bottom + np.exp(high))

    def cdf(self, t: ArrayLike) -> Floats:
        """F(t), accurate in the lower tail."""
        return _at(self._cdf, t, 0.0)

    def still_out(self, t: ArrayLike) -> Floats:
        return _at(self._sf, t, 1.0)

    def logsf(self, t: ArrayLike) -> Floats:
        """The logarithm of S(t), finite even if S(t) is below the smallest float."""
        return _at(self._logsf, t, 0.0)

    def pdf(self, t: ArrayLike) -> Floats:
        return np.exp(self.logpdf(t))

    def logpdf(self, t: ArrayLike) -> Floats:
        return _at(self._logpdf, t, -np.inf)

    def partial_moment(self, n: int, t: ArrayLike) -> Floats:
        check_order(n)
        return self.cdf(t) if n == 0 else _at(lambda u: self._partial_moment(int(n), u), t, 0.0)

    def draw(self, size: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Latencies for simulations, interpolated in a table of quantiles: several times faster than `sample`."""
        table, reach = _quantiles_by_logit(self)
        place = (np.clip(rng.logistic(size=size), -reach, reach) + reach) * ((table.size - 1) / (2 * reach))
        at = np.minimum(place.astype(np.intp), table.size - 2)
        return np.asarray(table[at] + (place - at) * (table[at + 1] - table[at]))

    def std(self) -> float:
        second = self.moment(2)
        return float(np.sqrt(max(0.0, second - self.mean() ** 2))) if np.isfinite(second) else np.inf


@lru_cache(maxsize=8)
def _quantiles_by_logit(law: ContinuousLaw) -> tuple[Floats, float]:
    """Quantiles at equal steps of the logit from −reach to reach, and the reach."""
    reach = 20.0
    return law.ppf(expit(np.linspace(-reach, reach, 20_001))), reach


def _at(formula: Callable[[Floats], Floats], t: ArrayLike, before: float) -> Floats:
    times = np.asarray(t, dtype=np.float64)
    with np.errstate(all="ignore"):
        return np.where(times < 0, before, formula(np.maximum(times, 0.0)))


def _written(value: Any) -> str:
    """A parameter's value with all its digits."""
    if isinstance(value, tuple):
        return f"[{','.join(map(_written, value))}]"
    return repr(value).removesuffix(".0")


L = TypeVar("L", bound="type[Law]")

REGISTRY: dict[str, type[Law]] = {}


def register(law: L) -> L:
    """Class decorator: make a law available by its name to the command line, the parser and the tests."""
    if law.name in REGISTRY:
        raise LawError(f"two laws are called {law.name!r}")
    if issubclass(law, ParametricLaw) and not any(parameter.unit for parameter in law.parameters):
        raise LawError(
            f"{law.name}: no parameter has a unit, so the law cannot be written in another unit of time. Give a "
            'parameter unit="time" for a scale in seconds, unit="rate" for one in 1/s, unit="log-time" for a location '
            'of log t, as in Parameter("mu", "real", unit="log-time")'
        )
    if issubclass(law, ContinuousLaw) and law.kernel is None and hasattr(law, "start"):
        law.kernel = DifferencesKernel(law)
    REGISTRY[law.name] = law
    return law
