"""The log of `latfit probe`: a header for each run, a line when a probe is submitted, a line when it ends."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import chain

import numpy as np

from latfit.errors import LogError
from latfit.logs.formats import ReadOptions, register
from latfit.logs.lines import EventFormat, Row
from latfit.logs.records import Records
from latfit.logs.source import Source, numbered_lines
from latfit.table import STATUSES


@register
class Probe(EventFormat):
    """Columns: run; job and attempt for jobs and pairs. No end: censored at the last time known of its run."""

    name = "probe"
    description = "log of latfit probe; latency = that of a monotonic clock"
    rank = 12
    begins = r'\{"latfit": "probe"'
    cells = "latency submitted status id"
    nothing = "the log contains no probes"
    uses = ()
    ends_alone = False  # whether an end may stand without the line of its submission

    def waits_in_queue(self, head: str) -> bool:
        """A batch system was probed: who resubmits goes to the end of its queue."""
        return '"target": "slurm"' in head.lstrip().split("\n", 1)[0]

    def read_appended(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the ends alone: each has its status and latency, and what is on its way will have its own."""
        ends = Probe()
        ends.ends_alone = True
        return ends.read(source, options)

    def probes(self, source: Source, last: Records) -> Iterator[tuple[int, Row | str | None]]:
        run, kind, now, censored = "", "", 0.0, 0
        out: dict[int, tuple[int, float, Row]] = {}  # the line of those on their way, their time, and what is known
        details: Counter[str] = Counter()
        for number, text in chain(numbered_lines(source, pauses=True), [(-1, "{}")]):
            if not number:
                yield 0, None
                continue
            try:
                line = json.loads(text)
                if "latfit" in line or number < 0:  # the end of a run: what is on its way is censored at the last time
                    censored += len(out)
                    for at, began, probe in out.values() if not self.ends_alone else ():
                        yield at, {**probe, "latency": max(0.0, now - began), "status": "censored"}
                    out = {}
                if "latfit" in line:
                    run, kind, now = str(line["run"]), str(line["kind"]), 0.0
                    if line.get("arrivals") == "closed":
                        last.notes.append(
                            f"measured in a closed loop of {int(line['in_flight'])} at a time: slowness that all share "
                            "is understated, up to threefold; --arrivals poisson shows it"
                        )
                elif "probe" in line:
                    probe = {"id": f"{run}.{int(line['probe'])}", "submitted": str(line["submitted"]), "run": run}
                    if kind != "probes":
                        probe |= {name: int(np.int64(int(line[name]))) for name in ("job", "attempt")}
                    now = max(now, float(line["t"]))
                    out[int(line["probe"])] = number, float(line["t"]), probe
                elif "end" in line:
                    ended = {"latency": float(line["latency"]), "status": STATUSES[STATUSES.index(line["status"])]}
                    if self.ends_alone:
                        out[int(line["end"])] = number, 0.0, {"id": f"{run}.{int(line['end'])}", "submitted": ""}
                    at, _, probe = out.pop(int(line["end"]))
                    now = max(now, float(line["t"]))
                    details.update([str(line.get("detail", ""))] * (line["status"] == "failed"))
                    yield at, {**probe, **ended}
                elif "beat" in line or "finished" in line:
                    now = max(now, float(line["t"] if "t" in line else line["beat"]))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
                yield number, f"unparseable line: {text[:60]!r}"
        if not run:
            raise LogError(f"{source.name}: there is no header of a run in this log")
        if censored:
            unended = f"probes without an end: {censored}"
            last.notes.append(f"{unended}, censored at the last time that the log knows of their run")
        if details:
            most = ", ".join(f"{count} × {detail}" for detail, count in details.most_common(8))
            last.notes.append(f"failed: {most}")
