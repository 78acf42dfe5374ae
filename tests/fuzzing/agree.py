"""One log, four ways to its decision: `analyze`, `timeout`, `batch` and Python's `decide` must agree."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from latfit.cli import main
from latfit.decision import Decision, Options, decide
from latfit.errors import LatfitError
from latfit.evidence import probes_of
from latfit.laws import get_law, law_names
from latfit.logs import read_log

SHARED = ("timeout", "verdict", "basis", "exact_timeout", "expected_duration", "expected_duration_corrected",
          "submissions", "speed_up_vs_cutoff")  # fmt: skip
OF_TESTS = {"all-rejected", "rho-disagree"}  # what only a command says that tests laws
OF_READING = {"refused", "no-outcomes"}


@contextmanager
def few_laws(*few: str) -> Iterator[None]:
    """Only these laws are tried unasked: fitting all of them takes a hundred times as long as reading a log."""
    kinds = [get_law(name) for name in law_names() if name not in few]
    before = {kind: kind.__dict__.get("tried_by") for kind in kinds}
    for kind in kinds:
        kind.tried_by = ()  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for kind, tried in before.items():
            if tried is None:
                del kind.tried_by  # type: ignore[attr-defined]
            else:
                kind.tried_by = tried  # type: ignore[attr-defined]


def disagreements(log: Path, folder: Path, **known: str) -> list[str]:
    """Where two of the four ways differ; a log that does not load must not load in any."""
    how = ["--max-refused", "1", *(word for name, value in known.items() for word in (f"--{name}", value))]
    try:
        made: Decision | str = _decided(log, known)
    except LatfitError as error:
        made = str(error)
    table = folder / "agree.jsonl"
    few = ["--resamples", "0", *how]
    analyzed = _called("analyze", str(log), *few, "--json")
    timed = _called("timeout", str(log), *few, "--json")
    batched = _called("batch", str(log), "-o", str(table), "--workers", "1", "--no-test", *few)
    if isinstance(made, str):
        return _refused(made, {"analyze": analyzed, "timeout": timed}, batched, table)
    if not all(isinstance(told, str) for told in (analyzed, timed, batched)):
        return [f"decided in Python, but analyze: {analyzed!r}; timeout: {timed!r}; batch: {batched!r}"[:2000]]
    row = json.loads(table.read_text(encoding="utf-8").splitlines()[0])
    return _differences(made, json.loads(str(analyzed)), json.loads(str(timed)), row)


def _decided(log: Path, known: dict[str, str]) -> Decision:
    seen = probes_of(read_log(log, max_refused=1, **known))
    return decide([seen], Options(resamples=0, test=False))[0].require()


def _called(*words: str) -> str | int:
    """What a command prints, or its exit code."""
    done = CliRunner().invoke(main, list(words))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code or done.stdout


def _refused(why: str, shown: dict[str, str | int], batched: str | int, table: Path) -> list[str]:
    """A log that Python refuses is refused by every command; a batch may write a row with the reason."""
    told = [f"{name} answers, Python refuses: {why}" for name, said in shown.items() if said != 1]
    if not isinstance(batched, int):
        row = json.loads(table.read_text(encoding="utf-8").splitlines()[0])
        told += [f"batch decides on {row['timeout']}, Python refuses: {why}"] if row["error"] is None else []
    return told


def _differences(made: Decision, analyzed: dict[str, Any], timed: dict[str, Any], row: dict[str, Any]) -> list[str]:
    assert made.timeout is not None
    python = {name: getattr(made.timeout, name) for name in SHARED}
    told = []
    for name in SHARED:
        ways = {
            "python": python[name],
            "analyze": analyzed["timeout"][name],
            "timeout": timed[name],
            "batch": row[name],
        }
        if not all(_same(value, ways["python"]) for value in ways.values()):
            told.append(f"{name}: {ways}")
    batched = [code for code in row["withheld"].split(",") if code]
    withheld = {"python": list(made.timeout.withheld), "analyze": analyzed["timeout"]["withheld"],
                "timeout": timed["withheld"], "batch": batched}  # fmt: skip
    if any(codes != withheld["python"] for codes in withheld.values()):
        told.append(f"withheld: {withheld}")
    codes = {"python": made.codes, "analyze": [each["code"] for each in analyzed["warnings"]],
             "timeout": [each["code"] for each in timed["warnings"]],
             "batch": row["warnings"].split(",")}  # fmt: skip
    plain = {way: [c for c in found if c and c not in OF_TESTS | OF_READING] for way, found in codes.items()}
    if any(found != plain["python"] for found in plain.values()):
        told.append(f"warnings: {plain}")
    if not (made.outliers and analyzed["outliers"]["ratio"] == row["ratio"] == made.outliers.estimate):
        told.append(f"ratio: analyze {analyzed['outliers']['ratio']}, batch {row['ratio']}")
    return told


def _same(a: Any, b: Any) -> bool:
    """Equal; numbers to 1e-9, and null where JSON has no infinity."""
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9) or (a == b)
    finite = [None if isinstance(x, float) and not math.isfinite(x) else x for x in (a, b)]
    return bool(finite[0] == finite[1])
