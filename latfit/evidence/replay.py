"""What the log itself says a timeout or a policy would have brought: no formula, no independence.

A job submitted when a probe was, whose probe is not back after T, is resubmitted at T + c and then takes the
latency of the next probe *of its own group* that the log shows submitted at or after that moment; and so on. Until
that probe was submitted the system is taken to be as it found it. Where probes are sparser than their latencies, that
would make a job wait for the next probe: there each attempt takes the next one in order. A copy beside another takes a
probe that no other copy of the job has which is still out. A job that needs a probe after the last one has run off the
log. Drift, dependence and groups are in it, because they are in the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from latfit.errors import LogError
from latfit.evidence.probes import MIN_PROBES_TO_DESCRIBE, evenly
from latfit.numbers import Bools, Floats, Ints, finite
from latfit.resample import RESAMPLES, interval, weights
from latfit.restart.evaluate import follow
from latfit.restart.policies import Policy
from latfit.restart.policies.timeout import Timeout
from latfit.restart.result import QUANTILES
from latfit.table import COMPLETED, FAILED, ProbeTable

MAX_JOBS = 50_000  # that are followed, evenly spread over a longer log
MAX_JOBS_ON_CURVE = 2_000  # enough to find the timeouts that are worth following all jobs
MAX_ATTEMPTS = 5000  # of a job: what is given up sooner flatters short timeouts
MAX_ATTEMPTS_ON_CURVE = 200  # where a timeout that needs more is not the best
SAME_MOMENT = 1e-6  # seconds: submissions less far apart are at the same moment, whatever their last digits


@dataclass(frozen=True, eq=False)
class Replayed:
    """What a timeout (∞: a policy) would have brought on the log: mean duration with its interval, quantiles, load.

    The arrays have the time that each job `spent`, its number `submitted`, whether it ran `off` the log and how long it
    took, ∞ if not done. The mean is the time that all jobs spent over the number that were done. `low` and `high` are
    a 95 % interval by a block bootstrap of consecutive jobs, `gain_low` and `gain_high` that of the gain over `against`
    as a share. `undone` is the share of jobs that a policy left undone: a finite schedule gives up, and the time until
    then counts in the mean; without cancelling all copies may be lost, and the mean is infinite.
    """

    timeout: float
    policy: Policy
    spent: Floats
    submitted: Floats
    off: Bools
    durations: Floats
    seed: int
    against: Replayed | None

    @cached_property
    def expected_duration(self) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(self.spent.sum() / (~self.off).sum())

    @property
    def submissions(self) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(self.submitted.sum() / (~self.off).sum())

    @property
    def ran_off(self) -> float:
        """The share of jobs that were not done when the log ended."""
        return float(self.off.mean())

    @property
    def undone(self) -> float:
        return float((np.isinf(self.durations) & ~self.off).mean())

    @property
    def quantiles(self) -> dict[str, float | None]:
        levels = np.quantile(self.durations, QUANTILES, method="inverted_cdf")
        return dict(zip(map(str, QUANTILES), map(finite, levels.tolist()), strict=True))

    @cached_property
    def _means(self) -> Floats:
        """The mean durations of resampled blocks of consecutive jobs."""
        jobs = self.spent.size
        blocks = min(jobs, max(50, int(np.sqrt(jobs))))
        edges = np.linspace(0, jobs, blocks + 1).astype(np.intp)[:-1]
        drawn = _block_weights(blocks, self.seed)
        with np.errstate(divide="ignore", invalid="ignore"):
            return (np.add.reduceat(self.spent, edges) @ drawn) / (np.add.reduceat((~self.off) * 1.0, edges) @ drawn)

    @cached_property
    def _limits(self) -> tuple[float, float, float, float]:
        if not np.isfinite(self.expected_duration):
            return np.inf, np.inf, -np.inf, -np.inf
        with np.errstate(divide="ignore", invalid="ignore"):
            gains = 1 - self._means / (self if self.against is None else self.against)._means
        (low, high), (gain_low, gain_high) = interval(self._means).tolist(), interval(gains).tolist()
        return low, high, gain_low, gain_high

    @property
    def low(self) -> float:
        return self._limits[0]

    @property
    def high(self) -> float:
        return self._limits[1]

    @property
    def gain_low(self) -> float:
        return self._limits[2]

    @property
    def gain_high(self) -> float:
        return self._limits[3]

    def to_dict(self) -> dict[str, Any]:
        names = ["expected_duration", "low", "high", "submissions", "ran_off"]
        alone = np.isfinite(self.timeout)
        names += ["timeout"] if alone else ["gain_low", "gain_high", "undone"]
        document: dict[str, Any] = {name: finite(getattr(self, name)) for name in names}
        return document | {"quantiles": self.quantiles} | ({} if alone else {"policy": self.policy.spec()})


@lru_cache(maxsize=8)
def _block_weights(blocks: int, seed: int) -> Floats:
    return weights(np.ones(blocks), RESAMPLES, np.random.default_rng(seed)).T


@dataclass(frozen=True, eq=False)
class _Track:
    """The probes by group and time, from `begin` to `end` those of the same group, and the jobs to follow."""

    when: Floats
    begin: Ints
    end: Ints
    latency: Floats
    completed: Bools
    failed: Bools
    sparse: Bools
    tick: Floats
    starts: Ints
    cost: float
    seed: int

    @classmethod
    def of(cls, probes: ProbeTable, groups: Ints | None, cutoff: float, cost: float, seed: int) -> _Track:
        assert probes.submitted is not None
        gaps = np.diff(probes.submitted, prepend=probes.submitted[0])
        when = np.cumsum(np.minimum(gaps, np.quantile(gaps, 0.99)))  # nobody waits through a gap of the log
        n, latency, status = probes.n, probes.latency, probes.status
        starts, begin, end = evenly(n, MAX_JOBS), np.broadcast_to(0, n), np.broadcast_to(n, n)
        tick = max(SAME_MOMENT, 8 * float(np.spacing(when[-1] + 1.0)))
        if groups is not None:
            order = np.argsort(groups, kind="stable")  # the probes are in the order of time already
            when, latency, status, group = when[order], latency[order], status[order], groups[order]
            begin, end = (np.searchsorted(group, group, side=side) for side in ("left", "right"))
            starts = np.sort(np.argsort(order, kind="stable")[starts])
        # a failure at once would come again for ever: it took a step of the clock, or the least that was measured
        step = probes.resolution or float(np.min(latency[latency > 0], initial=1.0))
        latency = np.where((latency == 0) & (status == FAILED), step, latency)
        done, failed = ((status == code) & (latency <= cutoff) for code in (COMPLETED, FAILED))
        sparse = bool(np.median(gaps[1:]) > np.median(latency[done])) if done.any() else True
        alike = np.broadcast_to(sparse, n), np.broadcast_to(tick, n)
        return cls(when, begin, end, latency, done, failed, *alike, starts, cost, seed)

    @classmethod
    def stack(cls, tracks: Sequence[_Track]) -> _Track:
        """The tracks of several logs one after the other; no job leaves its own."""
        if len(tracks) == 1:
            return tracks[0]
        first = np.cumsum([0, *(track.when.size for track in tracks[:-1])])
        parts: dict[str, Any] = {}
        for name in ("when", "latency", "completed", "failed", "sparse", "tick"):
            parts[name] = np.concatenate([getattr(track, name) for track in tracks])
        for name in ("begin", "end", "starts"):
            shifted = [getattr(track, name) + start for track, start in zip(tracks, first, strict=True)]
            parts[name] = np.concatenate(shifted)
        return replace(tracks[0], **parts)

    def after(self, clock: Floats, last: Ints, of: Ints) -> Ints:
        """The probe that an attempt at `clock` takes: the next one of the group, where they are sparse after `last`."""
        low, high, wanted = self.begin[of], self.end[of], clock - self.tick[of]
        if self.end[0] == self.when.size:  # one group, one log
            low = high = np.searchsorted(self.when, wanted)
        while (within := low < high).any():
            middle = (low + high) // 2
            below = within & (self.when[np.minimum(middle, self.when.size - 1)] < wanted)
            low, high = np.where(below, middle + 1, low), np.where(within & ~below, middle, high)
        return np.maximum(low, last + self.sparse[of])

    def run(
        self, starts: Ints, timeout: Floats, rounds: int, *, by_probe: bool = False
    ) -> tuple[Floats, Floats, Bools]:
        """What each job spent that begins with a probe, its submissions, and whether it ran off.

        The timeouts are those of the jobs, or of the probes (`by_probe`), as they were set when a probe was submitted.
        """
        spent, submitted, off = np.zeros(starts.size), np.ones(starts.size), np.zeros(starts.size, dtype=bool)
        at, alive, clock = starts.copy(), np.arange(starts.size), self.when[starts]
        for _ in range(rounds):
            here = at[alive]
            x, t = self.latency[here], timeout[here if by_probe else alive]
            inside = x <= t
            done = self.completed[here] & inside
            used = np.where(done, x, np.where(self.failed[here] & inside, x, t) + self.cost)
            spent[alive] += used
            alive, here, used = alive[~done], here[~done], used[~done]
            if not alive.size:
                break
            now, sparse, tick = clock[alive] + used, self.sparse[here], self.tick[here]
            # where probes are dense, the same one answers again until its own time has come
            again = np.ceil(np.maximum(self.when[here] - now - tick, 0) / np.maximum(used, tick)) * ~sparse
            spent[alive] += again * used
            submitted[alive] += again
            clock[alive] = now = now + again * used
            at[alive] = self.after(now, here + ((used == 0) & ~sparse), here)
            gone = at[alive] >= self.end[here]
            off[alive[gone]] = True
            alive = alive[~gone]
            submitted[alive] += 1
        off[alive] = True
        return spent, submitted, off


def _followed(
    tracks: Sequence[_Track], timeouts: Sequence[Sequence[float]], rounds: int = MAX_ATTEMPTS
) -> list[list[Replayed]]:
    """Every job of each track under every one of its timeouts; gains are over the first of them."""
    if len(tracks) > 1 and sum(track.starts.size for track in tracks) > MAX_JOBS:
        half = len(tracks) // 2
        parts = (slice(half), slice(half, None))
        return [each for at in parts for each in _followed(tracks[at], timeouts[at], rounds)]
    stack = _Track.stack(tracks)
    own = np.split(stack.starts, np.cumsum([track.starts.size for track in tracks])[:-1])
    blocks = [(starts, limit) for starts, limits in zip(own, timeouts, strict=True) for limit in limits]
    ends = np.cumsum([starts.size for starts, _ in blocks])
    starts = np.concatenate([starts for starts, _ in blocks])
    arrays = stack.run(starts, np.repeat([limit for _, limit in blocks], np.diff(ends, prepend=0)), rounds)
    figures = zip(*(np.split(array, ends[:-1]) for array in arrays), strict=True)
    results: list[list[Replayed]] = []
    for track, limits in zip(tracks, timeouts, strict=True):
        several: list[Replayed] = []
        for limit, (spent, submitted, off) in zip(limits, figures, strict=False):
            durations, first = np.where(off, np.inf, spent), several[0] if several else None
            several.append(Replayed(limit, Timeout(), spent, submitted, off, durations, track.seed, first))
        results.append(several)
    return results


@dataclass(frozen=True, eq=False)
class Replay:
    """A log replayed: `waiting` until the cutoff, at some timeouts, and at the best of a curve of them.

    The curve is followed when it is asked for: most decisions need `waiting` and `at` alone.
    """

    waiting: Replayed
    at: tuple[Replayed, ...]
    _track: _Track

    @cached_property
    def curve(self) -> tuple[Replayed, ...]:
        """Timeouts that follow the latencies of the log; of a long log fewer jobs are followed for them."""
        x = self._track.latency[self._track.completed & (self._track.latency > 0)]
        levels = 1 / (1 + np.exp(-np.linspace(-3.5, 6.0, 60)))  # denser towards the longest
        timeouts = np.quantile(x, levels[levels * x.size >= 5], method="inverted_cdf") if x.size >= 5 else np.empty(0)
        timeouts = np.unique(timeouts[timeouts < self.waiting.timeout])
        few = replace(self._track, starts=self._track.starts[:: max(1, self._track.starts.size // MAX_JOBS_ON_CURVE)])
        limits = [self.waiting.timeout, *timeouts.tolist()]
        return tuple(_followed([few], [limits], MAX_ATTEMPTS_ON_CURVE)[0][1:])

    @cached_property
    def best(self) -> Replayed:
        """The best of the curve, of `at` and of waiting among those under which few more jobs run off the log."""
        most, best = self.waiting.ran_off + 0.05, self.waiting
        for each in self.at:
            best = each if each.ran_off <= most and each.expected_duration < best.expected_duration else best
        for rough in sorted(self.curve, key=lambda each: each.expected_duration):
            if rough.expected_duration >= best.expected_duration:
                break
            each = _followed([self._track], [[self.waiting.timeout, rough.timeout]])[0][1]
            best = each if each.ran_off <= most and each.expected_duration < best.expected_duration else best
        return best

    def to_dict(self) -> dict[str, Any]:
        return {
            "waiting": finite(self.waiting.expected_duration),
            "cutoff": self.waiting.timeout,
            "ran_off": self.waiting.ran_off,
            "at": [each.to_dict() for each in self.at],
            "best": self.best.to_dict(),
            "curve": [{"timeout": at.timeout, "expected_duration": finite(at.expected_duration)} for at in self.curve],
        }

    def summary(self) -> dict[str, Any]:
        """What `evidence.replay` has: the first timeout, or waiting, beside waiting and the best."""
        best = self.best.to_dict()
        return (self.at[0] if self.at else self.waiting).to_dict() | {
            "waiting": finite(self.waiting.expected_duration),
            "best_timeout": best["timeout"],
            "best_expected_duration": best["expected_duration"],
        }


def replay(
    probes: ProbeTable,
    cutoff: float,
    *,
    at: Sequence[float] = (),
    cost: float = 0.0,
    groups: Ints | None = None,
    seed: int = 0,
) -> Replay | None:
    """A log in the order of submission, `at` timeouts, in its own `groups`; None where fewer than 40 have a time."""
    return replay_logs([(probes, cutoff, at, groups)], cost=cost, seed=seed)[0]


def replay_logs(
    logs: Sequence[tuple[ProbeTable, float, Sequence[float], Ints | None]], *, cost: float = 0.0, seed: int = 0
) -> list[Replay | None]:
    """`replay` of several logs, each with its cutoff, timeouts and groups: their jobs are followed together."""
    tracks, timeouts = dict[int, _Track](), list[list[float]]()
    for place, (probes, cutoff, at, groups) in enumerate(logs):
        if probes.submitted is None:
            continue
        known = np.flatnonzero(np.isfinite(probes.submitted))
        if known.size >= MIN_PROBES_TO_DESCRIBE:
            part = probes if known.size == probes.n else probes.take(known)
            tracks[place] = _Track.of(part, None if groups is None else groups[known], cutoff, cost, seed)
            timeouts.append([cutoff, *map(float, at)])
    results: list[Replay | None] = [None] * len(logs)
    if tracks:
        for (place, track), (waiting, *others) in zip(
            tracks.items(), _followed(list(tracks.values()), timeouts), strict=True
        ):
            results[place] = Replay(waiting, tuple(others), track)
    return results


def replay_changing(
    probes: ProbeTable, cutoff: float, timeouts: Mapping[str, Floats], *, first: int, cost: float = 0.0
) -> dict[str, Replayed]:
    """What policies would have brought whose timeout changes from probe to probe, to the jobs from `first` on."""
    track = _Track.of(probes, None, cutoff, cost, seed=0)
    starts, results = first + evenly(probes.n - first, MAX_JOBS), {}
    for name, changing in timeouts.items():
        spent, submitted, off = track.run(starts, changing, MAX_ATTEMPTS, by_probe=True)
        results[name] = Replayed(np.nan, Timeout(), spent, submitted, off, np.where(off, np.inf, spent), 0, None)
    return results


def require_times(probes: ProbeTable) -> None:
    """Say why a log cannot be replayed."""
    if probes.submitted is None or np.isfinite(probes.submitted).sum() < MIN_PROBES_TO_DESCRIBE:
        raise LogError(
            f"replay needs the submission times of at least {MIN_PROBES_TO_DESCRIBE} probes, and the log does not say "
            "when they were submitted: name the column with --column submitted=NAME"
        )


def replay_policies(log: Replay, policies: Sequence[Policy], *, against: Policy | None = None) -> tuple[Replayed, ...]:
    """Policies replayed on a log; gains are over `against`, by default waiting until the cutoff."""
    track = log._track

    def replayed(policy: Policy, reference: Replayed | None = None) -> Replayed:
        rng = np.random.default_rng(track.seed)
        jobs = follow(policy, track.starts.size, _Copies(track), rng, cost=track.cost, most=MAX_ATTEMPTS)
        arrays = jobs.spent, jobs.submissions, jobs.off, jobs.durations
        return Replayed(np.inf, policy, *arrays, track.seed, reference)

    reference = replayed(Timeout(log.waiting.timeout) if against is None else against)
    return tuple(replayed(policy, reference) for policy in policies)


class _Copies:
    """Latencies and failures of the copies of a track's jobs; knows which probe each copy has, and until when."""

    def __init__(self, track: _Track) -> None:
        jobs = track.starts.size
        self.track, self.last, self.begun = track, track.starts.copy(), np.zeros(jobs, dtype=bool)
        self.held, self.until = np.full((1, jobs), -1), np.full((1, jobs), -np.inf)  # a row for each copy at a time

    def __call__(self, jobs: Ints, begins: Floats, age: float) -> tuple[Floats, Floats]:
        track, first = self.track, self.track.starts[jobs]
        at = np.where(self.begun[jobs], track.after(track.when[first] + begins, self.last[jobs], first), first)
        self.begun[jobs] = True
        sparse = bool(track.sparse[0])
        if sparse:
            self.last[jobs] = at
        held, out = self.held[:, jobs], self.until[:, jobs] > begins
        while not sparse and (taken := ((held == at) & out).any(axis=0)).any():
            at = at + taken
        gone = at >= track.end[first]
        at = np.where(gone, first, at)
        latency, failure = (np.where(ended[at], track.latency[at], np.inf) for ended in (track.completed, track.failed))
        if not (~out).any(axis=0).all():  # no row is free for some
            self.held = np.append(self.held, np.full_like(self.held[:1], -1), axis=0)
            self.until = np.append(self.until, np.full_like(self.until[:1], -np.inf), axis=0)
        row = (self.until[:, jobs] <= begins).argmax(axis=0)
        self.held[row, jobs] = at
        self.until[row, jobs] = begins + np.minimum(np.minimum(latency, failure), age)
        return np.where(gone, np.nan, latency), failure
