"""Evidence before advice: whether the formula's answer stands, gives way to the log's own, or is withheld."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.decision.options import Options
from latfit.decision.prepare import Prepared
from latfit.decision.recommend import group_costs
from latfit.decision.result import Evidence, Recommendation, Warned
from latfit.evidence import Mixing, Observations, Replay, Replayed, dependence, mixing, replay
from latfit.evidence.attempts import later_attempts
from latfit.evidence.changes import find_changes
from latfit.evidence.mixing import FEWEST
from latfit.evidence.observations import rows_by
from latfit.evidence.replay import Figures
from latfit.evidence.slow_times import slow_times
from latfit.laws import Empirical
from latfit.logs import LogFacts, ProbeLog
from latfit.logs.table import STATUSES
from latfit.numbers import Floats, finite
from latfit.restart import expected_duration
from latfit.sample import LatencySample

HARM = 0.02  # a group that a timeout makes slower than waiting by this share is harmed
GROUP = 10  # probes that a group needs to be heard alone
SMALL = 4  # and to be heard together with others as small
TWICE = 2  # and in a log so short that no group has more
CLEAR = 0.02  # what replay must gain over waiting, at least, to be a reason for a timeout
CLEAR_IN_QUEUE = 0.1  # and where who resubmits goes to the end of a queue, which the best of many timeouts may miss
CONTRADICTS = 1.1  # replay this many times the formula's figure, and beyond its interval, contradicts it
RAN_OFF = 0.2
SAME = 0.1  # of a delay: by less than that no timeout differs from waiting
ATTEMPTS = 50_000  # of jobs, at about which more would tell nothing new of later ones
QUICK = 5.0  # times below the median, where the log does not tell errors from answers


def gather(case: Prepared, made: Recommendation, options: Options) -> Evidence:
    """Everything that the log itself says on whether the theory applies."""
    seen = case.seen
    if seen is None:
        return Evidence(None, None, None, case.censoring, None)
    mixed = mixing(seen)
    t = made.timeout
    if mixed is not None and t is not None:
        mixed = _costed(mixed, seen, case, t, options)
    when = None if seen.submitted is None else _times(seen.submitted)
    drift = None if when is None else find_changes(when, seen.latency, seen.status.astype(np.int8), case.cutoff.cutoff)
    replayed = None
    if options.plain and options.law is None:
        groups = mixed.column.codes if mixed is not None else None
        replayed = replay(seen, case.cutoff.cutoff, at=[] if t is None else [t], cost=options.cost, groups=groups)
    slow = None if replayed is None or not t else slow_times(seen, t)
    later = None
    if case.jobs is not None and t is not None and t > 0:
        later = later_attempts(_jobs(case.jobs), timeout=t, cost=options.cost, brief=True)
    return Evidence(mixed, dependence(seen), drift, case.censoring, replayed, later, slow)


def _times(seconds: Floats) -> NDArray[np.datetime64]:
    """Seconds as times, NaT where they are not known."""
    known = np.isfinite(seconds)
    times = np.full(seconds.size, "NaT", dtype="datetime64[us]")
    times[known] = (seconds[known] * 1e6).astype(np.int64).astype("datetime64[us]")
    return times


def _jobs(seen: Observations) -> ProbeLog:
    """The attempts of jobs as a table; of very many jobs, so many at random."""
    if seen.job is not None and seen.n > ATTEMPTS:
        kept = np.random.default_rng(0).random(int(seen.job.max()) + 1) < ATTEMPTS / seen.n
        seen = seen.take(np.flatnonzero(kept[seen.job]))
    status = pd.Categorical.from_codes(seen.status, categories=pd.Index(STATUSES))
    frame = pd.DataFrame({"job": seen.job, "attempt": seen.attempt, "latency": seen.latency, "status": status})
    return ProbeLog(frame, LogFacts("", ""))


def _costed(mixed: Mixing, seen: Observations, case: Prepared, timeout: float, options: Options) -> Mixing:
    """The mixing with what the pooled timeout costs its groups."""
    groups: list[tuple[str, LatencySample]] = []
    together, alone = (SMALL, GROUP) if seen.n >= FEWEST else (TWICE, TWICE)
    for label, rows in zip(mixed.column.labels, rows_by(mixed.column.codes, len(mixed.column.labels)), strict=True):
        if rows.size >= together:
            groups.append((label, seen.take(rows).sample.cut(case.cutoff.cutoff)))
    if not groups:
        return mixed
    sizes = np.array([sample.n for _, sample in groups])
    costs, slower = group_costs([sample for _, sample in groups], timeout, case.cutoff.cutoff, options.cost)
    costs, slower = (np.where(np.isnan(each), np.inf, each) for each in (costs, slower))
    average = float(np.average(slower, weights=sizes))  # a small group's cost is mostly chance, that of all is not
    large = np.where(sizes >= alone, costs, -1.0)
    worst, hurt = int(large.argmax()), int(np.where(sizes >= alone, slower, -1.0).argmax())
    name = None
    if large[worst] > 0 and np.isinf(costs[worst]):
        name = groups[worst][0]
    elif sizes[hurt] >= alone and slower[hurt] > HARM:
        name = groups[hurt][0]
    elif average > HARM:
        name = f"the average {mixed.column.name}"
    cost = float(costs[worst]) if large[worst] > 0 else float(np.average(costs, weights=sizes))
    return replace(mixed, worst_cost=cost, harmed=name)


def judge(made: Recommendation, case: Prepared, found: Evidence, warned: tuple[Warned, ...]) -> Recommendation:
    """The recommendation as the evidence allows it."""
    if made.timeout == 0:
        return _withheld(made, ["not-identified"])
    if made.verdict == "withheld" or case.seen is None:
        return made
    queue, codes = case.seen.queue, []
    if any(one.code == "not-identified" for one in warned) and queue:
        codes.append("not-identified")
    if found.mixing is not None and (found.mixing.harmed is not None or queue):
        codes.append("mixed")
    if queue and found.replay is None:
        codes.append("queue")
    if _says_too_much(case):
        codes.append("censored")
    if made.timeout is not None and not case.seen.has_outcomes and _is_far_below(made.timeout, case.sample):
        codes.append("no-outcomes")
    if codes:
        return _withheld(made, codes)
    if found.attempts is not None and found.attempts.harmful:
        return _withheld(made, ["dependent"], replayed=found.attempts.expected_duration)
    if made.verdict != "finite" or found.replay is None or not found.replay.at:
        return made
    return _by_replay(made, case, found, found.replay, seen=case.seen)


def _is_far_below(timeout: float, sample: LatencySample) -> bool:
    """Whether a timeout lies among quick returns, far below most of them: they may be errors."""
    return bool(timeout < sample.completed.quantiles([0.5])[0] / QUICK)


def _says_too_much(case: Prepared) -> bool:
    """Whether more was given up than came back, before most of the latencies that came back."""
    early = case.sample.censored_early
    return early > case.sample.returned and early > 0.5 * case.sample.n


def _by_replay(
    made: Recommendation, case: Prepared, found: Evidence, log: Replay, *, seen: Observations
) -> Recommendation:
    """The formula's timeout where the log does not contradict it; else the log's own, or none."""
    queue = seen.queue
    here, *_ = log.at
    suspicious = queue or (found.dependence is not None and found.dependence.found)
    contradicted = contradicts(here, made.expected_duration)
    if not suspicious and not contradicted and found.slow_times is None:
        return made
    outages = slow_times(seen, log.waiting.timeout, dense=True)  # they hold up whoever waits, too
    out = outages.held_up if outages else 0.0
    held_up = _held_up(seen, log, here, out)
    if not suspicious and not contradicted and not held_up:
        return made
    if here.gain_low > CLEAR and not contradicted and not held_up and not queue:
        return made
    best = log.best
    if held_up or _held_up(seen, log, best, out):
        others = [one for one in log.curve if one.gain_low > CLEAR and not _held_up(seen, log, one, out)]
        best = min(others, key=lambda one: one.expected_duration, default=log.waiting)
    if best.gain_low > (CLEAR_IN_QUEUE if queue else CLEAR) and best.ran_off < RAN_OFF and np.isfinite(best.timeout):
        return _replayed(made, case, best)
    return _withheld(made, ["dependent"], replayed=here.expected_duration)


def _held_up(seen: Observations, log: Replay, one: Replayed, out: float) -> bool:
    """Whether a timeout may gain nothing over waiting, as slow times may hold every attempt up until they end.

    `out` is by how much they hold up who waits.
    """
    slow = slow_times(seen, one.timeout)
    more = slow.held_up - out if slow else 0.0
    if slow is None or more < SAME * slow.held_up:
        return False
    return one.expected_duration + more > (1 - CLEAR) * log.waiting.expected_duration


def _replayed(made: Recommendation, case: Prepared, best: Replayed) -> Recommendation:
    """The log's own timeout: the formula's windows and intervals are about another one, and do not go with it."""
    E = float(expected_duration(Empirical.of(case.sample), best.timeout, cost=made.cost))
    here = (best.timeout, best.timeout)
    return replace(made, timeout=best.timeout, basis="replay", replayed=best.expected_duration, intervals=None,
                   expected_duration=finite(E), submissions=best.submissions, within_1pct=here, within_5pct=here,
                   objective={**made.objective, "value": finite(E)})  # fmt: skip


def contradicts(here: Figures, E: float | None) -> bool:
    """Whether the log's own figure lies above the formula's E by more than chance."""
    if E is None or not np.isfinite(here.expected_duration):
        return True
    spread = max(here.expected_duration - here.low, 1e-12)
    return here.expected_duration > CONTRADICTS * E and here.low - spread > E


def _withheld(made: Recommendation, codes: list[str], replayed: float | None = None) -> Recommendation:
    """No timeout, the reasons, and what the formula would give."""
    return Recommendation("withheld", None, None, None, None, None, made.rho, made.law, made.cost,
                          {**made.objective, "value": None}, exact_timeout=made.exact_timeout,
                          at_cutoff=made.at_cutoff, withheld=tuple(codes), if_independent=made, replayed=replayed,
                          source=made.source, policy=made.policy, cutoff=made.cutoff)  # fmt: skip
