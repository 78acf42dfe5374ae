"""What a timeout is to minimise: mean, std, moment:n, quantile:q, or the chance to miss a deadline:D."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, factorial

import numpy as np

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.restart.completion import (
    completion_quantile,
    expected_duration,
    log_survival,
    lost_moment,
    moments,
    refuse_failures,
    std_duration,
)
from latfit.restart.times import Floats, density, inverse_cdf


@dataclass(frozen=True)
class Objective:
    """A figure of J = r + J′ to minimise, J′ being the completion time with cost c + r.

    `parameter` is n of a moment, q of a quantile, D of a deadline; `shift` is the wall-clock time r.
    For a deadline the figure is P(J > D), so that less is better here too.
    """

    name: str
    parameter: float = 0.0
    shift: float = 0.0

    @classmethod
    def parse(cls, text: str, *, shift: float = 0.0) -> Objective:
        """Read `mean`, `std`, `moment:n`, `quantile:q` or `deadline:D`."""
        name, colon, number = text.partition(":")
        if name in ("mean", "std") and not colon:
            return cls(name, shift=shift)
        try:
            value = float(number)
        except ValueError:
            value = np.nan
        valid = {
            "moment": 1 <= value <= 20 and value == int(value) if np.isfinite(value) else False,
            "quantile": 0 < value < 1,
            "deadline": shift < value < np.inf,
        }
        if not valid.get(name, False):
            raise RestartError(
                f"the objective {text!r} is not understood: give mean, std, moment:n with a whole n from 1 to 20, "
                "quantile:q with 0 < q < 1, or deadline:D with D seconds (more than the wall-clock time)"
            )
        return cls(name, value, shift)

    def __str__(self) -> str:
        return self.name if self.name in ("mean", "std") else f"{self.name}:{self.parameter:.12g}"

    def value(self, law: Law, t: Floats, cost: float) -> Floats:
        """The figure to minimise at the timeouts t."""
        if self.name == "mean":
            return self.shift + expected_duration(law, t, cost=cost)
        if self.name == "std":
            return std_duration(law, t, cost=cost)
        if self.name == "moment":
            return self._shifted(moments(law, t, int(self.parameter), cost=cost))
        if self.name == "quantile":
            return self.shift + completion_quantile(law, self.parameter, t, cost=cost)
        refuse_failures(law, "the chance to meet a deadline")
        D = np.full(np.shape(t), self.parameter - self.shift)
        return np.exp(log_survival(law, D, np.asarray(t), cost))

    def slope(self, law: Law, t: Floats, cost: float) -> Floats | None:
        """A function of t with the sign of the figure's derivative, None where there is none to use."""
        if self.name == "mean":
            return mean_slope(law, t, cost)
        if self.name == "std":
            E, dE = moment_slopes(law, t, 2, cost)
            with np.errstate(all="ignore"):
                return np.asarray(dE[2] - 2 * E[1] * dE[1])
        if self.name == "moment":
            return self._shifted(moment_slopes(law, t, int(self.parameter), cost)[1])
        return None

    def _shifted(self, E: Floats) -> Floats:
        """E[(r + J′)ⁿ] from the moments of J′ (and the same for their slopes)."""
        n, r = int(self.parameter), np.float64(self.shift)  # whose powers are ∞ where a float's are an error
        return E[n] if r == 0 else np.asarray(sum(comb(n, k) * r ** (n - k) * E[k] for k in range(n + 1)))

    def limit(self, E_0: float) -> float:
        """The figure for t → 0, where J is exponential with mean E_0 (c = r = 0)."""
        if self.name == "moment":
            return float(factorial(int(self.parameter)) * np.float64(E_0) ** self.parameter)
        if self.name == "quantile":
            return float(-E_0 * np.log1p(-self.parameter))
        if self.name == "deadline":
            return float(np.exp(-self.parameter / E_0)) if E_0 > 0 else 0.0
        return E_0

    def special_times(self, law: Law, cost: float) -> Floats:
        """Timeouts at which the figure may jump or bend though the law is smooth."""
        k = np.arange(1.0, 301.0)
        if self.name == "quantile":  # F̃(t) = 1 − (1−q)^(1/k): one attempt less is enough from here on
            t = inverse_cdf(law, -np.expm1(np.log1p(-self.parameter) / k))
        elif self.name == "deadline":  # k attempts fit exactly before D
            t = (self.parameter - self.shift - (k - 1) * cost) / k
        else:
            t = np.empty(0)
        return t[np.isfinite(t) & (t > 0)]

    def report(self, value: float) -> float:
        """The figure as a user reads it: for a deadline the chance to meet it."""
        return 1.0 - value if self.name == "deadline" else value


def mean_slope(law: Law, t: Floats, cost: float) -> Floats:
    """S(t) − f̃(t) (E_J(t) + c), which has the sign of dE_J/dt (van Moorsel & Wolter 2004, Theorem 2)."""
    E_J = expected_duration(law, t, cost=cost)
    with np.errstate(all="ignore"):
        lost = density(law, t) * (E_J + cost)
    return law.still_out(t) - np.where(np.isnan(lost), np.inf, lost)


def moment_slopes(law: Law, t: Floats, order: int, cost: float) -> tuple[Floats, Floats]:
    """E[Jⁿ] and dE[Jⁿ]/dt for n = 0…order, by differentiating Algorithm 1 of van Moorsel & Wolter 2004."""
    E, F, S, f = moments(law, t, order, cost=cost), law.cdf(t), law.still_out(t), density(law, t)
    dE = [np.zeros(np.shape(t))]
    with np.errstate(all="ignore"):
        for n in range(1, order + 1):
            total = f * ((t**n - (t + cost) ** n) - E[n]) + n * S * (t + cost) ** (n - 1)
            for k in range(1, n):
                m = n - k
                total += comb(n, k) * (m * S * (t + cost) ** (m - 1) - f * (t + cost) ** m) * E[k]
                total += comb(n, k) * lost_moment(law, m, t, cost) * dE[k]
            dE.append(total / F)
    return E, np.array(dE)
