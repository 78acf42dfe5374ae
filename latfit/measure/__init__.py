"""Stage 13: probes and jobs on real systems, one file per target.

`measure` keeps a number of probes in flight, as Glatard et al. (2006, §4) did on the EGEE grid, or lets them arrive at
random, and writes a log that every other stage reads.
"""

from latfit.measure.loop import Breaker, Counts, Limits, Pace, Plan, careful, paired, policy_plan, single, tracked
from latfit.measure.run import Measured, Precision, measure, precision
from latfit.measure.targets import TARGETS, Attempt, Outcome, Probe, Target

__all__ = [
    "TARGETS", "Attempt", "Breaker", "Counts", "Limits", "Measured", "Outcome", "Pace", "Plan", "Precision", "Probe",
    "Target", "careful", "measure", "paired", "policy_plan", "precision", "single", "tracked",
]  # fmt: skip
