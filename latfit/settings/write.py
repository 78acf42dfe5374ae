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
from latfit.decision import Decision
from latfit.errors import RestartError, counted
from latfit.laws import Empirical
from latfit.logs import ProbeLog
from latfit.restart import Budget, expected_duration, optimal_policy
from latfit.restart.policies.overlap import Resubmit
from latfit.restart.retry import MAX_CANCELLATIONS, evaluate_retry
from latfit.settings.base import Counter, Plan, Tool, get_tool
from latfit.units import seconds, times_in_words

# warnings of the log that concern whoever sets a timeout: on attempts that fail together, and others
FAIL_TOGETHER = ("dependence", "later-attempts", "outages", "drift")
OTHERS = (
    "mixed", "groups-differ", "queue", "work", "beyond-timeout", "not-identified", "unit", "few-at-risk", "load", "flat"
)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """What to write into a tool, and what to know about it; `snippet` is None where there is nothing to paste.

    `timeouts` are the limits of the attempts in seconds, `timeout` that of every one in a tool that has a single one
    (of a tool that hedges, the delay until the next attempt), else the longest but the last. `written` is what the tool
    is given for it (rounded up), `total` the longest that all attempts together can take, `undone` the share of jobs
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
        """The notes that speak against what is written: they come first."""
        return tuple(note for note in self.notes if note.startswith("warning:"))

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), **{name: list(getattr(self, name)) for name in ("notes", "withheld", "timeouts")}}


@dataclass(frozen=True)
class _FromLog:
    law: Empirical
    decision: dict[str, Any]
    cutoff: float
    binding: str | None
    cost: float
    warnings: tuple[str, ...]


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
    """What to write into `tool` so that it cancels and resubmits as decided from `log`, or after `timeout`.

    Parameters
    ----------
    tool
        The name of a registered tool (see `latfit settings`).
    log
        The log that decides. Beside a `timeout` it only says what that timeout brings.
    timeout
        In seconds.
    attempts
        K; by default as many as the schedule has.
    undone
        The share of jobs that may stay undone after the last attempt, where K is to follow from that.
    cost
        The seconds between giving up an attempt and the next one, written where the tool can wait.
    cutoff, failed
        As in `analyze`.

    Returns
    -------
    Settings
        `snippet` is None where the decision is withheld, no timeout helps, or the tool cannot express it.

    Examples
    --------
    >>> import latfit
    >>> settings = settings_for("haproxy", latfit.example_log())
    >>> settings.written, settings.attempts
    ('716s', 3)

    """
    kind = get_tool(tool)
    if log is None and timeout is None:
        raise RestartError("there is nothing to write: give a log that decides, or a timeout")
    for name, value in (("timeout", timeout), ("cost", cost)):
        if value is not None and not (math.isfinite(value) and value >= 0 and (value > 0 or name == "cost")):
            raise RestartError(f"the {name} is {value:g} s; it must be finite and positive")
    if attempts is not None and attempts < 1:
        raise RestartError(f"the number of attempts is {attempts}; it must be at least 1")
    if undone is not None and not 0 < undone < 1:
        raise RestartError(f"the share that may stay undone is {undone:g}; it must lie between 0 and 1")
    facts = None if log is None else _from_log(kind, log, timeout, cost, cutoff, failed)
    fields: dict[str, Any] = {name: getattr(kind, name) for name in ("unit", "counts", "validated")}
    fields |= {"tool": kind.name, "cost": facts.cost if facts else cost}
    exact = timeout
    notes: list[str] = []
    if exact is None:
        assert facts is not None
        if facts.decision["retry"] is None:
            return Settings(
                **fields, notes=_nothing(kind, facts, cost), withheld=tuple(facts.decision.get("withheld") or ())
            )
        exact = facts.decision["retry"]["timeouts"][-1]
        if kind.hedges and facts.decision["timeout"]:
            exact, notes = _delay(facts)
    elif facts is not None and facts.decision.get("withheld"):
        notes = [
            f"warning: the log's own decision is withheld ({', '.join(facts.decision['withheld'])}): it does not show "
            "that this timeout makes jobs faster; `latfit analyze` says what was found"
        ]
    rounded = kind.rounded(exact)
    K, left, about_attempts = _attempts(kind, facts, rounded, attempts, undone, given=timeout is not None)
    refused = None
    if rounded > kind.longest:
        refused = f"{kind.title} takes at most {kind.longest:g} s, and the timeout is {exact:g} s"
    elif kind.fewest > K:
        refused = f"{kind.title} makes at least {counted(kind.fewest, 'attempt')}: for {K} leave its retries out"
    if refused:
        fields["cost"] = facts.cost if facts else 0.0
        return Settings(**fields, timeout=exact, notes=(f"nothing to paste: {refused}",))
    retry = facts.decision["retry"] if facts else None
    limits, budget = (rounded,) * K, 0.2
    if timeout is None and facts is not None and retry is not None and not kind.hedges:
        limits, budget = kind.limits_for(retry["timeouts"], facts.cutoff, K), max(0.2, 2 * (retry["submissions"] - 1))
    plan = Plan(limits, cost, facts is not None and float(facts.law.failed(math.inf)) > 0, float(f"{budget:.2g}"))
    notes += [
        *_rounding(kind, facts, exact, rounded),
        *about_attempts,
        *_about(kind, facts, plan, timeout is not None),
        *kind.notes(plan),
        *(facts.warnings if facts else ()),
        *kind.traps,
    ]
    return Settings(
        **fields,
        timeout=exact,
        timeouts=limits,
        total=kind.total(plan),
        written=kind.written(rounded),
        attempts=K,
        undone=left,
        snippet=_comments(kind, facts, plan, notes, given=timeout is not None) + kind.snippet(plan),
        notes=tuple(sorted(notes, key=lambda note: not note.startswith("warning:"))),
    )


def _comments(tool: Tool, facts: _FromLog | None, plan: Plan, notes: list[str], *, given: bool) -> str:
    """What to know before pasting, as comments: what it promises, and what speaks against it."""
    if not tool.comment:
        return ""
    lines = [note for note in notes if note.startswith("warning:")]
    if facts is not None and facts.decision["retry"] is not None:
        promise = _promise(tool, facts, plan, ends_in_waiting=tool.schedules and not given)
        lines = [f"latfit: {promise}. Retry only requests that may safely run twice.", *lines]
    begin = f"{tool.comment} "
    return "".join(textwrap.fill(line, 100, initial_indent=begin, subsequent_indent=begin) + "\n" for line in lines)


def _promise(tool: Tool, facts: _FromLog, plan: Plan, *, ends_in_waiting: bool) -> str:
    """What the snippet does as it is written: rounded, with the waits of the tool and the mean of the jitter."""
    t, independent = plan.limits[0], "submissions a job if retries are independent"
    if ends_in_waiting and plan.attempts > 1:
        restart = facts.cost + (plan.jitter / 2 if tool.jitters else 0.0)
        retry = evaluate_retry(facts.law, plan.limits[:-1], cutoff=plan.limits[-1], cost=restart)
        does = f"resubmit after {times_in_words(plan.limits[:-1])}, then wait; {retry.submissions:.3g} {independent}"
        return f"{does}, at most {100 * retry.worst_loss:.0f} % slower than waiting if they are not"
    if tool.hedges:
        return f"submit again after {seconds(t)} without cancelling, at most {counted(plan.attempts, 'attempt')}"
    q = 1.0 - float(facts.law.cdf(t))
    does = (
        f"{counted(plan.attempts, 'attempt')} of at most {seconds(t)}; {sum(q**k for k in range(plan.attempts)):.3g} "
    )
    return f"{does}{independent}; if they are not, up to {100 * q:.2g} % of the jobs end without a result"


def _from_log(
    tool: Tool, log: ProbeLog, timeout: float | None, cost: float, cutoff: float | None, failed: str
) -> _FromLog:
    """The decision of the log with the tool's own waits as the cost of a restart (rule 3).

    A cost moves the timeout away from returns that may be errors, but makes no answers of them: where the log does not
    tell them apart (`no-outcomes`), the decision without the tool's waits stays withheld with them. What else the log
    says against that decision becomes a warning.
    """
    decided = partial(analyze, log, laws=(), test=False, resamples=0, cutoff=cutoff, failed=failed)
    waits = tool.pause(1, cost)
    without_waits = _timeout(decided(cost=cost).decision) if waits > cost else {}
    for _ in range(5):
        advice = decided(cost=waits).decision
        assert advice.sample is not None
        decision, law = _timeout(advice), Empirical.of(advice.sample)
        t = timeout or (decision["retry"]["timeouts"][-1] if decision["retry"] else None)
        if not t:
            break
        mean = tool.mean_pause(1.0 - float(law.cdf(t)), cost)
        settled, waits = abs(mean - waits) <= 0.001 * t, mean
        if settled:
            break
    reported = (each for each in advice.warnings if each.code in (*FAIL_TOGETHER, *OTHERS))
    warnings = tuple(f"{each.code}: {each.message}" for each in reported)
    codes = without_waits.get("withheld") or ()
    if "no-outcomes" in codes:
        decision = without_waits
    elif decision["verdict"] == "finite" and codes and "not-identified" not in codes:
        withheld = f"without the waits of {tool.title} the decision on the log is withheld ({', '.join(codes)})"
        warnings = (f"warning: {withheld}; `latfit analyze` says what was found", *warnings)
    assert advice.cutoff is not None
    binding = advice.evidence.binding if advice.evidence else None
    return _FromLog(law, decision, advice.cutoff.cutoff, binding, waits, warnings)


def _timeout(decision: Decision) -> dict[str, Any]:
    assert decision.timeout is not None
    return decision.timeout.to_dict()


def _delay(facts: _FromLog) -> tuple[float, list[str]]:
    """The best delay of a hedge that never cancels, with no more submissions than cancelling after the timeout."""
    decision = facts.decision
    timeout: float = decision["timeout"]
    try:
        budget = Budget("submissions", decision["submissions"])
        best = optimal_policy(facts.law, "resubmit", cost=facts.cost, budget=budget)
    except RestartError:  # the law does not allow it; cancelling does
        return timeout, []
    E, least = best.expected_duration, decision["expected_duration"]
    if not isinstance(best.policy, Resubmit) or E is None or least <= E:
        return timeout, []
    note = (
        f"the delay is that of {best.policy.spec(4)}: as many submissions as cancelling after {seconds(timeout)}, "
        f"and jobs take {seconds(E)} instead of {seconds(least)} on average (`latfit compare`)"
    )
    return best.policy.d, [note]


def _nothing(tool: Tool, facts: _FromLog, cost: float) -> tuple[str, ...]:
    waits = (
        f" with the {seconds(facts.cost)} that {tool.title} itself waits before a restart" if facts.cost > cost else ""
    )
    codes = ", ".join(facts.decision.get("withheld") or ())
    why = {
        "withheld": f"the decision is withheld ({codes}): the log does not show that cancelling and "
        "resubmitting after the formula's timeout is faster; `latfit analyze` says what was found",
        "never": "no timeout helps: cancelling and resubmitting makes jobs slower, so leave the tool's timeout off or "
        "far above the latencies",
        "any": "any timeout will do: it does not change how long jobs take",
        "immediate": "the shorter the timeout the better: what a restart costs decides (give --cost)",
        "finite": f"waiting is the answer: no schedule of retries{waits} gains enough in every case that the log "
        f"supports (the case that binds: {facts.binding}); `latfit analyze` says why",
    }.get(facts.decision["verdict"], "too few probes completed: a timeout needs at least 5")
    return (f"nothing to paste: {why}", *facts.warnings)


def _attempts(
    tool: Tool, facts: _FromLog | None, t: float, attempts: int | None, undone: float | None, *, given: bool
) -> tuple[int, float | None, list[str]]:
    """The number of attempts K, what stays undone with it, and what to say about both (rule 2)."""
    at_most = f"warning: {tool.title} makes at most {counted(tool.cap or 0, 'attempt')}"
    if facts is None:
        K = attempts or 3
        notes = [] if attempts else [f"without a log nothing says how many attempts are needed: {K} are assumed"]
        return (K, None, notes) if tool.cap is None or tool.cap >= K else (tool.cap, None, [*notes, at_most])
    # attempts that go on can still complete later than t: only what never completes stays undone
    q = facts.law.rho if tool.hedges else 1.0 - float(facts.law.cdf(t))
    if q >= 1:
        return attempts or 3, 1.0, [f"warning: no probe of the log completed within {t:g} s: no job would end"]
    retry, scheduled = facts.decision["retry"], 2  # one attempt alone never resubmits
    if undone is not None and q > 0:
        scheduled = min(max(2, math.ceil(math.log(undone) / math.log(q) - 1e-9)), MAX_CANCELLATIONS + 1)
    elif retry is not None:
        scheduled = retry["attempts"]
    K, notes = attempts or scheduled, []
    if tool.cap is not None and tool.cap < K:
        K, notes = tool.cap, [f"{at_most}, and the schedule has {scheduled}"]
    limits = tool.limits_for(retry["timeouts"], facts.cutoff, K) if retry is not None and not given else ()
    share = float(np.prod(1.0 - facts.law.cdf(np.array(limits)))) if limits and tool.schedules else q**K
    left = f"{100 * share:.2g} % of the jobs stay undone after {counted(K, 'attempt')}"
    if limits and tool.schedules:
        return K, share, [*notes, f"{left}, the last of them of {seconds(limits[-1])}"]
    if not tool.hedges and q > 0:
        left += f", up to {100 * q:.2g} % if retries repeat the first attempt: {tool.title} cuts the last one too"
        left = f"warning: {left}; let the caller wait longer for those" if q > 0.1 else left
    if any(warning.startswith(FAIL_TOGETHER) for warning in facts.warnings):
        left += ", if attempts were independent; here, as the warnings say, more may stay undone"
    return K, share, [*notes, left]


def _rounding(tool: Tool, facts: _FromLog | None, exact: float, rounded: float) -> list[str]:
    """Whether rounding up costs more than the 5 % window allows (rule 1)."""
    if rounded <= exact * (1 + 1e-9):
        return []
    moved = f"{tool.title} takes {tool.written(rounded)} for {exact:.6g} s"
    if facts is None:
        more = f"warning: {moved}, {100 * (rounded / exact - 1):.3g} % more: give the log to see what that costs"
        return [more] if rounded > 1.05 * exact else []
    E, least = (float(expected_duration(facts.law, t, cost=facts.cost)) for t in (rounded, exact))
    longer = E / least - 1 if math.isfinite(least) and least else None
    costs = "" if longer is None else f": jobs take {100 * longer:.2g} % longer"
    _, latest = facts.decision.get("within_5pct") or (None, None)
    if latest is not None and rounded > latest >= exact:
        return [f"warning: {moved}, which leaves the 5 % window (up to {latest:.6g} s){costs}"]
    return [f"rounded up: {moved}{costs}"] if longer is not None and longer > 1e-4 else []


def _about(tool: Tool, facts: _FromLog | None, plan: Plan, timeout_given: bool) -> list[str]:
    """The wait that is limited, the counter, the cost counted, and hedging (rules 3 to 5)."""
    notes, cost = [f"it limits {tool.limits}"], plan.pause
    if tool.resubmits:
        count = plan.attempts - (tool.counts == "retries")
        notes.append(f"the counter is that of {tool.counts}: {count} for {counted(plan.attempts, 'attempt')}")
    if facts is not None and not math.isclose(facts.cost, cost):
        counted_as = "that cost is counted" if timeout_given else "the timeout is the optimum with that cost"
        waits = f"with the waits of {tool.title} itself, {facts.cost:.4g} s pass before a restart on average"
        notes.append(f"{waits}: {counted_as}")
    if tool.jitters:
        why = "so that clients do not come back together"
        notes.append(f"before each restart passes a random time too, evenly from 0 to {seconds(plan.jitter)}, {why}")
    timeouts = facts.decision["retry"]["timeouts"] if facts is not None and facts.decision["retry"] else ()
    if not tool.schedules and not tool.hedges and len(set(timeouts)) > 1:
        longest = f"the longest of {times_in_words(timeouts)}"
        notes.append(f"{tool.title} has one timeout for all attempts: it is {longest}")
    if not tool.hedges:
        notes.append(f"all attempts together take at most {seconds(tool.total(plan))}")
    if cost > 0 and not tool.waits:
        where = "not written" if facts is None else "counted, not written"
        notes.append(f"{tool.title} has no setting for the wait between attempts: the cost of {cost:g} s is {where}")
    if tool.hedges:
        notes.append(
            "a hedge does not cancel: the earlier attempts go on, so jobs end no later and need no more submissions "
            "than with cancelling after the same time"
        )
    return notes
