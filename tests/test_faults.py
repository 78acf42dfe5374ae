"""Faults, all of them real: full disks, closed folders, signals, broken pipes, bare environments.

The promise: a clear end (one line, and 0, 1, 2, 130 or 143), and either the old file or the whole new one.
"""

import ctypes
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import latfit
from conftest import REPO
from latfit.batch.engines import Pool

LATFIT = Path(sys.executable).parent / "latfit"
LINUX = sys.platform == "linux"
FEW = ["--resamples", "0"]
WRITERS = {
    "csv": ["convert", "log.csv", "-o", "out.csv"],
    "jsonl": ["convert", "log.csv", "-o", "out.jsonl"],
    "parquet": ["convert", "log.csv", "-o", "out.parquet"],
    "batch": ["batch", "log.csv", "--no-test", *FEW, "-o", "out.jsonl"],
    "plot": ["plot", "tiny.csv", "--figure", "ratio", "-o", "out.png"],
    "analyze": ["analyze", "tiny.csv", *FEW, "-o", "out"],
}
PRINTERS = {
    "help": ["--help"],
    "version": ["--version"],
    "laws": ["laws"],
    "formats": ["formats", "--json"],
    "outliers": ["outliers", "log.csv"],
    "fit": ["fit", "log.csv", "--law", "weibull", "--bootstrap", "0"],
    "timeout": ["timeout", "log.csv", "--json"],
    "agents": ["agents", "--agent", "a=exponential(rate=1)", "--agent", "b=log.csv"],
    "convert": ["convert", "log.csv", "-o", "out.csv"],
    "plot": WRITERS["plot"],
    "analyze": ["analyze", "tiny.csv", *FEW],
}


@pytest.fixture
def place(tmp_path):
    """A folder with a log of 60 probes, and one of 4, with which an analysis is quick."""
    write_log(tmp_path / "log.csv", 60)
    write_log(tmp_path / "tiny.csv", 4)
    return tmp_path


def write_log(path, count):
    rng = np.random.default_rng(1)
    latency = np.round(rng.lognormal(4, 1, count), 2)
    rows = [f"{x},{'lost' if k % 20 == 3 else 'completed'},s{k % 3}" for k, x in enumerate(latency)]
    path.write_text("\n".join(["latency,status,site", *rows]) + "\n")


def call(arguments, folder, **how):
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
    return subprocess.run([LATFIT, *arguments], cwd=folder, text=True, timeout=120, check=False, **how)


def assert_clear(done, *codes):
    """One of these exit codes, no traceback, and one line that says what is wrong where something is."""
    assert done.returncode in codes, (done.returncode, done.stderr)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith("latfit: ")]
    assert len(told) == (done.returncode == 1), done.stderr


def files(folder):
    """Every file below a folder, with what is in it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def output_of(arguments, folder):
    """The file that a command writes, or one of those that it writes into its folder."""
    output = folder / arguments[-1]
    return output if output.suffix else output / "results.json"


def limit_files(size):
    """No file may become larger: writing fails as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def bind_root():
    """Let permissions bind even root: give up CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH for what is executed next."""
    if os.geteuid() == 0:
        for capability in (1, 2):
            assert ctypes.CDLL(None).prctl(24, capability, 0, 0, 0) == 0  # PR_CAPBSET_DROP


# full disks


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_the_old_file(name, place):
    arguments = WRITERS[name]
    output = output_of(arguments, place)
    output.parent.mkdir(exist_ok=True)
    output.write_text("old")
    done = call(arguments, place, preexec_fn=partial(limit_files, 500))
    assert_clear(done, 1)
    assert "File too large" in done.stderr
    assert str(output.parent.relative_to(place)) in done.stderr or output.name in done.stderr
    left = files(place)
    journal = left.pop("out.jsonl.journal", None)
    assert set(left) == {"log.csv", "tiny.csv", str(output.relative_to(place))}
    assert output.read_text() == "old"
    if name == "batch":  # what was finished is kept, to go on with when there is space again
        assert journal is not None
        assert_clear(call([*arguments, "--resume"], place), 0)
        assert set(files(place)) == {"log.csv", "tiny.csv", "out.jsonl"}
        assert output.read_text().startswith('{"probes": 60')


@pytest.mark.slow
@pytest.mark.skipif(not LINUX, reason="mounts a small file system")
def test_a_small_disk_that_is_really_full(place):
    disk = place / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "none", disk]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("may not mount; the limit on the size of files says the same")
    try:
        (disk / "x.csv").write_text("old")
        write_log(place / "log.csv", 3000)
        done = call(["convert", "log.csv", "-o", "disk/x.csv"], place)
        assert_clear(done, 1)
        assert "No space left on device" in done.stderr
        assert files(disk) == {"x.csv": b"old"}
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("name", ["help", "version", "outliers", "convert"])
def test_a_full_disk_behind_standard_output(name, place):
    with Path("/dev/full").open("w") as full:
        done = call(PRINTERS[name], place, stdout=full)
    assert_clear(done, 1)
    assert "No space left on device" in done.stderr


# folders that cannot be written, and what is there already


@pytest.mark.slow
@pytest.mark.parametrize("where", ["closed", "log.csv", "nowhere"])
@pytest.mark.parametrize("name", ["csv", "batch"])
def test_a_folder_that_cannot_be_written(name, where, place):
    (place / "closed").mkdir(mode=0o555)
    arguments = [*WRITERS[name][:-1], f"{where}/{WRITERS[name][-1]}"]
    before = files(place)
    done = call(arguments, place, preexec_fn=bind_root)
    assert_clear(done, 1)
    assert where in done.stderr
    assert files(place) == before


@pytest.mark.slow
def test_a_report_that_cannot_be_written(place):
    (place / "closed").mkdir(mode=0o555)
    before = files(place)
    for output in ("closed", "log.csv/more"):
        done = call([*WRITERS["analyze"][:-1], output], place, preexec_fn=bind_root)
        assert_clear(done, 1)
        assert output in done.stderr
        assert files(place) == before


def test_the_read_only_folder_refuses_writes(place):
    """The proof that the test above tests something."""
    (place / "closed").mkdir(mode=0o555)
    done = subprocess.run(["/bin/sh", "-c", "echo > closed/x"], cwd=place, preexec_fn=bind_root, capture_output=True)
    assert done.returncode
    assert not (place / "closed" / "x").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["csv", "batch", "analyze"])
def test_an_existing_file_is_replaced_and_a_link_is_not_followed(name, place):
    arguments = WRITERS[name]
    output = output_of(arguments, place)
    output.parent.mkdir(exist_ok=True)
    (place / "other").write_text("mine")
    output.symlink_to(place / "other")
    assert_clear(call(arguments, place), 0)
    assert (place / "other").read_text() == "mine"
    assert not output.is_symlink()
    assert output.read_bytes().startswith((b"\x89PNG", b"PAR1", b"{", b"submitted,"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["csv", "batch"])
def test_a_folder_in_place_of_a_file_is_kept(name, place):
    output = output_of(WRITERS[name], place)
    (output / "inside").mkdir(parents=True)
    done = call(WRITERS[name], place)
    assert_clear(done, 1)
    assert output.name in done.stderr
    assert (output / "inside").is_dir()
    assert set(files(place)) == {"log.csv", "tiny.csv"}


@pytest.mark.slow
def test_a_journal_is_not_written_through_a_link(place):
    (place / "other").write_text("mine")
    (place / "out.jsonl.journal").symlink_to(place / "other")
    for more in ([], ["--resume"]):
        assert_clear(call([*WRITERS["batch"], *more], place), 1)
        assert (place / "other").read_text() == "mine"


@pytest.mark.slow
def test_standard_input_onto_a_file_that_exists(place):
    (place / "out.csv").write_text("old")
    with (place / "log.csv").open() as log:
        assert_clear(call(["convert", "-", "-o", "out.csv"], place, stdin=log), 0)
    assert (place / "out.csv").read_text().count("\n") == 61


# signals


def is_ready(process):
    """Whether the process has begun to catch SIGTERM, or has ended: what comes before is Python's own start."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text()
    except OSError:
        return True
    caught = int(status.split("SigCgt:")[1].split()[0], 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1) or process.poll() is not None


def stopped(arguments, folder, number, moment):
    """A command that is sent a signal `moment` seconds after it began, or when it begins to write if that is None."""
    process = subprocess.Popen(
        [LATFIT, *arguments], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    while not is_ready(process):
        time.sleep(0.001)
    if moment is None:
        while process.poll() is None and not list(folder.rglob(".*.part")):
            time.sleep(0.0005)
    else:
        time.sleep(moment)
    process.send_signal(number)
    told = process.communicate(timeout=60)[1]
    return subprocess.CompletedProcess(arguments, process.returncode, "", told)


@pytest.mark.slow
@pytest.mark.skipif(not LINUX, reason="looks into /proc for the moment when Python has started")
@pytest.mark.parametrize(
    ("arguments", "tries"),
    [
        (["convert", "log.csv", "-o", "out.jsonl"], 2),
        (["batch", "log.csv", "--by", "site", "--no-test", "--resamples", "9", "--workers", "2", "-o", "out.csv"], 2),
        (WRITERS["analyze"], 2),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_signal_at_any_moment(arguments, tries, place):
    write_log(place / "log.csv", 20_000 if arguments[0] == "convert" else 60)
    output = output_of(arguments, place)
    begun = time.monotonic()
    assert_clear(call(arguments, place), 0)
    duration = time.monotonic() - begun
    new = files(place)
    kept = {name: new[name] for name in ("log.csv", "tiny.csv")}
    allowed = set(new) | ({f"{output.name}.journal"} if arguments[0] == "batch" else set())
    moments, codes = random.Random(len(arguments)), []
    for k in range(tries):
        old = {name: kept.get(name, b"old") for name in new}
        for name, content in old.items():
            (place / name).write_bytes(content)
        number = (signal.SIGINT, signal.SIGTERM)[k % 2]
        done = stopped(arguments, place, number, moments.uniform(0, duration) if k % 4 > 1 else None)
        codes.append(done.returncode)
        # Python lets go of the handlers when all is done, just before its end
        assert done.returncode in (0, 128 + number, -number), done.stderr
        assert "Traceback" not in done.stderr
        assert "Exception ignored" not in done.stderr
        if done.returncode == 128 + number:
            assert done.stderr.splitlines()[-1].startswith("latfit: stopped")
        found = files(place)
        assert set(found) <= allowed, "something was left behind"
        found.pop(f"{output.name}.journal", None)
        assert all(found[name] in (old[name], new[name]) for name in new)
        if done.returncode <= 0:
            assert found == new
    if arguments[0] != "batch":  # which writes so fast that the moment may be missed
        assert sum(code > 0 for code in codes) >= tries // 3, codes


@pytest.mark.slow
def test_a_signal_that_the_parent_ignores_stays_ignored(place):
    """As `nohup` and a shell's background jobs do."""
    process = subprocess.Popen(
        [LATFIT, "outliers", "log.csv", "--json"],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    shown, told = process.communicate()
    assert (process.returncode, shown[:1]) == (0, b"{"), told


# pipes and streams


@pytest.mark.slow
@pytest.mark.parametrize("name", PRINTERS)
def test_an_unread_pipe(name, place):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = call(PRINTERS[name], place, stdout=writer)
    finally:
        os.close(writer)
    assert done.returncode == 1
    assert not [line for line in done.stderr.splitlines() if not line.startswith(("note: ", "warning: "))], done.stderr


@pytest.mark.slow
def test_head_takes_one_line(place):
    done = subprocess.run(
        f"{LATFIT} laws | head -1", shell=True, cwd=place, capture_output=True, text=True, timeout=60, check=True
    )
    assert (done.stdout, done.stderr) == ("discrete\n", "")


@pytest.mark.slow
def test_closed_streams(place):
    onto = ["-o", "out.csv", "--json"]
    done = call(["convert", "-", *onto], place, preexec_fn=partial(os.close, 0))
    assert_clear(done, 1)
    assert "standard input is closed" in done.stderr
    done = call(["convert", "log.csv", *onto], place, preexec_fn=partial(os.close, 2))
    assert (done.returncode, json.loads(done.stdout)["probes"]) == (0, 60)
    assert_clear(call(["convert", "log.csv", *onto], place, preexec_fn=partial(os.close, 1)), 0)


# bare environments


def bare(**more):
    return {"PATH": os.defpath, **more}


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"HOME": "/nonexistent", "MPLBACKEND": "nonsense"},
        {"HOME": "closed", "XDG_CACHE_HOME": "closed/x", "XDG_CONFIG_HOME": "closed/y", "MATPLOTLIBRC": "rc"},
    ],
    ids=["empty", "no-home-no-backend", "closed-home-no-display-latex"],
)
def test_figures_without_a_home_or_a_display(environment, place):
    (place / "closed").mkdir(mode=0o555)
    (place / "rc").write_text("text.usetex: True\nbackend: TkAgg\n")
    done = call(WRITERS["plot"], place, env=bare(**environment), preexec_fn=bind_root)
    assert_clear(done, 0)
    assert (place / "out.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_locale_that_is_not_utf_8(encoding, place):
    environment = bare(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING=encoding)
    for arguments in (PRINTERS["laws"], [*PRINTERS["analyze"], "--markdown"]):
        done = subprocess.run(
            [LATFIT, *arguments], cwd=place, env=environment, capture_output=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        assert b"Traceback" not in done.stderr
        done.stdout.decode("latin-1" if encoding == "latin-1" else "utf-8")  # click takes ASCII as UTF-8


@pytest.mark.slow
def test_files_are_utf_8_in_any_locale(place):
    (place / "é.csv").write_bytes((place / "log.csv").read_bytes())
    environment = bare(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="ascii")
    assert_clear(call(["analyze", "é.csv", *FEW, "--output", "out"], place, env=environment), 0)
    report = (place / "out" / "report.md").read_text(encoding="utf-8")
    assert report.startswith(("# latfit: é.csv\n", r"# latfit: \\udcc3\\udca9.csv"))
    assert "BIC−" in report
    path = json.loads((place / "out" / "results.json").read_text(encoding="utf-8"))["log"]["path"]
    assert os.fsencode(path) == "é.csv".encode() or path == "é.csv"


@pytest.mark.slow
def test_an_installation_that_cannot_be_written(place):
    installed = place / "installed"
    shutil.copytree(REPO / "latfit", installed / "latfit", ignore=shutil.ignore_patterns("__pycache__"))
    for path in [installed, *installed.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "latfit", *PRINTERS["analyze"]],
            cwd=place, capture_output=True, text=True, timeout=60, check=False,
            env=bare(PYTHONPATH=str(installed)), preexec_fn=bind_root,
        )  # fmt: skip
        assert_clear(done, 0)
        assert "Collect more probes first" in done.stdout
        assert not list(installed.rglob("__pycache__"))
    finally:
        for path in [installed, *installed.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.mark.slow
@pytest.mark.skipif(not LINUX, reason="looks for processes in /proc")
@pytest.mark.parametrize("name", ["probe", "watch"])
def test_kill_9_by_the_script(name):
    """scripts/kill does it 100 times; the batch has its own test."""
    words = [sys.executable, REPO / "scripts" / "kill", "1", "--only", name]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing wrong" in done.stdout


def test_a_batch_does_not_depend_on_which_log_was_read_first(tmp_path, monkeypatch):
    """Logs of one moment, read in any order: the same rows, and the journal of one run serves another."""
    rng = np.random.default_rng(5)
    for k in range(4):
        x = rng.lognormal(1 + k, 1, 60)
        lines = [f"2026-03-01T00:{i:02}:00Z,{y:.3f}\n" for i, y in enumerate(x)]
        (tmp_path / f"{k}.csv").write_text("submitted,latency\n" + "".join(lines))
    few = {"laws": ["exponential"], "resamples": 19, "test": False, "workers": 1, "journal": tmp_path / "journal"}
    whole, header = latfit.run_batch(tmp_path / "*.csv", **few), (tmp_path / "journal").read_bytes()
    unordered = Pool.unordered
    monkeypatch.setattr(Pool, "unordered", lambda *given: reversed(list(unordered(*given))))
    again = latfit.run_batch(tmp_path / "*.csv", **few)
    assert again.rows == whole.rows
    assert (tmp_path / "journal").read_bytes() == header
