"""The decision on what a growing log holds now: whether the theory that a tracker rests on applies to it at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from latfit.decision import Decision, Options, decide
from latfit.evidence import Observations
from latfit.logs import LogFacts, read_log


@dataclass(frozen=True, eq=False)
class Look:
    """A decision, and what the reader of the log noted."""

    decision: Decision
    facts: LogFacts

    @property
    def withheld(self) -> tuple[str, ...]:
        """The reasons for which the formula's timeout is not the decision; `dependent` where the log's own is."""
        made = self.decision.timeout
        return () if made is None else ("dependent",) if made.basis == "replay" else made.withheld


def look_at(
    path: str | Path,
    *,
    cutoff: float | None = None,
    cost: float = 0.0,
    format: str | None = None,  # noqa: A002
    options: Mapping[str, Any] | None = None,
) -> Look:
    r"""Decide on a log as `latfit.analyze` does, without fits, tests and intervals.

    Parameters
    ----------
    path, format, options
        The log and how it is read, as in `latfit.read_log`.
    cutoff, cost
        As in `latfit.analyze`.

    Returns
    -------
    Look

    Examples
    --------
    >>> import tempfile
    >>> log = Path(tempfile.mkdtemp()) / "probes.csv"
    >>> _ = log.write_text("latency,status\n" + "\n".join(f"{1 + i % 7 / 10},ok" for i in range(200)) + "\n")
    >>> look_at(log).withheld, look_at(log).decision.cutoff.cutoff
    ((), 1.6)

    """
    log = read_log(path, format=format, max_refused=1.0, **(options or {}))
    asked = Options(cutoff=cutoff, cost=cost, laws=(), test=False, resamples=0)
    return Look(decide([Observations.of(log)], asked)[0], log.facts)
