"""Did it work? What one log predicted, compared with what a later one measured.

`verify(before, after)` takes the log that decided and a log of jobs that ran under the decision, one row per attempt.
It says in one sentence whether jobs take as long as predicted, and if not, which of the tested causes apply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri, stdtrit

from latfit.analysis import analyze
from latfit.decision import Recommendation
from latfit.decision.schedule import resampled_figures
from latfit.errors import MissingColumn, SampleError, counted, listed
from latfit.laws import Empirical
from latfit.logs import ProbeLog, read_log
from latfit.logs.formats import find_format
from latfit.logs.source import open_source
from latfit.logs.vocabulary import attempt_column, job_columns
from latfit.numbers import Bools, Floats, Ints, finite, plain_values
from latfit.resample import LEVEL
from latfit.restart import evaluate_policy
from latfit.restart.policies.schedule import SchedulePolicy
from latfit.restart.policies.timeout import Timeout
from latfit.restart.result import QUANTILES
from latfit.restart.retry import Retry, evaluate_retry
from latfit.sample import CENSORED, COMPLETED, LOST, LatencySample
from latfit.table import ProbeTable
from latfit.units import seconds, times_in_words

Z = float(ndtri(0.5 + LEVEL / 2))
SAME_TIME = 0.05  # an attempt that was cut within this share of a limit was cut by that limit


@dataclass(frozen=True)
class Estimate:
    """An expected duration in seconds with its 95 % interval, and the submissions per job.

    `submissions` is the mean over all jobs, `undone` the share of jobs that are never done. A quantile q is the time
    within which the share q of all jobs is done; None if that share is never reached, or if it is unknown.
    """

    expected_duration: float
    low: float
    high: float
    submissions: float
    quantiles: dict[str, float | None] = field(default_factory=dict)
    undone: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return plain_values(self)


@dataclass(frozen=True)
class Measured(Estimate):
    """What the jobs of the later log took.

    `jobs` were done, `given_up` were not, and `in_flight` were still under way when the log ended. Jobs that were not
    done count in `undone` and in the submissions, and as infinitely late in the quantiles.
    """

    jobs: int = 0
    given_up: int = 0
    in_flight: int = 0
    cuts: tuple[float, ...] = ()
    pause: float = 0.0


@dataclass(frozen=True)
class Reason:
    """`not-applied`, `rounding`, `waits`, `drift` or `later-attempts` (with a log-rank p-value), `unexplained`."""

    code: str
    message: str
    p_value: float | None = None


@dataclass(frozen=True)
class Verification:
    """Predicted against measured. `to_dict()` is the JSON.

    `limits` are those of the first, second … attempt, the last one for all that follow. `basis` is their source:
    BEFORE's `schedule`, its `timeout` for unlimited resubmission, the cuts in AFTER (`detected`), or `given`.
    `loss` is the share by which jobs are slower than by waiting: measured with its interval, the `promised` worst case
    of a schedule, and whether the measurement is `within` it; None if nothing was promised.
    """

    timeout: float
    limits: tuple[float, ...]
    basis: str
    predicted: Estimate
    measured: Measured
    before: Estimate
    speed_up: dict[str, float]
    loss: dict[str, float | bool | None]
    agrees: bool
    p_value: float
    verdict: str
    sentence: str
    reasons: tuple[Reason, ...]
    tests: dict[str, float | None]
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        parts = {"predicted": self.predicted, "measured": self.measured, "before": self.before}
        document = vars(self) | {name: part.to_dict() for name, part in parts.items()}
        return document | {"reasons": [vars(reason) for reason in self.reasons]}


def verify(
    before: ProbeLog,
    after: ProbeLog,
    *,
    timeout: float | Sequence[float] | None = None,
    cost: float = 0.0,
    job: str | None = None,
    attempt: str | None = None,
    cutoff: float | None = None,
    failed: str = "retry",
    seed: int = 0,
) -> Verification:
    """Compare what `before` predicts for the limits in `after` with how long the jobs of `after` took.

    Parameters
    ----------
    before : the log that decided, one row per probe.
    after : a log of jobs under that decision, one row per attempt.
    timeout : what was set, in seconds: one for every attempt, or those of the first, second … attempt, the last for all
        that follow. By default the schedule of `before`, or its timeout, unless `after` shows other limits.
    cost : the assumed cost of a restart, in seconds.
    job, attempt : the columns of `after` that name the job and number the attempt (see `jobs_of`).
    cutoff, failed : as in `analyze`, for `before`.
    seed : that of the bootstrap.

    Returns
    -------
    Verification : `agrees` says whether chance explains the difference of the expected durations (at 5 %). If not,
    `reasons` names the causes that were found: attempts cut at other times, waits between attempts, a changed law of
    first attempts, or later attempts that are not like first ones.
    """
    rng = np.random.default_rng(seed)
    decision = analyze(before, laws=(), test=False, cost=cost, cutoff=cutoff, failed=failed).decision
    assert decision.sample is not None
    assert decision.cutoff is not None
    best, sample, longest = decision.timeout, decision.sample, decision.cutoff.cutoff
    jobs = jobs_of(after, job=job, attempt=attempt)
    limits, basis = _limits(jobs, best, longest)
    if timeout is not None:
        limits, basis = (timeout,) if isinstance(timeout, (int, float)) else tuple(timeout), "given"
    waiting, waiting_error = predict(sample, (longest,), cost=cost, rng=rng)
    retry, retry_error = predict(sample, tuple(min(t, longest) for t in limits), cost=cost, rng=rng)
    measured, error = _measured(jobs)
    took, W, centre = measured.expected_duration, waiting.expected_duration, retry.expected_duration
    speed_low, speed_high = _interval(W / took, float(np.hypot(error, waiting_error)))
    loss = {"measured": took / W - 1, "low": 1 / speed_high - 1, "high": 1 / speed_low - 1}
    promised = retry.worst_loss if len(limits) > 1 else None
    within = None if promised is None else loss["low"] <= promised
    cut = jobs.cuts[0] if jobs.cuts else limits[0]
    probes = ProbeTable.of_sample(sample)
    tests = {"drift": _log_rank(probes, jobs.first, cut), "later_attempts": _log_rank(jobs.first, jobs.later, cut)}
    low, high = _interval(centre, retry_error)
    if basis == "timeout" and best and best.intervals:  # corrected for the optimism of having chosen the minimum
        low, high = best.intervals.expected_duration
        centre, retry_error = float(np.sqrt(low * high)), float(np.log(high / low)) / (2 * Z)
    distance, both = abs(np.log(took / centre)), float(np.hypot(error, retry_error))
    p_value = float(2 * ndtr(-distance / both)) if both > 0 else float(distance == 0)
    agrees = p_value >= 0.025  # so that at most 5 % of unchanged systems are called different (docs/closed-loop.md)
    verification = Verification(
        timeout=limits[0],
        limits=limits,
        basis=basis,
        predicted=_predicted(retry, (low, high), sample, limits, cost, int(jobs.given_up.max(initial=0))),
        measured=measured,
        before=Estimate(W, *_interval(W, waiting_error), waiting.submissions),
        speed_up={"predicted": W / centre, "measured": W / took, "low": speed_low, "high": speed_high},
        loss={**loss, "promised": promised, "within": within},
        agrees=agrees,
        p_value=p_value,
        verdict="as predicted" if agrees else "worse" if took > centre else "better",
        sentence="",
        reasons=() if agrees else _reasons(jobs, limits, cost, tests),
        tests=tests,
        warnings=_warnings(jobs, basis, best),
    )
    return replace(verification, sentence=_sentence(verification))


def _limits(jobs: Jobs, decided: Recommendation | None, cutoff: float) -> tuple[tuple[float, ...], str]:
    """The limits of BEFORE's schedule, or of its timeout, unless AFTER shows others; and their source."""
    options: list[tuple[tuple[float, ...], str]] = []
    if decided and decided.retry:
        options.append(((*decided.retry.timeouts, cutoff), "schedule"))
    if decided and decided.timeout:
        options.append(((decided.timeout,), "timeout"))
    if jobs.cuts:
        options += [(jobs.cuts[:1], "detected"), (jobs.cuts, "detected")]
    return next((each for each in options if jobs.ran(each[0])), ((*jobs.cuts, cutoff), "detected"))


# What a sample predicts


def predict(
    sample: LatencySample, limits: tuple[float, ...], *, cost: float = 0.0, rng: np.random.Generator
) -> tuple[Retry, float]:
    """How long jobs take whose first, second … attempts are cut at `limits`, and the standard error of its logarithm.

    The last limit applies to all attempts that follow. If jobs are given up after K attempts with the same limit, the
    expected duration is the time of all jobs over the number of jobs done.
    """
    law = Empirical.of(sample)
    if not float(law.cdf(limits[-1])) > 0:
        raise SampleError(f"no probe completed within {seconds(limits[-1])}: no job would be done with that timeout")
    retry = evaluate_retry(law, limits[:-1], cutoff=limits[-1], cost=cost)
    if not retry.expected_duration > 0:
        raise SampleError("every probe took 0 s by the clock of the log: there is nothing to compare")
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(resampled_figures(sample, limits, rng, cost=cost)[0])
    logs = logs[np.isfinite(logs)]  # a resample may contain only zeros of the clock
    return retry, float(np.std(logs)) if logs.size else np.inf


def _predicted(
    retry: Retry,
    ends: tuple[float, float],
    sample: LatencySample,
    limits: tuple[float, ...],
    cost: float,
    attempts: int,
) -> Estimate:
    """The prediction for jobs that are given up after a number of attempts; 0: they never are."""
    law = Empirical.of(sample)
    missed = 1 - law.cdf(np.array([*limits, *limits[-1:] * (attempts - len(limits))]))[:attempts]
    undone = float(missed.prod()) if attempts else 0.0
    undone = undone if undone >= 1e-9 else 0.0  # less than one job in any run
    policy = Timeout(limits[0]) if len(limits) == 1 else SchedulePolicy(limits)
    quantiles = evaluate_policy(law, policy, cost=cost).quantiles
    return Estimate(
        retry.expected_duration,
        *ends,
        submissions=float(np.append(1.0, missed[:-1].cumprod()).sum()) if undone else retry.submissions,
        quantiles={q: within if float(q) <= 1 - undone else None for q, within in quantiles.items()},
        undone=undone,
    )


def _interval(mean: float, log_error: float, z: float = Z) -> tuple[float, float]:
    """The 95 % interval on the log scale."""
    return mean * float(np.exp(-z * log_error)), mean * float(np.exp(z * log_error))


# What the jobs of a log took


class Jobs:
    """A log of attempts by job: `attempts` is a table in the order of the jobs, numbered, with times and latencies.

    `durations` are those of the jobs that were done, from the first submission to the completion. `given_up` has the
    number of attempts of each abandoned job, `spent` the time so far of each job that is not done; `in_flight` counts
    the jobs still under way when the log ended. `cuts` are the times at which first, second … attempts were cut, () if
    none was, `longest` the longest times that they took; `pause` is the mean wait between two attempts of a job,
    `overlap` whether attempts of a job overlap.
    """

    def __init__(self, attempts: ProbeTable) -> None:
        when, job, number, latency = attempts.submitted, attempts.job, attempts.attempt, attempts.latency
        assert when is not None
        assert job is not None
        assert number is not None
        begins, sizes = np.flatnonzero(number == 1), np.bincount(job)
        followed = np.append(number[1:] > 1, False)
        ends = when - when[begins][job] + latency
        pauses = (np.diff(when) - latency[:-1])[followed[:-1]]
        finished = np.minimum.reduceat(np.where(attempts.status == COMPLETED, ends, np.inf), begins)
        done = np.isfinite(finished)
        self.attempts = attempts
        self.cuts = _cuts(latency, number, followed & (attempts.status >= CENSORED) & (latency > 0))
        # a last attempt censored well before the usual cut was in flight when the log ended
        last, usual = begins + sizes - 1, np.array(self.cuts or [0.0])
        early = latency[last] < 0.9 * usual[np.minimum(sizes, usual.size) - 1]
        in_flight = ~done & (attempts.status[last] == CENSORED) & early
        self.durations, self.spent = finished[done], np.maximum.reduceat(ends, begins)[~done]
        self.given_up, self.in_flight = sizes[~done & ~in_flight], int(in_flight.sum())
        self.longest = tuple(float(latency[number == n].max()) for n in range(1, int(number.max()) + 1))
        self.pause = float(np.maximum(pauses, 0.0).mean()) if pauses.size else 0.0
        self.overlap = bool(pauses.size and (pauses < -0.05 * np.median(latency)).mean() > 0.1)
        self.first, self.later = attempts.take(number == 1), attempts.take(number > 1)

    @property
    def cuts_in_words(self) -> str:
        return ", ".join(dict.fromkeys(map(seconds, self.cuts)))

    def ran(self, limits: tuple[float, ...]) -> bool:
        """Whether attempts were cut at these limits, if any were, and otherwise took no longer."""
        n, known = len(self.longest), len(self.cuts)
        share = np.append(self.cuts, self.longest[known:]) / np.array([*limits, *limits[-1:] * n][:n])
        return bool((share <= 1 + SAME_TIME).all() and (share[:known] >= 1 - SAME_TIME).all())


def read_attempts(path: str | Path, **options: Any) -> ProbeLog:
    """Read a log of attempts: as `read_log`, but ids may repeat, since every attempt has the id of its job."""
    with open_source(path) as source:
        kind = find_format(source, options.get("format"), pattern=options.get("pattern"))
    columns = options.get("columns") or {}
    if "id" in kind.roles and "id" not in columns:
        options["columns"] = {**columns, "id": ""}
    return read_log(path, **options)


def jobs_of(log: ProbeLog, *, job: str | None = None, attempt: str | None = None) -> Jobs:
    """The jobs of a log by the columns `job` and `attempt`, or by those with usual names, else by submission."""
    columns = list(log.table.columns)
    names = [job] if job else job_columns(columns)
    absent = [f"there is no column {name!r}" for name in (job, attempt) if name and name not in columns]
    absent += [] if names else ["no column says which attempts belong to one job; name it with --job"]
    if absent:
        raise MissingColumn(f"{log.facts.path}: {absent[0]}; there are: {listed(columns)}")
    codes = [log.table.columns[name].as_text().codes for name in names]
    # the first column in which a value recurs
    name = next((each for each in codes if np.unique(each).size < each.size), codes[0])
    jobs = Jobs(_numbered(log.table, name, attempt or attempt_column(columns)))
    if jobs.durations.size < 2:
        were_done = f"only {counted(jobs.durations.size, 'job', 'was', 'were')} done"
        raise SampleError(f"{log.facts.path}: {were_done}: there is nothing to compare with")
    return jobs


def _numbered(table: ProbeTable, name: Ints, attempt: str | None) -> ProbeTable:
    """Attempts in the order of their jobs; a name that recurs after a completion, or with a lower number, is a new job.

    Without times, attempts follow each other as logged, without a pause.
    """
    timed = table.submitted is not None and not np.isnan(table.submitted).any()
    when = np.asarray(table.submitted if timed else np.arange(table.n))
    numbers = np.zeros(table.n)
    if attempt is not None:
        numbers = pd.to_numeric(table.columns[attempt].cells(), errors="coerce").fillna(0).to_numpy()
    order = np.lexsort((numbers, when, name))
    table, when = table.take(order), when[order]
    again = table.status[:-1] == COMPLETED if attempt is None else np.diff(numbers[order]) <= 0
    begins = np.append(True, (np.diff(name[order]) != 0) | again)
    latency = table.latency
    if timed:  # an attempt without a latency was cut when the next one was submitted
        next_one = np.where(np.append(begins[1:], True), np.nan, np.append(when[1:], np.nan))
        latency = np.where(np.isnan(latency), next_one - when, latency)
    latency, job = np.nan_to_num(latency), np.cumsum(begins) - 1
    number = np.arange(table.n) - np.flatnonzero(begins)[job] + 1
    when = when if timed else np.cumsum(latency) - latency
    return replace(table, latency=latency, submitted=when, job=job, attempt=number)


def _cuts(latency: Floats, number: Ints, cut: Bools) -> tuple[float, ...]:
    """The median time at which first, second … attempts were cut, as long as at least five of them were."""
    medians: list[float] = []
    for n in range(1, int(number.max()) + 1):
        times = latency[cut & (number == n)]
        if times.size < (5 if medians else 1):
            break
        medians.append(float(np.median(times)))
    return tuple(medians)


def _measured(jobs: Jobs) -> tuple[Measured, float]:
    """All time over the number of jobs done: E_J even if jobs are given up (Wald's identity); and its log error."""
    x = np.sort(jobs.durations)
    n, undone = x.size, jobs.given_up.size + jobs.in_flight
    time = np.concatenate([x, jobs.spent])
    mean = float(time.sum() / n)
    error = float(np.sqrt(((time - mean * (np.arange(time.size) < n)) ** 2).sum()) / n / mean) if mean > 0 else 0.0
    every = np.concatenate([x, np.full(undone, np.inf)])  # jobs that are not done are infinitely late
    measured = Measured(
        mean,
        *_interval(mean, error, float(stdtrit(n - 1, 0.5 + LEVEL / 2))),
        submissions=jobs.attempts.n / every.size,
        quantiles={str(q): finite(every[int(np.ceil(q * every.size)) - 1]) for q in QUANTILES},
        undone=undone / every.size,
        jobs=n,
        given_up=jobs.given_up.size,
        in_flight=jobs.in_flight,
        cuts=jobs.cuts,
        pause=jobs.pause,
    )
    return measured, error


# Why they differ, and in words


def _log_rank(first: ProbeTable, second: ProbeTable, t: float) -> float | None:
    """The log-rank p-value of two tables up to t; failures count as given up, cuts within 5 % of t as cuts at t."""
    from scipy.stats import CensoredData, logrank

    if not first.n or not second.n:
        return None
    groups = []
    for table in (first, second):
        out = (table.status != COMPLETED) | (table.latency > t)
        at_end = out & ((table.status == LOST) | (table.latency >= (1 - SAME_TIME) * t))
        groups.append(CensoredData.right_censored(np.where(at_end, t, table.latency), out))
    with np.errstate(divide="ignore", invalid="ignore"):  # there may be no time at which both are at risk
        return float(np.nan_to_num(logrank(groups[0], groups[1]).pvalue, nan=1.0))


def _reasons(jobs: Jobs, limits: tuple[float, ...], cost: float, tests: dict[str, float | None]) -> tuple[Reason, ...]:
    reasons = []
    if not jobs.cuts:
        reasons.append(Reason("not-applied", "no attempt of AFTER was cancelled, so nothing was resubmitted"))
    elif not jobs.ran(limits):
        message = f"attempts were cut after {jobs.cuts_in_words}, not as set: the tool rounds or has a schedule"
        reasons.append(Reason("rounding", message))
    if jobs.pause > cost + 0.02 * limits[0]:
        message = f"{seconds(jobs.pause)} passed between two attempts of a job, which the prediction does not include"
        reasons.append(Reason("waits", message))
    differ = {
        "drift": "first attempts are no longer like the probes of BEFORE{}: the system has drifted",
        "later_attempts": "later attempts are not like first ones{}: a slow job is slow again",
    }
    for name, p in tests.items():
        if p is not None and p < 0.01:
            test = f" (log-rank test, p {'< 0.001' if p < 0.001 else f'= {p:.3f}'})"
            reasons.append(Reason(name.replace("_", "-"), differ[name].format(test), p))
    none_found = "none of the tested causes (rounding, waits, drift, later attempts) explains it"
    return tuple(reasons) or (Reason("unexplained", none_found),)


def _warnings(jobs: Jobs, basis: str, decided: Recommendation | None) -> tuple[str, ...]:
    warnings = []
    if basis == "detected" and jobs.cuts:
        retry = decided and decided.retry
        advice = f"resubmit after {times_in_words(retry.timeouts)}, then wait" if retry else "wait"
        warnings.append(f"attempts of AFTER were cut after {jobs.cuts_in_words}; BEFORE's advice is to {advice}")
    if not jobs.later.n:
        warnings.append("no job of AFTER has a second attempt: nothing is known about later attempts")
    if jobs.in_flight:
        still_out = f"{counted(jobs.in_flight, 'job', 'was', 'were')} still under way when AFTER ended"
        warnings.append(f"{still_out}: their time so far is included, and they count as not done")
    if jobs.overlap:
        warnings.append("attempts of a job overlap: they were hedged, but the prediction assumes cancelling")
    return tuple(warnings)


def _sentence(result: Verification) -> str:
    took, predicted = (
        f"{seconds(each.expected_duration)} ({seconds(each.low)} to {seconds(each.high)})"
        for each in (result.measured, result.predicted)
    )
    policy = f"a timeout of {seconds(result.timeout)}"
    if len(result.limits) > 1:
        policy = f"resubmitting after {times_in_words(result.limits[:-1])}, then waiting"
    faster, low, high = (result.speed_up[name] for name in ("measured", "low", "high"))
    gain = f"{faster:.3g} × ({low:.3g} to {high:.3g}) the speed of waiting until the cutoff"
    if result.agrees:
        text = f"As predicted: jobs take {took}, and {predicted} were predicted for {policy}; {gain}."
    else:
        because = "; ".join(reason.message for reason in result.reasons)
        text = f"{result.verdict.capitalize()} than predicted: jobs take {took}, where {predicted} were predicted for "
        text += f"{policy}; {because}; {gain}."
    if high >= 1 or any(reason.code == "not-applied" for reason in result.reasons):
        return text
    loss = {name: f"{100 * share:.3g}" for name, share in result.loss.items() if share is not None}
    slower = (
        f"Jobs are {loss['measured']} % ({loss['low']} to {loss['high']} %) slower than by waiting until the cutoff"
    )
    if "promised" in loss:
        return f"{text} {slower}; the promised maximum is {loss['promised']} %: wait instead."
    return f"{text} {slower}: take the timeout back."
