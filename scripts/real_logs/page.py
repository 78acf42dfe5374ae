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
    """What the plain loop finds: by waiting, by what is decided now, by the formula's timeout, by 0.1.0's."""

    waiting: Outcome
    now: Outcome | None
    formula: Outcome | None
    old: Outcome | None
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
    """A log, the decisions of both versions, and what the check says."""

    name: str
    old: Decided | None
    now: Decided
    check: Checked | None
    column: str | None = None

    def line(self) -> str:
        """The row in Markdown."""
        return f"| {' | '.join((f'`{self.name}`', *self._old(), *self._now()))} |"

    def _old(self) -> tuple[str, str]:
        old, check = self.old, self.check
        if old is None:
            return "not run", ""
        if old.refused is not None:
            return "could not read it", ""
        if old.timeout is None:
            return ("no timeout helps" if old.verdict == "never" else "none: too few completions"), "does nothing"
        told = seconds(old.timeout) + (f", {old.claimed:.3g} × faster" if old.claimed else "")
        if check is None or check.old is None:
            return told, ""
        return told, f"**{check.verdict(check.old)}**: {check.figures(check.old)}"

    def _now(self) -> tuple[str, str]:
        now, check = self.now, self.check
        if now.refused is not None:
            return f"refused: {now.refused.split(': ', 1)[-1].split(';')[0]}", "**right**: percentiles are no probes"
        if now.timeouts:
            told = f"by `{now.column}`: {len(now.timeouts)} of {len(now.groups)} have a timeout, the others wait"
        elif now.verdict == "withheld":
            told = f"withheld: {', '.join(now.withheld)}"
        elif now.timeout is not None:
            told = f"{seconds(now.timeout)} ({now.basis or 'histogram'})"
        else:
            told = "no timeout helps"
        if check is None:
            return told, ""
        if check.now is not None:
            return told, f"**{check.verdict(check.now)}**: {check.figures(check.now)}"
        if check.formula is None:
            return told, f"**cannot be told**: {check.rows} probes"
        found = check.verdict(check.formula)
        if found == "cannot be told":
            return told, f"**cannot be told**: {check.rows} probes, whose order is not known or too short"
        word = "**withheld rightly**" if found != "right" else "**withheld, although the loop shows a gain**"
        return told, f"{word}: {seconds(now.formula)} {found}: {check.figures(check.formula)}"


HEAD = """\
| log | 0.1.0 | checked | now | checked |
|---|---|---|---|---|"""


def page(rows: list[Row]) -> str:
    """page.md with the table, the sentences and the groups in their places."""
    said = "\n".join(f"- `{row.name}`: {row.now.said}" for row in rows if row.now.said)
    table = "\n".join([HEAD, *(row.line() for row in rows)])
    return TEMPLATE.read_text(encoding="utf-8").replace("{{table}}", table).replace("{{said}}", said)
