"""The timeout of each stretch of a log, and what keeping that of the one before costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from latfit.decision import Options, Prepared, Recommendation, prepare
from latfit.decision.recommend import enough, few_completions, recommend, with_intervals
from latfit.errors import LogError
from latfit.evidence import Observations
from latfit.laws import Empirical
from latfit.numbers import Floats, Ints, finite
from latfit.restart import expected_duration
from latfit.sample import LatencySample
from latfit.units import parse_duration

WIDTHS = (60.0, 600.0, 3600.0, 6 * 3600.0, 86_400.0, 7 * 86_400.0, 28 * 86_400.0)
PER_WINDOW = 100  # probes that a window should have, where nobody says how wide it is
MOST = 1000  # windows
MONDAY = 4 * 86_400.0  # the first Monday after 1970 began


@dataclass(frozen=True)
class Window:
    """One stretch of a log: its probes, their outlier ratio, and the timeout by them alone.

    `start` and `end` are seconds since 1970. `low` and `high` bound the timeout (95 %). `kept_regret` is what the
    timeout of the window before costs in this one over its own (0.1 = 10 %), `current_regret` what the timeout in
    use does; None where one of the two is not known, ∞ where it would never end.
    """

    start: float
    end: float
    probes: int
    ratio: float
    timeout: float | None
    low: float | None
    high: float | None
    expected_duration: float | None
    kept_regret: float | None
    current_regret: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The contract's fields and more."""
        return {"from": iso(self.start), "to": iso(self.end), "probes": self.probes, "ratio": self.ratio,
                "timeout": self.timeout, "low": self.low, "high": finite(self.high),
                "expected_duration": finite(self.expected_duration), "kept_regret": finite(self.kept_regret),
                "current_regret": finite(self.current_regret)}  # fmt: skip


def iso(seconds: float | np.datetime64) -> str:
    """A time as ISO text, UTC, to the second."""
    at = seconds if isinstance(seconds, np.datetime64) else np.datetime64(round(seconds), "s")
    return f"{at.astype('datetime64[s]')}Z"


def recommendations(samples: Sequence[LatencySample], options: Options) -> list[tuple[Prepared, Recommendation]]:
    """The timeout of each sample by the same rule as everywhere, without fits."""
    cases = [prepare(sample, options) for sample in samples]
    usable = [case for case in cases if enough(case.sample)]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # resamples in which nothing completes
        made = iter([one for one, _ in recommend(usable, options)])
        found = [(case, next(made) if enough(case.sample) else few_completions(case, options)[0]) for case in cases]
        if not options.resamples:
            return found
        return [(case, with_intervals(one, case, options, (str(at),), None)[0] if enough(case.sample) else one)
                for at, (case, one) in enumerate(found)]  # fmt: skip


def edges_of(when: Floats, width: str | None, changes: Sequence[float]) -> Floats:
    """Where windows begin, and the last one ends.

    A given width counts from Monday, 00:00 UTC; without one the change points are the edges, and in a log without
    any, the narrowest usual width whose windows have a hundred probes.
    """
    first, last = float(when[0]), float(when[-1])
    if width is None and changes:
        return np.array([first, *changes, np.nextafter(last, np.inf)])
    if width is None:
        span = max(last - first, 1.0)
        step = next((w for w in WIDTHS if when.size * w / span >= PER_WINDOW), span)
    else:
        step = parse_duration(width)
        if not step > 0 or (last - first) / step > MOST:
            raise LogError(f"windows of {width!r}: the log spans {(last - first) / 86_400:.3g} days; it can have at "
                           f"most {MOST} windows, each longer than 0 s")  # fmt: skip
    start = MONDAY + (first - MONDAY) // step * step
    return np.asarray(np.arange(start, last + step, step) if last >= start + step else np.array([start, start + step]))


def windows(seen: Observations, edges: Floats, options: Options) -> list[Window]:
    """The windows that have probes, each decided on its own with the cutoff of all."""
    assert seen.submitted is not None
    cuts: Ints = np.searchsorted(seen.submitted, edges)
    full = [i for i in range(edges.size - 1) if cuts[i + 1] > cuts[i]]
    samples = [seen.take(np.arange(cuts[i], cuts[i + 1])).sample for i in full]
    found, previous = [], None
    for i, (case, made) in zip(full, recommendations(samples, options), strict=True):
        low, high = made.intervals.timeout if made.intervals else (None, None)
        found.append(
            Window(float(edges[i]), float(edges[i + 1]), case.sample.n, case.ratio.estimate, made.timeout, low, high,
                   made.expected_duration, _regret(case, made, previous, options.cost),
                   _regret(case, made, options.current, options.cost))
        )  # fmt: skip
        previous = made.timeout if made.timeout is not None else previous
    return found


def _regret(case: Prepared, made: Recommendation, timeout: float | None, cost: float) -> float | None:
    """What another timeout costs more than the recommended one, on the window's own law."""
    if timeout is None or not made.expected_duration:
        return None
    there = min(timeout, case.cutoff.cutoff)
    E = float(expected_duration(Empirical.of(case.sample), there, cost=cost))
    return max(E / made.expected_duration - 1, 0.0)
