"""`latfit fit`: which law describes the latencies."""

from __future__ import annotations

from typing import Any

import click

from latfit.cli import common as cli


@click.command(
    epilog="""\b
Examples:
  latfit fit probes.csv
  latfit fit probes.csv --law lognormal --law weibull --cutoff 10000 --json
  latfit fit probes.csv --table latex > fits.tex
  latfit fit probes.csv --method ls --law lognormal-pareto --subsample 1000"""
)
@cli.log_argument
@cli.option("--law NAME", "A law to fit (default: eight common ones; see `latfit laws`).", "laws", multiple=True)
@cli.option("--method [mle|ls]", "Censored maximum likelihood, or least squares on the cdf.", default="mle")
@cli.option(
    "--rho R",
    "The outlier ratio (default: estimated with the law; counted for least squares).",
    type=click.FloatRange(0, 1, max_open=True),
)
@cli.option(
    "--bootstrap COUNT",
    "Refitted resamples for the honest p-value; 0 for none, and no standard errors of least squares.",
    default=199,
)
@cli.option("--subsample N", "Test a random subsample of N completions, as Glatard et al. do with 1000.")
@cli.option("--table [latex|markdown]", "Print the fits as a table for a paper.", "kind")
@cli.outcome_options
@cli.log_options
@cli.seed_option
@cli.json_option
def fit(log: str, laws: tuple[str, ...], method: str, rho: float | None, as_json: bool, **parsed: Any) -> None:
    """Fit laws to the latencies of a log and rank them.

    Likelihood fits are ranked by BIC, with the outlier ratio inside; least squares by its sum of squares. A law that
    cannot be fitted is listed last with the reason.
    """
    import numpy as np

    from latfit.decision.fits import ranked
    from latfit.fitting import assess, with_std_errors
    from latfit.fitting import fit as fit_laws
    from latfit.report.answers import fit_sections
    from latfit.report.layout import fits_table

    bootstrap, subsample, seed, kind = (parsed[name] for name in ("bootstrap", "subsample", "seed", "kind"))
    if kind is not None and as_json:
        raise click.UsageError("--table and --json are two answers: choose one")
    case = cli.prepared(log, parsed)
    sample = case.sample
    if laws or method == "ls" or rho is not None:
        fits = fit_laws(sample, laws or None, method=method, rho="joint" if rho is None else rho)
    else:  # the laws that every command tries
        fits = ranked([case], cli.decision_options(parsed))[0]
    rng = np.random.default_rng(seed)
    if method == "ls" and bootstrap:
        errors_rng = np.random.default_rng(seed)  # the p-values are those of the same seed without standard errors
        fits = [with_std_errors(sample, fit, rho=rho, rng=errors_rng) for fit in fits]
    results = [(fit, assess(sample, fit, bootstrap=bootstrap, rng=rng, subsample=subsample)) for fit in fits]
    if kind is not None:
        click.echo(fits_table(results, kind), nl=False)
        return
    document = {"fits": [{**fit.to_dict(), "ks": ks and ks.to_dict()} for fit, ks in results]}
    cli.show(document, fit_sections(sample, results), as_json=as_json)
