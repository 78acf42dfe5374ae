"""The load that strategies make on the system behind them, and which share of its clients may run them safely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from latfit.errors import RestartError
from latfit.restart.evaluate import PolicyOutcome
from latfit.restart.result import ratio


@dataclass(frozen=True)
class Load:
    """The utilisation of a system if all its clients ran a strategy, answered for both kinds of cancelling.

    `if_cancelled`: a cancelled job is removed from the system, which then carries the job-seconds of the strategy.
    `if_served`: cancelling does not reach the server, and every submission is served whole. Both start from today's
    utilisation. `safe_share` is the share of clients for which the system is stable whatever its latency law, when
    submissions are served whole: a (1 + φ (m − 1)) < 1 with at most m submissions a job, and with a retry budget
    β = N − 1 for strategies without a limit (`by_budget`): φ < (1/a − 1)/β.
    """

    policy: str
    if_cancelled: float | None
    if_served: float | None
    safe_share: float | None
    by_budget: float | None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "policy": self.policy,
            "if_cancelled": self.if_cancelled,
            "if_served": self.if_served,
            "safe_share": self.safe_share,
            "retry_budget": self.by_budget,
        }


def load_of(outcome: PolicyOutcome, now: PolicyOutcome, utilisation: float) -> Load:
    """What a strategy makes of a system whose utilisation is `utilisation` under the strategy `now`.

    Examples
    --------
    >>> import latfit
    >>> from latfit.restart.load import load_of
    >>> law = latfit.parse_law("lognormal(mu=5.5,sigma=1)")
    >>> now = latfit.evaluate_policy(law, "timeout()")
    >>> three = latfit.evaluate_policy(law, "schedule(timeouts=[300,300,300])")
    >>> round(load_of(three, now, 0.7).safe_share, 3)
    0.214

    """
    a = check_utilisation(utilisation)
    work, requests = ratio(outcome.job_seconds, now.job_seconds), ratio(outcome.submissions, now.submissions)
    most, extra = outcome.policy.most_submissions, (outcome.submissions or 1.0) - 1.0
    budget = extra if most is None else None
    room = 1.0 / a - 1.0
    beyond = (most - 1.0) if most is not None else extra
    return Load(
        outcome.policy.spec(4),
        None if work is None else a * work,
        None if requests is None else a * requests,
        1.0 if beyond <= 0 else min(1.0, room / beyond),
        budget,
    )


def check_utilisation(utilisation: float) -> float:
    """A utilisation that a user gave: more than 0, less than 1."""
    if not 0 < utilisation < 1:
        raise RestartError(f"the utilisation is {utilisation}; it is the busy share of the system, between 0 and 1")
    return float(utilisation)
