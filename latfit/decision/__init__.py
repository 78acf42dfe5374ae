"""Stage 9: `decide(samples, options)`, the one place where samples become decisions, for one or for 10⁵."""

from latfit.decision.decide import decide
from latfit.decision.prepare import Options, Prepared, prepare
from latfit.decision.result import Decision, FittedLaw, Recommendation, Warned

__all__ = ["Decision", "FittedLaw", "Options", "Prepared", "Recommendation", "Warned", "decide", "prepare"]
