"""What the commands share: the options of a log, JSON, notes, progress, and how errors end."""

from __future__ import annotations

import io
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self, TypeVar

import click

from latfit.errors import UNPRINTABLE, LatfitError, printable
from latfit.units import UNITS, parse_duration

if TYPE_CHECKING:
    from latfit.logs import LogFacts, ProbeLog

F = TypeVar("F", bound=Callable[..., Any])
STATUSES = ("completed", "failed", "censored", "lost")
SAME = ("format", "unit", "time_format", "timezone", "year", "where", "since", "until", "pattern", "max_refused")
LONGEST = 2000  # characters of an error; what a user wrote may be longer, and a log's names too


class Commands(click.Group):
    """The group of all commands; the one place where a LatfitError becomes a line and exit code 1.

    `summaries` names the commands and says what each does; the command NAME is `latfit.cli.NAME.NAME`.
    """

    def __init__(self, *, summaries: dict[str, str], **group: Any) -> None:
        super().__init__(**group)
        self.summaries = summaries

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which they help a newcomer."""
        return list(self.summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command that is called, and no other."""
        if cmd_name not in self.summaries:
            return None
        command: click.Command = getattr(import_module(f"latfit.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.summaries.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with _clear_end():
            return super().invoke(ctx)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Parse what comes before the command; `--help` and `--version` print already here."""
        with _clear_end():
            return super().make_context(*args, **kwargs)


@contextmanager
def _clear_end() -> Iterator[None]:
    """No user ever sees a traceback for bad data, a full disk or a closed pipe."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without "×" is no reason to fail
    try:
        yield
        return
    except LatfitError as error:
        told = " ".join(str(error).split())
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(1) from None
    except OSError as error:
        told = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
    except MemoryError:
        told = "there is not enough memory for this"
    say(f"latfit: {told if len(told) <= LONGEST else told[:LONGEST] + ' …'}", err=True)
    raise click.exceptions.Exit(1)


def say(text: str, *, err: bool = False) -> None:
    """Print a line; a name from a log or of a file cannot move the cursor or clear the screen."""
    click.echo(printable(text), err=err)


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version as installed

        click.echo(f"latfit {installed('latfit')}")
        ctx.exit()


version = click.Option(
    ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)


class Mapped(click.ParamType):  # type: ignore[type-arg]  # generic only since click 8.4
    """NAME=VALUE on the command line."""

    name = "NAME=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Split at the first equals sign."""
        if isinstance(value, tuple):
            return value
        left, equals, right = str(value).partition("=")
        if not equals or not left:
            self.fail(f"{value!r} is not of the form NAME=VALUE", param, ctx)
        return left.strip(), right.strip()


class Seconds(click.ParamType):  # type: ignore[type-arg]
    """A time in seconds, or with a unit: 358, 350ms, 6m, 1h30m; greater than 0, or at least 0."""

    name = "duration"

    def __init__(self, *, zero: bool = False) -> None:
        self.zero = zero

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse, and refuse what is not a usable time."""
        try:
            seconds = float(value) if isinstance(value, (int, float)) else parse_duration(str(value))
        except LatfitError as error:
            self.fail(str(error), param, ctx)
        if not math.isfinite(seconds) or seconds < 0 or (seconds == 0 and not self.zero):
            self.fail(f"{value!r} must be finite and {'not negative' if self.zero else 'greater than 0'}", param, ctx)
        return seconds


class Width(click.ParamType):  # type: ignore[type-arg]
    """How wide windows of time are: a duration greater than 0, kept as it was written."""

    name = "width"

    def __init__(self, *, whole: bool = False) -> None:
        self.whole = whole

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check that it is a duration, where asked for of whole seconds."""
        if Seconds().convert(value, param, ctx) % 1 and self.whole:
            self.fail(f"{value!r} is not a time window: it must be of whole seconds, such as 90s, 1h or 7d", param, ctx)
        return str(value)


class Positive(click.ParamType):  # type: ignore[type-arg]
    """A finite number greater than 0, or at least 0."""

    name = "number"

    def __init__(self, *, zero: bool = False) -> None:
        self.zero = zero

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse, and refuse what is not a usable number."""
        try:
            number = float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number", param, ctx)
        if not math.isfinite(number) or number < 0 or (number == 0 and not self.zero):
            self.fail(f"{value!r} must be finite and {'not negative' if self.zero else 'greater than 0'}", param, ctx)
        return number


def log_options(function: F) -> F:
    """The options that say how a log is read; `read_options(kwargs)` collects them."""
    for option in reversed(
        [
            click.option("--format", "format", metavar="NAME",
                         help="The log's format (default: recognised; see `latfit formats`)."),
            click.option("--pattern", metavar="REGEX", help="Lines of free text: a regular expression that finds a "
                         "probe in a line; its named groups, such as (?P<latency>...), are the columns."),
            click.option("--column", "columns", type=Mapped(), multiple=True, metavar="ROLE=NAME",
                         help="Which column is the latency, submitted, ended, status or id; an empty name: none."),
            click.option("--status", "statuses", type=Mapped(), multiple=True, metavar="STATUS=WORD[,WORD]",
                         help="What the log's own words mean: completed, failed, censored or lost."),
            click.option("--unit", type=click.Choice(list(UNITS)),
                         help="The unit of the latency column (default: by its name, else s)."),
            click.option("--time-format", metavar="FORMAT",
                         help="iso, epoch, epoch-ms, epoch-us, epoch-ns or a strptime pattern."),
            click.option("--timezone", metavar="ZONE", help="The zone of times without an offset (default: UTC)."),
            click.option("--year", type=click.IntRange(1970, 9999),
                         help="The first year of a log that writes no years."),
            click.option("--where", multiple=True, metavar="COLUMN=VALUE",
                         help="Only rows with this value; also != (another value) and ~ (a regular expression)."),
            click.option("--since", metavar="TIME", help="Only probes submitted from then on: 2026-03-01T12:00, or a "
                         "duration before the log's end, such as 7d."),
            click.option("--until", metavar="TIME", help="Only probes submitted before then; as for --since."),
            click.option("--max-refused", type=click.FloatRange(0, 1), default=0.1, show_default=True, metavar="SHARE",
                         help="The share of rows that may be refused before it is an error."),
        ]
    ):  # fmt: skip
        function = option(function)
    return function


cutoff_option = click.option(
    "--cutoff",
    type=Seconds(),
    metavar="SECONDS",
    help="When a probe still out counts as an outlier (default: from the log).",
)
failed_option = click.option(
    "--failed", type=click.Choice(["retry", "completed", "lost"]), default="retry", show_default=True,
    help="How to take probes that failed visibly: resubmitted at once, as completed, or as lost.",
)  # fmt: skip
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document and nothing else on stdout."
)
seed_option = click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of all random numbers."
)
log_argument = click.argument("log", metavar="LOG")


def read_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments of `read_log` from the parsed `log_options`."""
    from latfit.logs.choosing import Condition
    from latfit.logs.formats import FORMATS, ROLES, ReadOptions

    if given["format"] is not None and given["format"] not in FORMATS:
        raise click.BadParameter(
            f"{given['format']!r} is not one of {', '.join(sorted(FORMATS))}", param_hint="--format"
        )
    for role, _ in given["columns"]:
        if role not in ROLES:
            raise click.BadParameter(f"{role!r} is not one of {', '.join(ROLES)}", param_hint="--column")
    statuses = {}
    for status, words in given["statuses"]:
        if status not in STATUSES:
            raise click.BadParameter(f"{status!r} is not one of {', '.join(STATUSES)}", param_hint="--status")
        statuses.update(dict.fromkeys((word.strip() for word in words.split(",")), status))
    with wrong_usage("--where"):
        for text in given["where"]:
            Condition.parse(text)
    with wrong_usage("--pattern"):
        ReadOptions(pattern=given["pattern"])
    same = {key: given[key] for key in SAME}
    return {**same, "columns": dict(given["columns"]), "statuses": statuses}


@contextmanager
def wrong_usage(option: str) -> Iterator[None]:
    """What is wrong with the value of an option is wrong usage, and no bad data."""
    try:
        yield
    except LatfitError as error:
        raise click.BadParameter(str(error), param_hint=option) from error


def column_names(text: str | None) -> tuple[str, ...]:
    """The columns of `--by COL[,COL]`."""
    return tuple(name.strip() for name in text.split(",")) if text else ()


def load_log(log: str, given: Mapping[str, Any]) -> ProbeLog:
    """The whole table of a LOG argument; guesses and refusals are told on stderr."""
    from latfit.logs import read_log

    with Reading() as progress:
        table = read_log(log, progress=progress, **read_arguments(given))
    tell(table.facts)
    return table


def tell(facts: LogFacts) -> None:
    """Say on stderr what was guessed, left out and refused."""
    for note in facts.notes:
        say(f"note: {note}", err=True)
    for reason, count in facts.skipped.items():
        say(f"note: {reason}, which are no probes, are left out: {count}", err=True)
    if facts.unchosen:
        say(f"note: rows left out by --where, --since and --until: {facts.unchosen}", err=True)
    refused = facts.refused
    if refused.count:
        reasons = ", ".join(f"{count} × {reason}" for reason, count in refused.reasons.items())
        first = refused.earliest
        told = f"rows refused: {refused.count} ({reasons}); the first, line {first.line}: {first.reason}"
        say(f"warning: {told}", err=True)
        for sentence in facts.advice:
            say(f"warning: {sentence}", err=True)


class ProgressLine:
    """A line on stderr, on a terminal only, rewritten five times a second and wiped at the end."""

    def __init__(self) -> None:
        self.start, self.shown, self.width = time.monotonic(), 0.0, 60

    def __enter__(self) -> Self | None:
        return self if sys.stderr and sys.stderr.isatty() else None

    def show(self, text: str) -> None:
        """Write a line over the last one, where that is a fifth of a second old."""
        now = time.monotonic()
        if now - self.shown > 0.2:
            click.echo(f"\r{text.ljust(self.width)}", err=True, nl=False)
            self.shown, self.width = now, max(self.width, len(text))

    def __exit__(self, *_: object) -> None:
        if self.shown:
            click.echo("\r" + " " * self.width + "\r", err=True, nl=False)


class Reading(ProgressLine):
    """How far reading has come, once it has taken a second."""

    def __call__(self, done: int, total: int | None) -> None:
        """Bytes read, and how many there are."""
        if time.monotonic() - self.start > 1:
            share = f" of {total / 1e6:.0f} MB ({done / total:.0%})" if total else " MB"
            self.show(f"reading: {done / 1e6:.0f}{share}")


def print_json(document: Mapping[str, Any]) -> None:
    """One document on stdout: finite numbers only, null for what is infinite or absent."""
    click.echo(document_text(document))


def document_text(document: Mapping[str, Any]) -> str:
    """A document as JSON."""
    import json

    text = json.dumps(json_values(document), ensure_ascii=False, indent=2, allow_nan=False)
    return "\n".join(UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", line) for line in text.split("\n"))


def json_values(value: Any) -> Any:
    """The same document with every number that JSON cannot write replaced by None."""
    if isinstance(value, Mapping):
        return {str(key): json_values(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_values(item) for item in value]
    if isinstance(value, bool) or value is None or isinstance(value, (int, str)):
        return value
    number = float(value)
    return number if math.isfinite(number) else None
