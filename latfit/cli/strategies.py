"""Other ways to deal with slow jobs: `replay` the log itself, `compare` strategies, ask other `agents`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import latfit
from latfit.cli import common as cli

if TYPE_CHECKING:
    from latfit.decision.compared import Spread, Standing
    from latfit.restart import Comparison
    from latfit.restart.policies import Policy


@cli.command
def replay(log: str, policy: tuple[str, ...], by: str | None, as_json: bool, **parsed: Any) -> None:
    """Replay timeouts on the log itself, without a formula or independence.

    A job whose probe is not back in time is resubmitted and takes the latency of the next probe that was
    submitted from then on; so does every copy of a hedge or of another policy. This includes drift and dependence,
    because they are in the log.
    """
    from latfit.decision import prepare
    from latfit.evidence import mixing, probes_of, replay_policies, require_times
    from latfit.evidence import replay as replay_log
    from latfit.evidence.probes import group_column
    from latfit.report.answers import replay_sections
    from latfit.restart.policies import parse_policy

    policies = [parse_policy(spec) for spec in policy]
    table = cli.load_log(log, parsed)
    case = prepare(probes_of(table), cli.call(latfit.Options, **parsed))
    require_times(case.seen)
    groups = None if by is None else group_column(table, by)
    if groups is None and (mixed := mixing(case.seen)) is not None:
        groups, name = mixed.column.codes, mixed.column.name
        message = f"the log mixes different populations: a job is resubmitted into its own {name} (--by {name}), and "
        cli.notify("warning", [f"{message}one timeout for all may not suit each; see latfit analyze"])
    options = {name: parsed[name] for name in ("at", "cost", "seed")}
    result = replay_log(case.seen, case.cutoff.cutoff, groups=groups, **options)
    assert result is not None
    replayed = replay_policies(result, policies)
    document = {**result.to_dict(), "policies": [each.to_dict() for each in replayed]}
    cli.show(document, replay_sections(result, replayed), as_json=as_json)


@cli.command
def compare(log: str | None, law: str | None, as_json: bool, **parsed: Any) -> None:
    """Compare strategies: cancelling, hedging, resubmitting, copies, schedules.

    The current strategy comes first, then the schedule that analyze recommends, then the best of each kind with the
    same load and without a limit.
    """
    from latfit.report.answers import compare_sections

    if (log is None) == (law is None):
        raise click.UsageError("give either a LOG or a law with --law")
    if log is not None:
        comparison, spreads, standing = _compare_log(log, parsed)
    else:
        comparison = _compare(latfit.Defective(cli.written_law(law or ""), parsed["rho"] or 0.0), parsed)
        spreads = standing = None
    document = {**comparison.to_dict(), "replay": None, "withheld": []}
    if standing is not None:
        document["decision"] = standing.sentence(comparison)
        document |= {"replay": standing.replay, "withheld": list(standing.withheld)}
    for row, spread in zip(document["strategies"], spreads or [], strict=False):
        row["interval"] = dict(vars(spread))
    sections = compare_sections(comparison, spreads, standing, parsed["utilisation"])
    cli.show(document, sections, as_json=as_json, warnings=standing.warnings if standing else ())


def _compare(law: latfit.Law, parsed: dict[str, Any], advised: Policy | None = None) -> Comparison:
    from latfit.restart import earliest_timeout

    current = () if parsed["current"] is None else (f"timeout(t={parsed['current']!r})",)
    policies = (*current, *parsed["policy"])
    return cli.call(latfit.compare_policies, law, policies, min_time=earliest_timeout(law), advised=advised, **parsed)


def _compare_log(log: str, parsed: dict[str, Any]) -> tuple[Comparison, list[Spread] | None, Standing]:
    import numpy as np

    from latfit.decision import decide, prepare
    from latfit.decision.compared import Standing, advised_policy, comparison_intervals
    from latfit.evidence import probes_of

    probes, rho = probes_of(cli.load_log(log, parsed)), parsed["rho"]
    options = cli.call(latfit.Options, **{**parsed, "objective": "mean"}, test=False, resamples=0)
    sample = prepare(probes, options).sample
    decision = decide([probes], options)[0].require()
    law = latfit.Empirical.of(sample)
    comparison = _compare(law if rho is None else law.rescaled(rho), parsed, None if rho else advised_policy(decision))
    spreads = None
    if rho is None:
        rng = np.random.default_rng(parsed["seed"])
        spreads = cli.call(comparison_intervals, sample, comparison, rng=rng, **parsed)
        clear = tuple(spread.ratio_high is not None and spread.ratio_high < 1 for spread in spreads)
        comparison = replace(comparison, clear=clear)
    standing = Standing.of(comparison, decision, queue=probes.facts.queue, rescaled=rho is not None)
    return comparison, spreads, standing


@cli.command
def agents(agent: tuple[tuple[str, str], ...], restarts: int | None, as_json: bool, **parsed: Any) -> None:
    """Find which of several agents to ask first, and how long to wait."""
    from latfit.report.answers import agents_sections
    from latfit.restart import earliest_timeout

    if len(dict(agent)) < len(agent):
        raise click.BadParameter("two agents have the same name", param_hint="--agent")
    laws: dict[str, latfit.Law] = {}
    for name, text in agent:
        written = "(" in text and not Path(text).exists()
        laws[name] = cli.written_law(text) if written else latfit.Empirical.of(cli.prepared(text, parsed).sample)
    least = {name: earliest_timeout(law) for name, law in laws.items()}
    strategy = latfit.optimal_strategy(laws, restarts=restarts, cost=parsed["cost"], min_timeouts=least)
    cli.show(strategy.to_dict(), agents_sections(strategy), as_json=as_json)
