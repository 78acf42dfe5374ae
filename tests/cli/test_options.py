"""The options that commands share."""

import subprocess
import sys

from latfit.cli import main


def test_commands_do_without_what_only_new_versions_of_click_have():
    """`click.ParamType` can be subscripted since click 8.4, and 8.1 is allowed."""
    code = (
        "import importlib, click\n"
        "click.ParamType.__class_getitem__ = None\n"
        f"for name in {list(main.summaries)!r}: importlib.import_module(f'latfit.cli.{{name}}')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
