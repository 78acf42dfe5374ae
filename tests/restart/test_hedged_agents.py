"""Several agents with a hedge: against drawn requests and against a plain grid."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from conftest import EGEE
from latfit.cli import main
from latfit.errors import RestartError
from latfit.laws import Defective, Empirical, parse_law
from latfit.restart import evaluate_policy, optimal_hedge
from latfit.restart.hedged import hedged
from latfit.sample import LatencySample

FAST = Defective(parse_law("lognormal(mu=0,sigma=1.2)"), 0.1)
STEADY = parse_law("uniform(a=2,b=3)")
SAMPLE = Empirical.of(LatencySample.of(np.round(np.random.default_rng(1).lognormal(0, 0.8, 60), 2), lost=2))


def drawn(first, second, d, t_inf, n, rng):
    """Completion times, drawn request by request."""
    J, waiting, start = np.zeros(n), np.arange(n), 0.0
    while waiting.size:
        best = np.minimum(law_sample(first, waiting.size, rng), d + law_sample(second, waiting.size, rng))
        done = best <= t_inf
        J[waiting[done]] = start + best[done]
        waiting, start = waiting[~done], start + t_inf
    return J


def law_sample(law, n, rng):
    if law is SAMPLE:
        shares = np.append(np.diff(law.cdf(law.jumps), prepend=0), law.never)
        return rng.choice(np.append(law.jumps, np.inf), n, p=shares)
    inner, rho = (law.law, law.rho) if isinstance(law, Defective) else (law, 0.0)
    return np.where(rng.random(n) < rho, np.inf, inner.sample(n, rng))


@pytest.mark.parametrize(("first", "second"), [(FAST, STEADY), (STEADY, FAST), (SAMPLE, STEADY), (SAMPLE, SAMPLE)])
def test_against_drawn_requests(first, second):
    rng = np.random.default_rng(3)
    plan = hedged(first, second, 0.7, 4.0)
    J = drawn(first, second, 0.7, 4.0, 40_000, rng)
    assert J.mean() == pytest.approx(plan.mean, abs=5 * J.std() / 200)
    assert J.std() == pytest.approx(plan.std, rel=0.05)
    assert (J > 2.5).mean() == pytest.approx(plan.survival(2.5), abs=0.012)
    assert (plan.quantile(0.9) >= J).mean() == pytest.approx(0.9, abs=0.02)


def test_an_agent_with_itself_is_the_policy():
    assert hedged(FAST, FAST, 0.7, 4.0, q=0.5).mean == pytest.approx(
        evaluate_policy(FAST, "hedge(d=0.7,t_inf=4,q=0.5)").expected_duration
    )


@pytest.mark.parametrize("objective", ["mean", "quantile:0.95"])
def test_best_pair_against_a_grid(objective):
    agents = {"fast": FAST, "steady": STEADY, "log": SAMPLE}
    best = optimal_hedge(agents, objective=objective, cost=0.05)
    least = np.inf
    for first in agents.values():
        for second in agents.values():
            for d in np.linspace(0, 4, 12):
                for t_inf in np.geomspace(d + 0.3, 60, 12):
                    plan = hedged(first, second, float(d), float(t_inf), cost=0.05)
                    least = min(least, plan.mean if objective == "mean" else plan.quantile(0.95))
    assert best.objective["value"] <= least * 1.002
    assert best.parallel > 1


def test_what_is_refused():
    with pytest.raises(RestartError, match="no agent"):
        optimal_hedge({})
    failing = Empirical.of(LatencySample.of([1, 2, 3.0], failed=[1.0]))
    with pytest.raises(RestartError, match="--failed"):
        optimal_hedge({"a": failing}, objective="quantile:0.9")


def test_two_agents_that_fail_visibly():
    """Request by request: where the first has failed before the second is due, or both have, all begins again."""
    first, second, rng = ([1.0, 2, 8, 9], [0.5, 4]), ([2.0, 3, 3], [1.0]), np.random.default_rng(9)

    def request(agent):
        at = rng.integers(len(agent[0]) + len(agent[1]))
        return (agent[0] + agent[1])[at], at < len(agent[0])

    spent = []
    for _ in range(20_000):
        begin, done = 0.0, None
        while done is None:
            over, ends = begin, []
            for agent, start in ((first, begin), (second, begin + 1.5)):
                if agent is second and over <= start:
                    break
                x, completed = request(agent)
                ended = start + x <= begin + 6
                over = max(over, start + x if ended else begin + 6)
                ends += [start + x] if completed and ended else []
            done, begin = min(ends, default=None), over + 0.2
        spent.append(done)
    laws = (Empirical.of(LatencySample.of(done, failed=failed)) for done, failed in (first, second))
    mean = hedged(*laws, 1.3, 6.0, cost=0.2).mean
    assert mean == pytest.approx(np.mean(spent), abs=4 * np.std(spent) / np.sqrt(20_000))


def test_command():
    law = ["--agent", "near=lognormal(mu=4,sigma=1.5)"]
    done = CliRunner().invoke(
        main, ["agents", *law, "--agent", f"egee={EGEE}", "--hedge", "--read", "egee:cutoff=9000", "--json"]
    )
    pair = json.loads(done.stdout)
    assert {pair["first"], pair["second"]} <= {"near", "egee"}
    assert pair["submissions"] > 1
    text = CliRunner().invoke(main, ["agents", *law, "--hedge", "--objective", "quantile:0.9"]).output
    assert text.startswith("Ask near, and again at once")
    for wrong in (["--objective", "std"], ["--hedge", "--restarts", "2"], ["--read", "near:nothing=1"]):
        assert CliRunner().invoke(main, ["agents", *law, *wrong]).exit_code == 2
