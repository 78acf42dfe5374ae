"""Fitted laws as a table to paste into a paper: LaTeX (booktabs) or Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from latfit.errors import printable
from latfit.fitting import Fit
from latfit.goodness import GoodnessOfFit

Kind = Literal["latex", "markdown"]
COLUMNS = ("law", "parameters", "rho", "BIC", "D", "p known", "p bootstrap")
SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def fits_table(results: Sequence[tuple[Fit, GoodnessOfFit | None]], kind: Kind) -> str:
    """Fits with their tests, as ranked; a standard error stands in brackets behind its parameter.

    `results` are pairs of a fit and its test (None where there is none). A law that could not be fitted has its reason
    in the place of its parameters. Returns text that ends in a newline; LaTeX needs the package booktabs.

    >>> import latfit
    >>> fits = latfit.fit(latfit.example_log().sample(cutoff=10_000), laws=["lognormal"])
    >>> print(fits_table([(fits[0], None)], "markdown"))  # doctest: +ELLIPSIS
    | law | parameters | rho | BIC | D | p known | p bootstrap |
    ...
    """
    by_bic = any(fit.bic is not None for fit, _ in results)
    columns = [name if name != "BIC" or by_bic else "sse" for name in COLUMNS]
    rows = [_row(fit, ks, by_bic) for fit, ks in results]
    if kind == "markdown":
        lines = [columns, ["---"] * len(columns), *rows]
        return "".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in lines)
    head = [{"rho": r"$\rho$", "D": "$D$", "p known": "$p$ known", "p bootstrap": "$p$ bootstrap"}.get(c, c)
            for c in columns]  # fmt: skip
    body = "".join(" & ".join(map(_latex, row)) + r" \\" + "\n" for row in rows)
    return (f"\\begin{{tabular}}{{ll{'r' * (len(columns) - 2)}}}\n\\toprule\n{' & '.join(head)} \\\\\n\\midrule\n"
            f"{body}\\bottomrule\n\\end{{tabular}}\n")  # fmt: skip


def _row(fit: Fit, ks: GoodnessOfFit | None, by_bic: bool) -> list[str]:
    if fit.error is not None:
        return [fit.name, printable(fit.error), *[""] * (len(COLUMNS) - 2)]
    errors = fit.std_errors or {}
    params = ", ".join(f"{name} = {value:.4g}" + (f" ({errors[name]:.2g})" if errors.get(name) else "")
                       for name, value in fit.params.items())  # fmt: skip
    score = fit.bic if by_bic else fit.sse
    return [
        fit.name,
        fit.describe(4) if fit.at_limit else params,
        "" if fit.rho is None else f"{fit.rho:.4f}",
        "" if score is None else f"{score:.1f}" if by_bic else f"{score:.4g}",
        "" if ks is None else f"{ks.statistic:.4f}",
        "" if ks is None else _p(ks.p_asymptotic),
        "" if ks is None else _p(ks.p_bootstrap),
    ]


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}" if value >= 0.001 else "< 0.001"


def _latex(cell: str) -> str:
    """Text that LaTeX sets as it is."""
    plain = re.sub(r"[\\~^]|[&%$#_{}]", lambda found: SPECIAL.get(found[0], "\\" + found[0]), cell)
    return plain.replace("<", "$<$").replace(">", "$>$")
