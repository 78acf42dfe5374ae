"""The page's model in node against the library, which shares no line with it."""

import json
import shutil
import subprocess
from importlib.resources import files

import numpy as np
import pytest

from latfit.laws import Empirical
from latfit.report.page import kept_sums
from latfit.restart import completion_cdf, completion_quantile, expected_duration, simulate_policy
from latfit.sample import LatencySample
from latfit.units import seconds
from pages import analysed

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")
RNG = np.random.default_rng(5)

ASK = """
const asked = JSON.parse(require("fs").readFileSync(0, "utf8")), law = asked.law;
const made = asked.rows.map(([rho, c, t, D]) => {
  const here = rho === null ? law : withRatio(law, rho);
  return [expectedDuration(here, t, c), submissions(here, t), doneBy(here, D, t, c),
    ...[0.5, 0.95, 0.99].map((q) => durationQuantile(here, q, t, c)), outlierRatio(here)];
});
console.log(JSON.stringify({ made, words: asked.times.map(seconds) }));
"""


def ask(law, rows, times=()):
    sums, steps = kept_sums(law)
    arrays = {"G": np.zeros(sums["t"].size), "H": np.zeros(sums["t"].size)} | sums
    arrays = {name: values.tolist() for name, values in arrays.items()}
    document = {"law": {**arrays, "steps": steps}, "rows": rows, "times": list(times)}
    script = (files("latfit.report") / "templates" / "model.js").read_text() + ASK
    done = subprocess.run([NODE, "-e", script], input=json.dumps(document), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def cases(law, count=100):
    low, high = law.support
    t = np.exp(RNG.uniform(np.log(max(low, high / 1e4)), np.log(high), count))
    t[::5] = RNG.choice(law.jumps[5:], t[::5].size)
    D = t * RNG.uniform(0.1, 6, count)
    D[::7] = 2 * t[::7]
    rho = [None if i % 3 == 0 else float(r) for i, r in enumerate(RNG.uniform(0, 0.8, count))]
    return list(zip(rho, np.where(RNG.random(count) < 0.5, 0, RNG.uniform(0, high, count)).tolist(), t.tolist(),
                    D.tolist(), strict=True))  # fmt: skip


@pytest.mark.parametrize("name", ["bundled", "hostile"])
def test_equal_to_the_library(name):
    law = Empirical.of(analysed(name).decision.sample)
    rows = cases(law)
    for (rho, c, t, D), made in zip(rows, ask(law, rows)["made"], strict=True):
        here = law if rho is None else law.rescaled(rho)
        wanted = [expected_duration(here, t, cost=c), 1 / here.cdf(t), completion_cdf(here, D, t, cost=c),
                  *(completion_quantile(here, q, t, cost=c) for q in (0.5, 0.95, 0.99)), here.rho]  # fmt: skip
        np.testing.assert_allclose([np.inf if v is None else v for v in made], np.array(wanted, float), rtol=1e-9,
                                   atol=1e-12)  # fmt: skip


def test_equal_with_failures():
    law = Empirical.of(analysed("failures").decision.sample)
    rows = cases(law, 60)
    for (rho, c, t, _), made in zip(rows, ask(law, rows)["made"], strict=True):
        here = law if rho is None else law.rescaled(rho)
        wanted = [expected_duration(here, t, cost=c), 1 / here.cdf(t)]
        np.testing.assert_allclose(made[:2], np.array(wanted, float), rtol=1e-9)
        assert made[-1] == pytest.approx(here.rho_without_failures, rel=1e-9)


def test_failures_against_simulation():
    law = Empirical.of(analysed("failures").decision.sample)
    t, c, D = 0.5, 0.1, 1.0
    jobs = simulate_policy(law, f"timeout(t={t})", 200_000, RNG, cost=c).durations
    done, *levels = ask(law, [[None, c, t, D]])["made"][0][2:6]
    assert done == pytest.approx((jobs <= D).mean(), abs=0.01)
    np.testing.assert_allclose(levels, np.quantile(jobs, [0.5, 0.95, 0.99]), rtol=0.03)


def test_a_thinned_law_is_close_between_its_times():
    sample = LatencySample.of(RNG.lognormal(3, 1, 30_000), lost=700)
    law = Empirical.of(sample)
    rows = [[None, 3.0, float(t), float(2 * t)] for t in np.quantile(law.jumps, [0.1, 0.3, 0.5, 0.7, 0.9, 0.99])]
    for (_, c, t, D), made in zip(rows, ask(law, rows)["made"], strict=True):
        assert made[0] == pytest.approx(float(expected_duration(law, t, cost=c)), rel=2e-3)
        assert made[2] == pytest.approx(float(completion_cdf(law, D, t, cost=c)), abs=2e-3)
        assert made[4] == pytest.approx(float(completion_quantile(law, 0.95, t, cost=c)), rel=1e-2)


def test_times_are_written_alike():
    times = [3.2e-8, 4.5e-5, 0.0056, 0.9997, 1.0, 357.6, 1034.4, 3599.7, 3600.0, 7500.0, 200_000.0, 4e6]
    law = Empirical.of(analysed("hostile").decision.sample)
    assert ask(law, [], times)["words"] == [seconds(t) for t in times]
