import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from hypothesis import settings

from warm import ask

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


@pytest.fixture(scope="session")
def warm(tmp_path_factory):
    """A function that calls the command in a process that has its libraries already, see warm.py."""
    program, address = REPO / "tests" / "warm.py", tmp_path_factory.mktemp("warm") / "socket"
    words = [sys.executable, program, "serve", address]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout.readline() == "ready\n"
        yield partial(ask, address)
        server.stdin.close()


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
def run(warm, run_anew):
    """Call the command in a process of its own; returns the finished process."""
    return lambda *args, **how: run_anew(*args, **how) if how.keys() - {"stdin"} else warm(*map(str, args), **how)


@pytest.fixture
def shared():
    """The folder of real logs beside the checkout, where there is one."""
    if not SHARED.is_dir():
        pytest.skip("no ../shared/data beside this checkout")
    return SHARED
