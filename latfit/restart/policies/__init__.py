"""What can be done about a slow job, one file each; a new file in this folder is a new policy."""

from importlib import import_module
from pkgutil import iter_modules

from latfit.restart.policies.base import REGISTRY, Policy, Submission, parse_policy, register

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")


def policy_names() -> list[str]:
    """The names of all policies, in alphabetical order."""
    return sorted(REGISTRY)


def get_policy(name: str) -> type[Policy]:
    """The kind of policy of that name."""
    return REGISTRY[name]


__all__ = ["Policy", "Submission", "get_policy", "parse_policy", "policy_names", "register"]
