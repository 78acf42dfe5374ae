"""Stage 1: a `LatencySample` is the compressed form of a log.

It holds, for each status, the sorted distinct latencies with their counts. Two samples add up to the sample of both
logs, which makes bootstraps, chunked reading and clusters simple.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from latfit.errors import SampleError, counted
from latfit.numbers import Floats, Ints

if TYPE_CHECKING:
    import pandas as pd

STATUSES = ("completed", "failed", "censored", "lost")
COMPLETED, FAILED, CENSORED, LOST = range(len(STATUSES))


@dataclass(frozen=True, eq=False)
class Tally:
    """Sorted distinct values with their counts."""

    values: Floats = field(default_factory=lambda: np.empty(0))
    counts: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __post_init__(self) -> None:
        values = np.array(self.values, dtype=np.float64, order="C")  # copies, since the arrays become read-only
        counts = np.array(self.counts, dtype=np.int64, order="C")
        if values.shape != counts.shape or values.ndim != 1:
            raise SampleError("a tally needs one count for each value")
        if values.size and not (values[0] >= 0 and np.isfinite(values[-1]) and (np.diff(values) > 0).all()):
            raise SampleError("latencies must be finite, not negative, and in strictly rising order")
        if (counts <= 0).any():
            raise SampleError("counts must be positive")
        self._set(values, counts)

    def _set(self, values: Floats, counts: Ints) -> Tally:
        for name, array in (("values", values), ("counts", counts)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        return self

    @classmethod
    def of(cls, values: ArrayLike) -> Tally:
        try:
            distinct, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
        except (TypeError, ValueError) as problem:
            raise SampleError(f"latencies must be numbers in seconds ({problem})") from None
        if distinct.size and not (distinct[0] >= 0 and np.isfinite(distinct[-1])):  # NaN sorts last
            odd = distinct[-1] if distinct[0] >= 0 else distinct[0]
            raise SampleError(
                f"latencies must be finite and not negative, and one is {odd}: probes that never came back are `lost` "
                "(a count), those still out are `censored`"
            )
        return cls.trusted(distinct, counts)

    @classmethod
    def sum(cls, tallies: Iterable[Tally]) -> Tally:
        some = list(tallies)
        parts = [t for t in some if t.values.size]
        if len(parts) < 2:
            return parts[0] if parts else some[0] if some else cls()
        values, counts = (np.concatenate([getattr(part, name) for part in parts]) for name in ("values", "counts"))
        order = np.argsort(values, kind="stable")  # a merge: the parts are sorted already
        values = values[order]
        first = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
        return cls.trusted(values[first], np.add.reduceat(counts[order], first))

    @classmethod
    def trusted(cls, values: Floats, counts: Ints) -> Tally:
        """From arrays that nobody else changes: they are neither checked nor copied."""
        return object.__new__(cls)._set(values, counts)

    @cached_property
    def total(self) -> int:
        return int(self.counts.sum())

    def quantiles(self, levels: Sequence[float]) -> Floats:
        """For each level the smallest value with at least that share of the observations at or below it."""
        reached = np.cumsum(self.counts, dtype=np.float64)
        reached /= reached[-1]
        return self.values[np.minimum(np.searchsorted(reached, levels), self.values.size - 1)]

    def split(self, limit: float) -> tuple[Tally, int]:
        """The part at or below `limit`, and how many lie beyond it."""
        at = int(np.searchsorted(self.values, limit, side="right"))
        return Tally.trusted(self.values[:at], self.counts[:at]), int(self.counts[at:].sum())

    def expand(self) -> Floats:
        return np.repeat(self.values, self.counts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        return np.array_equal(self.values, other.values) and np.array_equal(self.counts, other.counts)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class LatencySample:
    """Counts of probes that returned, failed, were still out, and were lost.

    `completed`, `failed` and `censored` are tallies of latencies in seconds: returned with a result, returned without a
    usable one, and still out when last observed. `lost` counts probes known never to return. `cutoff` is the time
    beyond which nothing was observed, or None. `resolution` is the step of the clock (0: too fine to see).

    Examples
    --------
    >>> import latfit
    >>> first = latfit.LatencySample.of([1.0, 2.0, 2.0], lost=1)
    >>> second = latfit.LatencySample.of([3.0, 40.0])
    >>> (first + second).n, (first + second).completed.values.tolist()
    (6, [1.0, 2.0, 3.0, 40.0])
    """

    completed: Tally = field(default_factory=Tally)
    failed: Tally = field(default_factory=Tally)
    censored: Tally = field(default_factory=Tally)
    lost: int = 0
    cutoff: float | None = None
    resolution: float = 0.0

    def __post_init__(self) -> None:
        if self.lost < 0 or self.lost != int(self.lost):
            raise SampleError(f"the number of lost probes is {self.lost}; it must be a whole number, 0 or more")
        if not (np.isfinite(self.resolution) and self.resolution >= 0):
            raise SampleError(f"the resolution is {self.resolution}; it must be finite and not negative")
        if self.cutoff is None:
            return
        if not (np.isfinite(self.cutoff) and self.cutoff > 0):
            raise SampleError(f"the cutoff is {self.cutoff}; it must be a positive, finite time")
        for tally in (self.completed, self.failed, self.censored):
            if tally.values.size and tally.values[-1] > self.cutoff:
                raise SampleError(
                    f"a latency of {tally.values[-1]:g} s lies beyond the cutoff {self.cutoff:g} s: use cut()"
                )

    @classmethod
    def of(
        cls,
        completed: ArrayLike,
        *,
        failed: ArrayLike = (),
        censored: ArrayLike = (),
        lost: int = 0,
        cutoff: float | None = None,
        resolution: float | None = None,
    ) -> LatencySample:
        """A sample of raw latencies in any order; those beyond `cutoff` are censored at it."""
        returned, broken = Tally.of(completed), Tally.of(failed)
        step = clock_resolution([returned, broken]) if resolution is None else resolution
        sample = cls(returned, broken, Tally.of(censored), lost=lost, resolution=step)
        return sample if cutoff is None else sample.cut(cutoff)

    def __repr__(self) -> str:
        totals = [tally.total for tally in (self.completed, self.failed, self.censored)]
        counts = zip(STATUSES, [*totals, self.lost], strict=True)
        outcomes = ", ".join(f"{count} {status}" for status, count in counts if count) or "none"
        cut = "" if self.cutoff is None else f", cutoff {self.cutoff:g} s"
        return f"<LatencySample: {counted(self.n, 'probe')}, {outcomes}{cut}, resolution {self.resolution:g} s>"

    def _repr_html_(self) -> str:
        shown: str = import_module("latfit.report.page").sample_fragment(self)  # a later stage: a view of this value
        return shown

    def to_frame(self) -> pd.DataFrame:
        """A table of the distinct latencies: columns `latency` (NaN for lost probes), `status` and `count`.

        >>> LatencySample.of([1.0, 2.0, 2.0]).to_frame().to_numpy().tolist()
        [[1.0, 'completed', 1], [2.0, 'completed', 2]]
        """
        import pandas as pd

        parts = [self.completed, self.failed, self.censored]
        parts += [Tally.trusted(np.array([np.nan]), np.array([self.lost]))] if self.lost else []
        sizes = [tally.values.size for tally in parts]
        return pd.DataFrame(
            {
                "latency": np.concatenate([tally.values for tally in parts]),
                "status": np.repeat(STATUSES[: len(parts)], sizes),
                "count": np.concatenate([tally.counts for tally in parts]),
            }
        )

    @cached_property
    def n(self) -> int:
        """How many probes there are, of every status."""
        return self.completed.total + self.failed.total + self.censored.total + self.lost

    @property
    def returned(self) -> int:
        """How many returned, with a result or without."""
        return self.completed.total + self.failed.total

    @cached_property
    def out_at_cutoff(self) -> int:
        """How many were still out at the cutoff or are known never to return."""
        if self.cutoff is None:
            return self.lost
        at = np.searchsorted(self.censored.values, self.cutoff)
        return self.lost + int(self.censored.counts[at:].sum())

    @property
    def censored_early(self) -> int:
        """How many were censored before the cutoff, or at all if there is none."""
        return self.censored.total - (self.out_at_cutoff - self.lost)

    def cut(self, cutoff: float) -> LatencySample:
        """The sample as observed until `cutoff` only.

        Probes still out then are censored there; a latency equal to it did return; lost probes stay lost.
        """
        if not (isinstance(cutoff, (int, float, np.number)) and np.isfinite(cutoff) and cutoff > 0):
            raise SampleError(f"the cutoff is {cutoff!r}; it must be a positive, finite time in seconds")
        if self.cutoff == cutoff:
            return self
        if self.cutoff is not None and cutoff > self.cutoff:
            raise SampleError(f"the sample was cut at {self.cutoff:g} s already; nothing is known up to {cutoff:g} s")
        parts = [tally.split(cutoff) for tally in (self.completed, self.failed, self.censored)]
        completed, failed, censored = (tally for tally, _ in parts)
        out = sum(late for _, late in parts)
        at_cutoff = Tally.trusted(np.array([float(cutoff)]), np.array([out])) if out else Tally()
        censored = Tally.sum([censored, at_cutoff])
        return replace(self, completed=completed, failed=failed, censored=censored, cutoff=float(cutoff))

    def __add__(self, other: LatencySample) -> LatencySample:
        return LatencySample.sum([self, other]) if isinstance(other, LatencySample) else NotImplemented

    def __radd__(self, other: Any) -> LatencySample:
        return self if isinstance(other, int) and other == 0 else NotImplemented

    @classmethod
    def sum(cls, samples: Iterable[LatencySample]) -> LatencySample:
        """The sample of several logs, whose cutoffs must agree; it has the finest of their clocks."""
        parts = list(samples)
        if not parts:
            raise SampleError("there is no sample to add up")
        cutoffs = {part.cutoff for part in parts}
        if len(cutoffs) > 1:
            shown = ", ".join(sorted("none" if c is None else f"{c:g} s" for c in cutoffs))
            raise SampleError(f"samples with different cutoffs ({shown}) do not add up: cut() them at the smallest")
        return cls(
            completed=Tally.sum(p.completed for p in parts),
            failed=Tally.sum(p.failed for p in parts),
            censored=Tally.sum(p.censored for p in parts),
            lost=sum(p.lost for p in parts),
            cutoff=parts[0].cutoff,
            resolution=min((p.resolution for p in parts if p.returned), default=min(p.resolution for p in parts)),
        )

    def with_failed(self, treat_as: str) -> LatencySample:
        """Read failures as `retry` (as they are), as `completed` or as `lost`."""
        if treat_as == "retry":
            return self
        if treat_as == "completed":
            return replace(self, completed=Tally.sum([self.completed, self.failed]), failed=Tally())
        if treat_as == "lost":
            return replace(self, lost=self.lost + self.failed.total, failed=Tally())
        raise SampleError(f"failures can be read as retry, completed or lost, not as {treat_as!r}")

    def failures_censored(self) -> LatencySample:
        """The sample with its failures censored at their time, for the law of completion."""
        if not self.failed.total:
            return self
        return replace(self, failed=Tally(), censored=Tally.sum([self.censored, self.failed]))


@np.errstate(over="ignore")  # near the largest float there is no step to see
def clock_resolution(tallies: Iterable[Tally]) -> float:
    """The step of the clock that measured these latencies, 0 if it is too fine to see.

    It is the largest step of which all values are multiples, or its largest multiple (by factors 2, 3, 5) of which 99 %
    of the observations are multiples: a batch system that checks its queue once a minute has a clock of 60 s, although
    a few waits are odd. Fewer than ten distinct values may be multiples by chance, so only their decimals count.
    """
    tally = Tally.sum(tallies)
    above = int(np.searchsorted(tally.values, 0.0, side="right"))
    values, counts = tally.values[above:], tally.counts[above:]
    if not values.size:
        return 0.0
    step = _decimal_step(values)
    if values.size < 10:
        return step
    step = step or _common_divisor(values)
    if not step:
        return 0.0
    multiples = np.rint(values / step).astype(np.int64)
    factor = int(np.gcd.reduce(multiples))
    for prime in (2, 3, 5):
        while counts[multiples % (factor * prime) != 0].sum() <= 0.01 * counts.sum():
            factor *= prime
    # 1/1000, not 0.001 × 1: keep the step the float nearest to its decimal
    return float(factor / round(1 / step)) if step < 1 and abs(round(1 / step) * step - 1) < 1e-12 else factor * step


def _decimal_step(values: Floats) -> float:
    """10^-k with the fewest decimals k ≤ 9 that write all values, or 0."""
    k = 0
    for part in (values[:: max(1, values.size // 1000)], values):  # a part is enough to rule out most k
        while True:
            scaled = part * 10.0**k
            if scaled[-1] < 1e13 and (np.abs(scaled - np.rint(scaled)) <= 1e-15 * scaled).all():
                break
            k += 1
            if k == 10:
                return 0.0
    return float(10.0**-k)


def _common_divisor(values: Floats) -> float:
    """Euclid's algorithm on floats, for clocks that are not decimal (seconds written as hours); 0 if it fails."""
    step = min(values[0], np.diff(values).min())
    while values[-1] / step < 1e6:
        rest = np.abs(values - step * np.rint(values / step))
        odd = rest[rest > 1e-3 * step]
        if not odd.size:
            return float(values[-1] / np.rint(values[-1] / step))
        step = odd.min()
    return 0.0
