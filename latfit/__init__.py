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
    from latfit.analysis import Analysis, analyze
    from latfit.batch import BatchResult, run_batch
    from latfit.decision import Decision, Options, decide
    from latfit.errors import FitError, LatfitError, LawError, LogError, RestartError, SampleError
    from latfit.fitting import Fit, fit, joint_outlier_ratio
    from latfit.goodness import GoodnessOfFit, ks_test
    from latfit.laws import Defective, Empirical, Law, parse_law
    from latfit.logs import ProbeLog, SampledLog, convert_log, example_log, read_log, read_samples
    from latfit.outliers import OutlierRatio, default_cutoff, outlier_ratio, ratio_by_cutoff
    from latfit.restart import (
        Optimum,
        Schedule,
        compare_policies,
        completion_cdf,
        evaluate_policy,
        evaluate_timeout,
        expected_duration,
        geometric_bounds,
        moments,
        optimal_policy,
        optimal_schedule,
        optimal_strategy,
        optimal_timeout,
        restart_helps,
    )
    from latfit.sample import LatencySample
    from latfit.tracking.tracker import Tracker

_HOME = {
    "latfit.analysis": ("Analysis", "analyze"),
    "latfit.batch": ("BatchResult", "run_batch"),
    "latfit.decision": ("Decision", "Options", "decide"),
    "latfit.errors": ("FitError", "LatfitError", "LawError", "LogError", "RestartError", "SampleError"),
    "latfit.fitting": ("Fit", "fit", "joint_outlier_ratio"),
    "latfit.goodness": ("GoodnessOfFit", "ks_test"),
    "latfit.laws": ("Defective", "Empirical", "Law", "parse_law"),
    "latfit.logs": ("ProbeLog", "SampledLog", "convert_log", "example_log", "read_log", "read_samples"),
    "latfit.outliers": ("OutlierRatio", "default_cutoff", "outlier_ratio", "ratio_by_cutoff"),
    "latfit.restart": (
        "Optimum",
        "Schedule",
        "compare_policies",
        "completion_cdf",
        "evaluate_policy",
        "evaluate_timeout",
        "expected_duration",
        "geometric_bounds",
        "moments",
        "optimal_policy",
        "optimal_schedule",
        "optimal_strategy",
        "optimal_timeout",
        "restart_helps",
    ),
    "latfit.sample": ("LatencySample",),
    "latfit.tracking.tracker": ("Tracker",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Analysis",
    "BatchResult",
    "Decision",
    "Defective",
    "Empirical",
    "Fit",
    "FitError",
    "GoodnessOfFit",
    "LatencySample",
    "LatfitError",
    "Law",
    "LawError",
    "LogError",
    "Optimum",
    "Options",
    "OutlierRatio",
    "ProbeLog",
    "RestartError",
    "SampleError",
    "SampledLog",
    "Schedule",
    "Tracker",
    "analyze",
    "compare_policies",
    "completion_cdf",
    "convert_log",
    "decide",
    "default_cutoff",
    "evaluate_policy",
    "evaluate_timeout",
    "example_log",
    "expected_duration",
    "fit",
    "geometric_bounds",
    "joint_outlier_ratio",
    "ks_test",
    "moments",
    "optimal_policy",
    "optimal_schedule",
    "optimal_strategy",
    "optimal_timeout",
    "outlier_ratio",
    "parse_law",
    "ratio_by_cutoff",
    "read_log",
    "read_samples",
    "restart_helps",
    "run_batch",
]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(_MODULE_OF[name]), name)
    raise AttributeError(f"module 'latfit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
