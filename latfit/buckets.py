"""Stage 1, too: latencies of which only the counts in buckets were kept.

A `Histogram` is to a Prometheus, HdrHistogram or OpenTelemetry histogram what a `LatencySample` is
to a log of probes: immutable, small, and two of them add up.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from latfit.errors import SampleError
from latfit.numbers import Bools, Floats, Ints
from latfit.units import in_seconds

_COUNTERS = ("n_inf", "lost", "failed")


@dataclass(frozen=True, eq=False)
class Histogram:
    """How many latencies fell into each bucket (e_{j−1}, e_j], and how many did not return.

    `edges` are e_0 < … < e_m in seconds, `counts` are n_1 … n_m. `n_inf` returned after more than e_m,
    `lost` never returned, `failed` came back without a result after a time that is not known.
    `latency_sum` is the sum of all latencies that returned, those beyond e_m included, or None. `together` is the
    correlation, between two latencies of one interval of the log, of being among the slowest twentieth; None where the
    log has no intervals. `parts` are the histograms that were added up, where they have names.

    >>> h = Histogram.of([0.1, 0.25, 0.5, 1.0], [10, 40, 30, 10], n_inf=6, lost=4)
    >>> h.n, (h + h).n, (h + h - h) == h
    (100, 200, True)
    """

    edges: Floats
    counts: Ints
    n_inf: int = 0
    lost: int = 0
    failed: int = 0
    latency_sum: float | None = None
    together: float | None = None
    parts: tuple[tuple[str, Histogram], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        edges = np.array(self.edges, dtype=np.float64)
        counts = np.asarray(self.counts)
        n = counts.size
        if edges.ndim != 1 or counts.ndim != 1 or edges.size != n + 1 or not n:
            message = f"a histogram with {n} counts needs {n + 1} edges, the lower end of the first bucket among them"
            raise SampleError(f"{message}; there are {edges.size}")
        if not (edges[0] >= 0 and np.isfinite(edges).all() and (np.diff(edges) > 0).all()):
            raise SampleError("the edges of a histogram must be finite, not negative, and rise strictly")
        whole = counts.astype(np.int64)
        if (whole != counts).any() or min(whole.min(), self.n_inf, self.lost, self.failed) < 0:
            raise SampleError("the counts of a histogram must be whole numbers, and none of them negative")
        for name, array in (("edges", edges), ("counts", whole)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        low, high = self._sums
        total = low if self.latency_sum is None else self.latency_sum
        slack = 1e-9 * (1 + abs(total))  # it was added up in floats
        if not low - slack <= total <= high + slack:
            raise SampleError(
                f"the sum of the latencies is {total:g} s, but the buckets allow {low:g} to {high:g} s: "
                "it is of other requests, or in another unit"
            )

    @property
    def _sums(self) -> tuple[float, float]:
        low = float(self.counts @ self.edges[:-1] + self.n_inf * self.edges[-1])
        return low, np.inf if self.n_inf else float(self.counts @ self.edges[1:])

    @classmethod
    def of(
        cls, upper: Floats | list[float], counts: Ints | list[int], *, start: float = 0.0, **others: float | None
    ) -> Histogram:
        """From the upper ends of the buckets alone; the first begins at `start`."""
        return cls(np.concatenate([[start], upper]), np.asarray(counts), **others)  # type: ignore[arg-type]

    @property
    def n(self) -> int:
        """All attempts: in a bucket, beyond the last, failed or lost."""
        return self.returned + self.lost + self.failed

    @cached_property
    def returned(self) -> int:
        """How many came back with a result."""
        return int(self.counts.sum()) + self.n_inf

    def with_outcomes(self, *, lost: int = 0, failed: int = 0, latency_sum: float | None = None) -> Histogram:
        """The same histogram with attempts that it could not hold, and a sum where one is given."""
        known = self.latency_sum if latency_sum is None else latency_sum
        return replace(self, lost=self.lost + lost, failed=self.failed + failed, latency_sum=known)

    def in_unit(self, unit: str) -> Histogram:
        """The histogram whose times were written in `unit`, in seconds."""
        total = None if self.latency_sum is None else in_seconds(self.latency_sum, unit)
        edges = np.array([in_seconds(edge, unit) for edge in self.edges.tolist()])
        return replace(self, edges=edges, latency_sum=total)

    def compact(self) -> Histogram:
        """The same counts with runs of empty buckets as one bucket; no bound changes but those at edges left out."""
        used = self.counts > 0
        keep = np.concatenate([[used[0]], used[:-1] | used[1:], [used[-1] or self.n_inf > 0]])
        keep[0] |= not used.any()
        keep[-1] |= keep.sum() < 2
        return self._at(self.edges[keep])

    def _at(self, edges: Floats) -> Histogram:
        """The histogram with these edges, all of which must be `_free` here; what lies above them goes to n_inf."""
        cumulative = np.concatenate([[0], np.cumsum(self.counts)])
        # inside an empty bucket the cumulative count is that of its lower edge
        at = cumulative[np.clip(np.searchsorted(self.edges, edges, side="right") - 1, 0, None)]
        beyond = self.n_inf + int(cumulative[-1] - at[-1])
        return replace(self, edges=edges, counts=np.diff(at), n_inf=beyond)

    def _free(self, edges: Floats) -> Bools:
        """At which of these times the cumulative count is known: at own edges and inside empty buckets."""
        j = np.searchsorted(self.edges, edges)
        full = np.concatenate([[False], self.counts > 0, [self.n_inf > 0]])
        return np.asarray(np.isin(edges, self.edges) | ~full[j])

    def __add__(self, other: Histogram) -> Histogram:
        """Both, in the coarser of nested layouts; an empty bucket divides anywhere, so sparse ones keep all edges."""
        union = np.union1d(self.edges, other.edges)
        kept = union[self._free(union) & other._free(union)]
        if not any(np.isin(each.edges, kept).all() for each in (self, other)) or kept.size < 2:
            raise SampleError(
                "these histograms have buckets that do not fit into each other, so their counts cannot be added: "
                f"the edges are {_some(self.edges)} and {_some(other.edges)}"
            )
        a, b = self._at(kept), other._at(kept)
        total = None if a.latency_sum is None or b.latency_sum is None else a.latency_sum + b.latency_sum
        together = max((each.together for each in (a, b) if each.together is not None), default=None)
        beyond, lost, failed = (getattr(a, name) + getattr(b, name) for name in _COUNTERS)
        return Histogram(kept, a.counts + b.counts, beyond, lost, failed, total, together, a.parts + b.parts)

    def __sub__(self, earlier: Histogram) -> Histogram:
        """What happened since an earlier scrape of the same counters."""
        if not np.array_equal(self.edges, earlier.edges):
            raise SampleError(
                "only scrapes with the same buckets can be subtracted: "
                f"the edges are {_some(self.edges)} and {_some(earlier.edges)}"
            )
        counts = self.counts - earlier.counts
        others = [getattr(self, key) - getattr(earlier, key) for key in _COUNTERS]
        if (counts < 0).any() or min(others) < 0:
            raise SampleError(
                "a counter of the earlier scrape is higher than that of the later one: the process was restarted "
                "between them, or the scrapes are in the wrong order"
            )
        gained = Histogram(self.edges, counts, *others)
        if self.latency_sum is None or earlier.latency_sum is None:
            return gained
        known = self.latency_sum - earlier.latency_sum
        allowed = float(np.clip(known, *gained._sums))
        rounded = abs(allowed - known) <= 1e-9 * self.latency_sum  # both sums grew for a long time
        return replace(gained, latency_sum=allowed if rounded else known)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Histogram):
            return NotImplemented
        same = np.array_equal(self.edges, other.edges) and np.array_equal(self.counts, other.counts)
        return same and all(getattr(self, key) == getattr(other, key) for key in (*_COUNTERS, "latency_sum"))

    __hash__ = None  # type: ignore[assignment]


def from_cumulative(
    upper: Floats | list[float], cumulative: Floats | list[float], *, latency_sum: float | None = None
) -> Histogram:
    """From whole counts at or below rising ends, the last ∞; an end at or below 0 joins its bucket to the next."""
    ends, total = np.asarray(upper, dtype=np.float64), np.asarray(cumulative, dtype=np.float64)
    if ends.size != total.size:
        raise SampleError(f"there are {ends.size} bounds of buckets and {total.size} counts; each needs the other")
    if not ends.size or ends[-1] != np.inf:
        raise SampleError("the last bucket must be le=+Inf: without it, how many took longer is not known")
    if np.isnan(ends).any() or (np.diff(ends) <= 0).any():
        raise SampleError(f"the upper ends of the buckets must rise strictly; they are {_some(ends)}")
    if not ((total >= 0) & (total < 2**53) & (total == np.floor(total))).all():
        raise SampleError(f"counts must be whole numbers, and not negative; they are {_some(total)}")
    falls = np.flatnonzero(np.diff(total) < 0)
    if falls.size:
        j = int(falls[0])
        raise SampleError(
            f"cumulative counts must not fall, but le={ends[j]:g} has {total[j]:g} and le={ends[j + 1]:g} has "
            f"{total[j + 1]:g}: are they counts per bucket?"
        )
    if (ends < 0).any() and total[np.flatnonzero(ends < 0)[-1]] > 0:
        raise SampleError("there are latencies below 0 in this histogram: clocks that disagree cannot tell latencies")
    positive = (ends > 0) & np.isfinite(ends)
    if not positive.any():
        raise SampleError("there is no bucket but +Inf: nothing is known of how long anything took")
    counts = np.diff(np.concatenate([[0], total[ends > 0]])).astype(np.int64)
    return Histogram(np.concatenate([[0.0], ends[positive]]), counts[:-1], int(counts[-1]), latency_sum=latency_sum)


def _some(values: Floats) -> str:
    shown = ", ".join(f"{value:g}" for value in values[:6])
    return f"{shown}, …" if values.size > 6 else shown
