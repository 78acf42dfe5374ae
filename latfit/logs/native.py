"""Buckets that end at powers of 2^(2^−schema): native histograms of Prometheus, exponential ones of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from latfit.buckets import Histogram
from latfit.errors import SampleError
from latfit.numbers import Ints


def native_buckets(
    indices: Sequence[int], counts: Ints, schema: int, *, zero: tuple[int, float] = (0, 0.0)
) -> Histogram:
    """A histogram whose bucket of index i is (b^(i−1), b^i], b = 2^(2^−schema); empty ones may be left out.

    `zero` are the count and the upper end of the bucket for values near 0, which begins at 0; where that end is 0, its
    latencies join the first bucket.
    """
    if not -10 <= schema <= 20:
        raise SampleError(f"the schema of a native histogram is {schema}; it must lie between -10 and 20")
    if (np.asarray(counts) < 0).any() or len(set(indices)) != len(indices) or list(indices) != sorted(indices):
        raise SampleError("the buckets of a native histogram must rise, with counts that are not negative")
    used = [(i, int(n)) for i, n in zip(indices, counts, strict=True) if n]
    near, threshold = zero
    with np.errstate(over="ignore"):
        pieces = [tuple(float(np.exp2((i - 1 + up) * 2.0**-schema)) for up in (0, 1)) for i, _ in used]
    edges, filled = [0.0], []
    if near:
        end = threshold if threshold > 0 else pieces[0][0] if pieces else 0.0
        if not end > 0:
            raise SampleError("all latencies of this histogram are 0: the clock is too coarse to tell anything")
        edges.append(end)
        filled.append(near)
    for (low, high), (_, n) in zip(pieces, used, strict=True):
        low = max(low, edges[-1])  # the bucket around 0 may overlap the first one
        if not (np.isfinite(high) and high > low):
            raise SampleError(f"a native bucket reaches from {low:g} to {high:g} s: this is no latency")
        if low > edges[-1]:
            edges.append(low)
            filled.append(0)
        edges.append(high)
        filled.append(n)
    if not filled:
        edges, filled = [0.0, 1.0], [0]
    return Histogram(np.array(edges), np.array(filled))
