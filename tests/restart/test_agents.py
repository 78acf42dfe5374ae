"""Several agents: the corrected dynamic programme against enumeration."""

from itertools import product

import numpy as np
import pytest

from latfit.errors import RestartError
from latfit.laws import Defective, Empirical, parse_law
from latfit.restart import (
    earliest_timeout,
    expected_duration,
    optimal_schedule,
    optimal_strategy,
    optimal_timeout,
)
from latfit.sample import LatencySample

FAST_OR_STUCK = parse_law("discrete(values=[1,50],probs=[0.7,0.3])")
STEADY = parse_law("discrete(values=[6,7],probs=[0.5,0.5])")


def random_agent(rng):
    values = np.sort(rng.choice(np.arange(1, 60), 3, replace=False)).astype(float)
    probs = rng.dirichlet(np.ones(3))
    return values, probs / probs.sum()


def by_enumeration(agents, restarts, cost):
    """The least mean over all sequences of (agent, timeout), the last attempt without one, by plain sums."""
    choices = [(i, t) for i, (values, _) in enumerate(agents) for t in values]
    best = np.inf
    for plan in product(choices, repeat=restarts):
        for last in range(len(agents)):
            mean, reached, elapsed = 0.0, 1.0, 0.0
            for i, t in plan:
                values, probs = agents[i]
                mean += reached * sum(p * (elapsed + v) for v, p in zip(values, probs, strict=True) if v <= t)
                reached *= sum(p for v, p in zip(values, probs, strict=True) if v > t)
                elapsed += t + cost
            values, probs = agents[last]
            best = min(best, mean + reached * (elapsed + values @ probs))
    return best


@pytest.mark.parametrize("seed", range(12))
def test_strategy_against_enumeration(seed):
    rng = np.random.default_rng(seed)
    agents = [random_agent(rng) for _ in range(2)]
    laws = {
        str(i): parse_law(f"discrete(values={values.tolist()},probs={probs.tolist()})")
        for i, (values, probs) in enumerate(agents)
    }
    for restarts in (0, 1, 2, 3):
        cost = float(rng.choice([0.0, 2.0]))
        result = optimal_strategy(laws, restarts=restarts, cost=cost)
        assert result.expected_duration == pytest.approx(by_enumeration(agents, restarts, cost), rel=1e-12)
        assert result.steps[-1][1] is None
        assert all(timeout is not None for _, timeout in result.steps[:-1])
        assert len(result.steps) <= restarts + 1


def test_the_steady_agent_is_asked_last():
    result = optimal_strategy({"fast": FAST_OR_STUCK, "steady": STEADY}, restarts=2)
    assert result.steps == (("fast", 1), ("fast", 1), ("steady", None))
    assert result.to_dict()["strategy"][-1] == {"agent": "steady", "timeout": None}
    first = 0.7 * 1 + 0.3 * (1 + 0.7 * 1 + 0.3 * (1 + 6.5))
    assert result.expected_duration == pytest.approx(first)


def test_a_cost_makes_restarts_rarer():
    free = optimal_strategy({"fast": FAST_OR_STUCK, "steady": STEADY}, restarts=5)
    dear = optimal_strategy({"fast": FAST_OR_STUCK, "steady": STEADY}, restarts=5, cost=20)
    assert len(free.steps) == 6
    assert dear.steps == (("steady", None),)


def test_unbounded_is_the_best_agent_alone():
    laws = {"fast": FAST_OR_STUCK, "steady": STEADY}
    result = optimal_strategy(laws)
    assert result.steps == (("fast", 1),)
    assert result.expected_duration == pytest.approx(1 / 0.7)
    many = optimal_strategy(laws, restarts=60)
    assert many.expected_duration == pytest.approx(result.expected_duration)


def test_one_agent_is_a_schedule():
    law = parse_law("erlang-mixture(p=[0.9,0.1],phases=[2,2],rates=[20,2])")
    strategy, schedule = optimal_strategy({"v": law}, restarts=3), optimal_schedule(law, 3)
    assert strategy.expected_duration == pytest.approx(schedule.expected_duration, rel=1e-12)
    assert [t for _, t in strategy.steps[:-1]] == pytest.approx(schedule.timeouts)


def test_empirical_and_continuous_agents_together():
    sample = LatencySample.of([2, 3, 4, 90, 95], failed=[1.0], lost=1)
    laws = {"log": Empirical.of(sample), "law": parse_law("lognormal(mu=2,sigma=0.5)")}
    result = optimal_strategy(laws, restarts=2)
    assert result.steps[-1] == ("law", None)  # the log has probes that never complete
    assert result.steps[0] == ("log", 4)
    value = result.expected_duration
    # by hand: of 7 probes 3 complete by 4 s, one fails at 1 s, three are cut at 4 s
    E = laws["law"].mean()
    for _ in range(2):
        E = (2 + 3 + 4 + (1 + E) + 3 * (4 + E)) / 7
    assert value == pytest.approx(E)


def test_agents_that_never_end():
    stuck = Defective(STEADY, 0.1)
    with pytest.raises(RestartError, match="unbounded"):
        optimal_strategy({"a": stuck}, restarts=3)
    with pytest.raises(RestartError, match="unbounded"):
        optimal_strategy({"a": parse_law("pareto(a=1,nu=0.9)")}, restarts=3)
    assert optimal_strategy({"a": stuck, "b": STEADY}, restarts=1).steps[-1] == ("b", None)
    assert optimal_strategy({"a": stuck}).expected_duration == pytest.approx(optimal_timeout(stuck).expected_duration)
    with pytest.raises(RestartError, match="no agent"):
        optimal_strategy({})
    with pytest.raises(RestartError, match="restarts is -1"):
        optimal_strategy({"b": STEADY}, restarts=-1)


def test_data_have_an_earliest_timeout():
    """A latency of 0 is one below the step of the clock: giving up at once is no advice."""
    law = Empirical.of(LatencySample.of([0, 0, 0, 0, 0, 0, 1, 2, 2, 5, 9, 9, 30, 40.0], resolution=1.0))
    assert earliest_timeout(law) == 1.0
    assert earliest_timeout(Empirical.of(LatencySample.of([3.0, 4, 5, 6, 7, 8], resolution=1.0))) == 7.0
    assert optimal_strategy({"x": law}).steps == (("x", 0.0),)
    careful = optimal_strategy({"x": law}, min_timeouts={"x": 1.0})
    assert careful.steps == (("x", 1.0),)
    assert careful.expected_duration == expected_duration(law, 1.0) > 0
    assert min(optimal_schedule(law, 30, min_timeout=1.0).timeouts) == 1.0
    assert earliest_timeout(Empirical.of(LatencySample.of([1.0, 2, 3]))) == 3.0
    assert earliest_timeout(Empirical.of(LatencySample.of([0.0] * 6 + [60.0, 120.0], resolution=1.0))) == 60.0
    assert earliest_timeout(STEADY) == 0.0


def test_the_sooner_the_better():
    asked = optimal_strategy({"x": parse_law("pareto(a=1,nu=2)")})
    assert asked.steps == (("x", 0.0),)
    assert asked.expected_duration == pytest.approx(0.5)  # lim t/F(t) = a/nu
