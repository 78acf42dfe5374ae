"""Stage 8: does the theory apply to this log? The worlds that it supports, and what else describes it."""

from latfit.evidence.changes import Change, Changes, Dependence, dependence, find_changes
from latfit.evidence.probes import as_logged, period_of, probes_of
from latfit.evidence.replay import Replay, Replayed, replay, replay_policies, require_times
from latfit.evidence.worlds import Mixing, mixing

__all__ = ["Change", "Changes", "Dependence", "Mixing", "Replay", "Replayed"]
__all__ += ["as_logged", "dependence", "find_changes", "mixing", "period_of", "probes_of", "replay", "replay_policies"]
__all__ += ["require_times"]
