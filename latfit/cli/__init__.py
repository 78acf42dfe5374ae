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
        "Decide": {
            "analyze": "From a log to a decision: how long to wait, and how much faster that is.",
            "timeout": "Find the timeout after which cancelling and resubmitting pays.",
            "compare": "Compare strategies: cancelling, hedging, resubmitting, copies, schedules.",
            "replay": "Replay timeouts on the log itself: no formula, no independence.",
            "agents": "Find which of several agents to ask first, and how long to wait.",
            "batch": "Many logs to one table: a row of results for each group.",
        },
        "Measure": {
            "probe": "Measure a system with probes, and write a log that every command reads.",
            "outliers": "Estimate the share of probes that never return.",
            "fit": "Fit laws to the latencies of a log and rank them.",
        },
        "Apply": {
            "settings": "Write a decision as the settings of a tool, to paste.",
            "verify": "Did it work? Compare what BEFORE predicted with what the jobs of AFTER took.",
        },
        "Follow": {
            "watch": "Follow a growing log and say what to set.",
            "drift": "Say when and how a log changed, and what following the change would have brought.",
        },
        "Inspect": {
            "read": "Show how each column of a log was read, its unit, why, and the option that changes it.",
            "plot": "Draw the figures of an analysis.",
            "convert": "Write a log as the canonical table.",
            "laws": "List the latency laws, their parameters and their formulas.",
            "formats": "List the log formats that latfit reads.",
            "schema": "Print the JSON Schema of a command's output.",
        },
    },
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
click.version_option(package_name="latfit", message="latfit %(version)s", help="Show the version.")(main)
