"""Predicted against measured: do they agree, and if not, what was found."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import bdtr, bdtrik, ndtr, ndtri, stdtrit

from latfit.analysis import analyze
from latfit.curve import Counts
from latfit.errors import SampleError, counted
from latfit.evidence.log_rank import log_rank
from latfit.laws import Empirical
from latfit.logs import ProbeLog
from latfit.numbers import finite
from latfit.resample import resampled_durations
from latfit.restart import evaluate_timeout
from latfit.restart.result import QUANTILES
from latfit.sample import LatencySample, Tally
from latfit.units import seconds
from latfit.verify.jobs import Jobs, jobs_of

LEVEL = 0.95
Z = float(ndtri(0.5 + LEVEL / 2))
DISAGREE_LEVEL = 0.025  # nominal: at most 5 % of unchanged systems are called different (docs/closed-loop.md)
CAUSE_LEVEL = 0.01  # a log-rank test must be this sure to name a cause
SAME_TIME = 0.02  # cuts and waits that differ by less than this share of the timeout are as set


@dataclass(frozen=True)
class Estimate:
    """An expected duration in seconds with its 95 % interval, and the submissions of a job; None where unknown.

    `submissions` is the mean over all jobs, `undone` the share of them that was never done. A quantile q is the time
    within which the share q of all jobs is done: None where that share is never reached, or where it is unknown.
    """

    expected_duration: float | None
    low: float | None
    high: float | None
    submissions: float | None
    quantiles: dict[str, float | None] = field(default_factory=dict)
    undone: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        numbers = ("expected_duration", "low", "high", "submissions", "undone")
        return asdict(self) | {name: finite(getattr(self, name)) for name in numbers}


@dataclass(frozen=True)
class Measured(Estimate):
    """What the jobs of the later log took; `quantile_intervals` are those of the quantiles (95 %).

    `jobs` were done, `given_up` were not, and `in_flight` were still under way when the log ended. Neither of the last
    two was done: they count in `undone` and in the submissions, and as later than every time in the quantiles.
    """

    jobs: int = 0
    given_up: int = 0
    in_flight: int = 0
    cuts: tuple[float, ...] = ()
    pause: float = 0.0
    quantile_intervals: dict[str, tuple[float | None, float | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class Reason:
    """A cause of a difference: `rounding`, `waits`, `drift`, `later-attempts`, or `unexplained` where none was found.

    `p_value` is that of the log-rank test of `drift` and `later-attempts`.
    """

    code: str
    message: str
    p_value: float | None = None


@dataclass(frozen=True)
class Verification:
    """Predicted against measured; `agrees` is None where there is no prediction. `to_dict()` is the JSON."""

    timeout: float | None
    basis: str
    predicted: Estimate | None
    measured: Measured
    before: Estimate
    speed_up: dict[str, float | None]
    agrees: bool | None
    p_value: float | None
    verdict: str
    sentence: str
    reasons: tuple[Reason, ...]
    tests: dict[str, float | None]
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The contract's document."""
        estimates = {name: getattr(self, name) for name in ("predicted", "measured", "before")}
        return asdict(self) | {name: estimate and estimate.to_dict() for name, estimate in estimates.items()}


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

    Parameters
    ----------
    before
        The log that decided, one row a probe.
    after
        A log of jobs under that decision, one row an attempt.
    timeout
        What was set, in seconds; by default the decision of `before`.
    cost
        What a restart was taken to cost, in seconds.
    job, attempt
        The columns of `after` that name the job and number the attempt (see `jobs_of`).
    cutoff, failed
        As in `analyze`, for `before`.
    seed
        Of the bootstrap that the interval needs where probes were censored early.

    Returns
    -------
    Verification
        `agrees` is whether the expected durations differ no more than chance explains (at 5 %). If they differ,
        `reasons` names what was found: attempts that were cut at other times, waits between attempts, a law of first
        attempts that has changed, or later attempts that are not like first ones.

    """
    rng = np.random.default_rng(seed)
    analysis = analyze(before, laws=(), test=False, cost=cost, cutoff=cutoff, failed=failed)
    document, sample = analysis.to_dict(), analysis.decision.sample
    assert sample is not None
    decision, longest = document["timeout"], document["outliers"]["cutoff"]
    waiting = predict(sample, longest, cost=cost, rng=rng)
    jobs = jobs_of(after, job=job, attempt=attempt)
    measured, error = _measured(jobs)
    wanted = decision["timeout"] if timeout is None else timeout
    prediction, predicted, basis, p_value = None, None, "none", None
    if wanted is not None:
        prediction = predict(sample, min(wanted, longest), cost=cost, rng=rng)
        basis = "given"
        if timeout is None:
            basis = decision.get("basis") or "independent"
            prediction = _decided(prediction, decision, (document.get("evidence") or {}).get("replay"), basis)
        predicted = _estimate(prediction, sample, wanted, cost, jobs.attempts)
        p_value = _p_value(measured.expected_duration, error, prediction)
    speed_up = _speed_up(prediction, measured.expected_duration, waiting, error)
    cut = jobs.cuts[0] if jobs.cuts else wanted or float(jobs.first.completed.values[-1])
    tests = {
        "drift": None if wanted is None else _log_rank(sample, jobs.first, cut),
        "later_attempts": _log_rank(jobs.first, jobs.later, cut),
    }
    agrees = None if p_value is None else p_value >= DISAGREE_LEVEL
    verdict = "no-prediction" if agrees is None else "as predicted"
    reasons: tuple[Reason, ...] = ()
    if prediction is not None and wanted is not None and agrees is False:
        verdict = "worse" if (measured.expected_duration or 0.0) > prediction.expected_duration else "better"
        reasons = _reasons(jobs, wanted, cost, tests)
    return Verification(
        timeout=wanted,
        basis=basis,
        predicted=predicted,
        measured=measured,
        before=Estimate(waiting.expected_duration, *waiting.interval, waiting.submissions),
        speed_up=speed_up,
        agrees=agrees,
        p_value=p_value,
        verdict=verdict,
        sentence=sentence(verdict, predicted, measured, speed_up, reasons, timeout=wanted, decision=decision),
        reasons=reasons,
        tests=tests,
        warnings=_warnings(jobs),
    )


def _measured(jobs: Jobs) -> tuple[Measured, float]:
    """What the jobs took, and the standard error of its logarithm.

    All the time of all jobs over the number of those done: the mean where every job was done, and E_J also where
    jobs are given up after K attempts (by Wald's identity both the time and the jobs done are E[min(N, K)] times
    those of one attempt).
    """
    x = np.sort(jobs.durations)
    n, undone = x.size, jobs.given_up.size + jobs.in_flight
    time = np.concatenate([x, jobs.spent])
    mean = float(time.sum() / n)
    error = float(np.sqrt(((time - mean * (np.arange(time.size) < n)) ** 2).sum()) / n / mean) if mean > 0 else 0.0
    low, high = _interval(mean, error, float(stdtrit(n - 1, 0.5 + LEVEL / 2)))
    every = np.concatenate([x, np.full(undone, np.inf)])  # a job that was not done is later than every time
    tails = (1 - LEVEL) / 2, (1 + LEVEL) / 2
    ranks = {q: [_binomial_quantile(p, every.size, q) for p in tails] for q in QUANTILES}
    measured = Measured(
        expected_duration=mean,
        low=low,
        high=high,
        submissions=jobs.tried / every.size,
        quantiles={str(q): finite(every[int(np.ceil(q * every.size)) - 1]) for q in QUANTILES},
        undone=undone / every.size,
        jobs=n,
        given_up=jobs.given_up.size,
        in_flight=jobs.in_flight,
        cuts=jobs.cuts,
        pause=jobs.pause,
        quantile_intervals={
            str(q): (finite(every[max(0, lower - 1)]), finite(every[min(every.size - 1, upper)]))
            for q, (lower, upper) in ranks.items()
        },
    )
    return measured, error


# What a sample predicts


@dataclass(frozen=True)
class Prediction:
    """E_J, the standard error of its logarithm, and the submissions of a job."""

    expected_duration: float
    log_error: float
    submissions: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of E_J."""
        return _interval(self.expected_duration, self.log_error)


def predict(sample: LatencySample, t: float, *, cost: float = 0.0, rng: np.random.Generator) -> Prediction:
    """What jobs take whose attempts are cut at t: E_J = (A + c (1 − F̃))/F̃ with A = ∫₀ᵗ S, and 1/F̃ submissions.

    Where jobs are given up after K attempts, E_J is all their time over the number of those done. The standard error
    is by the delta method; by a bootstrap where probes were censored before t.
    """
    probes = sample.cut(t) if sample.cutoff is None or t < sample.cutoff else sample
    if not probes.completed.total:
        raise SampleError(f"no probe completed within {t:g} s: no job would ever be done with that timeout")
    counts = Counts.of_sample(probes)
    curve, at = counts.curves(), np.array(t)
    E, (F, _, A) = float(curve.E_J_at(at, cost)), (float(value) for value in curve.at(at))
    if not E > 0:
        raise SampleError("every probe took 0 s by the clock of the log: there is nothing to compare")
    if probes.censored_early:
        drawn = resampled_durations(counts, t, rng, cost=cost)
        drawn = drawn[np.isfinite(drawn) & (drawn > 0)]  # a resample may hold zeros of the clock only
        return Prediction(E, float(np.std(np.log(drawn))) if drawn.size else np.inf, 1 / F)
    # the influence of a probe on E_J = (A + c)/F̃ − c, where it failed after x or is still out, and where it completed
    in_vain = (np.append(counts.times, t) - A) / F + (A + cost) / F
    completing = in_vain[:-1] - (A + cost) / F**2
    out = probes.n - (counts.completed + counts.failed).sum()
    variance = counts.completed @ completing**2 + (counts.failed * in_vain[:-1] ** 2).sum() + out * in_vain[-1] ** 2
    return Prediction(E, float(np.sqrt(variance[0])) / probes.n / E, 1 / F)


def _decided(plain: Prediction, decision: dict[str, Any], replay: dict[str, Any] | None, basis: str) -> Prediction:
    """The prediction with the interval of the decision, which leaves out the optimism of having chosen the minimum."""
    if basis == "replay" and replay:
        low, high = replay.get("low"), replay.get("high")
    else:
        low, high = decision.get("expected_duration_low"), decision.get("expected_duration_high")
    if not low or not high:
        return plain
    return replace(plain, expected_duration=float(np.sqrt(low * high)), log_error=float(np.log(high / low)) / (2 * Z))


def _estimate(prediction: Prediction, sample: LatencySample, t: float, cost: float, attempts: int | None) -> Estimate:
    """What is predicted at t where jobs are given up after so many attempts."""
    law = Empirical.of(sample)
    undone = (1 - float(law.cdf(t))) ** attempts if attempts else 0.0
    undone = undone if undone >= 1e-9 else 0.0  # less than one job of any run
    quantiles = dict(evaluate_timeout(law, t, cost=cost).quantiles)
    return Estimate(
        prediction.expected_duration,
        *prediction.interval,
        submissions=max(1.0, prediction.submissions * (1 - undone)),  # E[min(N, K)] = (1 − (1 − F̃)^K) / F̃
        quantiles={q: within if float(q) <= 1 - undone else None for q, within in quantiles.items()},
        undone=undone,
    )


# Are they the same, and if not, why?


def _binomial_quantile(p: float, n: int, q: float) -> int:
    """The smallest k with P(K ≤ k) ≥ p; `scipy.stats` has it too, and takes half a second to import."""
    k = int(np.ceil(bdtrik(p, n, q)))
    return k - 1 if k > 0 and bdtr(k - 1, n, q) >= p else k


def _interval(mean: float, log_error: float, z: float = Z) -> tuple[float, float]:
    """The 95 % interval on the log scale."""
    return mean * float(np.exp(-z * log_error)), mean * float(np.exp(z * log_error))


def _p_value(measured: float | None, error: float, predicted: Prediction) -> float:
    """The chance of a difference this large if measured and predicted were the same."""
    both = float(np.hypot(error, predicted.log_error))
    distance = abs(np.log((measured or np.nan) / predicted.expected_duration))
    return float(2 * ndtr(-distance / both)) if both > 0 else float(distance == 0)


def _speed_up(
    predicted: Prediction | None, measured: float | None, waiting: Prediction, error: float
) -> dict[str, float | None]:
    """How much faster than waiting until the cutoff of the earlier log."""
    assert measured is not None
    gain = waiting.expected_duration / measured
    low, high = _interval(gain, float(np.hypot(error, waiting.log_error)))
    expected = None if predicted is None else waiting.expected_duration / predicted.expected_duration
    return {"predicted": expected, "measured": gain, "low": low, "high": high}


def _log_rank(first: LatencySample, second: LatencySample, t: float) -> float | None:
    """The p-value of the log-rank test of two samples up to t; failures, where there are any, are tested too."""
    if not first.n or not second.n:
        return None
    latencies, statuses = [], []
    for sample in (_cut_at(first, t), _cut_at(second, t)):
        parts = [tally.expand() for tally in (sample.completed, sample.failed, sample.censored)]
        parts.append(np.full(sample.lost, t))
        latencies.append(np.concatenate(parts))
        statuses.append(np.repeat([0, 1, 2, 2], [part.size for part in parts]))
    latency, status = np.concatenate(latencies), np.concatenate(statuses)
    of_second = np.arange(latency.size) >= latencies[0].size
    p_values = [log_rank(latency, status == code, of_second) for code in (0, 1) if (status == code).any()]
    return min(1.0, len(p_values) * min(p_values)) if p_values else None


def _cut_at(sample: LatencySample, t: float) -> LatencySample:
    """A sample of attempts that were cut at about t (within 5 %), as cut at t exactly."""
    censored = sample.censored.expand()
    moved = replace(sample, censored=Tally.of(np.where(censored >= 0.95 * t, np.maximum(censored, t), censored)))
    return moved if moved.cutoff is not None and moved.cutoff <= t else moved.cut(t)


def _reasons(jobs: Jobs, wanted: float, cost: float, tests: dict[str, float | None]) -> tuple[Reason, ...]:
    """The causes of a difference that were found: other cuts, waits, other first attempts, other later ones."""
    reasons = []
    if any(abs(t / wanted - 1) > SAME_TIME for t in jobs.cuts):
        cuts = ", ".join(dict.fromkeys(seconds(t) for t in jobs.cuts))
        message = f"attempts were cut after {cuts}, not after {seconds(wanted)}: the tool rounds or has a schedule"
        reasons.append(Reason("rounding", message))
    if jobs.pause > cost + SAME_TIME * wanted:
        message = f"{seconds(jobs.pause)} passed between two attempts of a job, which the prediction did not count"
        reasons.append(Reason("waits", message))
    for code, p, message in (
        ("drift", tests["drift"], "first attempts are no longer like the probes of BEFORE{}: the system has drifted"),
        (
            "later-attempts",
            tests["later_attempts"],
            "later attempts are not like first ones{}: a slow job is slow again",
        ),
    ):
        if p is not None and p < CAUSE_LEVEL:
            test = f" (log-rank test, p {'< 0.001' if p < 0.001 else f'= {p:.3f}'})"
            reasons.append(Reason(code, message.format(test), p))
    if not reasons:
        message = "none of the tested causes (rounding, waits, drift, later attempts) explains it"
        reasons.append(Reason("unexplained", message))
    return tuple(reasons)


def _warnings(jobs: Jobs) -> tuple[str, ...]:
    """What limits the comparison."""
    warnings = []
    if not jobs.later.n:
        warnings.append("no job of AFTER has a second attempt: nothing can be said of later attempts")
    if jobs.in_flight:
        still_out = f"{counted(jobs.in_flight, 'job', 'was', 'were')} still under way when AFTER ended"
        warnings.append(f"{still_out}: the time so far is counted, and they count as not done")
    if jobs.overlap:
        warnings.append("attempts of a job overlap: they were hedged, and the prediction is for cancelling")
    return tuple(warnings)


# In words


def sentence(
    verdict: str,
    predicted: Estimate | None,
    measured: Measured,
    speed_up: dict[str, float | None],
    reasons: tuple[Reason, ...],
    *,
    timeout: float | None = None,
    decision: dict[str, Any] | None = None,
) -> str:
    """The verdict in one sentence, or two where jobs are slower than before."""
    took = f"jobs take {_with_interval(measured)}"
    gain = (
        f"{speed_up['measured']:.3g} × ({speed_up['low']:.3g} to {speed_up['high']:.3g}) the speed of waiting until "
        "the cutoff"
    )
    if predicted is None:
        decision = decision or {}
        codes = ", ".join(decision.get("withheld") or ())
        withheld = decision.get("verdict") == "withheld"
        why = f"the decision of BEFORE is withheld ({codes})" if withheld else "BEFORE decides for no timeout"
        return f"No prediction, as {why}: {took}, {gain}."
    expected = f"{_with_interval(predicted)} were predicted for a timeout of {seconds(timeout)}"
    if verdict == "as predicted":
        return f"As predicted: {took}, and {expected}; {gain}."
    because = "; ".join(reason.message for reason in reasons)
    text = f"{verdict.capitalize()} than predicted: {took}, where {expected}; {because}; {gain}."
    high = speed_up["high"]
    if high is not None and high < 1:
        text += " Jobs are slower than by waiting until the cutoff: take the timeout back."
    return text


def _with_interval(estimate: Estimate) -> str:
    """An expected duration with its interval."""
    interval = "no interval" if estimate.low is None else f"{seconds(estimate.low)} to {seconds(estimate.high)}"
    return f"{seconds(estimate.expected_duration)} ({interval})"
