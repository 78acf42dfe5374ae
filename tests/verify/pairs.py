"""Pairs of logs whose truth is known: probes, and jobs that ran under a timeout."""

import numpy as np
import pandas as pd

import latfit

START = pd.Timestamp("2026-01-05T08:00:00Z")


def law(rng, size, *, scale=1.0, rho=0.05):
    """Log-normal latencies; a share never returns."""
    x = scale * rng.lognormal(0, 1, size)
    return np.where(rng.random(size) < rho, np.inf, x)


def frame_of(rows):
    """The canonical table of (seconds, latency, status) and more columns."""
    frame = pd.DataFrame(rows)
    frame["submitted"] = START + pd.to_timedelta(frame["submitted"], unit="s")
    return latfit.from_frame(frame, id="")


def probes(rng, n, *, cutoff=60.0, failures=0.0, **options):
    """A log of single probes, cut at the cutoff."""
    x = law(rng, n, **options)
    broken = rng.random(n) < failures
    x = np.where(broken, rng.uniform(0, 0.3, n), x)
    status = np.where(broken, "failed", np.where(x <= cutoff, "completed", "censored"))
    return frame_of({"submitted": np.arange(n) * 2.0, "latency": np.minimum(x, cutoff), "status": status})


def jobs(rng, n, t, *, pause=0.0, attempts=1000, sticky=False, failures=0.0, factor=1.0, **options):
    """A log of jobs whose attempts are cut at t, t·factor …, or at each of t; sticky: attempts take equally long."""
    times = [t * factor**k for k in range(attempts)] if np.isscalar(t) else t
    attempts = len(times)
    rows = {name: [] for name in ("submitted", "latency", "status", "job", "attempt")}
    for job in range(n):
        at, same = 100.0 * job, law(rng, 1, **options)[0]
        if sticky and not np.isfinite(same):
            same = law(rng, 1, **options | {"rho": 0.0})[0]
        for attempt in range(1, attempts + 1):
            limit = times[attempt - 1]
            x = same if sticky else law(rng, 1, **options)[0]
            status = "completed" if x <= limit else "censored"
            if rng.random() < failures:
                x, status = rng.uniform(0, 0.3), "failed"
            x = min(x, limit)
            for name, value in zip(rows, (at, x, status, job, attempt), strict=True):
                rows[name].append(value)
            at += x + pause
            if status == "completed":
                break
            if sticky and attempt > 8:  # it would never end
                break
    return frame_of(rows)


def decided(log):
    return latfit.analyze(log, laws=(), test=False, resamples=0).to_dict()["timeout"]["timeout"]


def schedule(log, cutoff=60.0):
    """The limits of the recommended schedule, the cutoff last."""
    return (*latfit.analyze(log, laws=(), test=False, resamples=0).decision.timeout.retry.timeouts, cutoff)
