"""Later attempts against first ones: the sticky service must be caught, and independent attempts not accused."""

import numpy as np

from latfit.evidence.log_rank import log_rank
from latfit.table import COMPLETED, STATUSES, ProbeTable

CUTOFF = 10.0


def pairs(draw, jobs, d, rng, cutoff=CUTOFF):
    """The log of paired probes: `draw(rng, sick)` is a latency, `sick` being the fate of the job."""
    rows = []
    for job in range(jobs):
        fate = rng.random()
        x = draw(rng, fate)
        rows.append((job, 1, x))
        if x > d:
            rows.append((job, 2, draw(rng, fate)))
    job, attempt, latency = map(np.array, zip(*rows, strict=True))
    return table(job, attempt, np.minimum(latency, cutoff), np.where(latency > cutoff, "censored", "completed"))


def table(job, attempt, latency, status):
    codes = np.array([STATUSES.index(word) for word in status], dtype=np.int8)
    return ProbeTable(latency, codes, job=np.unique(job, return_inverse=True)[1], attempt=attempt)


def independent(rng, fate):
    return rng.lognormal(-3, 0.5) if rng.random() < 0.8 else rng.lognormal(0, 0.5)


def by_job(rng, fate):
    return rng.lognormal(-3, 0.5) if fate < 0.8 else rng.lognormal(0, 0.5)


def simulated(draw, t, rng, jobs=20_000, most=200):
    """The mean duration of jobs that are cancelled at t and tried again, at most so often, without any formula."""
    total = 0.0
    for _ in range(jobs):
        fate = rng.random()
        for _ in range(most):
            x = draw(rng, fate)
            total += min(x, t)
            if x <= t:
                break
    return total / jobs


def test_the_test_has_its_size():
    rng = np.random.default_rng(6)
    p = []
    for _ in range(200):
        attempts = pairs(independent, 150, 0.2, rng)
        p.append(log_rank(attempts.latency, attempts.status == COMPLETED, attempts.attempt > 1))
    assert sum(x < 0.05 for x in p) <= 20
