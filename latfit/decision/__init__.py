"""Stage 9: `decide(samples, options)`, the one place where samples become decisions, for one or for 10⁵."""

from latfit.decision.decide import decide
from latfit.decision.options import Options
from latfit.decision.prepare import Prepared, prepare
from latfit.decision.result import (
    Current,
    Decision,
    Evidence,
    FittedLaw,
    LatencySummary,
    Recommendation,
    Warned,
)

__all__ = [
    "Current", "Decision", "Evidence", "FittedLaw", "LatencySummary", "Options", "Prepared", "Recommendation", "Warned",
    "decide", "prepare",
]  # fmt: skip
