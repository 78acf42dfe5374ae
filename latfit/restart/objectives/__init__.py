"""What to minimise, one file each; a new file in this folder is a new objective."""

from importlib import import_module
from pkgutil import iter_modules

from latfit.restart.objectives.base import REGISTRY, Objective, register

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")


def objective_usages() -> list[str]:
    """How every known objective is written."""
    return [kind.usage for kind in REGISTRY.values()]


__all__ = ["Objective", "objective_usages", "register"]
