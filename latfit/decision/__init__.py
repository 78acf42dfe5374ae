"""Stage 9: `decide(samples, options)`, the one place where samples become decisions, for one or for 10⁵."""

from latfit.decision.decide import decide as decide
from latfit.decision.prepare import Options as Options
from latfit.decision.prepare import Prepared as Prepared
from latfit.decision.prepare import prepare as prepare
from latfit.decision.result import Decision as Decision
from latfit.decision.result import FittedLaw as FittedLaw
from latfit.decision.result import Recommendation as Recommendation
from latfit.decision.result import Warned as Warned
