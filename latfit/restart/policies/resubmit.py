"""Never cancel: submit again every d, and let all copies run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

import numpy as np

from latfit.errors import RestartError
from latfit.laws.base import Law, Parameter
from latfit.numbers import Floats
from latfit.restart.plan import Plan, Round
from latfit.restart.policies.base import Policy, Submission, Written, in_seconds, register
from latfit.restart.rounds import knots, not_completed, quadrature
from latfit.restart.times import has_failures

NEGLIGIBLE = 1e-12  # a chance of getting so far that nothing after it counts
MOST = 2000  # copies that are out at a time


@register
@dataclass(frozen=True)
class Resubmit(Policy):
    """P(J > n d + u) = Π_{k ≤ n} S(k d + u): another copy every d until one completes. Libman and Orda 2002.

    With a cost c the copies start every d + c.
    """

    name: ClassVar[str] = "resubmit"
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("d", "positive"),)
    example: ClassVar[str] = "resubmit(d=306)"
    says: ClassVar[str] = "submit again every d and never cancel"
    searched: ClassVar[bool] = True
    needs_budget: ClassVar[bool] = True
    d: float

    def plan(self, law: Law, cost: float) -> Plan:
        """A round from each submission to the next, as many as can be reached; all of them at once."""
        if has_failures(law):
            raise RestartError(
                "resubmit is not computed for a law with visible failures: what comes next depends on which of any "
                "number of copies are still out. A hedge and delayed resubmission are computed; or read failures as "
                "completed or as lost (--failed completed, --failed lost)"
            )
        gap = self.d + cost
        S_at = not_completed(law, gap * np.arange(1.0, MOST + 1.0))
        reached = np.cumprod(S_at)
        count = int(np.count_nonzero(reached > NEGLIGIBLE)) + 1
        if count > MOST and reached[-1] > 1e-9:
            raise RestartError(
                f"resubmit: with d = {self.d:g} s more than {MOST} copies would be out at a time; choose a larger d"
            )
        count = min(count, MOST)
        times = knots(law)[knots(law) < gap * count]
        inner = times - gap * np.floor(times / gap)
        ages = np.unique(np.concatenate([[0.0, gap], inner[(inner > 0) & (inner < gap)]]))
        u, w = quadrature(ages, steps=law.jumps is not None)
        S = np.cumprod(not_completed(law, u + gap * np.arange(count)[:, None]), axis=0)  # P(J > n gap + u)
        S /= np.concatenate([[1.0], reached[: count - 1]])[:, None]
        first, second, out = S @ w, 2 * (S @ (u * w)), S_at[:count]
        rounds = [
            Round(gap, float(out[n]), float(first[n]), float(second[n]), gap * float(out[n]), 1.0,
                  (n + 1) * float(first[n]), _Survival(law, gap, n), ages)
            for n in range(count)
        ]  # fmt: skip
        return Plan(tuple(rounds), repeats=bool(out[-1] > 0))

    def mean_submissions(self, law: Law, cost: float) -> float:
        """1 + Σ_n Π_{k ≤ n} S(k d)."""
        return float(1.0 + np.cumprod(not_completed(law, (self.d + cost) * np.arange(1.0, MOST + 1.0))).sum())

    def submissions(self, cost: float, size: int, rng: np.random.Generator) -> Iterator[Submission]:
        """A copy every d + c, none of them cancelled."""
        return (Submission(k * (self.d + cost), np.inf) for k in count())

    @classmethod
    def spanned(cls, time: float, ratio: float) -> Resubmit:
        """The time is d."""
        return cls(time)

    def sentence(self, time: Written = in_seconds) -> str:
        """As an order."""
        return f"Submit again every {time(self.d)} and cancel none"


@dataclass(frozen=True, eq=False)
class _Survival:
    """Between submission n and the next one, with n + 1 copies out, given that none has completed before."""

    law: Law
    gap: float
    n: int

    def __call__(self, u: Floats) -> Floats:
        """Π_{k ≤ n} S(k gap + u)/S(k gap)."""
        ages = self.gap * np.arange(self.n + 1.0)
        older = not_completed(self.law, np.asarray(u)[..., None] + ages)
        return np.asarray(np.prod(older, axis=-1) / np.prod(not_completed(self.law, ages[1:])))
