"""What a sample predicts for jobs whose first, second … attempts are cut at given times, with its standard error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from latfit.errors import SampleError
from latfit.laws import Empirical
from latfit.numbers import Floats
from latfit.sample import LatencySample, Tally

RESAMPLES = 200
NONE = 1e-9  # a share of jobs that is less than this is none
STEP = 1e-6  # of the differences that make a gradient


@dataclass(frozen=True)
class Prediction:
    """E_J, the standard error of its logarithm, and the submissions of a job."""

    expected_duration: float
    log_error: float
    submissions: float


def predict(
    sample: LatencySample,
    timeouts: Sequence[float],
    *,
    cost: float = 0.0,
    rng: np.random.Generator,
) -> Prediction:
    """What jobs take whose i-th attempt is cut at `timeouts[i]`, the last of them for all that follow.

    E_J is that of unbounded attempts; where jobs are given up after K attempts it is all their time over the number
    of those done. The standard error is by the delta method; by a bootstrap where probes were censored before the
    longest timeout.
    """
    longest = max(timeouts)
    seen = sample.cut(longest) if sample.cutoff is None or longest < sample.cutoff else sample
    if not seen.completed.total:
        raise SampleError(f"no probe completed within {longest:g} s: no job would ever be done with that timeout")
    law = Empirical.of(seen)
    at = _facts(law, timeouts)
    E, submissions = _jobs(at, cost)
    if not E > 0:
        raise SampleError("every probe took 0 s by the clock of the log: there is nothing to compare")
    if seen.censored_early:
        drawn = np.array([_jobs(_facts(Empirical.of(one), timeouts), cost)[0] for one in _resamples(seen, rng)])
        known = drawn[np.isfinite(drawn) & (drawn > 0)]  # a resample may hold zeros of the clock only
        return Prediction(E, float(np.std(np.log(known))) if known.size else np.inf, submissions)
    return Prediction(E, _delta(seen, at, timeouts, cost) / E, submissions)


def undone_share(sample: LatencySample, timeouts: Sequence[float], attempts: int) -> float:
    """The share of jobs that `attempts` attempts do not complete, Π (1 − F̃(t_i)); 0 below one in 10⁹."""
    F = Empirical.of(sample).cdf(np.asarray(timeouts, dtype=np.float64))
    undone = float(np.prod(1 - np.append(F[:attempts], np.full(max(0, attempts - F.size), F[-1]))))
    return undone if undone >= NONE else 0.0


def _facts(law: Empirical, timeouts: Sequence[float]) -> Floats:
    """For each timeout t: F̃(t) and the mean length of an attempt, A(t) = ∫₀ᵗ S(u) du."""
    t = np.asarray(timeouts, dtype=np.float64)
    length = law.partial_moment(1, t) + law.failed_moment(1, t) + t * law.still_out(t)
    return np.stack([law.cdf(t), length], axis=1)


def _jobs(at: Floats, cost: float) -> tuple[float, float]:
    """E_J = Σ_i r_i (A_i + c (1 − F_i)) and the submissions Σ_i r_i, r_i the share of jobs that need attempt i.

    A_i is the mean length of attempt i. All attempts after the last timeout given are alike: a geometric series.
    """
    r, E, tried = 1.0, 0.0, 0.0
    for F, length in at[:-1].tolist():
        E, tried = E + r * (length + cost * (1 - F)), tried + r
        r *= 1 - F
    F, length = at[-1].tolist()
    if not F > 0:
        return np.inf, np.inf
    return E + r * (length + cost * (1 - F)) / F, tried + r / F


def _delta(sample: LatencySample, at: Floats, timeouts: Sequence[float], cost: float) -> float:
    """The standard error of E_J: its gradient in F̃ and A, on the probes themselves."""
    base = _jobs(at, cost)[0]
    gradient = np.zeros_like(at)
    for index in np.ndindex(at.shape):
        moved = at.copy()
        h = STEP * max(abs(float(moved[index])), STEP)
        moved[index] -= h
        gradient[index] = (base - _jobs(moved, cost)[0]) / h
    x = np.concatenate([sample.completed.values, sample.failed.values, [np.inf]])
    weight = np.concatenate([sample.completed.counts, sample.failed.counts, [0]]).astype(np.float64)
    weight[-1] = sample.n - weight.sum()
    completes = np.arange(x.size) < sample.completed.values.size
    influence = np.zeros(x.size)
    for (F, length), slope, t in zip(at, gradient, timeouts, strict=True):
        influence += slope[0] * ((completes & (x <= t)) - F) + slope[1] * (np.minimum(x, t) - length)
    return float(np.sqrt((weight * influence**2).sum()) / sample.n)


def _resamples(sample: LatencySample, rng: np.random.Generator) -> list[LatencySample]:
    """The sample drawn again: every count by a Poisson law."""

    def again(tally: Tally) -> Tally:
        return Tally.of(np.repeat(tally.values, rng.poisson(tally.counts)))

    drawn: list[LatencySample] = []
    while len(drawn) < RESAMPLES:
        completed = again(sample.completed)
        if completed.total:
            failed, censored = again(sample.failed), again(sample.censored)
            lost = int(rng.poisson(sample.lost))
            drawn.append(replace(sample, completed=completed, failed=failed, censored=censored, lost=lost))
    return drawn
