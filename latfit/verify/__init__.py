"""Did it work? What was predicted from one log against what was measured in a later one.

`verify(before, after)` takes the log that decided and a log of jobs that ran under the decision, one row an attempt,
and says in one sentence whether jobs take as long as predicted, and if not, which tested causes there are.
"""

from latfit.verify.compare import Estimate, Measured, Reason, Verification, verify
from latfit.verify.jobs import Jobs, jobs_of, read_attempts

__all__ = ["Estimate", "Jobs", "Measured", "Reason", "Verification", "jobs_of", "read_attempts", "verify"]
