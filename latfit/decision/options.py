"""What is asked of a decision: the same for one sample, for groups and for a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from latfit.errors import SampleError
from latfit.resample import RESAMPLES

FAILED = ("retry", "completed", "lost")
CENSORING = ("auto", "independent", "failed", "lost")


@dataclass(frozen=True)
class Options:
    """How samples become decisions.

    `cutoff`: when a probe still out counts as an outlier (None: from the sample). `failed`: how visible failures are
    read. `censoring`: how probes are read that were given up before the cutoff: `auto` counts those given up at one
    common time, after which others completed, as failed there; `independent` takes all as censored; `failed` and
    `lost` read all so. `cost`: seconds that a restart costs. `laws`: those to fit (None: the default ones); `law`: the
    fitted law that the timeout is taken from (None: the data themselves). `rho`: rescale to this outlier ratio.
    `risk`: the largest loss, as a share of waiting, that a schedule may bring if every retry takes as long as the first
    attempt would have; 0 always waits. `current`: the timeout in use.
    `resamples` = 0 leaves out every interval, `test` = False the tests of fit.
    The rest is as in `latfit.optimal_timeout`.

    Examples
    --------
    >>> import latfit
    >>> latfit.Options(cost=5.0, objective="quantile:0.95").plain
    False
    """

    cutoff: float | None = None
    failed: str = "retry"
    censoring: str = "auto"
    cost: float = 0.0
    laws: tuple[str, ...] | None = None
    law: str | None = None
    rho: float | None = None
    current: float | None = None
    resamples: int = RESAMPLES
    test: bool = True
    seed: int = 0
    objective: str = "mean"
    wall_clock: float = 0.0
    copies: int = 1
    max_submissions: float | None = None
    risk: float = 0.3

    def __post_init__(self) -> None:
        if self.failed not in FAILED:
            raise SampleError(f"failures can be read as {', '.join(FAILED)}, not as {self.failed!r}")
        if self.censoring not in CENSORING:
            raise SampleError(f"censoring can be read as {', '.join(CENSORING)}, not as {self.censoring!r}")
        if not self.risk >= 0:
            raise SampleError(f"the risk is a share of at least 0, not {self.risk!r}")

    @property
    def plain(self) -> bool:
        """Whether the timeout of the least mean duration is asked for, and nothing else."""
        return (self.objective, self.wall_clock, self.copies, self.max_submissions) == ("mean", 0.0, 1, None)

    @property
    def policy(self) -> dict[str, Any]:
        """The arguments of `optimal_timeout`."""
        return {"cost": self.cost, "wall_clock": self.wall_clock, "copies": self.copies, "objective": self.objective}
