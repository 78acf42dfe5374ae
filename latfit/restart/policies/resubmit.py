"""Never cancel: submit again every d, and let all copies run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count

import numpy as np

from latfit.errors import RestartError
from latfit.laws.base import Law, Parameter
from latfit.numbers import Floats
from latfit.restart.derived import has_failures, not_completed
from latfit.restart.plan import Plan, Round, knots, quadrature
from latfit.restart.policies import Policy, Submission, Written, in_seconds, register

MAX_COPIES_OUT = 2000  # at a time


@register
@dataclass(frozen=True)
class Resubmit(Policy):
    """P(J > n d + u) = Π_{k ≤ n} S(k d + u): another copy every d until one completes. Libman and Orda 2002.

    With a cost c the copies start every d + c.
    """

    name = "resubmit"
    parameters = (Parameter("d", "positive"),)
    example = "resubmit(d=306)"
    says = "submit again every d and never cancel"
    searched = True
    needs_budget = True
    d: float

    def plan(self, law: Law, cost: float) -> Plan:
        if has_failures(law):
            raise RestartError(
                "resubmit is not computed for a law with visible failures: what comes next depends on which of any "
                "number of copies are still out. A hedge and delayed resubmission are computed; or read failures as "
                "completed or as lost (--failed completed, --failed lost)"
            )
        gap = self.d + cost
        S_at = not_completed(law, gap * np.arange(1.0, MAX_COPIES_OUT + 1.0))
        reached = np.cumprod(S_at)
        count = int(np.count_nonzero(reached > 1e-12)) + 1  # others are hardly ever submitted
        if count > MAX_COPIES_OUT and reached[-1] > 1e-9:
            raise RestartError(
                f"resubmit: with d = {self.d:g} s more than {MAX_COPIES_OUT} copies would be out at a time; "
                "choose a larger d"
            )
        count = min(count, MAX_COPIES_OUT)
        times = knots(law)[knots(law) < gap * count]
        inner = times - gap * np.floor(times / gap)
        ages = np.unique(np.concatenate([[0.0, gap], inner[(inner > 0) & (inner < gap)]]))
        u, w = quadrature(ages, steps=law.jumps is not None)
        S = np.cumprod(not_completed(law, u + gap * np.arange(count)[:, None]), axis=0)  # P(J > n gap + u)
        S /= np.concatenate([[1.0], reached[: count - 1]])[:, None]
        first, second, out = S @ w, 2 * (S @ (u * w)), S_at[:count]
        rounds = [
            Round(
                gap,
                p_incomplete=float(out[n]),
                mean=float(first[n]),
                second_moment=float(second[n]),
                lost_time=gap * float(out[n]),
                submissions=1.0,
                job_seconds=(n + 1) * float(first[n]),
                survival=partial(_survival, law, gap * np.arange(n + 1.0)),
                ages=ages,
            )
            for n in range(count)
        ]
        return Plan(tuple(rounds), repeats=bool(out[-1] > 0))

    def submissions(self, cost: float, size: int, rng: np.random.Generator) -> Iterator[Submission]:
        return (Submission(k * (self.d + cost), np.inf) for k in count())

    def sentence(self, time: Written = in_seconds) -> str:
        return f"Submit again every {time(self.d)} and cancel none"


def _survival(law: Law, ages: Floats, u: Floats) -> Floats:
    """Π S(age + u)/S(age) over the copies that are out, given that none has completed before."""
    older = not_completed(law, np.asarray(u)[..., None] + ages)
    return np.asarray(np.prod(older, axis=-1) / np.prod(not_completed(law, ages[1:])))
