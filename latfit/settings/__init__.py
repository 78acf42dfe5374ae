"""Stage 14: a decision as the settings of other tools.

`settings_for(tool, log)` turns the decision on a log, or a given timeout, into what to paste: rounded up as the tool
requires, with the number of attempts, the share of jobs that stays undone, and the tool's own waits counted as the cost
of a restart. Each tool is one file with data and a template in `tools/`.
"""

from latfit.settings.base import TOOLS, Plan, Tool, get_tool, register
from latfit.settings.write import Settings, settings_for

__all__ = ["TOOLS", "Plan", "Settings", "Tool", "get_tool", "register", "settings_for"]
