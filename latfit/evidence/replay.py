"""What the log itself says a timeout would have brought: no formula, no independence.

A job submitted when a probe was, whose probe is not back after T, is resubmitted at T + c and then takes the
latency of the next probe *of its own group* that the log shows submitted at or after that moment; and so on. Until
that probe was submitted the system is taken to be as it found it. Where probes are sparser than their latencies, that
would make a job wait for the next probe: there each attempt takes the next one in order.
Drift, dependence and groups are in it, because they are in the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from latfit._system import in_threads
from latfit.errors import LogError
from latfit.evidence.probes import evenly
from latfit.numbers import Bools, Floats, Ints, finite
from latfit.resample import RESAMPLES, interval, weights
from latfit.restart.result import QUANTILES
from latfit.table import COMPLETED, FAILED, ProbeTable

TOGETHER = 1 << 16  # jobs under timeouts that are followed at once: they stay in the cache
STARTS = 50_000  # jobs that are followed, evenly spread over a longer log
CURVE_STARTS = 10_000  # and of them for each timeout of the curve
TICK = 1e-6  # seconds: submissions less far apart are at the same moment, whatever their last digits
ROUNDS = 200  # probes that a job may take on the way along the curve, where a timeout that needs more is not the best
FAR = 5000  # and under a timeout that is reported: what is given up sooner flatters short timeouts
CURVE = 60  # timeouts tried for the best one
ORDINARY_GAPS = 0.99  # the share of the times between submissions that are no gaps of the log
BLOCKS = 50  # at least as many blocks of consecutive jobs are resampled
FEWEST = 40
MAX_RAN_OFF = 0.05  # a timeout under which more jobs run off the log than by waiting is not compared


@dataclass(frozen=True)
class Figures:
    """What something would have brought on the log: mean duration with its interval, quantiles, submissions.

    The mean is the time that all jobs spent over the number that were done. `low` and `high` are a 95 % interval by a
    block bootstrap of consecutive jobs. `ran_off` is the share of jobs that were not done when the log ended.
    `gain_low` and `gain_high` bound the gain over waiting until the cutoff, as a share of that.
    """

    expected_duration: float
    low: float
    high: float
    quantiles: dict[str, float | None]
    submissions: float
    ran_off: float
    gain_low: float
    gain_high: float


@dataclass(frozen=True)
class Replayed(Figures):
    """What a timeout would have brought on the log."""

    timeout: float

    def to_dict(self) -> dict[str, Any]:
        """The contract's fields."""
        return {"timeout": finite(self.timeout), "expected_duration": finite(self.expected_duration),
                "low": finite(self.low), "high": finite(self.high), "quantiles": self.quantiles,
                "submissions": finite(self.submissions), "ran_off": self.ran_off}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Replay:
    """A log replayed: `waiting` until the cutoff, at some timeouts, and at the best of a curve of them.

    The curve is followed when it is asked for: most decisions need `waiting` and `at` alone.
    """

    waiting: Replayed
    at: tuple[Replayed, ...]
    _search: _Search

    @property
    def curve(self) -> tuple[Replayed, ...]:
        """60 timeouts that follow the latencies of the log; of a long log fewer jobs are followed for them."""
        return self._found[0]

    @property
    def best(self) -> Replayed:
        """The best of the curve, of `at` and of waiting, as all jobs tell."""
        return self._found[1]

    @cached_property
    def _found(self) -> tuple[tuple[Replayed, ...], Replayed]:
        return self._search.curve(self.waiting, self.at)

    def to_dict(self) -> dict[str, Any]:
        """The document of `latfit replay`."""
        return {"waiting": finite(self.waiting.expected_duration), "cutoff": self.waiting.timeout,
                "ran_off": self.waiting.ran_off,
                "at": [one.to_dict() for one in self.at], "best": self.best.to_dict(),
                "curve": [{"timeout": one.timeout, "expected_duration": finite(one.expected_duration)}
                          for one in self.curve]}  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Track:
    """The probes by group and time, one rising key for all groups, and the jobs to follow."""

    key: Floats
    origin: Floats
    ends: Ints
    latency: Floats
    completed: Bools
    failed: Bools
    starts: Ints
    sparse: bool
    tick: float

    def after(self, clock: Floats, last: Ints) -> Ints:
        """The probe that an attempt at `clock` takes: the next one submitted, where probes are sparse after `last`."""
        return np.maximum(np.searchsorted(self.key, clock - self.tick), last + self.sparse)

    def coarse(self) -> _Track:
        """Fewer jobs, evenly spread."""
        return replace(self, starts=self.starts[:: max(1, self.starts.size // CURVE_STARTS)])


@dataclass(frozen=True, eq=False)
class _Search:
    """What is needed to look for the best timeout."""

    seen: ProbeTable
    track: _Track
    cost: float
    seed: int

    def at(
        self, cutoff: float, timeouts: Sequence[float], *, track: _Track | None = None, rounds: int = FAR
    ) -> list[Replayed]:
        """Waiting until the cutoff, and each timeout."""
        jobs = track or self.track
        every, many = np.array([cutoff, *timeouts]), max(1, TOGETHER // jobs.starts.size)
        head, *others = (every[first : first + many] for first in range(0, every.size, many))
        waiting = _followed(jobs, head, self.cost, rounds)
        blocks = _Resampled.of(waiting, self.seed)

        def some(each: Floats) -> list[Replayed]:
            return _summaries(each, _followed(jobs, each, self.cost, rounds), blocks)

        return [*_summaries(head, waiting, blocks), *(one for each in in_threads(some, others) for one in each)]

    def curve(self, waiting: Replayed, at: Sequence[Replayed]) -> tuple[tuple[Replayed, ...], Replayed]:
        """The curve, and the best of it, of `at` and of waiting: compared on the same jobs, then told by all."""
        fewer, cutoff = self.track.coarse(), waiting.timeout
        tried = _curve(self.seen, cutoff).tolist()
        results = {one.timeout: one for one in self.at(cutoff, tried, track=fewer, rounds=ROUNDS)}
        results |= (surely := {one.timeout: one for one in self.at(cutoff, [one.timeout for one in at], track=fewer)})
        while (best := _best(results, cutoff)).timeout not in surely:
            results[best.timeout] = surely[best.timeout] = self.at(cutoff, [best.timeout], track=fewer)[1]
        if fewer.starts.size < self.track.starts.size:
            best = self.at(cutoff, [best.timeout])[1]
        return tuple(results[t] for t in tried), best


def replay(
    seen: ProbeTable,
    cutoff: float,
    *,
    at: Sequence[float] = (),
    cost: float = 0.0,
    groups: Ints | None = None,
    seed: int = 0,
) -> Replay | None:
    """The log replayed at timeouts, and at the best of 60 that follow its latencies.

    Parameters
    ----------
    seen : the probes; without submission times, or with fewer than 40 that have one, there is no replay (None).
    cutoff : waiting means giving up here.
    at : timeouts to replay.
    cost : seconds that each resubmission costs.
    groups : a code for each probe; a job is resubmitted into its own group.

    """
    if seen.submitted is None:
        return None
    known = np.flatnonzero(np.isfinite(seen.submitted))
    if known.size < FEWEST:
        return None
    part = seen if known.size == seen.n else seen.take(known)
    track = _track(part, None if groups is None else groups[known], cutoff)
    search = _Search(part, track, cost, seed)
    waiting, *found = search.at(cutoff, list(map(float, at)))
    return Replay(waiting, tuple(found), search)


def _best(results: dict[float, Replayed], cutoff: float) -> Replayed:
    """The least mean of those under which hardly more jobs run off the log than by waiting."""
    limit = results[cutoff].ran_off + MAX_RAN_OFF
    usable = [one for one in results.values() if one.ran_off <= limit]
    return min(usable, key=lambda one: one.expected_duration, default=results[cutoff])


def require_times(seen: ProbeTable) -> None:
    """Say why a log cannot be replayed."""
    if seen.submitted is None or np.isfinite(seen.submitted).sum() < FEWEST:
        raise LogError(
            f"replay needs the submission times of at least {FEWEST} probes, and the log does not say when they were "
            "submitted: name the column with --column submitted=NAME"
        )


def _track(seen: ProbeTable, groups: Ints | None, cutoff: float) -> _Track:
    assert seen.submitted is not None
    gaps = np.diff(seen.submitted, prepend=seen.submitted[0])
    when = np.cumsum(np.minimum(gaps, np.quantile(gaps, ORDINARY_GAPS)))  # nobody waits through a gap of the log
    n, starts = seen.n, evenly(seen.n, STARTS)
    span, latency, status = float(when.max()) + 1.0, seen.latency, seen.status
    origin, ends = np.broadcast_to(0.0, n), np.broadcast_to(n, n)
    if groups is not None:
        order = np.argsort(groups, kind="stable")  # the probes are in the order of time already
        when, latency, status, group = when[order], latency[order], status[order], groups[order]
        origin, ends = group * (2 * span), np.searchsorted(group, group, side="right")
        starts = np.sort(np.argsort(order, kind="stable")[starts])
    latency = np.where((latency == 0) & (status == FAILED), _step(seen), latency)  # or it would come again for ever
    inside = latency <= cutoff
    done = (status == COMPLETED) & inside
    sparse = bool(np.median(np.diff(seen.submitted)) > np.median(latency[done])) if done.any() else True
    return _Track(origin + when, origin, ends, latency, done, (status == FAILED) & inside, starts, sparse,
                  max(TICK, 8 * float(np.spacing(origin[-1] + span))))  # fmt: skip


def _step(seen: ProbeTable) -> float:
    """What a latency of 0 may have been: a step of the clock, or where it has none the least measured, ≤ 1 s."""
    return seen.resolution or float(np.min(seen.latency[seen.latency > 0], initial=1.0))


class _Followed(NamedTuple):
    """(T, jobs) under each timeout: how long each job takes, whether it ran off the log, its submissions."""

    spent: Floats
    off: Bools
    submitted: Floats


def _followed(track: _Track, timeouts: Floats, cost: float, rounds: int) -> _Followed:
    """Every job under every timeout; what is left of them is worked on together."""
    jobs = track.starts.size
    spent, submitted = np.zeros(timeouts.size * jobs), np.ones(timeouts.size * jobs)
    off = np.zeros(spent.size, dtype=bool)
    alive, at = np.arange(spent.size), np.tile(track.starts, timeouts.size)
    clock, end, timeout = track.key[at], track.ends[at], np.repeat(timeouts, jobs)
    limit = track.origin[at] + 2 * (track.key.max() + 1)
    for _ in range(rounds):
        x = track.latency[at]
        inside = x <= timeout
        done = track.completed[at] & inside
        used = np.where(done, x, np.where(track.failed[at] & inside, x, timeout) + cost)
        spent[alive] += used
        on = ~done
        alive, end, limit, timeout, used = alive[on], end[on], limit[on], timeout[on], used[on]
        if not alive.size:
            break
        at, clock = at[on], clock[on] + used
        if not track.sparse:  # the same probe answers again until its own time has come
            again = np.ceil(np.maximum(track.key[at] - clock - track.tick, 0) / np.maximum(used, track.tick))
            spent[alive] += again * used
            submitted[alive] += again
            clock = clock + again * used
        clock = np.minimum(clock, limit)
        at = track.after(clock, at + ((used == 0) & (not track.sparse)))
        gone = at >= end
        if gone.any():
            off[alive[gone]] = True
            kept = ~gone
            alive, clock, end, limit, timeout = alive[kept], clock[kept], end[kept], limit[kept], timeout[kept]
            at = at[kept]
        submitted[alive] += 1
    off[alive] = True
    shape = (timeouts.size, jobs)
    return _Followed(spent.reshape(shape), off.reshape(shape), submitted.reshape(shape))


@dataclass(frozen=True, eq=False)
class _Resampled:
    """The blocks of consecutive jobs that are resampled, alike for every timeout, and waiting on each resample."""

    edges: Ints
    weights: Floats
    waiting: Floats

    @classmethod
    def of(cls, found: _Followed, seed: int) -> _Resampled:
        """At least 50 blocks; waiting is the first timeout that was followed."""
        jobs = found.spent.shape[1]
        blocks = min(jobs, max(BLOCKS, int(np.sqrt(jobs))))
        edges = np.linspace(0, jobs, blocks + 1).astype(np.intp)[:-1]
        made = cls(edges, weights(np.ones(blocks), RESAMPLES, np.random.default_rng(seed)), np.empty(0))
        return replace(made, waiting=made.means(_Followed(found.spent[:1], found.off[:1], found.submitted[:1]))[0])

    def means(self, found: _Followed) -> Floats:
        """(T, resamples) Σ time spent / jobs done."""
        total, finished = (np.add.reduceat(each.astype(np.float64), self.edges, axis=1)
                           for each in (found.spent, ~found.off))  # fmt: skip
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.array([(self.weights @ a) / (self.weights @ b) for a, b in zip(total, finished, strict=True)])


def _summaries(timeouts: Floats, found: _Followed, blocks: _Resampled) -> list[Replayed]:
    """Means are Σ time spent / jobs done: a job that ran off counts with what it had spent."""
    done = (~found.off).sum(axis=1)
    levels = np.quantile(np.where(found.off, np.inf, found.spent), QUANTILES, method="inverted_cdf", axis=1).T
    means = blocks.means(found)
    with np.errstate(divide="ignore", invalid="ignore"):
        gains, submissions = 1 - means / blocks.waiting, found.submitted.sum(axis=1) / done
        durations = found.spent.sum(axis=1) / done
    limits = np.concatenate([interval(means), interval(gains)]).T
    nothing = Replayed(np.inf, np.inf, np.inf, {}, np.inf, 1.0, -np.inf, -np.inf, 0.0)
    made = []
    for k, t in enumerate(timeouts.tolist()):
        if not done[k]:
            made.append(replace(nothing, timeout=t))
            continue
        low, high, gain_low, gain_high = limits[k].tolist()
        quantiles = dict(zip(map(str, QUANTILES), map(finite, levels[k]), strict=True))
        made.append(Replayed(float(durations[k]), low, high, quantiles, float(submissions[k]),
                             float(found.off[k].mean()), gain_low, gain_high, t))  # fmt: skip
    return made


def _curve(seen: ProbeTable, cutoff: float) -> Floats:
    """Timeouts at the quantiles of what completed, denser towards the longest, up to the cutoff."""
    x = seen.latency[(seen.status == COMPLETED) & (seen.latency > 0) & (seen.latency <= cutoff)]
    if x.size < 5:
        return np.empty(0)
    centre = np.linspace(-3.5, 6.0, CURVE)
    levels = 1 / (1 + np.exp(-centre))
    at = np.quantile(x, levels[levels * x.size >= 5], method="inverted_cdf")
    return np.unique(at[at < cutoff])
