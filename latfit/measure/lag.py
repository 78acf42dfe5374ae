"""How late the measuring process itself is: what it measures cannot be sharper than that."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque

from latfit.measure.journal import Journal

NAP = 0.05  # between two looks at the clock
BEAT = 5.0  # between two lines in the log
KEPT = 20_000  # looks that are remembered: about 17 minutes


class Lag:
    """The lateness of the event loop: how long after it was due a timer of 50 ms fires."""

    def __init__(self) -> None:
        self.looks: deque[float] = deque(maxlen=KEPT)
        self.worst = 0.0

    @property
    def p99(self) -> float:
        """99 % of the looks were at most this late."""
        ordered = sorted(self.looks)
        return ordered[math.ceil(0.99 * len(ordered)) - 1] if ordered else 0.0

    async def watch(self, journal: Journal) -> None:
        """Look until cancelled; a beat in the log also says how long those on their way are known to be out."""
        since, worst = time.monotonic(), 0.0
        while True:
            due = time.monotonic() + NAP
            await asyncio.sleep(NAP)
            late = max(0.0, time.monotonic() - due)
            self.looks.append(late)
            self.worst, worst = max(self.worst, late), max(worst, late)
            if due - since >= BEAT:
                journal.write({"beat": journal.t, "lag": round(worst, 6)})
                since, worst = due, 0.0
