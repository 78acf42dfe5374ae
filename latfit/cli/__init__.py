"""The command line: one command for each stage of the pipeline.

Every command parses, calls a library function or two, and renders. A command's module is imported
when it is called, and slow libraries inside it, so that `latfit --help` is instant.
"""

import click

from latfit.cli.common import Commands

main = Commands(
    name="latfit",
    help="""How long should I wait before I cancel and resubmit, and how much faster will I be?

    latfit reads logs of probe jobs or requests, estimates the share that never returns, and
    finds the timeout after which resubmitting pays.
    """,
    groups={
        "Decide": {"analyze": "analyze", "timeout": "timeout"}
        | dict.fromkeys(("compare", "replay", "agents"), "strategies")
        | {"batch": "batch"},
        "Measure": {"probe": "probe", "outliers": "fit", "fit": "fit"},
        "Apply": {"settings": "applying", "verify": "applying"},
        "Follow": {"watch": "changes", "drift": "changes"},
        "Inspect": dict.fromkeys(("read", "plot", "convert", "laws", "formats"), "logs") | {"schema": "schema"},
    },
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
click.version_option(package_name="latfit", message="latfit %(version)s", help="Show the version.")(main)
