"""The rule: exit 0, 1 or 2, one clear line, no traceback or warning, bounded time and memory, no row lost."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from click.testing import CliRunner

from fuzzing import page, states, words
from fuzzing.agree import disagreements, few_laws
from fuzzing.cases import AGREE, LOG, OUTPUT, Case
from fuzzing.sane import insane
from latfit.cli import main
from latfit.errors import LatfitError
from latfit.laws import parse_law
from latfit.logs import read_log
from latfit.sample import LatencySample

SECONDS = 10
HANGS = 180
MEMORY = 1 << 30
FEW = ("exponential",)


class TooLong(BaseException):
    """More than the allowed time has passed; no handler of errors may catch it."""


def broken(case: Case, folder: Path) -> list[str]:
    """What the case breaks of the rule, run in this process."""
    log = folder / "log"
    log.write_bytes(case.content)
    told: list[str] = []
    seconds = 4 * SECONDS if case.arguments[:1] == (AGREE,) else SECONDS
    _reset_peak()
    try:
        with (
            _limited(seconds), warnings.catch_warnings(),
            nullcontext() if case.every_law else few_laws(*(() if case.arguments[:1] == (AGREE,) else FEW)),
        ):  # fmt: skip
            warnings.simplefilter("error")
            told += _told(case, folder)
    except TooLong:
        told.append(f"takes more than {seconds} s: {traceback.format_exc(limit=-3)}")
    except Exception:
        told.append(traceback.format_exc())
    peak = _peak()
    if peak > MEMORY:
        told.append(f"takes {peak >> 20} MiB")
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return told


def _told(case: Case, folder: Path) -> list[str]:
    """What a case breaks beside its limits of time and memory."""
    if case.kind in states.KINDS:
        return states.KINDS[case.kind][1](case.content, folder)
    if case.kind == "page":
        return page.wrong(case.content, folder, case.seed)
    told: list[str] = []
    if case.kind in words.CHECKS:
        told += words.wrong(case.kind, case.damage[0])
    if case.format:
        told += _counts(case, folder / "log")
    if case.kind == "law":
        told += _round_trip(case.arguments[2])
    if case.arguments[0] == AGREE:
        return told + disagreements(folder / "log", folder, **_known(case))
    return told + _command(case, folder)


def broken_in_a_shell(case: Case, folder: Path) -> list[str]:
    """The same for the installed command, as a process of its own: its exit, what it prints, its time and memory."""
    (folder / "log").write_bytes(case.content)
    command = [str(Path(sys.executable).parent / "latfit"), *_arguments(case, folder)]
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        # seconds of the processor: what other programs do meanwhile does not count
        limited = partial(resource.setrlimit, resource.RLIMIT_CPU, (SECONDS, SECONDS))
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, preexec_fn=limited)
        timer = threading.Timer(HANGS, process.kill)
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    stdout, stderr = ((folder / name).read_bytes().decode() for name in ("stdout", "stderr"))
    told = _printed(case, process.returncode, stdout, stderr)
    if process.returncode == -signal.SIGKILL:
        told.append(f"takes more than {SECONDS} s, or hangs")
    if usage.ru_maxrss << 10 > MEMORY:
        told.append(f"takes {usage.ru_maxrss >> 10} MiB")
    return told


def _arguments(case: Case, folder: Path) -> list[str]:
    places = ((LOG, str(folder / "log")), (OUTPUT, str(folder / "output")))
    words = []
    for word in case.arguments:
        place = next((path + word.removeprefix(name) for name, path in places if word.startswith(name)), word)
        words.append(place)
    return words


def _command(case: Case, folder: Path) -> list[str]:
    done = CliRunner().invoke(main, _arguments(case, folder))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return ["".join(traceback.format_exception(done.exception))]
    told = _printed(case, done.exit_code, done.stdout, done.stderr)
    if case.arguments[0] == "convert" and case.format and not done.exit_code:
        told += _converted(folder, _known(case))
    return told


def _printed(case: Case, code: int, stdout: str, stderr: str) -> list[str]:
    """What is wrong with an exit code and what was printed."""
    if "Traceback" in stderr or "Warning:" in stderr:
        return [f"stderr: {stderr}"]
    if code not in (0, 1, 2):
        return [f"exit code {code}: {stderr}"]
    lines = [line for line in stderr.splitlines() if line.startswith("latfit: ")]
    if code == 1 and (stdout or len(lines) != 1 or len(lines[0]) > 2100):
        return [f"exit code 1 with {len(lines)} lines of error and stdout {stdout[:200]!r}: {stderr}"]
    if code == 2 and (stdout or "Error" not in stderr):
        return [f"exit code 2 with stdout {stdout[:200]!r}: {stderr}"]
    if code or "--json" not in case.arguments:
        return []

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} in the JSON document")

    documents = stdout.splitlines() if case.arguments[0] == "watch" else [stdout]
    return [told for text in documents for told in insane(case.arguments[0], json.loads(text, parse_constant=refuse))]


@dataclass(frozen=True)
class Outcome:
    """The result of reading a log: its sample and notes, or the error."""

    sample: LatencySample | None = None
    refused: Mapping[str, int] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    error: str = ""
    format: str = ""

    @property
    def total(self) -> tuple[int, str] | None:
        """How many rows are accounted for, and as what they were read."""
        if self.sample is None:
            return None
        return self.sample.n + sum(self.refused.values()) + sum(self.skipped.values()), self.format

    def __str__(self) -> str:
        if self.sample is None:
            return self.error
        counts = {name: getattr(self.sample, name).total for name in ("completed", "failed", "censored")}
        return f"{counts}, {self.sample.lost} lost, refused {self.refused}, skipped {self.skipped}"


def _read(path: Path, known: Mapping[str, str]) -> Outcome:
    try:
        log = read_log(path, max_refused=1, **known)
    except LatfitError as error:
        return Outcome(error=f"{type(error).__name__}: {error}".replace(str(path), "log"))
    refused, sample = log.facts.refused, log.sample()
    if sum(refused.reasons.values()) != refused.count or any(each.line < 1 for each in refused.first):
        raise AssertionError(f"refusals do not add up: {refused}")
    return Outcome(sample, refused.reasons, log.facts.skipped, format=log.facts.format)


def _known(case: Case) -> dict[str, str]:
    """The reading options of the command, if any."""
    words = case.arguments
    return {name: words[words.index(f"--{name}") + 1] for name in ("format", "pattern") if f"--{name}" in words}


def _counts(case: Case, path: Path) -> list[str]:
    """Rows in = completed + failed + censored + lost + refused + skipped, however the log is read."""
    known = _known(case)
    whole, told = _read(path, known), []
    if case.plain is not None:
        plain = path.parent / "plain"
        plain.write_bytes(case.plain)
        unpacked = _read(plain, known)
        told += [] if unpacked == whole else [f"packed: {whole}; plain: {unpacked}"]
    total, format_read = whole.total or (None, "")
    if case.rows is not None and total is not None and format_read == case.format and total != case.rows:
        told.append(f"{case.rows} rows in the log, {total} accounted for: {whole}")
    return told


def _converted(folder: Path, known: Mapping[str, str]) -> list[str]:
    """What `convert` wrote is read back as it was."""
    output = next(path for path in folder.iterdir() if path.stem == "output")
    before = read_log(folder / "log", max_refused=1, **known)
    after = read_log(output, max_refused=1, columns={"id": ""})
    if before.counts != after.counts or after.facts.refused.count:
        return [f"{before.counts} is converted to {after.counts}, refused {after.facts.refused}"]
    measures = [(log.facts.queue, log.facts.work and not log.facts.queue) for log in (before, after)]
    return [] if measures[0] == measures[1] else [f"waits and run times become others: {measures}"]


def _round_trip(spec: str) -> list[str]:
    """A law that can be read can be written and read again."""
    try:
        law = parse_law(spec)
    except LatfitError as error:
        return [] if "\n" not in str(error) else [f"more than one line: {error}"]
    return [] if parse_law(law.spec()) == law else [f"{spec} is written as {law.spec()}"]


@contextmanager
def _limited(seconds: int) -> Iterator[None]:
    """Stop after so many seconds of work; what other programs do meanwhile does not count."""

    def stop(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _reset_peak() -> None:
    """Reset the peak of memory, where the system allows it."""
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text("5")


def _peak() -> int:
    """The peak of memory in bytes, 0 if unknown."""
    status = Path("/proc/self/status")
    return int(re.search(r"VmHWM:\s*(\d+)", status.read_text())[1]) << 10 if status.exists() else 0
