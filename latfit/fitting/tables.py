"""Fits as tables: as people print them in a paper, and as a summary on the screen."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from latfit.errors import FitError

if TYPE_CHECKING:
    from latfit.fitting.fitted import Fit
    from latfit.fitting.kolmogorov import GoodnessOfFit

SYMBOLS = {"mu": r"\mu", "sigma": r"\sigma", "nu": r"\nu", "rate": r"\lambda", "shape": "k", "scale": r"\lambda"}
LATEX_ESCAPES = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
METHODS = {"mle": "maximum likelihood", "ls": "least squares on the cdf"}


def written(value: float, digits: int = 4) -> str:
    """A number with so many digits as people write it: 260, not 2.6e+02; with a power of ten where it is far from 1.

    >>> written(260.4, 2), written(0.00123456), written(1.5e12)
    ('260', '0.001235', '1.5e+12')
    """
    if value == 0 or not 1e-5 <= abs(value) < 1e7:
        return f"{value:.{digits}g}"
    return np.format_float_positional(float(f"{value:.{digits}g}"), trim="-")


def fits_table(results: Sequence[tuple[Fit, GoodnessOfFit | None]], kind: Literal["latex", "markdown"]) -> str:
    """Fits with their tests as a table for a paper; a standard error stands in brackets behind its parameter.

    A law that could not be fitted has the reason in place of its parameters; `latex` needs the package booktabs.

    >>> import latfit
    >>> fits = latfit.fit(latfit.example_log().sample(cutoff=10_000), laws=["lognormal"])
    >>> print(fits_table([(fits[0], None)], "markdown"))  # doctest: +ELLIPSIS
    | law | parameters | rho | BIC | D | p known | p bootstrap |
    ...
    """
    latex, by_bic = kind == "latex", any(fit.bic is not None for fit, _ in results)
    columns = ["law", "parameters", "rho", "BIC" if by_bic else "sse", "D", "p known", "p bootstrap"]
    rows = []
    for fit, ks in results:
        if fit.error is not None:
            rows.append([fit.name, _parameters(fit, latex), *[""] * 5])
            continue
        score = fit.bic if by_bic else fit.sse
        cells = [f"{fit.rho:.4f}", "" if score is None else f"{score:.1f}" if by_bic else written(score)]
        cells += (
            ["", "", ""] if ks is None else [f"{ks.statistic:.4f}", *map(_p_value, (ks.p_asymptotic, ks.p_bootstrap))]
        )
        rows.append([fit.name, _parameters(fit, latex), *cells])
    if not latex:
        lines = [columns, ["---"] * len(columns), *rows]
        return "".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in lines)
    columns[2:] = [r"$\rho$", columns[3], "$D$", "$p$ known", "$p$ bootstrap"]
    body = "".join(" & ".join([row[0], row[1], *map(_escaped, row[2:])]) + r" \\" + "\n" for row in rows)
    head = f"\\toprule\n{' & '.join(columns)} \\\\\n\\midrule\n"
    return f"\\begin{{tabular}}{{ll{'r' * 5}}}\n{head}{body}\\bottomrule\n\\end{{tabular}}\n"


def _p_value(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}" if value >= 0.001 else "<.001"


def _parameters(fit: Fit, latex: bool) -> str:
    if fit.error is not None or fit.at_limit:
        text = " ".join((fit.error or fit.describe(4)).split())
        return _escaped(text) if latex else text
    errors = {name: written(error, 2) for name, error in (fit.std_errors or {}).items() if error}
    if not latex:
        both = {name: f" ({errors[name]})" if name in errors else "" for name in fit.params}
        return ", ".join(f"{name} = {written(value)}{both[name]}" for name, value in fit.params.items())
    cells = []
    for name, value in fit.params.items():
        symbol = SYMBOLS.get(name, re.sub(r"_(min|max)$", r"_{\\\1}", name))
        number = re.sub(r"e([+-]\d+)", lambda power: rf" \cdot 10^{{{int(power[1])}}}", written(value))
        error = rf"\,({errors[name]})" if name in errors else ""
        cells.append(f"${symbol} = {number}{error}$")
    return ", ".join(cells)


def _escaped(cell: str) -> str:
    plain = re.sub(r"[\\~^]|[&%$#_{}]", lambda sign: LATEX_ESCAPES.get(sign[0], "\\" + sign[0]), cell)
    return plain.replace("<", "$<$").replace(">", "$>$")


class Summary(str):
    """Text that a prompt and a notebook show as it stands."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def summary(fit: Fit) -> Summary:
    """A fit as a table: what it rests on, how well it fits, and its parameters with 95 % intervals."""
    if fit.law is None or fit.rho is None:
        raise FitError(f"the {fit.name} fit failed: {fit.error}")
    facts = {"probes": str(fit.n), "outlier ratio": f"{fit.rho:.4f}", "method": METHODS.get(fit.method, fit.method)}
    scores = {"log-likelihood": fit.log_likelihood, "AIC": fit.aic, "BIC": fit.bic, "sum of squares": fit.sse}
    scores = {name: value for name, value in scores.items() if value is not None}
    if fit.sample is not None:
        facts["completed"] = str(fit.sample.completed.total)
        scores["√n sup|F − model|"] = fit.d_n
    left = [f"{name}: {value}" for name, value in facts.items()]
    right = [f"{name}: {written(value or 0.0, 6)}" for name, value in scores.items()]
    height, wide = max(len(left), len(right)), max(map(len, left)) + 4
    pairs = zip(left + [""] * (height - len(left)), right + [""] * (height - len(right)), strict=True)
    lines = [f"{a:{wide}}{b}".rstrip() for a, b in pairs]
    head = f"{'':12}{'estimate':>12}{'std error':>12}{'2.5 %':>12}{'97.5 %':>12}"
    domains = {parameter.name: parameter.domain for parameter in fit.law.parameters}
    rows = []
    for name, value in {**fit.params, "rho": fit.rho}.items():
        error = (fit.std_errors or {}).get(name)
        ends = ["", "", ""]
        if error is not None:
            log = domains.get(name, "real") != "real" and value > 0  # of positive parameters on the log scale
            factor = math.exp(min(1.96 * error / value, 700.0)) if log else 0.0
            low, high = (value / factor, value * factor) if log else (value - 1.96 * error, value + 1.96 * error)
            ends = [written(each) for each in (error, max(low, 0.0) if name == "rho" else low, high)]
        rows.append(f"{name:12}{written(value, 5):>12}" + "".join(f"{each:>12}" for each in ends))
    rule = "=" * len(head)
    title = f"{fit.law.name}{' (at its exponential limit)' if fit.at_limit else ''}".center(len(head)).rstrip()
    return Summary("\n".join([title, rule, *lines, "-" * len(head), head, *rows, rule]))
