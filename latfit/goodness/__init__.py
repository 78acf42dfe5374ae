"""Stage 6: does the fitted law describe the sample? Distances, p-values that are honest after fitting, plot points."""

from latfit.goodness.complete import anderson_darling, cramer_von_mises
from latfit.goodness.diagonals import PlotPoints, pp, qq
from latfit.goodness.kolmogorov import GoodnessOfFit, assess, ks_distance, ks_test

__all__ = [
    "GoodnessOfFit",
    "PlotPoints",
    "anderson_darling",
    "assess",
    "cramer_von_mises",
    "ks_distance",
    "ks_test",
    "pp",
    "qq",
]
