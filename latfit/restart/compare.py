"""Strategies side by side: what one has now, and the best of each kind at the same load and without a limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.laws.empirical import as_law
from latfit.restart.derived import has_failures
from latfit.restart.evaluate import PolicyOutcome, evaluate_policy
from latfit.restart.objectives import Objective
from latfit.restart.optimum import optimal_timeout
from latfit.restart.policies import REGISTRY, Policy, Written, in_seconds, policy_names
from latfit.restart.result import ratio
from latfit.restart.search import Budget, optimal_policy

Role = Literal["given", "reference", "advised", "same", "free"]


@dataclass(frozen=True)
class Load:
    """The utilisation of a system if all its clients ran a strategy, answered for both kinds of cancelling.

    `if_cancelled`: a cancelled job is removed from the system, which then carries the job-seconds of the strategy.
    `if_served`: cancelling does not reach the server, and every submission is served whole. Both start from today's
    utilisation. `safe_share` is the share of clients for which the system is stable whatever its latency law, when
    submissions are served whole: a (1 + φ (m − 1)) < 1 with at most m submissions a job, and with a `retry_budget`
    β = N − 1 for strategies without a limit: φ < (1/a − 1)/β.
    """

    policy: str
    if_cancelled: float | None
    if_served: float | None
    safe_share: float | None
    retry_budget: float | None


def load_of(outcome: PolicyOutcome, now: PolicyOutcome, utilisation: float) -> Load:
    """What a strategy makes of a system whose utilisation is `utilisation` under the strategy `now`."""
    if not 0 < utilisation < 1:
        raise RestartError(f"the utilisation is {utilisation}; it is the busy share of the system, between 0 and 1")
    work, requests = ratio(outcome.job_seconds, now.job_seconds), ratio(outcome.submissions, now.submissions)
    most, extra = outcome.policy.most_submissions, (outcome.submissions or 1.0) - 1.0
    beyond = extra if most is None else most - 1.0
    return Load(
        outcome.policy.spec(4),
        if_cancelled=None if work is None else utilisation * work,
        if_served=None if requests is None else utilisation * requests,
        safe_share=1.0 if beyond <= 0 else min(1.0, math.nextafter((1.0 / utilisation - 1.0) / beyond, 0.0)),
        retry_budget=extra if most is None else None,
    )


@dataclass(frozen=True)
class Compared:
    """One strategy of a comparison: given, the reference, advised, the best of its kind at the same load or of all."""

    role: Role
    outcome: PolicyOutcome


@dataclass(frozen=True)
class Comparison:
    """Strategies on one law, the reference first.

    `least_job_seconds` is E_J(t*) at no cost, below which no strategy of independent copies can keep the job-seconds.
    """

    objective: Objective
    rows: tuple[Compared, ...]
    budget: Budget | None
    least_job_seconds: float | None
    loads: tuple[Load, ...]
    notes: tuple[str, ...]

    @property
    def reference(self) -> PolicyOutcome:
        return self.rows[0].outcome

    def best(self, clear: Sequence[bool] | None = None) -> Compared:
        """The best row within the budget; the reference where none is better, or none is `clear` to be."""
        sure = [True] * len(self.rows) if clear is None else clear
        within = [row for row, is_clear in zip(self.rows, sure, strict=True) if row.role == "same" and is_clear]
        return min([self.rows[0], *within], key=lambda row: row.outcome.figure)

    def chosen(self, clear: Sequence[bool] | None = None) -> PolicyOutcome:
        """The strategy that the decision names: the best one, the reference where it gains less than 1 % over that."""
        best = self.best(clear).outcome
        gain = self.gain(best)
        return self.reference if gain is not None and gain < 0.01 else best

    def gain(self, outcome: PolicyOutcome) -> float | None:
        """By which share its figure is below the reference's; None where that is infinite or 0."""
        figure, reference = outcome.figure, self.reference.figure
        share = ratio(figure, reference) if reference < float("inf") else None
        return None if share is None else 1.0 - share

    def to_dict(self) -> dict[str, Any]:
        return {
            "objective": str(self.objective),
            "strategies": [{"role": row.role, **row.outcome.to_dict()} for row in self.rows],
            "budget": None if self.budget is None else asdict(self.budget),
            "least_job_seconds": self.least_job_seconds,
            "decision": self.decision(),
            "load": [asdict(load) for load in self.loads] or None,
            "notes": list(self.notes),
        }

    def decision(self, clear: Sequence[bool] | None = None, time: Written = in_seconds) -> str:
        """The sentence that decides; `clear` says of each row whether its gain is beyond chance."""
        best = self.chosen(clear)
        gain, order, other = self.gain(best), best.policy.sentence(time), self.reference.policy.spec(4)
        if best is self.reference and self.rows[0].role == "advised" and best.policy.name == "timeout":
            order = "Wait"
        load = "the same load"
        if self.budget is not None:
            unit = "submission" if self.budget.name == "submissions" else "job-second"
            load = f"at most {self.budget.value:.4g} {unit}{'' if self.budget.value == 1 else 's'} a job"
        if best is self.reference:
            return f"{order}: no other strategy is clearly better (by 1 % or more) with {load}."
        if gain is None:
            return f"{order}: it ends, with {load}; {other} does not."
        percent = f"{100 * gain:.0f} %"
        better = {
            "mean": f"{percent} faster",
            "deadline": f"{percent} fewer jobs miss the deadline",
            "quantile": f"p{100 * self.objective.parameter:g} is {percent} lower",
        }.get(self.objective.name, f"{self.objective} {percent} lower")
        return f"{order}: {better} with {load} than {other}."

    def faster(self, clear: Sequence[bool] | None = None) -> PolicyOutcome | None:
        """The best without a limit, if it is better than what is decided on (and `clear` to be); None otherwise."""
        sure = [True] * len(self.rows) if clear is None else clear
        free = [row.outcome for row, is_clear in zip(self.rows, sure, strict=True) if row.role == "free" and is_clear]
        best = min(free, key=lambda outcome: outcome.figure, default=None)
        better = best is not None and best.submissions is not None and best.figure < self.best(clear).outcome.figure
        return best if better else None

    def beyond(self, clear: Sequence[bool] | None = None, time: Written = in_seconds) -> str | None:
        """What more submissions would bring, if they bring more than what is decided on; None otherwise."""
        if (best := self.faster(clear)) is None:
            return None
        gain, order = self.gain(best), best.policy.sentence(time)
        more = "" if gain is None else f", {100 * gain:.0f} % better"
        return f"Without that limit: {order[0].lower()}{order[1:]}{more}, {best.submissions:.3g} submissions a job."


def compare_policies(
    law: Law,
    policies: Sequence[str | Policy] = (),
    *,
    cost: float = 0.0,
    wall_clock: float = 0.0,
    objective: str = "mean",
    same: str = "submissions",
    utilisation: float | None = None,
    min_time: float = 0.0,
    advised: Policy | None = None,
) -> Comparison:
    """Compare given policies, and the best of each kind at the same load and without a limit.

    Parameters
    ----------
    law
        The law of one attempt.
    policies
        What to compare, the present one first; without any, the reference is `advised`, else the best timeout.
    cost, wall_clock, objective
        As in `evaluate_policy`.
    same
        The load that the best of each kind may make: `submissions` or `job-seconds` of the reference (of the best
        timeout where it never ends), or a share of extra requests such as `5%`.
    utilisation
        The busy share of the system today, to tell what each strategy makes of it.
    min_time
        As in `optimal_policy`.
    advised
        What is recommended for this law: the reference where nothing is given, else a row after the given ones.

    Returns
    -------
    Comparison
        Rows in the order of roles; kinds that cannot be computed for this law are named in `notes`.

    Examples
    --------
    >>> import latfit
    >>> law = latfit.Defective(latfit.parse_law("lognormal(mu=5.5,sigma=1)"), 0.025)
    >>> latfit.compare_policies(law).decision()  # doctest: +ELLIPSIS
    'Hedge after 243.1 s, cancel both after 1527 s and begin again: 22 % faster with at most 1.521 submissions a job...'
    """
    law = as_law(law)
    options: dict[str, Any] = {"cost": cost, "wall_clock": wall_clock, "objective": objective}
    timeout = optimal_policy(law, "timeout", min_time=min_time, **options)
    rows = [Compared("given", evaluate_policy(law, policy, **options)) for policy in policies]
    if advised is not None:
        rows.append(Compared("advised", evaluate_policy(law, advised, **options)))
    rows = rows or [Compared("reference", timeout)]
    budget = _budget_of(same, rows[0].outcome, timeout)
    kinds = [name for name in policy_names() if REGISTRY[name].searched and REGISTRY[name].compared]
    kinds.remove("timeout")
    notes: list[str] = []
    if has_failures(law):
        kinds.remove("resubmit")
        notes.append(
            "resubmit is left out: under visible failures it is not computed; --failed lost or --failed completed "
            "includes it. The tails of hedge and delayed are not computed either"
        )
    searched = kinds if rows[0].role == "reference" else [*kinds, "timeout"]
    rows += _best_of_kinds(law, searched, rows, budget, min_time, options)
    rows += _best_of_kinds(law, ["timeout", *kinds], rows, None, min_time, options)
    notes += [
        f"{row.outcome.policy.spec(4)} gives up on {100 * (1 - row.outcome.success):.3g} % of the jobs; its mean is "
        "that of the time until success or giving up"
        for row in rows
        if row.outcome.success is not None and row.outcome.success < 1 - 1e-6
    ]
    if law.jumps is None and optimal_timeout(law, min_timeout=min_time, **options).verdict == "immediate":
        notes.append(
            "under this law a timeout is the better the smaller it is: times are sought from the 1 % quantile on"
        )
    least = optimal_timeout(law, wall_clock=wall_clock, min_timeout=min_time).job_seconds
    loads: tuple[Load, ...] = ()
    if utilisation is not None:
        now = rows[0].outcome if policies else evaluate_policy(law, "timeout()")
        loads = tuple(load_of(row.outcome, now, utilisation) for row in rows)
    return Comparison(Objective.parse(objective), tuple(rows), budget, least, loads, tuple(notes))


def _best_of_kinds(
    law: Law,
    kinds: Sequence[str],
    rows: Sequence[Compared],
    budget: Budget | None,
    min_time: float,
    options: dict[str, Any],
) -> list[Compared]:
    """The best of each kind, better ones first, without those in the table already, not allowed, or of another kind."""
    outcomes: list[PolicyOutcome] = []
    for kind in kinds:
        if budget is None and REGISTRY[kind].needs_budget:
            continue
        try:
            best = optimal_policy(law, kind, budget=budget, min_time=min_time, **options)
        except RestartError:  # no parameters of this kind are allowed, or none ends
            continue
        if best.policy.name == kind:
            outcomes.append(best)
    specs = {row.outcome.policy.spec() for row in rows}
    # the last digits differ between machines: strategies that tie keep the order of their kinds
    outcomes.sort(key=lambda outcome: float(f"{outcome.figure:.9g}"))
    role: Role = "free" if budget is None else "same"
    return [Compared(role, outcome) for outcome in outcomes if outcome.policy.spec() not in specs]


def _budget_of(same: str, now: PolicyOutcome, timeout: PolicyOutcome) -> Budget | None:
    if same in ("submissions", "job-seconds"):
        name: Literal["submissions", "job_seconds"] = "submissions" if same == "submissions" else "job_seconds"
        loads = (getattr(outcome, name) for outcome in (now, timeout))
        return next((Budget(name, load) for load in loads if load is not None), None)
    try:
        share = float(same.rstrip("%")) / 100 if same.endswith("%") else float(same)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1e6:
        raise RestartError(
            f"the load {same!r} is not understood: give submissions, job-seconds, or extra requests such as 5%"
        )
    return Budget("submissions", 1.0 + share)
