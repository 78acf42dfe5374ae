"""`latfit compare`: what else could be done about slow jobs, and what each costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from latfit.cli.common import Seconds, json_option, log_options, print_json, say, seed_option
from latfit.cli.deciding import asked, cost_option, observed, outcome_options, written_law

if TYPE_CHECKING:
    from latfit.decision import Decision
    from latfit.decision.compared import ReplayedChoice
    from latfit.evidence import Observations
    from latfit.laws import Law
    from latfit.restart import Comparison, PolicyOutcome
    from latfit.sample import LatencySample
    from latfit.uncertainty.compared import Spread

ROLES = {"given": "now", "reference": "best timeout", "same": "same load", "free": "no limit"}


@click.command(
    epilog="""\b
Examples:
  latfit compare probes.csv
  latfit compare probes.csv --current 1000 --objective quantile:0.99
  latfit compare probes.csv --policy "tenacity(attempts=5,timeout=10,wait=1,factor=2,max=60)"
  latfit compare --law "lognormal(mu=5.5,sigma=1)" --rho 0.025 --policy "hedge(d=300,t_inf=900)"
  latfit compare probes.csv --same 5% --objective quantile:0.95
  latfit compare probes.csv --utilisation 0.7 --json"""
)
@click.argument("log", metavar="[LOG]", required=False)
@click.option("--law", metavar="SPEC", help="A law such as lognormal(mu=5.5,sigma=1), instead of LOG.")
@click.option("--rho", type=float, metavar="R", help="The share that never returns; with LOG, rescale to it.")
@click.option("--policy", "policies", multiple=True, metavar="SPEC",
              help="A policy to compare, such as hedge(d=300,t_inf=900); the first is what you have now.")  # fmt: skip
@click.option("--current", type=Seconds(), metavar="T", help="The timeout you have now, in front of --policy.")
@click.option("--same", default="submissions", show_default=True, metavar="submissions|job-seconds|BUDGET",
              help="The load allowed: that of the first strategy, or extra requests such as 5%.")  # fmt: skip
@click.option("--objective", default="mean", show_default=True, metavar="mean|std|quantile:q|deadline:D",
              help="What to compare by.")  # fmt: skip
@click.option("--wall-clock", type=Seconds(zero=True), default=0.0, metavar="r", help="Seconds each job itself runs.")
@click.option("--utilisation", type=click.FloatRange(0, 1, min_open=True, max_open=True), metavar="A",
              help="The busy share of the system now, to tell what each strategy adds.")  # fmt: skip
@cost_option
@outcome_options
@log_options
@seed_option
@json_option
def compare(log: str | None, law: str | None, as_json: bool, **given: Any) -> None:
    """Compare strategies: cancelling, hedging, resubmitting, copies, schedules.

    What you have now comes first, then the best of each kind with the same load, then the best without a limit.
    """
    from latfit.restart import compare_policies, earliest_timeout

    if (log is None) == (law is None):
        raise click.UsageError("give either a LOG or a law with --law")
    known, sample, read = _law_of(log, law, given)
    current = () if given["current"] is None else (f"timeout(t={given['current']!r})",)
    options = {name: given[name] for name in ("cost", "wall_clock", "objective", "same", "utilisation")}
    table = compare_policies(known, (*current, *given["policies"]), min_time=earliest_timeout(known), **options)
    spreads = _intervals(sample, table, given)
    found = _found(read, table, spreads, given)
    if as_json:
        print_json(_document(table, spreads, found))
        return
    for warning in found.warnings:
        say(f"warning: {warning['message']}", err=True)
    for line in _lines(table, spreads, found, given["utilisation"]):
        say(line)


def _law_of(
    log: str | None, law: str | None, given: dict[str, Any]
) -> tuple[Law, LatencySample | None, tuple[Observations, Decision] | None]:
    """The law, the sample it comes from, and the probes with what was decided on them."""
    from latfit.laws import Defective, Empirical

    if log is None:
        return Defective(written_law(law or ""), given["rho"] or 0.0), None, None
    from latfit.decision import decide, prepare

    seen = observed(log, given)
    options = asked({**given, "objective": "mean"}, test=False, resamples=0)
    sample = prepare(seen, options).sample
    made = decide([seen], options)[0].require()
    empirical = Empirical.of(sample)
    known = empirical if given["rho"] is None else empirical.rescaled(given["rho"])
    return known, sample if given["rho"] is None else None, (seen, made)


class _Found(NamedTuple):
    """What the log itself says: why nothing can be recommended, warnings, what the choice brings if replayed.

    `faster` is whether the best strategy without a limit stands, too.
    """

    withheld: tuple[str, ...] = ()
    warnings: tuple[dict[str, str], ...] = ()
    replay: ReplayedChoice | None = None
    faster: bool = True

    def sentence(self, decision: str) -> str:
        """The sentence that decides, or why there is none."""
        if not self.withheld:
            return decision
        codes = [code for code in self.withheld if code != "replay"]
        why = f"{', '.join(codes)} (see latfit analyze)" if codes else "the log, replayed, does not bear out the choice"
        return f"No strategy can be recommended: {why}. What follows would hold if attempts were independent and alike."


def _found(
    read: tuple[Observations, Decision] | None, table: Comparison, spreads: list[Spread] | None, given: dict[str, Any]
) -> _Found:
    """What the log says against taking attempts as independent, and on what was chosen."""
    if read is None:
        return _Found()
    from latfit.decision.compared import replay_choice

    seen, made = read
    withheld = made.timeout.withheld if made.timeout is not None else ()
    told = tuple({"code": warned.code, "message": warned.message} for warned in made.warnings)
    if given["rho"] is not None:  # a rescaled law is not that of the log
        return _Found(withheld, told)
    chosen, faster = (
        None if one is None else replay_choice(table, one, made, queue=seen.queue)
        for one in (table.chosen(_clear(spreads)), table.faster())
    )
    if chosen is not None and not chosen.stands:
        withheld = (*withheld, "replay")
    return _Found(withheld, told, chosen, faster is None or faster.stands)


def _intervals(sample: LatencySample | None, table: Comparison, given: dict[str, Any]) -> list[Spread] | None:
    if sample is None:
        return None
    import numpy as np

    from latfit.uncertainty.compared import comparison_intervals

    rng = np.random.default_rng(given["seed"])
    return comparison_intervals(sample, table, cost=given["cost"], wall_clock=given["wall_clock"], rng=rng)


def _document(table: Comparison, spreads: list[Spread] | None, found: _Found) -> dict[str, Any]:
    document = {**table.to_dict(), "decision": found.sentence(table.decision(_clear(spreads)))}
    for row, spread in zip(document["strategies"], spreads or [], strict=False):
        row["interval"] = spread.to_dict()
    replayed = None if found.replay is None else found.replay.to_dict()
    return {**document, "replay": replayed, "withheld": list(found.withheld), "warnings": list(found.warnings)}


def _clear(spreads: list[Spread] | None) -> list[bool] | None:
    """Of each strategy, whether it beats the first one on 97.5 % of the resamples."""
    return None if spreads is None else [each.ratio_high is not None and each.ratio_high < 1 for each in spreads]


def _lines(table: Comparison, spreads: list[Spread] | None, found: _Found, a: float | None) -> list[str]:
    """The sentence that decides, what replay says of it, the table, and what no strategy can do."""
    from latfit.units import seconds

    lines = [found.sentence(table.decision(_clear(spreads), seconds))]
    if found.replay is not None and not {*found.withheld} - {"dependent", "replay"}:  # replay flatters a mixed log
        lines.append(found.replay.sentence(seconds))
    if not found.withheld and found.faster and (more := table.beyond(seconds)) is not None:
        lines.append(more)
    lines += ["", *_table(table, spreads)]
    if table.least_job_seconds is not None:
        lines += [
            "",
            f"No strategy of independent copies occupies the system for less than {seconds(table.least_job_seconds)} a "
            "job: that is the best timeout's, and what is faster costs more.",
        ]
    lines += [f"note: {note}" for note in table.notes]
    return lines + (_load_lines(table, a) if a is not None else [])


def _table(table: Comparison, spreads: list[Spread] | None) -> list[str]:
    """A strategy a line, its figures on the next: both fit 80 columns."""
    from latfit.units import seconds

    goal, ends = str(table.objective), all(row.outcome.success in (None, 1.0) for row in table.rows)
    heads = ["mean", "p95", "p99", "submits", "job-seconds", *([] if ends else ["done"])]
    heads += [goal] if goal != "mean" else []
    heads += ["change", "95 %"] if spreads else ["change"]
    rows, names = [heads], []
    for i, row in enumerate(table.rows):
        one, value = row.outcome, row.outcome.objective["value"]
        gain = table.gain(one)
        role = ROLES[row.role] if row.role != "given" or i == 0 else "given"
        names.append(f"{role}: {spec if len(spec := one.policy.spec(4)) < 64 else one.policy.sentence()}")
        cells = [
            "infinite" if one.expected_duration is None else seconds(one.expected_duration),
            *(_quantile(one, level) for level in (0.95, 0.99)),
            "infinite" if one.submissions is None else f"{one.submissions:.4g}",
            "infinite" if one.job_seconds is None else seconds(one.job_seconds),
            *([] if ends else ["" if one.success is None else f"{100 * one.success:.4g} %"]),
        ]
        cells += [("infinite" if value is None else table.objective.text(value))] if goal != "mean" else []
        cells.append("" if gain is None or i == 0 else f"{-100 * gain:+.1f} %")
        if spreads:
            cells.append(_change(spreads[i].ratio_low, spreads[i].ratio_high) if i else "")
        rows.append(cells)
    widths = [max(len(row[k]) for row in rows) for k in range(len(heads))]
    first, *figures = ["  " + "  ".join(x.rjust(w) for x, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [first, *(line for pair in zip(names, figures, strict=True) for line in pair)]


def _quantile(one: PolicyOutcome, level: float) -> str:
    """A quantile; what is not computed under visible failures is unknown, not infinite."""
    from latfit.units import seconds

    known = one.quantiles.get(str(level))
    if known is not None:
        return seconds(known)
    return "infinite" if one.success is None or one.success < level else "unknown"


def _change(low: float | None, high: float | None) -> str:
    """The interval of a ratio as percentages less or more."""
    if low is None:
        return ""
    return f"{100 * (low - 1):+.1f} to " + ("infinite" if high is None else f"{100 * (high - 1):+.1f} %")


def _load_lines(table: Comparison, a: float) -> list[str]:
    """What each strategy makes of the system, for both answers to "does your cancel reach the server?"."""
    lines = ["", f"Load, from {100 * a:g} % busy today. Does your cancel reach the server?",
             "  busy if yes   busy if no   safe share of clients if no"]  # fmt: skip
    for load in table.loads:
        yes, no = ("unknown" if x is None else f"{100 * x:.0f} %" for x in (load.if_cancelled, load.if_served))
        rule = "" if load.by_budget is None else f" with a retry budget of {100 * load.by_budget:.0f} %"
        share = "" if load.safe_share is None else f"{100 * load.safe_share:.0f} %{rule}"
        lines.append(f"  {yes:>11}   {no:>10}   {share}  {load.policy}")
    over = any(load.if_served is not None and load.if_served >= 1 for load in table.loads)
    if over:
        lines.append("  A system that is 100 % busy or more never catches up: cap retries with a budget.")
    return lines
