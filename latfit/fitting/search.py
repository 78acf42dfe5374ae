"""Any law as the fitter sees it: by its own kernel, or by one that differentiates its formulas numerically."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from latfit.errors import FitError, LawError
from latfit.fitting.likelihood import profile_rho
from latfit.laws import ContinuousLaw, get_law
from latfit.laws.kernel import Jet, Kernel
from latfit.laws.samples import SampleBatch
from latfit.numbers import Floats


def law_class(name: str) -> Any:
    """The class of a law that can be fitted: it has a density, and states `start` or a kernel."""
    law = get_law(name)
    if not issubclass(law, ContinuousLaw) or not (law.kernel or hasattr(law, "start")):
        raise FitError(f"{name} cannot be fitted: the law states no rough parameters to start from")
    return law


def kernel_of(name: str) -> Kernel:
    """The kernel of a law that can be fitted, or one by differences where it has none."""
    law = law_class(name)
    return law.kernel or DifferencesKernel(law)


class DifferencesKernel(Kernel):
    """A law without a kernel: u are its parameters, positive ones by their logarithm; slopes are differences."""

    def __init__(self, law: Any) -> None:
        self.kind = law
        self.__set_name__(law, "kernel")
        self.logs = np.array([[parameter.domain != "real"] for parameter in law.parameters])
        self.min_distinct = len(self.parameters)  # type: ignore[misc]

    def build(self, u: Floats) -> ContinuousLaw:
        with np.errstate(over="ignore"):
            law: ContinuousLaw = self.kind(*map(float, np.where(self.logs[:, 0], np.exp(u), u)))
        return law

    def _scaled(self, make: Callable[[Floats], ContinuousLaw], columns: Floats, factor: float) -> Floats:
        """The parameters of the laws of factor · T, not a number where a column is no law."""
        params = np.full(columns.shape, np.nan)
        for row, column in enumerate(columns.T):
            with suppress(LawError, OverflowError):
                params[:, row] = list(make(column).scaled(factor).params.values())
        return params

    def to_params(self, u: Floats, unit: float) -> tuple[Floats, Floats]:
        moves = 1e-6 * np.eye(len(u))[:, :, None]
        slopes = [(self._scaled(self.build, u + e, unit) - self._scaled(self.build, u - e, unit)) / 2e-6 for e in moves]
        return self._scaled(self.build, u, unit), np.stack(slopes, axis=1)

    def from_params(self, params: Floats, unit: float) -> Floats:
        values = self._scaled(lambda column: self.kind(*map(float, column)), params, 1 / unit)
        return np.where(self.logs, np.log(np.where(self.logs, np.maximum(values, 1e-300), 1.0)), values)

    def starts(self, batch: SampleBatch) -> list[Floats]:
        """Those of the quartiles, and of quartiles twice as far apart; a latency of 0 counts as half a step."""
        x, weights = np.broadcast_arrays(batch.x, batch.weights)
        quartiles = np.quantile(x, (0.25, 0.5, 0.75), axis=1, weights=weights, method="inverted_cdf")
        quartiles = np.broadcast_to(np.maximum(quartiles, batch.step / 2), (3, batch.size))
        spread = np.array([[0.5], [1.0], [2.0]])
        rough = [[self.kind.start(*map(float, q)) for q in some.T] for some in (quartiles, spread * quartiles)]
        return [
            self.from_params(np.array([[r[name] for r in some] for name in self.parameters]), 1.0) for some in rough
        ]

    def _jet(self, formula: Callable[[ContinuousLaw, int], Any], shape: tuple[int, ...], u: Floats) -> Jet:
        """`formula` of the law of each column, of that shape, and its derivatives; not a number where u is no law."""
        h, p = 3e-4, len(u)
        step = h * np.eye(p)

        def column(row: int) -> tuple[Floats, list[Floats], list[Floats]]:
            def at(move: Floats) -> Floats:
                try:
                    return np.asarray(formula(self.build(u[:, row] + move), row))
                except (LawError, OverflowError):
                    return np.full(shape, np.nan)

            centre, above, below = at(0 * step[0]), [at(e) for e in step], [at(-e) for e in step]
            grad = [(a - b) / (2 * h) for a, b in zip(above, below, strict=True)]
            hess = []
            for i in range(p):
                hess.append((above[i] - 2 * centre + below[i]) / h**2)
                for e in step[i + 1 :]:
                    f = step[i]
                    hess.append((at(f + e) - at(f - e) - at(e - f) + at(-f - e)) / (4 * h**2))
            return centre, grad, hess

        values, grads, hesses = zip(*map(column, range(u.shape[1])), strict=True)
        return Jet.of(np.array(values), list(np.stack(grads, axis=1)), list(np.stack(hesses, axis=1)))

    def density(self, batch: SampleBatch, u: Floats) -> Jet:
        x, weights = (np.broadcast_to(part, (batch.size, part.shape[1])) for part in (batch.x, batch.weights))
        used = weights > 0
        return self._jet(lambda law, row: weights[row, used[row]] @ law.logpdf(x[row, used[row]]), (), u)

    def survival(self, t: Floats, u: Floats) -> Jet:
        # log S of −∞ has no differences; where S is nothing beside ρ neither has it any weight
        return self._jet(lambda law, row: np.maximum(law.logsf(t[row % len(t)]), -700.0), t.shape[1:], u)

    def probability(self, t: Floats, u: Floats) -> Floats:
        return np.array([self.build(v).cdf(t[row % len(t)]) for row, v in enumerate(u.T)])


def law_log_likelihood(law: ContinuousLaw, batch: SampleBatch, rho: float | None = None) -> tuple[float, float]:
    """ℓ of a batch of one under `law`, and the ρ that it is taken at: the most likely one where `rho` is None."""
    done = float(batch.points.weights[0] @ law.logpdf(batch.points.x)[0])
    if batch.cell:
        low, high = batch.cells.edges
        with np.errstate(divide="ignore"):
            left = law.cdf(high) < 0.5  # from the side on which the difference keeps its digits
            inside = np.where(left, law.cdf(high) - law.cdf(low), law.sf(low) - law.sf(high))
            log_density = np.log(np.maximum(inside, 0.0)) - np.log(high - low)
        done += float(batch.cells.weights[0] @ log_density[0])
    log_s = law.logsf(batch.c)
    ratio = float(profile_rho(batch, log_s)[0]) if rho is None else rho
    with np.errstate(divide="ignore"):
        out = np.logaddexp(np.log(ratio), np.log1p(-ratio) + log_s)
        lost = float(batch.lost[0] * np.log(ratio)) if batch.lost[0] else 0.0
    return done + float(batch.n[0] * np.log1p(-ratio) + batch.c_weights[0] @ out[0]) + lost, ratio
