"""Stage 8: histograms with guarantees: what counts in buckets say for certain of a timeout, and what is likely."""

from latfit.histograms.bounds import bounds, worst_regret
from latfit.histograms.guarantee import Guarantee, fit_buckets, guaranteed_timeout, histogram_law

__all__ = ["Guarantee", "bounds", "fit_buckets", "guaranteed_timeout", "histogram_law", "worst_regret"]
