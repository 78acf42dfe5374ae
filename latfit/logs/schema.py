"""Which column of a table is what: evidence adds up, and a near-tie is a question.

Each pair of a column and a role has one score: what the user said settles it, words in the column's name count with
their weights in `vocabulary.toml`, and so does what the sampled cells hold. The unit of a latency is inferred in
the same way. The best reading is used if it leads by `margin`; otherwise there is a question with the options.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from latfit.errors import LogError, MissingColumn, listed
from latfit.logs.cells import NOT_A_TIME, Cells, has_unit, stage_of
from latfit.logs.formats import ReadOptions
from latfit.logs.times import MOMENT
from latfit.logs.vocabulary import (
    NO,
    USUAL_UNITS,
    VOCABULARY,
    WEIGHTS,
    YES,
    OutcomeWords,
    attempt_column,
    is_http_column,
    phrases,
    split_name,
    weigh,
    word_of,
)
from latfit.units import UNITS

THRESHOLD: float = VOCABULARY["decide"]["threshold"]
MARGIN: float = VOCABULARY["decide"]["margin"]
CONTENT: dict[str, dict[str, Any]] = VOCABULARY["content"]
NO_OUTCOMES = "there is no status column: every row with a latency is taken as completed"
SAMPLED_ROWS = 500
UNIT_REASONS = {"option": "--unit", "name": "its name says so", "times": "it equals an end minus a start"}
EPOCH_FORMATS = {"s": "epoch", "ms": "epoch-ms", "us": "epoch-us", "ns": "epoch-ns"}
MAX_OUTCOME_WORDS = 12


@dataclass
class Score:
    """A sum of evidence, with the reasons."""

    total: float = 0.0
    reasons: list[tuple[float, str]] = field(default_factory=list)

    def add(self, weight: float, why: str) -> None:
        """Count evidence for it, or against it."""
        if weight:
            self.total += weight
            self.reasons.append((weight, why))

    def add_content(self, kind: str, share: float = 1.0) -> None:
        """Count what the cells hold, by its weight in the vocabulary."""
        self.add(CONTENT[kind]["weight"] * share, CONTENT[kind]["why"])

    @property
    def why(self) -> str:
        """The reasons that count for it, the strongest first."""
        strong = sorted((reason for reason in self.reasons if reason[0] > 0), key=lambda reason: -reason[0])
        return "; ".join(dict.fromkeys(why for _, why in strong[:3]))


@dataclass(frozen=True)
class Candidate:
    """A reading of the latency: one column (or a sum of them), or a start and an end."""

    columns: tuple[str, ...]
    score: Score
    ended: str | None = None
    unit: str | None = None  # where the rows themselves prove it

    @property
    def option(self) -> str:
        """The options that choose it."""
        if self.ended:
            return f"--column submitted={self.columns[0]} --column ended={self.ended}"
        return f"--column latency={self.columns[0]}"


@dataclass(frozen=True)
class Roles:
    """Which columns hold what; `unit` is that of the latency, `unit_evidence` what says so (see `LogFacts`).

    `has_outcomes` says whether anything tells how a probe ended; `time_formats` are those of the columns of times,
    where they are known; `why` has the evidence for each role, in words.
    """

    latency: tuple[str, ...] = ()
    submitted: str | None = None
    ended: str | None = None
    status: str | None = None
    id: str | None = None
    unit: str | None = None
    unit_evidence: str = ""
    has_outcomes: bool = True
    time_formats: Mapping[str, str] = field(default_factory=dict)
    why: Mapping[str, str] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """The unit of the latency in seconds."""
        return UNITS[self.unit or "s"]

    @property
    def columns(self) -> dict[str, tuple[str, str]]:
        """The role of each column that has one, and the evidence."""
        single = {"submitted": self.submitted, "ended": self.ended, "status": self.status, "id": self.id}
        roles = [
            *((name, "latency") for name in self.latency),
            *((name, role) for role, name in single.items() if name),
        ]
        return {name: (role, self.why.get(role) or "as the options or the format say") for name, role in roles}

    @property
    def used(self) -> set[str]:
        """All columns that have a role."""
        single = (self.submitted, self.ended, self.status, self.id)
        return {*self.latency, *(name for name in single if name)}


def resolve_roles(names: list[str], options: ReadOptions, log: str, rows: pd.DataFrame) -> tuple[Roles, list[str]]:
    """Which column is what, by the user's word, by names and by what the sampled rows hold, and the guesses to report.

    Where two readings are nearly as good, the error has both as options to paste.
    """
    if not names:
        raise MissingColumn(f"{log}: there is no column with a name and plain values")
    _check_named(names, options, log)
    cells = {
        name: Cells(name, rows[name], options.time_format)
        for name in names
        if name and isinstance(rows.get(name), pd.Series)
    }
    pairs = _pairs(cells)
    candidates = _latencies(cells, pairs)
    taken = _decide_latency(candidates, options.columns, names, log)
    why: dict[str, str] = {"latency": taken.score.why}
    notes: list[str] = []
    submitted = _submitted(cells, taken, options, why, notes)
    own = _id(cells, taken, submitted, options, notes)
    used = {*taken.columns, taken.ended, submitted, own}
    status = _status(cells, used, options, why, notes)
    unit, evidence = ("s", "") if taken.ended else _unit(taken, cells, submitted, options.unit, log)
    roles = Roles(
        latency=() if taken.ended else taken.columns,
        submitted=submitted,
        ended=taken.ended,
        status=status,
        id=own,
        unit=None if taken.ended else unit,
        unit_evidence=evidence,
        has_outcomes=bool(status or taken.ended or "status" in options.columns),
        time_formats=_time_formats((submitted, taken.ended), options, pair=taken.ended is not None),
        why=why,
    )
    return roles, [*_guesses(roles, options, attempt_column(names)), *notes]


def sample_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows to judge columns by: evenly spread, and more where a column is blank in all of those."""
    if len(frame) <= SAMPLED_ROWS:
        return frame
    rows = np.linspace(0, len(frame) - 1, SAMPLED_ROWS).astype(np.int64)
    blank = frame.columns[frame.iloc[rows].isna().all()]
    filled = [np.flatnonzero(frame[name].notna())[:50] for name in blank]
    return frame.iloc[np.unique(np.concatenate([rows, *filled]))]


def _check_named(names: list[str], options: ReadOptions, log: str) -> None:
    for role, wanted in options.columns.items():
        for name in wanted.split("+") if role == "latency" else [wanted]:
            if wanted and name not in names:
                raise MissingColumn(f"{log}: there is no column {name!r} for {role}; there are: {listed(names)}")


def _time_formats(names: Iterable[str | None], options: ReadOptions, *, pair: bool) -> dict[str, str]:
    """Formats that the user gave, or that a column's name says: `start_ms` holds milliseconds."""
    formats = {}
    for name in filter(None, names):
        unit = split_name(name)[1] or (options.unit if pair else None)
        known = options.time_format or EPOCH_FORMATS.get(unit or "")
        if known:
            formats[name] = known
    return formats


def _guesses(roles: Roles, options: ReadOptions, attempts: str | None) -> list[str]:
    """The guesses made, in words; a column called just what it is needs none."""
    notes = []
    if roles.latency and "latency" not in options.columns and roles.latency != ("latency",):
        evidence = UNIT_REASONS.get(roles.unit_evidence, roles.unit_evidence)
        unit = "the units in its cells" if roles.unit is None else f"{roles.unit} ({evidence})"
        notes.append(f"column {roles.latency[0]!r} is read as the latency in {unit}")
    if roles.ended:
        notes.append(f"latency is {roles.ended!r} minus {roles.submitted!r}")
    notes += [
        f"column {name!r} is read as {kind}" for name, kind in roles.time_formats.items() if not options.time_format
    ]
    if not roles.has_outcomes:
        notes.append(NO_OUTCOMES)
    for role in ("submitted", "status", "id"):
        name = getattr(roles, role)
        if role == "id" and name and attempts is not None:
            notes.append(f"each attempt is a probe: column {name!r} names the job, {attempts!r} numbers its attempts")
        elif name and name.lower() != role and role not in options.columns:
            hint = " (one probe each; switch off with --column id=)" if role == "id" else ""
            notes.append(f"column {name!r} is read as {role}{hint}")
    return notes


# ---------------------------------------------------------------------------------------------------- the latency


def _pairs(cells: Mapping[str, Cells]) -> list[Candidate]:
    """Every start and end of the same row, as a latency."""
    times = {
        name: each
        for name, each in cells.items()
        if np.isfinite(each.seconds).any() and ((each.is_time and not each.is_day) or each.is_relative)
    }
    stages = {name: stage_of(each) for name, each in times.items()}
    pairs = []
    for start, (begin, weight) in stages.items():
        for end, (finish, end_weight) in stages.items():
            a, b = times[start], times[end]
            if start == end or begin == "ended" or finish == "submitted" or a.is_time != b.is_time:
                continue
            if (begin, finish) in (("started", "started"), ("moment", "started"), ("moment", "moment")):
                continue
            spent = b.seconds - a.seconds
            spent = spent[np.isfinite(spent)]
            if not spent.size or (spent >= 0).mean() < 0.7 or (spent.size > 2 and np.ptp(spent) == 0):
                continue
            score = Score()
            score.add(0.55 * (weight), f"{start!r} is the time of {_STAGES[begin]}")
            score.add(0.55 * end_weight, f"{end!r} is the time of {_STAGES[finish]}")
            if begin == "started" and any(stage == "submitted" and weight >= 7 for stage, weight in stages.values()):
                score.add_content("work_not_wait")
            if begin == "submitted" and finish == "ended" and any(stage == "started" for stage, _ in stages.values()):
                score.add_content("turnaround")
            pairs.append(Candidate((start,), score, ended=end))
    return pairs


_STAGES = {"submitted": "submission", "started": "a start", "ended": "an end", "moment": "an event"}


def _latencies(cells: Mapping[str, Cells], pairs: Sequence[Candidate]) -> list[Candidate]:
    """Every reading of the latency with a score, the best first."""
    candidates = []
    summaries = any({"max", "avg", "mean", "average", "mdev"} & set(each.words) for each in cells.values())
    explained: set[tuple[str, str | None]] = set()
    for name, each in cells.items():
        canonical = each.words == ("latency",)
        if not canonical and (each.kind not in ("number", "duration", "clock") or not each.measures.size):
            continue
        words, unit = each.words, each.unit
        if unit == "min" and summaries and name.lower().rstrip(")] ").endswith("min"):
            words, unit = (*words, "min"), None
        score = Score()
        weight, word = weigh("latency", words)
        score.add(weight, f"{word!r} in its name")
        for section in ("part", "other"):
            against, word = weigh(section, words)
            score.add(-against, f"{word!r} in its name")
        if any(re.fullmatch(r"[pq]\d{1,4}|\d+(th|pct|ile)", word) for word in words):
            score.add(-WEIGHTS["other"]["percentile"], "its name is that of a percentile")
        if unit and weight >= 0:
            score.add_content("unit_in_name")
        if canonical:
            score.add_content("canonical")
        _weigh_numbers(each, score)
        proof, equal = None, _equal_pair(each, cells, pairs)
        if equal is not None:
            pair, proof = equal
            score.add_content("difference")
            if any(weight < 0 for weight, _ in pair.score.reasons):
                score.add_content("work_not_wait")
            if score.total >= THRESHOLD:
                explained.add((pair.columns[0], pair.ended))
                score.add(max(0.0, pair.score.total - score.total), pair.score.why)
        if _outlasts_rows(each, unit, cells):
            score.add_content("longer_than_row")
        candidates.append(Candidate((name,), score, unit=unit or proof))
    _weigh_twins(candidates, cells)
    kept = [pair for pair in pairs if (pair.columns[0], pair.ended) not in explained]
    return sorted([*candidates, *kept], key=lambda each: -each.score.total)


def _outlasts_rows(each: Cells, unit: str | None, cells: Mapping[str, Cells]) -> bool:
    """Whether durations are often longer than all that happened between the first and the last time of their row."""
    stamps = [
        other.seconds
        for other in cells.values()
        if other.is_time and not other.is_day and np.isfinite(other.seconds).any()
    ]
    if len(stamps) < 2 or (each.kind == "number" and unit is None) or each.epoch or each.kind == "text":
        return False
    measured = each.numbers * UNITS[unit] if each.kind == "number" and unit else each.seconds
    rows = np.array(stamps)
    with np.errstate(invalid="ignore"):
        spans = np.where(np.isfinite(rows), rows, -np.inf).max(axis=0) - np.where(np.isfinite(rows), rows, np.inf).min(
            axis=0
        )
        longer = measured[np.isfinite(spans)] > 1.1 * spans[np.isfinite(spans)] + 1
    return longer.size > 0 and bool(longer.mean() > 0.1)


def _weigh_twins(candidates: Sequence[Candidate], cells: Mapping[str, Cells]) -> None:
    """Columns whose names differ by the unit only: one duration twice, of which the better counts, or in two parts."""
    for at, one in enumerate(candidates):
        for other in candidates[at + 1 :]:
            a, b = cells[one.columns[0]], cells[other.columns[0]]
            if a.words != b.words or not a.unit or not b.unit or a.unit == b.unit or a.kind != b.kind:
                continue
            if np.allclose(
                a.numbers * UNITS[a.unit],
                b.numbers * UNITS[b.unit],
                rtol=0.05,
                atol=max(UNITS[a.unit], UNITS[b.unit]),
                equal_nan=True,
            ):
                max(one, other, key=lambda each: UNITS[str(each.unit)]).score.add_content("twin")
            else:
                one.score.add_content("part_of_two")
                other.score.add_content("part_of_two")


def _weigh_numbers(cells: Cells, score: Score) -> None:
    """What the numbers of a column say for and against a latency."""
    values = cells.measures
    if cells.kind == "duration":
        score.add_content("unit_in_cells")
    elif cells.kind == "clock":
        score.add_content("clock_cells")
    if cells.epoch:
        score.add_content("epoch")
    elif cells.rises and cells.kind == "number":
        score.add_content("rising", min(1.0, values.size / 20))
    positive = values[values != -1]
    if positive.size and (positive < 0).mean() > 0.1:
        score.add_content("negative")
    different = np.unique(positive).size
    if (values.size > 4 and different <= 1) or (values.size and not positive.any()):
        score.add_content("constant")
    elif values.size >= 20 and different <= 3:
        score.add_content("few_values")
    if cells.kind == "number" and (values % 1 != 0).any():
        score.add_content("decimals")


def _equal_pair(
    each: Cells, cells: Mapping[str, Cells], pairs: Sequence[Candidate]
) -> tuple[Candidate, str | None] | None:
    """The start and end whose difference a column holds, and the unit that this proves."""
    measured = each.numbers if each.kind == "number" else each.seconds
    for pair in sorted(pairs, key=lambda pair: -pair.score.total):
        spent = cells[str(pair.ended)].seconds - cells[pair.columns[0]].seconds
        with np.errstate(invalid="ignore"):
            known = (spent > 0) & (measured > 0) & np.isfinite(spent)
        if np.count_nonzero(known) < 3:
            continue
        ratio = measured[known] / spent[known]
        middle = float(np.median(ratio))
        for unit in ("s", "ms", "us", "ns", "min", "h") if each.kind == "number" else ("s",):
            if abs(middle * UNITS[unit] - 1) < 0.1 and (np.abs(ratio * UNITS[unit] - 1) < 0.25).mean() > 0.7:
                return pair, unit if each.kind == "number" else None
    return None


def _decide_latency(
    candidates: Sequence[Candidate], said: Mapping[str, str], names: Sequence[str], log: str
) -> Candidate:
    """The reading of the latency that leads clearly; an error with the options where none does."""
    if said.get("latency"):
        columns = tuple(said["latency"].split("+"))
        known = (each for each in candidates if each.columns == columns and not each.ended)
        return next(known, Candidate(columns, Score()))
    if said.get("ended"):
        starts = [each for each in candidates if each.ended == said["ended"] and "submitted" not in said]
        start = said.get("submitted") or (starts[0].columns[0] if starts else None)
        if start is None:
            raise MissingColumn(f"{log}: name the start of {said['ended']!r} too: --column submitted=NAME")
        return Candidate((start,), Score(), ended=said["ended"])
    good = [each for each in candidates if each.score.total >= THRESHOLD]
    if said.get("submitted"):  # a pair would begin there
        good = [each for each in good if not each.ended or each.columns[0] == said["submitted"]]
    if "latency" in said:  # switched off: a start and an end are asked for
        good = [each for each in good if each.ended]
    if not good:
        raise MissingColumn(
            f"{log}: no column looks like a latency, nor a pair like a submission and an end; there are: "
            f"{listed(names)}{_first_line(names)}. {_suggestion(candidates)}"
        )
    close = [each for each in good[:3] if good[0].score.total - each.score.total < MARGIN]
    if len(close) > 1:
        described = [
            f"{each.ended!r} minus {each.columns[0]!r}" if each.ended else repr(each.columns[0]) for each in close
        ]
        options = ", or ".join(each.option for each in close)
        raise MissingColumn(f"{log}: the latency may be {' or '.join(described)}. Choose one: {options}")
    return good[0]


def _suggestion(candidates: Sequence[Candidate]) -> str:
    """How to name the latency's column: the best one whose numbers can be durations at all."""
    best = next((each for each in candidates if not each.ended and 2 * each.score.total >= THRESHOLD), None)
    if best is None:
        return "Name it: --column latency=NAME, or --column submitted=NAME --column ended=NAME"
    return f"Name it, for example: --column latency={best.columns[0][:40]}"


def _first_line(names: Sequence[str]) -> str:
    """What to say where the names of columns look like cells."""
    data = any(re.match(rf"{MOMENT}|[\d.]+$|column\d+$", name.strip()) or has_unit(name) for name in names)
    return " (the first line seems to hold data: there is no header that names the columns)" if data else ""


# ------------------------------------------------------------------------------------------------------- the unit


def _unit(
    taken: Candidate, cells: Mapping[str, Cells], submitted: str | None, said: str | None, log: str
) -> tuple[str | None, str]:
    """The unit of a latency, None where its cells have their own, and the evidence; an error where it is open."""
    name, column = taken.columns[0], cells.get(taken.columns[0])
    if said:
        return said, "option"
    if column is None or (column.kind in ("duration", "clock", "text") and not column.unit):
        return None, "cells"
    if name in VOCABULARY["exact_units"]:
        return str(VOCABULARY["exact_units"][name]), "name"
    if taken.unit:
        return taken.unit, "name" if taken.unit == column.unit else "times"
    if name == "latency" and {"submitted", "status"} & set(cells):
        return "s", "name"  # as `convert` writes them
    scores = {unit: Score(prior) for unit, prior in VOCABULARY["units"].items()}
    _weigh_units(scores, column, cells, submitted)
    ranked = sorted(scores, key=lambda unit: -scores[unit].total)
    close = [unit for unit in ranked if scores[ranked[0]].total - scores[unit].total < MARGIN]
    if len(close) > 1:
        options = ", or ".join(f"--unit {unit}" for unit in close)
        raise LogError(
            f"{log}: column {name!r} may be in {' or '.join(close)}: nothing says which. Choose one: {options}"
        )
    return ranked[0], scores[ranked[0]].why


def _weigh_units(scores: dict[str, Score], column: Cells, cells: Mapping[str, Cells], submitted: str | None) -> None:
    """What the other columns, what is possible and what is usual say of the unit."""
    if column.name == "latency":
        scores["s"].add_content("own_name")
    values = column.measures[column.measures > 0]
    if not values.size:
        return
    middle, largest = float(np.median(values)), float(np.quantile(values, 0.95))
    weights = _systems(cells)
    for unit, score in scores.items():
        at = math.log10(middle * UNITS[unit])
        density = sum(
            weight * math.exp(-0.5 * ((at - system["typical"]) / system["spread"]) ** 2) / system["spread"]
            for weight, system in weights
        )
        score.add(max(-8.0, math.log(density + 1e-9)) + 3, "a usual latency for what the other columns hold")
    beside = {each.epoch for each in cells.values() if each.epoch}
    if "ms" in beside:
        scores["ms"].add_content("epoch_ms_beside")
    elif "us" in beside:
        scores["us"].add_content("epoch_us_beside")
    for phrase in phrases(column.words):
        if phrase in USUAL_UNITS:
            scores[USUAL_UNITS[phrase]].add_content("usual_unit")
            break
    decimals = max((len(text.partition(".")[2]) for text in column.text[:100] if "e" not in text.lower()), default=0)
    if not (values % 1).any():
        if np.unique(values).size >= 5:
            conventions = sum(w for w, s in weights if s["unit"] == "ms") / sum(w for w, _ in weights)
            scores["ms"].add_content("whole_numbers", conventions)
            scores["s"].add_content("whole_numbers", 1 - conventions)
    elif decimals >= 5:
        scores["s"].add_content("many_decimals")
    elif middle < 10:
        scores["s"].add_content("fractions")
    times = cells.get(submitted or "")
    span = float(np.ptp(times.measures)) if times is not None and times.is_time and times.measures.size else 0.0
    if span > 0:
        for unit, score in scores.items():
            excess = math.log10(2 * largest * UNITS[unit] / span)
            if excess > 0:
                score.add_content("longer_than_log", excess)


def _systems(cells: Mapping[str, Cells]) -> list[tuple[float, dict[str, Any]]]:
    """The kinds of systems that the words of all columns speak of, with their shares."""
    words = Counter(phrase for each in cells.values() for phrase in {*phrases(each.words)})
    for each in cells.values():
        if set(each.text[:50]) & {"GET", "POST", "PUT"} or (
            is_http_column(each.text[:50]) and weigh("status", each.words)[0]
        ):
            words["method"] += 2
    return [
        (0.05 + min(4.0, sum(min(2, words[word]) for word in system["words"])) ** 1.5, system)
        for system in VOCABULARY["systems"].values()
    ]


# ------------------------------------------------------------------------------------- submission and outcome


def _submitted(
    cells: Mapping[str, Cells], taken: Candidate, options: ReadOptions, why: dict[str, str], notes: list[str]
) -> str | None:
    """The column of submission times: named so, holding times, and the earliest of its row."""
    if "submitted" in options.columns:
        return options.columns["submitted"] or None
    if taken.ended:
        return taken.columns[0]
    used = set(taken.columns)
    scores: dict[str, Score] = {}
    for name, each in cells.items():
        relative = each.kind == "number" and each.rises and not each.epoch
        if name in used or each.is_day or not (each.is_time or relative):
            continue
        score, (stage, weight) = Score(), stage_of(each)
        score.add(-weight if stage == "ended" else weight, f"{' '.join(each.words)!r} is the name of a time")
        score.add(-0.3 * weigh("other", each.words)[0] if relative else 0, "")
        score.add_content("is_time", 0.4 if relative else 1.0)
        scores[name] = score
    for name, each in cells.items():
        if each.kind == "clock" and each.rises and name not in used and stage_of(each)[1]:
            notes.append(f"column {name!r} holds times of day without a date: it is not used; join it with the date")
        elif each.kind == "text" and name not in used and stage_of(each)[1] >= 5 and not scores:
            first = each.text[0][:40]
            notes.append(f"column {name!r} is not used: {first!r} {NOT_A_TIME}")
    times = [name for name in scores if cells[name].is_time and np.isfinite(cells[name].seconds).any()]
    if len(times) > 1:
        first = min(times, key=lambda name: float(np.nanmedian(cells[name].seconds)))
        scores[first].add_content("earliest")
    best = max(scores, key=lambda name: scores[name].total, default=None)
    if best is None or scores[best].total < THRESHOLD:
        return None
    times = [name for name in times if stage_of(cells[name])[0] != "ended"]
    if len(times) > 1 and not stage_of(cells[best])[1]:
        notes.append(f"{listed(times)} may be the time of submission: --column submitted=NAME says which")
        return None
    if cells[best].order_is_open and not options.time_format:
        raise LogError(cells[best].trouble)
    if cells[best].trouble and not options.time_format:
        notes.append(cells[best].trouble)
        return None
    why["submitted"] = scores[best].why
    return best


def _id(
    cells: Mapping[str, Cells], taken: Candidate, submitted: str | None, options: ReadOptions, notes: list[str]
) -> str | None:
    """The column that names probes, unless its values repeat or come back at other times."""
    if "id" in options.columns:
        return options.columns["id"] or None
    names = {"".join(each.words): name for name, each in reversed(list(cells.items())) if name not in taken.columns}
    own: str | None = next((names[word] for word in WEIGHTS["id"] if word in names), None)
    if own is None:
        return None
    values = pd.Series(cells[own].text)
    if values.nunique() < len(values) / 2:
        notes.append(f"column {own!r} repeats its values: it is not an id of probes")
        return None
    times = cells.get(submitted or "")
    if times is not None and attempt_column(cells) is None:
        again = pd.DataFrame({"id": cells[own].column.astype(str), "time": times.column.astype(str)})
        again = again[cells[own].known & again["id"].duplicated(keep=False)]
        if len(again) and not again.duplicated().any():
            notes.append(f"column {own!r} comes back at other times: they are attempts of one job, each a probe")
            return None
    return own


def _status(
    cells: Mapping[str, Cells], used: set[str | None], options: ReadOptions, why: dict[str, str], notes: list[str]
) -> str | None:
    """The column of outcomes; others that may tell them too are reported."""
    if "status" in options.columns:
        return options.columns["status"] or None
    said = options.lowered_statuses
    scores = {name: _weigh_outcomes(each, said) for name, each in cells.items() if name not in used}
    ranked = sorted(scores, key=lambda name: -scores[name].total)
    good = [name for name in ranked if scores[name].total >= THRESHOLD]
    others = [name for name in ranked if name not in good[:1] and scores[name].total >= THRESHOLD - MARGIN]
    if others:
        verb = "is" if len(others) == 1 else "are"
        notes.append(f"{listed(others)} may tell outcomes too and {verb} not used: --column status=NAME changes that")
    if not good and "latency" in cells and "status" in scores and cells["status"].text:
        good = ["status"]  # latfit's own names: unknown words are reported, not passed over
    if not good:
        return None
    why["status"] = scores[good[0]].why
    return good[0]


def _weigh_outcomes(each: Cells, statuses: Mapping[str, str]) -> Score:
    score = Score()
    if each.kind in ("time", "duration", "clock") or each.epoch or each.unit:
        score.add(-20, "")
        return score
    counts = Counter(word_of(text) for text in each.text)
    table = OutcomeWords(each.name, statuses, counts)
    blanks = int(np.count_nonzero(~each.known))
    weight, word = weigh("status", each.words)
    against, other = weigh("nostatus", each.words)
    score.add(weight, f"{word!r} in its name")
    score.add(-against, f"{other!r} in its name")
    if not counts:
        score.add(-20, "")
        return score
    meant = {text: table.outcome(text) for text in counts}
    share = sum(count for text, count in counts.items() if meant[text]) / counts.total()
    bad = any(outcome not in (None, "completed") for outcome in meant.values())
    if len(counts) > MAX_OUTCOME_WORDS and not table.has_errors and not table.is_http:
        score.add_content("many_words")
    plain_flags = set(counts) <= {*YES, *NO} and not table.flags and weight < 7
    counted_losses = table.flags.get("1") == "lost" and set(counts) <= {"0", "1"}
    unlike_its_name = share < 0.5 and (table.flags or table.has_exits or table.has_levels)
    if plain_flags or counted_losses or unlike_its_name:
        score.add(-20, "")
    numbers = all(re.fullmatch(r"-?\d+(\.\d+)?", text) for text in counts)
    if numbers and any("." in text and not text.endswith(".0") for text in counts):
        score.add(-20, "")
    elif numbers and table.is_http:
        usual = sum(count for text, count in counts.items() if re.fullmatch(r"[2345]\d\d(\.0)?", text)) / counts.total()
        score.add_content("http_codes" if usual > 0.6 and len(counts) <= 2 * MAX_OUTCOME_WORDS else "unknown_words")
    elif set(counts) <= table.flags.keys():
        score.add_content("flag_cells")
    elif numbers and not (table.has_exits or table.has_grpc or table.has_errors or table.has_levels):
        score.add_content("unknown_words")
    elif table.has_errors:
        score.add(1.0 if blanks else -4.0, "it is empty where all is well")
    else:
        score.add_content("known_words", share)
        score.add_content("unknown_words", 1 - share)
        if table.is_http and share < 0.8:  # a column called code may hold those of countries
            score.add_content("many_words")
    if bad and share > 0.7:
        score.add_content("says_failures")
    if len(counts) == 1 and not (blanks and table.has_errors):
        score.add_content("one_word")
    return score
