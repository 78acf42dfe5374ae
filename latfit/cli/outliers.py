"""`latfit outliers`: the share of probes that never return."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import click

from latfit.cli.common import (
    json_option,
    log_argument,
    log_options,
    print_json,
)
from latfit.cli.deciding import outcome_options, prepared

if TYPE_CHECKING:
    from latfit.fitting import JointRatio
    from latfit.outliers import OutlierRatio
    from latfit.sample import LatencySample


@click.command(
    epilog="""\b
Examples:
  latfit outliers probes.csv
  latfit outliers probes.csv --cutoff 10000 --json
  latfit outliers checks.csv --status completed=up --status lost=down"""
)
@log_argument
@outcome_options
@log_options
@json_option
def outliers(log: str, as_json: bool, **given: Any) -> None:
    """Estimate the share of probes that never return.

    The ratio is that of the probes still out at the cutoff, with a 95 % interval, and how it changes
    with the cutoff: where it is still falling, some of those outliers are only late.
    """
    from latfit.errors import FitError
    from latfit.fitting import joint_outlier_ratio
    from latfit.outliers import cutoff_verdict, ratio_by_cutoff

    found, _ = prepared(log, given)
    ratio = found.ratio
    verdict = cutoff_verdict(found.whole, ratio)
    by_cutoff = ratio_by_cutoff(found.whole, cutoff=ratio.cutoff)
    try:
        joint = joint_outlier_ratio(found.sample)
    except FitError as problem:
        joint = None
        click.echo(f"note: no joint estimate of the ratio and a law: {problem}", err=True)
    if as_json:
        together = {f"joint_{key}": joint and getattr(joint, key) for key in ("low", "high", "law")}
        print_json(
            {
                **ratio.to_dict(),
                "count": ratio.count,
                "method": ratio.method,
                "joint_ratio": joint and joint.estimate,
                **together,
                "confounded": joint and joint.confounded,
                "by_cutoff": [each.to_dict() for each in by_cutoff],
                "verdict": verdict,
            }
        )
    else:
        _print(ratio, found.sample, by_cutoff, joint, verdict)


def _print(
    ratio: OutlierRatio, cut: LatencySample, by_cutoff: list[OutlierRatio], joint: JointRatio | None, verdict: str
) -> None:
    """The ratio in sentences, then as a function of the cutoff."""
    from latfit.report import text_table
    from latfit.report.layout import WIDTH
    from latfit.report.sentences import NO_BREAK, kept_together, percent, still_out
    from latfit.units import seconds

    out, count = still_out(ratio, cut, seconds(ratio.cutoff))
    first = kept_together(f"{out} ({_interval(ratio)}, {ratio.method}; {count}).")
    click.echo(textwrap.fill(first, WIDTH).replace(NO_BREAK, " "))
    click.echo(
        "Nobody was still out."
        if not ratio.estimate
        else "The ratio is stable."
        if verdict == "stable"
        else "The ratio is still falling at this cutoff:\nsome of these probes are late rather than lost."
    )
    if joint:
        click.echo(f"Estimated together with the law {joint.law}: {percent(joint.estimate)}\n({_interval(joint)}).")
        if joint.confounded:
            click.echo(
                "The law's tail and the outliers can hardly be told apart:\nwait longer before giving probes up."
            )
    told = {seconds(r.cutoff): (percent(r.estimate), f"{100 * r.low:.2f} to {percent(r.high)}") for r in by_cutoff}
    rows = [(cutoff, *row) for cutoff, row in told.items()]  # one row where two cutoffs read alike
    click.echo("\n" + "\n".join(text_table(("cutoff", "still out", "95 % interval"), rows)))


def _interval(ratio: OutlierRatio | JointRatio) -> str:
    return f"95 % interval {100 * ratio.low:.2f} to {100 * ratio.high:.2f} %"
