"""`latfit compare`: what else could be done about slow jobs, and what each costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from latfit.cli import common as cli

if TYPE_CHECKING:
    from latfit.decision.compared import Spread, Standing
    from latfit.laws import Law
    from latfit.restart import Comparison


@click.command(
    epilog="""\b
Examples:
  latfit compare probes.csv
  latfit compare probes.csv --current 1000 --objective quantile:0.99
  latfit compare probes.csv --policy "tenacity(attempts=5,timeout=10,wait=1,factor=2,max=60)"
  latfit compare --law "lognormal(mu=5.5,sigma=1)" --rho 0.025 --policy "hedge(d=300,t_inf=900)"
  latfit compare probes.csv --same 5% --objective quantile:0.95
  latfit compare probes.csv --utilisation 0.7 --json"""
)
@click.argument("log", metavar="[LOG]", required=False)
@cli.option("--law SPEC", "A law such as lognormal(mu=5.5,sigma=1), instead of LOG.")
@cli.option("--rho R", "The share that never returns; with LOG, rescale to it.", type=float)
@cli.option(
    "--policy SPEC",
    "A policy to compare, such as hedge(d=300,t_inf=900); the first is what you have now.",
    "policies",
    multiple=True,
)
@cli.option("--current T", "The timeout you have now, in front of --policy.")
@cli.option(
    "--same submissions|job-seconds|BUDGET",
    "The load allowed: that of the first strategy, or extra requests such as 5%.",
    default="submissions",
)
@cli.option("--objective mean|std|quantile:q|deadline:D", "What to compare by.", default="mean")
@cli.option("--wall-clock C", "Seconds each job itself runs.", default=0.0)
@cli.option(
    "--utilisation A",
    "The busy share of the system now, to see what each strategy adds.",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
)
@cli.cost_option
@cli.outcome_options
@cli.log_options
@cli.seed_option
@cli.json_option
def compare(log: str | None, law: str | None, as_json: bool, **parsed: Any) -> None:
    """Compare strategies: cancelling, hedging, resubmitting, copies, schedules.

    What you have now comes first, then the best of each kind with the same load, then the best without a limit.
    """
    from latfit.laws import Defective
    from latfit.report.answers import compare_sections

    if (log is None) == (law is None):
        raise click.UsageError("give either a LOG or a law with --law")
    if log is not None:
        comparison, spreads, standing = _compare_log(log, parsed)
    else:
        from latfit.decision.compared import Standing

        comparison = _compare(Defective(cli.written_law(law or ""), parsed["rho"] or 0.0), parsed)
        spreads, standing = None, Standing()
    document = {**comparison.to_dict(), "decision": standing.sentence(comparison)}
    for row, spread in zip(document["strategies"], spreads or [], strict=False):
        row["interval"] = spread.to_dict()
    document["replay"] = None if standing.replay is None else standing.replay.to_dict()
    document["withheld"] = list(standing.withheld)
    document["warnings"] = [{"code": warning.code, "message": warning.message} for warning in standing.warnings]
    sections = compare_sections(comparison, spreads, standing, parsed["utilisation"])
    cli.show(document, sections, as_json=as_json, warnings=[warning.message for warning in standing.warnings])


def _compare(law: Law, parsed: dict[str, Any]) -> Comparison:
    from latfit.restart import compare_policies, earliest_timeout

    current = () if parsed["current"] is None else (f"timeout(t={parsed['current']!r})",)
    names = ("cost", "wall_clock", "objective", "same", "utilisation")
    options = {name: parsed[name] for name in names}
    return compare_policies(law, (*current, *parsed["policies"]), min_time=earliest_timeout(law), **options)


def _compare_log(log: str, parsed: dict[str, Any]) -> tuple[Comparison, list[Spread] | None, Standing]:
    """The strategies on the law of LOG, their intervals, and what the log says of the choice."""
    import numpy as np

    from latfit.decision import decide, prepare
    from latfit.decision.compared import Standing, comparison_intervals
    from latfit.laws import Empirical

    probes = cli.observed(log, parsed)
    options = cli.decision_options({**parsed, "objective": "mean"}, test=False, resamples=0)
    sample, rho = prepare(probes, options).sample, parsed["rho"]
    decision = decide([probes], options)[0].require()
    law = Empirical.of(sample)
    comparison = _compare(law if rho is None else law.rescaled(rho), parsed)
    spreads = clear = None
    if rho is None:
        rng = np.random.default_rng(parsed["seed"])
        policy = {name: parsed[name] for name in ("cost", "wall_clock")}
        spreads = comparison_intervals(sample, comparison, rng=rng, **policy)
        clear = tuple(spread.ratio_high is not None and spread.ratio_high < 1 for spread in spreads)
    standing = Standing.of(comparison, decision, queue=probes.facts.queue, clear=clear, rescaled=rho is not None)
    return comparison, spreads, standing
