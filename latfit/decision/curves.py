"""Many samples as rows of one `StepCurves`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from latfit.numbers import Floats
from latfit.restart.steps import StepCurves
from latfit.sample import LatencySample, Tally


def curves_of(samples: Sequence[LatencySample]) -> StepCurves:
    """The Kaplan–Meier curves of samples that have a return each, at their own times, padded to one length."""
    merged = [np.union1d(s.completed.values, s.failed.values) if s.failed.values.size else s.completed.values
              for s in samples]  # fmt: skip
    width = max(times.size for times in merged)
    shape = (len(samples), width)
    at, done, gone, out = (np.zeros(shape) for _ in range(4))
    for row, (sample, times) in enumerate(zip(samples, merged, strict=True)):
        k = times.size
        at[row, :k], at[row, k:] = times, times[-1]
        done[row, :k] = _placed(sample.completed, times)
        gone[row, :k] = _placed(sample.failed, times)
        # censored from one time until the next: still at risk at the first, not at the second
        place = np.searchsorted(times, sample.censored.values, side="right") - 1
        inside = place >= 0
        np.add.at(out[row], np.where(place == k - 1, width - 1, place)[inside], sample.censored.counts[inside])
    return StepCurves.of_counts(at, done, gone, out, np.array([float(s.lost) for s in samples]))


def _placed(tally: Tally, times: Floats) -> Floats:
    """The counts of a tally at `times`, which contain all of its values."""
    if tally.values.size == times.size:
        return tally.counts.astype(np.float64)
    counts = np.zeros(times.size)
    counts[np.searchsorted(times, tally.values)] = tally.counts
    return counts
