"""latfit: how long should I wait before I cancel and resubmit, and how much faster will I be?

The package is a pipeline, one module or folder a stage, and data flow one way through it:

    log file ──logs──▶ ProbeLog ──sample──▶ LatencySample ──outliers──▶ ρ
                                                  │
                                  laws ◀──fitting─┴──goodness
                                   │
                                   └──restart──▶ Optimum: the timeout, E_J, the speed-up

Names are imported when they are first used, so `import latfit` is instant.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from latfit.errors import FitError, LatfitError, LawError, LogError, RestartError, SampleError
    from latfit.logs import ProbeLog, SampledLog, convert_log, example_log, read_log, read_samples
    from latfit.outliers import OutlierRatio, default_cutoff, outlier_ratio, ratio_by_cutoff
    from latfit.sample import LatencySample

_HOME = {
    "latfit.errors": ("FitError", "LatfitError", "LawError", "LogError", "RestartError", "SampleError"),
    "latfit.logs": ("ProbeLog", "SampledLog", "convert_log", "example_log", "read_log", "read_samples"),
    "latfit.outliers": ("OutlierRatio", "default_cutoff", "outlier_ratio", "ratio_by_cutoff"),
    "latfit.sample": ("LatencySample",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "FitError",
    "LatencySample",
    "LatfitError",
    "LawError",
    "LogError",
    "OutlierRatio",
    "ProbeLog",
    "RestartError",
    "SampleError",
    "SampledLog",
    "convert_log",
    "default_cutoff",
    "example_log",
    "outlier_ratio",
    "ratio_by_cutoff",
    "read_log",
    "read_samples",
]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(_MODULE_OF[name]), name)
    raise AttributeError(f"module 'latfit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
