"""What both kinds of figures draw, against simulations that share no code with it."""

import numpy as np
import pytest

from latfit.laws import Empirical
from latfit.report.charts import View, jobs_left, strategies_chart
from latfit.restart.evaluate import simulate_policy
from pages import analysed


def jobs(sample, timeout, cost, count, rng):
    """How long jobs take when every attempt is one of the probes, drawn again; written down as one would by hand."""
    fates = np.concatenate([np.stack([one.expand(), np.full(one.total, done)], axis=1)
                            for one, done in ((sample.completed, 1.0), (sample.failed, 0.0))])  # fmt: skip
    never = sample.n - len(fates)
    fates = np.concatenate([fates, np.full((never, 2), [np.inf, 0.0])])
    took, open_ = np.zeros(count), np.arange(count)
    while open_.size:
        latency, done = fates[rng.integers(len(fates), size=open_.size)].T
        took[open_] += np.minimum(latency, timeout)
        again = (latency > timeout) | (done == 0)
        open_ = open_[again]
        took[open_] += cost
    return took


@pytest.mark.parametrize(
    ("name", "timeout", "cost"), [("failures", 0.3, 0.05), ("failures", 1.0, 0.0), ("bundled", 358.0, 10.0)]
)
def test_jobs_not_yet_done(name, timeout, cost):
    sample = analysed(name).decision.sample
    took = jobs(sample, timeout, cost, 40_000, np.random.default_rng(8))
    t = np.quantile(took, [0.1, 0.5, 0.9, 0.99]) * 1.0001
    shown = jobs_left(Empirical.of(sample), t, timeout, cost)
    np.testing.assert_allclose(shown, [(took > x).mean() for x in t], atol=0.01)


def test_fitted_laws_have_the_failures_of_the_log():
    """A law that is drawn beside the log does not promise what only a system without failures has."""
    sample = analysed("failures").decision.sample
    ((name, law),) = View(analysed("failures"), 10).fitted
    assert name == "lognormal"
    end = np.array([sample.cutoff])
    assert law.cdf(end)[0] == pytest.approx(Empirical.of(sample).cdf(end)[0], abs=0.03)


@pytest.mark.slow
def test_tails_of_strategies():
    law = Empirical.of(analysed("bundled").decision.sample)
    view = View(analysed("bundled"), 20)
    drawn = strategies_chart(view).lines
    assert drawn[0].name == "Cancel and resubmit after 358 s"
    assert 2 <= len(drawn) <= 4
    for line, row in zip(drawn, view.strategies.rows, strict=False):
        took = simulate_policy(law, row.outcome.policy, 8_000, np.random.default_rng(3)).durations
        left = np.array([(took > t).mean() for t in line.x])
        np.testing.assert_allclose(line.y[left > 0.01], left[left > 0.01], atol=0.015)


def test_no_strategies_where_nothing_is_recommended():
    for name in ("mixed", "failures"):
        assert View(analysed(name), 10).strategies is None
