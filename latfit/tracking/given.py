"""What a caller gives a tracker: each is what it must be, or a RestartError says which is not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latfit.errors import RestartError
from latfit.numbers import Floats


def is_number(value: object) -> bool:
    """Whether something is a finite number."""
    try:
        return math.isfinite(value)  # type: ignore[arg-type]
    except (TypeError, OverflowError):
        return False


def numbers(what: str, given: ArrayLike) -> Floats:
    """An array of numbers; they may be infinite or none."""
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise RestartError(f"the {what} are not all numbers of seconds") from None


def one_each(what: str, given: NDArray[Any], x: Floats) -> NDArray[Any]:
    """One value for each latency, where one may be given for all of them."""
    if given.ndim and given.shape != x.shape:
        raise RestartError(f"there are {x.size} latencies and {given.size} {what}: give one for all, or one each")
    return np.broadcast_to(given, x.shape)
