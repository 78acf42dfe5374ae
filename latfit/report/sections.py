"""Everything that is said about an analysis, written once for the terminal, Markdown, the page and notebooks."""

from __future__ import annotations

import math
from dataclasses import dataclass

from latfit.analysis import Analysis, Group
from latfit.decision import Decision, FittedLaw, Recommendation
from latfit.errors import counted, printable
from latfit.outliers import OutlierRatio
from latfit.report.layout import (
    LONGEST_KEY,
    Number,
    Section,
    as_markdown,
    as_text,
    between,
    p_value,
    percent,
    shortened,
)
from latfit.sample import LatencySample
from latfit.units import seconds, times_in_words

REPLAY_AGREES = 0.1  # largest relative difference between a replay and the formula that counts as agreement
TELLING_OPTIMISM = 0.01  # the corrected duration is shown if it differs from the plain one by more than this share
WITHHELD_HEADLINES = {
    "queue": "Wait: keep your place in the queue",
    "work": "Wait: a retry would do the same work again",
    "censored": "Measure with a later cutoff first",
    "few-completions": "Collect more probes first",
    "not-identified": "Say first what a restart costs",
    "no-outcomes": "Say first which outcomes are errors",
}
WITHHELD_REASONS = {
    "queue": "These are waits in a queue. Resubmitting loses the place in it, which no formula counts.",
    "work": "These are run times of tasks, not waits.",
    "dependent": "Repeated without limit, a timeout would be slower than waiting: a retry resembles the first attempt.",
    "censored": "More probes were given up than came back, so that it is not known how long they would have taken. "
    "Measure with a later cutoff.",
    "not-identified": "The clock is too coarse to show which of the shortest waits is worth a restart: give --cost, "
    "the seconds that a restart costs.",
    "no-outcomes": "The best timeout lies among returns so quick that they may be errors, and the log does not say how "
    "a probe ended. Name the column that does with --column status=NAME; if every row is a good answer, say so with "
    "--column status=",
}


def to_text(result: Analysis) -> str:
    """The report as plain text of at most 80 columns, in which a terminal finds no command.

    >>> import latfit
    >>> print(to_text(latfit.analyze(latfit.example_log(), resamples=0, test=False))[:53])
    DECISION
      Resubmit after 358 s and 716 s, then wait.
    """
    return as_text(sections(result))


def to_markdown(result: Analysis, *, figures: tuple[str, ...] = ()) -> str:
    """The report as Markdown, with links to `figures`; what came from the log is escaped."""
    return as_markdown(sections(result), heading=f"latfit: {result.facts.path}", figures=figures)


def sections(result: Analysis) -> list[Section]:
    """The report of an analysis, the decision first."""
    words = advice(result)
    first = f"{words.headline}. {' '.join(words.reasons)}".strip()
    report = [Section("Decision", (first, words.basis, *words.figures, *words.notes))]
    if checks := evidence_checks(result):
        report.append(Section("Evidence", (_sentence("; ".join(finding for _, finding, _ in checks)),)))
    if result.groups:
        report.append(groups_section(result))
    if result.warnings:
        warnings = tuple(f"{warning.code}: {warning.message}" for warning in result.warnings)
        report.append(Section("Warnings", warnings, as_items=True))
    report += [_outliers_section(result), _latency_section(result)]
    return [*report, _fits_section(result.decision.fits)] if result.decision.fits else report


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


@dataclass(frozen=True)
class Advice:
    """A decision in words; `action` ends in `target`, which is a time, a column, or empty."""

    action: str
    target: str
    reasons: tuple[str, ...]
    basis: str
    figures: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def headline(self) -> str:
        return f"{self.action} {self.target}".rstrip()


def advice(result: Analysis) -> Advice:
    """What to do, why, what it brings and how sure that is.

    >>> import latfit
    >>> advice(latfit.analyze(latfit.example_log(), resamples=0, test=False)).headline
    'Resubmit after 358 s and 716 s, then wait'
    """
    chosen, retry = result.timeout, result.timeout.retry
    withheld = chosen.verdict == "withheld"
    reasons = _withheld_reasons(result) if withheld else []
    figures: list[str] = []
    formula, notes = chosen.if_independent, []
    if formula is not None and formula.timeout is not None and not _fixed_fate(result):
        notes = [f"If attempts were independent, the formula would give {seconds(formula.timeout)}."]
    if retry is None:
        action, target = _without_schedule(result)
        reasons = [*_why_waiting(result), *reasons]
    else:
        action, target = "Resubmit after", f"{times_in_words(retry.timeouts)}, then wait"
        brings = (
            f"{seconds(retry.expected_duration)} a job instead of {seconds(retry.waiting)} by waiting if retries are "
            f"independent, at most {100 * retry.worst_loss:.0f} % slower than waiting if they are not."
        )
        reasons = [brings, *reasons]
        if not withheld:
            figures = _figures(chosen) if chosen.verdict == "finite" else []
            notes = _how_sure(chosen)
    if now := result.decision.current:
        cost = "jobs would never end"
        if now.expected_duration is not None and now.regret is not None:
            cost = f"jobs take {seconds(now.expected_duration)}"
            cost += " by the formula" if withheld else f", {100 * now.regret:.1f} % longer than with the best"
        notes.append(f"Your current timeout of {seconds(now.timeout)}: {cost}.")
    return Advice(action, target, tuple(reasons), _basis(result), tuple(figures), tuple(notes))


def _without_schedule(result: Analysis) -> tuple[str, str]:
    if _all_zero(result):
        return "Record finer times first", ""
    if _some_group_decided(result):
        return "Decide by", ", ".join(result.by)
    codes = (*_fixed_fate(result), *result.timeout.withheld)
    return next((WITHHELD_HEADLINES[code] for code in codes if code in WITHHELD_HEADLINES), "Wait"), ""


def _fixed_fate(result: Analysis) -> tuple[str, ...]:
    """Why a retry cannot be a new draw, by the nature of the log: `queue` or `work`."""
    facts = None if result.seen is None else result.seen.facts
    return tuple(code for code in ("queue", "work") if facts is not None and getattr(facts, code))


def _why_waiting(result: Analysis) -> list[str]:
    evidence = result.decision.evidence
    world = evidence.binding_world if evidence else None
    if world is None or {"no-outcomes", "censored"} & set(result.timeout.withheld) or _fixed_fate(result):
        return []
    reasons = {
        "independent": "No schedule gains enough for the loss that it risks if retries are not independent.",
        "job": "Attempts of the same job resemble each other, so a retry repeats what the first attempt met.",
        "time": "Slow probes come together, so a retry soon after meets the same.",
        "spell": "Slow probes come in spells, so a retry soon after meets the same.",
    }
    return [reasons.get(world.kind, f"Latencies differ by {world.name}, and a retry stays where it was.")]


def _figures(chosen: Recommendation) -> list[str]:
    bounds, factor, end = chosen.intervals, chosen.speed_up_vs_cutoff, chosen.figures_at_cutoff
    near = f" (anything from {between(*chosen.within_1pct)} takes at most 1 % longer)" if chosen.within_1pct else ""
    duration = f"Expected duration {seconds(fair_duration(chosen))}"
    duration += f", 95 % interval {between(*bounds.expected_duration)}" if bounds else ""
    if factor is not None and chosen.timeout != chosen.cutoff:
        if float(f"{factor:.3g}") > 1:  # as it is written
            duration += f", instead of {seconds(chosen.at_cutoff)} when waiting until the cutoff: {factor:.3g} × faster"
            duration += f" ({bounds.speed_up[0]:.3g} to {bounds.speed_up[1]:.3g})" if bounds else ""
        else:
            duration += ", no less than when waiting until the cutoff"
    load = [] if chosen.submissions is None else [f"{chosen.submissions:.2f} submissions per job"]
    last, at_cutoff = (each.quantiles.get("0.99") if each else None for each in (chosen.figures, end))
    if last is not None:
        instead = f" ({seconds(at_cutoff)} at the cutoff)" if at_cutoff and chosen.timeout != chosen.cutoff else ""
        load.append(f"99 % of jobs done within {seconds(last)}{instead}")
    best = f"Without a limit on retries the best timeout is {seconds(chosen.timeout)}{near}."
    return [best, f"{duration}.", *(["; ".join(load) + "."] if load else [])]


def fair_duration(chosen: Recommendation) -> float | None:
    """E_J at the timeout; without the optimism of having chosen the minimum where that is more than 1 %."""
    plain, corrected = chosen.expected_duration, chosen.expected_duration_corrected
    return corrected if plain and corrected and abs(corrected / plain - 1) > TELLING_OPTIMISM else plain


def _how_sure(chosen: Recommendation) -> list[str]:
    notes = []
    if fair_duration(chosen) != chosen.expected_duration:
        why = "which is optimistic because the timeout was chosen as their minimum"
        notes.append(f"The data alone give {seconds(chosen.expected_duration)}, {why}.")
    if chosen.verdict != "finite":
        return notes
    if chosen.intervals:
        interval = between(*chosen.intervals.timeout).replace(" to ", " and ")
        notes.append(f"The best timeout lies between {interval} (95 %).")
    if chosen.within_5pct is not None:
        latest = chosen.within_5pct[1]
        late = "any later timeout" if latest == math.inf else f"waiting up to {seconds(latest)}"
        notes.append(f"Too late is safer than too early: {late} costs at most 5 % more.")
    if chosen.exact_timeout is not None and chosen.timeout is not None and chosen.exact_timeout != chosen.timeout:
        earlier = chosen.exact_timeout < chosen.timeout
        why = "; it rests on fewer completions, and too early costs more than too late" if earlier else ""
        notes.append(f"The plain minimum of the data is at {seconds(chosen.exact_timeout)}{why}.")
    return notes


def _withheld_reasons(result: Analysis) -> list[str]:
    evidence = result.decision.evidence
    reasons = []
    for code in _fixed_fate(result) or result.timeout.withheld:
        if code == "mixed":
            column = f" (by {evidence.mixing.column.name})" if evidence and evidence.mixing else ""
            where = " The table below has the decision of each group." if _some_group_decided(result) else ""
            reasons.append(
                f"The log mixes different populations{column}: under one timeout for all, repeated without limit, some "
                f"would be slower than by waiting.{where}"
            )
        elif code == "few-completions" or (code in WITHHELD_REASONS and _all_zero(result)):
            messages = {warning.code: warning.message for warning in reversed(result.decision.warnings)}
            reasons.append(_sentence(messages.get(code, code)))
        elif code in WITHHELD_REASONS:
            reasons.append(WITHHELD_REASONS[code])
    return reasons


def _some_group_decided(result: Analysis) -> bool:
    return any(group.decision.timeout and group.decision.timeout.retry for group in result.groups)


def _all_zero(result: Analysis) -> bool:
    latency = result.decision.latency
    return latency is not None and latency.max == 0


def _basis(result: Analysis) -> str:
    chosen, counts, evidence = result.timeout, result.decision.counts, result.decision.evidence
    probes = counted(sum(counts.values()), "probe")
    if chosen.verdict == "withheld":
        return f"Basis: {probes}; the timeout of the formula is withheld ({', '.join(chosen.withheld)})."
    basis = f"Basis: the formula for independent attempts, on {probes} ({counts.get('completed', 0)} returned)"
    replayed = evidence.replay.at[0] if evidence and evidence.replay and evidence.replay.at else None
    if replayed is None or chosen.verdict != "finite" or not chosen.expected_duration:
        return basis + "; the log could not be replayed to check it."
    E, formula = replayed.expected_duration, chosen.expected_duration
    if math.isfinite(E) and abs(E / formula - 1) <= REPLAY_AGREES:
        return f"{basis}; replaying the log agrees ({seconds(E)})."
    interval = between(replayed.low, replayed.high)
    return f"{basis}; replaying the log gives {seconds(E)} ({interval}) instead of {seconds(formula)}."


def evidence_checks(result: Analysis) -> list[tuple[str, str, str]]:
    """One row a check of whether the formula applies: the question, what the log shows, what follows."""
    evidence, seen = result.decision.evidence, result.seen
    if evidence is None or seen is None:
        return []
    finding, verdict = "the log has no column that could explain the latencies", "not known"
    if (mixing := evidence.mixing) is not None:
        finding = f"the column {mixing.column.name} explains {100 * mixing.share:.0f} % of how the latencies rank "
        finding += f"({counted(mixing.groups, 'group')})"
        harm = mixing.harmed is not None or "mixed" in result.timeout.withheld
        verdict = "one timeout for all does harm" if harm else "one timeout still serves all"
    elif seen.columns:
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
        finding = f"{counted(len(changes), 'change')} found: {kinds}" if changes else "no change found"
        finding += f", but the slowest hour of the day is {cycle:.2g} × the fastest" if cycle else ""
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
        alike = seconds(at.expected_duration) == seconds(waiting)
        compared = "faster" if at.expected_duration < waiting else "slower than waiting"
        compared = "as long as waiting until the cutoff" if alike else compared
        rows.append(("What would it have brought on this log?", finding, compared))
    elif seen.submitted is None:
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


def _outliers_section(result: Analysis) -> Section:
    ratio, joint, cutoff = result.decision.outliers, result.decision.joint, result.decision.cutoff
    assert ratio is not None
    assert cutoff is not None
    assert result.decision.sample is not None
    sentences = [still_out(ratio, result.decision.sample, f"the cutoff of {seconds(ratio.cutoff)}")]
    sentences.append(f"The cutoff: {cutoff.reason}.")
    if joint:
        interval = f"{100 * joint.low:.2f} to {percent(joint.high)}"
        sentences.append(f"Estimated together with the law {joint.law}: {percent(joint.estimate)} ({interval}).")
    return Section("Outliers", tuple(sentences))


def _latency_section(result: Analysis) -> Section:
    latency, log, decision = result.decision.latency, result.facts, result.decision
    counts = ", ".join(f"{count} {status}" for status, count in decision.counts.items() if count)
    clock = f"clock {seconds(decision.whole.resolution)}" if decision.whole.resolution else "a fine clock"
    sentences = [f"{log.path} ({log.format}): {counts}; {clock}."]
    if latency is not None:
        quantiles = ", ".join(f"{100 * float(q):g} % {seconds(value)}" for q, value in latency.quantiles.items())
        moments = f"mean {seconds(latency.mean)}, standard deviation {seconds(latency.std)}"
        span = between(latency.min, latency.max)
        sentences.append(f"Those that returned: {moments}, from {span}. Quantiles: {quantiles}.")
    return Section("Latency", tuple(sentences))


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
    fit, ks, optimum = fitted.fit, fitted.ks, fitted.optimum
    timeout = {"never": "none", "any": "any", "immediate": "0"}.get(optimum.verdict, "") if optimum else ""
    if optimum and optimum.timeout and not timeout:
        timeout = seconds(optimum.timeout)
    return (
        _law_name(fitted),
        fit.describe(3, " "),
        f"{100 * (fit.rho or 0):.2f}",
        "" if fit.bic is None else f"{fit.bic - least:.0f}",
        f"{ks.statistic:.3f}" if ks else "",
        p_value(ks.p_asymptotic if ks else None),
        p_value(ks.p_bootstrap if ks else None),
        timeout,
        _regret(fitted.regret),
    )


def _law_name(fitted: FittedLaw) -> str:
    return fitted.fit.name if fitted.fit.method == "mle" else f"{fitted.fit.name} {fitted.fit.method}"


def _regret(share: float | None) -> Number:
    return Number("" if share is None else "∞" if share == math.inf else f"{100 * share:.1f} %", share)


def groups_section(result: Analysis, most: int | None = None) -> Section:
    """The decision of each group and of all, at most `most` groups, the largest where there are more."""
    by_size = sorted(result.groups, key=lambda group: -sum(group.decision.counts.values()))
    kept = {id(group) for group in by_size[:most]}
    rows = [_group_row(group) for group in result.groups if id(group) in kept]
    names, probes = list(result.groups[0].key), sum(sum(group.decision.counts.values()) for group in result.groups)
    pooled = ("all", *[""] * (len(names) - 1), Number(str(probes), probes), *_group_cells(result.decision), "")
    figures = ("probes", "out", "resubmit after", "takes", "waiting", "at worst", "own")
    sentences = [_groups_summary(result)]
    if more := len(result.groups) - len(rows):
        sentences.append(f"{counted(more, 'smaller group', 'is', 'are')} in results.json.")
    columns = (*(shortened(printable(name), LONGEST_KEY) for name in names), *figures)
    return Section("By group", tuple(sentences), columns, (*rows, pooled), keys=len(names))


def _groups_summary(result: Analysis) -> str:
    if "mixed" in result.timeout.withheld:
        instead = "set each group's own schedule" if _some_group_decided(result) else "wait in every group"
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
    probes = sum(group.decision.counts.values())
    names = [shortened(printable(value), LONGEST_KEY) for value in group.key.values()]
    cells = _group_cells(group.decision)
    return (*names, Number(str(probes), probes), *cells, "*" if group.differs else "")


def _group_cells(decision: Decision) -> tuple[str, str, str, str, str]:
    """The share still out, the schedule, what a job takes with it and by waiting, and the largest loss."""
    chosen, out = decision.timeout, decision.outliers
    share = Number(percent(out.estimate), out.estimate) if out else Number("", None)
    retry = chosen.retry if chosen else None
    if retry is None:
        few = chosen is None or "few-completions" in chosen.withheld
        return share, Number("too few" if few else "wait", None), Number("", None), Number("", None), Number("", None)
    return (
        share,
        Number(times_in_words(retry.timeouts), retry.timeouts[0]),
        Number(seconds(retry.expected_duration), retry.expected_duration),
        Number(seconds(retry.waiting), retry.waiting),
        Number(f"+{100 * retry.worst_loss:.0f} %", retry.worst_loss),
    )
