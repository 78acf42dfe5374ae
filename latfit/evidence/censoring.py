"""Censoring that says something: a common give-up time below later completions is a rule of the system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from latfit.sample import LatencySample, Tally

WIDTH = 0.02  # give-up times this close, as a share, are one rule
COMMON, FEWEST = 0.5, 5
BEYOND = 3  # completions after the give-up time that make it a rule of the system, not the end of sight
CUT_SHARE, CUT_TIMES = 0.005, 8.0


@dataclass(frozen=True)
class Censoring:
    """What share was given up before the cutoff, whether most of it at one time, and whether that is a rule.

    `common_time` is where most were given up, None where there is no such time. `informative` says that probes
    given up there ended there: others completed later, so giving up was a decision of the system about the probe.
    `cut_at` is a largest value that so many rows share that it must be a timeout, in a log without outcomes.
    """

    share: float
    common_time: float | None
    informative: bool
    window: tuple[float, float] | None = None
    cut_at: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The contract's fields."""
        return {"share": self.share, "common_time": self.common_time, "informative": self.informative,
                "cut_at": self.cut_at}  # fmt: skip


def censoring(sample: LatencySample, *, has_outcomes: bool = True) -> Censoring:
    """How the probes that did not return were given up."""
    cut_at = None if has_outcomes or sample.censored.total or sample.lost else _maximal(sample.completed)
    window = _common(sample.censored)
    share = sample.censored.total / sample.n if sample.n else 0.0
    if window is None:
        return Censoring(share, None, False, cut_at=cut_at)
    values, counts = sample.censored.values, sample.censored.counts
    inside = (values >= window[0]) & (values <= window[1])
    common = float(np.average(values[inside], weights=counts[inside] / counts[inside].sum()))  # 1e308s do not overflow
    later = int(sample.completed.counts[sample.completed.values > window[1]].sum())
    return Censoring(share, common, later >= BEYOND, window, cut_at)


def _common(censored: Tally) -> tuple[float, float] | None:
    """The narrowest window [a, 1.02 a] that holds most of the censored, None where there is none."""
    if censored.total < FEWEST:
        return None
    cumulative = np.concatenate([[0], np.cumsum(censored.counts)])
    upto = np.searchsorted(censored.values, censored.values * (1 + WIDTH), side="right")
    held = cumulative[upto] - cumulative[: censored.values.size]
    at = int(held.argmax())
    if held[at] < max(FEWEST, COMMON * censored.total):
        return None
    return float(censored.values[at]), float(censored.values[upto[at] - 1])


def _maximal(completed: Tally) -> float | None:
    """The largest latency if far more probes share it than any of those just below."""
    if completed.values.size < 10:
        return None
    last, below = int(completed.counts[-1]), completed.counts[-21:-1]
    enough = last >= FEWEST and last >= CUT_SHARE * completed.total
    return float(completed.values[-1]) if enough and last > CUT_TIMES * below.max() else None
