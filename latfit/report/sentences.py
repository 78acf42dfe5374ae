"""A decision in sentences: what to do first, then what it rests on."""

from __future__ import annotations

import math
import re

from latfit.analysis import Analysis
from latfit.decision import Decision, Recommendation
from latfit.decision.warn import SMALL_GAIN
from latfit.errors import counted
from latfit.evidence.attempts import LaterAttempts
from latfit.laws import Empirical
from latfit.outliers import OutlierRatio
from latfit.restart import expected_duration
from latfit.sample import LatencySample
from latfit.units import seconds

NO_BREAK = "\u00a0"
NOT_THE_SAME = 0.01  # the corrected duration is told where it differs by more


def between(low: float | None, high: float | None) -> str:
    """A range of times; ∞ to ∞ is no timeout."""
    if low == math.inf:
        return "none"
    if high is None or high == math.inf:
        return f"{seconds(low)} to no limit"
    first, last = seconds(low), seconds(high)
    unit = last.rsplit(" ", 1)[-1]
    return f"{first.removesuffix(' ' + unit) if first.count(' ') == 1 else first} to {last}"


def kept_together(sentence: str) -> str:
    """Numbers that are not torn from their units at the end of a line, nor the parts of a duration from each other."""
    units = re.sub(r"(?<=\d) (?=(?:ns|µs|ms|s|min|h|d|%|×)(?:\W|$))", NO_BREAK, sentence)
    return re.sub(rf"(?<={NO_BREAK}[hd]) (?=\d+{NO_BREAK}(?:min|h)(?:\W|$))", NO_BREAK, units)


def percent(share: float) -> str:
    """A share with two decimals."""
    return f"{100 * share:.2f} %"


def decision(result: Analysis) -> list[str]:
    """What to do, what it brings, how sure that is."""
    own = result.timeout
    if own.verdict == "withheld":
        return [*why_withheld(result), *_formula(own), *_now(result.decision, withheld=True)]
    sentences = [_what_to_set(own, result.decision), _gain(own), _load(own)]
    if "not-identified" in result.decision.codes:
        sentences[1] = f"If restarts were free: e{sentences[1][1:]}"
    if own.intervals and own.verdict == "finite" and own.basis == "independent":
        told = between(*own.intervals.timeout).replace(" to ", " and ")
        sentences.append(f"The best timeout lies between {told} (95 %).")
    if own.verdict == "finite" and own.within_5pct is not None and own.basis == "independent":
        later = own.within_5pct[1]
        told = "any later timeout" if later == math.inf else f"waiting up to {seconds(later)}"
        sentences.append(f"Too late is safer than too early: {told} costs at most 5 % more.")
    if own.exact_timeout is not None and own.timeout is not None and own.exact_timeout != own.timeout:
        earlier = own.exact_timeout < own.timeout
        why = "; it rests on fewer completions, and too early costs more than too late" if earlier else ""
        sentences.append(f"The plain minimum of the data is at {seconds(own.exact_timeout)}{why}.")
    return [sentence for sentence in (*sentences, *_now(result.decision)) if sentence]


def _what_to_set(own: Recommendation, made: Decision) -> str:
    if own.verdict != "finite":
        return {
            "never": "Set no timeout: cancelling and resubmitting does not help.",
            "any": "Any timeout will do: it does not change how long jobs take.",
            "immediate": "The shorter the timeout the better; what a restart costs decides (give --cost).",
        }.get(own.verdict, "")
    if own.basis == "replay":
        return (f"Set the timeout to {seconds(own.timeout)}: replayed on the log itself, jobs take "
                f"{seconds(own.replayed)} instead of {seconds(_waiting(made))} by waiting.")  # fmt: skip
    if "not-identified" in made.codes:
        free = f"if restarts were free, {seconds(own.timeout)}"
        return f"The log alone does not tell what to set ({free}): give --cost, the seconds that a restart costs."
    gain, bounds = own.speed_up_vs_cutoff, own.intervals
    if hardly_helps(own) and waits_for_lost(made):
        return f"Set the timeout to {seconds(own.timeout)}{_window(own.within_1pct)}: {_cost_of_waiting(own, made)}."
    if gain is not None and hardly_helps(own):
        worth = "nothing" if gain <= 1 else f"{100 * (gain - 1):.1f} %"
        sure = "" if bounds is None else f" (95 % interval {_more(bounds.speed_up[0])} to {_more(bounds.speed_up[1])})"
        best = f"the best, {seconds(own.timeout)}, gains {worth} over waiting until the cutoff"
        out = made.outliers
        if out is None or not out.count:
            return f"A timeout hardly helps: {best}{sure}. As an insurance it does no harm."
        return (f"Set some timeout: {percent(out.estimate)} of the probes did not return, and without a timeout a job "
                f"like that never ends. Which one hardly matters: {best} of {seconds(out.cutoff)}{sure}.")  # fmt: skip
    return f"Set the timeout to {seconds(own.timeout)}{_window(own.within_1pct)}."


def hardly_helps(own: Recommendation) -> bool:
    """Whether the best timeout gains less than 5 % over waiting until the cutoff, or perhaps nothing."""
    gain, bounds = own.speed_up_vs_cutoff, own.intervals
    return gain is not None and (gain < SMALL_GAIN or (bounds is not None and bounds.speed_up[0] <= 1))


def waits_for_lost(made: Decision) -> bool:
    """Whether some did not return, and the cutoff is but a latency of the log: nobody waits just until that."""
    return made.cutoff is not None and made.cutoff.assumed and made.outliers is not None and made.outliers.count > 0


def _cost_of_waiting(own: Recommendation, made: Decision) -> str:
    """What a timeout beyond the last return costs: E_J rises by S/F there, for every second."""
    assert made.outliers is not None
    assert made.sample is not None
    out, T = made.outliers, max(made.outliers.cutoff, own.timeout or 0.0)
    law = own.source or Empirical.of(made.sample)
    here, later = (float(expected_duration(law, t, cost=own.cost)) for t in (T, 2 * T))
    share = percent(out.estimate) if out.method == "wilson" else f"an estimated {percent(out.estimate)}"
    never = made.sample.lost == out.count
    after = "longer" if own.timeout == T else f"beyond {seconds(T)}"
    told = f"every second that you wait {after} costs {(later - here) / T:.2g} s a job"
    return f"{share} never return, and {told}" if never else f"{share} did not return, and if they never do, {told}"


def still_out(ratio: OutlierRatio, cut: LatencySample, when: str) -> tuple[str, str]:
    """Who is out at the cutoff, and how many were seen to be: two numbers where some ended before it otherwise."""
    probes = counted(ratio.n, "probe", "was", "were")
    if ratio.method == "wilson":
        return f"{percent(ratio.estimate)} of {probes} still out at {when}", f"{ratio.count} seen to be out"
    before = " or ".join(["failed"] * bool(cut.failed.total) + ["been given up"] * bool(cut.censored_early))
    estimated = f"An estimated {percent(ratio.estimate)} of {counted(ratio.n, 'probe')} would still be out at {when}"
    were = "was" if ratio.count == 1 else "were"
    return f"{estimated} if none had {before} before", f"{ratio.count} {were} seen to be out"


def _more(factor: float) -> str:
    return f"{100 * (factor - 1):.0f} %" if math.isfinite(factor) else "no limit"


def _waiting(made: Decision) -> float | None:
    log = made.evidence.replay if made.evidence else None
    return log.waiting.expected_duration if log else None


def _window(window: tuple[float, float] | None) -> str:
    return "" if window is None else f" (anything from {between(*window)} is within 1 %)"


def why_withheld(result: Analysis) -> list[str]:
    """Why there is no timeout, and what to do instead."""
    own, made = result.timeout, result.decision
    evidence = made.evidence
    told = []
    for code in own.withheld:
        if code == "mixed" and evidence and evidence.mixing:
            mixed = evidence.mixing
            hurt = (
                f": under one timeout for all, {mixed.harmed} would be slower than by waiting" if mixed.harmed else ""
            )
            own_rows = "; the table below has the decision of each" if result.groups else f" (--by {mixed.column.name})"
            if undecided(result):
                told.append(f"The log mixes different populations (by {mixed.column.name}){hurt}; and none of them "
                            "has a decision of its own.")  # fmt: skip
            elif mixed.known_afterwards:
                own_rows = "; the table below has the decision of each" if result.groups else ""
                told.append(f"Decide for the requests that you wait for, by {mixed.column.name}{own_rows}. The log "
                            f"mixes different populations{hurt}; which one a request belongs to shows only in its "
                            "answer, and asking again brings the same.")  # fmt: skip
            else:
                told.append(f"Decide by {mixed.column.name}{own_rows}. The log mixes different populations{hurt}.")
        elif code == "dependent" and evidence and evidence.attempts and evidence.attempts.harmful:
            told.append(_no_new_draw(evidence.attempts))
        elif code == "dependent" and evidence and evidence.slow_times and perhaps_faster(result):
            told.append(_said(made, "slow-times"))
        elif code == "dependent" and evidence and evidence.replay and perhaps_faster(result):
            here = evidence.replay.at[0]
            waiting = evidence.replay.waiting.expected_duration
            gain = f"{100 * here.gain_low:.0f} to {100 * here.gain_high:.0f} %"
            told.append("The log does not show that cancelling helps: replayed on "
                        f"it, {seconds(here.timeout)} takes {seconds(own.replayed)} a job instead of "
                        f"{seconds(waiting)} by waiting, which may be chance (a gain of {gain}).")  # fmt: skip
        elif code == "dependent" and evidence and evidence.replay:
            told.append("Do not cancel: a resubmitted job would have waited as long. Replayed on this log, a timeout "
                        f"of {seconds(_formula_timeout(own))} takes {seconds(own.replayed)} a job instead of "
                        f"{seconds(evidence.replay.waiting.expected_duration)} by waiting.")  # fmt: skip
        elif code in ("queue", "censored", "few-completions", "not-identified", "no-outcomes"):
            told.append(_said(made, code) if code == "few-completions" or all_zero(result) else _REASONS[code])
    first = "No timeout can be recommended from this log."
    return told if told and told[0].startswith(("Decide", "Do not")) else [first, *told]


def _no_new_draw(later: LaterAttempts) -> str:
    """What later attempts of the same jobs say against cancelling."""
    told = "Do not cancel: a second attempt of the same job is not a new draw. Later attempts complete at "
    told += f"{later.ratio:.2g} times the rate of first ones"
    if not math.isfinite(later.expected_duration):
        told += f", none of them within {seconds(later.timeout)} after a first one that was slower: cancelled there, "
        told += "such jobs would hardly ever end"
    else:
        told += f": with their law, {seconds(later.timeout)} takes {seconds(later.expected_duration)} a job"
        if not math.isfinite(later.if_jobs_differ):
            told += ", and jobs that are slow again and again would hardly ever end"
    if not math.isfinite(later.waiting):
        return f"{told}. No later attempt came back however long it was awaited: await the first one longer."
    return f"{told}. Awaited as long as in this log, jobs take {seconds(later.waiting)}."


def perhaps_faster(result: Analysis) -> bool:
    """Whether the formula's timeout is faster on the log itself, but not surely."""
    found = result.decision.evidence
    if found is None or found.replay is None or not found.replay.at or result.timeout.replayed is None:
        return False
    return bool(result.timeout.replayed < found.replay.waiting.expected_duration)


def undecided(result: Analysis) -> bool:
    """Whether there are groups, and every one of them lacks a decision too."""
    verdicts = [group.decision.timeout.verdict if group.decision.timeout else None for group in result.groups]
    return bool(verdicts) and all(verdict in (None, "withheld") for verdict in verdicts)


_REASONS = {
    "queue": "These are waits in a queue, and the log has no submission times to replay, or too few different ones: "
    "resubmitting loses the place in the queue, which no formula counts.",
    "censored": "More probes were given up than came back: what they would have taken is not known. Measure with a "
    "later cutoff.",
    "not-identified": "The clock is too coarse to tell which of the shortest waits is worth a restart: give --cost, "
    "the seconds that a restart costs.",
    "no-outcomes": "The best timeout would lie far below most latencies, among returns so quick that they may be "
    "errors, and the log does not say how a probe ended. Name the column that does with --column status=NAME; if every "
    "row is a good answer, say so: --column status=",
}


def all_zero(result: Analysis) -> bool:
    """Whether no latency is longer than the clock can see."""
    latency = result.decision.latency
    return latency is not None and latency.max == 0


def _said(made: Decision, code: str) -> str:
    told = next((w.message for w in made.warnings if w.code == code), code)
    return told[:1].upper() + told[1:] + "."


def _formula_timeout(own: Recommendation) -> float | None:
    return own.if_independent.timeout if own.if_independent else None


def _formula(own: Recommendation) -> list[str]:
    """What the formula would say, as what it is."""
    plain = own.if_independent
    if plain is None or plain.timeout is None:
        return []
    gain = plain.speed_up_vs_cutoff
    times = "" if gain is None else f"{gain:.3g} × faster" if is_faster(gain) else "no faster"
    faster = f", {times} than waiting until the cutoff" if times else ""
    return [f"Only if attempts were independent and alike would the formula hold: {seconds(plain.timeout)}{faster}."]


def _now(made: Decision, *, withheld: bool = False) -> list[str]:
    now = made.current
    if now is None:
        return []
    told = "jobs would never end"
    if now.expected_duration is not None and now.regret is not None:
        told = f"jobs take {seconds(now.expected_duration)}"
        told += " by the formula" if withheld else f", {100 * now.regret:.1f} % longer than with the best"
    return [f"Your current timeout of {seconds(now.timeout)}: {told}."]


def _gain(own: Recommendation) -> str:
    if own.basis == "replay":
        return f"The formula, which assumes independent attempts, says {seconds(own.expected_duration)}."
    bounds, E, fair = own.intervals, own.expected_duration, told_duration(own)
    text = f"Expected duration {seconds(E)}"
    if fair != E:
        text = f"Expected duration {seconds(fair)} (the data's {seconds(E)} is optimistic: it was chosen as the least)"
    if bounds:
        text += f", 95 % interval {between(*bounds.expected_duration)}"
    factor = own.speed_up_vs_cutoff
    if factor is None or own.verdict != "finite":
        return text + "."
    if own.timeout == own.cutoff:
        return text + "."
    if not is_faster(factor):
        return text + ", no less than when waiting until the cutoff."
    text += f", instead of {seconds(own.at_cutoff)} when waiting until the cutoff: {factor:.3g} × faster"
    return text + (f" ({bounds.speed_up[0]:.3g} to {bounds.speed_up[1]:.3g})." if bounds else ".")


def is_faster(factor: float) -> bool:
    """Whether a speed-up reads as one with three digits."""
    return float(f"{factor:.3g}") > 1


def told_duration(own: Recommendation) -> float | None:
    """E_J at the timeout; without the optimism of having chosen the minimum where that is more than 1 %."""
    E, fair = own.expected_duration, own.expected_duration_corrected
    return fair if E and fair and abs(fair / E - 1) > NOT_THE_SAME else E


def _load(own: Recommendation) -> str:
    parts = []
    if own.submissions is not None and own.verdict == "finite" and own.basis == "independent":
        parts.append(f"{own.submissions:.2f} submissions per job")
    here, end = own.figures, own.figures_at_cutoff
    last = here.quantiles.get("0.99") if here and own.basis == "independent" else None
    if last is not None:
        now = end.quantiles.get("0.99") if end and own.timeout != own.cutoff else None
        parts.append(f"99 % of jobs done within {seconds(last)}" + (f" ({seconds(now)} at the cutoff)" if now else ""))
    return "; ".join(parts) + "." if parts else ""


def evidence(result: Analysis) -> list[str]:
    """What the log says on whether the formula applies, in one sentence a check."""
    found = result.decision.evidence
    if found is None or result.seen is None:
        return []
    told = []
    if found.mixing is not None:
        mixed = found.mixing
        told.append(f"the column {mixed.column.name} explains {100 * mixed.share:.0f} % of how the latencies rank")
    elif result.seen.columns:
        told.append("no column of the log explains the latencies")
    follows = found.dependence
    if follows is not None:
        how = "follow slow ones" if follows.found else "do not follow slow ones"
        told.append(f"slow probes {how} (lag-1 rank correlation {follows.lag1:.2f})")
    if found.drift is not None:
        count = len(found.drift.changes)
        told.append(f"{counted(count, 'change')} found" if count else "no change found")
    if found.replay is not None and found.replay.at:
        here = found.replay.at[0]
        told.append(f"replayed on the log itself {seconds(here.timeout)} brings {seconds(here.expected_duration)} "
                    f"({between(here.low, here.high)})")  # fmt: skip
    elif result.seen.submitted is None:
        told.append("no submission times, so dependence, drift and replay cannot be seen")
    text = "; ".join(told)
    return [text[:1].upper() + text[1:] + "."] if told else []
