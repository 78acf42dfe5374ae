"""docs/ten-minutes.md, run as it stands."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import REPO


@pytest.mark.slow
def test_the_page_runs(tmp_path):
    page = (REPO / "docs" / "ten-minutes.md").read_text()
    (tmp_path / "flaky.sh").write_text(re.search(r"```sh\n(.*?)```", page, re.DOTALL)[1])
    commands = [line[2:] for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL)
                for line in block.splitlines() if line.startswith("$ ")]  # fmt: skip
    assert [command.split()[1] for command in commands] == [
        "probe",
        "analyze",
        "settings",
        "settings",
        "probe",
        "verify",
    ]
    path = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for command in commands:
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=300,
                              env={**os.environ, **path})  # fmt: skip
        assert done.returncode == 0, f"{command}: {done.stderr}"
        if " settings timeout" in command:
            assert re.search(r"for limit in 0\.\d+ .*timeout -k 5 \$limit CMD", done.stdout, re.DOTALL)
    assert re.match(r"(As|Better than|Worse than) predicted", done.stdout)
