"""What a fit is."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from latfit.laws import ContinuousLaw


@dataclass(frozen=True)
class Fit:
    """A law fitted to a sample, or the reason why it could not be.

    `law` is proper and `rho` stands beside it: the fitted law of latency is `Defective(law, rho)`. `n` counts all
    probes. `std_errors` has an entry for each parameter, and for `rho` where it was estimated; an entry is None on a
    boundary. For positive parameters they are to be used on the log scale, and for small samples `profile_interval` is
    better (docs/calibration.md). `at_limit` is true where the law is at the exponential that it contains as a limit.
    `bic` counts the parameters, and ρ where it was estimated. Where `error` is not None there is no law and no score.
    """

    name: str
    method: str
    n: int
    law: ContinuousLaw | None = None
    rho: float | None = None
    params: dict[str, float] = field(default_factory=dict)
    std_errors: dict[str, float | None] | None = None
    sse: float | None = None
    log_likelihood: float | None = None
    aic: float | None = None
    bic: float | None = None
    converged: bool = False
    at_limit: bool = False
    error: str | None = None

    @property
    def score(self) -> float:
        """What fits of one method are ranked by, small is good: BIC or the sum of squares; ∞ for a failed fit."""
        value = self.bic if self.method == "mle" else self.sse
        return math.inf if value is None else value

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: `law` is the registry name, numbers are finite or None."""
        numbers = ("rho", "sse", "log_likelihood", "aic", "bic")
        errors = self.std_errors and {name: finite(value) for name, value in self.std_errors.items()}
        return {
            "law": self.name,
            "method": self.method,
            "params": {name: finite(value) for name, value in self.params.items()},
            "std_errors": errors,
            **{name: finite(getattr(self, name)) for name in numbers},
            "n": self.n,
            "converged": self.converged,
            "at_limit": self.at_limit,
            "error": self.error,
        }


def finite(value: float | None) -> float | None:
    """`value`, or None where it is absent or not finite."""
    return None if value is None or not math.isfinite(value) else float(value)
