"""A decision in one line, what it rests on in another, and the checks of the evidence one by one."""

from __future__ import annotations

import math

from latfit.analysis import Analysis
from latfit.errors import counted
from latfit.report.sentences import all_zero, between, hardly_helps, perhaps_faster, undecided, waits_for_lost
from latfit.units import seconds

CLOSE = 0.1  # a replay within this share of the formula agrees with it
INSTEAD = {
    "mixed": ("Collect more probes of each kind first", ""),
    "dependent": ("Do not cancel", ""),
    "queue": ("Do not cancel: wait your turn", ""),
    "censored": ("Measure with a later cutoff first", ""),
    "few-completions": ("Collect more probes first", ""),
    "not-identified": ("Say first what a restart costs", ""),
    "no-outcomes": ("Say first which returns are errors", ""),
}
VERDICTS = {
    "never": ("Set no timeout", ""),
    "any": ("Any timeout will do", ""),
    "immediate": ("Say first what a restart costs", ""),
}


def headline(result: Analysis) -> tuple[str, str]:
    """What to do, in two parts: words, and the time that they end in (empty where there is none).

    >>> import latfit
    >>> headline(latfit.analyze(latfit.example_log(), resamples=0, test=False))
    ('Set the timeout to', '358 s')
    """
    own = result.timeout
    if own.verdict == "withheld":
        found = result.decision.evidence
        if "mixed" in own.withheld and found and found.mixing and not undecided(result):
            words = "Decide for what you wait for, by" if found.mixing.known_afterwards else "Decide by"
            return words, found.mixing.column.name
        if result.seen is not None and result.seen.queue:
            return INSTEAD["queue"]
        if all_zero(result):
            return "Record finer times first", ""
        if perhaps_faster(result):
            return "Leave it as it is", ""
        return INSTEAD[own.withheld[0]]
    if own.verdict != "finite":
        return VERDICTS[own.verdict]
    if "not-identified" in result.decision.codes:
        return INSTEAD["not-identified"]
    if own.basis == "independent" and hardly_helps(own) and not waits_for_lost(result.decision):
        out = result.decision.outliers
        needed = out is not None and out.count > 0  # a job like that ends only by a timeout
        words = "Set some timeout, for example" if needed else "A timeout hardly helps; as an insurance, set"
        return words, seconds(own.timeout)
    return "Set the timeout to", seconds(own.timeout)


def basis(result: Analysis) -> str:
    """What the decision rests on."""
    own, counts = result.timeout, result.decision.counts
    probes = counted(sum(counts.values()), "probe")
    found = result.decision.evidence
    if own.verdict == "withheld":
        return f"Basis: {probes}; the timeout of the formula is withheld ({', '.join(own.withheld)})."
    if own.basis == "replay":
        return f"Basis: the log itself, replayed ({probes}); the formula for independent attempts does not hold here."
    told = f"Basis: the formula for independent attempts, on {probes} ({counts.get('completed', 0)} returned)"
    replayed = found.replay.at[0] if found and found.replay and found.replay.at else None
    if replayed is None or own.verdict != "finite" or not own.expected_duration:
        return told + "; the log could not be replayed to check it."
    E, bounds = replayed.expected_duration, between(replayed.low, replayed.high)
    if math.isfinite(E) and abs(E / own.expected_duration - 1) <= CLOSE:
        return told + f"; replaying the log agrees ({seconds(E)})."
    return told + f"; replaying the log gives {seconds(E)} ({bounds}) instead of {seconds(own.expected_duration)}."


def _beside_waiting(duration: float, waiting: float) -> str:
    """A replayed duration beside that of waiting until the cutoff, as far as both are shown."""
    if seconds(duration) == seconds(waiting):
        return "as long as waiting until the cutoff"
    return "faster" if duration < waiting else "slower than waiting"


def evidence_checks(result: Analysis) -> list[tuple[str, str, str]]:
    """One row a check of the evidence: the question, what was found, what follows."""
    found, seen = result.decision.evidence, result.seen
    if found is None:
        return []
    rows = [_mixing(result)]
    unseen = "cannot be seen: the log has no submission times"
    depends = found.dependence
    if depends is not None:
        told = f"{'yes' if depends.found else 'no'}: lag-1 rank correlation {depends.lag1:.2f}"
        rows.append(
            ("Do slow probes follow slow ones?", told, "a new attempt is slow too" if depends.found else "fine")
        )
    if found.drift is not None:
        many = len(found.drift.changes)
        told = ", ".join(f"{change.kind}" + (f" at {str(change.at)[:16].replace('T', ' ')}" if change.at else "")
                         for change in found.drift.changes[:4]) or "no change"  # fmt: skip
        cycle = found.drift.daily_cycle
        told += f"; the slowest hour of the day is {cycle:.2g} × the fastest" if cycle else ""
        rows.append(("Did the system change?", told, "see latfit drift" if many or cycle else "fine"))
    if found.censoring.share or found.censoring.informative:
        common = found.censoring.common_time
        told = f"{100 * found.censoring.share:.3g} %" + (f", most at {seconds(common)}" if common is not None else "")
        rows.append(
            ("How many were given up?", told, "a rule of the system" if found.censoring.informative else "fine")
        )
    if found.replay is not None and found.replay.at:
        here, wait = found.replay.at[0], found.replay.waiting.expected_duration
        bounds = between(here.low, here.high)
        told = (
            f"{seconds(here.timeout)} takes {seconds(here.expected_duration)} a job ({bounds}), waiting {seconds(wait)}"
        )
        rows.append(("What would it have brought on this log?", told, _beside_waiting(here.expected_duration, wait)))
    elif seen is None or seen.submitted is None:
        rows.append(("Dependence, drift and replay", unseen, "trust it less"))
    return [row for row in rows if row is not None]


def _mixing(result: Analysis) -> tuple[str, str, str] | None:
    found, question = result.decision.evidence, "Is it one population?"
    if found and found.mixing is not None:
        mixed = found.mixing
        told = (f"the column {mixed.column.name} explains {100 * mixed.share:.0f} % of how the latencies rank "
                f"({counted(mixed.groups, 'group')})")  # fmt: skip
        harm = mixed.harmed is not None or "mixed" in result.timeout.withheld
        return question, told, "decide by group" if harm else "one timeout still serves all"
    columns = result.seen.columns if result.seen else {}
    told = "no column of the log explains the latencies" if columns else "the log has no column that could tell"
    return question, told, "fine" if columns else "not known"
