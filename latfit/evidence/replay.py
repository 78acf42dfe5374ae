"""What the log itself says a timeout or a policy would have brought: no formula, no independence.

A job submitted when a probe was, whose probe is not back after T, is resubmitted at T + c and then takes the
latency of the next probe *of its own group* that the log shows submitted at or after that moment; and so on. Until
that probe was submitted the system is taken to be as it found it. Where probes are sparser than their latencies, that
would make a job wait for the next probe: there each attempt takes the next one in order. A copy beside another takes a
probe that no other copy of the job has which is still out. A job that needs a probe after the last one has run off the
log. Drift, dependence and groups are in it, because they are in the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from latfit.errors import LogError
from latfit.evidence.probes import MIN_PROBES_TO_DESCRIBE, evenly
from latfit.numbers import Bools, Floats, Ints, finite
from latfit.resample import RESAMPLES, interval, weights
from latfit.restart.evaluate import Followed, follow
from latfit.restart.policies import Policy
from latfit.restart.policies.timeout import Timeout
from latfit.restart.result import QUANTILES
from latfit.table import COMPLETED, FAILED, ProbeTable

MAX_JOBS = 50_000  # that are followed, evenly spread over a longer log; a fifth of them for the curve
MAX_ATTEMPTS = 5000  # of a job: what is given up sooner flatters short timeouts
MAX_ATTEMPTS_ON_CURVE = 200  # where a timeout that needs more is not the best
SAME_MOMENT = 1e-6  # seconds: submissions less far apart are at the same moment, whatever their last digits


@dataclass(frozen=True)
class Figures:
    """What something would have brought on the log: mean duration with its interval, quantiles, submissions.

    The mean is the time that all jobs spent over the number that were done. `low` and `high` are a 95 % interval by a
    block bootstrap of consecutive jobs. `ran_off` is the share of jobs that were not done when the log ended.
    `gain_low` and `gain_high` bound the gain over waiting until the cutoff, or another policy, as a share of that.
    """

    expected_duration: float
    low: float
    high: float
    quantiles: dict[str, float | None]
    submissions: float
    ran_off: float
    gain_low: float
    gain_high: float

    def to_dict(self) -> dict[str, Any]:
        return {name: finite(value) if isinstance(value, float) else value for name, value in vars(self).items()}


@dataclass(frozen=True)
class Replayed(Figures):
    """What a timeout would have brought on the log."""

    timeout: float

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in super().to_dict().items() if not name.startswith("gain")}


@dataclass(frozen=True)
class ReplayedPolicy(Figures):
    """What a policy would have brought on the log.

    `undone` is the share of jobs that it left undone: a finite schedule gives up, and the time until then counts in the
    mean; without cancelling all copies may be lost, and the mean is infinite.
    """

    policy: Policy
    undone: float

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "policy": self.policy.spec()}


@lru_cache(maxsize=8)
def _block_weights(blocks: int, seed: int) -> Floats:
    return weights(np.ones(blocks), RESAMPLES, np.random.default_rng(seed)).T


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
    cost: float
    seed: int

    @classmethod
    def of(cls, probes: ProbeTable, groups: Ints | None, cutoff: float, cost: float, seed: int) -> _Track:
        assert probes.submitted is not None
        gaps = np.diff(probes.submitted, prepend=probes.submitted[0])
        when = np.cumsum(np.minimum(gaps, np.quantile(gaps, 0.99)))  # nobody waits through a gap of the log
        n, latency, status = probes.n, probes.latency, probes.status
        span, starts = float(when.max()) + 1.0, evenly(n, MAX_JOBS)
        origin, ends = np.broadcast_to(0.0, n), np.broadcast_to(n, n)
        if groups is not None:
            order = np.argsort(groups, kind="stable")  # the probes are in the order of time already
            when, latency, status, group = when[order], latency[order], status[order], groups[order]
            origin, ends = group * (2 * span), np.searchsorted(group, group, side="right")
            starts = np.sort(np.argsort(order, kind="stable")[starts])
        # a failure at once would come again for ever: it took a step of the clock, or the least that was measured
        step = probes.resolution or float(np.min(latency[latency > 0], initial=1.0))
        latency = np.where((latency == 0) & (status == FAILED), step, latency)
        done, failed = ((status == code) & (latency <= cutoff) for code in (COMPLETED, FAILED))
        sparse = bool(np.median(np.diff(probes.submitted)) > np.median(latency[done])) if done.any() else True
        tick = max(SAME_MOMENT, 8 * float(np.spacing(origin[-1] + span)))
        return cls(origin + when, origin, ends, latency, done, failed, starts, sparse, tick, cost, seed)

    def after(self, clock: Floats, last: Ints) -> Ints:
        """The probe that an attempt at `clock` takes: the next one submitted, where probes are sparse after `last`."""
        return np.maximum(np.searchsorted(self.key, clock - self.tick), last + self.sparse)

    def followed(self, timeouts: Sequence[float], rounds: int = MAX_ATTEMPTS) -> list[Replayed]:
        """Every job under every timeout, all at once; gains are over the first timeout."""
        jobs, size = self.starts.size, len(timeouts)
        spent, submitted, off = np.zeros(size * jobs), np.ones(size * jobs), np.zeros(size * jobs, dtype=bool)
        timeout, at, alive = np.repeat(timeouts, jobs), np.tile(self.starts, size), np.arange(size * jobs)
        clock = self.key[at]
        for _ in range(rounds):
            here = at[alive]
            x, t = self.latency[here], timeout[alive]
            inside = x <= t
            done = self.completed[here] & inside
            used = np.where(done, x, np.where(self.failed[here] & inside, x, t) + self.cost)
            spent[alive] += used
            alive, here, used = alive[~done], here[~done], used[~done]
            if not alive.size:
                break
            now = clock[alive] + used
            if not self.sparse:  # the same probe answers again until its own time has come
                again = np.ceil(np.maximum(self.key[here] - now - self.tick, 0) / np.maximum(used, self.tick))
                spent[alive] += again * used
                submitted[alive] += again
                now = now + again * used
            clock[alive] = now = np.minimum(now, self.origin[here] + 2 * (self.key.max() + 1))
            at[alive] = self.after(now, here + ((used == 0) & (not self.sparse)))
            gone = at[alive] >= self.ends[here]
            off[alive[gone]] = True
            alive = alive[~gone]
            submitted[alive] += 1
        off[alive] = True
        shape = (size, jobs)
        durations = np.where(off, np.inf, spent).reshape(shape)
        figures, _ = self.figures(spent.reshape(shape), off.reshape(shape), submitted.reshape(shape), durations)
        return [Replayed(**vars(each), timeout=t) for each, t in zip(figures, timeouts, strict=True)]

    def figures(
        self, spent: Floats, off: Bools, submitted: Floats, durations: Floats, reference: Floats | None = None
    ) -> tuple[list[Figures], Floats]:
        """The figures of each row, gains over `reference` or the first row, and the means of resampled blocks."""
        jobs, done = spent.shape[1], (~off).sum(axis=1)
        blocks = min(jobs, max(50, int(np.sqrt(jobs))))
        edges = np.linspace(0, jobs, blocks + 1).astype(np.intp)[:-1]
        drawn = _block_weights(blocks, self.seed)
        levels = np.quantile(durations, QUANTILES, method="inverted_cdf", axis=1).T
        with np.errstate(divide="ignore", invalid="ignore"):
            total, finished = (
                np.add.reduceat(values, edges, axis=1) @ drawn for values in (spent, (~off).astype(float))
            )
            means = total / finished
            gains = 1 - means / (means[0] if reference is None else reference)
            mean, submissions = spent.sum(axis=1) / done, submitted.sum(axis=1) / done
        limits = np.concatenate([interval(means), interval(gains)]).T
        limits[np.isinf(mean) | (done == 0)] = np.inf, np.inf, -np.inf, -np.inf
        results = []
        for row in range(len(spent)):
            quantiles = dict(zip(map(str, QUANTILES), map(finite, levels[row]), strict=True))
            low, high, *gain = limits[row].tolist()
            rest = float(submissions[row]), float(off[row].mean())
            results.append(Figures(float(mean[row]), low, high, quantiles, *rest, *gain))
        return results, means


@dataclass(frozen=True, eq=False)
class Replay:
    """A log replayed: `waiting` until the cutoff, at some timeouts, and at the best of a curve of them.

    The curve is followed when it is asked for: most decisions need `waiting` and `at` alone.
    """

    waiting: Replayed
    at: tuple[Replayed, ...]
    _track: _Track

    @property
    def _coarse(self) -> _Track:
        return replace(self._track, starts=self._track.starts[:: max(1, 5 * self._track.starts.size // MAX_JOBS)])

    @cached_property
    def _timeouts(self) -> list[float]:
        """Timeouts that follow the latencies of the log."""
        x = self._track.latency[self._track.completed & (self._track.latency > 0)]
        levels = 1 / (1 + np.exp(-np.linspace(-3.5, 6.0, 60)))  # denser towards the longest
        timeouts = np.quantile(x, levels[levels * x.size >= 5], method="inverted_cdf") if x.size >= 5 else np.empty(0)
        return list(map(float, np.unique(timeouts[timeouts < self.waiting.timeout])))

    @cached_property
    def curve(self) -> tuple[Replayed, ...]:
        """Timeouts that follow the latencies of the log; of a long log fewer jobs are followed for them."""
        return tuple(self._coarse.followed([self.waiting.timeout, *self._timeouts], MAX_ATTEMPTS_ON_CURVE)[1:])

    @cached_property
    def best(self) -> Replayed:
        """The best of the curve, of `at` and of waiting among those under which few more jobs run off the log.

        Of a long log a tenth of the jobs choose the ten timeouts of the curve that all of them are followed under.
        """
        cutoff, jobs = self.waiting.timeout, self._coarse.starts
        if jobs.size < MAX_JOBS // 5:
            curve: Sequence[Replayed] = self.curve
        else:
            rough = replace(self._track, starts=jobs[::10]).followed([cutoff, *self._timeouts], MAX_ATTEMPTS_ON_CURVE)
            likely = sorted(rough[1:], key=lambda each: each.expected_duration)[:10]
            curve = self._coarse.followed([cutoff, *(each.timeout for each in likely)], MAX_ATTEMPTS_ON_CURVE)[1:]
        results = {each.timeout: each for each in curve}
        surely = {each.timeout: each for each in self._coarse.followed([cutoff, *(each.timeout for each in self.at)])}
        while True:
            results |= surely
            usable = [each for each in results.values() if each.ran_off <= surely[cutoff].ran_off + 0.05]
            best = min(usable, key=lambda each: each.expected_duration, default=surely[cutoff])
            if best.timeout in surely:
                break
            surely[best.timeout] = self._coarse.followed([cutoff, best.timeout])[1]
        fewer = self._coarse.starts.size < self._track.starts.size
        return self._track.followed([cutoff, best.timeout])[1] if fewer else best

    def to_dict(self) -> dict[str, Any]:
        return {
            "waiting": finite(self.waiting.expected_duration),
            "cutoff": self.waiting.timeout,
            "ran_off": self.waiting.ran_off,
            "at": [each.to_dict() for each in self.at],
            "best": self.best.to_dict(),
            "curve": [{name: each.to_dict()[name] for name in ("timeout", "expected_duration")} for each in self.curve],
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
    if probes.submitted is None:
        return None
    known = np.flatnonzero(np.isfinite(probes.submitted))
    if known.size < MIN_PROBES_TO_DESCRIBE:
        return None
    part = probes if known.size == probes.n else probes.take(known)
    track = _Track.of(part, None if groups is None else groups[known], cutoff, cost, seed)
    waiting, *others = track.followed([cutoff, *map(float, at)])
    return Replay(waiting, tuple(others), track)


def require_times(probes: ProbeTable) -> None:
    """Say why a log cannot be replayed."""
    if probes.submitted is None or np.isfinite(probes.submitted).sum() < MIN_PROBES_TO_DESCRIBE:
        raise LogError(
            f"replay needs the submission times of at least {MIN_PROBES_TO_DESCRIBE} probes, and the log does not say "
            "when they were submitted: name the column with --column submitted=NAME"
        )


def replay_policies(
    log: Replay, policies: Sequence[Policy], *, against: Policy | None = None
) -> tuple[ReplayedPolicy, ...]:
    """Policies replayed on a log; gains are over `against`, by default waiting until the cutoff."""
    track = log._track

    def figures(policy: Policy, reference: Floats | None = None) -> tuple[Figures, Floats, Followed]:
        rng = np.random.default_rng(track.seed)
        jobs = follow(policy, track.starts.size, _Copies(track), rng, cost=track.cost, most=MAX_ATTEMPTS)
        arrays = jobs.spent[None], jobs.off[None], jobs.submissions[None], jobs.durations[None]
        (row,), means = track.figures(*arrays, reference)
        return row, means, jobs

    _, reference, _ = figures(Timeout(log.waiting.timeout) if against is None else against)
    results = []
    for policy in policies:
        row, _, jobs = figures(policy, reference)
        undone = float((np.isinf(jobs.durations) & ~jobs.off).mean())
        results.append(ReplayedPolicy(**vars(row), policy=policy, undone=undone))
    return tuple(results)


class _Copies:
    """Latencies and failures of the copies of a track's jobs; knows which probe each copy has, and until when."""

    def __init__(self, track: _Track) -> None:
        jobs = track.starts.size
        self.track, self.last, self.begun = track, track.starts.copy(), np.zeros(jobs, dtype=bool)
        self.held, self.until = np.full((1, jobs), -1), np.full((1, jobs), -np.inf)  # a row for each copy at a time

    def __call__(self, jobs: Ints, begins: Floats, age: float) -> tuple[Floats, Floats]:
        track, first = self.track, self.track.starts[jobs]
        at = np.where(self.begun[jobs], track.after(track.key[first] + begins, self.last[jobs]), first)
        self.begun[jobs] = True
        if track.sparse:
            self.last[jobs] = at
        held, out = self.held[:, jobs], self.until[:, jobs] > begins
        while not track.sparse and (taken := ((held == at) & out).any(axis=0)).any():
            at = at + taken
        gone = at >= track.ends[first]
        at = np.where(gone, first, at)
        latency, failure = (np.where(ended[at], track.latency[at], np.inf) for ended in (track.completed, track.failed))
        if not (~out).any(axis=0).all():  # no row is free for some
            self.held = np.append(self.held, np.full_like(self.held[:1], -1), axis=0)
            self.until = np.append(self.until, np.full_like(self.until[:1], -np.inf), axis=0)
        row = (self.until[:, jobs] <= begins).argmax(axis=0)
        self.held[row, jobs] = at
        self.until[row, jobs] = begins + np.minimum(np.minimum(latency, failure), age)
        return np.where(gone, np.nan, latency), failure
