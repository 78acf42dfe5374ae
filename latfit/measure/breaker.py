"""The breaker of jobs: stop when later attempts succeed less often than independence predicts."""

from __future__ import annotations

import math

FEWEST = 10  # later attempts before anything is said
CHANCE = 1e-4  # how improbable the counts must be if attempts were independent


class Breaker:
    """Counts which attempts complete within the first attempt's timeout, first ones and later ones apart.

    If attempts of a job are independent and alike, a later one completes within it as often as a first one. The chance
    of k or fewer among n is at most exp(−n KL(k/n ‖ p)) (Chernoff); p is the share given, or that of the first
    attempts minus two standard errors. With fewer completions than that, submissions exceed the prediction.
    """

    def __init__(self, predicted: float | None = None) -> None:
        self.predicted = predicted
        self.first = [0, 0]  # completed within the timeout, of how many
        self.later = [0, 0]
        self.tripped: str | None = None
        """Why the run has to stop, from the moment it is known, whatever ends after that; None while it need not."""

    def note(self, *, attempt: int, within: bool) -> None:
        """Take the end of an attempt into account."""
        counts = self.first if attempt == 1 else self.later
        counts[0] += within
        counts[1] += 1
        self.tripped = self.tripped or self._reason()

    @property
    def expected(self) -> float:
        """The least share of later attempts that should complete within the first timeout."""
        if self.predicted is not None:
            return self.predicted
        k, n = self.first
        p = k / n if n else 0.0
        return max(0.0, p - 2 * math.sqrt(p * (1 - p) / n)) if n else 0.0

    def _reason(self) -> str | None:
        """What is wrong with the attempts noted so far."""
        k, n = self.later
        p = min(self.expected, 1 - 1e-9)
        share = k / n if n else 1.0
        if n < FEWEST or share >= p or n * _divergence(share, p) < -math.log(CHANCE):
            return None
        return (
            f"of {n} later attempts {k} completed within the first timeout ({share:.0%}), where independent attempts "
            f"would in {p:.0%} or more: a second attempt of the same job is not a new draw, "
            "and resubmitting only adds load"
        )


def _divergence(q: float, p: float) -> float:
    """KL(q ‖ p) of two coins."""
    heads = q * math.log(q / p) if q > 0 else 0.0
    tails = (1 - q) * math.log((1 - q) / (1 - p)) if q < 1 else 0.0
    return heads + tails
