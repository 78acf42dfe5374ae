"""What every JSON document of latfit promises: shares in [0, 1], intervals in order, timeouts not negative."""

from collections.abc import Iterator
from typing import Any

SHARES = ("rho", "ratio", "joint_ratio", "p_asymptotic", "p_bootstrap", "statistic")
NOT_NEGATIVE = (
    "timeout", "expected_duration", "std_duration", "speed_up", "speed_up_vs_cutoff", "cutoff", "count", "resolution",
    "conservative_timeout", "regret", "probes", "completed", "failed", "censored", "lost", "refused_count",
)  # fmt: skip


def insane(command: str, document: dict[str, Any]) -> list[str]:
    """What is wrong with a command's document."""
    told = [wrong for part in _parts(document) for wrong in _part(part)]
    if command == "outliers":
        told += _interval(document, "ratio", "low", "high")
        told += _interval(document, "joint_ratio", "joint_low", "joint_high")
        for each in document["by_cutoff"]:
            told += _interval(each, "ratio", "low", "high")
    return told


def _parts(value: Any) -> Iterator[dict[str, Any]]:
    """Every object within a document; the ratio of a world is one of durations, not a share."""
    if isinstance(value, dict):
        yield value
        value = [item for key, item in value.items() if key not in ("std_errors", "worlds")]
    if isinstance(value, list):
        for item in value:
            yield from _parts(item)


def _part(part: dict[str, Any]) -> Iterator[str]:
    numbers = {key: x for key, x in part.items() if isinstance(x, (int, float)) and not isinstance(x, bool)}
    yield from (f"{key} is {x}" for key, x in numbers.items() if key in SHARES and not 0 <= x <= 1)
    yield from (f"{key} is {x}" for key, x in numbers.items() if key in NOT_NEGATIVE and not x >= 0)
    if numbers.get("submissions", 1) < 1:
        yield f"submissions is {numbers['submissions']}"
    for low, high in (("low", "high"), ("expected_duration_low", "expected_duration_high")):
        if low in numbers and high in numbers and numbers[low] > numbers[high]:
            yield f"{low} {numbers[low]} lies above {high} {numbers[high]}"
    for key in ("within_1pct", "within_5pct"):
        if part.get(key):
            low, high = part[key]
            t = numbers.get("timeout")
            inside = t is None or ((low or 0) <= t * (1 + 1e-9) and (high is None or t <= high * (1 + 1e-9)))
            if not inside or (low is not None and high is not None and low > high):
                yield f"{key} is {part[key]} around {t}"
    quantiles = [x for x in (part.get("quantiles") or {}).values() if x is not None]
    if quantiles != sorted(quantiles):
        yield f"quantiles fall: {part['quantiles']}"


def _interval(part: dict[str, Any], name: str, low: str, high: str) -> list[str]:
    """An estimate lies within its interval, and that within [0, 1]."""
    x, a, b = (part[key] for key in (name, low, high))
    if x is None:
        return []
    return [] if 0 <= a <= x <= b <= 1 else [f"{name} is {x}, its interval {a} to {b}"]
