"""Copies that overlap: a hedge, delayed resubmission, and resubmission that cancels nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

import numpy as np

from latfit.errors import RestartError
from latfit.laws.base import Law, Parameter
from latfit.numbers import Floats
from latfit.restart.derived import has_failures, not_completed, still_out
from latfit.restart.plan import Ages, Plan, Round, attempt, knots, known_moments, overlapping, quadrature
from latfit.restart.policies import Policy, Submission, Written, in_seconds, register
from latfit.restart.policies.timeout import CopiesPolicy, Timeout

MAX_COPIES_OUT = 2000  # at a time


def _beside(law: Law, gap: float, S: Floats, older: Floats, younger: Floats) -> Ages:
    """A copy that was out at age `gap`, now out with probability S, and one beside it that started then; times S(gap).

    B = P(the older one has failed since), the younger one is out with S_2 and has failed with G_2.
    """
    S_2 = still_out(law, younger)
    if not has_failures(law):
        return Ages(S * S_2, 2 * S * S_2, np.zeros_like(S))
    G_2, B = law.failed(younger), law.failed(older) - law.failed(np.array(gap))
    return Ages(S * (S_2 + G_2) + B * S_2, S * (S_2 + G_2) + (S + B) * S_2, B * G_2)


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
        start, end = self.d + cost, self.t_inf or np.inf
        q = self.q if start < end else 0.0

        def at(u: Floats) -> Ages:
            S = still_out(law, u)
            two, second = _beside(law, start, S, u, np.maximum(u - start, 0.0)), np.where(u < start, 0.0, q)
            one = Ages(S, S, law.failed(u))
            two = two._replace(failed=law.failed(np.array(start)) + two.failed)
            return Ages(*((1 - second) * alone + second * both for alone, both in zip(one, two, strict=True)))

        S_start = float(law.still_out(np.array(start)))
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


@register
@dataclass(frozen=True)
class Delayed(Policy):
    """A copy starts at 0, t0, 2 t0, …; each is cancelled at age t_inf, with t0 ≤ t_inf ≤ 2 t0: at most two are out.

    A = ∫₀^{t_inf−t0} S(u) S(u+t0) du, B = S(t_inf) ∫_{t_inf−t0}^{t0} S; E = ∫₀^{t0} S + (A+B)/F̃(t_inf),
    N = 1 + S(t0)/F̃(t_inf), W = ∫₀^{t0} S + (2A+B)/F̃(t_inf). Lingrand, Montagnat and Glatard, HPDC 2009.
    With a cost c the copies start every t0 + c.
    """

    name = "delayed"
    parameters = (Parameter("t0", "positive"), Parameter("t_inf", "positive"))
    example = "delayed(t0=300,t_inf=450)"
    searched = True
    ratios = (1.0, 2.0)
    t0: float
    t_inf: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.t0 <= self.t_inf <= 2 * self.t0 * (1 + 1e-12):
            raise RestartError(
                f"delayed: t_inf is {self.t_inf:g} s and t0 is {self.t0:g} s; it must lie between t0 and 2 t0, so that "
                "at most two copies are out"
            )

    def plan(self, law: Law, cost: float) -> Plan:
        """The first copy alone, then the stretch between two submissions again and again."""
        gap = self.t0 + cost
        if self.t_inf <= gap:  # with such a cost the copies do not overlap
            return Plan((attempt(law, self.t_inf, pause=gap - self.t_inf),), repeats=True)
        if not float(still_out(law, gap)) > 0:
            return Plan((attempt(law, gap, pause=cost),), repeats=has_failures(law))
        if has_failures(law):
            return Plan((self._failing(law, gap, cost),), repeats=True)
        ages = (0.0, gap, gap - self.t_inf)  # the last one: where the older copy is cancelled
        two = overlapping(law, ages, gap, self._two_copies(law, gap))
        return Plan((attempt(law, gap), two), repeats=True)

    def _two_copies(self, law: Law, gap: float) -> Callable[[Floats], Ages]:
        """The stretch between two submissions, given that the older copy is still out at age `gap`."""
        left, S_gap = self.t_inf - gap, float(still_out(law, gap))
        older = float(not_completed(law, np.array(self.t_inf)) - law.failed(np.array(gap)))

        def at(u: Floats) -> Ages:
            age, S_younger = gap + np.minimum(u, left), still_out(law, u)
            two, one = _beside(law, gap, still_out(law, age), age, u), (S_younger, S_younger, law.failed(u))
            return Ages(*(np.where(u < left, b, older * a) / S_gap for a, b in zip(one, two, strict=True)))

        return at

    def _failing(self, law: Law, gap: float, cost: float) -> Round:
        """Until one completes or none is out: the first copy alone, then again and again an older and a younger one."""
        one = attempt(law, gap)
        two = overlapping(law, (0.0, gap, gap - self.t_inf), gap, self._two_copies(law, gap))
        stretches = []
        for this in (one, two):
            out, (mean, second) = this.p_under_way, (sum(this.moments(n)) for n in (1, 2))
            stretches.append(replace(this, moments=known_moments(1.0 - out, out, mean, second, out * gap)))
        whole, S_gap, ends = Plan(tuple(stretches), repeats=True), one.p_under_way, 1.0 - two.p_under_way
        done = (1.0 - two.p_incomplete) / ends if ends > 0 else 0.0
        lost = (two.moments(1)[1] - gap * done) / ends if ends > 0 else np.inf
        p_incomplete, (_, mean, second) = one.p_incomplete - S_gap * done, whole.moments(2)
        lost_time = one.moments(1)[1] + S_gap * lost
        return Round(
            np.inf,
            known_moments(1.0 - p_incomplete, p_incomplete, float(mean), float(second), lost_time),
            p_incomplete=p_incomplete,
            p_under_way=0.0,
            submissions=float(whole.submissions),
            job_seconds=float(whole.job_seconds),
            pause=cost,
        )

    def submissions(self, cost: float, size: int, rng: np.random.Generator) -> Iterator[Submission]:
        return (Submission(k * (self.t0 + cost), self.t_inf) for k in count())

    @classmethod
    def from_times(cls, time: float, ratio: float) -> Policy:
        return cls(time, time * ratio) if ratio > 1 + 1e-9 else Timeout(time)

    def sentence(self, time: Written = in_seconds) -> str:
        return f"Submit again every {time(self.t0)} and cancel each copy after {time(self.t_inf)}"


@register
@dataclass(frozen=True)
class Resubmit(Policy):
    """P(J > n d + u) = Π_{k ≤ n} S(k d + u): another copy every d until one completes. Libman and Orda 2002.

    With a cost c the copies start every d + c.
    """

    name = "resubmit"
    parameters = (Parameter("d", "positive"),)
    example = "resubmit(d=306)"
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
        first, second, out = (part.tolist() for part in (S @ w, 2 * (S @ (u * w)), S_at[:count]))
        rounds = [
            Round(
                gap,
                known_moments(1.0 - out[n], out[n], first[n], second[n], gap * out[n]),
                p_incomplete=out[n],
                p_under_way=out[n],
                submissions=1.0,
                job_seconds=(n + 1) * first[n],
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
