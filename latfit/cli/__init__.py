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
    summaries={
        "probe": "Measure a system with probes, and write a log that every command reads.",
        "analyze": "From a log to a decision: how long to wait, and how much faster that is.",
        "batch": "Many logs to one table: a row of results for each group.",
        "outliers": "Estimate the share of probes that never return.",
        "fit": "Fit laws to the latencies of a log and rank them.",
        "timeout": "Find the timeout after which cancelling and resubmitting pays.",
        "replay": "Replay timeouts on the log itself: no formula, no independence.",
        "compare": "Compare strategies: cancelling, hedging, resubmitting, copies, schedules.",
        "agents": "Find whom of several agents to ask first, and how long to wait.",
        "drift": "Say when a log changed and in what, and what following the change would have brought.",
        "watch": "Follow a growing log and say what to set.",
        "plot": "Draw the figures of an analysis.",
        "settings": "Write a decision in the words of a tool: what to paste, how often it tries, and what to know.",
        "verify": "Did it work? What was predicted from BEFORE against what the jobs of AFTER took.",
        "read": "Show what each column of a log was taken for, its unit, why, and the option that changes it.",
        "convert": "Write a log as the canonical table.",
        "laws": "List the latency laws, their parameters and their formulas.",
        "formats": "List the log formats that latfit reads.",
    },
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
click.version_option(package_name="latfit", message="latfit %(version)s", help="Show the version.")(main)
