"""Arrays of numbers, and numbers that a document can hold: what every stage shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def finite(value: float | np.floating[Any] | Floats | None) -> float | None:
    """A plain float, None where it is absent, infinite or not a number."""
    return float(value) if value is not None and np.isfinite(value) else None


def plain_values(value: object) -> dict[str, Any]:
    """The fields of a dataclass for a document: floats that are not finite become None."""
    return {name: finite(item) if isinstance(item, float) else item for name, item in vars(value).items()}
