"""Logs of Celery workers."""

from __future__ import annotations

import re
from collections.abc import Callable

from latfit.logs.formats import register
from latfit.logs.rows import COMPLETED, FAILED, Row, RowFormat, epoch, sent_at

CELERY_LINE = re.compile(
    r"\[(?P<moment>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d+): \w+/[^\]]+\] +(?:[\w.]+: )?(?P<event>Received task:|Task) "
    r"(?P<task>[\w.]+)\[(?P<id>[\w-]+)\](?P<rest>.*)"
)
ENDED = re.compile(r" (?:succeeded in ([\d.e-]+)s|raised|failed|INTERNAL ERROR)")
MAX_TASKS = 1 << 17  # whose times of receipt are kept


@register
class Celery(RowFormat):
    """Latency is the run time of a task; one that raised has taken the time since it was received."""

    name = "celery"
    description = "Celery worker log; latency = the run time of tasks"
    rank = 27
    cells = ("latency", "submitted", "status", "id")
    others = "lines that do not end a task"

    def sniff(self, head: str) -> bool:
        return any(CELERY_LINE.match(line) for line in head.split("\n"))

    def row(self, line: str) -> Row | None:
        """`[2017-12-28 05:51:33,675: INFO/ForkPoolWorker-2] Task app.tasks.add[3e92…] succeeded in 0.165s: None`."""
        return self.rows()(line)

    def rows(self) -> Callable[[str], Row | None]:
        """Times of receipt are kept for tasks that raise, whose lines have no run time."""
        received: dict[str, float | None] = {}

        def read(line: str) -> Row | None:
            match = CELERY_LINE.match(line)
            if match is None:
                return None
            now, task = epoch(match["moment"]), match["id"]
            if match["event"] == "Received task:":
                if len(received) < MAX_TASKS:
                    received[task] = now
                return None
            ended = ENDED.match(match["rest"])
            if ended is None:
                return None
            begun = received.pop(task, None)
            latency = float(ended[1]) if ended[1] else now - begun if now is not None and begun is not None else None
            submitted = None if latency is None else sent_at(now, latency)
            status = COMPLETED if ended[1] else FAILED
            return {"latency": latency, "submitted": submitted, "status": status, "id": task, "task": match["task"]}

        return read
