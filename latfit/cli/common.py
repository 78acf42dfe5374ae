"""What the commands share: how options are written, those of a log and of a decision, output, and how errors end."""

from __future__ import annotations

import io
import json
import math
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import click

import latfit
from latfit.errors import UNPRINTABLE, LatfitError, LawError, LogError, hint, printable
from latfit.units import LONGEST, SHORTEST, UNITS, parse_duration, seconds

if TYPE_CHECKING:
    from latfit.decision import Prepared, Warned
    from latfit.laws import ParametricLaw
    from latfit.logs import HistogramLog, LogFacts
    from latfit.report.layout import Section

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
MAX_ERROR_LENGTH = 2000  # characters; what a user wrote may be longer, and a log's names too
MODULES = {
    "fit": ("fit", "outliers"),
    "strategies": ("replay", "compare", "agents"),
    "changes": ("drift", "watch"),
    "applying": ("settings", "verify"),
    "logs": ("plot", "read", "convert", "laws", "formats"),
}
"""The commands of each module that has several; every other command is in the module of its name."""
TONES = {"set": "green", "wait": "yellow", "ask": "red"}
STAGES = {
    "logs": "reading",
    "fitting": "fitting laws",
    "laws": "fitting laws",
    "evidence": "checking whether attempts are independent",
    "decision": "choosing a schedule",
    "restart": "comparing timeouts",
    "resample": "resampling for the intervals",
    "tracking": "following the log",
    "verify": "comparing with the prediction",
    "report": "writing",
    "plots": "drawing",
}
"""What a progress line calls the work of each package, the one that works at that moment."""


class Commands(click.Group):
    """All commands in `groups` with their summaries; here a LatfitError becomes a line and exit code 1.

    A first word that names a log is the log of `analyze`.
    """

    def __init__(self, *, groups: dict[str, dict[str, str]], **group: Any) -> None:
        super().__init__(**group)
        self.groups = groups
        self.summaries = {name: text for commands in groups.values() for name, text in commands.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.summaries:
            return None
        module = next((module for module, names in MODULES.items() if cmd_name in names), cmd_name)
        command: click.Command = getattr(import_module(f"latfit.cli.{module}"), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if word not in self.summaries and (word == "-" or set("./*") & set(word) or Path(word).exists()):
            args = ["analyze", *args]
        elif word not in self.summaries and not word.startswith("-"):
            ctx.fail(f"No such command {word!r}{hint(word, self.summaries)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in self.groups.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))

    def main(self, *args: Any, **kwargs: Any) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # a terminal without "×" is no reason to fail
        try:
            with stages():
                return super().main(*args, **kwargs)
        except LatfitError as error:
            message = " ".join(str(error).split())
        except OSError as error:
            message = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
        except MemoryError:
            message = "there is not enough memory for this"
        say(f"latfit: {message if len(message) <= MAX_ERROR_LENGTH else message[:MAX_ERROR_LENGTH] + ' …'}", err=True)
        sys.exit(1)


def say(text: str, *, err: bool = False) -> None:
    """Print a line; a name from a log or of a file cannot move the cursor or clear the screen."""
    click.echo(printable(text), err=err)


def notify(kind: str, messages: Iterable[str]) -> None:
    """Print notes or warnings to stderr, one a line."""
    for message in messages:
        say(f"{kind}: {message}", err=True)


def show(
    document: dict[str, Any],
    sections: Iterable[Section],
    *,
    as_json: bool,
    warnings: Iterable[Warned] | None = None,
) -> None:
    """Print a document as JSON with its `warnings`, or sections as text, the warnings on stderr."""
    if warnings is not None:
        document["warnings"] = [{"code": warning.code, "message": warning.message} for warning in warnings]
    if as_json:
        click.echo(document_text(document))
        return
    from latfit.report.layout import as_text

    notify("warning", [warning.message for warning in warnings or ()])
    width = min(max(shutil.get_terminal_size().columns, 60), 200)
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    text = as_text(sections, width=width, styled=lambda line, tone: click.style(line, TONES.get(tone), bold=True))
    click.echo(text, nl=False, color=False if plain else None)


def write_together(
    folder: Path, texts: Mapping[str, str], figures: Mapping[str, Callable[[Path], None]] | None = None
) -> None:
    """Write texts and figures into a folder: all are written before the first one takes its place."""
    from latfit._system import whole_files

    figures = figures or {}
    folder.mkdir(parents=True, exist_ok=True)
    with whole_files([folder / name for name in (*texts, *figures)]) as parts:
        for part, text in zip(parts, texts.values(), strict=False):
            part.write_text(text, encoding="utf-8")
        for part, draw in zip(parts[len(texts) :], figures.values(), strict=True):
            draw(part)
    drawn = f" and {len(figures)} figures" if figures else ""
    notify("note", [f"wrote {', '.join(texts)}{drawn} into {folder}"])


def document_text(document: Mapping[str, Any]) -> str:
    """A document as JSON: finite numbers only, null for what is infinite or absent."""
    text = json.dumps(json_values(document), ensure_ascii=False, indent=2, allow_nan=False)
    return "\n".join(UNPRINTABLE.sub(lambda sign: f"\\u{ord(sign[0]):04x}", line) for line in text.split("\n"))


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


def call(function: Callable[..., T], *arguments: Any, **parsed: Any) -> T:
    """Call a function with those of the parsed options that it takes."""
    names = signature(function).parameters
    return function(*arguments, **{name: value for name, value in parsed.items() if name in names})


def command(*examples: str) -> Callable[[Callable[..., Any]], click.Command]:
    """A command whose help ends in examples."""
    title = "Examples" if len(examples) > 1 else "Example"
    return click.command(epilog="\n  ".join((f"\b\n{title}:", *examples)))


def option(written: str, help: str, *names: str, **settings: Any) -> Callable[[F], F]:  # noqa: A002
    """An option as its help shows it: `--cost C`, `-o --output DIR`, `--failed [retry|lost]`; without a value, a flag.

    A value that ends in `...` may be given several times. Its name says what it may be (`VALUE_TYPES`) unless `type`
    does; `names` may rename the parameter.
    """
    *flags, value = written.removesuffix("...").split()
    settings["multiple"] = written.endswith("...")
    if value.startswith("-"):
        flags.append(value)
        settings["is_flag"] = True
    elif value.startswith("["):
        settings["type"] = click.Choice(value[1:-1].split("|"))
    else:
        settings["metavar"] = value
        settings.setdefault("type", VALUE_TYPES.get(value))
    return click.option(*flags, *names, help=help, show_default=bool(settings.get("default")), **settings)


def options(*several: Callable[[Any], Any]) -> Callable[[F], F]:
    """Several options as one decorator, listed in their order."""

    def decorate(function: F) -> F:
        for each in reversed(several):
            function = each(function)
        return function

    return decorate


@contextmanager
def wrong_usage(parameter: str | None) -> Iterator[None]:
    """A LatfitError about the value of a parameter is wrong usage (exit code 2), not bad data."""
    try:
        yield
    except LatfitError as error:
        raise click.BadParameter(str(error), param_hint=parameter) from error


def duration(text: str | float) -> float:
    """A time of at least 0 in seconds, or with a unit: 358, 350ms, 6m, 1h30m."""
    with wrong_usage(None):
        return parse_duration(text) if isinstance(text, str) else float(text)


def positive_duration(text: str | float) -> float:
    """A time greater than 0."""
    if (length := duration(text)) == 0:
        raise click.BadParameter(f"{text!r} must be greater than 0")
    return length


def share(text: str) -> float:
    """A share of 1, or a percentage: 0.3 or 30%."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value < math.inf:
        raise click.BadParameter(f"{text!r} is not a share: write 30% or 0.3")
    return value


def _name_and_value(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{text!r} is not of the form NAME=VALUE")
    return name.strip(), value.strip()


def _figure_file(path: str) -> str:
    if not path.endswith((".png", ".svg", ".pdf")):
        raise click.BadParameter(f"{path}: the ending must be one of .png, .svg, .pdf")
    return path


VALUE_TYPES = {
    "SECONDS": positive_duration,
    "T": positive_duration,
    "T[,T]": lambda text: tuple(positive_duration(part.strip()) for part in text.split(",")),
    "C": duration,
    "N": click.IntRange(1),
    "K": click.IntRange(1),
    "COUNT": click.IntRange(0),
    "SHARE": click.FloatRange(0, 1),
    "A": click.FloatRange(0, 1, min_open=True, max_open=True),
    "WIDTH": lambda text: text if positive_duration(text) else None,
    "COL[,COL]": lambda text: tuple(name.strip() for name in text.split(",")) if text else (),
    "FILE": click.Path(dir_okay=False),
    "FILE.prom": click.Path(dir_okay=False),
    "FILE.png|svg|pdf": _figure_file,
    "NAME=LAW|LOG": _name_and_value,
    "ROLE=NAME": _name_and_value,
    "STATUS=WORD[,WORD]": _name_and_value,
}
"""What an option takes whose value has this name in its help."""

log_argument = click.argument("log", metavar="LOG")
cutoff_and_failed_options = options(
    option("--cutoff SECONDS", "When a probe still out counts as an outlier (default: from the log)."),
    option(
        "--failed [retry|completed|lost]",
        "How to take probes that failed visibly: resubmitted at once, as completed, or as lost.",
        default="retry",
    ),
)
outcome_options = options(
    cutoff_and_failed_options,
    option(
        "--censoring [auto|independent|failed|lost]",
        "How to take probes given up early: by what the log shows, as censored, as failed then, or as lost.",
        default="auto",
    ),
)
"""Which sample a log becomes, the same in every command."""
cost_option = option("--cost C", "Seconds that each restart costs.", default=0.0)
seed_option = option("--seed COUNT", "Seed of all random numbers.", default=0)
decision_options = options(
    outcome_options,
    cost_option,
    option(
        "--risk SHARE",
        "The largest loss allowed if every retry takes as long as the first attempt would have; 0% always waits.",
        type=share,
        default="30%",
    ),
    option("--accept-implausible", "Answer even if that is over 100 times faster, or a timeout longer than the log."),
    option("--resamples COUNT", "Bootstrap resamples for the intervals; 0 for none.", default=199),
    seed_option,
)
"""How a sample becomes a decision, the same in every command that decides."""
rho_option = option("--rho R", "The share that never returns; with LOG, rescale to it.", type=float)
wall_clock_option = option("--wall-clock C", "Seconds each job itself runs.", default=0.0)
current_option = option("--current T", "The timeout in use now, to see what it costs.")
json_option = option("--json", "Print one JSON document and nothing else on stdout.", "as_json")
spreadsheet_option = option(
    "--spreadsheet", "Put ' before texts that a spreadsheet would run as formulas (=, +, -, @)."
)
log_options = options(
    option("--format NAME", "The log's format (default: recognised; see `latfit formats`)."),
    option("--pattern REGEX", "Free text: finds a probe in a line; its named groups, (?P<latency>...), are columns."),
    option(
        "--column ROLE=NAME...", "Which column is the latency, submitted, ended, status or id; an empty name: none."
    ),
    option("--status STATUS=WORD[,WORD]...", "What the log's own words mean: completed, failed, censored or lost."),
    option(f"--unit [{'|'.join(UNITS)}]", "The unit of the latency column (default: by its name, else s)."),
    option("--time-format FORMAT", "iso, epoch, epoch-ms, epoch-us, epoch-ns or a strptime pattern."),
    option("--timezone ZONE", "The zone of times without an offset (default: UTC)."),
    option("--year YEAR", "The first year of a log that writes no years.", type=click.IntRange(1970, 9999)),
    option("--where COLUMN=VALUE...", "Only rows with this value; also != (another value) and ~ (a regex)."),
    option("--since TIME", "Only probes submitted from then on: 2026-03-01T12:00, or 7d before the log's end."),
    option("--until TIME", "Only probes submitted before then; as for --since."),
    option("--max-refused SHARE", "The share of rows that may be refused before it is an error.", default=0.1),
)
"""How a log is read; `read_arguments` collects them."""
log_and_json_options = options(log_options, json_option)


def read_arguments(parsed: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments of `read_log` from the parsed `log_options`."""
    from latfit.logs.formats import FORMATS, ROLES, Condition, ReadOptions
    from latfit.sample import STATUSES

    choices = {"format": sorted(FORMATS), "column": ROLES, "status": STATUSES}
    names = {"format": [parsed["format"]] if parsed["format"] is not None else []}
    names |= {flag: [name for name, _ in parsed[flag]] for flag in ("column", "status")}
    for flag, allowed in choices.items():
        for name in names[flag]:
            if name not in allowed:
                why = f"{name!r} is not one of {', '.join(allowed)}{hint(name, allowed)}"
                raise click.BadParameter(why, param_hint=f"--{flag}")
    with wrong_usage("--where"):
        for text in parsed["where"]:
            Condition.parse(text)
    with wrong_usage("--pattern"):
        ReadOptions(pattern=parsed["pattern"])
    kept = ("format", "unit", "time_format", "timezone", "year", "where", "since", "until", "pattern", "max_refused")
    statuses = {word.strip(): status for status, words in parsed["status"] for word in words.split(",")}
    return {**{name: parsed[name] for name in kept}, "columns": dict(parsed["column"]), "statuses": statuses}


def load_log(log: str, parsed: Mapping[str, Any], **how: Any) -> latfit.ProbeLog:
    """The probes of a LOG argument; guesses and refusals are printed to stderr."""
    from latfit.logs import HistogramLog

    probes = open_log(log, parsed, **how)
    if isinstance(probes, HistogramLog):
        raise LogError(probes.not_probes())
    return probes


def open_log(log: str, parsed: Mapping[str, Any], **how: Any) -> latfit.ProbeLog | HistogramLog:
    """What a LOG argument holds; guesses and refusals are printed to stderr."""
    from latfit import logs

    with reading_line() as progress:
        opened = logs.open_log(log, progress=progress, **read_arguments(parsed), **how)
    if isinstance(opened, logs.ProbeLog):
        notify_reading(opened.facts)
    return opened


def notify_reading(facts: LogFacts) -> None:
    """Print to stderr what was guessed, skipped and refused."""
    from latfit.report.answers import reading_notes

    notes, warnings = reading_notes(facts)
    notify("note", notes)
    notify("warning", warnings)


def prepared(log: str | latfit.ProbeLog, parsed: Mapping[str, Any]) -> Prepared:
    """The sample that LOG is decided on; a cutoff that was not given is printed to stderr."""
    from latfit.decision import prepare
    from latfit.evidence import probes_of

    probes = load_log(log, parsed, own_columns=False) if isinstance(log, str) else log
    case = prepare(probes_of(probes), call(latfit.Options, **parsed))
    if parsed["cutoff"] is None:
        cutoff = case.cutoff
        notify("note", [f"the cutoff is {seconds(cutoff.cutoff)}: {cutoff.reason}; change it with --cutoff"])
    return case


def written_law(text: str) -> ParametricLaw:
    """The law that an option writes; one whose median is no possible latency is refused."""
    import numpy as np

    law = latfit.parse_law(text)
    with np.errstate(all="ignore"):
        median = float(law.ppf(0.5))
    if not SHORTEST <= median <= LONGEST:
        raise LawError(f"the median of {text[:80]} is {median:g} s: check the parameters")
    return law


class ProgressLine:
    """A line on stderr, on a terminal only, rewritten five times a second after `after` seconds, wiped at the end."""

    shown = 0  # lines that are being written now

    def __init__(self, text: Callable[..., str], *, after: float = 0.0) -> None:
        self.text, self.next, self.width = text, time.monotonic() + after, 0

    def __enter__(self) -> Self | None:
        ProgressLine.shown += 1
        return self if sys.stderr and sys.stderr.isatty() else None

    def __call__(self, *state: Any) -> None:
        if (now := time.monotonic()) > self.next:
            text = self.text(*state)
            self.next, self.width = now + 0.2, max(self.width, 60, len(text))
            click.echo(f"\r{text.ljust(self.width)}", err=True, nl=False)

    def __exit__(self, *_: object) -> None:
        ProgressLine.shown -= 1
        self.wipe()

    def wipe(self) -> None:
        if self.width:
            click.echo("\r" + " " * self.width + "\r", err=True, nl=False)


@contextmanager
def stages() -> Iterator[None]:
    """Name the stage that a command is in, once it has taken a second: the package whose code runs now."""
    done, command_thread, start = threading.Event(), threading.get_ident(), time.monotonic()

    def watch() -> None:
        line = ProgressLine(lambda stage: f"{stage} … {time.monotonic() - start:.0f} s", after=1.0)
        while not done.wait(0.2):
            frame, stage = sys._current_frames().get(command_thread), None
            while frame is not None and stage is None:
                package = str(frame.f_globals.get("__name__")).removeprefix("latfit.").partition(".")[0]
                stage, frame = STAGES.get(package), frame.f_back
            if stage is not None and not ProgressLine.shown:
                line(stage)
        line.wipe()

    thread = threading.Thread(target=watch, daemon=True)
    if sys.stderr and sys.stderr.isatty():
        thread.start()
    try:
        yield
    finally:
        done.set()
        if thread.is_alive():
            thread.join()


def reading_line() -> ProgressLine:
    """How many bytes have been read, once that has taken a second."""

    def text(done: int, total: int | None) -> str:
        return f"reading: {done / 1e6:.0f}" + (f" of {total / 1e6:.0f} MB ({done / total:.0%})" if total else " MB")

    return ProgressLine(text, after=1.0)
