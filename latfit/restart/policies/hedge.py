"""A hedge: a second request after a while, and the first goes on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np

from latfit.errors import RestartError
from latfit.laws.base import Law, Parameter
from latfit.numbers import Floats
from latfit.restart.derived import not_completed, still_out
from latfit.restart.plan import Ages, Plan, overlapping
from latfit.restart.policies import Policy, Submission, Written, in_seconds, register
from latfit.restart.policies.copies import CopiesPolicy
from latfit.restart.policies.timeout import Timeout


@register
@dataclass(frozen=True)
class Hedge(Policy):
    """A second request after d with probability q; both are cancelled at t_inf and all begins again.

    H(t) = 1 − S(t)(1 − q F̃(t−d)); E = (∫₀^{t_inf} (1−H) + c (1−H(t_inf)))/H(t_inf), N = (1 + q S(d))/H(t_inf).
    Without t_inf nothing is cancelled: the SingleR of Kaler, He and Elnikety (SPAA 2017). With a cost c the second
    request starts at d + c.
    """

    name = "hedge"
    parameters = (
        Parameter("d", "non-negative"),
        Parameter("t_inf", "positive"),
        Parameter("q", "non-negative"),
    )
    example = "hedge(d=300,t_inf=900,q=1)"
    says = "a second request after d with probability q, cancel both at t_inf and begin again"
    searched = True
    ratios = (1.0, 1000.0)
    d: float
    t_inf: float | None = None
    q: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.q <= 1:
            raise RestartError(f"hedge: q is {self.q:g}; it is a probability and must lie in [0, 1]")
        if self.t_inf is not None and self.t_inf < self.d:
            raise RestartError(f"hedge: t_inf is {self.t_inf:g} s, before the second request at d = {self.d:g} s")

    def plan(self, law: Law, cost: float) -> Plan:
        """One round that is repeated.

        Once the second request is made, A(u) = P(first out at `start` and not completed by u) and B(u) = P(it has
        failed since). The round is under way with probability (1−q) S + q (S (1−F̃₂) + B S₂).
        """
        start, end = self.d + cost, self.t_inf or np.inf
        q = self.q if start < end else 0.0
        F_start, G_start, S_start = (float(f(np.array(start))) for f in (law.cdf, law.failed, law.still_out))

        def at(u: Floats) -> Ages:
            S, F, younger = still_out(law, u), law.cdf(u), np.maximum(u - start, 0.0)
            N_2, S_2 = not_completed(law, younger), still_out(law, younger)
            B = law.failed(u) - G_start
            A = S + B
            alive = (1 - q) * S + q * (S * N_2 + B * S_2)
            done = F_start + (1 - q) * (F - F_start) + q * (S_start - A * N_2)
            running = (1 - q) * S + q * (S * N_2 + A * S_2)
            return Ages(*(np.where(u < start, a, b) for a, b in ((S, alive), (F, done), (S, running))))

        this = overlapping(law, (0.0, -start), end, at, submissions=1.0 + q * S_start, pause=cost)
        return Plan((this,), repeats=True)

    def submissions(self, cost: float, size: int, rng: np.random.Generator) -> Iterator[Submission]:
        end = self.t_inf or np.inf
        for k in count():
            start = k * (end + cost) if k else 0.0
            yield Submission(start, end)
            if self.d + cost < end:
                yield Submission(start + self.d + cost, end - self.d - cost, self.q, self.d + cost, beside=True)

    @property
    def most_submissions(self) -> int | None:
        return 2 if self.t_inf is None else None

    @classmethod
    def from_times(cls, time: float, ratio: float) -> Policy:
        if ratio <= 1 + 1e-9:
            return Timeout(time)
        return cls(time, time * ratio) if ratio < cls.ratios[1] else CopiesPolicy(2, time * ratio)

    def sentence(self, time: Written = in_seconds) -> str:
        share = "" if self.q == 1 else f" in {self.q:.2%} of the cases"
        cancel = "" if self.t_inf is None else f", cancel both after {time(self.t_inf)} and begin again"
        return f"Hedge after {time(self.d)}{share}{cancel}"
