"""Predicted against measured: do they agree, and if not, what explains the difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

from latfit.analysis import analyze
from latfit.errors import SampleError, counted
from latfit.evidence.log_rank import log_rank
from latfit.laws import Empirical
from latfit.logs import ProbeLog
from latfit.numbers import Floats, finite
from latfit.restart import evaluate_timeout
from latfit.restart.result import QUANTILES
from latfit.sample import LatencySample, Tally
from latfit.verify.attempts import Jobs, jobs_of
from latfit.verify.predict import Prediction, predict, undone_share
from latfit.verify.result import Estimate, Measured, Reason, Verification
from latfit.verify.words import explained, sentence

LEVEL = 0.95
DISAGREE = 0.025  # nominal: by simulation at most 5 % of unchanged systems are called different (docs/closed-loop.md)
CAUSE = 0.01  # a test of a cause must be this sure
MOVED = 0.02  # a cut that differs by more than this share from the timeout was rounded, or is another one
SHARE = 0.2  # of the difference that a reason must explain
NEAR = 0.95  # attempts censored within this share of the cut were cut by it
Z = float(stats.norm.ppf(0.5 + LEVEL / 2))


@dataclass(frozen=True)
class _Before:
    """What the earlier log says: its sample, the decision, and waiting until its cutoff."""

    sample: LatencySample
    cutoff: float
    decision: dict[str, Any]
    replay: dict[str, Any] | None
    waiting: Prediction


def verify(
    before: ProbeLog,
    after: ProbeLog,
    *,
    timeout: float | None = None,
    cost: float = 0.0,
    job: str | None = None,
    attempt: str | None = None,
    cutoff: float | None = None,
    failed: str = "retry",
    seed: int = 0,
) -> Verification:
    """Compare what `before` predicts for a timeout with what the jobs of `after` took.

    `before` is the log that decided, one row a probe. `after` has several attempts a job; its columns `job` and
    `attempt` say which (see `jobs_of`). `timeout` is what was set, in seconds; by default the decision of `before`.
    `cost` is what a restart was taken to cost, `cutoff` and `failed` are those of `analyze`.

    Returns a Verification. `agrees` is whether the expected durations differ no more than chance explains (at 5 %);
    if they do, `reasons` names what explains it: attempts that were cut at other times, waits between attempts, a law
    of first attempts that has changed, or later attempts that are not like first ones.
    """
    rng = np.random.default_rng(seed)
    known = _before(before, cutoff, failed, cost, rng)
    jobs = jobs_of(after, job=job, attempt=attempt)
    measured, error = _measured(jobs)
    wanted = known.decision["timeout"] if timeout is None else timeout
    warnings = _warnings(jobs)
    tests = {"drift": None, "later_attempts": _logrank(jobs.first, jobs.later, _cut(jobs, wanted))}
    waited = known.waiting
    limits = _interval(waited.expected_duration, waited.log_error)
    waiting = Estimate(waited.expected_duration, *limits, waited.submissions)
    gain = _speed_up(None, measured.expected_duration, known.waiting, error)
    if wanted is None:
        told = sentence("no-prediction", None, measured, gain, (), verdict_before=known.decision)
        return Verification(None, "none", None, measured, waiting, gain, None, None, "no-prediction", told, (), tests,
                            warnings)  # fmt: skip
    tests["drift"] = _logrank(known.sample, jobs.first, _cut(jobs, wanted))
    base, estimate, basis = _predicted(known, wanted, timeout is None, jobs, cost, rng)
    p = _p_value(measured.expected_duration, error, base)
    agrees = p >= DISAGREE
    worse = (measured.expected_duration or 0.0) > base.expected_duration
    verdict = "as predicted" if agrees else "worse" if worse else "better"
    reasons = () if agrees else _reasons(known, jobs, wanted, cost, base, measured, error, tests, rng)
    gain = _speed_up(base, measured.expected_duration, known.waiting, error)
    return Verification(
        timeout=wanted,
        basis=basis,
        predicted=estimate,
        measured=measured,
        before=waiting,
        speed_up=gain,
        agrees=agrees,
        p_value=p,
        verdict=verdict,
        sentence=sentence(verdict, estimate, measured, gain, reasons, timeout=wanted),
        reasons=reasons,
        tests=tests,
        warnings=warnings,
    )


def _before(log: ProbeLog, cutoff: float | None, failed: str, cost: float, rng: np.random.Generator) -> _Before:
    """The decision of the earlier log, and what waiting until its cutoff takes."""
    found = analyze(log, laws=(), test=False, cost=cost, cutoff=cutoff, failed=failed)
    document, sample = found.to_dict(), found.decision.sample
    assert sample is not None
    end = document["outliers"]["cutoff"]
    replay = (document.get("evidence") or {}).get("replay")
    return _Before(sample, end, document["timeout"], replay, predict(sample, [end], cost=cost, rng=rng))


def _predicted(
    known: _Before, t: float, decided: bool, jobs: Jobs, cost: float, rng: np.random.Generator
) -> tuple[Prediction, Estimate, str]:
    """The prediction of the earlier log at t, by the basis of its decision where t is that decision."""
    plain = predict(known.sample, [min(t, known.cutoff)], cost=cost, rng=rng)
    law = Empirical.of(known.sample)
    quantiles = dict(evaluate_timeout(law, t, cost=cost).quantiles)
    low, high = _interval(plain.expected_duration, plain.log_error)
    basis = "given"
    if decided:
        basis = known.decision.get("basis") or "independent"
        told = known.replay if basis == "replay" and known.replay else known.decision
        names = ("low", "high") if told is known.replay else ("expected_duration_low", "expected_duration_high")
        bounds = [float(told[name]) for name in names if told.get(name)]
        if len(bounds) == 2:  # they leave out the optimism of having chosen the minimum
            low, high = bounds
            middle = float(np.sqrt(low * high))
            plain = replace(plain, expected_duration=middle, log_error=float(np.log(high / low)) / (2 * Z))
    undone = undone_share(known.sample, [t], jobs.attempts) if jobs.attempts else 0.0
    reached = {q: within if float(q) <= 1 - undone else None for q, within in quantiles.items()}
    tried = max(1.0, plain.submissions * (1 - undone))  # E[min(N, K)] = (1 − (1 − F̃)^K) / F̃
    estimate = Estimate(plain.expected_duration, low, high, tried, reached, undone)
    return plain, estimate, basis


def _measured(jobs: Jobs) -> tuple[Measured, float]:
    """What the jobs took, and the standard error of its logarithm.

    All the time of all jobs over the number of those done: the mean where every job was done, and E_J also where
    jobs are given up after K attempts (by Wald's identity both the time and the jobs done are E[min(N, K)] times
    those of one attempt).
    """
    x = np.sort(jobs.durations)
    n = x.size
    time = np.concatenate([x, jobs.spent])
    mean = float(time.sum() / n)
    error = float(np.sqrt(((time - mean * (np.arange(time.size) < n)) ** 2).sum()) / n / mean) if mean > 0 else 0.0
    low, high = _interval(mean, error, n)
    undone = jobs.given_up.size + jobs.in_flight
    every = np.concatenate([x, np.full(undone, np.inf)])  # a job that was not done is later than every time
    quantiles = {str(q): finite(every[int(np.ceil(q * every.size)) - 1]) for q in QUANTILES}
    between = {str(q): _quantile_interval(every, q) for q in QUANTILES}
    found = Measured(
        mean, low, high, jobs.tried / every.size, quantiles, undone / every.size, n, jobs.given_up.size,
        jobs.in_flight, jobs.cuts, jobs.pause, between,
    )  # fmt: skip
    return found, error


def _quantile_interval(x: Floats, q: float) -> tuple[float | None, float | None]:
    """The 95 % interval of a quantile by the binomial law of ranks; None for an end that no job reached."""
    low, high = (int(stats.binom.ppf(p, x.size, q)) for p in ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return finite(x[max(0, low - 1)]), finite(x[min(x.size - 1, high)])


def _interval(mean: float, log_error: float, n: int | None = None) -> tuple[float, float]:
    """The 95 % interval on the log scale."""
    z = Z if n is None else float(stats.t.ppf(0.5 + LEVEL / 2, n - 1))
    return mean * float(np.exp(-z * log_error)), mean * float(np.exp(z * log_error))


def _p_value(measured: float | None, error: float, predicted: Prediction) -> float:
    """The chance of a difference this large if measured and predicted were the same."""
    both = float(np.hypot(error, predicted.log_error))
    distance = abs(np.log((measured or np.nan) / predicted.expected_duration))
    return float(2 * stats.norm.sf(distance / both)) if both > 0 else float(distance == 0)


def _speed_up(
    predicted: Prediction | None, measured: float | None, waiting: Prediction, error: float
) -> dict[str, float | None]:
    """How much faster than waiting until the cutoff of the earlier log."""
    assert measured is not None
    gain = waiting.expected_duration / measured
    low, high = _interval(gain, float(np.hypot(error, waiting.log_error)))
    told = None if predicted is None else waiting.expected_duration / predicted.expected_duration
    return {"predicted": told, "measured": gain, "low": low, "high": high}


def _cut(jobs: Jobs, wanted: float | None) -> float:
    """Where first attempts were cut; their longest latency where none was."""
    if jobs.cuts:
        return jobs.cuts[0]
    return wanted if wanted is not None else float(jobs.first.completed.values[-1])


def _settled(sample: LatencySample, t: float) -> LatencySample:
    """A sample of attempts that were cut at about t, as cut at t exactly."""
    cut = np.where(sample.censored.values >= NEAR * t, np.maximum(sample.censored.values, t), sample.censored.values)
    moved = replace(sample, censored=Tally.of(np.repeat(cut, sample.censored.counts)))
    return moved if moved.cutoff is not None and moved.cutoff <= t else moved.cut(t)


def _logrank(first: LatencySample, second: LatencySample, t: float) -> float | None:
    """The p-value of the log-rank test of two samples up to t; failures, where there are any, are tested too."""
    if not first.n or not second.n:
        return None
    parts = [_settled(sample, t) for sample in (first, second)]
    x, kind, group = [], [], []
    for label, sample in enumerate(parts):
        for code, tally in enumerate((sample.completed, sample.failed, sample.censored)):
            x.append(np.repeat(tally.values, tally.counts))
            kind.append(np.full(tally.total, code))
            group.append(np.full(tally.total, label))
        x.append(np.full(sample.lost, t))
        kind.append(np.full(sample.lost, 2))
        group.append(np.full(sample.lost, label))
    times, kinds, groups = (np.concatenate(part) for part in (x, kind, group))
    found = [log_rank(times, kinds == code, groups == 1) for code in (0, 1) if (kinds == code).any()]
    return min(1.0, len(found) * min(found)) if found else None


def _reasons(
    known: _Before,
    jobs: Jobs,
    wanted: float,
    cost: float,
    base: Prediction,
    measured: Measured,
    error: float,
    tests: dict[str, float | None],
    rng: np.random.Generator,
) -> tuple[Reason, ...]:
    """What explains the difference, in the order in which it can be taken out of it."""
    actual = measured.expected_duration or np.nan
    gap = abs(np.log(actual / base.expected_duration))
    found: list[Reason] = []
    current = base
    for code, sample, timeouts, pause, p in _stages(known, jobs, wanted, cost, tests):
        try:
            better = predict(sample, timeouts, cost=pause, rng=rng)
        except SampleError:
            continue
        gained = abs(np.log(actual / current.expected_duration)) - abs(np.log(actual / better.expected_duration))
        if gained < SHARE * gap:
            continue
        current = better
        found.append(Reason(code, explained(code, jobs, wanted, p), p, current.expected_duration))
        if _p_value(actual, error, current) >= DISAGREE:
            return tuple(found)
    p = tests["later_attempts"]
    if p is not None and p < CAUSE:
        found.append(Reason("later-attempts", explained("later-attempts", jobs, wanted, p), p))
    elif not found:
        found.append(Reason("unexplained", explained("unexplained", jobs, wanted, None)))
    return tuple(found)


def _stages(
    known: _Before, jobs: Jobs, wanted: float, cost: float, tests: dict[str, float | None]
) -> list[tuple[str, LatencySample, Sequence[float], float, float | None]]:
    """What may explain a difference, each with all before it: the cuts, the waits, the law of first attempts."""
    cuts = [min(t, known.cutoff) for t in jobs.cuts or (wanted,)]
    found: list[tuple[str, LatencySample, Sequence[float], float, float | None]] = []
    if any(abs(t / wanted - 1) > MOVED for t in cuts):
        found.append(("rounding", known.sample, cuts, cost, None))
    if jobs.pause > cost + MOVED * wanted:
        found.append(("waits", known.sample, cuts, jobs.pause, None))
    drift = tests["drift"]
    if drift is not None and drift < CAUSE:
        now = _settled(jobs.first, cuts[0])
        found.append(("drift", now, [cuts[0]], max(cost, jobs.pause), drift))
    return found


def _warnings(jobs: Jobs) -> tuple[str, ...]:
    """What limits the comparison."""
    found = []
    if not jobs.later.n:
        found.append("no job of AFTER has a second attempt: nothing can be said of later attempts")
    if jobs.in_flight:
        told = f"{counted(jobs.in_flight, 'job', 'was', 'were')} still under way when AFTER ended"
        found.append(f"{told}: the time so far is counted, and they count as not done")
    if jobs.overlap:
        found.append("attempts of a job overlap: they were hedged, and the prediction is for cancelling")
    return tuple(found)
