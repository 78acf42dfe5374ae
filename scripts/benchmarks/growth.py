"""How cost grows: time and peak memory at n = 10³…10⁷ latencies and 10²…10⁵ groups, each in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.commands import LARGE, PLAIN, latfit, result
from benchmarks.data import command_log, probe_csv
from benchmarks.reading import READ
from benchmarks.reading import SETUP as READING
from benchmarks.startup import LOG
from benchmarks.timing import in_process, in_turns, seconds

IMPORTS = """
import numpy as np
from benchmarks.optimum import exact
from latfit.decision import Options, decide
from latfit.fitting import CLASSICAL, fit
from latfit.sample import LatencySample
"""
DRAWN = IMPORTS + "x = np.random.default_rng(1).lognormal(5.5, 1, {n})"
SAMPLED = DRAWN + "\nsample = LatencySample.of(x, lost={n} // 40)\n"
SIZES = (10**3, 10**4, 10**5, 10**6, 10**7)
GROUPS = "from benchmarks.batch import analysed, groups_of"


@dataclass(frozen=True)
class Work:
    """Some work at growing sizes: `code` is measured, after `setup`; `setup(0)` is all that is not of the size."""

    told: str
    unit: str
    setup: Callable[[int], str]
    code: Callable[[int], str]
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Growth:
    """What was measured at each size, and the peak before anything of that size was made."""

    key: str
    work: str
    unit: str
    sizes: list[int]
    seconds: list[list[float]]
    peaks: list[float]
    imports: float

    def exponent(self, values: list[float]) -> float:
        """The slope of the logarithms over the last three sizes."""
        return float(np.polyfit(np.log(self.sizes[-3:]), np.log(np.maximum(values[-3:], 1e-9)), 1)[0])

    def told(self) -> str:
        """The exponents in words."""
        above = [peak - self.imports for peak in self.peaks]
        time, memory = self.exponent([min(each) for each in self.seconds]), self.exponent(above)
        each = above[-1] * 2**20 / self.sizes[-1]
        return (
            f"{self.work}: time grows like n^{time:.2f} over the last three sizes, memory above the "
            f"{self.imports:.0f} MiB of the imports like n^{memory:.2f}, {each:.0f} bytes per {self.unit}"
        )


def drawn(code: str, n: int) -> str:
    return code.format(n=max(n, 10))


WORKS = {
    "optimum": Work("exact optimum of raw latencies", "latency", partial(drawn, DRAWN),
                    lambda n: f"exact(x, {n} // 40)", SIZES),
    "decision": Work("sample to decision, without tests and intervals", "latency", partial(drawn, SAMPLED),
                     lambda n: "decide([sample], Options(resamples=0, test=False))", SIZES),
    "laws": Work("sample and six laws with ρ", "latency", partial(drawn, DRAWN),
                 lambda n: f"sample = LatencySample.of(x, lost={n} // 40); fit(sample, CLASSICAL)", SIZES),
    "csv": Work("CSV to sample", "row", lambda n: READING,
                lambda n: READ.format(path=str(probe_csv(n, timestamps=False))), SIZES),
    "groups": Work("batch of groups of 500 probes: eight laws and decision", "group",
                   lambda n: f"{GROUPS}\ngroups = groups_of({n})", lambda n: "analysed(groups)",
                   (100, 1000, 10**4, 10**5)),
}  # fmt: skip


def grow(key: str, work: Work, quick: bool) -> Growth:
    """The largest two sizes are measured once, the others three times."""
    sizes, times, peaks = list(work.sizes[:-2] if quick else work.sizes), [], []
    for n in sizes:
        rounds = 1 if quick or n >= sizes[-2] else 3
        (found,) = in_turns(rounds, partial(in_process, work.setup(n), work.code(n)))
        times.append(seconds(found))
        peaks.append(min(one.result.peak for one in found))
    imports = in_process(work.setup(0), "pass").result.peak
    return Growth(key, work.told, work.unit, sizes, times, peaks, imports)


def grow_command(key: str, words: str, quick: bool) -> Growth:
    """A whole command on the log of `commands`, in processor time: twice up to 10⁵ rows, once beyond.

    `timeout` and `outliers` read 10⁷ rows too, and batches have a group for each 500 rows.
    """
    name, sizes, times, peaks = words.split()[0], [10**3, 10**4, 10**5, 250_000, 10**6], [], []
    if name in LARGE and not quick:
        sizes.append(10**7)
    for n in sizes:
        log = str(command_log(n, "csv", sites=max(2, n // 500) if name == "batch" else max(20, min(2000, n // 500))))
        run = latfit(*(word.replace("LOG", log).replace("OUT", result("ours.csv")) for word in words.split()))
        (found,) = in_turns(1 if quick or n > 10**5 else 2, run)
        times.append(seconds(found))
        peaks.append(min(one.result.peak for one in found))
    imports = latfit("timeout", str(LOG))().result.peak
    return Growth(key, f"`latfit {words}`, processor time of the whole command", "row", sizes, times, peaks, imports)


COMMANDS = {name: f"{name} LOG --json" for name in ("timeout", "outliers", "analyze", "replay", "drift", "compare")}
COMMANDS["batch"] = "batch LOG --by site -o OUT " + " ".join(PLAIN)
BENCHES = {f"growth/{name}": partial(grow, work=work) for name, work in WORKS.items()} | {
    f"growth/command-{name}": partial(grow_command, words=words) for name, words in COMMANDS.items()
}
