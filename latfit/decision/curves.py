"""Many samples as rows of one `StepCurves`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from latfit.numbers import Floats
from latfit.restart.steps import StepCurves
from latfit.sample import LatencySample, Tally, counts_at

NONE = np.zeros((1, 1))  # no count anywhere


def curves_of(samples: Sequence[LatencySample]) -> StepCurves:
    """The Kaplan–Meier curves of samples that have a return each, at their own times, padded to one length."""
    merged = [sample.returned_at for sample in samples]
    lost = np.array([float(sample.lost) for sample in samples])
    width = max(times.size for times in merged)
    shape = (len(samples), width)
    at = merged[0][None]
    if len(samples) > 1:
        at = np.empty(shape)
        for row, times in enumerate(merged):
            at[row, : times.size], at[row, times.size :] = times, times[-1]
    done = _placed([sample.completed for sample in samples], merged, shape)
    failed = [sample.failed for sample in samples]
    gone = _placed(failed, merged, shape) if any(tally.total for tally in failed) else NONE
    out = np.zeros(shape) if any(sample.censored.total for sample in samples) else NONE
    for row, (sample, times) in enumerate(zip(samples, merged, strict=True)):
        if sample.censored.total:
            # censored from one time until the next: still at risk at the first, not at the second
            place = np.searchsorted(times, sample.censored.values, side="right") - 1
            inside = place >= 0
            last = np.where(place == times.size - 1, width - 1, place)
            np.add.at(out[row], last[inside], sample.censored.counts[inside])
    return StepCurves.of_counts(at, done, gone, out, lost)


def _placed(tallies: Sequence[Tally], merged: Sequence[Floats], shape: tuple[int, int]) -> Floats:
    """The counts of tallies at the times of their rows, which contain all of their values."""
    counts = np.zeros(shape)
    for row, (tally, times) in enumerate(zip(tallies, merged, strict=True)):
        counts[row, : times.size] = counts_at(tally, times)
    return counts
