"""Values of a state that was read from a file: each is what it must be, or a ValueError says which is not.

A state is data from outside, damaged or written by somebody else: nothing in it may end in anything but an error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from latfit.numbers import Floats
from latfit.tracking.memories import BUCKETS, LARGE, LEVELS, Memories

LARGEST = 1e300


def number(name: str, value: Any, low: float = -LARGEST, high: float = LARGEST) -> float:
    """A finite number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise ValueError(f"{name} is not a number from {low:g} to {high:g}")
    return float(value)


def positive(name: str, value: Any, high: float = LARGEST) -> float:
    """A finite number above 0, at most `high`."""
    return number(name, value, math.ulp(0.0), high)


def whole(name: str, value: Any, high: int = 2**62) -> int:
    """A whole number from 0 to `high`."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= high:
        raise ValueError(f"{name} is not a whole number from 0 to {high}")
    return value


def wholes(name: str, value: Any, high: int, most: int) -> list[int]:
    """Whole numbers from 0 to `high`, no more than allowed."""
    if not isinstance(value, list) or len(value) > most:
        raise ValueError(f"{name} is not a list of at most {most}")
    return [whole(name, item, high) for item in value]


def array(name: str, value: Any, shape: Sequence[int], low: float = 0.0, high: float = LARGEST) -> Floats:
    """An array of finite numbers of this shape."""
    found = np.array(value)
    if found.dtype.kind not in "if" or found.shape != tuple(shape):
        raise ValueError(f"{name} is not an array of {' × '.join(map(str, shape))} numbers")
    if not ((found >= low) & (found <= high)).all():
        raise ValueError(f"{name} holds something that is not a number from {low:g} to {high:g}")
    return found.astype(np.float64)


def pairs(name: str, value: Any, highs: tuple[int, int], most: int) -> list[tuple[int, int]]:
    """Pairs of whole numbers, each from 0 to its `high`, no more than allowed."""
    if not isinstance(value, list) or len(value) > most:
        raise ValueError(f"{name} is not a list of at most {most}")
    found = [wholes(name, pair, max(highs), 2) for pair in value]
    if any(len(pair) != 2 or pair[0] > highs[0] or pair[1] > highs[1] for pair in found):
        raise ValueError(f"{name} holds something that is not a pair")
    return [(first, second) for first, second in found]


def memories(state: dict[str, Any], cutoff: float) -> Memories:
    """The memories that `Memories.to_dict` wrote, for a tracker with this cutoff."""
    made = Memories(cutoff)
    if state["first"] != made.first:
        raise ValueError("the buckets belong to another cutoff")
    low, high = (whole(name, state[name], BUCKETS) for name in ("low", "high"))
    for code, name in enumerate(("completed", "failed", "censored")):
        at = wholes(name, state[name]["buckets"], BUCKETS - 1, BUCKETS)
        if at and (at != sorted(set(at)) or not low <= at[0] <= at[-1] < high):
            raise ValueError(f"{name}: the buckets are not in order, or not in use")
        if at:
            made.counts[code][:, at] = array(name, state[name]["weights"], (LEVELS, len(at)), high=LARGE**2)
    made.low, made.high = low, high
    made.lost, made.whole = (array(name, state[name], (LEVELS,), high=LARGE**2) for name in ("lost", "whole"))
    made.weight = array("weight", state["weight"], (LEVELS,), low=1e-3, high=LARGE**2)
    made.cross = array("cross", state["cross"], (LEVELS, LEVELS))
    held = made.counts.sum(axis=(0, 2)) + made.lost
    if (held > made.whole * (1 + 1e-6) + 1e-6).any():
        raise ValueError("the counts exceed the whole weight")
    return made
