"""A verification in sentences."""

from __future__ import annotations

from typing import Any

from latfit.verify.attempts import Jobs
from latfit.verify.result import Estimate, Measured, Reason


def sentence(
    verdict: str,
    predicted: Estimate | None,
    measured: Measured,
    speed_up: dict[str, float | None],
    reasons: tuple[Reason, ...],
    *,
    timeout: float | None = None,
    verdict_before: dict[str, Any] | None = None,
) -> str:
    """The verdict in one sentence, or two where jobs are slower than before."""
    took = f"jobs take {_estimated(measured)}"
    if predicted is None:
        why = (verdict_before or {}).get("verdict")
        codes = ", ".join((verdict_before or {}).get("withheld") or ())
        held = f"the decision of BEFORE is withheld ({codes})" if why == "withheld" else "BEFORE decides for no timeout"
        return f"No prediction, as {held}: {took}, {_gain(speed_up)}."
    instead = f"{_estimated(predicted)} were predicted for a timeout of {_time(timeout)}"
    if verdict == "as predicted":
        return f"As predicted: {took}, and {instead}; {_gain(speed_up)}."
    because = "; ".join(reason.message for reason in reasons)
    text = f"{verdict.capitalize()} than predicted: {took}, where {instead}, because {because}; {_gain(speed_up)}."
    high = speed_up["high"]
    if high is not None and high < 1:
        text += " Jobs are slower than by waiting until the cutoff: take the timeout back."
    return text


def explained(code: str, jobs: Jobs, wanted: float, p: float | None) -> str:
    """A reason in words."""
    chance = "" if p is None else f" (log-rank test, p {'< 0.001' if p < 0.001 else f'= {p:.3f}'})"
    cuts = ", ".join(_time(t) for t in jobs.cuts)
    return {
        "rounding": f"attempts were cut after {cuts}, not after {_time(wanted)}: the tool rounds or has a schedule",
        "waits": f"{_time(jobs.pause)} passed between two attempts of a job, which the prediction did not count",
        "drift": f"first attempts are no longer like the probes of BEFORE{chance}: the system has drifted",
        "later-attempts": f"later attempts are not like first ones{chance}: a slow job is slow again",
        "unexplained": "of none of the causes that can be tested: cuts, waits, drift, later attempts",
    }[code]


def _time(seconds: float | None, *, beside: float | None = None) -> str:
    """A time in ms or s, in the unit that suits the time `beside` it."""
    if seconds is None:
        return "for ever"
    if (seconds if beside is None else beside) < 0.1:
        return f"{1000 * seconds:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:.0f} s"


def _estimated(estimate: Estimate) -> str:
    """An expected duration with its interval, all in one unit."""
    mean, low, high = (
        _time(x, beside=estimate.high) for x in (estimate.expected_duration, estimate.low, estimate.high)
    )
    return f"{mean} ({'no interval' if estimate.low is None else f'{low} to {high}'})"


def _gain(speed_up: dict[str, float | None]) -> str:
    return (
        f"{speed_up['measured']:.3g} × ({speed_up['low']:.3g} to {speed_up['high']:.3g}) the speed of waiting until "
        "the cutoff"
    )
