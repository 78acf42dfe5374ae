"""The timeout to run jobs by, from the log that was measured before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from latfit.errors import ProbeError
from latfit.units import seconds

if TYPE_CHECKING:
    from latfit.logs import ProbeLog


def first_attempts(path: str | Path) -> ProbeLog:
    """A log without the later attempts of its jobs, which were made only because a first one was slow."""
    from latfit.logs import read_log

    log = read_log(path)
    if "attempt" not in log.frame:
        return log
    return replace(log, frame=log.frame[log.frame["attempt"] == 1].reset_index(drop=True))


def decided(path: str, timeout: float | None = None) -> tuple[float, float]:
    """The careful timeout of a log, and the share of attempts that complete within it.

    The timeout is the given one, or the upper end of the window in which E_J stays within 5 % of its minimum: too
    late is safer than too early. Only first attempts of the log count.
    """
    from latfit.decision import Options, decide
    from latfit.evidence import Observations
    from latfit.laws import Empirical

    options = Options(laws=("exponential",), test=False, resamples=0)  # no law is asked for
    found = decide([Observations.of(first_attempts(path))], options)[0].require()
    assert found.timeout is not None
    assert found.sample is not None
    if timeout is None:
        window = found.timeout.within_5pct or (None, None)
        if found.timeout.timeout is None or window[1] is None:
            said = f"verdict: {', '.join([found.timeout.verdict, *found.timeout.withheld])}"
            raise ProbeError(f"{path}: this log gives no timeout to run jobs by ({said}); give one with --timeout")
        timeout = float(window[1])
    share = float(Empirical.of(found.sample).cdf(timeout))
    if share <= 0:
        raise ProbeError(f"{path}: nothing completed within {seconds(timeout)}: jobs with this timeout would never end")
    return timeout, share
