"""How sure the optimal timeout is: bootstrap intervals, and a smoother optimum.

The timeout's interval is the percentile interval of a *smoothed* bootstrap: the resamples are drawn
from the sample blurred a little, because the optimum is a cube-root estimator (Kim and Pollard 1990),
for which the plain bootstrap fails.
"""

from latfit.uncertainty.bins import silverman
from latfit.uncertainty.blocks import Blocks
from latfit.uncertainty.intervals import Intervals, bootstrap, smoothed_timeout

__all__ = ["Blocks", "Intervals", "bootstrap", "silverman", "smoothed_timeout"]
