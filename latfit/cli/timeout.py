"""`latfit timeout`: how long to wait before cancelling and resubmitting, on a log, a law or a histogram."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import latfit
from latfit.cli import common as cli
from latfit.errors import FitError, LogError, SampleError

if TYPE_CHECKING:
    from latfit.decision import Warned
    from latfit.logs import HistogramLog


@cli.command
def timeout(log: str | None, law: str | None, as_json: bool, **parsed: Any) -> None:
    """Find the timeout after which cancelling and resubmitting pays.

    The timeout is that of the data in LOG, of a law fitted to them (--law NAME), or of a law without LOG
    (--law SPEC). LOG may be a histogram: then the timeout has a guarantee that holds whatever happened
    inside the buckets.
    """
    from latfit.logs import HistogramLog
    from latfit.report.answers import timeout_sections

    if parsed["percentiles"] is not None:
        _show_quantile_bound(log, law, parsed, as_json)
        return
    changed = _changed_options(log, law, parsed)
    probes = None if log is None else cli.open_log(log, parsed)
    warnings: tuple[Warned, ...] = ()
    fails = False
    if isinstance(probes, HistogramLog):
        if law is None and not changed:
            show_guarantee(probes, parsed, as_json)
            return
        attempt, warnings = _likely_law(load_histogram(probes, parsed), law)
        document = _answer(attempt, parsed)
    else:
        check_histogram_options(parsed)
        if probes is not None:
            document, warnings, fails, attempt = _on_log(probes, law, parsed)
        else:
            attempt = latfit.Defective(cli.written_law(law or ""), parsed["rho"] or 0.0)
            document = _answer(attempt, parsed)
    if parsed["jobs"] is not None:
        document["jobs"] = _many_jobs(attempt, document, parsed)
    sections = timeout_sections(document, at=parsed["at"], fails=fails)
    cli.show(document, sections, as_json=as_json, warnings=warnings)


def _changed_options(log: str | None, law: str | None, parsed: dict[str, Any]) -> list[str]:
    from latfit.restart.objectives import Objective

    with cli.wrong_usage("--objective"):
        Objective.parse(parsed["objective"])
    if log is None and law is None:
        raise click.UsageError("give a LOG, or a law with --law")
    if parsed["method"] != "mle" and (log is None or law in (None, "empirical")):
        raise click.UsageError("--method sets how a law is fitted: give LOG and the --law to fit")
    if log is not None and law is not None and "(" in law:
        raise click.UsageError("with a LOG, --law names the law to fit, without parameters")
    defaults = {"copies": 1, "wall_clock": 0.0, "max_submissions": None, "at": None}
    used = [f"--{name.replace('_', '-')}" for name, default in defaults.items() if parsed[name] != default]
    if parsed["restarts"] is not None and used:
        raise click.UsageError(f"--restarts cannot be combined with {used[0]}, only with --cost and --objective")
    used += ["--objective"] if parsed["objective"] != "mean" else []
    if parsed["at"] is not None and parsed["max_submissions"] is not None:
        raise click.UsageError("--at evaluates one timeout; it cannot be combined with --max-submissions")
    return used + [f"--{name}" for name in ("rho", "restarts") if parsed[name] is not None]


def _answer(law: latfit.Law, parsed: dict[str, Any]) -> dict[str, Any]:
    from latfit.restart import earliest_timeout

    if parsed["restarts"] is not None:
        return cli.call(latfit.optimal_schedule, law, min_timeout=earliest_timeout(law), **parsed).to_dict()
    if parsed["at"] is not None:
        return cli.call(latfit.evaluate_timeout, law, parsed["at"], **parsed).to_dict()
    return cli.call(latfit.optimal_timeout, law, **parsed).to_dict()


def _on_log(
    log: latfit.ProbeLog, law: str | None, parsed: dict[str, Any]
) -> tuple[dict[str, Any], tuple[Warned, ...], bool, latfit.Law]:
    """The decision on LOG, or what its law says of --restarts or --at, with a warning if the decision is withheld."""
    from latfit.decision import Warned, decide
    from latfit.evidence import probes_of

    names = () if law in (None, "empirical") else (law,)
    asked = parsed["restarts"] is not None or parsed["at"] is not None
    goal = {"objective": "mean", "resamples": 0} if asked else {}  # the decision is asked for its law alone
    options = cli.call(latfit.Options, **{**parsed, "law": next(iter(names), None), **goal}, test=False, laws=names)
    decision = decide([probes_of(log)], options, figures=True)[0].require()
    chosen, sample = decision.timeout, decision.sample
    assert chosen is not None
    assert decision.evidence is not None
    assert sample is not None
    attempt, fails = chosen.source or latfit.Empirical.of(sample), sample.failed.total > 0
    if not asked:
        return {**chosen.to_dict(), "evidence": decision.evidence.to_dict()}, decision.warnings, fails, attempt
    message = f"the decision on this log is withheld ({', '.join(chosen.withheld)}), and these figures assume "
    message += "independent attempts; see latfit analyze and latfit replay --at"
    warnings = (Warned("withheld", message),) if chosen.verdict == "withheld" else ()
    return _answer(attempt, parsed), warnings, fails, attempt


def _many_jobs(law: latfit.Law, document: dict[str, Any], parsed: dict[str, Any]) -> dict[str, Any]:
    """When the last of --jobs is done with the timeout of the document, and the best number of jobs in a submission."""
    from latfit.numbers import finite

    jobs, how = parsed["jobs"], {"cost": parsed["cost"], "wall_clock": parsed["wall_clock"]}
    t = float("inf") if document["timeout"] is None else document["timeout"]
    grouping = None
    if parsed["wall_clock"]:
        grouping = latfit.optimal_grouping(law, jobs, copies=parsed["copies"], **how).to_dict()
    maximum = finite(latfit.expected_maximum(law, jobs, t, **how))
    return {"jobs": jobs, "expected_maximum": maximum, "grouping": grouping}


def _show_quantile_bound(log: str | None, law: str | None, parsed: dict[str, Any], as_json: bool) -> None:
    """Print what percentiles alone guarantee."""
    from latfit.report.answers import quantile_bound_sections

    others = [name for name in ("rho", "restarts", "at", "jobs", "max_submissions") if parsed[name] is not None]
    if log is not None or law is not None or others or parsed["objective"] != "mean":
        raise click.UsageError("--percentiles takes no other option than --cost")
    with cli.wrong_usage("--percentiles"):
        quantiles = {}
        for item in parsed["percentiles"].split(","):
            level, _, time = item.strip().removeprefix("p").partition("=")
            try:
                quantiles[float(level.removesuffix("%")) / 100] = latfit.parse_duration(time)
            except ValueError:
                raise click.BadParameter(f"{item!r} is not a percentile: write p50=120ms") from None
        bound = latfit.quantile_bound(quantiles, cost=parsed["cost"])
    cli.show(bound.to_dict(), quantile_bound_sections(bound), as_json=as_json)


def check_histogram_options(parsed: dict[str, Any]) -> None:
    """Refuse options of histograms for any other log, where they would be ignored."""
    for name in ("lost", "failures", "sum", "before"):
        if parsed[name] not in (None, ()):
            raise click.UsageError(f"--{name} is for histograms, and LOG has none")


def load_histogram(read: HistogramLog, parsed: dict[str, Any]) -> latfit.Histogram:
    """The histogram in LOG, with the counts that options add; choices are printed to stderr."""
    for name in ("since", "until"):
        if parsed[name] is not None:
            raise click.UsageError(f"--{name} needs the times of probes, which a histogram does not keep; see --before")
    if parsed["before"] is not None:
        read = read.since(cli.call(latfit.read_histograms, parsed["before"], **parsed))
    histogram, notes = read.histogram()
    cli.notify("note", notes)
    counts = {"lost": 0, "failures": 0}
    for name, text in [(key, text) for key in counts for text in parsed[key]]:
        if text.isascii() and text.isdigit() and len(text) < 16:
            counts[name] += int(text)
        elif text[:1].isalpha() or text[:1] in "_:{":
            counts[name] += read.counter(text)
        else:
            raise click.BadParameter(f"{text!r} is neither a count nor the name of a counter", param_hint=f"--{name}")
    try:
        return histogram.with_outcomes(lost=counts["lost"], failed=counts["failures"], latency_sum=parsed["sum"])
    except SampleError as problem:
        raise LogError(f"{read.path}: {problem}") from problem


def _likely_law(histogram: latfit.Histogram, name: str | None) -> tuple[latfit.Law, tuple[Warned, ...]]:
    """The law for questions that have no guaranteed answer: even inside the buckets, or fitted to the counts."""
    from latfit.decision import Warned
    from latfit.histograms import fit_buckets, histogram_law

    if name is None or name == "empirical":
        message = "latencies are assumed to be spread evenly inside each bucket: this answer is likely, not guaranteed"
        return histogram_law(histogram), (Warned("spread", message),)
    best = fit_buckets(histogram, [name])[0]
    if best.law is None or best.rho is None:
        raise FitError(f"{name} could not be fitted to the buckets: {best.error}")
    return latfit.Defective(best.law, best.rho), ()


def show_guarantee(
    read: HistogramLog, parsed: dict[str, Any], as_json: bool, *, output: str | None = None, inside: str | None = None
) -> None:
    """Print the decision on a histogram with its guarantee, `inside` a key of the JSON; `output` gets the page."""
    from latfit.report.answers import guarantee_advice
    from latfit.report.page import to_html

    guarantee = latfit.guaranteed_timeout(load_histogram(read, parsed), cost=parsed["cost"])
    document: dict[str, Any] = guarantee.to_dict() if inside is None else {inside: guarantee.to_dict()}
    document["warnings"] = [{"code": warning.code, "message": warning.message} for warning in guarantee.warnings]
    if output is not None:
        page = to_html(guarantee, path=str(read.path))
        results = cli.document_text(document) + "\n"
        cli.write_together(Path(output), {"report.html": page, "results.json": results})
    cli.show(document, guarantee_advice(guarantee, str(read.path)).sections(), as_json=as_json)
