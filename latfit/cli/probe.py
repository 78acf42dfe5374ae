"""`latfit probe`: measure a system, and write a log that every other command reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from latfit._system import whole_file
from latfit.cli import common as cli
from latfit.errors import ProbeError
from latfit.units import seconds

if TYPE_CHECKING:
    from latfit.measure import Counts, Plan, Precision, Target

MAX_JOB_ATTEMPTS = 20


class _Targets(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        from latfit.measure.targets import TARGETS

        return list(TARGETS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        from latfit.measure.targets import TARGETS

        if cmd_name not in TARGETS:
            return None
        kind = TARGETS[cmd_name]
        fields = dataclasses.fields(kind)  # type: ignore[arg-type]  # every target is a dataclass

        def run(**parsed: Any) -> None:
            try:
                target = kind(**{field.name: parsed.pop(field.name) for field in fields})
            except ProbeError as problem:
                raise click.UsageError(str(problem)) from problem
            _run(target, **parsed)

        command = click.command(name=kind.name, help=kind.summary, epilog=f"\b\nExample:\n  {kind.example}")
        return command(cli.with_parameters([*map(_parameter, fields), *cli.parameters("(probe)")], run))


@click.group(cls=_Targets, epilog=cli.examples("probe"))
def probe() -> None:
    """Measure a system with probes, and write a log that every command reads.

    A fixed number of probes is kept in flight, as in Glatard et al., or they arrive at random. Ctrl-C ends a run
    cleanly; after a kill, `--resume` continues it. Commands, URLs and headers may contain {job}, {attempt}, {probe} and
    {run}, which are filled in.
    """


def _parameter(field: dataclasses.Field[Any]) -> Callable[[Any], Any]:
    about = field.metadata
    if "argument" in about:
        count = -1 if about["argument"].endswith("...") else 1
        return click.argument(field.name, metavar=about["argument"], nargs=count, type=click.UNPROCESSED)
    flag = f"--{field.name.replace('_', '-')}"
    kinds: dict[str, Any] = {
        "flag": None,
        "text": str,
        "seconds": cli.positive_duration,
        "file": click.Path(exists=True, dir_okay=False, path_type=Path),
        "choice": click.Choice(about["choices"]),
    }
    written = f"{flag}/--no-{flag[2:]}" if about["kind"] == "flag" else flag
    metavar = "DURATION" if about["kind"] == "seconds" else None
    settings = {"metavar": metavar, "type": kinds[about["kind"]], "default": field.default}
    return click.option(written, field.name, help=about["help"], show_default=field.default is not None, **settings)


def _run(target: Target, output: Path | None, dry_run: bool, as_json: bool, **parsed: Any) -> None:
    from latfit.measure import Attempt, Limits, Pace, measure

    plan, breaker = _plan(parsed)
    if parsed["arrivals"] == "poisson" and parsed["rate"] is None:
        raise click.UsageError("--arrivals poisson needs --rate, for example --rate 2/s")
    if parsed["attempts"] is not None and plan.kind != "jobs":
        raise click.UsageError("--attempts is for jobs: give --timeout, --before, --policy or --tracker too")
    if dry_run:
        how = f", {plan.kind} by {plan.text}" if plan.text else ""
        cli.say(f"would submit, {parsed['in_flight']} at a time{how}:", err=True)
        click.echo("\n".join(target.shown(Attempt("RUN", n, n, 1)) for n in (1, 2)))
        return
    if output is None:
        raise click.UsageError("name a log to write with -o LOG")
    open_ended = parsed["duration"] is not None or parsed["until_precise"] is not None
    jobs = parsed["probes"] or (100_000 if open_ended else 1000)
    many = plan.kind != "probes"
    limits = Limits(
        jobs=jobs,
        submissions=parsed["submissions"] or jobs * (3 if many else 1),
        attempts=parsed["attempts"] or (MAX_JOB_ATTEMPTS if plan.kind == "jobs" else 2 if many else 1),
        duration=parsed["duration"],
    )
    pause = target.pause if parsed["pause"] is None else parsed["pause"]
    pace = Pace(parsed["in_flight"], parsed["arrivals"], parsed["rate"], pause, parsed["cutoff"])
    options = {name: parsed[name] for name in ("until_precise", "resume", "seed")}
    options |= {"pace": pace, "limits": limits, "plan": plan, "breaker": breaker}
    with cli.progress.reports(_progress_text) as report:
        done = measure(target, output, progress=report, **options)
    if parsed["tracker"]:
        tracker: Any = plan.tracker
        with whole_file(parsed["tracker"]) as part:
            part.write_text(tracker.to_json())
    if as_json:
        click.echo(cli.document_text(done.to_dict()))
        return
    cli.notify("warning", done.warnings)
    cli.notify("note", done.notes)
    if done.cleared:
        cli.notify("note", [f"cleared what a killed run left behind: {done.cleared}"])
    counts = ", ".join(f"{count} {status}" for status, count in done.outcomes.items() if count)
    cli.say(f"{done.log}: {counts or 'no probe'} in {seconds(done.seconds)}; {done.reason}", err=True)
    if breaker is not None and breaker.tripped:
        raise ProbeError(done.reason)


def _plan(parsed: dict[str, Any]) -> tuple[Plan, Any]:
    from latfit.measure import Breaker, careful, paired, policy_plan, single, tracked

    chosen = [name for name in ("again_after", "timeout", "policy", "tracker") if parsed[name] is not None]
    if len(chosen) > 1 or (parsed["before"] and chosen not in ([], ["timeout"])):
        raise click.UsageError("--again-after, --timeout (or --before), --policy and --tracker exclude each other")
    policy, predicted = parsed["policy"], None
    if parsed["before"]:
        from latfit.measure.run import timeouts_for_jobs

        timeouts, predicted = timeouts_for_jobs(parsed["before"], parsed["timeout"])
        if not parsed["timeout"]:
            policy = f"schedule(timeouts={[*timeouts, max(parsed['cutoff'], timeouts[-1])]})"
    guard = Breaker(predicted) if parsed["breaker"] else None
    if parsed["again_after"]:
        if parsed["again_after"] >= parsed["cutoff"]:
            raise click.UsageError("--again-after must be shorter than --cutoff")
        return paired(parsed["again_after"]), None
    if parsed["timeout"]:
        return careful(parsed["timeout"]), guard
    if policy:
        with cli.wrong_usage("--policy"):
            return policy_plan(policy), guard
    if parsed["tracker"]:
        import latfit

        try:
            return tracked(latfit.Tracker.from_json(parsed["tracker"].read_bytes().decode(errors="replace"))), guard
        except OSError as error:
            raise ProbeError(f"{parsed['tracker']}: cannot be read ({error.strerror})") from error
    return single(), None


def _progress_text(counts: Counts, known: Precision | None) -> str:
    ended = ", ".join(f"{count} {status}" for status, count in counts.ended.items())
    text = f"{counts.out} in flight, {ended or 'none back yet'}"
    if known is not None and known.low is not None:
        best = "no timeout" if known.timeout is None else f"timeout {seconds(known.timeout)}"
        text += f"; {best} ({seconds(known.low)} to {seconds(known.high)})"
    return text
