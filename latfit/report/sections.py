"""The statements of a report, written once for the terminal, Markdown, the page and notebooks."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from latfit.errors import counted, printable
from latfit.report.layout import (
    LONGEST_KEY,
    WORDS,
    Command,
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
    shortened_apart,
    table_of,
)
from latfit.restart.objectives import Objective
from latfit.units import seconds, times_in_words

if TYPE_CHECKING:
    from latfit.analysis import Analysis, Group
    from latfit.decision import Decision, FittedLaw
    from latfit.decision.result import LatencySummary
    from latfit.fitting import JointRatio
    from latfit.outliers import OutlierRatio
    from latfit.restart.retry import Retry
    from latfit.sample import LatencySample

REPLAY_AGREES = 0.1  # largest relative difference between a replay and the formula that counts as agreement
TELLING_OPTIMISM = 0.01  # the corrected duration is shown if it differs from the plain one by more than this share
FIXED_FATE = ("queue", "work")  # logs by whose nature a retry cannot be a new draw
MAX_CAUTIONS = 2  # in the short report
BRIEF_GROUPS, MAX_GROUPS = 5, 40  # rows of the table of groups in the short report, without and with --by


@dataclass(frozen=True)
class Advice:
    """A decision in a few lines; `action` ends in `target`, which is a time, a column, or empty.

    `tone` is what there is to do: `set` a schedule, one for each `group`, `wait`, or `ask` for what is not known.
    `figures` are named statements; a caution is a message and a remedy, a step a command and what it is for.
    """

    tone: str
    action: str
    target: str
    log: str
    reasons: tuple[str, ...] = ()
    figures: tuple[tuple[str, str], ...] = ()
    cautions: tuple[tuple[str, str], ...] = ()
    steps: tuple[tuple[str, str], ...] = ()

    @property
    def headline(self) -> str:
        return f"{self.action} {self.target}".rstrip()

    def sections(self) -> list[Section]:
        rows = [("limit" if self.tone == "set" else "why", " ".join(self.reasons))] if self.reasons else []
        rows += [*self.figures, *(("caution", f"{message} {remedy}".strip()) for message, remedy in self.cautions)]
        rows += [("" if at else "next", Command(step, why)) for at, (step, why) in enumerate(self.steps)]
        return [Section("", (self.log,)), Section(self.headline, columns=("", ""), rows=tuple(rows), tone=self.tone)]


def to_text(result: Analysis, *, full: bool = False, width: int = 80) -> str:
    r"""The report as plain text without control characters: about 20 lines, or all of it if `full`.

    >>> import latfit
    >>> text = to_text(latfit.analyze(latfit.example_log(), resamples=0, test=False))
    >>> text.split("\n\n")[1].splitlines()[0]
    'Resubmit after 358 s and 716 s, then wait'
    """
    return as_text(sections(result, full=full), width=width)


def to_markdown(result: Analysis, *, figures: tuple[str, ...] = ()) -> str:
    """The report as Markdown, with links to `figures`; text from the log is escaped."""
    return as_markdown(sections(result, full=True), heading=f"latfit: {result.facts.path}", figures=figures)


def sections(result: Analysis, *, full: bool = False, groups: int = BRIEF_GROUPS) -> list[Section]:
    """The report, the decision first: with at most `groups` groups, or `full`, with evidence and statistics."""
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
    return [*report, fits_section(result.decision.fits)] if result.decision.fits else report


def sentence(text: str) -> str:
    """A message of the library as a sentence of its own."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def retry_sentence(retry: Mapping[str, Any]) -> str:
    """A schedule, its mean duration and its worst one, from its JSON."""
    waiting = retry["worst_duration"] / (1 + retry["worst_loss"])
    mean, waiting, worst = in_one_unit(retry["expected_duration"], waiting, retry["worst_duration"])
    gain = f"{mean} a job instead of {waiting} if retries are independent, {worst} at worst"
    return f"resubmit after {times_in_words(retry['timeouts'])}, then wait: {gain}."


def advice(result: Analysis) -> Advice:
    """What to do, why, what it brings, how sure that is, and what to run next."""
    chosen, name, cautions = result.timeout, _verdict(result), _cautions(result)
    retry, verdict = chosen.retry, WORDS["verdicts"][name]
    reasons = _withheld_reasons(result) if chosen.verdict == "withheld" else []
    if retry is not None:
        target, figures = f"{times_in_words(retry.timeouts)}, then wait", _schedule_figures(retry)
        if (latency := result.decision.latency) and (variation := _variation(latency)):
            figures.append(("variation", f"coefficient {variation}."))
    else:
        target, reasons = ", ".join(result.by) if name == "group" else "", [*_why_waiting(result), *reasons]
        waiting = None if verdict["tone"] == "ask" else chosen.formula.at_cutoff
        figures = [] if waiting is None else [("expect", f"{seconds(waiting)} a job by waiting.")]
    if (now := result.decision.current) is not None:
        endless = now.expected_duration is None
        duration = "some jobs never end" if endless else f"{seconds(now.expected_duration)} a job"
        condition = "" if chosen.verdict == "finite" and retry else ", if attempts were independent"
        figures.append(("today", f"a timeout of {seconds(now.timeout)}, repeated: {duration}{condition}."))
    if name not in FIXED_FATE:
        figures.append(("confidence", _confidence(result)))
    return Advice(
        tone=verdict["tone"],
        action=verdict["headline"],
        target=target,
        log=_log_line(result),
        reasons=tuple(reasons),
        figures=tuple(figures),
        cautions=cautions[:MAX_CAUTIONS],
        steps=_steps(result, name, more=len(cautions[MAX_CAUTIONS:])),
    )


def _schedule_figures(retry: Retry) -> list[tuple[str, str]]:
    """How to apply a schedule, what it brings, and what it costs at worst."""
    K, times = len(retry.timeouts), [seconds(t) for t in retry.timeouts]
    each = [f"attempt {i} after {time}" for i, time in enumerate(times, 1)]
    cancelled = f"{_joined(each, 'and')}{', each timed from its own start' if K > 1 else ''}"
    if K > 1 and len(set(times)) == 1:
        cancelled = f"each of the first {K} attempts after {times[0]}"
    waiting, mean, worst = in_one_unit(retry.waiting, retry.expected_duration, retry.worst_duration)
    gain = f"{waiting} → {mean} a job, {100 * retry.gain:.0f} % less"
    if retry.gain_interval:
        low, high = (round(100 * end) for end in retry.gain_interval)
        gain += f" (95 % interval {low} to {high} %)"
    loss = f"at worst {worst} a job, {100 * retry.worst_loss:.0f} % more than by waiting, if every retry takes as long "
    return [
        ("set", f"cancel {cancelled}; let attempt {K + 1} run."),
        ("expect", f"{gain}, if retries are independent; {retry.submissions:.2f} submissions a job."),
        ("guarantee", f"{loss}as the first attempt would (overload not included)."),
    ]


def _verdict(result: Analysis) -> str:
    """What there is to do, by its name among the verdicts in words.toml."""
    latency, facts = result.decision.latency, result.seen.facts if result.seen else None
    if result.timeout.retry is not None:
        return "set"
    if fate := next((fate for fate in FIXED_FATE if getattr(facts, fate, False)), None):
        return fate
    if latency is not None and latency.max == 0:
        return "zero"
    if any(_retry(group.decision) for group in result.groups):
        return "group"
    return next((code for code in result.timeout.withheld if code in WORDS["verdicts"]), "wait")


def _log_line(result: Analysis) -> str:
    """What the file is: its name, format, rows, period, outcomes and unit."""
    facts, counts = result.facts, result.decision.counts
    times = None if result.seen is None else result.seen.submitted
    line = f"{facts.path} ({facts.format}): {counted(sum(counts.values()), facts.kind.removesuffix('s'))}"
    if times is not None and np.isfinite(times).any():
        length = float(np.nanmax(times) - np.nanmin(times))
        digits = 19 if length < 600 else 16
        first, last = (str(np.datetime64(int(end), "s"))[:digits] for end in (np.nanmin(times), np.nanmax(times)))
        last = last[11:] if first[:10] == last[:10] else last
        minutes = round(length / 60)
        span = f"{minutes} min" if 10 <= minutes < 60 else seconds(length)
        period = f"from {first.replace('T', ' ')} to {last.replace('T', ' ')} UTC ({span})"
        line += f" over {span}" if first < "1971" else f" {period}"  # a clock that began at 0 has no dates
    line += f"; {', '.join(f'{count} {status}' for status, count in counts.items() if count)}"
    if facts.unit and facts.unit_evidence:
        evidence = facts.unit_evidence.partition(";")[0]
        line += f"; latency in {facts.unit} ({WORDS['unit_evidence'].get(evidence, evidence)})"
    return f"{line}."


def _confidence(result: Analysis) -> str:
    """What was checked and agrees, what speaks against the schedule most, and what could not be checked."""
    evidence, probes, retry = result.decision.evidence, result.seen, result.timeout.retry
    counts = counted(sum(result.decision.counts.values()), "probe")
    if evidence is None or probes is None:
        return f"{counts} without columns and times: whether retries are independent cannot be checked."
    world, replay, parts = evidence.binding_world, evidence.replay, []
    if retry is not None and world is not None and world.kind != "independent" and world.ratio is not None:
        change = f"{100 * abs(1 - world.ratio):.0f} % {'less' if world.ratio < 1 else 'more'} than by waiting"
        common = {"time": "with their neighbours in time", "spell": "within slow spells"}
        alike = common.get(world.kind, f"by {world.name}")
        case = f"in the least favourable case that the log supports (retries alike {alike})"
        parts.append(f"{case} jobs take {change}")
    elif world is not None and world.kind == "independent":
        from latfit.evidence.probes import MIN_PROBES_TO_DESCRIBE

        if probes.n < MIN_PROBES_TO_DESCRIBE:
            parts.append(f"{counts} are too few to show whether retries are independent")
        elif retry is not None:
            parts.append("the log shows no dependence between attempts")
    if replay is not None and replay.at and retry is not None and result.timeout.verdict == "finite":
        E, formula = replay.at[0].expected_duration, result.timeout.expected_duration or math.nan
        differs = f"gives {seconds(E)} instead of {seconds(formula)} for one timeout, repeated"
        parts.append(f"a replay of the log {'agrees' if abs(E / formula - 1) <= REPLAY_AGREES else differs}")
    timed, outcomes = probes.submitted is not None, probes.facts.has_outcomes
    checked = [*evidence.columns_used[:4], f"order in {'time' if timed else 'the file'}"]
    parts.append(f"checked {_joined(checked, 'and')} on {counts}")
    present = {"columns": evidence.columns_used, "times": timed, "outcomes": outcomes}
    if absent := [name for name, value in present.items() if not value]:
        parts.append(f"the log has no {_joined(absent, 'or')} to check")
    return f"{'; '.join(parts)}."


def _joined(words: Sequence[str], last: str) -> str:
    return f" {last} ".join([", ".join(words[:-1])] * (len(words) > 1) + [*words[-1:]])


def _cautions(result: Analysis) -> tuple[tuple[str, str], ...]:
    """The warnings that the verdict does not already cover, the most important first."""
    codes = result.timeout.withheld
    if (name := _verdict(result)) in FIXED_FATE:
        codes = (name, "not-identified", "mixed", "dependence", "drift")
    messages = {warning.code: warning.message for warning in result.warnings if warning.code not in codes}
    if "mixed" in codes or result.groups:
        messages.pop("groups-differ", None)
    remedies = WORDS["remedies"].items()
    messages |= {code: text for code, text in WORDS["cautions"].items() if code in messages}
    return tuple((sentence(messages[code]), remedy) for code, remedy in remedies if code in messages)


def _steps(result: Analysis, verdict: str, more: int) -> tuple[tuple[str, str], ...]:
    """What to run next: the command that the verdict asks for, and the page with `more` cautions."""
    path = "LOG" if result.seen is None or result.facts.path.startswith("<") else result.facts.path
    mixing = result.decision.evidence.mixing if result.decision.evidence else None
    mixed = "mixed" in result.timeout.withheld
    decided = next((group.key for group in shown_groups(result, 1) if _retry(group.decision)), None)
    where = " ".join(f"--where {shlex.quote(f'{name}={value}')}" for name, value in (decided or {}).items())
    if verdict in FIXED_FATE and (result.seen is None or result.seen.submitted is None):
        verdict = "few-completions"  # without times there is no drift to look for
    elif verdict == "set" and mixed and decided:
        verdict = "group"
    elif verdict in ("set", "wait") and mixed and mixing is not None and not result.groups:
        verdict = "mixed"
    names = {"log": f"{shlex.quote(printable(path))} {result.facts.reading_options}".strip(), "where": where}
    names["column"] = shlex.quote(mixing.column.name) if mixing else ""
    command, purpose = WORDS["next"][verdict]
    rest = (
        f"the full report, with {counted(more, 'more caution')}, and a page" if more else "the full report and a page"
    )
    return (command.format(**names), purpose), (f"latfit analyze {names['log']} --full -o DIR", rest)


def _why_waiting(result: Analysis) -> list[str]:
    world = result.decision.evidence.binding_world if result.decision.evidence else None
    explained = WORDS["verdicts"].keys() - {"wait", "group"}
    if explained & {_verdict(result), *result.timeout.withheld}:
        return []
    kind = "independent" if world is None else world.kind
    fixed = "" if world is None else f"Latencies depend on {world.name}, which a retry may not change"
    reason = WORDS["why_waiting"].get(kind, fixed)
    if world is not None and kind != "independent" and world.ratio and 1 < float(f"{world.ratio:.3g}") < math.inf:
        reason += f": the best schedule for independent retries would take {world.ratio:.3g} × as long as waiting"
    return [f"{reason}."]


def formula_section(result: Analysis) -> Section:
    """What the formula gives for one timeout that is repeated without limit: the papers' answer."""
    formula = result.timeout.formula
    title = "If attempts were independent" if formula is not result.timeout else "One timeout, repeated without limit"
    if formula.timeout is not None:
        return optimum_section(formula.to_dict(), title)
    verdicts = {"never": "No timeout helps.", "any": "The timeout does not matter."}
    return Section(title, (verdicts.get(formula.verdict, "The formula gives no timeout."),))


def optimum_section(best: Mapping[str, Any], title: str = "", sentences: Sequence[str] = ()) -> Section:
    """The figures of an optimum, from its JSON: what it takes, how sure that is, what it gains and what it costs."""
    timeout = None if best["verdict"] == "given" or "schedule" in best else best["timeout"]
    E, within, fair = best["expected_duration"], best["within_5pct"], best.get("expected_duration_corrected")
    at_cutoff, notes = best.get("at_cutoff") or {}, list(sentences)
    if E and fair and abs(fair / E - 1) > TELLING_OPTIMISM:
        notes.append(f"The data alone give {seconds(E)}, which is optimistic: the timeout was chosen as their minimum.")
        E = fair
    if timeout and within and within[0] != within[1]:
        late = "any later timeout" if within[1] is None else f"waiting up to {seconds(within[1])}"
        notes.append(f"Too late is safer than too early: {late} costs at most 5 % more.")
    if timeout and (exact := best.get("exact_timeout")) not in (None, timeout):
        why = "; it rests on fewer completions, and too early costs more than too late" if exact < timeout else ""
        notes.append(f"The plain minimum of the data is at {seconds(exact)}{why}.")

    def interval(prefix: str, write: Callable[[float, float], str] = between) -> str:
        low, high = best.get(f"{prefix}low"), best.get(f"{prefix}high")
        if low is None or high is None or (low <= 0 and high == math.inf):  # the last: too few resamples
            return ""
        return f" (95 % interval {write(low, high)})"

    rows = []
    if timeout:
        near = best["within_1pct"]
        near = f"; {between(*near)} takes at most 1 % longer" if near and near[0] != near[1] else ""
        rows.append(("best timeout", f"{seconds(timeout)}{interval('')}{near}"))
    rows.append(("mean duration", f"{seconds(E)} a job{interval('expected_duration_')}"))
    goal, value = best["objective"]["name"], best["objective"]["value"]
    if goal != "mean":
        rows.append((goal, "infinite" if value is None else Objective.parse(goal).text(value)))
    factor, compared = best["speed_up"], "no timeout"
    if best.get("speed_up_vs_cutoff") is not None:
        factor = best["speed_up_vs_cutoff"]
        compared = f"{seconds(at_cutoff.get('expected_duration'))} by waiting until the cutoff"
    if factor is not None and float(f"{factor:.3g}") > 1:  # as it is written
        sure = interval("speed_up_vs_cutoff_", lambda low, high: f"{low:.3g} to {high:.3g}")
        rows.append(("gain", f"{factor:.3g} × faster than {compared}{sure}"))
    if best["submissions"] is not None:
        rows.append(("load", f"{best['submissions']:.2f} submissions a job"))
    rows.append(("spread", f"standard deviation {seconds(best['std_duration'])}"))
    for level, time in best["quantiles"].items():
        waiting = at_cutoff.get("quantiles", {}).get(level)
        instead = f" ({seconds(waiting)} by waiting)" if waiting else ""
        rows += [] if time is None else [(f"{100 * float(level):g} % of jobs", f"done within {seconds(time)}{instead}")]
    return Section(title, tuple(notes), ("", ""), tuple(rows))


def _withheld_reasons(result: Analysis) -> list[str]:
    messages = {warning.code: warning.message for warning in reversed(result.decision.warnings)}
    verdict, pooled = _verdict(result), result.timeout.retry
    reasons = []
    for code in (verdict,) if verdict in FIXED_FATE else result.timeout.withheld:
        if code == "not-identified" and pooled is not None:
            continue  # the schedule takes a restart to cost a step of the clock
        if code == "few-completions" or (code in WORDS["reasons"] and verdict == "zero"):
            reasons.append(sentence(messages.get(code, code)))
        elif code in WORDS["reasons"] and not (reasons and code == "dependent"):  # the others say it already
            reasons.append(f"{WORDS['reasons'][code]} {WORDS['remedies'].get(code, '')}".rstrip())
        elif code == "mixed" and pooled is not None:
            reasons.append(f"Do not repeat it without limit: {messages.get(code, 'the log mixes populations')}.")
    return reasons


def evidence_checks(result: Analysis) -> list[tuple[str, str, str]]:
    """One row a check of whether the formula applies: the question, what the log shows, what follows."""
    evidence, probes, checks = result.decision.evidence, result.seen, WORDS["checks"]
    if evidence is None or probes is None:
        return []
    finding, verdict = "the log has no column that could explain the latencies", "not known"
    if (mixing := evidence.mixing) is not None:
        finding = f"{mixing.column.name} explains {100 * mixing.share:.0f} % of the variance of the ranks "
        finding += f"({counted(mixing.groups, 'group')})"
        harm = mixing.harmed is not None or "mixed" in result.timeout.withheld
        verdict = "one timeout, repeated, does harm" if harm else "one timeout still serves all"
    elif probes.columns:
        finding, verdict = "no column of the log explains the latencies", "fine"
    rows = [(checks["mixing"], finding, verdict)]
    if evidence.dependence is not None:
        depends, strongest = evidence.dependence.found, evidence.dependence.strongest
        finding = f"slow probes {'' if depends else 'do not '}follow slow ones (rank correlation {strongest:.2f})"
        rows.append((checks["dependence"], finding, "a new attempt is slow too" if depends else "fine"))
    if evidence.drift is not None:
        changes, cycle = evidence.drift.changes, evidence.drift.daily_cycle
        dates = [f" at {str(change.at)[:16].replace('T', ' ')}" if change.at else "" for change in changes[:4]]
        kinds = ", ".join(f"{change.kind}{date}" for change, date in zip(changes, dates, strict=False))
        finding = f"{counted(len(changes), 'change')}: {kinds}" if changes else "no change"
        finding += f"; the slowest hour of the day takes {cycle:.2g} × as long as the fastest" if cycle else ""
        rows.append((checks["drift"], finding, "see latfit drift" if changes or cycle else "fine"))
    if (censoring := evidence.censoring).share or censoring.informative:
        common = "" if censoring.common_time is None else f", most at {seconds(censoring.common_time)}"
        finding = f"{100 * censoring.share:.3g} % were given up{common}"
        rows.append((checks["censoring"], finding, "a rule of the system" if censoring.informative else "fine"))
    if evidence.replay is not None and evidence.replay.at:
        at, waiting = evidence.replay.at[0], evidence.replay.waiting.expected_duration
        finding = f"on the log itself, {seconds(at.timeout)} takes {seconds(at.expected_duration)} a job "
        finding += f"({between(at.low, at.high)}); waiting takes {seconds(waiting)}"
        compared = "faster" if at.expected_duration < waiting else "slower than waiting"
        alike = seconds(at.expected_duration) == seconds(waiting)
        rows.append((checks["replay"], finding, "as long as waiting" if alike else compared))
    elif probes.submitted is None:
        rows.append((checks["times"], "cannot be checked without submission times", "less certain"))
    return rows


def still_out(ratio: OutlierRatio, sample: LatencySample, when: str) -> str:
    """The share still out at the cutoff: an estimate, unlike the count, if some failed or were given up before."""
    sure = f"95 % interval {100 * ratio.low:.2f} to {percent(ratio.high)}, {ratio.method}"
    count = f"{ratio.count} counted"
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
    clock = f"The clock has steps of {seconds(resolution)}." if resolution else "The clock shows no steps."
    if latency is None:
        return Section("Latency", (clock,))
    moments = f"mean {seconds(latency.mean)}, standard deviation {seconds(latency.std)}"
    summary = f"Of the completed: {moments}, from {between(latency.min, latency.max)}. {clock}"
    columns = tuple(f"{100 * float(q):g} %" for q in latency.quantiles)
    quantiles = tuple(map(seconds, latency.quantiles.values()))
    ratio = [f"Coefficient of variation {variation}."] if (variation := _variation(latency)) else []
    return Section("Latency", (summary, *ratio), columns, (quantiles,), keys=0)


def _variation(latency: LatencySummary) -> str | None:
    """Standard deviation over mean, with what its interval says of independent retries (Pal & Reuveni 2017)."""
    if latency.variation is None:
        return None
    if latency.variation_interval is None:
        return f"{latency.variation:.2f}"
    low, high = latency.variation_interval
    meaning = "above 1, independent retries pay" if low > 1 else "it may be above or below 1"
    meaning = "below 1, by itself no reason to cancel" if high < 1 else meaning
    return f"{latency.variation:.2f} ({low:.2f} to {high:.2f}): {meaning}"


def fits_section(fits: Sequence[FittedLaw], title: str = "Fitted laws, best first") -> Section:
    """Fits as ranked, with their scores and tests, and the names of those that could not be fitted."""
    bics = [each.fit.bic for each in fits if each.fit.bic is not None]
    names = [each.fit.name + ("" if each.fit.method == "mle" else f" {each.fit.method}") for each in fits]
    failed = [name for name, each in zip(names, fits, strict=True) if each.fit.error is not None]
    rows = []
    for name, each in zip(names, fits, strict=True):
        fit, ks, optimum = each.fit, each.ks, each.optimum
        if fit.error is not None:
            continue
        timeout = optimum and ({"never": "none", "any": "any", "immediate": "0"}.get(optimum.verdict))
        row = {"law": name, "parameters": fit.describe(3, " "), "rho %": f"{100 * (fit.rho or 0):.2f}"}
        if bics:
            row["BIC−"] = number(fit.bic, lambda bic: f"{bic - min(bics):.0f}")
        else:
            row["sse"] = number(fit.sse, "{:.4g}".format)
        row["KS"] = number(ks.statistic if ks else None, "{:.3f}".format)
        row["p known"] = p_value(ks.p_asymptotic if ks else None)
        row["p boot"] = p_value(ks.p_bootstrap if ks else None)
        row["timeout"] = timeout or number(optimum.timeout if optimum else None)
        row["regret"] = number(each.regret, lambda share: f"{100 * share:.1f} %", "" if each.regret is None else "∞")
        rows.append(row)
    table = table_of(rows)
    meanings = [meaning for column, meaning in WORDS["fits"].items() if column in table["columns"]]
    sentences = [f"{'; '.join(meanings)}."] if meanings else []
    sentences += [f"Could not be fitted: {', '.join(failed)} (--json says why)."] if failed else []
    return Section(title, tuple(sentences), **table, below="parameters")


def shown_groups(result: Analysis, most: int | None = None) -> list[Group]:
    """The groups with enough probes for a decision: those with a schedule first, then by size."""
    large = [each for each in result.groups if each.decision.timeout is not None and not _few(each.decision)]
    large.sort(key=lambda group: (_retry(group.decision) is None, -sum(group.decision.counts.values())))
    return large[:most]


def groups_section(result: Analysis, most: int | None = None) -> Section:
    """The decision of each group and of all: schedules first, at most `most` groups; small ones are counted."""
    large, sentences, first = shown_groups(result), [_groups_summary(result)], result.by[0]
    if most is not None and len(large) > most:
        sentences.append(f"{counted(len(large) - most, 'group', 'is', 'are')} not shown: see --full or results.json.")
    refused = [each for each in result.groups if each.decision.error is not None and not _few(each.decision)]
    for group in refused[:BRIEF_GROUPS]:
        sentences.append(f"{shortened(', '.join(group.key.values()), LONGEST_KEY)}: {group.decision.error}.")
    if few := len(result.groups) - len(large) - len(refused):
        sentences.append(f"Too few probes for a decision: {counted(few, 'group')}.")
    rows = []
    names = [shortened_apart([printable(group.key[name]) for group in large[:most]], LONGEST_KEY) for name in result.by]
    for group, *labels in zip(large[:most], *names, strict=True):
        key = dict(zip(result.by, labels, strict=True))
        rows.append(key | _group_cells(group.decision) | {"own": "*" if _needs_own(result, group) else ""})
    rows.append(dict.fromkeys(result.by, "") | {first: "all"} | _group_cells(result.decision))
    return Section("By group", tuple(sentences), **table_of(rows), keys=len(result.by), below="resubmit after")


def _retry(decision: Decision) -> Retry | None:
    return decision.timeout.retry if decision.timeout else None


def _few(decision: Decision) -> bool:
    """Whether a group has too few probes for a decision, or for an attempt at one."""
    warned = any(warning.code == "few-completions" for warning in decision.warnings)
    return warned if decision.timeout is None else "few-completions" in decision.timeout.withheld


def _needs_own(result: Analysis, group: Group) -> bool:
    """Whether a group has another timeout than all together; not if both are to wait."""
    return group.differs and (_retry(group.decision) or _retry(result.decision)) is not None


def _groups_summary(result: Analysis) -> str:
    decided, pooled = any(_retry(group.decision) for group in result.groups), result.timeout.retry
    differing = sum(_needs_own(result, group) for group in result.groups)
    if not decided and not pooled:
        return "Waiting is best in every group."
    if "mixed" in result.timeout.withheld or (decided and not pooled):
        stars = "; * marks those whose best timeout clearly differs" if differing else ""
        shared = "The schedule above holds for all; better," if pooled else "One timeout would not suit all:"
        instead = "set each group's own schedule" if decided else "wait in every group"
        return f"{shared} {instead}{stars}."
    if not differing:
        return "No group needs a timeout of its own."
    need, its = ("needs", "its") if differing == 1 else ("need", "their")
    those = f"{differing} of {counted(len(result.groups), 'group')} {need} a timeout of {its} own (*)"
    return f"{those}: {its} interval and the pooled one do not overlap."


def _group_cells(decision: Decision) -> dict[str, str]:
    """Probes, the share still out, the schedule, what a job takes with it and by waiting, and the largest loss."""
    retry, out, probes = _retry(decision), decision.outliers, sum(decision.counts.values())
    few = decision.timeout is None or _few(decision)
    schedule = Number(times_in_words(retry.timeouts), retry.timeouts[0]) if retry else None
    waiting = decision.timeout.formula.at_cutoff if decision.timeout else None
    return {
        "probes": Number(str(probes), probes),
        "out": number(out.estimate if out else None, percent),
        "resubmit after": schedule or Number("too few" if few else "wait", None),
        "takes": number(retry.expected_duration if retry else None),
        "waiting": number(retry.waiting if retry else waiting),
        "at worst": number(retry.worst_loss if retry else None, lambda loss: f"+{100 * loss:.0f} %"),
    }
