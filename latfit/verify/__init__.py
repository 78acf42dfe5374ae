"""Did it work? What was predicted from one log against what was measured in a later one.

`verify(before, after)` takes the log that decided and a log of jobs that ran under the decision, with several attempts
a job, and says in one sentence whether jobs take as long as predicted, and if not, why.
"""

from latfit.verify.attempts import Jobs, jobs_of, read_attempts
from latfit.verify.compare import verify
from latfit.verify.result import Estimate, Measured, Reason, Verification

__all__ = ["Estimate", "Jobs", "Measured", "Reason", "Verification", "jobs_of", "read_attempts", "verify"]
