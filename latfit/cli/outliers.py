"""`latfit outliers`: the share of probes that never return."""

from __future__ import annotations

from typing import Any

import click

from latfit.cli import common as cli


@click.command(
    epilog="""\b
Examples:
  latfit outliers probes.csv
  latfit outliers probes.csv --cutoff 10000 --json
  latfit outliers checks.csv --status completed=up --status lost=down"""
)
@cli.log_argument
@cli.outcome_options
@cli.log_options
@cli.json_option
def outliers(log: str, as_json: bool, **parsed: Any) -> None:
    """Estimate the share of probes that never return.

    The ratio is that of the probes still out at the cutoff, with a 95 % interval, and how it changes
    with the cutoff: where it is still falling, some of those outliers are only late.
    """
    from latfit.errors import FitError
    from latfit.fitting import joint_outlier_ratio
    from latfit.outliers import cutoff_verdict, ratio_by_cutoff
    from latfit.report.answers import outliers_sections

    case = cli.prepared(log, parsed)
    ratio, joint = case.ratio, None
    try:
        joint = joint_outlier_ratio(case.sample)
    except FitError as problem:
        cli.notify("note", [f"no joint estimate of the ratio and a law: {problem}"])
    verdict = cutoff_verdict(case.whole, ratio)
    by_cutoff = ratio_by_cutoff(case.whole, cutoff=ratio.cutoff)
    document = {
        **ratio.to_dict(),
        "count": ratio.count,
        "method": ratio.method,
        "joint_ratio": joint and joint.estimate,
        **{f"joint_{key}": joint and getattr(joint, key) for key in ("low", "high", "law")},
        "confounded": joint and joint.confounded,
        "by_cutoff": [each.to_dict() for each in by_cutoff],
        "verdict": verdict,
    }
    cli.show(document, outliers_sections(ratio, case.sample, by_cutoff, joint, verdict), as_json=as_json)
