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
from typing import TYPE_CHECKING, Any, TypeVar

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
TONES = {"set": "green", "wait": "yellow", "ask": "red", "group": "cyan"}
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
    """All commands in groups, each with its module; here a LatfitError becomes a line and exit code 1.

    A first word that names a log is the log of `analyze`.
    """

    def __init__(self, *, groups: dict[str, dict[str, str]], **group: Any) -> None:
        super().__init__(**group)
        self.groups = groups
        self.modules = {name: module for commands in groups.values() for name, module in commands.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.modules:
            return None
        command: click.Command = getattr(import_module(f"latfit.cli.{self.modules[cmd_name]}"), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if word not in self.modules and (word == "-" or set("./*") & set(word) or Path(word).exists()):
            args = ["analyze", *args]
        elif word not in self.modules and not word.startswith("-"):
            ctx.fail(f"No such command {word!r}{hint(word, self.modules)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in self.groups.items():
            with formatter.section(title):
                known = ((name, self.get_command(ctx, name)) for name in commands)
                formatter.write_dl([(name, command.get_short_help_str(100)) for name, command in known if command])

    def main(self, *args: Any, **kwargs: Any) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # a terminal without "×" is no reason to fail
        try:
            with progress.shown():
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
    progress.wipe()
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
    progress.wipe()
    if as_json:
        click.echo(document_text(document))
        return
    from latfit.report.layout import as_text

    notify("warning", [warning.message for warning in warnings or ()])
    width = min(max(shutil.get_terminal_size().columns, 60), 200)
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    progress.wipe()
    text = as_text(sections, width=width, styled=lambda line, tone: click.style(line, TONES.get(tone), bold=True))
    click.echo(text, nl=False, color=False if plain else None)


def write_together(folder: Path, files: Mapping[str, str | Callable[[Path], None]]) -> None:
    """Write texts and draw figures into a folder: all are complete before the first one takes its place."""
    from latfit._system import whole_files

    folder.mkdir(parents=True, exist_ok=True)
    with whole_files([folder / name for name in files]) as parts:
        for part, content in zip(parts, files.values(), strict=True):
            if isinstance(content, str):
                part.write_text(content, encoding="utf-8")
            else:
                content(part)
    texts = [name for name, content in files.items() if isinstance(content, str)]
    drawn = f" and {len(files) - len(texts)} figures" if len(files) > len(texts) else ""
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
    if value is None or isinstance(value, (int, str)):
        return value
    return float(value) if math.isfinite(value) else None


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
    "LOSS": share,
    "B": click.FloatRange(0, 1e300, min_open=True),
    "A": click.FloatRange(0, 1, min_open=True, max_open=True),
    "WIDTH": lambda text: text if positive_duration(text) else None,
    "COL[,COL]": lambda text: tuple(name.strip() for name in text.split(",")) if text else (),
    "FILE": click.Path(dir_okay=False),
    "FILE.prom": click.Path(dir_okay=False),
    "OUT.parquet|csv|jsonl": Path,
    "STATE": Path,
    "FILE.png|svg|pdf": _figure_file,
    "NAME=LAW|LOG": _name_and_value,
    "ROLE=NAME": _name_and_value,
    "STATUS=WORD[,WORD]": _name_and_value,
}
"""What an option takes whose value has this name in its help."""

log_argument = click.argument("log", metavar="LOG")
cutoff_and_failed_options = options(
    option("--cutoff SECONDS", "When a probe still out counts as an outlier (default: from the log)."),
    option("--failed [retry|completed|lost]", "How failures count: retried at once, completed, lost.", default="retry"),
)
outcome_options = options(
    cutoff_and_failed_options,
    option(
        "--censoring [auto|independent|failed|lost]",
        "How probes given up early count; auto: by the log.",
        default="auto",
    ),
)
"""Which sample a log becomes, the same in every command."""
cost_option = option("--cost C", "Seconds that each restart costs.", default=0.0)
seed_option = option("--seed COUNT", "Seed of all random numbers.", default=0)
decision_options = options(
    outcome_options,
    cost_option,
    option("--risk LOSS", "The largest loss allowed if each retry repeats the first attempt; 0% waits.", default="30%"),
    option("--accept-implausible", "Answer even if that is over 100 times faster, or a timeout longer than the log."),
    option("--resamples COUNT", "Bootstrap resamples for the intervals; 0 for none.", default=199),
    seed_option,
)
"""How a sample becomes a decision, the same in every command that decides."""
rho_option = option("--rho R", "The share that never returns; with LOG, rescale to it.", type=float)
wall_clock_option = option("--wall-clock C", "Seconds each job itself runs.", default=0.0)
current_option = option("--current T", "The timeout in use now, to see what it costs.")
json_option = option("--json", "Print one JSON document and nothing else on stdout.", "as_json")
spreadsheet_option = option("--spreadsheet", "Put ' before texts that a spreadsheet would run (=, +, -, @).")
log_options = options(
    option("--format NAME", "The log's format (default: recognised; see `latfit formats`)."),
    option("--pattern REGEX", "Free text: finds a probe in a line; its named groups, (?P<latency>...), are columns."),
    option("--column ROLE=NAME...", "Which column is latency, submitted, ended, status or id; an empty name: none."),
    option("--status STATUS=WORD[,WORD]...", "What the log's own words mean: completed, failed, censored or lost."),
    option(
        f"--unit [{'|'.join(UNITS)}]",
        "The unit of the latency column (default: inferred; you are asked if it is unclear).",
    ),
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

    names = [("format", parsed["format"])] if parsed["format"] is not None else []
    names += [(flag, name) for flag in ("column", "status") for name, _ in parsed[flag]]
    for flag, name in names:
        allowed = {"format": sorted(FORMATS), "column": ROLES, "status": STATUSES}[flag]
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


def open_log(log: str, parsed: Mapping[str, Any], *, quiet: bool = False, **how: Any) -> latfit.ProbeLog | HistogramLog:
    """What a LOG argument holds; unless `quiet`, guesses and refusals are printed to stderr."""
    from latfit import logs

    with progress.reports(bytes_read) as report:
        opened = logs.open_log(log, progress=report, **read_arguments(parsed), **how)
    if isinstance(opened, logs.ProbeLog) and not quiet:
        notify_reading(opened.facts)
    return opened


def notify_reading(facts: LogFacts) -> None:
    """Print to stderr what was guessed, skipped and refused."""
    from latfit.report.answers import reading_notes

    for kind, messages in zip(("note", "warning"), reading_notes(facts), strict=True):
        notify(kind, messages)


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


class Progress:
    """A line on stderr that says what a command is doing: on a terminal only, after a second, until it ends.

    It names the stage, by the package whose code runs now, unless what is running reports more.
    """

    def __init__(self) -> None:
        self.reported, self.width, self.lock, self.done = "", 0, threading.Lock(), threading.Event()

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the line while a command works."""
        self.done.clear()
        thread = threading.Thread(target=self._rewrite, args=(threading.get_ident(), time.monotonic()), daemon=True)
        if sys.stderr and sys.stderr.isatty():
            thread.start()
        try:
            yield
        finally:
            self.done.set()
            if thread.is_alive():
                thread.join()
            self.wipe()

    @contextmanager
    def reports(self, text: Callable[..., str]) -> Iterator[Callable[..., None] | None]:
        """What a library function may call as it goes on; `text` writes the line from what it reports."""

        def report(*state: Any) -> None:
            self.reported = text(*state)

        try:
            yield report if sys.stderr and sys.stderr.isatty() else None
        finally:
            self.reported = ""

    def wipe(self) -> None:
        """Clear the line, before anything else is printed."""
        with self.lock:
            if self.width:
                click.echo(f"\r{' ' * self.width}\r", err=True, nl=False)
            self.width = 0

    def _rewrite(self, thread: int, start: float) -> None:
        pause = 1.0
        while not self.done.wait(pause):
            pause = 0.2
            text = self.reported or f"{_stage(thread)} … {time.monotonic() - start:.0f} s"
            text = text[: shutil.get_terminal_size().columns - 1]
            with self.lock:
                click.echo(f"\r{text.ljust(self.width)}", err=True, nl=False)
                self.width = len(text)


progress = Progress()


def _stage(thread: int) -> str:
    """What a thread is doing: the outermost package at work, the decision as a whole only if it is alone."""
    frame, stages = sys._current_frames().get(thread), ["starting"]
    while frame is not None:
        _, _, package = str(frame.f_globals.get("__name__")).partition("latfit.")
        if package and frame.f_code.co_name == "<module>":
            return "starting"
        stages.append(package.partition(".")[0])
        frame = frame.f_back
    at_work = [stage for stage in stages if stage in STAGES]
    return (
        STAGES[next((stage for stage in reversed(at_work) if stage != "decision"), "decision")]
        if at_work
        else stages[0]
    )


def bytes_read(done: int, total: int | None) -> str:
    """The text of a progress line while a log is read."""
    return f"reading: {done / 1e6:.0f}" + (f" of {total / 1e6:.0f} MB ({done / total:.0%})" if total else " MB")
