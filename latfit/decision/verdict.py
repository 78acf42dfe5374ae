"""Evidence before advice: the schedule to set, and whether the formula's timeout stands in every supported world."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from latfit.decision.options import Options
from latfit.decision.prepare import Prepared
from latfit.decision.result import Evidence, JudgedWorld, Recommendation, Warned
from latfit.decision.schedule import INDEPENDENT, Attempts, Choice, choose_schedule, unlimited_ratios
from latfit.evidence import Mixing, dependence, mixing, replay
from latfit.evidence.changes import find_changes
from latfit.evidence.worlds import MIN_PROBES_TO_TRUST, Survey, survey
from latfit.numbers import Floats
from latfit.sample import LatencySample
from latfit.table import CENSORED, COMPLETED, FAILED, ProbeTable

SUSPICION = {"repeats": 1.0, "unseen": 0.3, "plain": 0.1, "fresh": 0.02}  # π: how much the worst case weighs
MIN_PROBES_FOR_SCHEDULE = 20
QUICK_RETURN = 5.0  # times below the median: such returns may be errors where the log has no outcomes
WITHHELD_CODES = {"column": "mixed", "pair": "mixed", "cell": "mixed", "job": "dependent", "time": "dependent",
                  "spell": "dependent"}  # fmt: skip


def gather(
    case: Prepared, made: Recommendation, options: Options, warned: tuple[Warned, ...] = ()
) -> tuple[Evidence, Choice | None]:
    """What the log says on whether the theory applies, and the schedule that is best in every world it supports.

    Where the clock is too coarse to identify the optimum, a restart is taken to cost a step of it.
    """
    probes, cutoff = case.seen, case.cutoff.cutoff
    attempts = _attempts_of(case.sample, cutoff) if probes is None else _attempts(probes, cutoff)
    known = Survey([], {}, {}) if probes is None else survey(probes, cutoff)
    choice = None
    coarse = any(warning.code == "not-identified" for warning in warned)
    if options.plain and options.rho is None and attempts.latency.size >= MIN_PROBES_FOR_SCHEDULE:
        choice = choose_schedule(
            attempts,
            known.worlds,
            risk=options.risk,
            suspicion=suspicion(probes, known),
            cost=options.cost + (case.sample.resolution if coarse else 0.0),
            shortest=case.sample.resolution,
        )
    ratios: tuple[float | None, ...] = choice.ratios if choice else (None,) * (len(known.worlds) + 1)
    forever: tuple[float | None, ...] = (None,) * len(ratios)
    if made.timeout:
        forever = unlimited_ratios(attempts, known.worlds, min(made.timeout, cutoff), options.cost)
    names = [(INDEPENDENT, INDEPENDENT, None), *((w.name, w.kind, w.z) for w in known.worlds)]
    judged = tuple(JudgedWorld(*name, *pair) for name, *pair in zip(names, ratios, forever, strict=True))
    evidence = Evidence(
        mixing=None,
        dependence=None,
        drift=None,
        censoring=case.censoring,
        replay=None,
        worlds=judged,
        binding=choice.binding if choice else None,
        columns_used=tuple(known.used),
        columns_left_out=tuple(known.left_out.items()),
    )
    if probes is None:
        return evidence, choice
    mixed = _costed(mixing(probes, known.worlds), judged)
    when = None if probes.submitted is None else _times(probes.submitted)
    drift = None if when is None else find_changes(when, probes.latency, probes.status, cutoff)
    replayed = None
    if options.plain and options.law is None:
        at = [] if made.timeout is None else [made.timeout]
        groups = mixed.column.codes if mixed is not None else None
        replayed = replay(probes, cutoff, at=at, cost=options.cost, groups=groups)
    return replace(evidence, mixing=mixed, dependence=dependence(probes), drift=drift, replay=replayed), choice


def suspicion(probes: ProbeTable | None, known: Survey) -> float:
    """π: how much the case weighs that every retry repeats the fate of the first attempt, whatever the log says.

    In a queue a retry goes to the end, and sticky jobs repeat: 1. A log in which nothing could have been seen (no
    columns and no times, no outcomes, few rows) keeps a larger suspicion than one that was looked at; attempts of the
    same jobs that look independent leave little.
    """
    if probes is None:
        return SUSPICION["unseen"]
    if probes.facts.queue or any(world.kind == "job" for world in known.worlds):
        return SUSPICION["repeats"]
    if known.fresh:
        return SUSPICION["fresh"]
    blind = probes.submitted is None and not known.used
    if blind or not probes.facts.has_outcomes or probes.n < MIN_PROBES_TO_TRUST:
        return SUSPICION["unseen"]
    return SUSPICION["plain"]


def judge(
    made: Recommendation, case: Prepared, evidence: Evidence, choice: Choice | None, warned: tuple[Warned, ...]
) -> Recommendation:
    """The recommendation as the evidence allows it, with the schedule.

    The formula's timeout, repeated for ever, is withheld where a supported world makes it slower than waiting.
    """
    retry = choice.retry if choice else None
    codes = [WITHHELD_CODES[world.kind] for world in evidence.worlds[1:] if (world.unlimited or 0.0) > 1]
    if case.seen is not None and case.seen.facts.queue and made.verdict == "finite":
        codes.insert(0, "queue")
    early = case.sample.censored_early
    if early > case.sample.returned and early > 0.5 * case.sample.n:  # more given up than came back
        codes.insert(0, "censored")
        retry = None
    if _may_be_errors(made, case):
        codes.insert(0, "no-outcomes")
        retry = None
    if made.timeout == 0 or (codes and any(warning.code == "not-identified" for warning in warned)):
        codes.insert(0, "not-identified")
    if not codes or made.verdict == "withheld":
        return replace(made, retry=retry)
    return Recommendation(
        verdict="withheld",
        timeout=None,
        expected_duration=None,
        submissions=None,
        within_1pct=None,
        within_5pct=None,
        rho=made.rho,
        law=made.law,
        cost=made.cost,
        objective={**made.objective, "value": None},
        exact_timeout=made.exact_timeout,
        at_cutoff=made.at_cutoff,
        withheld=tuple(dict.fromkeys(codes)),
        if_independent=made,
        source=made.source,
        policy=made.policy,
        cutoff=made.cutoff,
        retry=retry,
    )


def _may_be_errors(made: Recommendation, case: Prepared) -> bool:
    """Whether the timeout lies among returns far quicker than most, in a log that does not tell errors from answers."""
    if made.timeout is None or case.seen is None or case.seen.facts.has_outcomes:
        return False
    return bool(made.timeout < case.sample.completed.quantiles([0.5])[0] / QUICK_RETURN)


def _attempts(probes: ProbeTable, cutoff: float) -> Attempts:
    latency = np.nan_to_num(probes.latency, nan=np.inf, posinf=np.inf)
    completed, failed = probes.status == COMPLETED, probes.status == FAILED
    return Attempts.of(latency, completed, failed, probes.status == CENSORED, cutoff)


def _attempts_of(sample: LatencySample, cutoff: float) -> Attempts:
    """The attempts of a sample, in no order."""
    parts = [sample.completed.expand(), sample.failed.expand(), sample.censored.expand(), np.full(sample.lost, np.inf)]
    kind = np.repeat(np.arange(4), [part.size for part in parts])
    return Attempts.of(np.concatenate(parts), kind == 0, kind == 1, kind == 2, cutoff)


def _costed(mixed: Mixing | None, judged: tuple[JudgedWorld, ...]) -> Mixing | None:
    """The mixing with what one timeout for all costs in its world."""
    world = next((world for world in judged if mixed and world.name == mixed.column.name), None)
    if mixed is None or world is None or world.unlimited is None:
        return mixed
    some = f"some {mixed.column.name}" if world.unlimited > 1 else None
    return replace(mixed, worst_cost=world.unlimited - 1, harmed=some)


def _times(seconds: Floats) -> NDArray[np.datetime64]:
    """Seconds as times, NaT where they are not known."""
    known = np.isfinite(seconds)
    times = np.full(seconds.size, "NaT", dtype="datetime64[us]")
    times[known] = (seconds[known] * 1e6).astype(np.int64).astype("datetime64[us]")
    return times
