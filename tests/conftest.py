import io
import os
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from hypothesis import settings

from latfit.cli import main

# Every worker, and every `latfit` that a test starts, would compile the package anew where bytecode is not written: it
# goes to the environment, and not into the tree.
sys.dont_write_bytecode, sys.pycache_prefix = False, str(Path(sys.prefix) / "pycache")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix

# the same examples in every run; HYPOTHESIS_PROFILE=explore looks for new ones
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

signal.signal(
    signal.SIGINT, signal.default_int_handler
)  # ignored in the background, which programs started here inherit

DATA = Path(__file__).parent / "data"
REPO = Path(__file__).parent.parent
EGEE = REPO / "data" / "egee-2006.csv"
SHARED = REPO.parent / "shared" / "data"


def pytest_collection_modifyitems(items):
    """The slow ones come first, so that all workers end at about the same time."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture
def run_anew():
    """Call the installed command as a user does, down to the start of Python; returns the finished process."""

    def call(*args, stdin=None, **environment):
        return subprocess.run(
            [Path(sys.executable).parent / "latfit", *map(str, args)],
            input=stdin,
            capture_output=True,
            text=not isinstance(stdin, bytes),
            timeout=120,
            env={**os.environ, **environment},
        )

    return call


@pytest.fixture
def run(run_anew):
    """Call the command; returns the finished process. It runs in this process, unless its environment is to differ."""

    def call(*args, stdin=None, **environment):
        if environment:
            return run_anew(*args, stdin=stdin, **environment)
        words = [str(arg) for arg in args]
        given = stdin.encode() if isinstance(stdin, str) else stdin or b""
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(given)), "utf-8"))
            with pytest.raises(SystemExit) as end:
                main(words, prog_name="latfit")
        for stream in (out, err):
            stream.seek(0)
        printed = (stream.buffer if isinstance(stdin, bytes) else stream for stream in (out, err))
        return subprocess.CompletedProcess(words, end.value.code, *(stream.read() for stream in printed))

    return call


@pytest.fixture
def shared():
    """The folder of real logs beside the checkout, where there is one."""
    if not SHARED.is_dir():
        pytest.skip("no ../shared/data beside this checkout")
    return SHARED
