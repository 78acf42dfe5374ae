"""`latfit replay`: what the log itself says a timeout, or another policy, would have brought."""

from __future__ import annotations

from typing import Any

import click

from latfit.cli import common as cli


@click.command(
    epilog="""\b
Examples:
  latfit replay probes.csv
  latfit replay probes.csv --at 60 --at 5m --cost 2
  latfit replay probes.csv --policy "hedge(d=300,t_inf=900)" --policy "delayed(t0=300,t_inf=450)"
  latfit replay jobs.swf.gz --by queue --json"""
)
@cli.log_argument
@cli.option("--at T", "A timeout to replay; may be repeated.", multiple=True)
@cli.option("--policy SPEC", "A policy to replay, written as for compare; may be repeated.", "policies", multiple=True)
@cli.cost_option
@cli.option("--by COL", "Resubmit a job into its own group of this column.")
@cli.outcome_options
@cli.seed_option
@cli.log_options
@cli.json_option
def replay(log: str, policies: tuple[str, ...], by: str | None, as_json: bool, **parsed: Any) -> None:
    """Replay timeouts on the log itself: no formula, no independence.

    A job whose probe is not back in time is resubmitted, and takes the latency of the next probe that the
    log shows submitted from then on; so does every copy of a hedge or of another policy. Drift and dependence are
    in it, because they are in the log.
    """
    from latfit.decision import prepare
    from latfit.evidence import mixing, probes_of, replay_policies, require_times
    from latfit.evidence import replay as replay_log
    from latfit.evidence.probes import group_column
    from latfit.report.answers import replay_sections
    from latfit.restart.policies import parse_policy

    specified = [parse_policy(policy) for policy in policies]
    table = cli.load_log(log, parsed)
    case = prepare(probes_of(table), cli.decision_options(parsed))
    assert case.seen is not None
    require_times(case.seen)
    groups = None if by is None else group_column(table, by)
    if groups is None and (mixed := mixing(case.seen)) is not None:
        groups, name = mixed.column.codes, mixed.column.name
        cli.notify("warning", [f"the log mixes different populations: a job is resubmitted into its own {name} (--by "
                           f"{name}), and one timeout for all may not suit each; see latfit analyze"])  # fmt: skip
    options = {name: parsed[name] for name in ("at", "cost", "seed")}
    result = replay_log(case.seen, case.cutoff.cutoff, groups=groups, **options)
    assert result is not None
    replayed = replay_policies(result, specified)
    document = {**result.to_dict(), "policies": [each.to_dict() for each in replayed]}
    cli.show(document, replay_sections(result, replayed), as_json=as_json)
