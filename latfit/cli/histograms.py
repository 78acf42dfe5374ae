"""What `timeout` and `analyze` share for histograms: options, how they are loaded, how a guarantee is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from latfit.cli import common as cli
from latfit.errors import LogError, SampleError

if TYPE_CHECKING:
    from latfit.buckets import Histogram
    from latfit.laws import Law
    from latfit.logs import HistogramLog


histogram_options = cli.options(
    cli.option("--lost N|COUNTER", "Histograms: how many never returned, or the counter that has it.", multiple=True),
    cli.option(
        "--failures N|COUNTER", "Histograms: how many failed after an unknown time, or the counter.", multiple=True
    ),
    cli.option("--sum C", "Histograms: the sum of all latencies in seconds (default: from LOG)."),
    cli.option("--before FILE", "Histograms: an earlier scrape, to be subtracted."),
)
"""The options that only histograms take."""


def check_histogram_options(parsed: dict[str, Any]) -> None:
    """Refuse options that would be ignored, as no histogram was found."""
    for name in ("lost", "failures", "sum", "before"):
        if parsed[name] not in (None, ()):
            raise click.UsageError(f"--{name} is for histograms, and LOG has none")


def load_histogram(read: HistogramLog, parsed: dict[str, Any]) -> Histogram:
    """The histogram that LOG holds, with what the options add to it; choices are printed to stderr."""
    from latfit.logs import read_histograms

    for name in ("since", "until"):
        if parsed[name] is not None:
            raise click.UsageError(f"--{name} needs the times of probes, which a histogram does not keep; see --before")
    how = {key: parsed[key] for key in ("format", "unit", "where")}
    if parsed["before"] is not None:
        read = read.since(read_histograms(parsed["before"], **how))
    histogram, notes = read.histogram()
    cli.notify("note", notes)
    lost, failed = (_count(read, name, parsed) for name in ("lost", "failures"))
    try:
        return histogram.with_outcomes(lost=lost, failed=failed, latency_sum=parsed["sum"])
    except SampleError as problem:
        raise LogError(f"{read.path}: {problem}") from problem


def _count(read: HistogramLog, name: str, parsed: dict[str, Any]) -> int:
    """The number that an option gives, or the counters that it names."""
    total = 0
    for text in parsed[name]:
        if text.isascii() and text.isdigit() and len(text) < 16:
            total += int(text)
        elif text[:1].isalpha() or text[:1] in "_:{":
            total += read.counter(text)
        else:
            raise click.BadParameter(f"{text!r} is neither a count nor the name of a counter", param_hint=f"--{name}")
    return total


def likely_law(histogram: Histogram, name: str | None) -> tuple[Law, tuple[Any, ...]]:
    """The law for questions that have no guaranteed answer: even inside the buckets, or fitted to the counts."""
    from latfit.decision import Warned
    from latfit.errors import FitError
    from latfit.histograms import fit_buckets, histogram_law
    from latfit.laws import Defective

    if name is None or name == "empirical":
        message = "inside each bucket, latencies are taken to be spread evenly: this answer is likely, not guaranteed"
        return histogram_law(histogram), (Warned("spread", message),)
    best = fit_buckets(histogram, [name])[0]
    if best.law is None or best.rho is None:
        raise FitError(f"{name} could not be fitted to the buckets: {best.error}")
    return Defective(best.law, best.rho), ()


def show_guarantee(histogram: Histogram, cost: float, as_json: bool, *, inside: str | None = None) -> None:
    """Print the decision with its guarantee: as text, or as JSON, all of it `inside` a key where one is named."""
    from latfit.histograms import guaranteed_timeout
    from latfit.report.answers import guarantee_sections

    guarantee = guaranteed_timeout(histogram, cost=cost)
    document: dict[str, Any] = {inside: guarantee.to_dict()} if inside else guarantee.to_dict()
    document["warnings"] = [{"code": warning.code, "message": warning.message} for warning in guarantee.warnings]
    warnings = [warning.message for warning in guarantee.warnings]
    cli.show(document, guarantee_sections(guarantee), as_json=as_json, warnings=warnings)
