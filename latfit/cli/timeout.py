"""`latfit timeout`: how long to wait before cancelling and resubmitting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from latfit.cli import common as cli
from latfit.cli.histograms import check_histogram_options, histogram_options, likely_law, load_histogram, show_guarantee

if TYPE_CHECKING:
    from latfit.laws import Law
    from latfit.logs import ProbeLog
    from latfit.sample import LatencySample


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
@cli.option("--law SPEC|NAME", "A law such as lognormal(mu=5.5,sigma=1); with LOG, the law to fit.")
@cli.option("--rho R", "The share that never returns; with LOG, rescale to it.", type=float)
@cli.cost_option
@cli.risk_option
@cli.option("--wall-clock C", "Seconds each job itself runs.", default=0.0)
@cli.option("--restarts K", "At most K restarts, the last attempt untimed.")
@cli.option("--copies N", "Copies submitted at once.", default=1)
@cli.option(
    "--max-submissions B", "Submissions allowed for a job, on average.", type=click.FloatRange(0, 1e300, min_open=True)
)
@cli.option("--objective mean|std|moment:n|quantile:q|deadline:D", "What to optimise.", default="mean")
@cli.option("--at T", "Evaluate this timeout instead.", type=cli.Seconds(zero=True))
@cli.outcome_options
@cli.resamples_option
@cli.seed_option
@histogram_options
@cli.log_options
@cli.json_option
def timeout(log: str | None, law: str | None, as_json: bool, **parsed: Any) -> None:
    """Find the timeout after which cancelling and resubmitting pays.

    LOG is read as it stands (its empirical law), or a law is fitted to it with --law NAME; without LOG
    the law is written out with --law SPEC. LOG may be a histogram: then the timeout has a guarantee that
    holds whatever happened inside the buckets.
    """
    from latfit.logs import HistogramLog
    from latfit.report.answers import timeout_sections

    _check_usage(log, law, parsed)
    probes = None if log is None else cli.open_log(log, parsed)
    if isinstance(probes, HistogramLog):
        histogram = load_histogram(probes, parsed)
        if law is None and _only_cost(parsed):
            show_guarantee(histogram, parsed["cost"], as_json)
            return
        likely, warnings = likely_law(histogram, law)
        document, fails = _answer(likely, parsed), False
    else:
        check_histogram_options(parsed)
        document, warnings, fails = _solve(probes, law, parsed)
    document["warnings"] = [{"code": warning.code, "message": warning.message} for warning in warnings]
    sections = timeout_sections(document, at=parsed["at"], fails=fails)
    cli.show(document, sections, as_json=as_json, warnings=[warning.message for warning in warnings])


def _only_cost(parsed: dict[str, Any]) -> bool:
    """Whether nothing but the cost of a restart is asked for: the policy that has a guarantee on a histogram."""
    absent = all(parsed[name] is None for name in ("rho", "restarts", "max_submissions", "at"))
    return absent and (parsed["wall_clock"], parsed["copies"], parsed["objective"]) == (0.0, 1, "mean")


def _check_usage(log: str | None, law: str | None, parsed: dict[str, Any]) -> None:
    from latfit.restart.objectives import Objective

    with cli.wrong_usage("--objective"):
        Objective.parse(parsed["objective"], shift=0.0)
    if log is None and law is None:
        raise click.UsageError("give a LOG, or a law with --law")
    if log is not None and law is not None and "(" in law:
        raise click.UsageError("with a LOG, --law is the name of the law to fit, without parameters")
    defaults = {"objective": "mean", "copies": 1, "wall_clock": 0.0, "max_submissions": None, "at": None}
    used = [f"--{name.replace('_', '-')}" for name, default in defaults.items() if parsed[name] != default]
    if parsed["restarts"] is not None and used:
        raise click.UsageError(f"--restarts minimises the mean, with a --cost at most; it does not go with {used[0]}")
    if parsed["at"] is not None and parsed["max_submissions"] is not None:
        raise click.UsageError("--at evaluates one timeout; it does not go with --max-submissions")


def _solve(
    log: ProbeLog | None, law: str | None, parsed: dict[str, Any]
) -> tuple[dict[str, Any], tuple[Any, ...], bool]:
    """The document of the contract, the warnings, and whether some attempts fail visibly."""
    from latfit.laws import Defective

    if log is not None and parsed["restarts"] is None and parsed["at"] is None:
        return _decided(log, law, parsed)
    if log is None:
        return _answer(Defective(cli.written_law(law or ""), parsed["rho"] or 0.0), parsed), (), False
    case = cli.prepared(log, parsed)
    document = _answer(_law_of_log(case.sample, law, parsed["rho"]), parsed)
    return document, _against(log, parsed), case.sample.failed.total > 0


def _answer(law: Law, parsed: dict[str, Any]) -> dict[str, Any]:
    """What a law says of the policy that the options ask for."""
    from latfit.restart import earliest_timeout, evaluate_timeout, optimal_schedule, optimal_timeout

    policy = {name: parsed[name] for name in ("cost", "wall_clock", "copies", "objective")}
    if parsed["restarts"] is not None:
        least = earliest_timeout(law)
        return optimal_schedule(law, parsed["restarts"], cost=parsed["cost"], min_timeout=least).to_dict()
    if parsed["at"] is not None:
        return evaluate_timeout(law, parsed["at"], **policy).to_dict()
    return optimal_timeout(law, max_submissions=parsed["max_submissions"], **policy).to_dict()


def _decided(log: ProbeLog, law: str | None, parsed: dict[str, Any]) -> tuple[dict[str, Any], tuple[Any, ...], bool]:
    """The decision on LOG, the same as that of `analyze`."""
    from latfit.decision import decide
    from latfit.evidence import probes_of

    named = None if law in (None, "empirical") else law
    options = cli.decision_options({**parsed, "law": named}, test=False, laws=() if named is None else (named,))
    decision = decide([probes_of(log)], options, figures=True)[0].require()
    assert decision.timeout is not None
    assert decision.evidence is not None
    fails = decision.sample is not None and decision.sample.failed.total > 0
    return {**decision.timeout.to_dict(), "evidence": decision.evidence.to_dict()}, decision.warnings, fails


def _against(log: ProbeLog, parsed: dict[str, Any]) -> tuple[Any, ...]:
    """One line where the decision on the log is withheld: a law's answer takes attempts to be independent and alike."""
    from latfit.decision import Warned, decide
    from latfit.evidence import probes_of

    plain = {name: parsed[name] for name in ("cutoff", "failed", "censoring", "cost")}
    own = decide([probes_of(log)], cli.decision_options(plain, laws=(), test=False, resamples=0))[0].timeout
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
