"""From a decision to what to paste, by the five rules that hold for every tool.

(1) Round up to the tool's step, and warn where that leaves the 5 % window. (2) Give the number of attempts
K = ⌈ln ε / ln(1 − F̃(t))⌉ and the share (1 − F̃(t))^K that stays undone. (3) The tool's own waits are the cost of a
restart: optimise again with them. (4) Say which wait is limited. (5) Name the counter: attempts or retries.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from latfit.analysis import analyze
from latfit.errors import RestartError, counted
from latfit.laws import Empirical
from latfit.logs import ProbeLog
from latfit.restart import Budget, expected_duration, optimal_policy
from latfit.restart.policies.resubmit import Resubmit
from latfit.settings.base import Counter, Plan, Tool, get_tool, mean_pause
from latfit.units import seconds

UNDONE = 0.001
FEWEST, ASSUMED = 2, 3  # attempts: one alone never resubmits; and what is written where no log tells
SETTLED = 0.001  # the waits are settled when they move by less than this share of the timeout
# warnings that concern who sets a timeout
TOLD = ("mixed", "groups-differ", "queue", "drift", "dependence", "slow-times", "later-attempts", "outages",
        "beyond-timeout", "not-identified", "unit", "few-at-risk", "load", "flat")  # fmt: skip
DEPEND = ("dependence", "slow-times", "later-attempts", "outages", "drift")  # those on attempts that fail together
WINDOW = 0.05
WARNING = "warning:"  # how a note begins that speaks against what is written
WORTH_TELLING = 0.0001  # what rounding may cost before it is mentioned


@dataclass(frozen=True)
class Settings:
    """What to write into a tool, and what to know about it; `snippet` is None where there is nothing to paste.

    `timeout` is the decision in seconds (of a tool that hedges, the delay until the next attempt), `written` what the
    tool is given (rounded up), `undone` the share of jobs
    that no attempt completes (None without a log), `counts` what the number in the snippet counts.
    """

    tool: str
    timeout: float | None
    written: str | None
    unit: str
    attempts: int | None
    undone: float | None
    counts: Counter
    snippet: str | None
    notes: tuple[str, ...]
    validated: str
    withheld: tuple[str, ...] = ()
    cost: float = 0.0

    @property
    def warnings(self) -> tuple[str, ...]:
        """The notes that speak against what is written: they come first."""
        return tuple(note for note in self.notes if note.startswith(WARNING))

    def to_dict(self) -> dict[str, Any]:
        """The contract's fields as plain values."""
        return {**asdict(self), "notes": list(self.notes), "withheld": list(self.withheld)}


@dataclass(frozen=True)
class _Known:
    """What a log says: its law, the decision with the tool's waits as cost, and whether attempts fail visibly."""

    law: Empirical
    decision: dict[str, Any]
    cost: float
    failures: bool
    warnings: tuple[str, ...]


def settings_for(
    tool: str,
    log: ProbeLog | None = None,
    *,
    timeout: float | None = None,
    attempts: int | None = None,
    undone: float = UNDONE,
    cost: float = 0.0,
    cutoff: float | None = None,
    failed: str = "retry",
) -> Settings:
    """What to write into `tool` so that it cancels and resubmits as decided from `log`, or after `timeout`.

    `tool` is the name of a registered tool (see `latfit settings`). With a `log` and a `timeout` (in seconds) the log
    only says what that timeout brings. `attempts` is K, by default the smallest number that leaves at most the share
    `undone`. `cost` is the time in seconds between giving up an attempt and the next one, written where the tool can
    wait. `cutoff` and `failed` are those of `analyze`.

    Returns Settings; `snippet` is None where the decision is withheld, no timeout helps, or the tool cannot express it.

    >>> import latfit
    >>> found = settings_for("haproxy", latfit.example_log())
    >>> found.written, found.attempts
    ('358s', 5)
    """
    kind, given = get_tool(tool), timeout is not None
    _check(log, timeout, attempts, undone, cost)
    known = None if log is None else _known(kind, log, timeout, cost, cutoff, failed)
    chosen = [] if known is None or timeout is None else _against(known)
    if timeout is None:
        assert known is not None
        timeout = known.decision["timeout"]
        if known.decision["verdict"] != "finite" or not timeout:
            return _nothing(kind, known)
        if kind.hedges:
            timeout, chosen = _delay(known, timeout)
    exact = timeout
    rounded = kind.rounded(exact)
    if rounded > kind.longest:
        why = f"{kind.title} takes at most {kind.longest:g} s, and the timeout is {exact:g} s"
        return _refused(kind, exact, known, why)
    K, left, notes = _attempts(kind, known, rounded, attempts, undone)
    if kind.fewest > K:
        why = f"{kind.title} makes at least {counted(kind.fewest, 'attempt')}: for {K} leave its retries out"
        return _refused(kind, exact, known, why)
    plan = Plan(rounded, K, cost, known.failures if known else False)
    return Settings(
        tool=kind.name,
        timeout=exact,
        written=kind.written(rounded),
        unit=kind.unit,
        attempts=K,
        undone=left,
        counts=kind.counts,
        snippet=kind.snippet(plan),
        notes=_warnings_first(
            *chosen,
            *_rounding(kind, known, exact, rounded),
            *notes,
            *_about(kind, known, plan, cost, given),
            *kind.traps,
        ),
        validated=kind.validated,
        cost=known.cost if known else cost,
    )


def _check(log: ProbeLog | None, timeout: float | None, attempts: int | None, undone: float, cost: float) -> None:
    """Refuse what cannot be written into any tool."""
    if log is None and timeout is None:
        raise RestartError("there is nothing to write: give a log that decides, or a timeout")
    for name, value in (("timeout", timeout), ("cost", cost)):
        if value is not None and not (math.isfinite(value) and value >= 0 and (value > 0 or name == "cost")):
            raise RestartError(f"the {name} is {value:g} s; it must be finite and positive")
    if attempts is not None and attempts < 1:
        raise RestartError(f"the number of attempts is {attempts}; it must be at least 1")
    if not 0 < undone < 1:
        raise RestartError(f"the share that may stay undone is {undone:g}; it must lie between 0 and 1")


def _known(tool: Tool, log: ProbeLog, timeout: float | None, cost: float, cutoff: float | None, failed: str) -> _Known:
    """The decision of the log with the tool's own waits as the cost of a restart (rule 3).

    A cost moves the timeout away from returns that may be errors, but makes no answers of them: where the log does not
    tell them apart (`no-outcomes`), the decision without the tool's waits stays withheld with them. What else the log
    says against that decision is told.
    """
    waits = tool.pause(1, cost)
    alone = _without_waits(log, cost, cutoff, failed) if waits > cost else {}
    codes = alone.get("withheld") or ()
    for _ in range(5):
        found = analyze(log, laws=(), test=False, cost=waits, cutoff=cutoff, failed=failed)
        document, sample = found.to_dict(), found.decision.sample
        assert sample is not None
        decision, law = document["timeout"], Empirical.of(sample)
        t = decision["timeout"] if timeout is None else timeout
        if not t:
            break
        mean = mean_pause(tool, 1.0 - float(law.cdf(t)), cost)
        if abs(mean - waits) <= SETTLED * t:
            break
        waits = mean
    told = tuple(f"{w['code']}: {w['message']}" for w in document["warnings"] if w["code"] in TOLD)
    if "no-outcomes" in codes:
        return _Known(law, alone, waits, float(law.failed(math.inf)) > 0, told)
    if decision["verdict"] == "finite" and codes and "not-identified" not in codes:
        told = (f"warning: without the waits of {tool.title} the decision on the log is withheld ({', '.join(codes)}); "
                "`latfit analyze` says what was found", *told)  # fmt: skip
    return _Known(law, decision, waits, float(law.failed(math.inf)) > 0, told)


def _without_waits(log: ProbeLog, cost: float, cutoff: float | None, failed: str) -> dict[str, Any]:
    """The decision of the log as `latfit timeout` gives it."""
    found = analyze(log, laws=(), test=False, resamples=0, cost=cost, cutoff=cutoff, failed=failed)
    return found.timeout.to_dict()


def _delay(known: _Known, timeout: float) -> tuple[float, list[str]]:
    """The best delay of a hedge that never cancels, with no more submissions than cancelling after `timeout` needs."""
    decision = known.decision
    if decision["basis"] != "independent":
        return timeout, []
    budget = Budget("submissions", decision["submissions"])
    try:
        best = optimal_policy(known.law, "resubmit", cost=known.cost, budget=budget)
    except RestartError:  # the law does not allow it; cancelling does
        return timeout, []
    E, least = best.expected_duration, decision["expected_duration"]
    if not isinstance(best.policy, Resubmit) or E is None or least <= E:
        return timeout, []
    told = f"jobs take {seconds(E)} instead of {seconds(least)} on average"
    return best.policy.d, [f"the delay is that of {best.policy.spec(4)}: as many submissions as cancelling after "
                           f"{seconds(timeout)}, and {told} (`latfit compare`)"]  # fmt: skip


def _against(known: _Known) -> list[str]:
    """What the log says against any timeout, where one was given."""
    codes = known.decision.get("withheld")
    if not codes:
        return []
    told = f"warning: the log's own decision is withheld ({', '.join(codes)}): it does not show that this timeout makes"
    return [f"{told} jobs faster; `latfit analyze` says what was found"]


def _nothing(tool: Tool, known: _Known) -> Settings:
    """No timeout to write, and why."""
    decision = known.decision
    codes = tuple(decision.get("withheld") or ())
    why = {
        "withheld": f"the decision is withheld ({', '.join(codes)}): the log does not show that cancelling and "
        "resubmitting after the formula's timeout is faster; `latfit analyze` says what was found",
        "never": "no timeout helps: cancelling and resubmitting makes jobs slower, so leave the tool's timeout off or "
        "far above the latencies",
        "any": "any timeout will do: it does not change how long jobs take",
        "immediate": "the shorter the timeout the better: what a restart costs decides (give --cost)",
    }.get(decision["verdict"], "too few probes completed: a timeout needs at least 5")
    return Settings(tool.name, None, None, tool.unit, None, None, tool.counts, None,
                    (f"nothing to paste: {why}", *known.warnings), tool.validated, codes, known.cost)  # fmt: skip


def _refused(tool: Tool, timeout: float, known: _Known | None, why: str) -> Settings:
    """What the tool refuses."""
    return Settings(tool.name, timeout, None, tool.unit, None, None, tool.counts, None, (f"nothing to paste: {why}",),
                    tool.validated, cost=known.cost if known else 0.0)  # fmt: skip


def _warnings_first(*notes: str) -> tuple[str, ...]:
    """The notes in their order, but what speaks against the snippet before what explains it."""
    return tuple(sorted(notes, key=lambda note: not note.startswith(WARNING)))


def _attempts(
    tool: Tool, known: _Known | None, t: float, attempts: int | None, undone: float
) -> tuple[int, float | None, list[str]]:
    """The number of attempts K, what stays undone with it, and what to say about both (rule 2)."""
    if known is None:
        K = ASSUMED if attempts is None else attempts
        notes = [] if attempts else [f"without a log nothing says how many attempts are needed: {K} are assumed"]
        if tool.cap is not None and tool.cap < K:
            return tool.cap, None, [*notes, f"warning: {tool.title} makes at most {counted(tool.cap, 'attempt')}"]
        return K, None, notes
    # attempts that go on can still complete later than t: only what never completes stays undone
    q = known.law.rho if tool.hedges else 1.0 - float(known.law.cdf(t))
    if q >= 1:
        return attempts or ASSUMED, 1.0, [f"warning: no probe of the log completed within {t:g} s: no job would end"]
    needed = max(FEWEST, math.ceil(math.log(undone) / math.log(q) - 1e-9)) if q > 0 else FEWEST
    K = needed if attempts is None else attempts
    notes = []
    if tool.cap is not None and tool.cap < K:
        K = tool.cap
        most = f"warning: {tool.title} makes at most {counted(K, 'attempt')}"
        notes = [f"{most}, {needed} would leave at most {undone:.3g} undone"]
    left = q**K
    together = any(told.startswith(DEPEND) for told in known.warnings)
    only = "" if not together else ", if attempts were independent; here, as the warnings say, more may stay undone"
    return K, left, [*notes, f"{100 * left:.2g} % of the jobs stay undone after {counted(K, 'attempt')}{only}"]


def _rounding(tool: Tool, known: _Known | None, exact: float, rounded: float) -> list[str]:
    """Whether rounding up costs more than the 5 % window allows (rule 1)."""
    if rounded <= exact * (1 + 1e-9):
        return []
    moved = f"{tool.title} takes {tool.written(rounded)} for {exact:.6g} s"
    if known is None:
        if rounded <= exact * (1 + WINDOW):
            return []
        return [f"warning: {moved}, {100 * (rounded / exact - 1):.3g} % more: give the log to see what that costs"]
    E, least = (float(expected_duration(known.law, t, cost=known.cost)) for t in (rounded, exact))
    costs = E / least - 1 if math.isfinite(least) and least else None
    more = "" if costs is None else f": jobs take {100 * costs:.2g} % longer"
    _, latest = known.decision.get("within_5pct") or (None, None)
    if latest is not None and rounded > latest and known.decision["timeout"] == exact:
        return [f"warning: {moved}, which leaves the 5 % window (up to {latest:.6g} s){more}"]
    return [f"rounded up: {moved}{more}"] if costs is not None and costs > WORTH_TELLING else []


def _about(tool: Tool, known: _Known | None, plan: Plan, cost: float, given: bool) -> list[str]:
    """The wait that is limited, the counter, the cost counted, hedging, and what the log warns of (rules 3 to 5)."""
    notes = [f"it limits {tool.limits}"]
    if tool.resubmits:
        count = plan.attempts if tool.counts == "attempts" else plan.retries
        notes.append(f"the counter is that of {tool.counts}: {count} for {counted(plan.attempts, 'attempt')}")
    if known is not None and not math.isclose(known.cost, cost):
        waits = f"with the waits of {tool.title} itself, {known.cost:.4g} s pass before a restart on average"
        notes.append(f"{waits}: {'that cost is counted' if given else 'the timeout is the optimum with that cost'}")
    if cost > 0 and not tool.waits:
        where = "not written" if known is None else "counted, not written"
        notes.append(f"{tool.title} has no setting for the wait between attempts: the cost of {cost:g} s is {where}")
    if tool.hedges:
        notes.append(
            "a hedge does not cancel: the earlier attempts go on, so jobs end no later and need no more submissions "
            "than with cancelling after the same time"
        )
    return [*notes, *tool.notes(plan), *(known.warnings if known else ())]
