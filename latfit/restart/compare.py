"""Strategies side by side: what one has now, and the best of each kind at the same load and without a limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.laws.empirical import as_law
from latfit.restart.evaluate import PolicyOutcome, evaluate_policy
from latfit.restart.load import Load, load_of
from latfit.restart.objectives import Objective
from latfit.restart.optimum import optimal_timeout
from latfit.restart.policies import Policy, get_policy, parse_policy, policy_names
from latfit.restart.policies.base import Written, in_seconds
from latfit.restart.result import ratio
from latfit.restart.search import Budget, optimal_policy
from latfit.restart.times import has_failures

Role = Literal["given", "reference", "same", "free"]
CLEAR = 0.01  # a gain below this share is not worth a change


@dataclass(frozen=True)
class Compared:
    """One strategy of a comparison: given, the reference, the best of its kind at the same load or without a limit."""

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
        """What the others are compared with: the first row."""
        return self.rows[0].outcome

    def best(self, clear: Sequence[bool] | None = None) -> Compared:
        """The best row within the budget; the reference where none is better, or none is `clear` to be."""
        sure = [True] * len(self.rows) if clear is None else list(clear)
        within = [row for row, is_clear in zip(self.rows[1:], sure[1:], strict=True) if row.role == "same" and is_clear]
        return min([self.rows[0], *within], key=lambda row: self.figure(row.outcome))

    def chosen(self, clear: Sequence[bool] | None = None) -> PolicyOutcome:
        """The strategy that the decision names: the best one, the reference where it gains less than 1 % over that."""
        best = self.best(clear).outcome
        gain = self.gain(best)
        return self.reference if gain is not None and gain < CLEAR else best

    def figure(self, outcome: PolicyOutcome) -> float:
        """The objective's figure, less being better."""
        value = outcome.objective["value"]
        return float("inf") if value is None else self.objective.report(value)

    def gain(self, outcome: PolicyOutcome) -> float | None:
        """By which share its figure is below the reference's; None where that is infinite or 0."""
        figure, reference = self.figure(outcome), self.figure(self.reference)
        share = ratio(figure, reference) if reference < float("inf") else None
        return None if share is None else 1.0 - share

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "objective": str(self.objective),
            "strategies": [{"role": row.role, **row.outcome.to_dict()} for row in self.rows],
            "budget": None if self.budget is None else {"name": self.budget.name, "value": self.budget.value},
            "least_job_seconds": self.least_job_seconds,
            "decision": self.decision(),
            "load": [load.to_dict() for load in self.loads] or None,
            "notes": list(self.notes),
        }

    def decision(self, clear: Sequence[bool] | None = None, time: Written = in_seconds) -> str:
        """The sentence that decides; `clear` says of each row whether its gain is beyond chance."""
        best, reference = self.chosen(clear), self.reference
        load = "the same load" if self.budget is None else _load_words(self.budget)
        gain = self.gain(best)
        better = {
            "mean": f"{_percent(gain)} faster",
            "deadline": f"{_percent(gain)} fewer jobs miss the deadline",
            "quantile": f"p{100 * self.objective.parameter:g} is {_percent(gain)} lower",
        }.get(self.objective.name, f"{self.objective} {_percent(gain)} lower")
        other = reference.policy.spec(4)
        if best is reference:
            return f"{best.policy.sentence(time)}: no other strategy is clearly better (by 1 % or more) with {load}."
        if gain is None:
            return f"{best.policy.sentence(time)}: it ends, with {load}; {other} does not."
        return f"{best.policy.sentence(time)}: {better} with {load} than {other}."

    def faster(self) -> PolicyOutcome | None:
        """The best without a limit, if it is better than what is decided on; None otherwise."""
        free = [row.outcome for row in self.rows if row.role == "free"]
        best = min(free, key=self.figure, default=None)
        if best is None or best.submissions is None or not self.figure(best) < self.figure(self.best().outcome):
            return None
        return best

    def beyond(self, time: Written = in_seconds) -> str | None:
        """What more submissions would bring, if they bring more than what is decided on; None otherwise."""
        best = self.faster()
        if best is None:
            return None
        gain = self.gain(best)
        more = "" if gain is None else f", {_percent(gain)} better"
        what = _lowered(best.policy.sentence(time))
        return f"Without that limit: {what}{more}, {best.submissions:.3g} submissions a job."


def _lowered(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def _load_words(budget: Budget) -> str:
    """The budget in words."""
    name = "submission" if budget.name == "submissions" else "job-second"
    return f"at most {budget.value:.4g} {name}{'' if budget.value == 1 else 's'} a job"


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
) -> Comparison:
    """Compare given policies, and the best of each kind at the same load and without a limit.

    Parameters
    ----------
    law
        The law of one attempt.
    policies
        What to compare, the present one first; without any, the reference is the best timeout.
    cost, wall_clock, objective
        As in `evaluate_policy`.
    same
        The load that the best of each kind may make: `submissions` or `job-seconds` of the first policy (of the best
        timeout where it never ends), or a share of extra requests such as `5%`.
    utilisation
        The busy share of the system today, to tell what each strategy makes of it.
    min_time
        As in `optimal_policy`.

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
    given = [parse_policy(policy) if isinstance(policy, str) else policy for policy in policies]
    timeout = optimal_policy(law, "timeout", min_time=min_time, **options)
    rows = [Compared("given", evaluate_policy(law, policy, **options)) for policy in given]
    rows = rows or [Compared("reference", timeout)]
    budget = budget_of(same, rows[0].outcome, timeout)
    notes: list[str] = []
    kinds = _kinds(law, notes)
    options["min_time"] = min_time
    rows += _best(law, [*kinds, "timeout"] if given else kinds, rows, budget, options)
    rows += _best(law, ["timeout", *kinds], rows, None, options)
    notes += [
        f"{row.outcome.policy.spec(4)} gives up on {100 * (1 - row.outcome.success):.3g} % of the jobs; its mean is "
        "that of the time until success or giving up"
        for row in rows
        if row.outcome.success is not None and row.outcome.success < 1 - 1e-6
    ]
    if (
        law.jumps is None
        and optimal_timeout(law, min_timeout=min_time, cost=cost, wall_clock=wall_clock, objective=objective).verdict
        == "immediate"
    ):
        notes.append(
            "under this law a timeout is the better the smaller it is: times are sought from the 1 % quantile on"
        )
    least = optimal_timeout(law, wall_clock=wall_clock, min_timeout=min_time).job_seconds
    loads = () if utilisation is None else tuple(load_of(row.outcome, _now(rows, law), utilisation) for row in rows)
    return Comparison(Objective.parse(objective), tuple(rows), budget, least, loads, tuple(notes))


def _now(rows: Sequence[Compared], law: Law) -> PolicyOutcome:
    """Today's strategy: the first that was given, otherwise waiting."""
    return rows[0].outcome if rows[0].role == "given" else evaluate_policy(law, "timeout()")


def _kinds(law: Law, notes: list[str]) -> list[str]:
    """The kinds of policy to seek the best of, but for the timeout; says what failures rule out."""
    kinds = [name for name in policy_names() if get_policy(name).searched and get_policy(name).compared]
    kinds.remove("timeout")
    if has_failures(law):
        kinds.remove("resubmit")
        notes.append(
            "resubmit is left out: under visible failures it is not computed; --failed lost or --failed completed "
            "includes it. The tails of hedge and delayed are not computed either"
        )
    return kinds


def _best(
    law: Law, kinds: Sequence[str], known: Sequence[Compared], budget: Budget | None, options: dict[str, Any]
) -> list[Compared]:
    """The best of each kind, better ones first, without those that are in the table already or not allowed.

    A kind whose optimum is another kind (a hedge at once is two copies) is shown as that one.
    """
    role: Role = "free" if budget is None else "same"
    found: list[PolicyOutcome] = []
    for kind in kinds:
        if budget is None and get_policy(kind).needs_budget:
            continue
        try:
            best = optimal_policy(law, kind, budget=budget, **options)
        except RestartError:  # no parameters of this kind are allowed, or none ends
            continue
        if best.policy.name == kind:
            found.append(best)
    specs = {row.outcome.policy.spec() for row in known}
    goal = Objective.parse(options["objective"])

    def figure(outcome: PolicyOutcome) -> float:
        value = outcome.objective["value"]
        return float("inf") if value is None else goal.report(value)

    return [Compared(role, one) for one in sorted(found, key=figure) if one.policy.spec() not in specs]


def budget_of(same: str, now: PolicyOutcome, timeout: PolicyOutcome) -> Budget | None:
    """The load that `same` asks for: that of the present strategy, or a share of extra requests."""
    if same in ("submissions", "job-seconds"):
        name: Literal["submissions", "job_seconds"] = "submissions" if same == "submissions" else "job_seconds"
        loads = [getattr(outcome, name) for outcome in (now, timeout)]
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
