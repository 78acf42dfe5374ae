"""Did it work? What was predicted from one log against what was measured in a later one.

`verify(before, after)` takes the log that decided and a log of jobs that ran under the decision, one row an attempt,
and says in one sentence whether jobs take as long as predicted, and if not, which tested causes there are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import bdtr, bdtrik, ndtr, ndtri, stdtrit

from latfit.analysis import analyze
from latfit.curve import Counts
from latfit.errors import MissingColumn, SampleError, counted, listed
from latfit.laws import Empirical
from latfit.logs import ProbeLog, read_log
from latfit.logs.formats import find_format
from latfit.logs.source import open_source
from latfit.numbers import Bools, Floats, Ints, finite, plain_values
from latfit.resample import LEVEL, resampled_curves
from latfit.restart import evaluate_timeout
from latfit.restart.result import QUANTILES
from latfit.sample import CENSORED, COMPLETED, LatencySample, Tally
from latfit.table import ProbeTable
from latfit.units import seconds

JOB_COLUMNS = ("job", "jobname", "requestid", "xrequestid", "traceid", "correlationid", "taskid", "jobid", "id")
ATTEMPT_COLUMNS = ("attempt", "attemptnumber", "try", "trynumber", "retry")
Z = float(ndtri(0.5 + LEVEL / 2))
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
        return plain_values(self)


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
    """`rounding`, `waits`, `drift` or `later-attempts` (both with a log-rank test's p-value), or `unexplained`."""

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
        parts = {"predicted": self.predicted, "measured": self.measured, "before": self.before}
        document = vars(self) | {name: part and part.to_dict() for name, part in parts.items()}
        return document | {"reasons": [vars(reason) for reason in self.reasons]}


class Prediction(NamedTuple):
    """E_J, the standard error of its logarithm, and the submissions of a job."""

    expected_duration: float
    log_error: float
    submissions: float


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
    before : the log that decided, one row a probe.
    after : a log of jobs under that decision, one row an attempt.
    timeout : what was set, in seconds; by default the decision of `before`.
    cost : what a restart was taken to cost, in seconds.
    job, attempt : the columns of `after` that name the job and number the attempt (see `jobs_of`).
    cutoff, failed : as in `analyze`, for `before`.
    seed : of the bootstrap that the interval needs where probes were censored early.

    Returns
    -------
    Verification : `agrees` is whether the expected durations differ no more than chance explains (at 5 %). If they
    differ, `reasons` names what was found: attempts that were cut at other times, waits between attempts, a law of
    first attempts that has changed, or later attempts that are not like first ones.
    """
    rng = np.random.default_rng(seed)
    analysis = analyze(before, laws=(), test=False, cost=cost, cutoff=cutoff, failed=failed)
    document, sample = analysis.to_dict(), analysis.decision.sample
    assert sample is not None
    decision, longest = document["timeout"], document["outliers"]["cutoff"]
    waiting = predict(sample, longest, cost=cost, rng=rng)
    jobs = jobs_of(after, job=job, attempt=attempt)
    measured, error = _measured(jobs)
    assert measured.expected_duration is not None
    gain = waiting.expected_duration / measured.expected_duration
    low, high = _interval(gain, float(np.hypot(error, waiting.log_error)))
    speed_up: dict[str, float | None] = {"predicted": None, "measured": gain, "low": low, "high": high}
    t = decision["timeout"] if timeout is None else timeout
    cut = jobs.cuts[0] if jobs.cuts else t or float(jobs.first.completed.quantiles([1.0])[0])
    tests = {
        "drift": None if t is None else _log_rank(sample, jobs.first, cut),
        "later_attempts": _log_rank(jobs.first, jobs.later, cut),
    }
    predicted, p_value, agrees, verdict = None, None, None, "no-prediction"
    reasons: tuple[Reason, ...] = ()
    if t is not None:
        prediction = predict(sample, min(t, longest), cost=cost, rng=rng)
        if timeout is None:
            low, high = decision["expected_duration_low"], decision["expected_duration_high"]
            if low and high:  # the interval of the decision leaves out the optimism of having chosen the minimum
                E, log_error = float(np.sqrt(low * high)), float(np.log(high / low)) / (2 * Z)
                prediction = prediction._replace(expected_duration=E, log_error=log_error)
        predicted = _estimate(prediction, sample, t, cost, jobs.attempts)
        speed_up["predicted"] = waiting.expected_duration / prediction.expected_duration
        distance = abs(np.log(measured.expected_duration / prediction.expected_duration))
        both = float(np.hypot(error, prediction.log_error))
        p_value = float(2 * ndtr(-distance / both)) if both > 0 else float(distance == 0)
        agrees = p_value >= 0.025  # at most 5 % of unchanged systems are called different (docs/closed-loop.md)
        verdict = "as predicted"
        if not agrees:
            verdict = "worse" if measured.expected_duration > prediction.expected_duration else "better"
            reasons = _reasons(jobs, t, cost, tests)
    verification = Verification(
        timeout=t,
        basis="none" if t is None else decision["basis"] if timeout is None else "given",
        predicted=predicted,
        measured=measured,
        before=Estimate(waiting.expected_duration, *_interval(*waiting[:2]), waiting.submissions),
        speed_up=speed_up,
        agrees=agrees,
        p_value=p_value,
        verdict=verdict,
        sentence="",
        reasons=reasons,
        tests=tests,
        warnings=_warnings(jobs),
    )
    return replace(verification, sentence=_sentence(verification, decision))


# What a sample predicts


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
        resamples = resampled_curves(counts, rng)
        drawn = np.concatenate([curves.E_J_at(np.full(len(curves.F), t), cost) for curves in resamples])
        drawn = drawn[np.isfinite(drawn) & (drawn > 0)]  # a resample may hold zeros of the clock only
        return Prediction(E, float(np.std(np.log(drawn))) if drawn.size else np.inf, 1 / F)
    # the influence of a probe on E_J = (A + c)/F̃ − c, where it failed after x or is still out, and where it completed
    in_vain = (np.append(counts.times, t) - A) / F + (A + cost) / F
    completing = in_vain[:-1] - (A + cost) / F**2
    out = probes.n - (counts.completed + counts.failed).sum()
    variance = counts.completed @ completing**2 + (counts.failed * in_vain[:-1] ** 2).sum() + out * in_vain[-1] ** 2
    return Prediction(E, float(np.sqrt(variance[0])) / probes.n / E, 1 / F)


def _estimate(prediction: Prediction, sample: LatencySample, t: float, cost: float, attempts: int | None) -> Estimate:
    law = Empirical.of(sample)
    undone = (1 - float(law.cdf(t))) ** attempts if attempts else 0.0
    undone = undone if undone >= 1e-9 else 0.0  # less than one job of any run
    quantiles = evaluate_timeout(law, t, cost=cost).quantiles
    return Estimate(
        prediction.expected_duration,
        *_interval(*prediction[:2]),
        submissions=max(1.0, prediction.submissions * (1 - undone)),  # E[min(N, K)] = (1 − (1 − F̃)^K) / F̃
        quantiles={q: within if float(q) <= 1 - undone else None for q, within in quantiles.items()},
        undone=undone,
    )


def _interval(mean: float, log_error: float, z: float = Z) -> tuple[float, float]:
    """The 95 % interval on the log scale."""
    return mean * float(np.exp(-z * log_error)), mean * float(np.exp(z * log_error))


# What the jobs of a log took


@dataclass(frozen=True, eq=False)
class Jobs:
    """The jobs of a log of attempts.

    `durations` are those of the jobs that were done, from the first submission to the completion. `given_up` holds the
    attempts of each job that was not done, `spent` what each job that is not done took so far; `in_flight` counts the
    jobs still under way when the log ended, `tried` the attempts of all jobs. `cuts` are the times at which first,
    second … attempts were cut, () where none was; `pause` is the mean wait between two attempts of a job, `overlap`
    whether attempts of a job overlap.
    """

    durations: Floats
    given_up: Ints
    spent: Floats
    in_flight: int
    tried: int
    cuts: tuple[float, ...]
    pause: float
    overlap: bool
    first: LatencySample
    later: LatencySample

    @property
    def attempts(self) -> int | None:
        return int(self.given_up.max()) if self.given_up.size else None


def read_attempts(path: str | Path, **options: Any) -> ProbeLog:
    """Read a log of attempts: as `read_log`, but an id may come back, as each attempt of a job has the job's."""
    with open_source(path) as source:
        kind = find_format(source, options.get("format"), pattern=options.get("pattern"))
    columns = options.get("columns") or {}
    if "id" in kind.roles and "id" not in columns:
        options["columns"] = {**columns, "id": ""}
    return read_log(path, **options)


def jobs_of(log: ProbeLog, *, job: str | None = None, attempt: str | None = None) -> Jobs:
    """The jobs of a log by its columns `job` and `attempt` (else by submission), or those with usual names."""
    job = _column(log, job, JOB_COLUMNS)
    if job is None:
        raise MissingColumn(
            f"{log.facts.path}: no column says which attempts belong to one job; name it with --job; "
            f"there are: {listed(list(log.table.columns))}"
        )
    order, begins = _in_order(log.table, job, _column(log, attempt, ATTEMPT_COLUMNS))
    probes = log.table.take(order)
    latency, status = np.nan_to_num(probes.latency), probes.status
    sizes = np.diff(np.append(begins, probes.n))
    key = np.repeat(np.arange(begins.size), sizes)
    number = np.arange(probes.n) - begins[key] + 1
    last = begins + sizes - 1
    followed = np.append(key[:-1] == key[1:], False)
    spent, pauses = np.cumsum(latency), np.empty(0)  # without times, attempts follow each other without a pause
    ends = spent - (spent - latency)[begins][key]
    if probes.submitted is not None and not np.isnan(probes.submitted).any():
        ends = probes.submitted - np.minimum.reduceat(probes.submitted, begins)[key] + latency
        pauses = (np.diff(probes.submitted) - latency[:-1])[followed[:-1]]
    cuts = _cuts(latency, number, followed & (status >= CENSORED))
    finished = np.minimum.reduceat(np.where(status == COMPLETED, ends, np.inf), begins)
    done = np.isfinite(finished)
    if done.sum() < 2:
        were_done = f"only {counted(int(done.sum()), 'job', 'was', 'were')} done"
        raise SampleError(f"{log.facts.path}: {were_done}: there is nothing to compare with")
    # a last attempt censored well before the usual cut was in flight when the log ended
    usual = np.asarray(cuts)[np.minimum(sizes, len(cuts)) - 1] if cuts else 0.0
    in_flight = ~done & (status[last] == CENSORED) & (latency[last] < 0.9 * usual)
    return Jobs(
        durations=finished[done],
        given_up=sizes[~done & ~in_flight],
        spent=np.maximum.reduceat(ends, begins)[~done],
        in_flight=int(in_flight.sum()),
        tried=probes.n,
        cuts=cuts,
        pause=float(np.maximum(pauses, 0.0).mean()) if pauses.size else 0.0,
        overlap=bool((pauses < -0.05 * np.median(latency)).mean() > 0.1) if pauses.size else False,
        first=probes.take(number == 1).sample,
        later=probes.take(number > 1).sample,
    )


def _column(log: ProbeLog, name: str | None, usual: tuple[str, ...]) -> str | None:
    columns = list(log.table.columns)
    if name is not None and name not in columns:
        raise MissingColumn(f"{log.facts.path}: there is no column {name!r}; there are: {listed(columns)}")
    plain = {re.sub("[^a-z]", "", column.lower()): column for column in reversed(columns)}
    return name or next((plain[word] for word in usual if word in plain), None)


def _in_order(table: ProbeTable, job: str, attempt: str | None) -> tuple[Ints, Ints]:
    """Rows by job and attempt, and where each job begins; a name that comes back after a completion is a new job."""
    name = table.columns[job].as_text().codes
    submitted = np.full(table.n, np.nan) if table.submitted is None else table.submitted
    if attempt is None:
        order = np.lexsort((submitted, name))
        again = table.status[order][:-1] == COMPLETED
    else:
        numbers = pd.to_numeric(table.columns[attempt].cells(), errors="coerce").fillna(0).to_numpy()
        timed = not np.isnan(submitted).any()
        order = np.lexsort((numbers, submitted, name)) if timed else np.argsort(name, kind="stable")
        again = np.diff(numbers[order]) <= 0
    return order, np.flatnonzero(np.append(True, (np.diff(name[order]) != 0) | again))


def _cuts(latency: Floats, number: Ints, cut: Bools) -> tuple[float, ...]:
    """The median time at which first, second … attempts were cut; the last known where few were."""
    medians: list[float] = []
    for n in range(1, int(number.max()) + 1):
        times = latency[cut & (number == n)]
        if times.size < (5 if medians else 1):
            break
        medians.append(float(np.median(times)))
    return tuple(medians)


def _measured(jobs: Jobs) -> tuple[Measured, float]:
    """All time over the number of jobs done: E_J also where jobs are given up (Wald's identity); its log error."""
    x = np.sort(jobs.durations)
    n, undone = x.size, jobs.given_up.size + jobs.in_flight
    time = np.concatenate([x, jobs.spent])
    mean = float(time.sum() / n)
    error = float(np.sqrt(((time - mean * (np.arange(time.size) < n)) ** 2).sum()) / n / mean) if mean > 0 else 0.0
    every = np.concatenate([x, np.full(undone, np.inf)])  # a job that was not done is later than every time
    intervals = {}
    for q in QUANTILES:
        lower, upper = (_binomial_quantile(0.5 + side * LEVEL / 2, every.size, q) for side in (-1, 1))
        intervals[str(q)] = finite(every[max(0, lower - 1)]), finite(every[min(every.size - 1, upper)])
    measured = Measured(
        mean,
        *_interval(mean, error, float(stdtrit(n - 1, 0.5 + LEVEL / 2))),
        submissions=jobs.tried / every.size,
        quantiles={str(q): finite(every[int(np.ceil(q * every.size)) - 1]) for q in QUANTILES},
        undone=undone / every.size,
        jobs=n,
        given_up=jobs.given_up.size,
        in_flight=jobs.in_flight,
        cuts=jobs.cuts,
        pause=jobs.pause,
        quantile_intervals=intervals,
    )
    return measured, error


def _binomial_quantile(p: float, n: int, q: float) -> int:
    """The smallest k with P(K ≤ k) ≥ p; `scipy.stats` has it too, and takes half a second to import."""
    k = int(np.ceil(bdtrik(p, n, q)))
    return k - 1 if k > 0 and bdtr(k - 1, n, q) >= p else k


# Why they differ, and in words


def _log_rank(first: LatencySample, second: LatencySample, t: float) -> float | None:
    """The log-rank p-value of two samples up to t, failures too; cuts within 5 % of t count as cut at t exactly."""
    from scipy.stats import CensoredData, logrank

    if not first.n or not second.n:
        return None
    cut, p_values = [], []
    for sample in (first, second):
        times = sample.censored.expand()
        at_cut = Tally.of(np.where(times >= 0.95 * t, np.maximum(times, t), times))
        moved = replace(sample, censored=at_cut)
        cut.append(moved if moved.cutoff is not None and moved.cutoff <= t else moved.cut(t))
    for name, other in (("completed", "failed"), ("failed", "completed")):
        if any(getattr(sample, name).total for sample in cut):
            groups = []
            for sample in cut:
                still_out = [getattr(sample, other).expand(), sample.censored.expand(), np.full(sample.lost, t)]
                groups.append(CensoredData(getattr(sample, name).expand(), right=np.concatenate(still_out)))
            with np.errstate(divide="ignore", invalid="ignore"):  # no time at which both are at risk
                p_values.append(float(np.nan_to_num(logrank(groups[0], groups[1]).pvalue, nan=1.0)))
    return min(1.0, len(p_values) * min(p_values)) if p_values else None


def _reasons(jobs: Jobs, timeout: float, cost: float, tests: dict[str, float | None]) -> tuple[Reason, ...]:
    reasons = []
    if any(abs(t / timeout - 1) > SAME_TIME for t in jobs.cuts):
        cuts = ", ".join(dict.fromkeys(seconds(t) for t in jobs.cuts))
        message = f"attempts were cut after {cuts}, not after {seconds(timeout)}: the tool rounds or has a schedule"
        reasons.append(Reason("rounding", message))
    if jobs.pause > cost + SAME_TIME * timeout:
        message = f"{seconds(jobs.pause)} passed between two attempts of a job, which the prediction did not count"
        reasons.append(Reason("waits", message))
    drifted = "first attempts are no longer like the probes of BEFORE{}: the system has drifted"
    sticky = "later attempts are not like first ones{}: a slow job is slow again"
    for (name, p), message in zip(tests.items(), (drifted, sticky), strict=True):
        if p is not None and p < 0.01:
            test = f" (log-rank test, p {'< 0.001' if p < 0.001 else f'= {p:.3f}'})"
            reasons.append(Reason(name.replace("_", "-"), message.format(test), p))
    message = "none of the tested causes (rounding, waits, drift, later attempts) explains it"
    return tuple(reasons) or (Reason("unexplained", message),)


def _warnings(jobs: Jobs) -> tuple[str, ...]:
    warnings = []
    if not jobs.later.n:
        warnings.append("no job of AFTER has a second attempt: nothing can be said of later attempts")
    if jobs.in_flight:
        still_out = f"{counted(jobs.in_flight, 'job', 'was', 'were')} still under way when AFTER ended"
        warnings.append(f"{still_out}: the time so far is counted, and they count as not done")
    if jobs.overlap:
        warnings.append("attempts of a job overlap: they were hedged, and the prediction is for cancelling")
    return tuple(warnings)


def _sentence(result: Verification, decision: dict[str, Any]) -> str:
    def with_interval(estimate: Estimate) -> str:
        return f"{seconds(estimate.expected_duration)} ({seconds(estimate.low)} to {seconds(estimate.high)})"

    took = f"jobs take {with_interval(result.measured)}"
    faster, low, high = (result.speed_up[name] or 0.0 for name in ("measured", "low", "high"))
    gain = f"{faster:.3g} × ({low:.3g} to {high:.3g}) the speed of waiting until the cutoff"
    if result.predicted is None:
        withheld = f"the decision of BEFORE is withheld ({', '.join(decision.get('withheld') or ())})"
        why = withheld if decision.get("verdict") == "withheld" else "BEFORE decides for no timeout"
        return f"No prediction, as {why}: {took}, {gain}."
    expected = f"{with_interval(result.predicted)} were predicted for a timeout of {seconds(result.timeout)}"
    if result.agrees:
        return f"As predicted: {took}, and {expected}; {gain}."
    because = "; ".join(reason.message for reason in result.reasons)
    text = f"{result.verdict.capitalize()} than predicted: {took}, where {expected}; {because}; {gain}."
    slower = " Jobs are slower than by waiting until the cutoff: take the timeout back."
    return text + slower if high < 1 else text
