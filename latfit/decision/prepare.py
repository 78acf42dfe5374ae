"""What is asked of a decision, and from a sample as it was logged to the one that is decided on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from typing import Any

import numpy as np

from latfit.curve import MIN_COMPLETIONS
from latfit.errors import SampleError
from latfit.fitting.ranking import names_of_laws
from latfit.numbers import is_count, is_number
from latfit.outliers import CutoffChoice, OutlierRatio, default_cutoff, outlier_ratio
from latfit.resample import RESAMPLES
from latfit.sample import LatencySample, Tally
from latfit.table import CENSORED, COMPLETED, FAILED, LOST, ProbeTable

Key = tuple[str, ...]

READINGS = {"failed": ("retry", "completed", "lost"), "censoring": ("auto", "independent", "failed", "lost")}

# what the type of an option allows, and in words
ALLOWED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "float": (is_number, "a number"),
    "int": (is_count, "a whole number, 0 or more"),
    "str": (lambda value: isinstance(value, str), "text"),
    "bool": (lambda value: isinstance(value, (bool, np.bool_)), "True or False"),
}


@dataclass(frozen=True)
class Options:
    """How samples become decisions.

    `cutoff`: when a probe still out counts as an outlier (None: from the sample). `failed`: how visible failures are
    read. `censoring`: how probes are read that were given up before the cutoff: `auto` counts those given up at one
    common time, after which others completed, as failed there; `independent` takes all as censored; `failed` and
    `lost` read all so. `cost`: seconds that a restart costs. `laws`: those to fit (None: the default ones); `law`: the
    fitted law that the timeout is taken from (None: the data themselves), by maximum likelihood or, with the `method`
    `ls`, by least squares. `rho`: rescale to this outlier ratio.
    `risk`: the largest loss, as a share of waiting, that a schedule may bring if every retry takes as long as the first
    attempt would have; 0 always waits. `accept_implausible`: decide even if that is over 100 times faster than waiting,
    or the timeout longer than the log. `current`: the timeout in use.
    `resamples` = 0 leaves out every interval, `test` = False the tests of fit.
    The rest is as in `latfit.optimal_timeout`.

    Examples
    --------
    >>> import latfit
    >>> latfit.Options(cost=5.0, objective="quantile:0.95").plain
    False
    """

    cutoff: float | None = None
    failed: str = "retry"
    censoring: str = "auto"
    cost: float = 0.0
    laws: Sequence[str] | None = None
    law: str | None = None
    method: str = "mle"
    rho: float | None = None
    current: float | None = None
    resamples: int = RESAMPLES
    test: bool = True
    seed: int = 0
    objective: str = "mean"
    wall_clock: float = 0.0
    copies: int = 1
    max_submissions: float | None = None
    risk: float = 0.3
    accept_implausible: bool = False

    def __post_init__(self) -> None:
        if self.laws is not None:
            object.__setattr__(self, "laws", names_of_laws(self.laws))
        for name, readings in READINGS.items():
            if getattr(self, name) not in readings:
                raise SampleError(f"{name} can be {', '.join(readings)}, not {getattr(self, name)!r}")
        for field in fields(self):
            value, (kind, *optional) = getattr(self, field.name), str(field.type).split(" | ")
            allows, allowed = ALLOWED.get(kind, (np.iterable, "a list"))
            if not (allows(value) or (optional and value is None)):
                raise SampleError(f"{field.name} is {value!r}; it must be {allowed}{' or None' if optional else ''}")
        if not self.risk >= 0:
            raise SampleError(f"the risk is a share of at least 0, not {self.risk!r}")

    @property
    def plain(self) -> bool:
        """Whether the timeout of the least mean duration is asked for, and nothing else."""
        return (self.objective, self.wall_clock, self.copies, self.max_submissions) == ("mean", 0.0, 1, None)

    @property
    def policy(self) -> dict[str, Any]:
        """The arguments of `optimal_timeout`."""
        return {name: getattr(self, name) for name in ("cost", "wall_clock", "copies", "objective")}


@dataclass(frozen=True)
class Censoring:
    """What share was given up before the cutoff, whether most of it at one time, and whether that is a rule.

    `common_time` is where most were given up, None where there is no such time. `informative` says that probes
    given up there ended there: others completed later, so giving up was a decision of the system about the probe.
    `cut_at` is a largest value that so many rows share that it must be a timeout, in a log without outcomes.
    """

    share: float
    common_time: float | None = None
    informative: bool = False
    cut_at: float | None = None
    window: tuple[float, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "window"}


def censoring(sample: LatencySample, *, has_outcomes: bool = True) -> Censoring:
    """The narrowest [a, 1.02 a] holding most of those given up; three completions after it make it a rule."""
    values, counts, total = sample.censored.values, sample.censored.counts, sample.censored.total
    share = total / sample.n if sample.n else 0.0
    if not total:
        return Censoring(share, cut_at=None if has_outcomes or sample.lost else _shared_maximum(sample.completed))
    before = np.concatenate([[0], np.cumsum(counts)])
    ends = np.searchsorted(values, values * 1.02, side="right")
    held = before[ends] - before[:-1]
    start = int(held.argmax())
    inside = slice(start, ends[start])
    if held[start] < max(MIN_COMPLETIONS, total / 2):
        return Censoring(share)
    common = float(np.average(values[inside], weights=counts[inside] / counts[inside].sum()))  # 1e308s do not overflow
    window = float(values[start]), float(values[ends[start] - 1])
    later = int(sample.completed.counts[sample.completed.values > window[1]].sum())
    return Censoring(share, common, later >= 3, window=window)


def _shared_maximum(completed: Tally) -> float | None:
    """The largest latency if far more probes share it than any of those just below."""
    if completed.values.size < 10:
        return None
    last, below = int(completed.counts[-1]), completed.counts[-21:-1]
    enough = last >= max(MIN_COMPLETIONS, 0.005 * completed.total) and last > 8 * below.max()
    return float(completed.values[-1]) if enough else None


@dataclass(frozen=True, eq=False)
class Prepared:
    """A sample with its outcomes read, its cutoff, and what is out there.

    `whole` is the sample before the cut, `sample` after it; `seen` are the probes, read alike, in their order unless
    they are `bare`: then nothing but a sample is known. `options` are what is asked of it.
    """

    options: Options
    key: Key
    whole: LatencySample
    sample: LatencySample
    cutoff: CutoffChoice
    ratio: OutlierRatio
    censoring: Censoring
    seen: ProbeTable
    bare: bool

    @property
    def enough(self) -> bool:
        """Whether enough probes completed for a timeout."""
        return self.sample.completed.total >= MIN_COMPLETIONS

    @property
    def cost(self) -> float:
        return self.options.cost

    def rng(self, *names: str) -> np.random.Generator:
        """Random numbers that depend on the seed, on `names` and on its key alone."""
        return generator(self.options.seed, *names, *self.key)


def generator(seed: int, *names: str) -> np.random.Generator:
    """Random numbers that depend on the seed and on names, not on who else is analysed."""
    digest = blake2b("\0".join(names).encode(), digest_size=8).digest()
    return np.random.default_rng([seed, int.from_bytes(digest)])


def prepare(log: LatencySample | ProbeTable, options: Options, key: Key = ()) -> Prepared:
    """Read the outcomes, choose the cutoff, cut, and count the outliers; random numbers will depend on the `key`."""
    bare = isinstance(log, LatencySample)
    probes = ProbeTable.of_sample(log) if isinstance(log, LatencySample) else log
    given_up = censoring(probes.sample, has_outcomes=probes.facts.has_outcomes)
    seen = _read_given_up(probes, given_up, options.censoring).with_failed(options.failed)
    logged = probes.sample
    whole = logged if seen is probes else replace(seen.sample, resolution=logged.resolution, cutoff=logged.cutoff)
    if not whole.n:
        raise SampleError("the sample is empty: there is no probe to decide on")
    choice = default_cutoff(whole) if options.cutoff is None else CutoffChoice(options.cutoff, "given")
    sample = whole.cut(choice.cutoff)
    return Prepared(options, key, whole, sample, choice, outlier_ratio(sample), given_up, seen, bare)


def _read_given_up(probes: ProbeTable, given_up: Censoring, reading: str) -> ProbeTable:
    if reading == "independent":
        return probes
    if given_up.cut_at is not None:  # so many at the largest value can only be a timeout
        return probes.with_status((probes.status == COMPLETED) & (probes.latency == given_up.cut_at), CENSORED)
    rows = probes.status == CENSORED
    if reading == "auto":
        low, high = given_up.window if given_up.informative and given_up.window else (np.inf, np.inf)
        rows &= (probes.latency >= low) & (probes.latency <= high)
    return probes.with_status(rows, LOST if reading == "lost" else FAILED)
