"""The law of a log as the page's script holds it: cumulative sums at a limited number of times."""

from __future__ import annotations

import base64
from dataclasses import dataclass

import numpy as np

from latfit.laws import Empirical
from latfit.numbers import Floats, Ints

KEPT = 800  # times; with five sums each they are 43 kB of a page


@dataclass(frozen=True)
class Kept:
    """F̃, M̃₁ and the same of the failures (G, H) at some times, exact there; `steps` if these are all the times."""

    t: Floats
    F: Floats
    M: Floats
    G: Floats
    H: Floats
    steps: bool

    def to_dict(self) -> dict[str, str | bool]:
        """The arrays as little-endian doubles in base64; without failures G and H are empty."""
        arrays = {name: getattr(self, name) for name in ("t", "F", "M")}
        if self.G.any():
            arrays |= {"G": self.G, "H": self.H}
        return {name: base64.b64encode(values.astype("<f8").tobytes()).decode() for name, values in arrays.items()} | {
            "steps": self.steps
        }


def kept(law: Empirical, always: tuple[float | None, ...] = (), *, most: int = KEPT) -> Kept:
    """The sums of a law at no more than about `most` times, those in `always` among them where they are jumps.

    A thinned law keeps levels of F̃ (even, and its whole upper tail) and times even in log t.

    >>> from latfit.laws import Empirical
    >>> from latfit.sample import LatencySample
    >>> kept(Empirical.of(LatencySample.of([1, 2, 2, 5]))).F.tolist()
    [0.25, 0.75, 1.0]
    """
    times = np.union1d(law.jumps, law.failures.times)
    steps = times.size <= most
    if not steps:
        times = times[_thinned(times, law, always, most)]
    return Kept(times, law.cdf(times), law.partial_moment(1, times), law.failed(times), law.failed_moment(1, times),
                steps)  # fmt: skip


def _thinned(times: Floats, law: Empirical, always: tuple[float | None, ...], most: int) -> Ints:
    """Which times to keep."""
    share = (law.cdf(times) + law.failed(times)) / (law.completions.total + law.failures.total)
    levels = np.concatenate([np.linspace(0, 1, most // 2), 1 - np.geomspace(0.02, 1e-7, most // 8)])
    by_level = np.searchsorted(share, np.minimum(levels, share[-1]))
    positive = max(float(times[times > 0][0]), float(times[-1]) * 1e-9)
    by_time = np.searchsorted(times, np.geomspace(positive, times[-1] * (1 - 1e-12), most // 4))
    wanted = [float(t) for t in always if t is not None and np.isfinite(t)]
    named = np.minimum(np.searchsorted(times, wanted), times.size - 1)
    ends = [0, times.size - 1, *range(min(8, times.size))]
    every = np.concatenate([by_level, by_time, named, np.array(ends)]).astype(np.int64)
    return np.unique(np.clip(every, 0, times.size - 1))
