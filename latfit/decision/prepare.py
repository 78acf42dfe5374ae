"""From a sample as it was logged to the sample that is decided on: one rule, used by every command."""

from __future__ import annotations

from dataclasses import dataclass, replace

from latfit.decision.options import Options
from latfit.errors import SampleError
from latfit.evidence import Censoring, censoring
from latfit.outliers import CutoffChoice, OutlierRatio, default_cutoff, outlier_ratio
from latfit.sample import LatencySample, Tally
from latfit.table import CENSORED, COMPLETED, FAILED, LOST, ProbeTable


@dataclass(frozen=True, eq=False)
class Prepared:
    """A sample with its outcomes read, its cutoff, and what is out there.

    `whole` is the sample before the cut, `sample` after it; `seen` are the probes in their order, read alike, None
    where only a sample is known; `jobs` are the same probes as logged, where they are attempts of jobs and some had
    several. A later attempt is there because an earlier one was slow or failed: where attempts are independent it is
    a probe like any other, and where they are not, `latfit.evidence.worlds` finds a world of jobs.
    """

    whole: LatencySample
    sample: LatencySample
    cutoff: CutoffChoice
    ratio: OutlierRatio
    censoring: Censoring
    seen: ProbeTable | None = None
    jobs: ProbeTable | None = None


def prepare(given: LatencySample | ProbeTable, options: Options) -> Prepared:
    """Read the outcomes, choose the cutoff, cut, and count the outliers."""
    jobs = given.with_failed(options.failed) if isinstance(given, ProbeTable) and given.attempt is not None else None
    seen = given if isinstance(given, ProbeTable) else None
    logged = given.sample if isinstance(given, ProbeTable) else given
    found = censoring(logged, has_outcomes=seen is None or seen.facts.has_outcomes)
    whole, seen = _given_up(logged, seen, found, options.censoring)
    whole = whole.with_failed(options.failed)
    seen = seen and seen.with_failed(options.failed)
    if not whole.n:
        raise SampleError("the sample is empty: there is no probe to decide on")
    choice = default_cutoff(whole) if options.cutoff is None else CutoffChoice(options.cutoff, "given")
    cut = whole.cut(choice.cutoff)
    return Prepared(whole, cut, choice, outlier_ratio(cut), found, seen, jobs)


def _given_up(
    sample: LatencySample, seen: ProbeTable | None, found: Censoring, reading: str
) -> tuple[LatencySample, ProbeTable | None]:
    """The sample with those that were given up read as `reading` says."""
    if reading == "independent":
        return sample, seen
    if found.cut_at is not None:  # so many at the largest value can only be a timeout
        done = sample.completed
        cut = Tally(done.values[-1:], done.counts[-1:])
        sample = replace(sample, completed=Tally(done.values[:-1], done.counts[:-1]), censored=cut)
        return sample, seen and seen.with_status((seen.status == COMPLETED) & (seen.latency == found.cut_at), CENSORED)
    if reading == "auto":
        low, high = found.window if found.informative and found.window else (1.0, 0.0)
    else:
        low, high = 0.0, float("inf")
    inside = (sample.censored.values >= low) & (sample.censored.values <= high)
    if not inside.any():
        return sample, seen
    moved = Tally(sample.censored.values[inside], sample.censored.counts[inside])
    rest = Tally(sample.censored.values[~inside], sample.censored.counts[~inside])
    if reading == "lost":
        return replace(sample, censored=rest, lost=sample.lost + moved.total), seen and seen.with_status(
            seen.status == CENSORED, LOST
        )
    failed = Tally.sum([sample.failed, moved])
    if seen is not None:
        given_up = (seen.status == CENSORED) & (seen.latency >= low) & (seen.latency <= high)
        seen = seen.with_status(given_up, FAILED)
    return replace(sample, censored=rest, failed=failed), seen
