"""The timeout to run jobs by, from the log that was measured before."""

from __future__ import annotations

from dataclasses import replace

from latfit.errors import ProbeError
from latfit.units import seconds


def decided(path: str, timeout: float | None = None) -> tuple[float, float]:
    """The careful timeout of a log, and the share of attempts that complete within it.

    The timeout is the given one, or the upper end of the window in which E_J stays within 5 % of its minimum: too
    late is safer than too early. Only first attempts of the log count.
    """
    from latfit.analysis import analyze
    from latfit.laws import Empirical
    from latfit.logs import read_log

    log = read_log(path)
    if "attempt" in log.frame:
        log = replace(log, frame=log.frame[log.frame["attempt"] == 1].reset_index(drop=True))
    found = analyze(log, laws=[], test=False, resamples=0)
    answer = found.to_dict()["timeout"]
    if timeout is None:
        window = answer["within_5pct"] or (None, None)
        if answer["timeout"] is None or window[1] is None:
            raise ProbeError(
                f"{path}: this log gives no timeout to run jobs by (verdict: {answer['verdict']}); give --timeout"
            )
        timeout = float(window[1])
    share = float(Empirical.of(log.sample(cutoff=found.to_dict()["outliers"]["cutoff"])).cdf(timeout))
    if share <= 0:
        raise ProbeError(f"{path}: nothing completed within {seconds(timeout)}: jobs with this timeout would never end")
    return timeout, share
