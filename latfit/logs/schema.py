"""Which column of a table is what: evidence adds up, and a near-tie is a question.

Each pair of a column and a role has one score. What the user says settles it. Otherwise the words of the column's name
count with their weights in `vocabulary.toml`, and so does what the sampled cells hold. The unit of a latency is
inferred in the same way. The best reading is used if it leads by `margin`; otherwise the user is asked to choose.
"""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations, product
from typing import Any

import numpy as np
import pandas as pd

from latfit.errors import LogError, MissingColumn, listed
from latfit.logs.cells import NOT_A_TIME, Cells
from latfit.logs.formats import ReadOptions
from latfit.logs.times import MICROSECONDS
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
from latfit.table import CANONICAL, COMPLETED, MEASURES, OWN_STATUS, STATUSES, ProbeTable
from latfit.units import SHORTEST, UNITS

THRESHOLD: float = VOCABULARY["decide"]["threshold"]
MARGIN: float = VOCABULARY["decide"]["margin"]
CONTENT: dict[str, dict[str, Any]] = VOCABULARY["content"]
NO_OUTCOMES = "there is no status column: every row with a latency is taken as completed"
SAMPLED_ROWS = 500
LOOKED_AT_ROWS = 100_000  # of a long log, from which the sample is taken
MAX_OUTCOME_WORDS = 12
MAX_CHOICES = 4  # that a question offers
MAX_LATENCY = 366 * 86400.0  # in the median, unless the user names the column
UNIT_REASONS = {"option": "--unit", "name": "its name says so", "times": "it equals an end minus a start"}
STAGES = {"submitted": "submission", "started": "a start", "ended": "an end", "moment": "an event"}
SPANS = {("submitted", "started"), *product(("submitted", "started"), ("ended", "moment")), ("moment", "ended")}


@dataclass
class Score:
    """A sum of evidence, with the reasons."""

    total: float = 0.0
    reasons: list[tuple[float, str]] = field(default_factory=list)

    def add(self, weight: float, why: str) -> None:
        if weight:
            self.total += weight
            self.reasons.append((weight, why))

    def add_content(self, **shares: float) -> None:
        """Add evidence in the cells: kinds of `[content]`, each with the share of its weight that applies."""
        for kind, share in shares.items():
            self.add(CONTENT[kind]["weight"] * float(share), CONTENT[kind]["why"])

    def add_name(self, section: str, words: Sequence[str], sign: int = 1) -> float:
        weight, word = weigh(section, words)
        self.add(sign * weight, f"{word!r} in its name")
        return weight

    @property
    def why(self) -> str:
        strong = sorted((reason for reason in self.reasons if reason[0] > 0), key=lambda reason: -reason[0])
        return "; ".join(dict.fromkeys(why for _, why in strong[:3]))


@dataclass(frozen=True)
class Candidate:
    """A reading of the latency: one column (or a sum of them), or a start and an end."""

    columns: tuple[str, ...]
    score: Score
    ended: str | None = None
    unit: str | None = None  # where the rows prove it

    def __str__(self) -> str:
        return f"{self.ended!r} minus {self.columns[0]!r}" if self.ended else repr(self.columns[0])

    @property
    def options(self) -> str:
        """The options that choose this reading."""
        roles = {"submitted": self.columns[0], "ended": self.ended} if self.ended else {"latency": self.columns[0]}
        return " ".join(f"--column {shlex.quote(f'{role}={name}')}" for role, name in roles.items())


@dataclass(frozen=True)
class Roles:
    """The column of each role; `unit` is that of the latency, `unit_evidence` the reason for it (see `LogFacts`).

    `has_outcomes`: whether the log tells how a probe ended. `measures`: `queue` if the latency is a wait in a queue,
    `work` if it is the run time of work. `time_formats`: those of the columns of times, where known. `why`: the
    evidence for each role, in words.
    """

    latency: tuple[str, ...] = ()
    submitted: str | None = None
    ended: str | None = None
    status: str | None = None
    id: str | None = None
    unit: str | None = None
    unit_evidence: str = ""
    has_outcomes: bool = True
    measures: str = ""
    time_formats: Mapping[str, str] = field(default_factory=dict)
    why: Mapping[str, str] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return UNITS[self.unit or "s"]

    @property
    def columns(self) -> dict[str, tuple[str, str]]:
        """Each column that has a role, with the role and the reason."""
        roles = dict.fromkeys(self.latency, "latency")
        roles |= {getattr(self, role): role for role in ("submitted", "ended", "status", "id") if getattr(self, role)}
        return {name: (role, self.why.get(role) or "the options or the format say so") for name, role in roles.items()}


def resolve_roles(
    names: list[str], options: ReadOptions, log: str, rows: pd.DataFrame, *, named: bool = True
) -> tuple[Roles, list[str]]:
    """The role of each column, by the user's options, the names and the sampled rows; and notes on what was guessed.

    Unless the columns are `named` by the log, their names are not evidence.
    """
    if not names:
        raise MissingColumn(f"{log}: there is no column with a name and plain values")
    check_named(options, names, log)
    is_converted = tuple(names[:3]) == CANONICAL  # as `convert` writes them
    if is_converted:
        options = replace(options, columns={**dict(zip(CANONICAL, CANONICAL, strict=True)), **options.columns})
    resolver = _Resolver(names, options, log, rows, named, is_converted)
    latency = resolver.latency()
    submitted = resolver.submitted(latency)
    id_column = resolver.id(latency, submitted)
    status = resolver.status({*latency.columns, latency.ended, submitted, id_column})
    unit, evidence = (None, "") if latency.ended else resolver.unit(latency, submitted)
    formats = {}
    for name in filter(None, (submitted, latency.ended)):  # as the user says, or its name: `start_ms`
        in_name = split_name(name)[1] or (options.unit if latency.ended else None)
        epoch = f"epoch-{in_name}".removesuffix("-s")
        if options.time_format or epoch in MICROSECONDS:
            formats[name] = options.time_format or epoch
    roles = Roles(
        latency=() if latency.ended else latency.columns,
        submitted=submitted,
        ended=latency.ended,
        status=status,
        id=id_column,
        unit=unit,
        unit_evidence=evidence,
        has_outcomes=bool(status or latency.ended or "status" in options.columns),
        measures=resolver.measures(latency),
        time_formats=formats,
        why={"latency": latency.score.why, **resolver.why},
    )
    return roles, [*_guesses(roles, options, attempt_column(names)), *resolver.notes]


def check_named(options: ReadOptions, names: Sequence[str], log: str) -> None:
    """Raise an error if a column that the user named is missing."""
    for name, role in options.named_columns.items():
        if name not in names:
            raise MissingColumn(f"{log}: there is no column {name!r} for {role}; there are: {listed(names)}")


def sample_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Evenly spread rows to judge columns by, with more rows for columns that are blank in all of these."""
    if len(frame) <= SAMPLED_ROWS:
        return frame
    rows = np.linspace(0, len(frame) - 1, SAMPLED_ROWS).astype(np.int64)
    blank = frame.columns[frame.iloc[rows].isna().all()]
    filled = [np.flatnonzero(frame[name].notna())[:50] for name in blank]
    sample = frame.iloc[np.unique(np.concatenate([rows, *filled]))]
    sample.attrs["sampled from"] = len(frame)
    return sample


def outcome_columns(table: ProbeTable) -> tuple[str, ...]:
    """The log's own columns that may be outcomes too, by their names and cells; none if all probes completed."""
    if (table.status == COMPLETED).all():
        return ()
    some = table.take(slice(None, None, 1 + table.n // LOOKED_AT_ROWS))
    rows = sample_rows(pd.DataFrame({name: some.columns[name].cells() for name in some.columns if name != OWN_STATUS}))
    scores = {str(name): _weigh_outcomes(Cells(str(name), rows[name]), {}) for name in rows}
    return tuple(name for name, score in scores.items() if score.total >= THRESHOLD - MARGIN)


def _guesses(roles: Roles, options: ReadOptions, attempts: str | None) -> Iterator[str]:
    if roles.latency and "latency" not in options.columns and roles.latency != ("latency",):
        evidence = UNIT_REASONS.get(roles.unit_evidence, roles.unit_evidence)
        unit = "the units in its cells" if roles.unit is None else f"{roles.unit} ({evidence})"
        yield f"column {roles.latency[0]!r} is read as the latency in {unit}"
    if roles.ended:
        yield f"latency is {roles.ended!r} minus {roles.submitted!r}"
    if not options.time_format:
        yield from (f"column {name!r} is read as {kind}" for name, kind in roles.time_formats.items())
    if not roles.has_outcomes:
        yield NO_OUTCOMES
    for role in ("submitted", "status", "id"):
        name = getattr(roles, role)
        if role == "id" and name and attempts is not None:
            yield f"each attempt is a probe: column {name!r} names the job, {attempts!r} numbers its attempts"
        elif name and name.lower() != role and role not in options.columns:
            hint = " (one probe each; switch off with --column id=)" if role == "id" else ""
            yield f"column {name!r} is read as {role}{hint}"


class _Resolver:
    """Weighs the columns of one log for each role; `why` has the evidence for each role, `notes` are for the user."""

    def __init__(
        self, names: list[str], options: ReadOptions, log: str, rows: pd.DataFrame, named: bool, is_converted: bool
    ) -> None:
        self.names, self.options, self.log, self.named = names, options, log, named
        self.is_converted = is_converted
        self.logged_names = named and not options.pattern  # the groups of a pattern are called as latfit suggests
        self.cells = {
            name: Cells(name, rows[name], options.time_format)
            for name in names
            if name and isinstance(rows.get(name), pd.Series)
        }
        self.n_rows = rows.attrs.get("sampled from", len(rows))
        self.why: dict[str, str] = {}
        self.notes: list[str] = []

    def latency(self) -> Candidate:
        candidates, by_user = self._latencies(), self.options.columns
        if by_user.get("latency"):
            columns = tuple(by_user["latency"].split("+"))
            same = (each for each in candidates if each.columns == columns and not each.ended)
            return next(same, Candidate(columns, Score()))
        start, end = by_user.get("submitted") or None, by_user.get("ended")
        pairs = [each for each in candidates if each.ended and start in (None, each.columns[0])]
        if end:
            start = start or next((each.columns[0] for each in pairs if each.ended == end), None)
            if start is None:
                raise MissingColumn(f"{self.log}: name the start of {end!r} too: --column submitted=NAME")
            return Candidate((start,), Score(), ended=end)
        # an empty name switches the latency off: then only a start and an end will do
        readings = [each for each in candidates if each in pairs or (not each.ended and "latency" not in by_user)]
        good = [each for each in readings if each.score.total >= THRESHOLD]
        close = [each for each in good if good[0].score.total - each.score.total < MARGIN]
        if len(close) == 1:
            return close[0]
        raise MissingColumn(self._question(close[:MAX_CHOICES], candidates))

    def _question(self, close: Sequence[Candidate], candidates: Sequence[Candidate]) -> str:
        """What to choose from: the readings that are about as likely as the best, or else any column."""
        cells = listed(f"{name} ({each.text[0][:20]})" for name, each in self.cells.items() if each.text)
        log = f"{self.log}: " if self.named else f"{self.log}: no header names the columns; they are: {cells}; "
        if close:
            names, options = " or ".join(map(str, close)), ", or ".join(self._options(close))
            return f"{log}the latency may be {names}. Choose one: {options}"
        text = f"{log}no column looks like a latency, nor a pair like a submission and an end"
        text += f"; there are: {listed(self.names)}" if self.named else ""
        likely = [each for each in candidates if not each.ended and 2 * each.score.total >= THRESHOLD][:1]
        if likely:
            return f"{text}. Name it, for example: {self._options(likely)[0]}"
        return f"{text}. Name it: --column latency=NAME, or --column submitted=NAME --column ended=NAME"

    def _options(self, readings: Sequence[Candidate]) -> list[str]:
        """The options that choose each reading, with the likeliest unit where that would be the next question."""
        options, unit = [], ""
        for each in readings:
            units = [] if each.ended else self._units(each, self.submitted(each))[0]
            unit = unit or (f" --unit {units[0]}" if len(units) > 1 else "")
            options.append(each.options + (unit if len(units) > 1 else ""))
        return options

    def measures(self, latency: Candidate) -> str:
        """`queue` for a wait from submission to start, `work` for a run time, empty for the rest."""
        if latency.ended:
            end = self.cells.get(latency.ended)
            return "queue" if end and end.stage == "started" else ""
        if self.is_converted:
            return next((kind for kind, name in MEASURES.items() if name in self.names), "")
        words = split_name(latency.columns[0])[0]
        return next((kind for kind in MEASURES if weigh(kind, words)[0]), "")

    def _latencies(self) -> list[Candidate]:
        """Every reading with its score, the best first."""
        pairs, candidates = self._pairs(), []
        summaries = any({"max", "avg", "mean", "average", "mdev"} & set(each.words) for each in self.cells.values())
        explained: list[Candidate] = []
        timed = len(self.cells) == 1 or any(each.is_time for each in self.cells.values())  # as rows of a log are
        for name, each in self.cells.items():
            canonical = each.words == ("latency",)
            if not canonical and (each.kind not in ("number", "duration", "clock") or not each.measures.size):
                continue
            words, unit = each.words, each.unit
            if unit == "min" and summaries and name.lower().rstrip(")] ").endswith("min"):
                words, unit = (*words, "min"), None
            score = Score()
            weight = score.add_name("latency", words)
            for section in ("part", "other"):
                score.add_name(section, words, -1)
            if any(re.fullmatch(r"[pq]\d{1,4}|\d+(th|pct|ile)", word) for word in words):
                score.add(-WEIGHTS["other"]["percentile"], "its name is that of a percentile")
            pair, proof = self._equal_pair(each, pairs)
            score.add_content(
                unit_in_name=unit is not None and weight >= 0,
                canonical=self.named and canonical,
                unnamed=0.0 if self.named else 1.0 if timed else 0.5,
                difference=pair is not None,
                work_not_wait=pair is not None and any(weight < 0 for weight, _ in pair.score.reasons),
                **_evidence_in_numbers(each, units=self.named or timed),
            )
            if pair is not None and score.total >= THRESHOLD:
                explained.append(pair)
                score.add(max(0.0, pair.score.total - score.total), pair.score.why)
            candidates.append(Candidate((name,), score, unit=unit or proof))
        candidates += [pair for pair in pairs if pair not in explained]
        return sorted(candidates, key=lambda each: -each.score.total)

    def _pairs(self) -> list[Candidate]:
        """Each start and end whose difference may be the latency, the best first."""
        times = [
            each
            for each in self.cells.values()
            if np.isfinite(each.seconds).any() and ((each.is_time and not each.is_day) or each.is_relative)
        ]
        submissions = any(each.stage == "submitted" and each.stage_weight >= 7 for each in times)
        starts = any(each.stage == "started" for each in times)
        pairs = []
        for start, end in permutations(times, 2):
            stages = start.stage, end.stage
            spent = end.seconds - start.seconds
            spent = spent[np.isfinite(spent)]
            if stages not in SPANS or start.is_time != end.is_time or not spent.size:
                continue
            if (spent >= 0).mean() < 0.7 or (spent.size > 2 and np.ptp(spent) == 0):
                continue
            score = Score()
            for each in (start, end):
                score.add(0.55 * each.stage_weight, f"{each.name!r} is the time of {STAGES[each.stage]}")
            score.add_content(
                work_not_wait=stages[0] == "started" and submissions,
                turnaround=stages == ("submitted", "ended") and starts,
            )
            pairs.append(Candidate((start.name,), score, ended=end.name))
        return sorted(pairs, key=lambda pair: -pair.score.total)

    def _equal_pair(self, each: Cells, pairs: Sequence[Candidate]) -> tuple[Candidate | None, str | None]:
        """The start and end whose difference a column holds, and the unit that this proves."""
        for pair in pairs:
            spent = self.cells[str(pair.ended)].seconds - self.cells[pair.columns[0]].seconds
            known = (spent > 0) & (each.cell_values > 0) & np.isfinite(spent)
            if np.count_nonzero(known) < 3:
                continue
            ratio = each.cell_values[known] / spent[known]
            for unit in ("s", "ms", "us", "ns", "min", "h") if each.kind == "number" else ("s",):
                off = np.abs(ratio * UNITS[unit] - 1)
                if abs(np.median(ratio) * UNITS[unit] - 1) < 0.1 and (off < 0.25).mean() > 0.7:
                    return pair, unit if each.kind == "number" else None
        return None, None

    def unit(self, latency: Candidate, submitted: str | None) -> tuple[str | None, str]:
        units, evidence = self._units(latency, submitted)
        if len(units) > 1:
            choices = ", or ".join(f"--unit {unit}" for unit in units)
            may_be = f"column {latency.columns[0]!r} may be in {' or '.join(units)}; the log does not say which"
            raise LogError(f"{self.log}: {may_be}. Choose one: {choices}")
        return next(iter(units), None), evidence

    def _units(self, latency: Candidate, submitted: str | None) -> tuple[list[str], str]:
        """The units that the latency may have, the likeliest first (none if its cells have them), and the evidence."""
        name, column = latency.columns[0], self.cells.get(latency.columns[0])
        if self.options.unit:
            return [self.options.unit], "option"
        if column is None or (column.kind in ("duration", "clock", "time", "text") and not column.unit):
            return [], "cells"
        if latency.unit:
            return [latency.unit], "name" if latency.unit == column.unit else "times"
        if self.logged_names and name == "latency" and self._is_own_schema():
            return ["s"], "name"
        scores = {unit: Score(prior) for unit, prior in VOCABULARY["units"].items()}
        self._weigh_units(scores, column, submitted)
        ranked = sorted(scores, key=lambda unit: -scores[unit].total)
        best, margin = scores[ranked[0]], MARGIN if self.logged_names else 2 * MARGIN  # sizes alone prove little
        return [unit for unit in ranked if best.total - scores[unit].total < margin], best.why

    def _is_own_schema(self) -> bool:
        """Whether more names than `latency`, which many logs have, are those of latfit's schema."""
        words = set(map(word_of, self.cells["status"].text)) if "status" in self.cells else set()
        words -= {*self.options.lowered_statuses}  # those that the user explains
        return self.is_converted or "submitted" in self.cells or (bool(words) and words <= {*STATUSES})

    def _weigh_units(self, scores: dict[str, Score], column: Cells, submitted: str | None) -> None:
        scores["s"].add_content(own_name=self.logged_names and column.name == "latency")
        if column.name in VOCABULARY["exact_units"]:
            scores[VOCABULARY["exact_units"][column.name]].add_content(exact_unit=1)
        values = column.measures[column.measures > SHORTEST]
        if not values.size:
            return
        middle, largest = float(np.median(values)), float(np.quantile(values, 0.95))
        systems = self._systems()
        times = self.cells[submitted].seconds if submitted in self.cells else np.empty(0)
        times = times[np.isfinite(times)]
        span = float(np.ptp(times)) if times.size else 0.0
        for unit, score in scores.items():
            at = math.log10(middle * UNITS[unit])
            density = sum(
                weight * math.exp(-0.5 * ((at - system["typical"]) / system["spread"]) ** 2) / system["spread"]
                for weight, system in systems
            )
            score.add_content(impossible=middle * UNITS[unit] > MAX_LATENCY)
            score.add(max(-8.0, math.log(density + 1e-9)) + 3, "a usual latency for what the other columns hold")
            if span > 0:  # and how many of its rows would be out at a time, up to a hundred
                at_once = middle * UNITS[unit] * self.n_rows / span
                score.add_content(
                    longer_than_log=min(1.0, max(0.0, math.log10(2 * largest * UNITS[unit] / span))),
                    many_at_once=min(1.0, max(0.0, math.log10(at_once) / 2)),
                )
        epochs = {each.epoch for each in self.cells.values()}
        scores["ms"].add_content(epoch_ms_beside="ms" in epochs)
        scores["us"].add_content(epoch_us_beside="us" in epochs and "ms" not in epochs)
        usual = next((USUAL_UNITS[phrase] for _, phrase in phrases(column.words) if phrase in USUAL_UNITS), None)
        if usual:
            scores[usual].add_content(usual_unit=1)
        if (values % 1).any():
            decimals = (len(text.partition(".")[2]) for text in column.text[:100] if "e" not in text.lower())
            many = max(decimals, default=0) >= 5
            scores["s"].add_content(many_decimals=many, fractions=not many and middle < 10)
        elif np.unique(values).size >= 5 and middle < 1e5:  # larger ones may well be microseconds
            in_ms = sum(w for w, system in systems if system["unit"] == "ms") / sum(w for w, _ in systems)
            scores["ms"].add_content(whole_numbers=in_ms)
            scores["s"].add_content(whole_numbers=1 - in_ms)

    def _systems(self) -> list[tuple[float, dict[str, Any]]]:
        """The kinds of systems that the log may come from, weighed by the words in the names of its columns."""
        words = Counter(phrase for each in self.cells.values() for phrase in {run[1] for run in phrases(each.words)})
        for each in self.cells.values():
            some = each.text[:50]
            if {"GET", "POST", "PUT"} & set(some) or (is_http_column(some) and weigh("status", each.words)[0]):
                words["method"] += 2
        return [
            (0.05 + min(4.0, sum(min(2, words[word]) for word in system["words"])) ** 1.5, system)
            for system in VOCABULARY["systems"].values()
        ]

    def submitted(self, latency: Candidate) -> str | None:
        if "submitted" in self.options.columns:
            return self.options.columns["submitted"] or None
        if latency.ended:
            return latency.columns[0]
        others = {name: each for name, each in self.cells.items() if name not in latency.columns}
        scores: dict[str, Score] = {}
        for name, each in others.items():
            relative = each.kind == "number" and each.rises and not each.epoch
            if relative or (each.is_time and not each.is_day):
                score = scores[name] = Score()
                weight = -each.stage_weight if each.stage == "ended" else each.stage_weight
                score.add(weight, f"{' '.join(each.words)!r} is the name of a time")
                score.add(-0.3 * weigh("other", each.words)[0] if relative else 0, "")
                score.add_content(is_time=0.4 if relative else 1.0)
        for name, each in others.items():
            if each.kind == "clock" and each.rises and each.stage_weight:
                without_date = "holds times of day without a date: it is not used; join it with the date"
                self.notes.append(f"column {name!r} {without_date}")
            elif each.kind == "text" and each.stage_weight >= 5 and not scores:
                self.notes.append(f"column {name!r} is not used: {each.text[0][:40]!r} {NOT_A_TIME}")
        readable = [name for name in scores if others[name].is_time and np.isfinite(others[name].seconds).any()]
        middles = {name: np.nanmedian(others[name].seconds) for name in readable}
        if len(middles) > 1:
            scores[min(middles, key=lambda name: middles[name])].add_content(earliest=1)
        best = max(scores, key=lambda name: scores[name].total, default=None)
        if best is None or scores[best].total < THRESHOLD:
            return None
        times = [name for name in readable if others[name].stage != "ended"]
        if len(times) > 1 and not others[best].stage_weight:
            self.notes.append(f"{listed(times)} may be the time of submission: choose one with --column submitted=NAME")
            return None
        if others[best].trouble and not self.options.time_format:
            if others[best].order_is_open:
                raise LogError(others[best].trouble)
            self.notes.append(others[best].trouble)
            return None
        self.why["submitted"] = scores[best].why
        return best

    def id(self, latency: Candidate, submitted: str | None) -> str | None:
        if "id" in self.options.columns:
            return self.options.columns["id"] or None
        order = [*WEIGHTS["id"]]
        named = {
            "".join(each.words): each for each in reversed(self.cells.values()) if each.name not in latency.columns
        }
        column = next((named[name] for name in order if name in named), None)
        if column is None:
            return None
        if len(set(column.text)) < len(column.text) / 2:
            self.notes.append(f"column {column.name!r} repeats its values: it is not an id of probes")
            return None
        times = self.cells.get(submitted or "")
        if times is not None and attempt_column(self.cells) is None:
            again = pd.DataFrame({"id": column.column.astype(str), "time": times.column.astype(str)})
            again = again[column.known & again["id"].duplicated(keep=False)]
            if len(again) and not again.duplicated().any():
                attempts = "comes back at other times: they are attempts of one job, each a probe"
                self.notes.append(f"column {column.name!r} {attempts}")
                return None
        return column.name

    def status(self, used: set[str | None]) -> str | None:
        if "status" in self.options.columns:
            return self.options.columns["status"] or None
        by_user = self.options.lowered_statuses
        scores = {name: _weigh_outcomes(each, by_user) for name, each in self.cells.items() if name not in used}
        ranked = sorted(scores, key=lambda name: -scores[name].total)
        good = [name for name in ranked if scores[name].total >= THRESHOLD]
        for name in (name for name in ranked if name not in good[:1] and scores[name].total >= THRESHOLD - MARGIN):
            use = f"--column {shlex.quote(f'status={name}')} uses it instead"
            self.notes.append(f"column {name!r} may be an outcome and is ignored: {use}")
        if not good and "latency" in self.cells and "status" in scores and self.cells["status"].text:
            good = ["status"]  # the names are latfit's own: report unknown words instead of ignoring the column
        if not good:
            return None
        self.why["status"] = scores[good[0]].why
        return good[0]


def _evidence_in_numbers(cells: Cells, units: bool) -> dict[str, float]:
    values = cells.measures
    positive = values[values != -1]
    different = np.unique(positive).size
    above = values[values > 0] * (UNITS[cells.unit or "ns"] if cells.kind == "number" else 1.0)
    too_long = above.size > 0 and float(np.median(above)) > MAX_LATENCY
    constant = values.size > 0 and (not positive.any() or (values.size > 4 and different <= 1))
    return {
        "unit_in_cells": cells.kind == "duration" and units,
        "clock_cells": cells.kind == "clock",
        "epoch": cells.epoch is not None,
        "rising": min(1.0, values.size / 20) if cells.rises and not cells.epoch and cells.kind != "duration" else 0,
        "impossible": cells.words != ("latency",) and (too_long or (positive.size > 4 and (positive < 0).mean() > 0.3)),
        "negative": positive.size > 0 and (positive < 0).mean() > 0.1,
        "codes": 0 < different <= MAX_OUTCOME_WORDS and is_http_column(cells.text),
        "constant": constant,
        "few_values": not constant and values.size >= 20 and different <= 3,
        "decimals": cells.kind == "number" and (values % 1 != 0).any(),
    }


def _weigh_outcomes(each: Cells, statuses: Mapping[str, str]) -> Score:
    score, counts = Score(), Counter(word_of(text) for text in each.text)
    if not counts or each.kind in ("time", "duration", "clock") or each.epoch or each.unit:
        return Score(-20.0)
    table = OutcomeWords(each.name, statuses, counts)
    blanks = not each.known.all()
    weight = score.add_name("status", each.words)
    score.add_name("nostatus", each.words, -1)
    meant = {text: table.outcome(text) for text in counts}
    share = sum(count for text, count in counts.items() if meant[text]) / counts.total()
    numbers = all(re.fullmatch(r"-?\d+(\.\d+)?", text) for text in counts)
    fractions = numbers and any("." in text and not text.endswith(".0") for text in counts)
    plain_flags = set(counts) <= {*YES, *NO} and not table.flags and weight < 7
    counted_losses = table.flags.get("1") == "lost" and set(counts) <= {"0", "1"}
    unlike_its_name = share < 0.5 and (table.flags or table.kinds & {"exits", "levels"})
    if plain_flags or counted_losses or unlike_its_name or fractions:
        score.add(-20, "")
    elif numbers and table.is_http:
        usual = sum(count for text, count in counts.items() if re.fullmatch(r"[2345]\d\d(\.0)?", text)) / counts.total()
        is_code = usual > 0.6 and len(counts) <= 2 * MAX_OUTCOME_WORDS
        score.add_content(http_codes=is_code, unknown_words=not is_code)
    elif set(counts) <= table.flags.keys():
        score.add_content(flag_cells=1)
    elif numbers and not table.kinds:
        score.add_content(unknown_words=1)
    elif "errors" in table.kinds:
        score.add(1.0 if blanks else -4.0, "it is empty where all is well")
    else:  # a column called code may hold those of countries
        score.add_content(known_words=share, unknown_words=1 - share, many_words=table.is_http and share < 0.8)
    fails = any(outcome not in (None, "completed") for outcome in meant.values())
    score.add_content(
        many_words=len(counts) > MAX_OUTCOME_WORDS and "errors" not in table.kinds and not table.is_http,
        says_failures=share > 0.7 and fails,
        one_word=len(counts) == 1 and not (blanks and "errors" in table.kinds),
    )
    return score
