"""From a decision to what to paste, by the five rules that hold for every tool.

(1) Round up to the tool's step, and warn where that leaves the 5 % window. (2) Write the schedule of the decision: a
limit for each attempt and the cutoff for the last. A tool with one timeout for all gets the longest (too late is safer
than too early), and its last attempt is cut too: say what stays undone. (3) The tool's own waits are the cost of a
restart: optimise again with them. (4) Say which wait is limited. (5) Name the counter: attempts or retries.
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from latfit.analysis import analyze
from latfit.decision import Recommendation
from latfit.errors import RestartError, counted
from latfit.laws import Empirical
from latfit.logs import ProbeLog
from latfit.restart import Budget, expected_duration, optimal_policy
from latfit.restart.policies.overlap import Resubmit
from latfit.restart.retry import MAX_CANCELLATIONS, Retry, evaluate_retry
from latfit.settings.base import Counter, Plan, Tool, get_tool
from latfit.units import seconds, times_in_words

# warnings about the log that matter to whoever sets a timeout: attempts fail together, and others
FAIL_TOGETHER = ("dependence", "later-attempts", "outages", "drift")
OTHERS = (
    "mixed", "groups-differ", "queue", "work", "beyond-timeout", "not-identified", "unit", "few-at-risk", "load", "flat"
)  # fmt: skip
SEE_ANALYZE = "`latfit analyze` shows why"


@dataclass(frozen=True)
class Settings:
    """What to write into a tool, and what to know about it; `snippet` is None if there is nothing to paste.

    `timeouts` are the limits of the attempts in seconds. `timeout` is the limit of every attempt in a tool that has one
    for all (in a tool that hedges, the delay until the next attempt), else the longest but the last. `written` is how
    the tool writes it (rounded up), `total` the longest that all attempts together can take, `undone` the share of jobs
    that no attempt completes (None without a log), `counts` what the number in the snippet counts.
    """

    tool: str
    unit: str
    counts: Counter
    validated: str
    notes: tuple[str, ...]
    timeout: float | None = None
    timeouts: tuple[float, ...] = ()
    total: float | None = None
    written: str | None = None
    attempts: int | None = None
    undone: float | None = None
    snippet: str | None = None
    withheld: tuple[str, ...] = ()
    cost: float = 0.0

    @property
    def warnings(self) -> tuple[str, ...]:
        """The notes that speak against these settings; they come first."""
        return tuple(note for note in self.notes if note.startswith("warning:"))

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), **{name: list(getattr(self, name)) for name in ("notes", "withheld", "timeouts")}}


@dataclass(frozen=True)
class _Advice:
    """What a log advises, with the tool's own waits counted in the `cost` of a restart."""

    decision: Recommendation
    law: Empirical
    cutoff: float
    cost: float
    binding: str | None
    warnings: tuple[str, ...]

    @property
    def retry(self) -> Retry | None:
        return self.decision.retry


def settings_for(
    tool: str,
    log: ProbeLog | None = None,
    *,
    timeout: float | None = None,
    attempts: int | None = None,
    undone: float | None = None,
    cost: float = 0.0,
    cutoff: float | None = None,
    failed: str = "retry",
) -> Settings:
    """What to write into `tool` so that it cancels and resubmits as `log` advises, or after `timeout`.

    Parameters
    ----------
    tool : a registered tool (see `latfit settings`).
    log : the log that decides; with a `timeout` it only says what that timeout brings.
    timeout : in seconds.
    attempts : K; by default that of the schedule.
    undone : the share of jobs that may stay undone after the last attempt, if K is to follow from it.
    cost : the seconds between cancelling an attempt and the next one, written if the tool can wait.
    cutoff, failed : as in `analyze`.

    Returns
    -------
    Settings : `snippet` is None if the decision is withheld, waiting is best, or the tool cannot express the timeout.

    Examples
    --------
    >>> import latfit
    >>> settings = settings_for("haproxy", latfit.example_log())
    >>> settings.written, settings.attempts
    ('716s', 3)
    """
    kind = get_tool(tool)
    _refuse_wrong_arguments(log, timeout, attempts, undone, cost)
    advice = None if log is None else _advice(kind, log, timeout, cost, cutoff, failed)
    schedule = advice.retry if advice is not None and timeout is None else None
    fields: dict[str, Any] = {name: getattr(kind, name) for name in ("unit", "counts", "validated")}
    fields |= {"tool": kind.name, "cost": advice.cost if advice else cost}
    notes: list[str] = []
    if timeout is not None:
        exact = timeout
        if advice is not None and advice.decision.withheld:
            withheld = f"the log's own decision is withheld ({', '.join(advice.decision.withheld)})"
            notes = [f"warning: {withheld}: it does not show that this timeout makes jobs faster; {SEE_ANALYZE}"]
    else:
        assert advice is not None
        if schedule is None:
            return Settings(**fields, notes=_nothing(kind, advice, cost), withheld=advice.decision.withheld)
        exact, notes = _delay(kind, advice, schedule)
    rounded = kind.rounded(exact)
    K, share, about_attempts = _attempts(kind, advice, schedule, rounded, attempts, undone)
    refused = f"{kind.title} takes at most {kind.longest:g} s, and the timeout is {exact:g} s"
    if kind.fewest > K:
        refused = f"{kind.title} makes at least {counted(kind.fewest, 'attempt')}: for {K} leave its retries out"
    if rounded > kind.longest or kind.fewest > K:
        return Settings(**fields, timeout=exact, notes=(f"nothing to paste: {refused}",))
    limits, budget = (rounded,) * K, 0.2
    if advice is not None and schedule is not None and not kind.hedges:
        limits = kind.limits_for(schedule.timeouts, advice.cutoff, K)
        budget = max(0.2, 2 * (schedule.submissions - 1))
    failures = advice is not None and float(advice.law.failed(math.inf)) > 0
    plan, given = Plan(limits, cost, failures, float(f"{budget:.2g}")), timeout is not None
    notes += [*_rounding(kind, advice, exact, rounded), *about_attempts, *_about(kind, advice, plan, given=given)]
    notes += [*kind.notes(plan), *(advice.warnings if advice else ()), *kind.traps]
    notes.sort(key=lambda note: not note.startswith("warning:"))
    return Settings(
        **fields,
        timeout=exact,
        timeouts=limits,
        total=kind.total(plan),
        written=kind.written(rounded),
        attempts=K,
        undone=share,
        snippet=_comments(kind, advice, plan, notes, given=given) + kind.snippet(plan),
        notes=tuple(notes),
    )


def _refuse_wrong_arguments(
    log: ProbeLog | None, timeout: float | None, attempts: int | None, undone: float | None, cost: float
) -> None:
    if log is None and timeout is None:
        raise RestartError("there is nothing to write: give a log to decide from, or a timeout")
    for name, value in (("timeout", timeout), ("cost", cost)):
        if value is not None and not (math.isfinite(value) and value >= 0 and (value > 0 or name == "cost")):
            raise RestartError(f"the {name} is {value:g} s; it must be finite and positive")
    if attempts is not None and attempts < 1:
        raise RestartError(f"the number of attempts is {attempts}; it must be at least 1")
    if undone is not None and not 0 < undone < 1:
        raise RestartError(f"the share that may stay undone is {undone:g}; it must lie between 0 and 1")


def _advice(
    tool: Tool, log: ProbeLog, timeout: float | None, cost: float, cutoff: float | None, failed: str
) -> _Advice:
    """The decision on the log with the tool's own waits as the cost of a restart (rule 3).

    A cost moves the timeout away from returns that may be errors, but does not turn them into answers: if the log does
    not tell them apart (`no-outcomes`), the decision without the tool's waits stands, which is withheld for that.
    Any other reason to withhold that decision becomes a warning.
    """
    decided = partial(analyze, log, laws=(), test=False, resamples=0, cutoff=cutoff, failed=failed)
    waits = tool.pause(1, cost)
    without_waits = decided(cost=cost).decision.timeout if waits > cost else None
    for _ in range(5):
        answer = decided(cost=waits).decision
        assert answer.sample is not None
        assert answer.timeout is not None
        decision, law = answer.timeout, Empirical.of(answer.sample)
        t = timeout or (decision.retry and decision.retry.timeouts[-1])
        if not t:
            break
        before, waits = waits, tool.mean_pause(1.0 - float(law.cdf(t)), cost)
        if abs(waits - before) <= 0.001 * t:
            break
    warnings = [f"{each.code}: {each.message}" for each in answer.warnings if each.code in (*FAIL_TOGETHER, *OTHERS)]
    codes = without_waits.withheld if without_waits else ()
    if without_waits is not None and "no-outcomes" in codes:
        decision = without_waits
    elif decision.verdict == "finite" and codes and "not-identified" not in codes:
        withheld = f"without the waits of {tool.title} the decision on the log is withheld ({', '.join(codes)})"
        warnings.insert(0, f"warning: {withheld}; {SEE_ANALYZE}")
    assert answer.cutoff is not None
    binding = answer.evidence.binding if answer.evidence else None
    return _Advice(decision, law, answer.cutoff.cutoff, waits, binding, tuple(warnings))


def _nothing(tool: Tool, advice: _Advice, cost: float) -> tuple[str, ...]:
    """Why there is nothing to paste, and the warnings of the log."""
    waits = f" with the {seconds(advice.cost)} that {tool.title} itself waits before a restart"
    why = f"waiting is the answer: no schedule of retries{waits if advice.cost > cost else ''} saves enough in every "
    why += f"case that the log supports (the binding case: {advice.binding})"
    if advice.decision.verdict == "withheld":
        why = (
            f"the decision is withheld ({', '.join(advice.decision.withheld)}): the log does not show that cancelling "
        )
        why += "and resubmitting after the formula's timeout is faster"
    return (f"nothing to paste: {why}; {SEE_ANALYZE}", *advice.warnings)


def _delay(tool: Tool, advice: _Advice, retry: Retry) -> tuple[float, list[str]]:
    """The longest timeout of the schedule; for a tool that hedges, the best delay for the same number of submissions.

    A hedge never cancels; the submissions are those of cancelling after the timeout without limit.
    """
    timeout, least = advice.decision.timeout, advice.decision.expected_duration
    if not (tool.hedges and timeout and least and advice.decision.submissions):
        return retry.timeouts[-1], []
    try:
        budget = Budget("submissions", advice.decision.submissions)
        best = optimal_policy(advice.law, "resubmit", cost=advice.cost, budget=budget)
    except RestartError:  # the law does not allow it; cancelling does
        return timeout, []
    E = best.expected_duration
    if not isinstance(best.policy, Resubmit) or E is None or least <= E:
        return timeout, []
    note = (
        f"the delay is that of {best.policy.spec(4)}: as many submissions as cancelling after {seconds(timeout)}, "
        f"and jobs take {seconds(E)} instead of {seconds(least)} on average (`latfit compare`)"
    )
    return best.policy.d, [note]


def _attempts(
    tool: Tool, advice: _Advice | None, schedule: Retry | None, t: float, attempts: int | None, undone: float | None
) -> tuple[int, float | None, list[str]]:
    """The number of attempts K, the share of jobs that stays undone, and what to say about both (rule 2)."""
    K, q, notes = attempts or 3, 0.0, []
    if advice is not None:
        # attempts that go on can still complete later than t: only what never completes stays undone
        q = advice.law.rho if tool.hedges else 1.0 - float(advice.law.cdf(t))
        if q >= 1:
            return K, 1.0, [f"warning: no probe of the log completed within {seconds(t)}: no job would end"]
        K = attempts or (advice.retry.attempts if advice.retry else 2)
        if undone is not None and q > 0:
            needed = math.ceil(math.log(undone) / math.log(q) - 1e-9)
            K = attempts or min(max(2, needed), MAX_CANCELLATIONS + 1)  # one attempt alone never resubmits
    elif attempts is None:
        notes.append(f"{K} attempts are assumed: only a log shows how many are needed")
    if tool.cap is not None and tool.cap < K:
        notes.append(f"warning: {tool.title} makes at most {counted(tool.cap, 'attempt')}, not {K}")
        K = tool.cap
    if advice is None:
        return K, None, notes
    share, after = q**K, f"of the jobs stay undone after {counted(K, 'attempt')}"
    if schedule is not None and tool.schedules:
        limits = tool.limits_for(schedule.timeouts, advice.cutoff, K)
        share = float(np.prod(1.0 - advice.law.cdf(np.array(limits))))
        return K, share, [*notes, f"{100 * share:.2g} % {after}, the last of them of {seconds(limits[-1])}"]
    left = f"{100 * share:.2g} % {after}"
    if not tool.hedges and q > 0:
        left += f", up to {100 * q:.2g} % if retries repeat the first attempt: {tool.title} cuts the last one too"
        left = f"warning: {left}; let the caller wait longer for those" if q > 0.1 else left
    if any(warning.startswith(FAIL_TOGETHER) for warning in advice.warnings):
        left += ", if attempts were independent; the warnings say why more may stay undone here"
    return K, share, [*notes, left]


def _rounding(tool: Tool, advice: _Advice | None, exact: float, rounded: float) -> list[str]:
    """Whether rounding up costs more than the 5 % window allows (rule 1)."""
    if rounded <= exact * (1 + 1e-9):
        return []
    moved = f"{tool.title} takes {tool.written(rounded)} for {exact:.6g} s"
    if advice is None:
        more = f"warning: {moved}, {100 * (rounded / exact - 1):.3g} % more: give the log to see what that costs"
        return [more] if rounded > 1.05 * exact else []
    E, least = (float(expected_duration(advice.law, t, cost=advice.cost)) for t in (rounded, exact))
    longer = E / least - 1 if math.isfinite(least) and least else 0.0
    costs = f": jobs take {100 * longer:.2g} % longer" if longer else ""
    _, latest = advice.decision.within_5pct or (0.0, math.inf)
    if rounded > latest >= exact:
        return [f"warning: {moved}, which leaves the 5 % window (up to {latest:.6g} s){costs}"]
    return [f"rounded up: {moved}{costs}"] if longer > 1e-4 else []


def _about(tool: Tool, advice: _Advice | None, plan: Plan, *, given: bool) -> list[str]:
    """The wait that is limited, the counter, the cost counted, and hedging (rules 3 to 5)."""
    notes = [f"it limits {tool.limits}"]
    if tool.resubmits:
        count = plan.attempts - (tool.counts == "retries")
        notes.append(f"the number counts {tool.counts}: {count} for {counted(plan.attempts, 'attempt')}")
    if advice is not None and not math.isclose(advice.cost, plan.pause):
        counted_as = "that cost is counted" if given else "the timeout is the optimum with that cost"
        notes.append(
            f"{tool.title} restarts after {advice.cost:.4g} s on average, its own waits included: {counted_as}"
        )
    if tool.jitters:
        why = "so that clients do not come back together"
        notes.append(f"a random wait of up to {seconds(plan.jitter)} is added before each restart, {why}")
    timeouts = advice.retry.timeouts if advice and advice.retry else ()
    if not tool.schedules and not tool.hedges and len(set(timeouts)) > 1:
        longest = f"the longest of {times_in_words(timeouts)}"
        notes.append(f"{tool.title} has one timeout for all attempts: it is {longest}")
    if plan.pause > 0 and not tool.waits:
        where = "not written" if advice is None else "counted, not written"
        setting = f"{tool.title} has no setting for the wait between attempts"
        notes.append(f"{setting}: the cost of {plan.pause:g} s is {where}")
    if tool.hedges:
        no_worse = "jobs end no later and need no more submissions than with cancelling after the same time"
        return [*notes, f"a hedge does not cancel: the earlier attempts go on, so {no_worse}"]
    return [*notes, f"all attempts together take at most {seconds(tool.total(plan))}"]


def _comments(tool: Tool, advice: _Advice | None, plan: Plan, notes: list[str], *, given: bool) -> str:
    """What to know before pasting, as comments: what the snippet promises, and what speaks against it."""
    lines = [note for note in notes if note.startswith("warning:")]
    if advice is not None and advice.retry is not None:
        promise = _promise(tool, advice, plan, ends_in_waiting=tool.schedules and not given)
        lines = [f"latfit: {promise}. Retry only idempotent requests.", *lines]
    begin = f"{tool.comment} "
    wrapped = (textwrap.fill(line, 100, initial_indent=begin, subsequent_indent=begin) + "\n" for line in lines)
    return "".join(wrapped) if tool.comment else ""


def _promise(tool: Tool, advice: _Advice, plan: Plan, *, ends_in_waiting: bool) -> str:
    """What the snippet does: with its rounded times, the waits of the tool and the mean of the jitter."""
    t, independent = plan.limits[0], "submissions a job if retries are independent"
    if ends_in_waiting and plan.attempts > 1:
        restart = advice.cost + (plan.jitter / 2 if tool.jitters else 0.0)
        retry = evaluate_retry(advice.law, plan.limits[:-1], cutoff=plan.limits[-1], cost=restart)
        does = f"resubmit after {times_in_words(plan.limits[:-1])}, then wait; {retry.submissions:.3g} {independent}"
        return f"{does}, at most {100 * retry.worst_loss:.0f} % slower than waiting if they are not"
    if tool.hedges:
        return f"submit again after {seconds(t)} without cancelling, at most {counted(plan.attempts, 'attempt')}"
    q = 1.0 - float(advice.law.cdf(t))
    submissions = f"{sum(q**k for k in range(plan.attempts)):.3g} {independent}"
    does = f"{counted(plan.attempts, 'attempt')} of at most {seconds(t)}; {submissions}"
    return f"{does}; if they are not, up to {100 * q:.2g} % of the jobs end without a result"
