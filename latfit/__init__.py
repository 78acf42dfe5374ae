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
    from latfit.analysis import Analysis as Analysis
    from latfit.analysis import analyze as analyze
    from latfit.batch import BatchResult as BatchResult
    from latfit.batch import fit_groups as fit_groups
    from latfit.batch import run_batch as run_batch
    from latfit.buckets import Histogram as Histogram
    from latfit.decision import Decision as Decision
    from latfit.decision import Options as Options
    from latfit.decision.decide import decide as decide
    from latfit.errors import FitError as FitError
    from latfit.errors import LatfitError as LatfitError
    from latfit.errors import LawError as LawError
    from latfit.errors import LogError as LogError
    from latfit.errors import MissingColumn as MissingColumn
    from latfit.errors import RestartError as RestartError
    from latfit.errors import SampleError as SampleError
    from latfit.errors import TooManyRefused as TooManyRefused
    from latfit.errors import UnknownFormat as UnknownFormat
    from latfit.fitting import Fit as Fit
    from latfit.fitting import GoodnessOfFit as GoodnessOfFit
    from latfit.fitting import fit as fit
    from latfit.fitting import joint_outlier_ratio as joint_outlier_ratio
    from latfit.fitting import ks_test as ks_test
    from latfit.histograms import Guarantee as Guarantee
    from latfit.histograms import guaranteed_timeout as guaranteed_timeout
    from latfit.laws import Defective as Defective
    from latfit.laws import Empirical as Empirical
    from latfit.laws import Law as Law
    from latfit.laws import parse_law as parse_law
    from latfit.logs import ProbeLog as ProbeLog
    from latfit.logs import as_log as as_log
    from latfit.logs import as_sample as as_sample
    from latfit.logs import convert_log as convert_log
    from latfit.logs import example_log as example_log
    from latfit.logs import from_frame as from_frame
    from latfit.logs import read_histograms as read_histograms
    from latfit.logs import read_log as read_log
    from latfit.outliers import OutlierRatio as OutlierRatio
    from latfit.outliers import default_cutoff as default_cutoff
    from latfit.outliers import outlier_ratio as outlier_ratio
    from latfit.outliers import ratio_by_cutoff as ratio_by_cutoff
    from latfit.plots import plot_cdf as plot_cdf
    from latfit.plots import plot_ecdf as plot_ecdf
    from latfit.plots import plot_expected_duration as plot_expected_duration
    from latfit.restart import Optimum as Optimum
    from latfit.restart import Schedule as Schedule
    from latfit.restart import compare_policies as compare_policies
    from latfit.restart import completion_cdf as completion_cdf
    from latfit.restart import completion_pdf as completion_pdf
    from latfit.restart import evaluate_policy as evaluate_policy
    from latfit.restart import evaluate_timeout as evaluate_timeout
    from latfit.restart import expected_duration as expected_duration
    from latfit.restart import expected_maximum as expected_maximum
    from latfit.restart import moment_bounds as moment_bounds
    from latfit.restart import moments as moments
    from latfit.restart import optimal_grouping as optimal_grouping
    from latfit.restart import optimal_policy as optimal_policy
    from latfit.restart import optimal_schedule as optimal_schedule
    from latfit.restart import optimal_strategy as optimal_strategy
    from latfit.restart import optimal_timeout as optimal_timeout
    from latfit.restart import quantile_bound as quantile_bound
    from latfit.restart import restart_helps as restart_helps
    from latfit.restart import schedule_cdf as schedule_cdf
    from latfit.restart import schedule_moments as schedule_moments
    from latfit.restart import simulate_policy as simulate_policy
    from latfit.restart import std_duration as std_duration
    from latfit.restart import tail_rate as tail_rate
    from latfit.restart import variation as variation
    from latfit.sample import LatencySample as LatencySample
    from latfit.tracking.tracker import Tracker as Tracker
    from latfit.units import parse_duration as parse_duration

    __version__: str

_HOME = {
    "analysis": "Analysis analyze",
    "batch": "BatchResult fit_groups run_batch",
    "buckets": "Histogram",
    "decision": "Decision Options decide",
    "errors": (
        "FitError LatfitError LawError LogError MissingColumn RestartError SampleError TooManyRefused UnknownFormat"
    ),
    "fitting": "Fit GoodnessOfFit fit joint_outlier_ratio ks_test",
    "histograms": "Guarantee guaranteed_timeout",
    "laws": "Defective Empirical Law parse_law",
    "logs": "ProbeLog as_log as_sample convert_log example_log from_frame read_histograms read_log",
    "outliers": "OutlierRatio default_cutoff outlier_ratio ratio_by_cutoff",
    "plots": "plot_cdf plot_ecdf plot_expected_duration",
    "restart": (
        "Optimum Schedule compare_policies completion_cdf completion_pdf evaluate_policy evaluate_timeout "
        "expected_duration expected_maximum moment_bounds moments optimal_grouping optimal_policy optimal_schedule "
        "optimal_strategy optimal_timeout quantile_bound restart_helps schedule_cdf schedule_moments simulate_policy "
        "std_duration tail_rate variation"
    ),
    "sample": "LatencySample",
    "tracking.tracker": "Tracker",
    "units": "parse_duration",
}
_MODULE_OF = {name: f"latfit.{module}" for module, names in _HOME.items() for name in names.split()}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(_MODULE_OF[name]), name)
    if name == "__version__":
        return import_module("importlib.metadata").version("latfit")
    raise AttributeError(f"module 'latfit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
