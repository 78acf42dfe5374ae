import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

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


@pytest.fixture
def run():
    """Call the installed command as a user does; returns the finished process."""

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
def shared():
    """The folder of real logs beside the checkout, where there is one."""
    if not SHARED.is_dir():
        pytest.skip("no ../shared/data beside this checkout")
    return SHARED
