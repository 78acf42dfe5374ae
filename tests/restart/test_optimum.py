"""The optimiser against brute force, its verdicts, windows, limits and units."""

import json

import numpy as np
import pytest

from latfit.errors import RestartError
from latfit.laws import Defective, Empirical, get_law, law_names, parse_law
from latfit.restart import (
    completion_cdf,
    completion_quantile,
    evaluate_timeout,
    expected_duration,
    moments,
    optimal_schedule,
    optimal_timeout,
    std_duration,
)
from latfit.restart.optimum import flat_windows
from latfit.sample import LatencySample

V = parse_law("erlang-mixture(p=[0.9,0.1],phases=[2,2],rates=[20,2])")
TOLERANCE = 1e-9


def random_law(rng):
    """Laws of many shapes and units, several of them with more than one local minimum."""
    s = 10 ** rng.uniform(-4, 6)
    shapes = [
        lambda: f"lognormal(mu={np.log(s)},sigma={rng.uniform(0.1, 4)})",
        lambda: f"weibull(shape={rng.uniform(0.3, 4)},scale={s})",
        lambda: f"exponential(rate={1 / s})",
        lambda: f"uniform(a={s * rng.choice([0, rng.uniform(0, 0.99)])},b={s})",
        lambda: f"pareto(a={s},nu={rng.uniform(0.5, 4)})",
        lambda: f"gamma(shape={rng.uniform(0.3, 6)},scale={s})",
        lambda: f"log-logistic(shape={rng.uniform(1.1, 6)},scale={s})",
        lambda: f"truncated-gaussian(mu={s * rng.uniform(-1, 4)},sigma={s})",
        lambda: erlangs(rng, s),
        lambda: pieces(rng, s),
    ]
    return parse_law(shapes[rng.integers(len(shapes))]())


def numbers(values):
    return "[" + ",".join(repr(float(v)) for v in values) + "]"


def erlangs(rng, s):
    k = int(rng.integers(2, 5))
    p, rates, phases = rng.dirichlet(np.ones(k)), 10 ** rng.uniform(-2, 2, k) / s, rng.integers(1, 30, k)
    return f"erlang-mixture(p={numbers(p)},phases=[{','.join(map(str, phases))}],rates={numbers(rates)})"


def pieces(rng, s):
    k = int(rng.integers(1, 6))
    edges = s * np.concatenate([[rng.choice([0.0, 0.01])], np.sort(10 ** rng.uniform(-1.5, 1.5, k))])
    return f"piecewise-uniform(edges={numbers(edges)},probs={numbers(rng.dirichlet(np.ones(k)))})"


def grid(law, n=100_000):
    """Timeouts from far below to far above the law, half of them where its mass is."""
    levels = np.linspace(0, 1, 2002)[1:-1]
    quantiles = np.interp(np.linspace(levels[0], levels[-1], n // 2), levels, law.ppf(levels))
    low, high = max(quantiles[0], 1e-250), quantiles[-1]
    return np.concatenate([quantiles, np.geomspace(low * 1e-3, high * 1e3, n // 2)])


@pytest.mark.slow
@pytest.mark.parametrize("block", range(2))
def test_smooth_optimum_against_brute_force(block):
    for seed in range(20 * block, 20 * block + 20):
        rng = np.random.default_rng(seed)
        law = random_law(rng)
        rho = rng.choice([0.0, 10 ** rng.uniform(-6, -0.3)])
        cost = rng.choice([0.0, float(law.ppf(0.5)) * 10 ** rng.uniform(-3, 1)])
        F = Defective(law, rho)
        best = optimal_timeout(F, cost=cost)
        lowest = np.nanmin(expected_duration(F, np.append(grid(law), np.inf), cost=cost))
        assert best.expected_duration <= lowest * (1 + TOLERANCE), (seed, F, cost, best)
        if best.verdict == "finite":
            assert float(expected_duration(F, best.timeout, cost=cost)) == pytest.approx(best.expected_duration)
            below, above = best.within_1pct
            assert below <= best.timeout <= above


@pytest.mark.slow
@pytest.mark.parametrize("name", law_names())
def test_every_registered_law(name):
    for spec in getattr(get_law(name), "examples", ()):
        law = parse_law(spec)
        for rho, cost in ((0.0, 0.0), (0.02, 0.0), (0.1, float(law.ppf(0.4)))):
            F = Defective(law, rho)
            best = optimal_timeout(F, cost=cost)
            if best.expected_duration is not None:
                lowest = np.nanmin(expected_duration(F, np.append(grid(law, 4000), np.inf), cost=cost))
                assert best.expected_duration <= lowest * (1 + TOLERANCE)


OBJECTIVES = {
    "std": lambda law, t, c: std_duration(law, t, cost=c),
    "moment:3": lambda law, t, c: moments(law, t, 3, cost=c)[3],
    "quantile:0.9": lambda law, t, c: completion_quantile(law, 0.9, t, cost=c),
}


@pytest.mark.slow
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_other_objectives_against_brute_force(objective):
    for seed in range(1000, 1012):
        rng = np.random.default_rng(seed)
        law = random_law(rng)
        F = Defective(law, rng.choice([0.0, 0.05]))
        cost = rng.choice([0.0, float(law.ppf(0.5)) * 0.2])
        best = optimal_timeout(F, cost=cost, objective=objective)
        with np.errstate(all="ignore"):
            lowest = np.nanmin(OBJECTIVES[objective](F, np.append(grid(law, 5_000), np.inf), cost))
        assert best.objective["value"] <= lowest * (1 + TOLERANCE), (seed, F, cost, best)


@pytest.mark.slow
def test_deadline_against_brute_force():
    for seed in range(2000, 2020):
        rng = np.random.default_rng(seed)
        law = random_law(rng)
        F = Defective(law, rng.choice([0.0, 0.05]))
        D = float(law.ppf(0.5)) * rng.uniform(1, 8)
        cost = rng.choice([0.0, D / 20])
        best = optimal_timeout(F, cost=cost, objective=f"deadline:{D!r}")
        times = np.concatenate([D / np.arange(1, 40), np.geomspace(D * 1e-4, 2 * D, 1000)])
        chances = [float(completion_cdf(F, D, t, cost=cost)) for t in times]
        assert best.objective["value"] >= max(chances) - TOLERANCE, (seed, F, D, cost, best)


# ---- samples ----------------------------------------------------------------------------------


def random_sample(rng):
    """Samples with ties, with one or two values, all equal, censored, with failures, with zeros."""
    n = int(rng.choice([1, 2, 3, 7, 30, 200]))
    x = rng.lognormal(2, rng.uniform(0.2, 2), n)
    x = np.round(x, int(rng.integers(0, 4)))
    if rng.random() < 0.1:
        x[:] = x[0]
    failed = np.round(rng.lognormal(1.5, 1, int(rng.integers(1, 15))), 1) if rng.random() < 0.4 else []
    censored = np.round(rng.lognormal(2.5, 1, int(rng.integers(1, 15))), 1) if rng.random() < 0.4 else []
    lost = int(rng.integers(0, 5)) if rng.random() < 0.5 else 0
    return LatencySample.of(x, failed=failed, censored=censored, lost=lost)


def by_hand(sample, cost):
    """E_J at any timeouts by Kaplan–Meier and ∫S, in the plainest way: (∫₀ᵗ S + c (1−F̃))/F̃."""
    events = [(float(v), int(k), 0, 0) for v, k in zip(sample.completed.values, sample.completed.counts, strict=True)]
    events += [(float(v), 0, int(k), 0) for v, k in zip(sample.failed.values, sample.failed.counts, strict=True)]
    events += [(float(v), 0, 0, int(k)) for v, k in zip(sample.censored.values, sample.censored.counts, strict=True)]
    at_risk, S, F, area, last = sample.n, 1.0, 0.0, 0.0, 0.0
    times, table = [0.0], [(1.0, 0.0, 0.0)]
    for time in sorted({e[0] for e in events}):
        done, gone, away = (sum(e[i] for e in events if e[0] == time) for i in (1, 2, 3))
        area += S * (time - last)
        F += S * done / at_risk
        S *= 1 - (done + gone) / at_risk
        at_risk -= done + gone + away
        last = time
        times.append(time)
        table.append((S, F, area))
    S_, F_, A_ = np.array(table).T
    knots = np.array(times)

    def E_J(t):
        i = np.searchsorted(knots, t, side="right") - 1
        with np.errstate(divide="ignore", invalid="ignore"):
            E = (A_[i] + S_[i] * (t - knots[i]) + cost * (1 - F_[i])) / F_[i]
        return np.where(F_[i] > 0, E, np.inf)

    return E_J


@pytest.mark.slow
@pytest.mark.parametrize("block", range(2))
def test_empirical_optimum_against_brute_force(block):
    for seed in range(50 * block, 50 * block + 50):
        rng = np.random.default_rng(seed)
        sample = random_sample(rng)
        cost = rng.choice([0.0, rng.uniform(0, 20)])
        law = Empirical.of(sample)
        best = optimal_timeout(law, cost=cost)
        E_J = by_hand(sample, cost)
        x = sample.completed.values
        times = np.concatenate(
            [x, x * 1.0001, rng.uniform(0, x[-1] * 1.5 + 1, 50_000), np.geomspace(1e-3, 1e5, 50_000)]
        )
        lowest = E_J(times).min()
        assert best.verdict in ("finite", "never")
        assert best.expected_duration <= lowest * (1 + TOLERANCE) + 1e-13
        assert best.expected_duration == pytest.approx(lowest, rel=1e-9, abs=1e-12)
        if best.verdict == "finite":
            assert best.timeout in x
            assert float(E_J(best.timeout)) == pytest.approx(lowest, rel=1e-12, abs=1e-12)
            for share, (a, b) in ((0.01, best.within_1pct), (0.05, best.within_5pct)):
                inside = times[(times >= a) & (times <= min(b, 1e300))]
                limit = best.expected_duration * (1 + share) * (1 + 1e-9) + 1e-12
                assert (E_J(inside) <= limit).all()
                assert a in np.union1d(x, sample.failed.values)
                if np.isfinite(b):
                    assert E_J(np.array(b * (1 + 1e-6) + 1e-9)) > best.expected_duration * (1 + share)
                assert E_J(np.array(np.nextafter(a, 0))) > best.expected_duration * (1 + share) or a == x[0]


@pytest.mark.parametrize("objective", ["std", "moment:2", "quantile:0.9", "deadline:20", "deadline:7.5"])
@pytest.mark.slow
def test_other_objectives_on_samples_against_brute_force(objective):
    """Between two latencies nothing is better than at the earlier one, whatever the objective."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        sample = LatencySample.of(np.round(rng.lognormal(2, 1, int(rng.integers(1, 40)))), lost=int(rng.integers(0, 4)))
        law, cost = Empirical.of(sample), rng.choice([0.0, 1.5])
        best = optimal_timeout(law, cost=cost, objective=objective)
        t = np.concatenate([law.jumps, rng.uniform(0, law.jumps[-1] + 5, 300), np.arange(0, 40, 0.5)])
        if objective.startswith("deadline"):
            D = float(objective.split(":")[1])
            assert best.objective["value"] >= max(float(completion_cdf(law, D, u, cost=cost)) for u in t) - 1e-12
        else:
            value = OBJECTIVES.get(objective, lambda law, t, c: moments(law, t, 2, cost=c)[2])
            with np.errstate(all="ignore"):
                assert best.objective["value"] <= np.nanmin(value(law, t, cost)) * (1 + 1e-12) + 1e-12


def test_ties_go_to_the_smallest_expected_duration():
    """All timeouts beyond the deadline are equal for it; the mean decides among them."""
    law = Empirical.of(LatencySample.of([10, 11, 12, 40, 60, 200], lost=1))
    best = optimal_timeout(law, objective="deadline:13")
    assert best.objective["value"] == pytest.approx(3 / 7)
    E = {t: float(expected_duration(law, t)) for t in (12, 40, 60, 200)}
    assert best.timeout == min(E, key=E.get)
    smooth = Defective(parse_law("uniform(a=10,b=11)"), 0.2)
    assert optimal_timeout(smooth, objective="deadline:15").timeout == pytest.approx(11)


def test_verdicts_of_samples():
    for latencies in ([5.0], [3.0, 3.0, 3.0], [4.0, 5.0]):
        best = optimal_timeout(Empirical.of(LatencySample.of(latencies)))
        assert (best.verdict, best.timeout, best.speed_up, best.submissions) == ("never", None, 1, 1)
        assert best.within_1pct[1] == np.inf
    rng = np.random.default_rng(1)
    for seed in range(5):
        sample = LatencySample.of(np.random.default_rng(seed).exponential(3, 50))
        assert optimal_timeout(Empirical.of(sample)).verdict in ("finite", "never")
    lost = optimal_timeout(Empirical.of(LatencySample.of(rng.uniform(4, 5, 40), lost=3)))
    assert lost.verdict == "finite"
    assert lost.speed_up is None
    assert lost.rho == pytest.approx(3 / 43)
    assert lost.law == "empirical"


def test_failures_alone_need_no_timeout():
    """All returned, some with a failure: waiting is best."""
    law = Empirical.of(LatencySample.of([4, 5, 6], failed=[1, 2]))
    best = optimal_timeout(law)
    assert best.verdict == "never"
    assert best.submissions == pytest.approx(5 / 3)
    assert best.expected_duration == pytest.approx((4 + 5 + 6 + 1 + 2) / 3)


def test_min_completions():
    sample = LatencySample.of([0.01, 10, 10.5, 11, 11.5, 12, 300], lost=1)
    law = Empirical.of(sample)
    assert optimal_timeout(law).timeout == 0.01
    assert optimal_timeout(law, min_completions=5).timeout == 12
    with pytest.raises(RestartError, match="has only 7"):
        optimal_timeout(law, min_completions=8)


def test_min_timeout():
    law = Empirical.of(LatencySample.of([0, 0, 0, 7, 9, 40]))
    assert optimal_timeout(law).timeout == 0
    assert optimal_timeout(law).expected_duration == 0
    assert optimal_timeout(law, min_timeout=1.0).timeout == 1.0
    assert optimal_timeout(V, min_timeout=0.3).timeout == 0.3
    assert optimal_timeout(V, min_timeout=0.1).timeout == pytest.approx(0.1982536, abs=1e-7)


def test_max_submissions():
    law = Defective(parse_law("lognormal(mu=5.5,sigma=1.5)"), 0.05)
    free = optimal_timeout(law)
    tight = optimal_timeout(law, max_submissions=1.5)
    assert free.submissions > 1.5
    assert tight.submissions == pytest.approx(1.5, rel=1e-9)
    assert tight.expected_duration > free.expected_duration
    assert optimal_timeout(law, max_submissions=100).timeout == pytest.approx(free.timeout)
    with pytest.raises(RestartError, match="allow more"):
        optimal_timeout(law, max_submissions=1.01)
    two = optimal_timeout(law, copies=2, max_submissions=2.4)
    assert two.submissions <= 2.4 * (1 + 1e-9)
    sample = Empirical.of(LatencySample.of([1, 10, 11, 12], lost=1))
    assert optimal_timeout(sample).timeout == 1
    assert optimal_timeout(sample, max_submissions=2).timeout == 12


@pytest.mark.parametrize(
    "spec",
    ["lognormal(mu=5.5,sigma=1)", "weibull(shape=2,scale=30)", "gamma(shape=2.5,scale=3)",
     "log-logistic(shape=2,scale=9)", "truncated-gaussian(mu=300,sigma=100)", "pareto(a=3,nu=1.4)", "uniform(a=1,b=3)",
     "erlang-mixture(p=[0.9,0.1],phases=[2,2],rates=[20,2])", "piecewise-uniform(edges=[0,1,5],probs=[0.6,0.4])"],
)  # fmt: skip
@pytest.mark.parametrize("factor", [1000.0])
@pytest.mark.slow
def test_unit_of_time(spec, factor):
    law = parse_law(spec)
    for options in ({}, {"objective": "std"}, {"cost": 0.5}, {"copies": 2}):
        here = optimal_timeout(Defective(law, 0.03), **options)
        cost = {"cost": options["cost"] * factor} if "cost" in options else {}
        there = optimal_timeout(Defective(law.scaled(factor), 0.03), **{**options, **cost})
        assert there.verdict == here.verdict
        for name in ("timeout", "expected_duration", "std_duration", "conservative_timeout"):
            a, b = getattr(here, name), getattr(there, name)
            assert (a is None) == (b is None)
            if a is not None:
                assert b == pytest.approx(a * factor, rel=1e-9)
        assert there.within_1pct == pytest.approx(np.multiply(here.within_1pct, factor), rel=1e-6)
    schedule = optimal_schedule(law, 3)
    assert optimal_schedule(law.scaled(factor), 3).timeouts == pytest.approx(
        np.multiply(schedule.timeouts, factor), rel=1e-9
    )


@pytest.mark.slow
def test_wall_clock_with_every_objective():
    law, r = Defective(parse_law("lognormal(mu=3,sigma=1)"), 0.1), 15.0
    t = np.geomspace(r + 1, 1000, 3000)
    second = [float(m2 + 2 * r * m1 + r * r) for m1, m2 in moments(law, t - r, 2, cost=r)[1:].T]
    best = optimal_timeout(law, wall_clock=r, objective="moment:2")
    assert best.objective["value"] <= min(second) * (1 + 1e-9)
    assert best.objective["value"] == pytest.approx(min(second), rel=1e-4)
    deadline = optimal_timeout(law, wall_clock=r, objective="deadline:120")
    direct = max(float(completion_cdf(law, 120 - r, u - r, cost=r)) for u in t)
    assert deadline.objective["value"] >= direct
    assert deadline.objective["value"] == pytest.approx(direct, rel=1e-3)
    quantile = optimal_timeout(law, wall_clock=r, objective="quantile:0.9")
    assert quantile.objective["value"] == pytest.approx(
        r + (completion_quantile(law, 0.9, t - r, cost=r)).min(), rel=1e-3
    )


def test_conservative_timeout_is_the_end_of_the_5_percent_window():
    rng = np.random.default_rng(11)
    law = Empirical.of(LatencySample.of(V.sample(20_000, rng)))
    best = optimal_timeout(law)
    assert best.timeout < best.conservative_timeout == best.within_5pct[1]
    assert float(expected_duration(law, best.conservative_timeout)) <= best.expected_duration * (1.05 + 1e-9)
    assert optimal_timeout(parse_law("uniform(a=1,b=2)")).conservative_timeout is None


def test_bounds_enclose():
    t = np.linspace(0.02, 1, 50)
    for cost in (0.0, 0.3):
        lower, E = (t + cost) * (1 / V.cdf(t) - 1), expected_duration(V, t, cost=cost)
        assert (lower <= E).all()
        assert (lower + t >= E).all()


def test_evaluation_of_a_given_timeout():
    given = evaluate_timeout(V, 0.3)
    assert (given.verdict, given.timeout) == ("given", 0.3)
    assert given.expected_duration == pytest.approx(float(expected_duration(V, 0.3)))
    assert given.quantiles["0.5"] == pytest.approx(float(completion_quantile(V, 0.5, 0.3)))
    none = evaluate_timeout(Defective(V, 0.1), np.inf)
    assert none.expected_duration is None


def test_to_dict_is_json():
    laws = [
        V,
        Defective(V, 0.1),
        parse_law("exponential(rate=2)"),
        parse_law("pareto(a=1,nu=0.9)"),
        parse_law("uniform(a=0,b=1)"),
    ]
    keys = None
    for law in laws:
        document = json.loads(json.dumps(optimal_timeout(law).to_dict(), allow_nan=False))
        keys = keys or set(document)
        assert set(document) == keys
    assert {"verdict", "timeout", "expected_duration", "std_duration", "quantiles", "submissions", "speed_up"} <= keys


def test_a_nearly_proper_law_still_has_its_optimum():
    law = parse_law("lognormal(mu=0,sigma=0.3)")
    timeouts = [optimal_timeout(Defective(law, rho)).timeout for rho in (1e-3, 1e-6, 1e-9, 1e-12)]
    assert (np.diff(timeouts) > 0).all()


@pytest.mark.parametrize(
    ("t", "limit", "window"),
    [
        (1.0, 4.0, (1.0, 1.0)),
        (1.0, 7.0, (1.0, 2.0)),
        (3.0, 6.0, (3.0, 4.0)),
        (3.0, 9.9, (3.0, 7.9)),
        (3.0, 10.0, (1.0, 8.0)),  # the crest before 3 s is at the limit, not above it
        (1.0, 10.0, (1.0, 8.0)),
        (4.0, 6.0, (3.0, 4.0)),
    ],
)
def test_windows_of_a_sawtooth_by_hand(t, limit, window):
    """Of 20 five return at 1 s, five at 3 s: E_J = 4 + 3 (t−1) from 1 s on, 5 + (t−3) from 3 s on."""
    law = Empirical.of(LatencySample.of([1.0] * 5 + [3.0] * 5, lost=10))
    assert flat_windows(law, t, [limit])[0] == pytest.approx(window, rel=1e-12)
