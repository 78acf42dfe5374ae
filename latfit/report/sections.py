"""Everything that is said about an analysis, written once for the terminal, Markdown, the page and notebooks."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from latfit.analysis import Analysis, Group
from latfit.decision import Decision, FittedLaw, Recommendation
from latfit.errors import counted, printable
from latfit.fitting import JointRatio
from latfit.outliers import OutlierRatio
from latfit.report.layout import (
    LONGEST_KEY,
    WORDS,
    Number,
    Section,
    as_markdown,
    as_text,
    between,
    in_one_unit,
    number,
    p_value,
    percent,
    shortened,
)
from latfit.restart.retry import Retry
from latfit.sample import LatencySample
from latfit.units import seconds, times_in_words

REPLAY_AGREES = 0.1  # largest relative difference between a replay and the formula that counts as agreement
TELLING_OPTIMISM = 0.01  # the corrected duration is shown if it differs from the plain one by more than this share
BRIEF_GROUPS = 5  # rows of the table of groups in the short report


@dataclass(frozen=True)
class Advice:
    """A decision in a few lines; `action` ends in `target`, which is a time, a column, or empty.

    `tone` is what there is to do: `set` a schedule, `wait`, or `ask` for something that the log does not tell.
    `figures` are named statements; a caution is a message and a remedy, a step a command and what it is for.
    """

    tone: Literal["set", "wait", "ask"]
    action: str
    target: str
    log: tuple[str, ...]
    reasons: tuple[str, ...] = ()
    figures: tuple[tuple[str, str], ...] = ()
    cautions: tuple[tuple[str, str], ...] = ()
    steps: tuple[tuple[str, str], ...] = ()

    @property
    def headline(self) -> str:
        return f"{self.action} {self.target}".rstrip()

    def sections(self) -> list[Section]:
        rows = [("why", " ".join(self.reasons))] if self.reasons else []
        rows += [*self.figures, *(("caution", f"{_sentence(text)} {remedy}".strip()) for text, remedy in self.cautions)]
        rows += [("next" if not at else "", f"{step}  # {why}") for at, (step, why) in enumerate(self.steps)]
        return [Section("", self.log), Section(self.headline, columns=("", ""), rows=tuple(rows), tone=self.tone)]


def to_text(result: Analysis, *, full: bool = False, width: int = 80) -> str:
    r"""The report as plain text in which a terminal finds no command: about 20 lines, or all of it if `full`.

    >>> import latfit
    >>> text = to_text(latfit.analyze(latfit.example_log(), resamples=0, test=False))
    >>> text.split("\n\n")[1].splitlines()[0]
    'Resubmit after 358 s and 716 s, then wait'
    """
    return as_text(sections(result, full=full), width=width)


def to_markdown(result: Analysis, *, figures: tuple[str, ...] = ()) -> str:
    """The report as Markdown, with links to `figures`; what came from the log is escaped."""
    return as_markdown(sections(result, full=True), heading=f"latfit: {result.facts.path}", figures=figures)


def sections(result: Analysis, *, full: bool = False, groups: int | None = BRIEF_GROUPS) -> list[Section]:
    """The report of an analysis, the decision first and at most so many `groups`; if `full`, what it rests on too."""
    report = advice(result).sections()
    if result.groups:
        report.append(groups_section(result, None if full else groups))
    if not full:
        return report
    report.append(formula_section(result))
    if checks := evidence_checks(result):
        rows = tuple((question, f"{finding}: {verdict}") for question, finding, verdict in checks)
        report.append(Section("Evidence", columns=("", ""), rows=rows))
    if result.warnings:
        warnings = tuple(f"{warning.code}: {warning.message}" for warning in result.warnings)
        report.append(Section("Warnings", warnings, as_items=True))
    report += [_outliers_section(result), _latency_section(result)]
    return [*report, _fits_section(result.decision.fits)] if result.decision.fits else report


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def advice(result: Analysis) -> Advice:
    """What to do, why, what it brings, how sure that is, and what to run next.

    >>> import latfit
    >>> advice(latfit.analyze(latfit.example_log(), resamples=0, test=False)).headline
    'Resubmit after 358 s and 716 s, then wait'
    """
    chosen, retry, decision = result.timeout, result.timeout.retry, result.decision
    codes = (*_fixed_fate(result), *chosen.withheld)
    tone: Literal["set", "wait", "ask"] = "set"
    figures: list[tuple[str, str]] = []
    reasons = [] if chosen.verdict != "withheld" else _withheld_reasons(result)
    if retry is not None:
        action, target = "Resubmit after", f"{times_in_words(retry.timeouts)}, then wait"
        waiting, duration, worst = in_one_unit(retry.waiting, retry.expected_duration, retry.worst_duration)
        gain = f"{waiting} → {duration} a job if retries are independent, {100 * retry.gain:.0f} % less"
        if retry.gain_interval:
            low, high = (f"{100 * end:.0f}" for end in retry.gain_interval)
            gain += f" (95 % interval {low} to {high} %)"
        figures = [("expect", f"{gain}; {retry.submissions:.2f} submissions a job.")]
        loss = f"at worst {worst} a job, {100 * retry.worst_loss:.0f} % more than waiting"
        figures.append(("guarantee", f"{loss}, even if every retry takes as long as the first attempt would have."))
    else:
        action, target, tone = *_without_schedule(result, codes), "wait"
        if not _fixed_fate(result) and (set(codes) & set(WORDS["headlines"]) or _all_zero(result)):
            tone = "ask"
        reasons = [*_why_waiting(result), *reasons]
        if tone == "wait" and chosen.formula.at_cutoff is not None:
            figures.append(("expect", f"{seconds(chosen.formula.at_cutoff)} a job, as by waiting today."))
    if now := decision.current:
        endless = now.expected_duration is None
        duration = "jobs would never end" if endless else f"{seconds(now.expected_duration)} a job"
        by = "" if chosen.verdict == "finite" and retry else ", if attempts were independent"
        figures.append(("today", f"a timeout of {seconds(now.timeout)}, repeated without limit: {duration}{by}."))
    figures.append(("confidence", _confidence(result)))
    return Advice(
        tone,
        action,
        target,
        _log_lines(result),
        tuple(reasons),
        tuple(figures),
        _cautions(result),
        _steps(result, codes),
    )


def _log_lines(result: Analysis) -> tuple[str, ...]:
    facts, counts = result.facts, result.decision.counts
    times = None if result.seen is None else result.seen.submitted
    lines = f"{facts.path} ({facts.format}): {counted(sum(counts.values()), facts.kind.removesuffix('s'))}"
    if times is not None and np.isfinite(times).any():
        first, last = (np.datetime64(int(end), "s") for end in (np.nanmin(times), np.nanmax(times)))
        span = seconds(float((last - first) / np.timedelta64(1, "s")))
        lines += f" from {str(first)[:16].replace('T', ' ')} to {str(last)[:16].replace('T', ' ')} UTC ({span})"
    outcomes = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    unit = f"; latency in {facts.unit} ({WORDS['unit_evidence'].get(facts.unit_evidence, facts.unit_evidence)})"
    return (f"{lines}; {outcomes}{unit if facts.unit and facts.unit_evidence else ''}.",)


def _confidence(result: Analysis) -> str:
    """What was checked and agrees, what speaks against the schedule most, and what could not be checked."""
    evidence, probes, retry = result.decision.evidence, result.seen, result.timeout.retry
    counts = counted(sum(result.decision.counts.values()), "probe")
    if evidence is None or probes is None:
        return f"{counts} without columns and times: whether retries are independent cannot be checked."
    world, replay = evidence.binding_world, evidence.replay
    parts = []
    if retry is not None and world is not None and world.kind != "independent" and world.ratio is not None:
        change = f"{100 * abs(1 - world.ratio):.0f} % {'less' if world.ratio < 1 else 'more'} than by waiting"
        kinds = {"job": "job", "time": "neighbours in time", "spell": "slow spells"}
        reading = f"by {kinds.get(world.kind, world.name)}"
        parts.append(f"in the least favourable reading of the log ({reading}) jobs take {change}")
    elif world is not None and world.kind == "independent" and retry is not None:
        parts.append("attempts look independent")
    if replay is not None and replay.at and retry is not None and result.timeout.verdict == "finite":
        E, formula = replay.at[0].expected_duration, result.timeout.expected_duration or math.nan
        agrees = abs(E / formula - 1) <= REPLAY_AGREES
        finding = "agrees" if agrees else f"gives {seconds(E)} instead of {seconds(formula)}"
        parts.append(f"replaying the log {finding}")
    checked = [*evidence.columns_used[:4], *(["order in time"] if probes.submitted is not None else [])]
    parts.append(f"checked {', '.join(checked)} on {counts}" if checked else f"nothing to check on {counts}")
    timed, outcomes = probes.submitted is not None, probes.facts.has_outcomes
    known = {"columns": evidence.columns_used, "times": timed, "outcomes": outcomes}
    if unseen := [name for name, value in known.items() if not value]:
        parts.append(f"the log has no {' or '.join(unseen)}")
    return _sentence("; ".join(parts))


def _cautions(result: Analysis) -> tuple[tuple[str, str], ...]:
    """The two most important warnings that the verdict has not said already."""
    codes = result.timeout.withheld
    if fixed := _fixed_fate(result):
        codes = (*fixed, "not-identified", "mixed", "dependence")
    messages = {warning.code: warning.message for warning in result.warnings if warning.code not in codes}
    if "mixed" in codes:
        messages.pop("groups-differ", None)
    return tuple((messages[code], WORDS["remedies"][code]) for code in WORDS["remedies"] if code in messages)[:2]


def _steps(result: Analysis, codes: Sequence[str]) -> tuple[tuple[str, str], ...]:
    log = "LOG" if result.seen is None else shlex.quote(printable(result.facts.path))
    mixing = result.decision.evidence.mixing if result.decision.evidence else None
    first = ("latfit settings TOOL " + log, "what to paste; latfit settings lists the tools")
    if result.timeout.retry is None:
        decided = next((group.key for group in result.groups if _retry(group.decision)), None)
        if decided is not None:
            where = " ".join(f"--where {shlex.quote(f'{name}={value}')}" for name, value in decided.items())
            first = (f"latfit analyze {log} {where}", "one group alone")
        elif _fixed_fate(result):
            first = (f"latfit drift {log}", "when waits are long, and whether that changes")
        elif "not-identified" in codes:
            first = (f"latfit analyze {log} --cost 5", "if a restart costs 5 s")
        elif {"no-outcomes", "few-completions"} & set(codes):
            first = (f"latfit read {log}", "how each column was read")
        elif "mixed" in codes and mixing is not None and not result.groups:
            first = (f"latfit analyze {log} --by {shlex.quote(mixing.column.name)}", "a decision for each group")
        else:
            first = (f"latfit compare {log}", "hedging and other strategies")
    return (first, (f"latfit analyze {log} --full", "laws, quantiles, evidence; -o DIR writes the page"))


def _without_schedule(result: Analysis, codes: Sequence[str]) -> tuple[str, str]:
    if _all_zero(result):
        return "Record finer times first", ""
    if _some_group_decided(result):
        return "Decide by", ", ".join(result.by)
    return next((WORDS["headlines"][code] for code in codes if code in WORDS["headlines"]), "Wait"), ""


def _fixed_fate(result: Analysis) -> tuple[str, ...]:
    """Why a retry cannot be a new draw, by the nature of the log: `queue` or `work`."""
    facts = None if result.seen is None else result.seen.facts
    return tuple(code for code in ("queue", "work") if facts is not None and getattr(facts, code))


def _why_waiting(result: Analysis) -> list[str]:
    evidence = result.decision.evidence
    world = evidence.binding_world if evidence else None
    if world is None or {"no-outcomes", "censored"} & set(result.timeout.withheld) or _fixed_fate(result):
        return []
    reason = WORDS["why_waiting"].get(world.kind, f"Latencies differ by {world.name}, and a retry stays where it was.")
    if world.kind != "independent" and world.ratio is not None and 1 < world.ratio < math.inf:
        reason += f" The best schedule would take {world.ratio:.3g} × as long as waiting."
    return [reason]


def formula_section(result: Analysis) -> Section:
    """What the formula gives for one timeout that is repeated without limit: the papers' answer."""
    chosen = result.timeout.formula
    title = "If attempts were independent" if chosen is not result.timeout else "One timeout, repeated without limit"
    if chosen.timeout is None:
        verdicts = {"never": "No timeout helps.", "any": "The timeout does not matter."}
        return Section(title, (verdicts.get(chosen.verdict, "The formula gives no timeout."),))
    bounds, within = chosen.intervals, chosen.within_1pct
    best = seconds(chosen.timeout)
    best += f" (95 % interval {between(*bounds.timeout)})" if bounds else ""
    best += f"; {between(*within)} takes at most 1 % longer" if within and within[0] != within[1] else ""
    duration = f"{seconds(fair_duration(chosen))} a job"
    duration += f" (95 % interval {between(*bounds.expected_duration)})" if bounds else ""
    rows = [("best timeout", best), ("mean duration", duration)]
    factor = chosen.speed_up_vs_cutoff
    if factor is not None and float(f"{factor:.3g}") > 1 and chosen.timeout != chosen.cutoff:  # as it is written
        gain = f"{factor:.3g} × faster than {seconds(chosen.at_cutoff)} by waiting until the cutoff"
        gain += f" (95 % interval {bounds.speed_up[0]:.3g} to {bounds.speed_up[1]:.3g})" if bounds else ""
        rows.append(("gain", gain))
    if chosen.submissions is not None:
        rows.append(("load", f"{chosen.submissions:.2f} submissions a job"))
    both = chosen.figures, chosen.figures_at_cutoff
    last, at_cutoff = (figures.quantiles.get("0.99") if figures else None for figures in both)
    if last is not None:
        instead = f" ({seconds(at_cutoff)} by waiting until the cutoff)" if at_cutoff else ""
        rows.append(("99 % of jobs", f"done within {seconds(last)}{instead}"))
    return Section(title, tuple(_how_sure(chosen)), ("", ""), tuple(rows))


def fair_duration(chosen: Recommendation) -> float | None:
    """E_J at the timeout; without the optimism of having chosen the minimum where that is more than 1 %."""
    plain, corrected = chosen.expected_duration, chosen.expected_duration_corrected
    return corrected if plain and corrected and abs(corrected / plain - 1) > TELLING_OPTIMISM else plain


def _how_sure(chosen: Recommendation) -> list[str]:
    notes = []
    if fair_duration(chosen) != chosen.expected_duration:
        why = "which is optimistic because the timeout was chosen as their minimum"
        notes.append(f"The data alone give {seconds(chosen.expected_duration)}, {why}.")
    if chosen.within_5pct is not None:
        latest = chosen.within_5pct[1]
        late = "any later timeout" if latest == math.inf else f"waiting up to {seconds(latest)}"
        notes.append(f"Too late is safer than too early: {late} costs at most 5 % more.")
    if chosen.exact_timeout is not None and chosen.exact_timeout != chosen.timeout:
        earlier = chosen.exact_timeout < (chosen.timeout or 0.0)
        why = "; it rests on fewer completions, and too early costs more than too late" if earlier else ""
        notes.append(f"The plain minimum of the data is at {seconds(chosen.exact_timeout)}{why}.")
    return notes


def _withheld_reasons(result: Analysis) -> list[str]:
    messages = {warning.code: warning.message for warning in reversed(result.decision.warnings)}
    reasons = []
    for code in _fixed_fate(result) or result.timeout.withheld:
        remedy = f" {WORDS['remedies'][code]}" if code in WORDS["remedies"] and code != "mixed" else ""
        if code == "few-completions" or (code in WORDS["reasons"] and _all_zero(result)):
            reasons.append(_sentence(messages.get(code, code)))
        elif code in WORDS["reasons"]:
            reasons.append(WORDS["reasons"][code] + remedy)
        elif code == "mixed" and result.timeout.retry is not None:
            reasons.append(f"Repeat it no further: {messages.get(code, 'the log mixes different populations')}.")
    return reasons


def _some_group_decided(result: Analysis) -> bool:
    return any(_retry(group.decision) for group in result.groups)


def _all_zero(result: Analysis) -> bool:
    latency = result.decision.latency
    return latency is not None and latency.max == 0


def evidence_checks(result: Analysis) -> list[tuple[str, str, str]]:
    """One row a check of whether the formula applies: the question, what the log shows, what follows."""
    evidence, probes = result.decision.evidence, result.seen
    if evidence is None or probes is None:
        return []
    finding, verdict = "the log has no column that could explain the latencies", "not known"
    if (mixing := evidence.mixing) is not None:
        finding = f"the column {mixing.column.name} explains {100 * mixing.share:.0f} % of how the latencies rank "
        finding += f"({counted(mixing.groups, 'group')})"
        harm = mixing.harmed is not None or "mixed" in result.timeout.withheld
        verdict = "one timeout for all does harm" if harm else "one timeout still serves all"
    elif probes.columns:
        finding, verdict = "no column of the log explains the latencies", "fine"
    rows = [("Is it one population?", finding, verdict)]
    if evidence.dependence is not None:
        depends, lag1 = evidence.dependence.found, evidence.dependence.lag1
        finding = f"slow probes {'' if depends else 'do not '}follow slow ones (lag-1 rank correlation {lag1:.2f})"
        rows.append(("Do slow probes follow slow ones?", finding, "a new attempt is slow too" if depends else "fine"))
    if evidence.drift is not None:
        changes, cycle = evidence.drift.changes, evidence.drift.daily_cycle
        dates = [f" at {str(change.at)[:16].replace('T', ' ')}" if change.at else "" for change in changes[:4]]
        kinds = ", ".join(f"{change.kind}{date}" for change, date in zip(changes, dates, strict=False))
        finding = f"{counted(len(changes), 'change')}: {kinds}" if changes else "no change"
        finding += f"; the slowest hour of the day takes {cycle:.2g} × the fastest" if cycle else ""
        rows.append(("Did the system change?", finding, "see latfit drift" if changes or cycle else "fine"))
    censoring = evidence.censoring
    if censoring.share or censoring.informative:
        common = "" if censoring.common_time is None else f", most at {seconds(censoring.common_time)}"
        finding = f"{100 * censoring.share:.3g} % were given up{common}"
        rows.append(("How many were given up?", finding, "a rule of the system" if censoring.informative else "fine"))
    if evidence.replay is not None and evidence.replay.at:
        at, waiting = evidence.replay.at[0], evidence.replay.waiting.expected_duration
        finding = f"replayed on the log itself, {seconds(at.timeout)} takes {seconds(at.expected_duration)} a job "
        finding += f"({between(at.low, at.high)}), waiting {seconds(waiting)}"
        compared = "faster" if at.expected_duration < waiting else "slower than waiting"
        alike = seconds(at.expected_duration) == seconds(waiting)
        rows.append(("What would it have brought on this log?", finding, "as long as waiting" if alike else compared))
    elif probes.submitted is None:
        finding = "there are no submission times to check dependence, drift and replay"
        rows.append(("Dependence, drift and replay", finding, "trust it less"))
    return rows


def still_out(ratio: OutlierRatio, sample: LatencySample, when: str) -> str:
    """The share still out at the cutoff: an estimate, unlike the count, if some failed or were given up before."""
    sure = f"95 % interval {100 * ratio.low:.2f} to {percent(ratio.high)}, {ratio.method}"
    count = f"{ratio.count} seen to be out"
    if ratio.method == "wilson":
        probes = counted(ratio.n, "probe", "was", "were")
        return f"{percent(ratio.estimate)} of {probes} still out at {when} ({sure}; {count})."
    before = " or ".join(["failed"] * bool(sample.failed.total) + ["been given up"] * bool(sample.censored_early))
    estimate = f"An estimated {percent(ratio.estimate)} of {counted(ratio.n, 'probe')}"
    return f"{estimate} would still be out at {when} if none had {before} before ({sure}; {count})."


def jointly(joint: JointRatio | None) -> list[str]:
    """The outlier ratio as estimated together with a law, if it was."""
    if joint is None:
        return []
    interval = f"95 % interval {100 * joint.low:.2f} to {percent(joint.high)}"
    return [f"Estimated together with the law {joint.law}: {percent(joint.estimate)} ({interval})."]


def _outliers_section(result: Analysis) -> Section:
    ratio, sample, cutoff = result.decision.outliers, result.decision.sample, result.decision.cutoff
    assert ratio is not None
    assert cutoff is not None
    assert sample is not None
    share = still_out(ratio, sample, f"the cutoff of {seconds(ratio.cutoff)}")
    return Section("Outliers", (share, f"The cutoff: {cutoff.reason}.", *jointly(result.decision.joint)))


def _latency_section(result: Analysis) -> Section:
    latency, resolution = result.decision.latency, result.decision.whole.resolution
    clock = f"The clock has steps of {seconds(resolution)}." if resolution else "The clock is fine."
    if latency is None:
        return Section("Latency", (clock,))
    moments = f"mean {seconds(latency.mean)}, standard deviation {seconds(latency.std)}"
    sentence = f"Those that returned: {moments}, from {between(latency.min, latency.max)}. {clock}"
    sentences = [sentence]
    if latency.variation is not None:
        low, high = latency.variation_interval or (latency.variation, latency.variation)
        interval = f" ({low:.2f} to {high:.2f})" if latency.variation_interval else ""
        helps = "above 1, so some timeout lowers the mean of independent attempts even if nothing is lost"
        meaning = helps if low > 1 else "below 1, so this alone is no reason to cancel" if high < 1 else "about 1"
        sentences.append(f"Coefficient of variation {latency.variation:.2f}{interval}: {meaning}.")
    columns = tuple(f"{100 * float(q):g} %" for q in latency.quantiles)
    return Section("Latency", tuple(sentences), columns, (tuple(map(seconds, latency.quantiles.values())),), keys=0)


def _fits_section(fits: tuple[FittedLaw, ...]) -> Section:
    columns = ("law", "parameters", "rho %", "BIC−", "KS", "p known", "p boot", "timeout", "regret")
    least = min((fitted.fit.bic for fitted in fits if fitted.fit.bic is not None), default=0.0)
    rows = tuple(_fit_row(fitted, least) for fitted in fits if fitted.fit.error is None)
    failed = ", ".join(_law_name(fitted) for fitted in fits if fitted.fit.error is not None)
    sentences = [
        "BIC− is the distance from the best; p known takes the parameters as known (as the paper does), p boot refits "
        "every resample and is the honest one; regret is what the law's timeout costs on the data."
    ]
    sentences += [f"Could not be fitted: {failed} (--json says why)."] if failed else []
    return Section("Fitted laws, best first", tuple(sentences), columns, rows, below="parameters")


def _fit_row(fitted: FittedLaw, least: float) -> tuple[str, ...]:
    fit, ks, optimum, regret = fitted.fit, fitted.ks, fitted.optimum, fitted.regret
    timeout = {"never": "none", "any": "any", "immediate": "0"}.get(optimum.verdict, "") if optimum else ""
    if optimum and optimum.timeout and not timeout:
        timeout = seconds(optimum.timeout)
    cost = "" if regret is None else "∞" if regret == math.inf else f"{100 * regret:.1f} %"
    return (
        _law_name(fitted),
        fit.describe(3, " "),
        f"{100 * (fit.rho or 0):.2f}",
        "" if fit.bic is None else f"{fit.bic - least:.0f}",
        f"{ks.statistic:.3f}" if ks else "",
        p_value(ks.p_asymptotic if ks else None),
        p_value(ks.p_bootstrap if ks else None),
        timeout,
        Number(cost, regret),
    )


def _law_name(fitted: FittedLaw) -> str:
    return fitted.fit.name if fitted.fit.method == "mle" else f"{fitted.fit.name} {fitted.fit.method}"


def shown_groups(result: Analysis, most: int | None = None) -> list[Group]:
    """The groups with enough probes for a decision: those with a schedule first, then by size."""
    large = [group for group in result.groups if not _too_few(group.decision)]
    large.sort(key=lambda group: (_retry(group.decision) is None, -sum(group.decision.counts.values())))
    return large[:most]


def groups_section(result: Analysis, most: int | None = None) -> Section:
    """The decision of each group and of all: schedules first, at most `most` groups; small ones are counted."""
    large = shown_groups(result)
    names = list(result.groups[0].key)
    pooled = ("all", *[""] * (len(names) - 1), *_group_cells(result.decision), "")
    figures = ("probes", "out", "resubmit after", "takes", "waiting", "at worst", "own")
    sentences = [_groups_summary(result)]
    if most is not None and len(large) > most:
        sentences.append(f"{counted(len(large) - most, 'group', 'is', 'are')} not shown: see --full or results.json.")
    if few := len(result.groups) - len(large):
        sentences.append(f"Too few probes for a decision: {counted(few, 'group')}.")
    columns = (*(shortened(printable(name), LONGEST_KEY) for name in names), *figures)
    rows = (*map(_group_row, large[:most]), pooled)
    return Section("By group", tuple(sentences), columns, rows, keys=len(names))


def _retry(decision: Decision) -> Retry | None:
    return decision.timeout.retry if decision.timeout else None


def _too_few(decision: Decision) -> bool:
    return decision.timeout is None or "few-completions" in decision.timeout.withheld


def _groups_summary(result: Analysis) -> str:
    if "mixed" in result.timeout.withheld:
        instead = "set each group's own schedule" if _some_group_decided(result) else "wait in every group"
        if result.timeout.retry is not None:
            return f"The schedule above holds for all; better, {instead}."
        return f"One timeout for all would be wrong here; {instead}."
    differing = sum(group.differs for group in result.groups)
    if not differing:
        return "No group needs a timeout of its own."
    need, its = ("needs", "its") if differing == 1 else ("need", "their")
    return (
        f"{differing} of {counted(len(result.groups), 'group')} {need} a timeout of {its} own (*): {its} interval and "
        "the pooled one do not overlap."
    )


def _group_row(group: Group) -> tuple[str, ...]:
    names = [shortened(printable(value), LONGEST_KEY) for value in group.key.values()]
    return (*names, *_group_cells(group.decision), "*" if group.differs else "")


def _group_cells(decision: Decision) -> tuple[str, ...]:
    """Probes, the share still out, the schedule, what a job takes with it and by waiting, and the largest loss."""
    out, retry, probes = decision.outliers, _retry(decision), sum(decision.counts.values())
    first = Number(str(probes), probes), number(out.estimate if out else None, percent)
    if retry is None:
        return *first, Number("too few" if _too_few(decision) else "wait", None), *[Number("", None)] * 3
    return (
        *first,
        Number(times_in_words(retry.timeouts), retry.timeouts[0]),
        number(retry.expected_duration),
        number(retry.waiting),
        Number(f"+{100 * retry.worst_loss:.0f} %", retry.worst_loss),
    )
