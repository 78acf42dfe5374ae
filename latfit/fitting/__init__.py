"""Stage 5: from a sample to a law: censored maximum likelihood with ρ, least squares on the cdf, tests of fit."""

from latfit.fitting.estimate import BatchFit, fit_batch
from latfit.fitting.fitted import Fit, fits_table, fitted_law, ks_distance
from latfit.fitting.kolmogorov import GoodnessOfFit, assess, ks_test, qq
from latfit.fitting.least_squares import with_std_errors
from latfit.fitting.profile import COMPETING, JointRatio, joint_outlier_ratio, profile_interval
from latfit.fitting.ranking import CLASSICAL, DEFAULT_LAWS, default_laws, fit, fit_many
from latfit.laws.samples import SampleBatch, cell_width

__all__ = [
    "CLASSICAL",
    "COMPETING",
    "DEFAULT_LAWS",
    "BatchFit",
    "Fit",
    "GoodnessOfFit",
    "JointRatio",
    "SampleBatch",
    "assess",
    "cell_width",
    "default_laws",
    "fit",
    "fit_batch",
    "fit_many",
    "fits_table",
    "fitted_law",
    "joint_outlier_ratio",
    "ks_distance",
    "ks_test",
    "profile_interval",
    "qq",
    "with_std_errors",
]
