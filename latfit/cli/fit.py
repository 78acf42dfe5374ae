"""`latfit fit`: which law describes the latencies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from latfit.cli.common import (
    json_option,
    log_argument,
    log_options,
    print_json,
    seed_option,
)
from latfit.cli.deciding import asked, outcome_options, prepared
from latfit.errors import counted

if TYPE_CHECKING:
    from latfit.fitting import Fit
    from latfit.goodness import GoodnessOfFit


@click.command(
    epilog="""\b
Examples:
  latfit fit probes.csv
  latfit fit probes.csv --law lognormal --law weibull --cutoff 10000 --json
  latfit fit probes.csv --table latex > fits.tex
  latfit fit probes.csv --method ls --law lognormal-pareto --subsample 1000"""
)
@log_argument
@click.option(
    "--law", "laws", multiple=True, metavar="NAME", help="A law to fit (default: eight common ones; see `latfit laws`)."
)
@click.option(
    "--method",
    type=click.Choice(["mle", "ls"]),
    default="mle",
    show_default=True,
    help="Censored maximum likelihood, or least squares on the cdf.",
)
@click.option(
    "--rho",
    type=click.FloatRange(0, 1, max_open=True),
    metavar="R",
    help="The outlier ratio (default: estimated with the law; counted for least squares).",
)
@click.option(
    "--bootstrap",
    type=click.IntRange(0),
    default=199,
    show_default=True,
    metavar="N",
    help="Refitted resamples for the honest p-value; 0 for none, and no standard errors of least squares.",
)
@click.option(
    "--subsample",
    type=click.IntRange(1),
    metavar="N",
    help="Test a random subsample of N completions, as Glatard et al. do with 1000.",
)
@click.option("--table", type=click.Choice(["latex", "markdown"]), help="Print the fits as a table for a paper.")
@outcome_options
@log_options
@seed_option
@json_option
def fit(
    log: str,
    laws: tuple[str, ...],
    method: str,
    rho: float | None,
    bootstrap: int,
    subsample: int | None,
    seed: int,
    table: Literal["latex", "markdown"] | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Fit laws to the latencies of a log and rank them.

    Likelihood fits are ranked by BIC, with the outlier ratio inside; least squares by its sum of squares. A law that
    cannot be fitted is listed last with the reason.
    """  # fmt: skip
    import numpy as np

    if table is not None and as_json:
        raise click.UsageError("--table and --json are two answers: choose one")
    from latfit.decision.fits import ranked
    from latfit.fitting import fit as fit_laws
    from latfit.fitting import with_std_errors
    from latfit.goodness import assess

    case, _ = prepared(log, given)
    sample = case.sample
    if laws or method == "ls" or rho is not None:
        fits = fit_laws(sample, laws or None, method=method, rho="joint" if rho is None else rho)
    else:  # the laws that every command tries
        fits = ranked([case], asked(given))[0]
    rng = np.random.default_rng(seed)
    if method == "ls" and bootstrap:
        own = np.random.default_rng(seed)  # the p-values are those of the same seed without standard errors
        fits = [with_std_errors(sample, found, rho=rho, rng=own) for found in fits]
    results = [(found, assess(sample, found, bootstrap=bootstrap, rng=rng, subsample=subsample)) for found in fits]
    if as_json:
        print_json({"fits": [{**found.to_dict(), "ks": ks and ks.to_dict()} for found, ks in results]})
        return
    if table is not None:
        from latfit.report.tables import fits_table

        click.echo(fits_table(results, table), nl=False)
        return
    score = "BIC" if method == "mle" else "sse"
    click.echo(f"{counted(sample.n, 'probe')}, {sample.completed.total} completed; {score} ranks.\n")
    for each, ks in results:
        click.echo(_line(each, ks))


def _line(found: Fit, ks: GoodnessOfFit | None) -> str:
    """A fit in words: the law, its score, its distance from the sample, or why there is none."""
    if found.error is not None or ks is None:
        return f"{found.name}: failed: {found.error}"
    score = f"BIC {found.bic:.1f}" if found.method == "mle" else f"sse {found.sse:.6g}"
    honest = "" if ks.p_bootstrap is None else f", {ks.p_bootstrap:.3g} by bootstrap with refitting"
    return (
        f"{found.name}: {found.describe()}; rho {found.rho:.4g}; {score}\n"
        f"    D_n {ks.d_n:.3f} (n = {ks.n}), p {ks.p_asymptotic:.3g} with parameters taken as known{honest}"
    )
