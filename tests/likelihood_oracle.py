"""The likelihood of a law from its own formulas, without the kernels that latfit fits with."""

import numpy as np

from latfit.fitting.likelihood import profile_rho


def law_log_likelihood(law, batch):
    """ℓ of a batch of one under `law`, and the ρ that it is taken at: the most likely one where it is not given."""
    points = batch.points if batch.cell else batch
    done = float(points.weights[0] @ law.logpdf(points.x)[0])
    if batch.cell:
        low, high = batch.cells.edges
        with np.errstate(divide="ignore"):
            left = law.cdf(high) < 0.5  # from the side on which the difference keeps its digits
            inside = np.where(left, law.cdf(high) - law.cdf(low), law.sf(low) - law.sf(high))
            log_density = np.log(np.maximum(inside, 0.0)) - np.log(high - low)
        done += float(batch.cells.weights[0] @ log_density[0])
    log_s = law.logsf(batch.c)
    ratio = float((profile_rho(batch, log_s) if batch.rho is None else batch.rho)[0])
    with np.errstate(divide="ignore"):
        out = np.logaddexp(np.log(ratio), np.log1p(-ratio) + log_s)
        lost = float(batch.lost[0] * np.log(ratio)) if batch.lost[0] else 0.0
    return done + float(batch.n[0] * np.log1p(-ratio) + batch.c_weights[0] @ out[0]) + lost, ratio
