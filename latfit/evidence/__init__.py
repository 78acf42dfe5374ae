"""Stage 8: does the theory apply to this log? The worlds that it supports, and what else describes it."""

from latfit.evidence.changes import Change as Change
from latfit.evidence.changes import Changes as Changes
from latfit.evidence.changes import find_changes as find_changes
from latfit.evidence.describe import Censoring as Censoring
from latfit.evidence.describe import Dependence as Dependence
from latfit.evidence.describe import Mixing as Mixing
from latfit.evidence.describe import censoring as censoring
from latfit.evidence.describe import dependence as dependence
from latfit.evidence.describe import mixing as mixing
from latfit.evidence.probes import as_logged as as_logged
from latfit.evidence.probes import probes_of as probes_of
from latfit.evidence.replay import Replay as Replay
from latfit.evidence.replay import Replayed as Replayed
from latfit.evidence.replay import ReplayedPolicy as ReplayedPolicy
from latfit.evidence.replay import replay as replay
from latfit.evidence.replay import replay_policies as replay_policies
from latfit.evidence.replay import require_times as require_times
