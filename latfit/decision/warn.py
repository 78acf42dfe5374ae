"""What the reader of a decision should be warned of, because the theory or the data do not carry it.

A warning is a function of a decision that returns what it found, or None; `@warning` registers it, and every
command then gives it by the same rule.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from latfit.curve import kaplan_meier
from latfit.decision.prepare import Prepared
from latfit.decision.result import Evidence, FittedLaw, Recommendation, Warned
from latfit.errors import counted
from latfit.fitting import JointRatio
from latfit.outliers import cutoff_verdict
from latfit.units import seconds

FLAT = 4.0  # a 5 % window whose ends are this far apart: nearly any timeout will do
SMALL_GAIN = 1.05
HEAVY_LOAD = 3.0
EDGE = 0.98
STRONG_CYCLE = 1.5
FEW_LOST = 10  # below it nothing is said of outages
MOSTLY, TOGETHER = 0.5, 5.0  # of those after a lost one are lost, and so many times the share of all
MIXED = ("column", "pair", "cell")  # kinds of worlds
LONG = 0.5  # of the log: latencies beyond that may be in another unit


class Case:
    """What a warning may look at."""

    def __init__(
        self,
        case: Prepared,
        made: Recommendation,
        evidence: Evidence | None,
        joint: JointRatio | None,
        fits: tuple[FittedLaw, ...],
        law: str | None,
    ) -> None:
        self.case, self.made, self.evidence, self.joint, self.fits, self.law = case, made, evidence, joint, fits, law

    @property
    def formula(self) -> Recommendation:
        """What the formula gives, withheld or not."""
        return self.made.formula


Warning_ = Callable[[Case], Warned | None]
WARNINGS: list[Warning_] = []


def warning(function: Warning_) -> Warning_:
    """Decorator: give this warning in every command."""
    WARNINGS.append(function)
    return function


def warnings_of(seen: Case) -> tuple[Warned, ...]:
    """Every warning that applies, in the order of registration."""
    return tuple(found for each in WARNINGS if (found := each(seen)) is not None)


@warning
def mixed(seen: Case) -> Warned | None:
    """Latencies differ by a column, and that changes the answer."""
    worlds = [world for world in seen.evidence.worlds if world.kind in MIXED] if seen.evidence else []
    harmed = [world for world in worlds if (world.unlimited or 0.0) > 1]
    if "mixed" in seen.made.withheld and harmed:
        worst = max(harmed, key=lambda world: world.unlimited or 0.0)
        told = f"latencies differ by {worst.name}, and a retry stays where it was: one timeout for all, repeated for "
        return Warned("mixed", f"{told}ever, would be slower than waiting")
    found = seen.evidence.mixing if seen.evidence else None
    if found is None:
        return None
    told = f"the column {found.column.name} explains {100 * found.share:.0f} % of how the latencies rank"
    return Warned("groups-differ", f"{told}; see --by {found.column.name} for the decision of each group")


@warning
def unit(seen: Case) -> Warned | None:
    """Latencies that are long beside the log may be in another unit than was guessed."""
    log = seen.case.seen
    if log is None or log.submitted is None or not log.facts.unit_guessed or not seen.case.sample.returned:
        return None
    length, longest = (
        float(np.nanmax(log.submitted) - np.nanmin(log.submitted)),
        float(seen.case.sample.completed.values[-1]),
    )
    if longest <= LONG * length:
        return None
    told = f"latencies of up to {longest:g} s are long beside the log, {length:g} s from first to last submission"
    return Warned("unit", f"{told}: if they are not in seconds, give --unit")


@warning
def queue(seen: Case) -> Warned | None:
    """Waits in a queue."""
    if seen.case.seen is None or not seen.case.seen.facts.queue:
        return None
    told = "these are waits in a queue: resubmitting loses the place in it, which the formula does not count"
    return Warned("queue", told)


@warning
def outages(seen: Case) -> Warned | None:
    """Lost probes that come one after the other."""
    found = seen.evidence.dependence if seen.evidence else None
    if found is None or found.lost_after_lost is None or seen.case.seen is None:
        return None
    back = np.flatnonzero(~seen.case.seen.lost)  # what was out when the log ended is none
    lost = int(np.count_nonzero(seen.case.seen.lost[: int(back[-1])])) if back.size else 0
    share = lost / seen.case.seen.n
    if lost < FEW_LOST or found.lost_after_lost < max(MOSTLY, TOGETHER * share):
        return None
    told = (f"lost probes come together ({100 * found.lost_after_lost:.0f} % of those after a lost one are lost, "
            f"{100 * share:.2g} % of all): as long as nothing comes back no timeout helps, and the gain is that of the "
            "rest of the time")  # fmt: skip
    return Warned("outages", told)


@warning
def dependent(seen: Case) -> Warned | None:
    """Slow probes follow slow ones."""
    found = seen.evidence.dependence if seen.evidence else None
    if found is None or not found.found:
        return None
    told = (f"slow probes follow slow ones (rank correlation {found.strongest:.2f}): a resubmitted job is not as "
            "independent of the first attempt as the formula assumes")  # fmt: skip
    bounds = seen.formula.intervals
    if bounds is not None and bounds.blocks is not None and bounds.blocks < 20:
        told += f"; the intervals rest on {counted(bounds.blocks, 'block')} of probes and are too narrow"
    return Warned("dependence", told)


@warning
def drifting(seen: Case) -> Warned | None:
    """The system changed within the log."""
    found = seen.evidence.drift if seen.evidence else None
    if found is None:
        return None
    if found.changes:
        first = found.changes[0]
        when = "" if first.at is None else f" at {np.datetime_as_string(first.at, unit='m')}Z"
        times = "once," if len(found.changes) == 1 else f"{len(found.changes)} times, first"
        told = f"the log changes {times}{when} (in its {first.kind}); see latfit drift"
        return Warned("drift", told)
    if found.daily_cycle is not None and found.daily_cycle > STRONG_CYCLE:
        told = f"the slowest hour of the day is {found.daily_cycle:.2g} times as slow as the fastest; see latfit drift"
        return Warned("drift", told)
    return None


@warning
def sticky(seen: Case) -> Warned | None:
    """Attempts of the same job resemble each other."""
    worlds = seen.evidence.worlds if seen.evidence else ()
    job = next((world for world in worlds if world.kind == "job"), None)
    if job is None:
        return None
    return Warned("later-attempts", f"attempts of the same job resemble each other (z = {job.z:.2g}): a retry is not a "
                                    "new draw")  # fmt: skip


@warning
def given_up(seen: Case) -> Warned | None:
    """Censoring that says something."""
    found = seen.case.censoring
    if found.cut_at is not None:
        told = (f"the log has no outcomes, and so many rows end at exactly {seconds(found.cut_at)} that this is a "
                "timeout: they count as cut off there")  # fmt: skip
        return Warned("cut", told)
    if found.informative and found.common_time is not None:
        told = (f"most of the probes given up were so at about {seconds(found.common_time)}, and others completed "
                "later: a rule of the system. They count as failed there (--censoring changes it)")  # fmt: skip
        return Warned("given-up", told)
    return None


@warning
def ratio_falling(seen: Case) -> Warned | None:
    """The outlier ratio still falls at the cutoff."""
    ratio = seen.case.ratio
    if cutoff_verdict(seen.case.whole, ratio) != "still falling":
        return None
    told = (f"the outlier ratio is still falling at the cutoff of {seconds(ratio.cutoff)}: some of the outliers are "
            "late rather than lost")  # fmt: skip
    return Warned("ratio-falling", told)


@warning
def rho_disagree(seen: Case) -> Warned | None:
    """A law that fits contradicts the counted ratio."""
    ratio, joint = seen.case.ratio, seen.joint
    if joint is None or not any(f.fit.name == joint.law and f.rejected is False for f in seen.fits):
        return None
    if joint.high >= ratio.low and joint.low <= ratio.high:
        return None
    told = (f"the counted outlier ratio ({100 * ratio.estimate:.2f} %) and that of {joint.law} "
            f"({100 * joint.estimate:.2f} %) disagree: "
            "beyond the cutoff the tail and the outliers cannot be told apart")  # fmt: skip
    return Warned("rho-disagree", told)


@warning
def all_rejected(seen: Case) -> Warned | None:
    """No law describes the latencies."""
    tested = [f for f in seen.fits if f.rejected is not None]
    if not tested or not all(f.rejected for f in tested):
        return None
    return Warned("all-rejected", "no fitted law describes these latencies (all p < 0.05): trust the data themselves")


@warning
def law_rejected(seen: Case) -> Warned | None:
    """The timeout is that of a law that the data reject."""
    if seen.law is None or not any(f.fit.name == seen.law and f.rejected for f in seen.fits):
        return None
    return Warned("law-rejected", f"the timeout is that of {seen.law}, which the test rejects (p < 0.05)")


@warning
def flat(seen: Case) -> Warned | None:
    """The choice hardly matters."""
    made = seen.made
    if made.within_5pct is None or made.verdict not in ("finite", "never"):
        return None
    low, high = made.within_5pct
    gain = made.speed_up_vs_cutoff
    lost = seen.case.cutoff.assumed and seen.case.ratio.count > 0  # nobody waits just until that cutoff
    if made.verdict == "finite" and gain is not None and gain < SMALL_GAIN and not lost:
        told = f"the choice hardly matters: even waiting until the cutoff takes only {100 * (gain - 1):.1f} % longer"
        return Warned("flat", told)
    (middle,) = seen.case.sample.completed.quantiles([0.5])
    if high > FLAT * low and (made.verdict == "finite" or low <= middle):
        told = (
            f"the choice hardly matters: any timeout from {seconds(low)} to {seconds(high)} is within 5 % of the best"
        )
        return Warned("flat", told)
    return None


@warning
def load(seen: Case) -> Warned | None:
    """Many submissions a job."""
    made = seen.made
    if made.verdict != "finite" or made.submissions is None or made.submissions <= HEAVY_LOAD:
        return None
    told = (f"a job would be submitted {made.submissions:.1f} times on average; to limit that, see latfit timeout "
            "--max-submissions")  # fmt: skip
    return Warned("load", told)


@warning
def beyond_timeout(seen: Case) -> Warned | None:
    """An optimum at the edge of what was seen, or beyond a timeout in force."""
    made, sample, cutoff = seen.formula, seen.case.sample, seen.case.cutoff.cutoff
    if made.verdict != "finite" or made.timeout is None:
        return None
    early = sample.censored
    before = int(early.counts[early.values < made.timeout].sum())
    if made.timeout > EDGE * cutoff and sample.out_at_cutoff:
        told = f"the optimum lies at the cutoff of {seconds(cutoff)}: beyond it nothing was seen"
    elif before > 5 and 2 * before > early.total:
        told = (f"{before} probes were given up before {seconds(made.timeout)}: a timeout is in force already, and "
                "above it the log says little")  # fmt: skip
    else:
        return None
    return Warned("beyond-timeout", told)


@warning
def thin(seen: Case) -> Warned | None:
    """Few at risk where the figures rest on."""
    made, sample = seen.formula, seen.case.sample
    if made.timeout is None or not sample.censored_early:
        return None
    km = kaplan_meier(sample)
    at = int(np.searchsorted(km.times, made.timeout, side="right")) - 1
    if at < 0 or km.at_risk[at] >= 10:
        return None
    left = int(km.at_risk[at])
    then = f"{counted(left, 'probe', 'was', 'were')} still observed at {seconds(made.timeout)}"
    told = f"only {then}: figures there are rough"
    return Warned("few-at-risk", told)
