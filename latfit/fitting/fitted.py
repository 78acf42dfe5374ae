"""A fit, the law of an attempt that follows from it, and tables of fits."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from latfit.curve import Counts, kaplan_meier
from latfit.errors import FitError, counted
from latfit.laws import Competing, ContinuousLaw, Defective, Law
from latfit.laws.samples import cell_width
from latfit.numbers import Floats, Ints, finite
from latfit.sample import LatencySample, Tally

if TYPE_CHECKING:
    from latfit.fitting.kolmogorov import GoodnessOfFit

Cdf = Callable[[Floats], Floats]
MAX_FAILURE_STEPS = 500  # in the law of failures; more times are merged with their neighbours
SYMBOLS = {"mu": r"\mu", "sigma": r"\sigma", "nu": r"\nu", "rate": r"\lambda", "shape": "k", "scale": r"\lambda"}
LATEX_ESCAPES = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
METHODS = {"mle": "maximum likelihood", "ls": "least squares on the cdf"}


def written(value: float, digits: int = 4) -> str:
    """A number with `digits` digits, as people write it: 260, not 2.6e+02; with a power of ten only if far from 1.

    >>> written(260.4, 2), written(0.00123456), written(1.5e12)
    ('260', '0.001235', '1.5e+12')
    """
    if value == 0 or not 1e-5 <= abs(value) < 1e7:
        return f"{value:.{digits}g}"
    return np.format_float_positional(float(f"{value:.{digits}g}"), trim="-")


class Summary(str):
    """Text that a prompt or a notebook shows without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, repr=False)
class Fit:
    """A law fitted to a sample, or the reason why it could not be.

    `law` is proper and does not include `rho`: the fitted law of latency is `Defective(law, rho)`. `n` counts all
    probes. `std_errors` has an entry for each parameter, and for `rho` if it was estimated; an entry is None on a
    boundary. Use those of positive parameters on the log scale, and `profile_interval` for small samples
    (docs/calibration.md). `at_limit` means that the law is the exponential that it has as a limit. `bic` counts the
    parameters, and ρ if it was estimated. If `error` is not None, there is no law and no score. `sample` is what the
    law was fitted to, if known. Every function that accepts a law, such as `optimal_timeout`, accepts a fit.

    Examples
    --------
    >>> import latfit
    >>> best = latfit.fit(latfit.example_log().sample(cutoff=10_000), laws=["lognormal"])[0]
    >>> best.name, round(best.params["mu"], 3), round(best.std_errors["mu"], 4), round(best.rho, 4)
    ('lognormal', 5.557, 0.0147, 0.0248)
    """

    name: str
    method: str
    n: int
    law: ContinuousLaw | None = None
    rho: float | None = None
    params: dict[str, float] = field(default_factory=dict)
    std_errors: dict[str, float | None] | None = None
    sse: float | None = None
    log_likelihood: float | None = None
    aic: float | None = None
    bic: float | None = None
    converged: bool = False
    at_limit: bool = False
    error: str | None = None
    sample: LatencySample | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        score = f", {'BIC' if self.method == 'mle' else 'sse'} {written(self.score, 6)}" if self.law else ""
        ratio = "" if self.rho is None else f", rho={self.rho:.4g}"
        return f"<Fit of {self.name} ({self.method}) to {counted(self.n, 'probe')}: {self.describe()}{ratio}{score}>"

    def as_law(self) -> Law:
        """The law of an attempt, with ρ and the failures of the sample; an error if the fit failed."""
        return Defective(*self.law_and_rho) if self.sample is None else fitted_law(self.sample, self)

    @property
    def d_n(self) -> float | None:
        """√n sup |F̃ − (1−ρ)F| over the probes of the sample; None if that is unknown."""
        if self.sample is None or self.law is None or self.rho is None:
            return None
        distance = ks_distance(self.sample, self.law.cdf, self.rho, round_up=self.method == "ls")
        return float(np.sqrt(self.n)) * distance

    def summary(self) -> Summary:
        """The fit as a table: scores, distance from the data, estimates with standard errors and 95 % intervals."""
        law, rho = self.law_and_rho
        facts: dict[str, float | None] = {
            "probes": self.n,
            "completed": None if self.sample is None else self.sample.completed.total,
            "log-likelihood": self.log_likelihood,
            "AIC": self.aic,
            "BIC": self.bic,
            "sum of squares": self.sse,
            "√n sup|F − model|": self.d_n,
        }
        title = f"{law.name}{' (at its exponential limit)' if self.at_limit else ''}"
        lines = [f"{title} by {METHODS.get(self.method, self.method)}"]
        lines += [f"{name}: {written(value, 6)}" for name, value in facts.items() if value is not None]
        lines.append("".join(f"{name:>12}" for name in ("", "estimate", "std error", "2.5 %", "97.5 %")))
        positive = {parameter.name for parameter in law.parameters if parameter.domain != "real"}
        for name, value in {**self.params, "rho": rho}.items():
            error, numbers = (self.std_errors or {}).get(name), [value]
            if error is not None and name in positive and value > 0:  # on the log scale
                factor = math.exp(min(1.96 * error / value, 700.0))
                numbers += [error, value / factor, value * factor]
            elif error is not None:
                low = value - 1.96 * error
                numbers += [error, max(low, 0.0) if name == "rho" else low, value + 1.96 * error]
            lines.append(f"{name:12}" + "".join(f"{written(number, 5):>12}" for number in numbers))
        return Summary("\n".join(lines))

    def to_latex(self) -> str:
        r"""The fit as a LaTeX table (package booktabs), each standard error in brackets after its parameter.

        >>> import latfit
        >>> best = latfit.fit(latfit.example_log().sample(cutoff=10_000), "lognormal")[0]
        >>> print(best.to_latex().splitlines()[4])  # doctest: +ELLIPSIS
        lognormal & $\mu = 5.557\,(0.015)$, $\sigma = 0.6697\,(0.01)$ & 0.0248 & ...
        """
        return fits_table([(self, None)], "latex")

    @property
    def law_and_rho(self) -> tuple[ContinuousLaw, float]:
        """The law and ρ; if the fit failed, an error with the reason."""
        if self.law is None or self.rho is None:
            raise FitError(f"the {self.name} fit failed: {self.error}")
        return self.law, self.rho

    @property
    def score(self) -> float:
        """The score that ranks fits of one method: BIC or the sum of squares, ∞ for a failed fit."""
        value = self.bic if self.method == "mle" else self.sse
        return np.inf if value is None else value

    def describe(self, digits: int = 6, between: str = ", ") -> str:
        """The fitted law in a line; at its exponential limit that exponential, not a huge parameter.

        >>> from latfit.fitting import fit
        >>> from latfit.sample import LatencySample
        >>> fit(LatencySample.of([1.0, 2, 3, 4, 5, 6, 7, 8]), "pareto")[0].describe()
        '= exponential(rate=0.223144)'
        """
        if self.law is None:
            return f"not fitted: {self.error}"
        if self.at_limit:  # if a law tends to an exponential, its density at 0 tends to the rate
            return f"= exponential(rate={float(self.law.pdf(0.0)):.{digits}g})"
        return between.join(f"{name}={value:.{digits}g}" for name, value in self.params.items())

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: `law` is the registry name, and numbers are finite or None."""
        return {
            "law": self.name,
            "method": self.method,
            "params": {name: finite(value) for name, value in self.params.items()},
            "std_errors": self.std_errors and {name: finite(value) for name, value in self.std_errors.items()},
            **{name: finite(getattr(self, name)) for name in ("rho", "sse", "log_likelihood", "aic", "bic")},
            "n": self.n,
            "converged": self.converged,
            "at_limit": self.at_limit,
            "error": self.error,
        }


def fitted_law(sample: LatencySample, fit: Fit) -> Law:
    """The law of an attempt under `fit`: `Defective`, or `Competing` if probes of `sample` failed visibly.

    A fit censors failures at their time, so its law is that of completion in a world without failures. Here they are
    an independent risk again: their Kaplan–Meier estimate, censored by completions, with lost probes at risk forever.
    If the last probe of all failed, half of its mass is taken to go on, so that no answer requires every attempt to
    end by itself.
    """
    law = Defective(*fit.law_and_rho)
    if not sample.failed.values.size:
        return law
    others = Tally.sum([sample.completed, sample.censored])
    curve = kaplan_meier(LatencySample(completed=sample.failed, censored=others, lost=sample.lost))
    masses = -np.diff(curve.still_out, prepend=1.0)
    if curve.still_out[-1] <= 0:  # the last probe failed
        masses[-1] /= 2
    starts = np.unique(np.linspace(0, masses.size, MAX_FAILURE_STEPS, endpoint=False).astype(np.intp))
    merged = np.add.reduceat(masses, starts)
    return Competing.of(law, np.add.reduceat(curve.times * masses, starts) / merged, merged)


def ks_distance(sample: LatencySample, cdf: Cdf, rho: float, *, round_up: bool = False) -> float:
    """The sup |F̃(t) − (1−ρ)F(t)|, before and after each jump of F̃.

    If the clock is so coarse that latencies are cells, F is compared at their ends: (t − step/2, t + step/2], or
    (t − step, t] with `round_up`, the reading of least squares.
    """
    curve = Counts.of_sample(sample.failures_censored()).curves()
    times, after = curve.times[0], 1 - curve.S[0]
    cell = cell_width(sample)
    if round_up and times.size > 1 and times[0] == 0:  # a latency of 0 also lies in the first step
        times, after = times[1:], after[1:]
    before = np.concatenate([[0.0], after[:-1]])
    high = times + (0.0 if round_up else cell / 2)
    if not times.size:
        return 0.0

    def laws(at: Ints) -> tuple[Floats, Floats]:
        F = (1 - rho) * cdf(high[at])
        return F, (1 - rho) * cdf(np.maximum(high[at] - cell, 0.0)) if cell else F

    def largest(at: Ints, F: Floats, F_low: Floats) -> float:
        return float(max(np.abs(after[at] - F).max(), np.abs(before[at] - F_low).max()))

    # both cdfs rise, so that between two times the gap is at most that of one's begin and the other's end
    ends = np.unique(np.linspace(0, times.size - 1, min(times.size, 2000)).astype(np.int64))
    F, F_low = laws(ends)
    distance = largest(ends, F, F_low)
    reach = np.maximum(after[ends[1:]] - F_low[:-1], F[1:] - after[ends[:-1]])
    between = np.repeat(reach >= distance, np.diff(ends))
    between[ends[:-1]] = False
    inside = np.flatnonzero(between)
    return max(distance, largest(inside, *laws(inside))) if inside.size else distance


def fits_table(results: Sequence[tuple[Fit, GoodnessOfFit | None]], kind: Literal["latex", "markdown"]) -> str:
    """Fits with their tests as a table for a paper, with standard errors in brackets.

    A failed fit has the reason in place of its parameters; `latex` needs the package booktabs.

    >>> import latfit
    >>> fits = latfit.fit(latfit.example_log().sample(cutoff=10_000), laws=["lognormal"])
    >>> print(fits_table([(fits[0], None)], "markdown"))  # doctest: +ELLIPSIS
    | law | parameters | rho | BIC | D | p known | p bootstrap |
    ...
    """
    by_bic = any(fit.bic is not None for fit, _ in results)
    head = ["law", "parameters", "rho", "BIC" if by_bic else "sse", "D", "p known", "p bootstrap"]
    rows = []
    for fit, ks in results:
        score = fit.bic if by_bic else fit.sse
        cells = [fit.name, _parameters(fit, kind == "latex"), "" if fit.rho is None else f"{fit.rho:.4f}"]
        cells.append("" if score is None else f"{score:.1f}" if by_bic else written(score))
        if ks is not None and fit.error is None:
            cells += [f"{ks.statistic:.4f}", _p_value(ks.p_asymptotic), _p_value(ks.p_bootstrap)]
        rows.append(cells + [""] * (len(head) - len(cells)))
    if kind == "markdown":
        lines = [head, ["---"] * len(head), *rows]
        return "".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in lines)
    head = [*head[:2], r"$\rho$", head[3], "$D$", "$p$ known", "$p$ bootstrap"]
    title, *body = (
        " & ".join(cells) + r" \\" for cells in [head, *([*row[:2], *map(_escaped, row[2:])] for row in rows)]
    )
    parts = [r"\begin{tabular}{llrrrrr}", r"\toprule", title, r"\midrule", *body, r"\bottomrule", r"\end{tabular}", ""]
    return "\n".join(parts)


def _p_value(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}" if value >= 0.001 else "<.001"


def _parameters(fit: Fit, latex: bool) -> str:
    if fit.error is not None or fit.at_limit:
        text = " ".join((fit.error or fit.describe(4)).split())
        return _escaped(text) if latex else text
    cells = []
    for name, value in fit.params.items():
        error = (fit.std_errors or {}).get(name)
        bracket = f"({written(error, 2)})" if error else ""
        if latex:
            symbol = SYMBOLS.get(name, re.sub(r"_(min|max)$", r"_{\\\1}", name))
            number = re.sub(r"e([+-]\d+)", lambda power: rf" \cdot 10^{{{int(power[1])}}}", written(value))
            cells.append(f"${symbol} = {number}{bracket and chr(92) + ',' + bracket}$")
        else:
            cells.append(f"{name} = {written(value)} {bracket}".rstrip())
    return ", ".join(cells)


def _escaped(cell: str) -> str:
    plain = re.sub(r"[\\~^]|[&%$#_{}]", lambda sign: LATEX_ESCAPES.get(sign[0], "\\" + sign[0]), cell)
    return plain.replace("<", "$<$").replace(">", "$>$")
