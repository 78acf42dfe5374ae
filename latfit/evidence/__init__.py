"""Stage 8: does the theory apply to this log? Mixing, dependence, drift, censoring, replay; one file each."""

from latfit.evidence.censoring import Censoring, censoring
from latfit.evidence.dependence import Dependence, dependence
from latfit.evidence.mixing import Mixing, mixing
from latfit.evidence.policies import ReplayedPolicy, replay_policies
from latfit.evidence.probes import as_logged, probes_of
from latfit.evidence.replay import Replay, Replayed, replay, require_times

__all__ = [
    "Censoring", "Dependence", "Mixing", "Replay", "Replayed", "ReplayedPolicy", "as_logged", "censoring", "dependence",
    "mixing", "probes_of", "replay", "replay_policies", "require_times",
]  # fmt: skip
