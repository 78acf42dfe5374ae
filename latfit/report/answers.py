"""The output of the commands besides `analyze`, as sections and sentences."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from latfit.errors import counted, printable
from latfit.report.layout import WORDS, Section, between, in_one_unit, number, percent, table_of
from latfit.report.sections import (
    Advice,
    fits_section,
    jointly,
    optimum_section,
    retry_sentence,
    sentence,
    still_out,
)
from latfit.table import skipped_notes
from latfit.units import seconds

if TYPE_CHECKING:
    from latfit.batch import BatchResult
    from latfit.decision import FittedLaw
    from latfit.decision.compared import Spread, Standing
    from latfit.evidence import Replay, Replayed
    from latfit.evidence.changes import Change
    from latfit.fitting import JointRatio
    from latfit.histograms import Guarantee
    from latfit.logs import LogFacts, ProbeLog
    from latfit.outliers import OutlierRatio
    from latfit.restart import Comparison, Optimum, QuantileBound
    from latfit.restart.schedule import Strategy
    from latfit.sample import LatencySample
    from latfit.settings import Settings
    from latfit.tracking.drift import Drift, Window
    from latfit.verify import Verification

SHOWN_WINDOWS = 30  # windows and changes in the text; all are in the JSON


def reading_notes(facts: LogFacts) -> tuple[list[str], list[str]]:
    """What a reader guessed and skipped, as notes; what it refused, as warnings."""
    notes = [*facts.notes, *skipped_notes(facts.skipped)]
    if facts.unchosen:
        notes.append(f"--where, --since and --until leave out {counted(facts.unchosen, 'row')}")
    if not facts.refused.count:
        return notes, []
    reasons = ", ".join(f"{count} × {reason}" for reason, count in facts.refused.reasons.items())
    first = facts.refused.earliest
    summary = f"rows refused: {facts.refused.count} ({reasons}); the first, line {first.line}: {first.reason}"
    return notes, [summary, *facts.advice]


def timeout_sections(document: Mapping[str, Any], *, at: float | None, fails: bool) -> list[Section]:
    """The answer of `latfit timeout`; with visible failures, some of what does not complete has failed."""
    verdict, E, schedule = document["verdict"], document["expected_duration"], document.get("schedule")
    share = f"{100 * document['rho']:.4g} % of attempts do not complete" if fails else f"rho = {document['rho']:.4g}"
    law = f"{document['law']}, {share}, cost = {document['cost']:g} s"
    sentences = []
    if "retry" in document and verdict != "given":
        retry = document["retry"]
        sentences = [f"To set: {'nothing; wait.' if retry is None else retry_sentence(retry)}"]
    if verdict == "withheld":
        codes = ", ".join(document["withheld"])
        sentences.append(f"Do not repeat one timeout without limit: {codes} ({law}); see latfit analyze.")
        return [Section("", tuple(sentences))]
    times = ", then ".join(map(seconds, schedule or [document["timeout"]]))
    action = WORDS["actions"][verdict].format(times=times, at=seconds(at))
    action += "; then let it run" if schedule and verdict == "finite" else ""
    if verdict == "given" and E is None:
        return [Section("", (f"{action} ({law}) no job would ever end: no attempt completes by then.",))]
    unlimited = f"Without a limit on retries: {action[0].lower()}{action[1:]}" if sentences else action
    sentences.append(f"{unlimited} ({law}).")
    if (several := document.get("jobs")) is not None:
        sentences.append(f"The last of {several['jobs']} jobs is done after {seconds(several['expected_maximum'])}.")
        if (group := several["grouping"]) is not None and group["size"] > 1:
            then = f"{seconds(group['expected_duration'])} (cancel each after {seconds(group['timeout'])})"
            sentences.append(f"With {group['size']} jobs in each submission it is done after {then}.")
    return [optimum_section(document, "", sentences)]


def quantile_bound_sections(bound: QuantileBound) -> list[Section]:
    """What percentiles alone guarantee, and its price."""
    certain = f"A timeout of {seconds(bound.timeout)} (the {bound.level:.4g} quantile) guarantees a mean of at most "
    certain += f"{seconds(bound.expected_duration)}; without one it is at least {seconds(bound.waiting)}."
    caveat = "Percentiles hide what lies between and beyond them, what was lost, and whether attempts are independent: "
    rows = (("load", f"at most {bound.submissions:.4g} submissions a job"),)
    return [Section("", (certain, f"{caveat}measure single requests before you set it."), ("", ""), rows)]


def guarantee_advice(guarantee: Guarantee, path: str) -> Advice:
    """The decision on a histogram in a few lines."""
    best, remedies, log = guarantee.optimum, WORDS["histogram_remedies"], shlex.quote(printable(path))
    cautions = tuple((sentence(each.message), remedies.get(each.code, "")) for each in guarantee.warnings[:2])
    lost, counted_in = guarantee.histogram.lost or "N", "what was lost and what a restart costs"
    again = (f"latfit analyze {log} --lost {lost} --cost C", f"bounds that count {counted_in}")
    kind = "few" if best is None else "wait" if best.timeout is None else "set"
    if guarantee.withheld and best is not None:
        kind = "dependent" if guarantee.harmed is None else "series"
    words = WORDS["histogram_verdicts"][kind]
    advice = Advice(**{"target": "", **words, "log": _histogram_line(guarantee, path), "cautions": cautions})
    advice = replace(advice, reasons=tuple(why.format(harmed=guarantee.harmed) for why in words["reasons"]))
    if best is None:
        return replace(advice, steps=(again,))
    if guarantee.withheld:
        formula = f"{seconds(best.timeout)}, mean {seconds(best.expected_duration)}, if attempts were independent."
        return replace(advice, figures=(("formula", formula),), steps=(again,))
    advice = replace(advice, figures=tuple(_guarantee_figures(guarantee, best)), steps=(again,))
    if best.timeout is None:
        return advice
    paste = (f"latfit settings TOOL --timeout {best.timeout:.6g}", "settings to paste")
    return replace(advice, target=seconds(best.timeout), steps=(paste, again))


def _histogram_line(guarantee: Guarantee, path: str) -> str:
    histogram = guarantee.histogram
    counts = f"{int(histogram.counts.sum())} latencies in {counted(histogram.counts.size, 'bucket')}, "
    counts += f"{histogram.n_inf} beyond the last"
    counts += "".join(f", {getattr(histogram, name)} {name}" for name in ("failed", "lost") if getattr(histogram, name))
    total = "" if histogram.latency_sum is None else f"; their sum is {seconds(histogram.latency_sum)}"
    return f"{path} (histogram): {counts}{total}."


def _guarantee_figures(guarantee: Guarantee, best: Optimum) -> Iterator[tuple[str, str]]:
    """What a timeout is likely to bring, what it guarantees, and what a fitted law says of it."""
    least, mean, most = in_one_unit(guarantee.least, best.expected_duration or math.nan, guarantee.guaranteed)
    load = "" if best.submissions is None else f"; {best.submissions:.2f} submissions a job"
    expected, low, high = (
        f"{mean} a job if latencies are spread evenly inside their buckets{load}",
        *(float(ends[-1]) for ends in (guarantee.bounds.low, guarantee.bounds.high)),
    )
    if best.timeout is not None and high < math.inf:
        expected += f"; waiting until {seconds(guarantee.bounds.edges[-1])} takes {between(low, high)}"
    yield "expect", f"{expected}."
    bound, regret = f"at most {most} a job, whatever happened inside the buckets", guarantee.worst_regret
    if guarantee.least > 0 and regret < math.inf:
        bound += f": at most {100 * regret:.1f} % more than the best timeout; no timeout takes less than {least}"
    yield "guarantee", f"{bound}."
    if guarantee.likely is not None:
        other, name = guarantee.likely.optimum, guarantee.likely.law.partition("(")[0]
        under = "with latencies spread evenly" if name == "histogram" else f"under a fitted {name} law"
        then = "no timeout" if other.timeout is None else seconds(other.timeout)
        share = guarantee.likely.regret
        cost = "without limit" if share == math.inf else f"{100 * share:.1f} %"
        best_there = f"{under} the best is {then}, with a mean of {seconds(other.expected_duration)}"
        yield "confidence", f"{best_there}; this timeout takes {cost} longer."


def fit_sections(sample: LatencySample, fits: Sequence[FittedLaw]) -> list[Section]:
    """Fits as ranked, with their scores and tests."""
    by = "BIC" if any(each.fit.method == "mle" for each in fits) else "sse"
    summary = f"{counted(sample.n, 'probe')}, {sample.completed.total} completed; ranked by {by}."
    return [Section("", (summary,)), fits_section(fits, "")]


def outliers_sections(
    ratio: OutlierRatio, sample: LatencySample, by_cutoff: list[OutlierRatio], joint: JointRatio | None, verdict: str
) -> list[Section]:
    """The share that never returns, then as a function of the cutoff."""
    sentences = [still_out(ratio, sample, seconds(ratio.cutoff))]
    falling = "The ratio is still falling at this cutoff: some of these probes are late rather than lost."
    stable = "The ratio is stable." if verdict == "stable" else falling
    sentences += [stable if ratio.estimate else "Nothing was still out.", *jointly(joint)]
    if joint and joint.confounded:
        sentences.append("The law's tail and the outliers can hardly be told apart: give up on probes later.")
    cells = {seconds(r.cutoff): (percent(r.estimate), f"{100 * r.low:.2f} to {percent(r.high)}") for r in by_cutoff}
    rows = tuple((cutoff, *row) for cutoff, row in cells.items())  # one row where two cutoffs read alike
    return [Section("", tuple(sentences), ("cutoff", "still out", "95 % interval"), rows)]


def replay_sections(replay: Replay, policies: Sequence[Replayed]) -> list[Section]:
    """The best timeout on the log itself, then a table of all that were replayed."""
    best, waiting = replay.best, replay.waiting
    summary = f"On this log no timeout would clearly have beaten waiting ({seconds(waiting.expected_duration)})."
    if best.gain_low > 0 and best.timeout != waiting.timeout:
        gain = f"{seconds(best.expected_duration)} instead of {seconds(waiting.expected_duration)} by waiting"
        summary = f"On this log a timeout of {seconds(best.timeout)} would have done best: {gain}."
    named = [(seconds(at.timeout), at, at.ran_off) for at in (*replay.at, best)]
    named.append(("waiting", waiting, waiting.ran_off))
    named += [(each.policy.spec(4), each, each.ran_off + each.undone) for each in policies]
    rows = [
        {
            "policy": name,
            "duration": number(each.expected_duration, missing="infinite"),
            "95 % interval": "" if each.high == math.inf else between(each.low, each.high),
            "p95": number(each.quantiles.get("0.95"), missing="infinite"),
            "submits": f"{each.submissions:.3g}",
            "not done": f"{not_done:.1%}",
        }
        for name, each, not_done in named
    ]
    return [Section("", (summary,), **table_of(rows))]


def compare_sections(
    comparison: Comparison,
    spreads: list[Spread] | None = None,
    standing: Standing | None = None,
    utilisation: float | None = None,
    *,
    in_words: bool = False,
) -> list[Section]:
    """The sentence that decides, what a log and its replay say of it, the table, and what no strategy can do."""
    sentences = [standing.sentence(comparison, seconds) if standing else comparison.decision(seconds)]
    if standing is not None and (replayed := standing.replay_sentence(seconds)) is not None:
        sentences.append(replayed)
    stands = standing is None or (not standing.withheld and standing.faster_stands)
    if stands and (more := comparison.beyond(seconds)) is not None:
        sentences.append(more)
    table = table_of(_compared_rows(comparison, spreads, in_words=in_words))
    notes = [f"Note: {note}." for note in comparison.notes]
    if comparison.least_job_seconds is not None:
        least = f"less than {seconds(comparison.least_job_seconds)} a job, as the best timeout does"
        notes = [f"No strategy of independent copies occupies the system for {least}; faster ones cost more.", *notes]
    sections = [Section("", tuple(sentences), **table, below="strategy"), Section("", tuple(notes))]
    return [*sections, _load_section(comparison, utilisation)] if utilisation is not None else sections


def _compared_rows(comparison: Comparison, spreads: list[Spread] | None, *, in_words: bool) -> list[dict[str, str]]:
    """A row for each strategy, its policy `in_words` or as it is written; shares done only if some give up."""
    goal, all_end = str(comparison.objective), all(row.outcome.success in (None, 1.0) for row in comparison.rows)
    rows = []
    for i, row in enumerate(comparison.rows):
        outcome, value = row.outcome, row.outcome.objective["value"]
        cells: dict[str, str] = {"mean": number(outcome.expected_duration, missing="infinite")}
        for level in (0.95, 0.99):  # one that is not computed under visible failures is unknown, not infinite
            missing = "infinite" if outcome.success is None or outcome.success < level else "unknown"
            cells[f"p{100 * level:.0f}"] = number(outcome.quantiles.get(str(level)), missing=missing)
        cells["submits"] = number(outcome.submissions, "{:.4g}".format, "infinite")
        cells["job-time"] = number(outcome.job_seconds, missing="infinite")
        if not all_end:
            cells["done"] = number(outcome.success, lambda share: f"{100 * share:.4g} %")
        if goal != "mean":
            cells[goal] = number(value, comparison.objective.text, "infinite")
        gain = comparison.gain(outcome)
        change = "" if gain is None or i == 0 else f"{-100 * gain:+.1f} %"
        if spreads and i and spreads[i].ratio_low is not None:
            low, high = (None if x is None else 100 * (x - 1) for x in (spreads[i].ratio_low, spreads[i].ratio_high))
            change += f" ({low:+.1f} to {'infinite' if high is None else f'{high:+.1f}'})"
        cells["change (95 %)" if spreads else "change"] = change
        role = WORDS["roles"].get(row.role, row.role)
        if row.role == "given" and i == 0:
            role = "one timeout, repeated" if in_words else "now"
        spec = outcome.policy.spec(4)
        policy = f"{role}: {outcome.policy.sentence(seconds) if in_words or len(spec) >= 64 else spec}"
        rows.append({"strategy": policy, **cells} if in_words else {**cells, "strategy": policy})
    return rows


def _load_section(comparison: Comparison, utilisation: float) -> Section:
    sentences = [f"Load, from {100 * utilisation:g} % busy today. Does your cancel reach the server?"]
    rows = []
    for load in comparison.loads:
        yes, no = ("unknown" if x is None else f"{100 * x:.0f} %" for x in (load.if_cancelled, load.if_served))
        budget = "" if load.retry_budget is None else f" with a retry budget of {100 * load.retry_budget:.0f} %"
        share = "" if load.safe_share is None else f"{100 * load.safe_share:.0f} %{budget}"
        below = "below " if load.safe_share is not None and load.safe_share < 1 else ""
        rows.append((load.policy, yes, no, below + share))
    if any(load.if_served is not None and load.if_served >= 1 for load in comparison.loads):
        sentences.append("A system that is 100 % busy or more never catches up: cap retries with a budget.")
    columns = ("policy", "busy if yes", "busy if no", "safe share of clients if no")
    return Section("", tuple(sentences), columns, tuple(rows))


def agents_sections(strategy: Strategy) -> list[Section]:
    """Whom to ask, and how long to wait for each."""
    lines = []
    for step, (name, timeout) in enumerate(strategy.steps):
        wait = "let it run" if timeout is None else f"give up {f'after {seconds(timeout)}' if timeout else 'at once'}"
        lines.append(f"{'then ask' if step else 'ask'} {name}, {wait}")
    if strategy.unbounded and strategy.steps[0][1] is not None:
        lines.append("and so on until it answers")
    summary = Section("", (f"Expected duration {seconds(strategy.expected_duration)}:",))
    return [summary, Section("", tuple(lines), as_items=True)]


def drift_sections(drift: Drift) -> list[Section]:
    """What changed, the windows, the backtest, and what to be careful about, for the log and for each group."""
    changes, probes = drift.changes.changes, counted(drift.probes, "probe")
    title = ", ".join(f"{name} {value}" for name, value in drift.key.items())
    summary = f"{counted(len(changes), 'change')} in {probes}:" if changes else f"No change point in {probes}."
    warnings = (f"Warning: {warning.message}." for warning in drift.warnings)
    sections = [Section(title, (*warnings, summary, *map(_change, changes[:SHOWN_WINDOWS])))]
    cycles = {"hour of the day": drift.changes.daily_cycle, "day of the week": drift.changes.weekly_cycle}
    slowest = "The slowest {} takes {:.2g} times the fastest (p ≤ 0.01)."
    sentences = [slowest.format(name, ratio) for name, ratio in cycles.items() if ratio is not None]
    if any(window.kept_regret is not None for window in drift.windows):
        sentences.append("Kept: what keeping the timeout of the window before costs.")
    if len(drift.windows) > SHOWN_WINDOWS:
        sentences.append(f"The last {SHOWN_WINDOWS} of {len(drift.windows)} windows; all are in --json.")
    rows = [
        {
            "from (UTC)": _start(window),
            "count": str(window.probes),
            "out": percent(window.ratio),
            "timeout": number(window.timeout, missing="none"),
            "95 % interval": "" if window.low is None else between(window.low, window.high),
            "E_J": number(window.expected_duration),
            "kept": number(window.kept_regret, lambda share: f"{100 * share:+.0f} %"),
        }
        for window in drift.windows[-SHOWN_WINDOWS:]
    ]
    sections.append(Section("", tuple(sentences), **table_of(rows), keys=0))
    if drift.backtest is not None:
        scores = []
        for score in drift.backtest.scores:
            time, load = f"{seconds(score.expected_duration)} a job", f"{score.submissions:.2f} submissions"
            scores.append((score.policy, time, load, WORDS["backtested"][score.policy]))
        title = "Backtest, each with only what was known at the time:"
        sections.append(Section("", (title,), ("",) * 4, tuple(scores)))
    return [*sections, *(section for group in drift.groups for section in drift_sections(group))]


def _change(change: Change) -> str:
    before, after = change.median
    when = f"after {counted(change.index, 'probe')}" if change.at is None else f"{str(change.at)[:19]}Z"
    medians = "" if before is None or after is None else f"; median {seconds(before)} → {seconds(after)}"
    shares = f"not completed {change.ratio[0]:.1%} → {change.ratio[1]:.1%}"
    return f"{when}: {change.kind}, p = {change.p_value:.1g}{medians}; {shares}"


def _start(window: Window) -> str:
    from latfit.tracking.drift import iso

    start = iso(window.start)
    return start[:10] if start[11:19] == "00:00:00" else f"{start[5:10]} {start[11:16]}"


def verify_sections(verification: Verification) -> list[Section]:
    """The verdict, then before, predicted and measured side by side."""
    parts = {"before": verification.before, "predicted": verification.predicted, "measured": verification.measured}
    present = {name: part.to_dict() for name, part in parts.items()}
    limits = {"predicted": verification.limits, "measured": verification.measured.cuts}
    rows = [("timeout", *(", ".join(map(seconds, limits.get(name, ()))) or "-" for name in present))]
    times = {"expected duration": "expected_duration", "  from": "low", "  to": "high"}
    shares = {"submissions per job": "submissions", "share undone": "undone"}
    for title, key in (times | shares).items():
        write = seconds if title in times else "{:.4g}".format
        rows.append((title, *(number(part[key], write, "-") for part in present.values())))
    for q in ("0.5", "0.95", "0.99"):
        cells = []
        for part in present.values():
            reached = float(q) <= 1 - (part["undone"] or 0.0)
            cells.append(number(part["quantiles"].get(q), missing="-") if reached else "not reached")
        rows.append((f"{float(q):.0%} of jobs within", *cells))
    return [Section("", (verification.sentence,), ("", *present), tuple(rows))]


def settings_sections(settings: Settings) -> list[Section]:
    """What to paste, with what speaks against it above, and what to know."""
    sections = [] if settings.snippet is None else [Section(literal=tuple(settings.snippet.split("\n")))]
    return [*sections, Section("", (*settings.notes, f"how it was tested: {settings.validated}"), as_items=True)]


def batch_summary(result: BatchResult) -> tuple[list[str], str]:
    """Warnings about what went wrong, by name (at most 20; the rows have them all), and how many were decided."""
    warnings = [f"rows refused: {result.refused}"] if result.refused else []
    for what, faults in (("logs could not be read", result.bad_files), ("groups have no timeout", result.bad_groups)):
        if faults:
            warnings.append(f"{what}: {len(faults)}")
        warnings += [reason if name in reason else f"{name}: {reason}" for name, reason in faults[:20]]
        if len(faults) > 20:
            warnings.append(f"and {len(faults) - 20} more: see the rows with an error")
    rows = [row for row in result.rows if row.get("error") is None]
    if "std_errors" in result.columns:
        return warnings, f"{counted(len(rows), 'fit')}"
    bounded = sum(row.get("guaranteed") is not None and row.get("timeout") is not None for row in rows)
    scheduled = bounded + sum(row.get("retry_timeouts") is not None for row in rows)
    return warnings, f"{counted(len(rows), 'group')}: {scheduled} with a schedule, {len(rows) - scheduled} wait"


def reading_document(log: ProbeLog) -> dict[str, Any]:
    """What a log was taken for, as `latfit read --json` gives it."""
    facts = log.facts
    columns = []
    for name, (role, why) in facts.columns.items():
        unit = facts.unit if role == "latency" else None
        columns.append({"name": name, "role": role, "unit": unit, "why": why, "option": f"--column {role}=NAME"})
    return {
        **{name: getattr(facts, name) for name in ("path", "format", "unit", "unit_evidence", "has_outcomes")},
        "columns": columns,
        "groups": [str(name) for name in log.frame.columns[3:]],
        "outcomes": log.counts,
        "notes": list(facts.notes),
        "skipped": dict(facts.skipped),
        "refused": facts.refused.to_list(),
        "refused_count": facts.refused.count,
    }


def reading_sections(document: Mapping[str, Any]) -> list[Section]:
    """What a log was taken for, column by column."""
    rows = []
    for each in document["columns"]:
        unit = f" in {each['unit']}" if each["unit"] else ""
        rows.append((each["name"], each["role"] + unit, each["why"], each["option"]))
    outcomes = ", ".join(f"{count} {status}" for status, count in document["outcomes"].items())
    head = [f"{document['path']}: {document['format']}; {outcomes}"]
    if document["unit_evidence"]:
        evidence, _, rest = document["unit_evidence"].partition(";")
        evidence = WORDS["unit_evidence"].get(evidence, evidence) + (f";{rest}" if rest else "")
        fixed = evidence == WORDS["unit_evidence"]["format"] or "--unit" in evidence
        hint = "" if fixed else " (--unit changes it)"
        head.append(f"unit {document['unit'] or 'in the cells'}: {evidence}{hint}")
    tail = [f"columns to group by: {', '.join(document['groups'])}"] if document["groups"] else []
    tail += [*skipped_notes(document["skipped"]), *document["notes"]]
    if document["refused_count"]:
        lines = ", ".join(f"line {each['line']}: {each['reason']}" for each in document["refused"][:3])
        tail.append(f"refused {counted(document['refused_count'], 'row')}, the first: {lines}")
    table = Section(columns=("column", "read as", "because", "option"), rows=tuple(rows))
    return [Section("", tuple(head)), *([table] if rows else []), Section("", tuple(tail), as_items=True)]


def listed(rows: Mapping[str, str], note: str = "") -> list[Section]:
    """Names with what they mean, and a note on all of them."""
    return [Section(columns=("", ""), rows=tuple(rows.items())), *([Section("", (note,))] if note else [])]


def laws_sections(laws: Sequence[Mapping[str, Any]]) -> list[Section]:
    """The laws with their formulas and examples."""
    lines = []
    for law in laws:
        lines += [law["name"], *(f"    {text}" for text in (law["formula"], law["example"]) if text)]
    return [Section(literal=tuple(lines))]
