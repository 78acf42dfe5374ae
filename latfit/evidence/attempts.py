"""Is a second attempt of the same job a new draw? What jobs with several attempts, or paired probes, say of it.

The formula takes the attempts of a job as independent and alike. A log of single probes cannot show whether they are:
where the same request goes to the same sick server again, single probes look perfect, and resubmitting is a loss.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from latfit.errors import SampleError
from latfit.evidence.log_rank import log_rank
from latfit.laws.empirical import Empirical
from latfit.numbers import Bools, Floats, Ints
from latfit.restart.times import still_out

if TYPE_CHECKING:
    import pandas as pd

    from latfit.logs import ProbeLog

COMPLETED, FAILED = "completed", "failed"
FEWEST = 10  # later attempts, and completions of first ones, before anything is said
TIMES = 64  # at which the best timeout is looked for
LEVEL = 0.05
SURE = 0.975  # the share of resamples in which cancelling takes longer than waiting, to call it harmful
RESAMPLES = 199
SURELY = 0.01  # the level at which two attempts of a job alone are taken to tell that jobs differ


@dataclass(frozen=True)
class LaterAttempts:
    """Later attempts of jobs whose first one was slow, against first attempts.

    `p_value` is that of the log-rank test that both have the same law, `ratio` the rate at which later attempts
    complete over that of first ones (observed over expected completions), below 1 if they are slower. `timeout` is the
    optimum if attempts were independent and `predicted` its E_J; `expected_duration` is E_J there with the law that
    later attempts have, with its interval. `horizon` is the largest time that both laws are known for; `waiting` is the
    expected duration when first and later attempts are awaited as long as any such attempt of the log was, ∞ if no
    later one ever completed. `if_jobs_differ` is E_J if some jobs are slow again and again, ∞ if they would hardly end,
    and `chance_of_loss` the share of resamples in which it is, or waiting takes less than that. `best_timeout` is the
    best one under the two laws, None if waiting is. `gain_left` is the share of the predicted gain, waiting −
    predicted, that is left at most; negative for a loss.
    """

    jobs: int
    first: int
    later: int
    p_value: float
    ratio: float
    horizon: float
    timeout: float
    predicted: float
    expected_duration: float
    low: float
    high: float
    waiting: float
    if_jobs_differ: float
    chance_of_loss: float
    best_timeout: float | None
    best_expected_duration: float
    gain_left: float | None

    @property
    def same(self) -> bool:
        """Whether nothing speaks against later attempts being new draws."""
        return self.p_value >= LEVEL or self.ratio >= 1

    @property
    def harmful(self) -> bool:
        """Whether cancelling at the optimum of the formula takes longer than waiting, beyond chance."""
        return not self.same and self.chance_of_loss >= SURE

    def to_dict(self) -> dict[str, Any]:
        """Plain values; infinite where jobs would never end."""
        return {**asdict(self), "same": self.same, "harmful": self.harmful}


def later_attempts(
    log: ProbeLog, *, timeout: float | None = None, cost: float = 0.0, seed: int = 0, brief: bool = False
) -> LaterAttempts | None:
    """What a log with columns `job` and `attempt` says of later attempts, None if it has none or too few.

    The first attempts have the law F₁ (Kaplan–Meier); F₂ is that of the later attempts of the jobs whose first one had
    not completed by t. With a timeout t and a cost c of a restart, and failures ending an attempt,

        E_J(t) = ∫₀ᵗ S₁ + (1 − F₁(t)) (c + E₂(t)),  E₂(t) = (∫₀ᵗ S₂ + c (1 − F₂(t))) / F₂(t),

    which is the formula of Glatard et al. (2006, eq. 6) where F₁ = F₂. It is a lower bound where jobs differ: those
    that were slow twice are slower still. `if_jobs_differ` takes the chance θ of a job's attempt not to complete by t
    as Beta(a, b) with E[θ] = 1 − F₁(t) and E[θ²]/E[θ] = 1 − F₂(t), so that a/(b − 1) attempts fail on average (the
    beta-geometric law: Weinberg and Gladen 1986). Where hardly any job had a third attempt, and second ones complete
    less often beyond doubt, two such figures are also those of jobs some of which never complete by t, whatever is
    tried: `if_jobs_differ` is ∞ then. The laws are compared by the log-rank test (Mantel 1966); the
    interval is a bootstrap over jobs.

    Parameters
    ----------
    log : ProbeLog
        With `job` and `attempt`: paired probes, or jobs that were resubmitted.
    timeout : float
        Evaluate this one instead of the optimum under independence.
    cost : float
        Of a restart, in seconds.
    seed : int
        Of the bootstrap.
    brief : bool
        Leave the bootstrap out where the test finds no difference: the interval is NaN then.

    Returns
    -------
    LaterAttempts or None

    Examples
    --------
    >>> import latfit
    >>> later_attempts(latfit.example_log()) is None  # it has no jobs with several attempts
    True

    """
    if not {"job", "attempt"} <= set(log.frame.columns):
        return None
    table = _Attempts.of(log.frame)
    later = table.number > 1
    if later.sum() < FEWEST or (table.completed & ~later).sum() < FEWEST:
        return None
    horizon = float(min(table.latency[later].max(), table.latency[~later].max()))
    if (table.latency[table.completed & ~later] <= horizon).sum() < FEWEST:  # later ones were not awaited long enough
        return None
    first = _law(table.take(~later), horizon)
    enough = first.jumps[first.n_completed_at_or_below(first.jumps) >= min(5, FEWEST)]
    alone = _durations(first, first, enough, cost)
    t = float(enough[alone.argmin()]) if timeout is None else min(timeout, horizon)
    shown = np.unique(np.quantile(enough, np.linspace(0, 1, TIMES), method="inverted_cdf"))
    times = np.unique([*shown[shown < horizon], t, horizon])
    both = np.array([_duration(table, at, horizon, cost) for at in times])
    taken, waiting, least = float(both[times == t][0]), _awaited(table, cost), int(both.argmin())
    p_value, ratio = log_rank(table.latency, table.completed, later), _rate(table, later) / _rate(table, ~later)
    stuck = p_value < SURELY and int((table.number > 2).sum()) < FEWEST
    differing = _duration(table, t, horizon, cost, differ=True, stuck=stuck)
    predicted = float(_durations(first, first, np.array([t]), cost)[0])
    low, high, loss = np.nan, np.nan, 0.0
    if not brief or (p_value < LEVEL and ratio < 1):
        low, high, loss = _interval(table, t, horizon, cost, np.random.default_rng(seed), stuck=stuck)
        low, high = min(low, taken), max(high, taken)
    return LaterAttempts(
        jobs=int(np.unique(table.job).size),
        first=int((~later).sum()),
        later=int(later.sum()),
        p_value=p_value,
        ratio=ratio,
        horizon=horizon,
        timeout=t,
        predicted=predicted,
        expected_duration=taken,
        low=low,
        high=high,
        waiting=waiting,
        if_jobs_differ=differing,
        chance_of_loss=loss,
        best_timeout=None if times[least] == horizon or both[least] >= waiting else float(times[least]),
        best_expected_duration=min(float(both[least]), waiting),
        gain_left=(waiting - taken) / (waiting - predicted) if np.inf > waiting > predicted else None,
    )


@dataclass(frozen=True)
class _Attempts:
    """The attempts of a log, one entry each."""

    job: Ints
    number: Ints
    latency: Floats
    completed: Bools
    failed: Bools

    @classmethod
    def of(cls, frame: pd.DataFrame) -> _Attempts:
        """From the canonical table; lost ones count as out for ever, which is as long as the longest."""
        latency = frame["latency"].to_numpy(dtype=np.float64)
        longest = float(np.nanmax(latency)) if np.isfinite(latency).any() else 0.0
        status = frame["status"].astype(str).to_numpy()
        return cls(
            job=frame["job"].astype("category").cat.codes.to_numpy().astype(np.int64),
            number=frame["attempt"].to_numpy(dtype=np.int64),
            latency=np.where(np.isfinite(latency) & (status != "lost"), latency, longest),
            completed=status == COMPLETED,
            failed=status == FAILED,
        )

    def take(self, rows: Ints | Bools) -> _Attempts:
        """Some of the attempts."""
        return _Attempts(self.job[rows], self.number[rows], self.latency[rows], self.completed[rows], self.failed[rows])


def _law(part: _Attempts, horizon: float) -> Empirical:
    """The law of some attempts, cut at the horizon."""
    from latfit.sample import LatencySample, Tally

    x, out = part.latency, ~(part.completed | part.failed)
    tallies = (Tally.of(x[part.completed]), Tally.of(x[part.failed]), Tally.of(x[out]))
    return Empirical.of(LatencySample(*tallies).cut(horizon))


def _after(table: _Attempts, t: float) -> _Attempts:
    """The later attempts of the jobs whose first one had not completed by t, or of the slowest ten where fewer are."""
    first = table.number == 1
    done = np.full(int(table.job.max()) + 1, np.inf)  # when the first attempt of each job completed
    done[table.job[first & table.completed]] = table.latency[first & table.completed]
    later = np.flatnonzero(~first)
    slowness = done[table.job[later]]
    limit = min(t, float(np.partition(slowness, -FEWEST)[-FEWEST])) if later.size > FEWEST else -np.inf
    return table.take(later[(slowness > limit) | (slowness == np.inf)])


def _duration(
    table: _Attempts, t: float, horizon: float, cost: float, *, differ: bool = False, stuck: bool = False
) -> float:
    """E_J(t) with the law of later attempts that follows a first one cut at t; ∞ where none of them completes by t.

    With `differ`, by the beta-geometric law where later attempts complete less often than first ones; ∞ if jobs may be
    `stuck`.
    """
    first = _law(table.take(table.number == 1), horizon)
    if first.cdf(t) >= 1 - 1e-12:
        return float(_out(first, np.array([t]))[0])
    try:
        later = _law(_after(table, t), horizon)
    except SampleError:  # none completed
        return np.inf
    taken = float(_durations(first, later, np.array([t]), cost)[0])
    p_1, p_2 = 1 - float(first.cdf(t)), 1 - float(later.cdf(t))
    if not differ or p_2 <= p_1:
        return taken
    if stuck:
        return np.inf
    a_b = (1 - p_2) / (p_2 - p_1)
    a, b = p_1 * a_b, (1 - p_1) * a_b
    if b <= 1:
        return np.inf
    done = float(first.partial_moment(1, t))
    lost = (float(_out(first, np.array([t]))[0]) - done) / p_1 + cost  # what an attempt that does not complete takes
    return max(taken, done / (1 - p_1) + a / (b - 1) * lost)


def _awaited(table: _Attempts, cost: float) -> float:
    """E_J when attempts are awaited as long as any first, or any later one was; ∞ where no later one ever completed."""
    later = table.number > 1
    law = _law(table.take(~later), longest := float(table.latency[~later].max()))
    done, spent = float(law.cdf(longest)), float(_out(law, np.array([longest]))[0])
    if done >= 1 - 1e-12:
        return spent
    try:
        after = _law(_after(table, longest), limit := float(table.latency[later].max()))
    except SampleError:  # none completed
        return np.inf
    return spent + (1 - done) * (cost + float(_durations(after, after, np.array([limit]), cost)[0]))


def _durations(first: Empirical, later: Empirical, times: Floats, cost: float) -> Floats:
    """E_J(t) = ∫₀ᵗ S₁ + (1 − F₁(t)) (c + E₂(t)); ∞ where later attempts never complete by t."""
    F_1, F_2 = first.cdf(times), later.cdf(times)
    with np.errstate(divide="ignore", invalid="ignore"):
        E_2 = np.where(F_2 > 0, (_out(later, times) + cost * (1 - F_2)) / F_2, np.inf)
        rest = np.where(F_1 < 1 - 1e-12, (1 - F_1) * (cost + E_2), 0.0)
    return _out(first, times) + rest


def _out(law: Empirical, times: Floats) -> Floats:
    """∫₀ᵗ S: how long an attempt is on its way, on average; M̃₁ of what ended plus t S(t)."""
    return law.partial_moment(1, times) + law.failed_moment(1, times) + times * still_out(law, times)


def _interval(
    table: _Attempts, t: float, horizon: float, cost: float, rng: np.random.Generator, *, stuck: bool
) -> tuple[float, float, float]:
    """95 % of the E_J(t) of resampled jobs, ∞ where no later attempt completes; and how often it is a loss.

    It is one where waiting takes less, or jobs would hardly end. Resamples that hold too little to tell are none.
    """
    order = np.argsort(table.job, kind="stable")
    n = int(table.job.max()) + 1
    starts = np.searchsorted(table.job[order], np.arange(n + 1))
    lengths = np.diff(starts)
    found, lost = np.full(RESAMPLES, np.inf), np.zeros(RESAMPLES, dtype=bool)
    for k in range(RESAMPLES):
        jobs = rng.integers(0, n, n)
        begins = np.cumsum(lengths[jobs]) - lengths[jobs]
        rows = order[np.repeat(starts[jobs] - begins, lengths[jobs]) + np.arange(lengths[jobs].sum())]
        drawn = replace(table.take(rows), job=np.repeat(np.arange(n), lengths[jobs]))
        if (drawn.number > 1).any() and (drawn.completed & (drawn.number == 1)).any():
            found[k] = _duration(drawn, t, horizon, cost)
            worst = _duration(drawn, t, horizon, cost, differ=True, stuck=stuck)
            lost[k] = worst == np.inf or worst > _awaited(drawn, cost)
    low, high = np.quantile(found, [0.025, 0.975], method="inverted_cdf")
    return float(low), float(high), float(lost.mean())


def _rate(table: _Attempts, group: Bools) -> float:
    """Observed over expected completions of some attempts, if all attempts had one law; there are some of either."""
    times, deaths = np.unique(table.latency[table.completed], return_counts=True)
    own, all_of_them = (np.sort(x).searchsorted(times) for x in (table.latency[group], table.latency))
    at_risk = (group.sum() - own) / (group.size - all_of_them)  # the share of those still out just before each time
    return float((table.completed & group).sum() / max(float((deaths * at_risk).sum()), 1e-12))
