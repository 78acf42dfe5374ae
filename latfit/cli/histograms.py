"""What `timeout` and `analyze` share for histograms: options, how they are loaded, how a guarantee is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from latfit.cli.common import Seconds, print_json, say
from latfit.errors import HistogramFound, LogError, SampleError, counted
from latfit.units import seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from latfit.buckets import Histogram
    from latfit.histograms import Guarantee
    from latfit.laws import Law
    from latfit.logs.histogram_format import HistogramLog

F = TypeVar("F", bound="Callable[..., Any]")
ONLY = {"lost": "--lost", "failures": "--failures", "sum": "--sum", "before": "--before"}


def histogram_options(function: F) -> F:
    """The options that only histograms take."""
    for option in reversed(
        [
            click.option("--lost", multiple=True, metavar="N|COUNTER",
                         help="Histograms: how many never returned, or the counter in LOG that tells it."),
            click.option("--failures", multiple=True, metavar="N|COUNTER",
                         help="Histograms: how many failed after a time that is not known, or their counter."),
            click.option("--sum", type=Seconds(zero=True), metavar="S",
                         help="Histograms: the sum of all latencies in seconds (default: from LOG)."),
            click.option("--before", metavar="FILE", help="Histograms: an earlier scrape, to be subtracted."),
        ]
    ):  # fmt: skip
        function = option(function)
    return function


def check_histogram_options(given: dict[str, Any]) -> None:
    """Refuse options that would be ignored, as no histogram was found."""
    for name, flag in ONLY.items():
        if given[name] not in (None, ()):
            raise click.UsageError(f"{flag} is for histograms, and there is none here")


def load_histogram(log: str, found: HistogramFound, given: dict[str, Any]) -> Histogram:
    """The histogram that LOG was found to hold, with what the options add to it; choices are told on stderr."""
    from latfit.logs.histogram_format import read_histograms

    for name in ("since", "until"):
        if given[name] is not None:
            raise click.UsageError(f"--{name} needs the times of probes, which a histogram does not keep; see --before")
    how = {key: given[key] for key in ("format", "unit", "where")}
    read: HistogramLog = found.log if log == "-" else read_histograms(log, **how)
    if given["before"] is not None:
        read = read.since(read_histograms(given["before"], **how))
    histogram, notes = read.histogram()
    for note in notes:
        say(f"note: {note}", err=True)
    lost, failed = (_count(read, name, given) for name in ("lost", "failures"))
    try:
        return histogram.with_outcomes(lost=lost, failed=failed, latency_sum=given["sum"])
    except SampleError as problem:
        raise LogError(f"{read.path}: {problem}") from problem


def _count(read: HistogramLog, name: str, given: dict[str, Any]) -> int:
    """The number that an option gives, or the counters that it names."""
    total = 0
    for text in given[name]:
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
        told = "inside each bucket, latencies are taken to be spread evenly: this answer is likely, not guaranteed"
        return histogram_law(histogram), (Warned("spread", told),)
    best = fit_buckets(histogram, [name])[0]
    if best.law is None or best.rho is None:
        raise FitError(f"{name} could not be fitted to the buckets: {best.error}")
    return Defective(best.law, best.rho), ()


def show_guarantee(histogram: Histogram, cost: float, as_json: bool, *, inside: str | None = None) -> None:
    """Print the decision with its guarantee: as text, or as JSON, all of it `inside` a key where one is named."""
    from latfit.histograms import guaranteed_timeout

    found = guaranteed_timeout(histogram, cost=cost)
    warnings = [{"code": warning.code, "message": warning.message} for warning in found.warnings]
    if as_json:
        document = found.to_dict()
        print_json({**({inside: document} if inside else document), "warnings": warnings})
        return
    for warning in found.warnings:
        say(f"warning: {warning.message}", err=True)
    for line in _lines(found):
        say(line)


def _lines(found: Guarantee) -> list[str]:
    """The decision first, then what it rests on."""
    best, histogram = found.optimum, found.histogram
    if best is None:
        return ["No timeout can be recommended: too few completed."]
    if found.withheld:
        formula = f"{seconds(best.timeout)}, mean {seconds(best.expected_duration)}"
        why = "Do not cancel: slow latencies come together in this log: a resubmission meets what the first met."
        if found.harmed is not None:
            why = (f"Decide by series (--where LABEL=VALUE): under one timeout for all, {found.harmed} is slower than "
                   "by waiting.")  # fmt: skip
        return [why, f"  withheld  {', '.join(found.withheld)}; if they were alike and independent: {formula}"]
    limit = "whatever happened inside the buckets, the mean is"
    set_it = f"Set no timeout: {limit}"
    if best.timeout is not None:
        set_it = f"Set the timeout to {seconds(best.timeout)}: {limit}"
    better = f"no timeout can do better than {seconds(found.least)}"
    lines = [f"{set_it} at most {seconds(found.guaranteed)}; {better}."]
    lines.append(f"  worst regret           {_percent(found.worst_regret)} (the most that another timeout could save)")
    if found.likely is not None:
        other, name = found.likely.optimum, found.likely.law.partition("(")[0]
        under = "with latencies spread evenly in each bucket" if name == "histogram" else f"under a fitted {name} law"
        then = "no timeout" if other.timeout is None else seconds(other.timeout)
        lines.append(f"  likely regret          {_percent(found.likely.regret)} ({under})")
        lines.append(f"  likely best            {then}, mean {seconds(other.expected_duration)}")
    if best.expected_duration is not None:
        lines.append(f"  mean if spread evenly  {seconds(best.expected_duration)}")
    if best.submissions is not None:
        lines.append(f"  submissions per job    {best.submissions:.4g}")
    counts = [
        f"{int(histogram.counts.sum())} in {counted(histogram.counts.size, 'bucket')}",
        f"{histogram.n_inf} beyond",
    ]
    counts += [f"{n} {what}" for what, n in (("failed", histogram.failed), ("lost", histogram.lost)) if n]
    known = "" if histogram.latency_sum is None else f"; their sum is {seconds(histogram.latency_sum)}"
    lines.append(f"  latencies              {', '.join(counts)}{known}")
    return lines


def _percent(share: float) -> str:
    return "unbounded" if share == float("inf") else f"{100 * share:.1f} %"
