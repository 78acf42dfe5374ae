"""What the commands that decide share: the options that say how outcomes are read, and the way from LOG to a sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from latfit.cli.common import Seconds, cutoff_option, failed_option, load_log, say
from latfit.errors import LawError
from latfit.units import LONGEST, SHORTEST

if TYPE_CHECKING:
    from latfit.decision import Options, Prepared
    from latfit.evidence import Observations
    from latfit.laws import Law, ParametricLaw
    from latfit.logs import ProbeLog

F = TypeVar("F", bound=Callable[..., Any])

censoring_option = click.option(
    "--censoring", type=click.Choice(["auto", "independent", "failed", "lost"]), default="auto", show_default=True,
    help="How to take probes given up early: by what the log shows, as censored, as failed then, or as lost.",
)  # fmt: skip
cost_option = click.option(
    "--cost", type=Seconds(zero=True), default=0.0, metavar="C", help="Seconds that each restart costs."
)


def outcome_options(function: F) -> F:
    """--cutoff, --failed and --censoring: which sample a log becomes, the same in every command."""
    for option in (censoring_option, failed_option, cutoff_option):
        function = option(function)
    return function


def asked(given: Mapping[str, Any], **more: Any) -> Options:
    """The options of a decision from those of the command line."""
    from latfit.decision import Options

    names = ("cutoff", "failed", "censoring", "cost", "current", "resamples", "seed", "law", "rho", "objective",
             "wall_clock", "copies", "max_submissions")  # fmt: skip
    return Options(**{name: given[name] for name in names if name in given}, **more)


def prepared(log: str, given: Mapping[str, Any]) -> tuple[Prepared, ProbeLog]:
    """The sample that LOG is decided on, and its table; the cutoff is said on stderr where it was not given."""
    from latfit.decision import prepare
    from latfit.evidence import Observations
    from latfit.units import seconds

    table = load_log(log, given)
    found = prepare(Observations.of(table), asked(given))
    if given["cutoff"] is None:
        say(f"note: the cutoff is {seconds(found.cutoff.cutoff)}: {found.cutoff.reason}; change it with --cutoff",
            err=True)  # fmt: skip
    return found, table


def observed(log: str, given: Mapping[str, Any]) -> Observations:
    """The probes of LOG in their order."""
    from latfit.evidence import Observations

    return Observations.of(load_log(log, given))


def log_law(log: str, given: Mapping[str, Any]) -> Law:
    """The law of the data of LOG, cut and read as every command does."""
    from latfit.laws import Empirical

    return Empirical.of(prepared(log, given)[0].sample)


def written_law(text: str) -> ParametricLaw:
    """The law that an option writes; one of which half the latencies are longer or shorter than any is refused."""
    import numpy as np

    from latfit.laws import parse_law

    law = parse_law(text)
    with np.errstate(all="ignore"):
        median = float(law.ppf(0.5))
    if not SHORTEST <= median <= LONGEST:
        raise LawError(f"the median of {text[:80]} is {median:g} s: no latency is like that; look at its parameters")
    return law
