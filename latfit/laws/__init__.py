"""Stage 4: latency laws, one file a family; a new file in this folder is a new law."""

from importlib import import_module
from pkgutil import iter_modules

from latfit.laws.base import ContinuousLaw, Law, Parameter, ParametricLaw, register
from latfit.laws.competing import Competing, Defective
from latfit.laws.empirical import Empirical
from latfit.laws.parse import get_law, law_names, parse_law

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = [
    "Competing",
    "ContinuousLaw",
    "Defective",
    "Empirical",
    "Law",
    "Parameter",
    "ParametricLaw",
    "get_law",
    "law_names",
    "parse_law",
    "register",
]
