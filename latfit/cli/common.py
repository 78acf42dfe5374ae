"""What the commands share: the syntax of options, opening logs, output, progress, and errors."""

from __future__ import annotations

import io
import json
import math
import os
import re
import shutil
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.resources import files
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

import latfit
from latfit.errors import UNPRINTABLE, LatfitError, LawError, LogError, hint, printable
from latfit.units import LONGEST, SHORTEST, parse_duration, seconds

if TYPE_CHECKING:
    from latfit.decision import Prepared, Warned
    from latfit.laws import ParametricLaw
    from latfit.logs import HistogramLog, LogFacts
    from latfit.report.layout import Section

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
            message = "there is not enough memory"
        say(f"latfit: {message if len(message) <= MAX_ERROR_LENGTH else message[:MAX_ERROR_LENGTH] + ' …'}", err=True)
        sys.exit(1)


def say(text: str, *, err: bool = False) -> None:
    """Print a line; names from logs and of files cannot move the cursor or clear the screen."""
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
    """Call a function with those of the parsed options that it takes and that the user or a default set."""
    names = signature(function).parameters
    options = {name: value for name, value in parsed.items() if name in names and value is not None}
    return function(*arguments, **options)


@cache
def _descriptions() -> dict[str, dict[str, str]]:
    return tomllib.loads((files("latfit.cli") / "commands.toml").read_text(encoding="utf-8"))


def command(function: Callable[..., Any]) -> click.Command:
    """A command that takes what commands.toml says under its name; its docstring is its help."""
    name = function.__name__
    takes = parameters(_descriptions()[name]["takes"])
    return click.command(epilog=examples(name))(with_parameters(takes, function))


def examples(name: str) -> str:
    """The examples of a command, as its help ends."""
    lines = _descriptions()[name]["examples"].strip().split("\n")
    return "\n  ".join(("\b\nExamples:" if len(lines) > 1 else "\b\nExample:", *lines))


def with_parameters(parameters: Iterable[Callable[[Any], Any]], function: Callable[..., Any]) -> Callable[..., Any]:
    """A function with parameters of the command line, in their order."""
    for parameter in reversed(list(parameters)):
        function = parameter(function)
    return function


def parameters(description: str) -> Iterator[Callable[[Any], Any]]:
    """The arguments and options that a text in commands.toml describes, one a line."""
    for line in description.strip().splitlines():
        written, _, meaning = line.partition("  ")
        if written.startswith("("):
            yield from parameters(_descriptions()["shared"][written[1:-1]])
        elif written.startswith("-"):
            yield _option(written, meaning)
        else:
            metavar, _, name = written.partition(" as ")
            several, optional = metavar.endswith("..."), metavar.startswith("[")
            name = name or metavar.strip("[].").lower()
            yield click.argument(name, metavar=metavar, nargs=-1 if several else 1, required=not optional)


def _option(written: str, meaning: str) -> Callable[[Any], Any]:
    parts = re.fullmatch(r"(-\S+(?: --\S+)?)(?: (?!=|as )(\S+?)(\.\.\.)?)?(?: = (\S+))?(?: as (\w+))?", written)
    assert parts is not None, written
    flags, value, several, default, name = parts.groups()
    settings: dict[str, Any] = {"help": meaning, "multiple": several is not None}
    if default == "required":
        settings["required"] = True
    elif default is not None or "/" in flags:
        settings |= {"default": default, "show_default": default not in (None, "0")}
    if value is None:
        settings["is_flag"] = True
    elif value.startswith("["):
        settings["type"] = click.Choice(value[1:-1].split("|"))
    else:
        settings |= {"metavar": value, "type": VALUE_TYPES.get(value)}
    return click.option(*flags.split(), *([name] if name else []), **settings)


@contextmanager
def wrong_usage(parameter: str | None) -> Iterator[None]:
    """A LatfitError about the value of a parameter is wrong usage (exit code 2), not bad data."""
    try:
        yield
    except LatfitError as error:
        raise click.BadParameter(str(error), param_hint=parameter) from error


def duration(text: str) -> float:
    """A time of at least 0 in seconds, or with a unit: 358, 350ms, 6m, 1h30m."""
    with wrong_usage(None):
        return parse_duration(text)


def positive_duration(text: str) -> float:
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


def _share_of_one(text: str) -> float:
    if not 0 < (value := share(text.strip())) < 1:
        raise click.BadParameter(f"{text!r} is not a share between 0 and 1; write for example 5%")
    return value


def _rate(text: str) -> float:
    number, _, unit = text.partition("/")
    try:
        rate = float(number) / (parse_duration(f"1{unit.strip()}") if unit else 1.0)
    except (ValueError, LatfitError):
        rate = 0.0
    if not 0 < rate < math.inf:
        raise click.BadParameter(f"{text!r} is not a rate; write for example 2/s or 30/min")
    return rate


def _window(text: str) -> str:
    if positive_duration(text) % 1:
        raise click.BadParameter(f"{text!r} is not a time window: use whole seconds, such as 90s, 1h or 7d")
    return text


def _name_and_value(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{text!r} is not of the form NAME=VALUE")
    return name.strip(), value.strip()


def _figure_file(path: str) -> str:
    if not path.endswith((".png", ".svg", ".pdf")):
        raise click.BadParameter(f"{path}: the ending must be one of .png, .svg, .pdf")
    return path


VALUE_TYPES: dict[str, Any] = {
    **dict.fromkeys(("SECONDS", "T"), positive_duration),
    **dict.fromkeys(("C", "T>=0"), duration),
    "T[,T]": lambda text: tuple(positive_duration(part.strip()) for part in text.split(",")),
    **dict.fromkeys(("N", "K"), click.IntRange(1)),
    **dict.fromkeys(("COUNT", "K>=0"), click.IntRange(0)),
    "YEAR": click.IntRange(1970, 9999),
    "R": float,
    "RATIO": click.FloatRange(0, 1, max_open=True),
    "SHARE": click.FloatRange(0, 1),
    "SHARE%": _share_of_one,
    "LOSS": share,
    "B": click.FloatRange(0, 1e300, min_open=True),
    "A": click.FloatRange(0, 1, min_open=True, max_open=True),
    "N/s": _rate,
    "WIDTH": lambda text: text if positive_duration(text) else None,
    "WINDOW": _window,
    "COL[,COL]": lambda text: tuple(name.strip() for name in text.split(",")) if text else (),
    **dict.fromkeys(("FILE", "FILE.prom"), click.Path(dir_okay=False)),
    **dict.fromkeys(("OUT", "OUT.parquet|csv|jsonl", "STATE"), Path),
    "FILE.png|svg|pdf": _figure_file,
    **dict.fromkeys(("NAME=LAW|LOG", "ROLE=NAME", "STATUS=WORD[,WORD]"), _name_and_value),
}
"""What a value of this name in commands.toml may be; others are any text."""


def read_arguments(parsed: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments of `read_log` from the parsed options `(log)` of commands.toml."""
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
    """A line on stderr with what a command is doing: on a terminal only, after one second.

    It names the stage, by the package whose code is running, unless the running function reports more.
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
    frame, at_work = sys._current_frames().get(thread), ["starting"]
    while frame is not None:
        _, _, module = str(frame.f_globals.get("__name__")).partition("latfit.")
        if module and frame.f_code.co_name == "<module>":  # an import
            return "starting"
        at_work.append(STAGES.get(module.partition(".")[0], ""))
        frame = frame.f_back
    at_work = [stage for stage in at_work if stage]
    return next((stage for stage in at_work[:0:-1] if stage != STAGES["decision"]), at_work[-1])


def bytes_read(done: int, total: int | None) -> str:
    """The text of a progress line while a log is read."""
    return f"reading: {done / 1e6:.0f}" + (f" of {total / 1e6:.0f} MB ({done / total:.0%})" if total else " MB")
