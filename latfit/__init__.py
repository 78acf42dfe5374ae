"""latfit: how long should I wait before I cancel and resubmit, and how much faster will I be?

The package is a pipeline, one module or folder a stage, and data flow one way through it:

    log file ──logs──▶ ProbeLog ──sample──▶ LatencySample ──outliers──▶ ρ
                                                  │
                                  laws ◀──fitting─┘
                                   │
                                   └──restart──▶ Optimum: the timeout, E_J, the speed-up

Names are imported when they are first used, so `import latfit` is instant.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from latfit.analysis import Analysis, analyze
    from latfit.batch import BatchResult, run_batch
    from latfit.buckets import Histogram
    from latfit.decision import Decision, Options, decide
    from latfit.errors import (
        FitError,
        LatfitError,
        LawError,
        LogError,
        MissingColumn,
        RestartError,
        SampleError,
        TooManyRefused,
        UnknownFormat,
    )
    from latfit.fitting import Fit, GoodnessOfFit, fit, joint_outlier_ratio, ks_test
    from latfit.histograms import Guarantee, guaranteed_timeout
    from latfit.laws import Defective, Empirical, Law, parse_law
    from latfit.logs import (
        ProbeLog,
        as_log,
        as_sample,
        convert_log,
        example_log,
        from_frame,
        read_histograms,
        read_log,
    )
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
    from latfit.units import parse_duration

    __version__: str

_HOME = {
    "latfit.analysis": ("Analysis", "analyze"),
    "latfit.batch": ("BatchResult", "run_batch"),
    "latfit.buckets": ("Histogram",),
    "latfit.decision": ("Decision", "Options", "decide"),
    "latfit.errors": (
        "FitError",
        "LatfitError",
        "LawError",
        "LogError",
        "MissingColumn",
        "RestartError",
        "SampleError",
        "TooManyRefused",
        "UnknownFormat",
    ),
    "latfit.fitting": ("Fit", "GoodnessOfFit", "fit", "joint_outlier_ratio", "ks_test"),
    "latfit.histograms": ("Guarantee", "guaranteed_timeout"),
    "latfit.laws": ("Defective", "Empirical", "Law", "parse_law"),
    "latfit.logs": (
        "ProbeLog",
        "as_log",
        "as_sample",
        "convert_log",
        "example_log",
        "from_frame",
        "read_histograms",
        "read_log",
    ),
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
    "latfit.units": ("parse_duration",),
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
    "Guarantee",
    "Histogram",
    "LatencySample",
    "LatfitError",
    "Law",
    "LawError",
    "LogError",
    "MissingColumn",
    "Optimum",
    "Options",
    "OutlierRatio",
    "ProbeLog",
    "RestartError",
    "SampleError",
    "Schedule",
    "TooManyRefused",
    "Tracker",
    "UnknownFormat",
    "analyze",
    "as_log",
    "as_sample",
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
    "from_frame",
    "geometric_bounds",
    "guaranteed_timeout",
    "joint_outlier_ratio",
    "ks_test",
    "moments",
    "optimal_policy",
    "optimal_schedule",
    "optimal_strategy",
    "optimal_timeout",
    "outlier_ratio",
    "parse_duration",
    "parse_law",
    "ratio_by_cutoff",
    "read_histograms",
    "read_log",
    "restart_helps",
    "run_batch",
]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(_MODULE_OF[name]), name)
    if name == "__version__":
        return import_module("importlib.metadata").version("latfit")
    raise AttributeError(f"module 'latfit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
