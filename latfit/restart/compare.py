"""Strategies side by side: the present one, and the best of each kind with the same load and without a limit."""

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
    """The utilisation a of a system if all its clients used a strategy.

    `if_cancelled`: cancelled jobs are removed from the system, which then carries the strategy's job-seconds.
    `if_served`: cancelling does not reach the server, and every submission is served whole. Then `safe_share` is the
    share φ of clients up to which the system is stable whatever its latency law: a (1 + φ (m − 1)) < 1 with at most m
    submissions a job or, without such a limit, φ < (1/a − 1)/β with a `retry_budget` of β = N − 1.
    """

    policy: str
    if_cancelled: float | None
    if_served: float | None
    safe_share: float | None
    retry_budget: float | None


def load_of(outcome: PolicyOutcome, now: PolicyOutcome, utilisation: float) -> Load:
    """The load of a strategy on a system whose utilisation is `utilisation` under the strategy `now`."""
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
    """One strategy of a comparison and why it is there: `same` and `free` are the best of a kind, by load."""

    role: Role
    outcome: PolicyOutcome


@dataclass(frozen=True)
class Comparison:
    """Strategies on one law, the reference first.

    `least_job_seconds` is E_J(t*) at no cost, below which no strategy of independent copies can keep the job-seconds.
    `clear` says of each row whether its gain over the reference is beyond chance; None: not tested.
    """

    objective: Objective
    rows: tuple[Compared, ...]
    budget: Budget | None
    least_job_seconds: float | None
    loads: tuple[Load, ...]
    notes: tuple[str, ...]
    clear: tuple[bool, ...] | None = None

    @property
    def reference(self) -> PolicyOutcome:
        return self.rows[0].outcome

    def best(self, role: Role = "same") -> Compared:
        """The best of the reference and the rows of a role that clearly gain over it."""
        clear = self.clear or (True,) * len(self.rows)
        rows = [row for row, is_clear in zip(self.rows, clear, strict=True) if row.role == role and is_clear]
        return min([self.rows[0], *rows], key=lambda row: row.outcome.figure)

    def chosen(self) -> PolicyOutcome:
        """The recommended strategy: the best one within the budget, or the reference where that gains less than 1 %."""
        best = self.best().outcome
        gain = self.gain(best)
        return self.reference if gain is not None and gain < 0.01 else best

    def gain(self, outcome: PolicyOutcome) -> float | None:
        """The share by which its figure is below the reference's; None where that is infinite or 0."""
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

    def decision(self, time: Written = in_seconds) -> str:
        """The recommendation in one sentence."""
        best = self.chosen()
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

    def faster(self) -> PolicyOutcome | None:
        """The best strategy without a limit, if it is better than the best within the budget; None otherwise."""
        best = self.best("free").outcome
        return best if best.submissions is not None and best.figure < self.best().outcome.figure else None

    def beyond(self, time: Written = in_seconds) -> str | None:
        """What more submissions would bring, if they beat the best strategy within the budget; None otherwise."""
        if (best := self.faster()) is None:
            return None
        gain, order = self.gain(best), best.policy.sentence(time)
        more = "" if gain is None else f", {100 * gain:.0f} % better"
        return f"Without that limit: {order[0].lower()}{order[1:]}{more}, {best.submissions:.3g} submissions a job."


def compare_policies(
    law: Any,
    policies: Sequence[str | Policy] = (),
    *,
    cost: float = 0.0,
    wall_clock: float = 0.0,
    objective: str = "mean",
    same: str = "submissions",
    utilisation: float | None = None,
    min_time: float = 0.0,
    advised: Policy | None = None,
    **params: Any,
) -> Comparison:
    """Compare given policies with the best of each kind, both with the same load and without a limit.

    Parameters
    ----------
    policies
        The policies to compare, the present one first. Without any, the reference is `advised` or the best timeout.
    same
        The load allowed to the best of each kind: `submissions` or `job-seconds` of the reference (of the best
        timeout if the reference never ends), or a share of extra requests such as `5%`.
    utilisation
        The busy share of the system today, to compute it under each strategy.
    advised
        The recommendation for this law.
    law, cost, wall_clock, objective, min_time, params
        As in `optimal_policy`.

    Returns
    -------
    Comparison
        Rows by role; `notes` names the kinds that cannot be computed for this law.

    Examples
    --------
    >>> import latfit
    >>> law = latfit.Defective(latfit.parse_law("lognormal(mu=5.5,sigma=1)"), 0.025)
    >>> latfit.compare_policies(law).decision()  # doctest: +ELLIPSIS
    'Hedge after 243.1 s, cancel both after 1527 s and begin again: 22 % faster with at most 1.521 submissions a job...'
    """
    law = as_law(law, **params)
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
    rows += _best_of_kinds(law, searched, rows, budget, {"min_time": min_time, **options})
    rows += _best_of_kinds(law, ["timeout", *kinds], rows, None, {"min_time": min_time, **options})
    notes += [
        f"{row.outcome.policy.spec(4)} gives up on {100 * (1 - row.outcome.success):.3g} % of the jobs; its mean is "
        "that of the time until success or giving up"
        for row in rows
        if row.outcome.success is not None and row.outcome.success < 1 - 1e-6
    ]
    if law.jumps is None and optimal_timeout(law, min_timeout=min_time, **options).verdict == "immediate":
        notes.append("under this law the smaller a timeout the better: the search for times begins at the 1 % quantile")
    least = optimal_timeout(law, wall_clock=wall_clock, min_timeout=min_time).job_seconds
    loads: tuple[Load, ...] = ()
    if utilisation is not None:
        now = rows[0].outcome if policies else evaluate_policy(law, "timeout()")
        loads = tuple(load_of(row.outcome, now, utilisation) for row in rows)
    return Comparison(Objective.parse(objective), tuple(rows), budget, least, loads, tuple(notes))


def _best_of_kinds(
    law: Law, kinds: Sequence[str], rows: Sequence[Compared], budget: Budget | None, options: dict[str, Any]
) -> list[Compared]:
    """The best of each kind, in order of merit, unless it is not allowed, of another kind, or in the table already."""
    outcomes: list[PolicyOutcome] = []
    for kind in kinds:
        if budget is None and REGISTRY[kind].needs_budget:
            continue
        try:
            best = optimal_policy(law, kind, budget=budget, **options)
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
