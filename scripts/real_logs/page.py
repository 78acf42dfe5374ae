"""The page: a row a log, with what the check says of the decisions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from latfit.units import seconds
from real_logs.decided import Decided
from real_logs.own import Outcome

TEMPLATE = Path(__file__).with_name("page.md")
SAME = 0.01  # a mean within this share of waiting's is the same
NEVER = 0.05  # more jobs than this that are not done, of those that waiting gets done, are harm


@dataclass(frozen=True)
class Checked:
    """What the plain loop finds: by waiting, by the schedule advised, by the formula's timeout repeated for ever."""

    waiting: Outcome
    now: Outcome | None
    formula: Outcome | None
    rows: int
    replayed: bool

    def verdict(self, found: Outcome) -> str:
        """Whether a policy is harmful, right (a gain, or nothing lost), or a gain that may be chance."""
        if found.never > NEVER:
            return "harmful"
        ratio, (low, high) = found.mean / self.waiting.mean, found.against(self.waiting)
        if ratio > 1 + SAME:
            return "harmful" if low > 1 else "perhaps harmful"
        if ratio > 1 - SAME:
            return "no change"
        if not self.replayed:
            return "cannot be told"
        return "right" if high < 1 else "perhaps a gain"

    def figures(self, found: Outcome) -> str:
        """Its mean, beside waiting's, and the jobs that were never done."""
        told = f"{seconds(found.mean)} a job, waiting {seconds(self.waiting.mean)}"
        if found.never > 0.005:
            told += f", and {100 * found.never:.0f} % never done"
        return told if self.replayed else f"{told}, if drawn from their own group"


@dataclass(frozen=True)
class Row:
    """A log, the decision, and what the check says."""

    name: str
    now: Decided
    check: Checked | None

    def line(self) -> str:
        """The row in Markdown."""
        return f"| {' | '.join((f'`{self.name}`', *self._cells()))} |"

    def _cells(self) -> tuple[str, str, str]:
        now, check = self.now, self.check
        if now.refused is not None:
            return "refused", now.refused.split(": ", 1)[-1].split(". ")[0].split(";")[0], ""
        verdict = f"withheld: {', '.join(now.withheld)}" if now.withheld else str(now.verdict)
        groups = [timeouts for timeouts in now.groups.values() if timeouts]
        schedule = _written(now.retry)
        if groups:
            schedule = f"by `{now.column}`: {len(groups)} of {len(now.groups)} are resubmitted, the others wait"
        if check is None:
            return verdict, schedule, "**cannot be told**: a histogram has no rows to follow"
        if check.now is not None:
            return verdict, schedule, f"**{check.verdict(check.now)}**: {check.figures(check.now)}"
        if check.formula is None or now.formula is None:
            return verdict, schedule, f"**cannot be told**: {check.rows} probes"
        found = check.verdict(check.formula)
        if found == "cannot be told":
            return verdict, schedule, f"**cannot be told**: {check.rows} probes, whose order is not known or too short"
        if found == "right" and {"queue", "work"} & set(now.withheld):
            lost = "a replay shows neither the place lost in the queue nor the work done again"
            return verdict, schedule, f"**cannot be told**: {lost}"
        word = "**waits rightly**" if found != "right" else "**waits, although the loop shows a gain**"
        return verdict, schedule, f"{word}: {seconds(now.formula)} for ever: {found}, {check.figures(check.formula)}"


def _written(timeouts: tuple[float, ...]) -> str:
    if not timeouts:
        return "wait"
    if len(set(timeouts)) == 1:
        return f"{seconds(timeouts[0])} × {len(timeouts)}"
    return ", ".join(seconds(t) for t in timeouts)


HEAD = """\
| log | verdict on unlimited resubmission | what to set | checked |
|---|---|---|---|"""


def page(rows: list[Row]) -> str:
    """page.md with the table in its place."""

    table = "\n".join([HEAD, *(row.line() for row in rows)])
    return TEMPLATE.read_text(encoding="utf-8").replace("{{table}}", table)
