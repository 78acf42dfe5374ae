"""`latfit fit`: which law describes the latencies; `latfit outliers`: the share of probes that never return."""

from __future__ import annotations

from typing import Any

import click

import latfit
from latfit.cli import common as cli


@cli.command
def fit(log: str, laws: tuple[str, ...], method: str, rho: float | None, as_json: bool, **parsed: Any) -> None:
    """Fit laws to the latencies of a log and rank them.

    Likelihood fits are ranked by BIC, which counts the outlier ratio as a parameter; least squares by its sum of
    squares. A law that cannot be fitted comes last, with the reason.
    """
    import numpy as np

    from latfit.decision import FittedLaw
    from latfit.decision.fits import ranked
    from latfit.fitting import assess, fits_table
    from latfit.report.answers import fit_sections

    if parsed["table"] is not None and as_json:
        raise click.UsageError("--table and --json exclude each other")
    case = cli.prepared(log, parsed)
    sample, bootstrap = case.sample, parsed["bootstrap"]
    if laws or method == "ls" or rho is not None:
        how = {"t_min": parsed["t_min"], "resamples": 100 if bootstrap else 0, "seed": parsed["seed"]}
        fits = latfit.fit(sample, laws or None, method=method, rho="joint" if rho is None else rho, **how)
    else:  # the laws that every command tries
        fits = ranked([case], cli.call(latfit.Options, **parsed))[0]
    rng = np.random.default_rng(parsed["seed"])
    tests = [assess(sample, fit, bootstrap=bootstrap, rng=rng, subsample=parsed["subsample"]) for fit in fits]
    if parsed["table"] is not None:
        click.echo(fits_table(list(zip(fits, tests, strict=True)), parsed["table"]), nl=False)
        return
    document = {"fits": [{**fit.to_dict(), "ks": ks and ks.to_dict()} for fit, ks in zip(fits, tests, strict=True)]}
    cli.show(document, fit_sections(sample, list(map(FittedLaw, fits, tests))), as_json=as_json)


@cli.command
def outliers(log: str, as_json: bool, **parsed: Any) -> None:
    """Estimate the share of probes that never return.

    The ratio is the share still out at the cutoff, with a 95 % interval, and as a function of the cutoff: where it is
    still falling, some of the outliers are only late.
    """
    from latfit.outliers import cutoff_verdict
    from latfit.report.answers import outliers_sections

    case = cli.prepared(log, parsed)
    ratio, joint = case.ratio, None
    try:
        joint = latfit.joint_outlier_ratio(case.sample)
    except latfit.FitError as problem:
        cli.notify("note", [f"no joint estimate of the ratio and a law: {problem}"])
    verdict = cutoff_verdict(case.whole, ratio)
    by_cutoff = latfit.ratio_by_cutoff(case.whole, cutoff=ratio.cutoff)
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
