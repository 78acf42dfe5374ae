"""Types of arrays, and numbers for JSON documents."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def is_number(value: object) -> bool:
    """Whether an argument is one real number, NaN and infinity included."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def is_count(value: object) -> bool:
    """Whether an argument is a whole number of at least 0, like a seed or a number of resamples."""
    return is_number(value) and isinstance(value, (int, np.integer)) and bool(value >= 0)


def finite(value: float | np.floating[Any] | Floats | None) -> float | None:
    """A plain float; None if it is absent, infinite or not a number."""
    return float(value) if value is not None and np.isfinite(value) else None


def plain_values(value: object) -> dict[str, Any]:
    """The fields of a dataclass for a document; floats that are not finite become None."""
    return {name: finite(item) if isinstance(item, float) else item for name, item in vars(value).items()}
