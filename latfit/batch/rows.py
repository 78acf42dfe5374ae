"""From the samples of a chunk of groups to one row of results a group: the function that every engine runs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np

from latfit.batch.optimum import Found, is_plain, optima, optimum_of
from latfit.checks import REJECTED, about_optimum
from latfit.decision import Recommendation
from latfit.errors import LatfitError
from latfit.fitting import DEFAULT_LAWS, SampleBatch, cell_width, fit, fit_batch
from latfit.goodness import assess
from latfit.logs.table import Key
from latfit.numbers import finite
from latfit.outliers import default_cutoff, outlier_ratio
from latfit.restart.advice import MIN_COMPLETIONS
from latfit.sample import Floats, Ints, LatencySample, Tally
from latfit.uncertainty import bootstrap

Row = dict[str, Any]

RESAMPLES = 199
TEST_RESAMPLES = 199
RESULTS: dict[str, type] = {
    "probes": int, "completed": int, "failed": int, "censored": int, "lost": int,
    "cutoff": float, "count": int, "ratio": float, "ratio_low": float, "ratio_high": float,
    "mean": float, "std": float, "median": float,
    "best": str, "params": str, "joint_ratio": float, "p_bootstrap": float,
    "verdict": str, "timeout": float, "low": float, "high": float,
    "expected_duration": float, "expected_duration_low": float, "expected_duration_high": float, "submissions": float,
    "speed_up_vs_cutoff": float, "speed_up_vs_cutoff_low": float, "speed_up_vs_cutoff_high": float,
    "warnings": str, "error": str,
}  # fmt: skip
"""The columns of results and their types; every one may be None."""

NUMERICAL = (LatfitError, ArithmeticError, np.linalg.LinAlgError)


@dataclass(frozen=True)
class Options:
    """How each group is analysed; `resamples` = 0 leaves out the intervals, `test` = False the p-value."""

    cutoff: float | None = None
    failed: str = "retry"
    cost: float = 0.0
    laws: tuple[str, ...] = DEFAULT_LAWS
    resamples: int = RESAMPLES
    test: bool = True
    seed: int = 0


@dataclass(frozen=True)
class Chunk:
    """Some groups, in the order of their names, and how to analyse them."""

    samples: Mapping[Key, LatencySample]
    options: Options

    def __reduce__(self) -> tuple[Any, ...]:
        """A few long arrays: to send each of the thousands of short ones on its own takes longer than to fit a law."""
        tallies = [Tally(), *(tally for sample in self.samples.values() for tally in _tallies(sample))]
        others = [(sample.lost, sample.cutoff, sample.resolution) for sample in self.samples.values()]
        sizes = np.array([tally.values.size for tally in tallies])
        values, counts = (np.concatenate([getattr(t, name) for t in tallies]) for name in ("values", "counts"))
        small = counts.astype(np.min_scalar_type(counts.max(initial=1)))
        return _unpacked, (list(self.samples), self.options, others, sizes, values, small)


def _tallies(sample: LatencySample) -> tuple[Tally, Tally, Tally]:
    return sample.completed, sample.failed, sample.censored


def _unpacked(
    keys: list[Key], options: Options, others: list[tuple[Any, ...]], sizes: Ints, values: Floats, small: Ints
) -> Chunk:
    """The chunk as it was."""
    counts, ends = small.astype(np.int64), np.cumsum(sizes).tolist()
    for array in (values, counts):
        array.flags.writeable = False
    parts = [Tally.trusted(values[a:b], counts[a:b]) for a, b in pairwise(ends)]
    each = zip(parts[::3], parts[1::3], parts[2::3], others, strict=True)
    samples = [LatencySample(done, gone, out, *rest) for done, gone, out, rest in each]
    return Chunk(dict(zip(keys, samples, strict=True)), options)


def chunk_text(chunk: Chunk) -> str:
    """The rows of a chunk as JSON: what the journal keeps."""
    return json.dumps(chunk_rows(chunk), ensure_ascii=False, allow_nan=False)


def chunk_rows(chunk: Chunk) -> list[Row]:
    """One row a group: what cannot be answered is None, and `error` says why."""
    options, rows, alike = chunk.options, [], defaultdict(list)
    for key, sample in chunk.samples.items():
        row, cut = _begun(sample, options)
        rows.append(row)
        if cut is not None:
            # rows of one batch share a clock that makes cells, and are padded to less than twice their size
            alike[cell_width(cut), cut.completed.values.size.bit_length()].append((key, row, cut))
    for groups in alike.values():
        # resamples of small groups in which nothing completes, and latencies near the largest number
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            _add_answers(groups, options)
    for row in rows:
        row["warnings"] = ",".join(row["warnings"])
    return rows


def _add_answers(groups: Sequence[tuple[Key, Row, LatencySample]], options: Options) -> None:
    """The best law, the timeout with its intervals, and the test of the law, for groups that make one batch."""
    keys, rows, samples = zip(*groups, strict=True)
    _add_best_laws(rows, samples, options.laws)
    found = _optima(samples, [row["cutoff"] for row in rows], options.cost)
    for key, row, sample, optimum in zip(keys, rows, samples, found, strict=True):
        _add_recommendation(row, sample, optimum)
        if options.resamples or options.test:
            rng = np.random.default_rng([options.seed, _name_seed(key)])
            _add_intervals(row, sample, options, rng)
            _add_test(row, sample, options, rng)


def _name_seed(key: Key) -> int:
    """A whole number that depends on the name of a group and on nothing else."""
    return int.from_bytes(blake2b("\0".join(key).encode(), digest_size=8).digest())


def _begun(sample: LatencySample, options: Options) -> tuple[Row, LatencySample | None]:
    """The row with what can be counted, and the sample cut for the rest, None where it is too small."""
    row: Row = dict.fromkeys(RESULTS)
    tallies = {"completed": sample.completed, "failed": sample.failed, "censored": sample.censored}
    row |= {"probes": sample.n, **{name: tally.total for name, tally in tallies.items()}, "lost": sample.lost}
    row["warnings"] = []
    try:
        whole = sample.with_failed(options.failed)
        cutoff = default_cutoff(whole).cutoff if options.cutoff is None else options.cutoff
        cut = whole if whole.cutoff == cutoff else whole.cut(cutoff)
        ratio = outlier_ratio(cut)
    except LatfitError as problem:
        row["error"] = str(problem)
        return row, None
    row |= {"cutoff": ratio.cutoff, "count": ratio.count}
    row |= {"ratio": ratio.estimate, "ratio_low": ratio.low, "ratio_high": ratio.high}
    done = cut.completed
    if done.total:
        mean = float(np.average(done.values, weights=done.counts))
        squares = float((done.counts * (done.values - mean) ** 2).sum())
        middle = np.searchsorted(np.cumsum(done.counts), done.total / 2)
        row |= {"mean": mean, "std": (squares / max(1, done.total - 1)) ** 0.5, "median": float(done.values[middle])}
    if done.total < MIN_COMPLETIONS:
        row["error"] = (
            f"only {done.total} of {cut.n} probes completed within {ratio.cutoff:g} s; "
            f"a timeout needs at least {MIN_COMPLETIONS}"
        )
        return row, None
    return row, cut


def _add_best_laws(rows: Sequence[Row], samples: Sequence[LatencySample], laws: Sequence[str]) -> None:
    """The law of the lowest BIC = k log n − 2 log L, ρ counted among its k parameters, all samples in one batch."""
    try:
        batch = SampleBatch.of_samples(samples)
        fits = [fit_batch(law, batch, errors=False) for law in laws]
    except NUMERICAL:
        if len(rows) > 1:  # find the one that cannot be fitted
            for row, sample in zip(rows, samples, strict=True):
                _add_best_laws([row], [sample], laws)
        else:
            rows[0]["warnings"].append("no-fit")
        return
    scores = np.array([(len(f.parameters) + 1) * np.log(batch.probes) - 2 * f.log_likelihood for f in fits])
    scores[~np.isfinite(scores)] = np.inf
    for at, (row, k) in enumerate(zip(rows, scores.argmin(axis=0), strict=True)):
        found = fits[k]
        if not np.isfinite(scores[k, at]):
            row["warnings"].append("no-fit")
            continue
        params = dict(zip(found.parameters, found.params[at].tolist(), strict=True))
        row |= {"best": found.law, "params": json.dumps(params), "joint_ratio": float(found.rho[at])}


def _optima(samples: Sequence[LatencySample], cutoffs: Sequence[float], cost: float) -> list[Found]:
    """The exact optimum of each sample, all at once where that is possible."""
    plain = [at for at, sample in enumerate(samples) if is_plain(sample)]
    found = {}
    if plain:
        some = [samples[at] for at in plain]
        found = dict(
            zip(plain, optima(SampleBatch.of_samples(some), some, [cutoffs[at] for at in plain], cost), strict=True)
        )
    return [found.get(at) or optimum_of(samples[at], cutoffs[at], cost) for at in range(len(samples))]


def _add_recommendation(row: Row, sample: LatencySample, found: Found) -> None:
    """The timeout, what it brings, and what to know of it."""
    best, E_J = found.optimum, found.optimum.expected_duration
    row |= {"verdict": best.verdict, "timeout": best.timeout, "expected_duration": E_J}
    row |= {"submissions": best.submissions, "speed_up_vs_cutoff": finite(found.at_cutoff / E_J) if E_J else None}
    recommended = Recommendation(best, best.rho, best.law, None, None)
    row["warnings"] += [*found.codes, *(warned.code for warned in about_optimum(recommended, sample, row["cutoff"]))]
    if row["ratio"] > 0 and found.out_at_half > row["ratio_high"]:
        row["warnings"].append("ratio-falling")


def _add_intervals(row: Row, sample: LatencySample, options: Options, rng: np.random.Generator) -> None:
    """The bootstrap intervals of the timeout, of E_J and of the speed-up."""
    if not options.resamples:
        return
    t = np.inf if row["timeout"] is None else row["timeout"]
    E_J, factor = (row[name] or np.inf for name in ("expected_duration", "speed_up_vs_cutoff"))
    try:
        ends = bootstrap(sample, t, E_J, factor, cost=options.cost, resamples=options.resamples, rng=rng)
    except NUMERICAL:
        row["warnings"].append("no-interval")
        return
    for name, pair in (
        ("", ends.timeout), ("expected_duration_", ends.expected_duration), ("speed_up_vs_cutoff_", ends.speed_up),
    ):  # fmt: skip
        row |= {f"{name}low": finite(pair[0]), f"{name}high": finite(pair[1])}


def _add_test(row: Row, sample: LatencySample, options: Options, rng: np.random.Generator) -> None:
    """The bootstrap p-value of the best law."""
    if not options.test or row["best"] is None:
        return
    tested = assess(sample, fit(sample, [row["best"]])[0], bootstrap=TEST_RESAMPLES, rng=rng)
    p = row["p_bootstrap"] = None if tested is None else tested.p_bootstrap
    if p is not None and p < REJECTED:
        row["warnings"].append("best-rejected")
