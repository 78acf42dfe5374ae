"""What a timeout brings, as a value."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from latfit.laws.base import Law, ParametricLaw
from latfit.laws.competing import Competing
from latfit.laws.defective import Defective
from latfit.restart.times import Floats
from latfit.restart.windows import Window

Verdict = Literal["finite", "never", "any", "immediate", "given"]

QUANTILES = (0.5, 0.95, 0.99)


@dataclass(frozen=True)
class Optimum:
    """A timeout and what it brings.

    `verdict` is `finite`, `never` (no timeout helps), `any` (the timeout does not matter),
    `immediate` (the smaller the better; figures are limits) or `given` (evaluated, not optimised).
    `timeout` is None for `never` and `any`; what is infinite or not computable is None.
    The windows are the connected sets around the timeout in which E_J stays within 1 % and 5 % of
    its value there, ∞ (None in `to_dict`) where every later timeout qualifies.
    """

    verdict: Verdict
    timeout: float | None
    expected_duration: float | None
    std_duration: float | None
    quantiles: dict[str, float | None]
    submissions: float | None
    within_1pct: Window | None
    within_5pct: Window | None
    conservative_timeout: float | None
    speed_up: float | None
    rho: float
    law: str
    cost: float
    objective: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values: finite numbers, strings, None."""
        plain = asdict(self)
        for key in ("within_1pct", "within_5pct"):
            plain[key] = None if plain[key] is None else [finite(x) for x in plain[key]]
        return plain


def finite(value: float | np.floating[Any] | Floats | None) -> float | None:
    """A plain float, None where it is infinite or not a number."""
    return float(value) if value is not None and np.isfinite(value) else None


def label(law: Law) -> str:
    """How a law is written: the specification of what returns, or the name of a law without one."""
    while isinstance(law, (Defective, Competing)):
        law = law.law
    return law.spec() if isinstance(law, ParametricLaw) else law.name
