"""Stage 5: from a sample to a law: censored maximum likelihood with ρ, least squares on the cdf, ranking."""

from latfit.fitting import kernels as kernels
from latfit.fitting.batch import SampleBatch
from latfit.fitting.estimate import BatchFit, fit_batch
from latfit.fitting.intervals import JointRatio, joint_outlier_ratio, profile_interval
from latfit.fitting.ranking import CLASSICAL, DEFAULT_LAWS, fit
from latfit.fitting.result import Fit
from latfit.fitting.use import fitted_law

__all__ = [
    "CLASSICAL",
    "DEFAULT_LAWS",
    "BatchFit",
    "Fit",
    "JointRatio",
    "SampleBatch",
    "fit",
    "fit_batch",
    "fitted_law",
    "joint_outlier_ratio",
    "profile_interval",
]
