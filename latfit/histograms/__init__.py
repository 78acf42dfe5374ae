"""Stage 8: histograms with guarantees. What counts in buckets say for certain of a timeout, and what they make likely."""

from latfit.histograms.bounds import Bounds, bounds, worst_regret

__all__ = ["Bounds", "bounds", "worst_regret"]
