"""The systems that can be probed, one file each; a new file here registers itself."""

import importlib
import pkgutil

from latfit.measure.targets.base import TARGETS, Attempt, Outcome, Probe, Target, argument, option, register

__all__ = ["TARGETS", "Attempt", "Outcome", "Probe", "Target", "argument", "option", "register"]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
