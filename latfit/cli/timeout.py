"""`latfit timeout`: how long to wait before cancelling and resubmitting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from latfit.cli.common import (
    Positive,
    Seconds,
    json_option,
    log_options,
    print_json,
    say,
    seed_option,
    wrong_usage,
)
from latfit.cli.deciding import asked, cost_option, observed, outcome_options, prepared, written_law
from latfit.cli.histograms import (
    check_histogram_options,
    histogram_options,
    likely_law,
    load_histogram,
    show_guarantee,
)
from latfit.errors import HistogramFound

if TYPE_CHECKING:
    from latfit.laws import Law
    from latfit.logs import ProbeLog
    from latfit.sample import LatencySample

OBJECTIVES = "mean|std|moment:n|quantile:q|deadline:D"


@click.command(
    epilog="""\b
Examples:
  latfit timeout probes.csv
  latfit timeout probes.csv --cost 5 --max-submissions 1.5
  latfit timeout probes.csv --law lognormal --objective quantile:0.95
  latfit timeout metrics.prom --lost requests_timed_out_total --cost 0.01
  latfit timeout --law "lognormal(mu=5.5,sigma=1)" --rho 0.025
  latfit timeout --law "lognormal(mu=5.5,sigma=1)" --restarts 3 --json"""
)
@click.argument("log", metavar="[LOG]", required=False)
@click.option("--law", metavar="SPEC|NAME", help="A law such as lognormal(mu=5.5,sigma=1); with LOG, the law to fit.")
@click.option("--rho", type=float, metavar="R", help="The share that never returns; with LOG, rescale to it.")
@cost_option
@click.option("--wall-clock", type=Seconds(zero=True), default=0.0, metavar="r", help="Seconds each job itself runs.")
@click.option("--restarts", type=click.IntRange(1), metavar="K", help="At most K restarts, the last attempt untimed.")
@click.option("--copies", type=click.IntRange(1), default=1, metavar="b", help="Copies submitted at once.")
@click.option("--max-submissions", type=Positive(), metavar="B", help="Submissions allowed for a job, on average.")
@click.option("--objective", default="mean", show_default=True, metavar=OBJECTIVES, help="What to optimise.")
@click.option("--at", "at", type=Seconds(zero=True), metavar="T", help="Evaluate this timeout instead.")
@outcome_options
@click.option("--resamples", type=click.IntRange(0), default=499, show_default=True, help="Resamples; 0 for none.")
@seed_option
@histogram_options
@log_options
@json_option
def timeout(log: str | None, law: str | None, as_json: bool, **given: Any) -> None:
    """Find the timeout after which cancelling and resubmitting pays.

    LOG is read as it stands (its empirical law), or a law is fitted to it with --law NAME; without LOG
    the law is written out with --law SPEC. LOG may be a histogram: then the timeout has a guarantee that
    holds whatever happened inside the buckets.
    """
    _check_usage(log, law, given)
    told: tuple[Any, ...] = ()
    try:
        document, warnings, fails = _solve(log, law, given)
        check_histogram_options(given)
    except HistogramFound as found:
        histogram = load_histogram(log or "", found, given)
        if law is None and _only_cost(given):
            show_guarantee(histogram, given["cost"], as_json)
            return
        known, told = likely_law(histogram, law)
        document, warnings, fails = *_answer(known, given), False
    warnings = (*told, *warnings)
    document["warnings"] = [{"code": w.code, "message": w.message} for w in warnings]
    if as_json:
        print_json(document)
        return
    for warning in warnings:
        say(f"warning: {warning.message}", err=True)
    for line in _lines(document, given, fails=fails):
        click.echo(line)


def _only_cost(given: dict[str, Any]) -> bool:
    """Whether nothing but the cost of a restart is asked for: the policy that has a guarantee on a histogram."""
    defaults = {"rho": None, "wall_clock": 0.0, "restarts": None, "copies": 1, "max_submissions": None,
                "objective": "mean", "at": None}  # fmt: skip
    return all(given[name] == value for name, value in defaults.items())


def _check_usage(log: str | None, law: str | None, given: dict[str, Any]) -> None:
    from latfit.restart.objectives import Objective

    with wrong_usage("--objective"):
        Objective.parse(given["objective"], shift=0.0)
    if log is None and law is None:
        raise click.UsageError("give a LOG, or a law with --law")
    if log is not None and law is not None and "(" in law:
        raise click.UsageError("with a LOG, --law is the name of the law to fit, without parameters")
    mean_only = {"--objective": given["objective"] != "mean", "--copies": given["copies"] > 1,
                 "--wall-clock": given["wall_clock"] > 0, "--max-submissions": given["max_submissions"] is not None,
                 "--at": given["at"] is not None}  # fmt: skip
    wrong = [name for name, used in mean_only.items() if used]
    if given["restarts"] is not None and wrong:
        raise click.UsageError(f"--restarts minimises the mean, with a --cost at most; it does not go with {wrong[0]}")
    if given["at"] is not None and given["max_submissions"] is not None:
        raise click.UsageError("--at evaluates one timeout; it does not go with --max-submissions")


def _solve(log: str | None, law: str | None, given: dict[str, Any]) -> tuple[dict[str, Any], tuple[Any, ...], bool]:
    """The document of the contract, the warnings, and whether some attempts fail visibly."""
    from latfit.laws import Defective

    if log is not None and given["restarts"] is None and given["at"] is None:
        return _decided(log, law, given)
    if log is None:
        return *_answer(Defective(written_law(law or ""), given["rho"] or 0.0), given), False
    case, table = prepared(log, given)
    document, warnings = _answer(_law_of_log(case.sample, law, given["rho"]), given)
    return document, (*warnings, *_against(table, given)), case.sample.failed.total > 0


def _answer(known: Law, given: dict[str, Any]) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """What a law says of the policy that the options ask for."""
    from latfit.restart import earliest_timeout, evaluate_timeout, optimal_schedule, optimal_timeout

    policy = {name: given[name] for name in ("cost", "wall_clock", "copies", "objective")}
    if given["restarts"] is not None:
        least = earliest_timeout(known)
        return optimal_schedule(known, given["restarts"], cost=given["cost"], min_timeout=least).to_dict(), ()
    if given["at"] is not None:
        return evaluate_timeout(known, given["at"], **policy).to_dict(), ()
    return optimal_timeout(known, max_submissions=given["max_submissions"], **policy).to_dict(), ()


def _decided(log: str, law: str | None, given: dict[str, Any]) -> tuple[dict[str, Any], tuple[Any, ...], bool]:
    """The decision on LOG, the same as that of `analyze`."""
    from latfit.decision import decide

    named = None if law in (None, "empirical") else law
    options = asked({**given, "law": named}, test=False, laws=() if named is None else (named,))
    made = decide([observed(log, given)], options, figures=True)[0].require()
    assert made.timeout is not None
    assert made.evidence is not None
    fails = made.sample is not None and made.sample.failed.total > 0
    return {**made.timeout.to_dict(), "evidence": made.evidence.to_dict()}, made.warnings, fails


def _against(table: ProbeLog, given: dict[str, Any]) -> tuple[Any, ...]:
    """One line where the decision on the log is withheld: a law's answer takes attempts to be independent and alike."""
    from latfit.decision import Warned, decide
    from latfit.evidence import Observations

    plain = {name: given[name] for name in ("cutoff", "failed", "censoring", "cost")}
    own = decide([Observations.of(table)], asked(plain, laws=(), test=False, resamples=0))[0].timeout
    if own is None or own.verdict != "withheld":
        return ()
    message = (
        f"the decision on this log is withheld ({', '.join(own.withheld)}), and these figures take attempts to be "
        "independent and alike; see latfit analyze, and latfit replay --at for what the log itself shows"
    )
    return (Warned("withheld", message),)


def _law_of_log(sample: LatencySample, law: str | None, rho: float | None) -> Law:
    """The law of the data of LOG, or the one fitted to them, rescaled to --rho."""
    from latfit.errors import FitError
    from latfit.fitting import fit, fitted_law
    from latfit.laws import Empirical

    if law in (None, "empirical"):
        empirical = Empirical.of(sample)
        return empirical if rho is None else empirical.rescaled(rho)
    best = fit(sample, [str(law)], rho="joint" if rho is None else rho)[0]
    if best.law is None:
        raise FitError(f"{law} could not be fitted: {best.error}")
    return fitted_law(sample, best)


def _lines(document: dict[str, Any], given: dict[str, Any], *, fails: bool) -> list[str]:
    """The result in a few lines; with failures that are seen, what does not complete is not what never returns."""
    verdict, t, E = document["verdict"], document["timeout"], document["expected_duration"]
    rho = document["rho"]
    share = f"{100 * rho:.4g} % of attempts do not complete" if fails else f"rho = {rho:.4g}"
    law = f"{document['law']}, {share}, cost = {document['cost']:g} s"
    if document.get("basis") == "replay":
        return _replayed(document)
    if verdict == "withheld":
        return [f"No timeout can be recommended: {', '.join(document['withheld'])} ({law}); see latfit analyze."]
    schedule = document.get("schedule")
    wait = {
        "finite": f"Cancel and resubmit after {_s(t)}",
        "never": "Do not cancel: no timeout helps",
        "any": "Any timeout will do: it does not matter when you resubmit",
        "immediate": "The sooner the better: the best timeout tends to 0",
        "given": f"With a timeout of {_s(given['at'])}",
    }[verdict]
    if schedule and verdict == "finite":
        wait = f"Cancel and resubmit after {', then '.join(_s(tau) for tau in schedule)}; then let it run"
    if verdict == "given" and E is None:
        return [f"{wait} ({law}) no job would ever end: no attempt completes by then."]
    lines = [f"{wait} ({law}).", f"  expected duration      {_duration(document)}"]
    if document["objective"]["name"] != "mean":
        lines.append(f"  {document['objective']['name']:<22} {_figure(document['objective'])}")
    lines.append(f"  standard deviation     {_s(document['std_duration'])}")
    lines += [f"  {float(q):.0%} of jobs within     {_s(x)}" for q, x in document["quantiles"].items() if x is not None]
    for name, key in (("submissions per job", "submissions"), ("speed-up", "speed_up")):
        if document[key] is not None:
            lines.append(f"  {name:<22} {document[key]:.4g}")
    for name, key in (("within 1 %", "within_1pct"), ("within 5 %", "within_5pct")):
        if document[key] is not None and document[key][0] != document[key][1]:
            low, high = document[key]
            lines.append(f"  {name:<22} {_s(low)} to {_s(high)}")
    if document["conservative_timeout"] not in (None, t):
        lines.append(f"  waiting up to {_s(document['conservative_timeout'])} costs at most 5 % more")
    return lines


def _duration(document: dict[str, Any]) -> str:
    """E_J, without the optimism of having chosen the minimum where that counts, as `analyze` has it."""
    E, fair = document["expected_duration"], document.get("expected_duration_corrected")
    if not E or fair is None:
        return _s(E)
    from latfit.report.sentences import NOT_THE_SAME

    return f"{_s(fair)} (the data's {_s(E)} is optimistic)" if abs(fair / E - 1) > NOT_THE_SAME else _s(E)


def _replayed(document: dict[str, Any]) -> list[str]:
    """The log's own timeout: what the formula says of spread and windows does not hold there."""
    waiting = document["evidence"]["replay"]["waiting"]
    return [
        f"Cancel and resubmit after {_s(document['timeout'])} (replayed on the log itself, cost = "
        f"{document['cost']:g} s).",
        f"  expected duration      {_s(document['replayed'])}",
        f"  by waiting             {_s(waiting)}",
        f"  submissions per job    {document['submissions']:.4g}",
        f"The formula, which assumes independent attempts, says {_s(document['expected_duration'])}.",
    ]


def _s(seconds: float | None) -> str:
    return "no limit" if seconds is None else f"{seconds:.6g} s"


def _figure(objective: dict[str, Any]) -> str:
    from latfit.restart.objectives import Objective

    value = objective["value"]
    return "infinite" if value is None else Objective.parse(objective["name"]).text(value)
