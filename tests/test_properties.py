"""Properties that hold for every log: merging, scaling, monotony, optimality, round trips, one answer on every way.

Where a property holds only in a narrower form than one might think, its test says which and why.
"""

import json
import math
import random
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

import latfit
from latfit import Defective, Empirical, LatencySample, LatfitError, analyze, expected_duration, outlier_ratio
from latfit.batch import BatchResult, write_table
from latfit.cli import main
from latfit.cli.common import document_text, json_values
from latfit.curve import MIN_COMPLETIONS
from latfit.decision import Options, decide, prepare
from latfit.evidence import probes_of
from latfit.fitting import assess, with_std_errors
from latfit.laws import get_law, parse_law
from latfit.outliers import cutoff_verdict
from latfit.restart import earliest_timeout
from latfit.table import STATUSES

LAWS = ("lognormal", "weibull", "exponential")  # quick ones
TALLIES = ("completed", "failed", "censored")
WEIGHTS = (0.78, 0.08, 0.08, 0.06)


def examples(count):
    """A number of examples, the same in every run; failures are not minimised, because analyses are slow."""
    return settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


@st.composite
def tables(draw, least=12, most=60, distinct=10):
    """Probes of a log: whole ticks of a clock, statuses, sites; the clock of fewer latencies would be a guess."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(least, most))
    x = np.round(rng.lognormal(draw(st.floats(2, 7)), draw(st.floats(0.3, 2)), n))
    status = rng.choice(STATUSES, n, p=WEIGHTS if draw(st.booleans()) else (0.95, 0, 0, 0.05))
    returned = np.unique(x[np.isin(status, STATUSES[:2])])
    assume(np.count_nonzero(returned) >= distinct)
    assume(np.count_nonzero(status == "completed") >= MIN_COMPLETIONS)
    return pd.DataFrame({"latency": x, "status": status, "site": rng.choice(["a", "b"], n)})


def probe_log(table, factor=1.0):
    """The table as a log, all times multiplied by a factor."""
    return latfit.from_frame(table.assign(latency=table["latency"] * factor)[["latency", "status", "site"]])


@st.composite
def samples(draw, least=0, most=30):
    """Samples of any kind, ticks of a clock of one second."""
    waits = st.lists(st.integers(0, 40), max_size=12)
    completed = draw(st.lists(st.integers(0, 40), min_size=least, max_size=most))
    return LatencySample.of(
        completed, failed=draw(waits), censored=draw(waits), lost=draw(st.integers(0, 5)), resolution=1.0
    )


# merging


@examples(40)
@given(samples(least=1), st.integers(1, 6), st.randoms(use_true_random=False))
def test_parts_in_any_order_and_grouping_are_the_whole(sample, count, order):
    """The clock of a sum is the finest of its parts; here they share one."""
    waits = [(tally, value) for tally in TALLIES for value in getattr(sample, tally).expand().tolist()]
    order.shuffle(waits)
    parts = [
        LatencySample.of(
            **{tally: [x for name, x in waits[k::count] if name == tally] for tally in TALLIES},
            lost=sample.lost if k == 0 else 0,
            resolution=1.0,
        )
        for k in range(count)
    ]
    while len(parts) > 1:  # add two neighbours, at any place
        at = order.randrange(len(parts) - 1)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
        order.shuffle(parts)
    assert parts[0] == sample


@pytest.mark.slow
@examples(3)
@given(tables(most=30), st.integers(2, 5), st.randoms(use_true_random=False))
def test_the_analysis_does_not_depend_on_how_a_log_is_cut_up(tmp_path_factory, table, count, order):
    folder = tmp_path_factory.mktemp("parts")
    table["submitted"] = pd.date_range("2026-01-01", periods=len(table), freq="min", tz="UTC").strftime("%FT%TZ")
    table.to_csv(folder / "whole.csv", index=False)
    rows = list(range(len(table)))
    order.shuffle(rows)
    paths = [folder / f"part{k}.csv" for k in range(count)]
    for k, path in enumerate(paths):
        table.iloc[rows[k::count]].to_csv(path, index=False)
    order.shuffle(paths)
    whole, parts = latfit.read_log(folder / "whole.csv"), latfit.read_log(paths)
    assert parts.sample() == whole.sample()
    assert parts.samples("site") == whole.samples("site")
    documents = [analyze(log, laws=LAWS, resamples=9, by="site").to_dict() for log in (whole, parts)]
    for document in documents:
        del document["log"]["path"]
    assert documents[0] == documents[1]
    batches = [latfit.run_batch(given, by="site", resamples=9, test=False, workers=1).rows
               for given in ([folder / "whole.csv"], paths)]  # fmt: skip
    assert batches[0] == batches[1]


def test_a_log_read_in_chunks_is_the_log_read_whole(tmp_path):
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"latency": np.round(rng.lognormal(3, 1, 9000), 3), "status": rng.choice(STATUSES, 9000)})
    table["site"] = rng.choice(["a", "b"], 9000)
    table.to_csv(tmp_path / "x.csv", index=False)
    table.to_json(tmp_path / "x.jsonl", orient="records", lines=True)
    assert (tmp_path / "x.csv").stat().st_size > 2 * 65536  # more than is read at once at the beginning
    for name in ("x.csv", "x.jsonl"):
        assert latfit.read_log(tmp_path / name).samples("site") == probe_log(table).samples("site")


# scaling

TIME, SAME, TEXT, ROUNDED, LIKELIHOOD, LAW, PARAMS, ERRORS = (
    "a time", "no time", "words", "rounded times", "a log-likelihood", "a law", "parameters", "their errors",
)  # fmt: skip
OPTIMUM = {
    "verdict": SAME, "timeout": TIME, "expected_duration": TIME, "std_duration": TIME, "quantiles": TIME,
    "submissions": SAME, "within_1pct": TIME, "within_5pct": TIME, "conservative_timeout": TIME, "speed_up": SAME,
    "rho": SAME, "law": LAW, "cost": TIME, "objective": {"name": SAME, "value": TIME}, "job_seconds": TIME,
    "parallel": SAME, "success": SAME,
}  # fmt: skip
RECOMMENDATION = {
    **OPTIMUM, "low": TIME, "high": TIME, "expected_duration_low": TIME, "expected_duration_high": TIME,
    "speed_up_vs_cutoff": SAME, "speed_up_vs_cutoff_low": SAME,
    "speed_up_vs_cutoff_high": SAME, "at_cutoff": OPTIMUM, "basis": SAME, "withheld": SAME, "exact_timeout": TIME,
    "expected_duration_corrected": TIME, "replayed": TIME,
    "retry": {
        "timeouts": TIME, "attempts": SAME, "expected_duration": TIME, "submissions": SAME, "worst_duration": TIME,
        "worst_loss": SAME, "undone": SAME, "gain": SAME, "gain_interval": SAME, "worst_loss_interval": SAME,
    },
}  # fmt: skip
RECOMMENDATION["if_independent"] = RECOMMENDATION
EVIDENCE = {
    "mixing": dict.fromkeys(("column", "share", "groups", "worst_cost", "harmed", "p_value"), SAME),
    "dependence": dict.fromkeys(("lag1", "p_value", "strongest", "autocorrelation_time", "lost_after_lost"), SAME),
    "drift": {"changes": dict.fromkeys(("at", "kind", "p_value", "index"), SAME), "daily_cycle": SAME,
              "weekly_cycle": SAME},
    "censoring": {"share": SAME, "common_time": TIME, "informative": SAME, "cut_at": TIME},
    "replay": SAME,  # there are no times of submission here
    "worlds": ROUNDED,
    "binding": SAME,
    "columns_used": SAME,
    "columns_left_out": SAME,
}  # fmt: skip
KS = dict.fromkeys(("statistic", "d_n", "n", "p_asymptotic", "p_bootstrap"), SAME)
KINDS = {
    "log": dict.fromkeys(
        ("path", "format", "probes", *STATUSES, "refused", "refused_count", "period"), SAME) | {"resolution": TIME},
    "outliers": {
        "cutoff": TIME, "ratio": SAME, "low": SAME, "high": SAME, "count": SAME, "method": SAME, "cutoff_reason": TEXT,
        "joint_ratio": SAME, "joint_low": SAME, "joint_high": SAME, "joint_law": SAME, "by_cutoff": ROUNDED,
    },
    "latency": {"n": SAME, "mean": TIME, "std": TIME, "min": TIME, "max": TIME, "quantiles": TIME,
                "variation": SAME, "variation_interval": SAME},
    "fits": {
        "law": SAME, "method": SAME, "n": SAME, "rho": SAME, "params": PARAMS, "std_errors": ERRORS, "sse": SAME,
        "log_likelihood": LIKELIHOOD, "aic": LIKELIHOOD, "bic": LIKELIHOOD, "at_limit": SAME, "converged": SAME,
        "error": TEXT,
        "ks": {**KS, "completed": KS},
        "timeout": {**OPTIMUM, "regret": SAME},
    },
    "best": SAME,
    "timeout": RECOMMENDATION,
    "timeout_without_outliers": RECOMMENDATION,
    "current": {"timeout": TIME, "expected_duration": TIME, "regret": SAME},
    "groups": {
        **RECOMMENDATION, "group": SAME, "site": SAME, "probes": SAME, "count": SAME, "ratio": SAME, "ratio_low": SAME,
        "ratio_high": SAME, "differs": SAME, "pooled_regret": SAME, "warnings": SAME, "best": SAME, "error": TEXT,
    },
    "evidence": EVIDENCE,
    "warnings": {"code": SAME, "message": TEXT},
}  # fmt: skip
# by how much a parameter grows with the time: added to it, or the power of the factor
SHIFTED = {("lognormal", "mu"), ("lognormal-pareto", "mu")}
POWERS = {"rate": -1, "shape": 0, "nu": 0, "k": 0, "scale": 1, "a": 1, "b": 1, "t_min": 1, "t_max": 1, "mu": 1}
PURE = {"lognormal", "lognormal-pareto"}  # their sigma is no time; that of the truncated Gaussian is


def leaves(value, kinds, path=()):
    """Every plain value of a document with its path and its kind; a key without a kind is an error."""
    if isinstance(value, dict) and isinstance(kinds, dict):
        assert set(value) <= set(kinds), f"no one has said whether {path + tuple(set(value) - set(kinds))} is a time"
        for key, item in value.items():
            yield from leaves(item, kinds[key], (*path, key))
    elif isinstance(value, list) and isinstance(kinds, dict):
        for place, item in enumerate(value):
            yield from leaves(item, kinds, (*path, place))
    elif value is None and isinstance(kinds, dict):
        yield path, SAME, None
    elif kinds == TIME and isinstance(value, (dict, list)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key), TIME, item
    else:
        yield path, kinds, value


def power(law, name):
    return 0 if name == "rho" or (name == "sigma" and law in PURE) else 1 if name == "sigma" else POWERS[name]


def scaled_params(law, params, factor):
    return {
        name: value + math.log(factor) if (law, name) in SHIFTED else value * factor ** power(law, name)
        for name, value in params.items()
    }


def scaled_errors(law, errors, factor):
    return {
        name: value if (law, name) in SHIFTED else value * factor ** power(law, name) for name, value in errors.items()
    }


def assert_scaled(before, after, factor):
    """Every time of the second document is that of the first times `factor`; everything else is the same."""
    first, second = (list(leaves(json_values(document), KINDS)) for document in (before, after))
    assert [path for path, _, _ in first] == [path for path, _, _ in second]
    for (path, kind, was), (_, _, now) in zip(first, second, strict=True):
        if kind == TIME and was is not None:
            assert now == pytest.approx(was * factor, rel=1e-7, abs=1e-12 * factor), path
        elif kind in (TIME, SAME):
            assert now == (pytest.approx(was, rel=1e-7, abs=1e-9) if isinstance(was, float) else was), path
        elif kind == LAW and "(" in was:
            old, new = parse_law(was), parse_law(now)
            want = scaled_params(old.name, {p.name: getattr(old, p.name) for p in old.parameters}, factor)
            assert {p.name: getattr(new, p.name) for p in new.parameters} == pytest.approx(want, rel=1e-6, abs=1e-9)
    for old, new in zip(before["fits"], after["fits"], strict=True):
        assert new["params"] == pytest.approx(scaled_params(old["law"], old["params"], factor), rel=1e-6, abs=1e-9)
        was, now = ({k: v for k, v in (each["std_errors"] or {}).items() if v is not None} for each in (old, new))
        assert now == pytest.approx(scaled_errors(old["law"], was, factor), rel=1e-4)
        if old["log_likelihood"] is not None:  # a density has the unit 1/s; the probability of a cell has none
            moved = new["log_likelihood"] - old["log_likelihood"]
            each = [0.0, -before["latency"]["n"] * math.log(factor)]
            assert min(abs(moved - want) for want in each) < 1e-6
            for score in ("aic", "bic"):
                assert new[score] - old[score] == pytest.approx(-2 * moved, abs=1e-6)


@pytest.mark.slow
@examples(8)
@given(tables(), st.integers(-8, 8), st.sampled_from([0.0, 1.0, 7.0]), st.booleans())
def test_scaling_time_scales_every_time_and_nothing_else(table, exponent, cost, cut):
    """With ten distinct latencies: the clock of fewer is read from their decimals, of which 0.5 s has more than 1 s.

    The cutoffs of `by_cutoff` are rounded to three digits, so they scale with powers of ten only, see below.
    """
    factor = 2.0**exponent
    cutoff = float(table["latency"].max()) / 2 if cut else None
    assume(not cut or np.unique(table["latency"][table["latency"] <= cutoff]).size > MIN_COMPLETIONS)
    documents = [
        analyze(
            probe_log(table, by), laws=LAWS, resamples=19, by="site", current=100 * by, cost=cost * by,
            cutoff=None if cutoff is None else cutoff * by,
        ).to_dict()
        for by in (1.0, factor)
    ]  # fmt: skip
    assert_scaled(*documents, factor)


@pytest.mark.slow
def test_scaling_time_with_every_law():
    rng = np.random.default_rng(8)
    x, status = np.round(rng.lognormal(4, 1, 80)), rng.choice(STATUSES, 80, p=WEIGHTS)
    table = pd.DataFrame({"latency": x, "status": status, "site": "a"})
    before, less, more = (analyze(probe_log(table, by), resamples=0).to_dict() for by in (1.0, 0.25, 1000.0))
    assert len(before["fits"]) > 8
    assert_scaled(before, less, 0.25)
    assert_scaled(before, more, 1000.0)
    for was, now in zip(before["outliers"]["by_cutoff"], more["outliers"]["by_cutoff"], strict=True):
        assert now == pytest.approx({**was, "cutoff": was["cutoff"] * 1000})


def test_a_new_key_must_be_classified():
    """The walk fails on a key that it does not know."""
    with pytest.raises(AssertionError, match="surprise"):
        list(leaves({"timeout": {"surprise": 1.0}}, KINDS))


@examples(8)
@given(tables(distinct=1), st.sampled_from([("ms", 1000), ("us", 10**6), ("min", 1 / 60), ("s", 1)]))
def test_units_end_at_the_reader(tmp_path_factory, table, unit):
    name, parts = unit
    folder = tmp_path_factory.mktemp("units")
    ticks = table["latency"].astype(int)
    seconds = [f"{tick / parts:.6f}" for tick in ticks] if parts > 1 else [str(round(tick / parts)) for tick in ticks]
    table.assign(latency=seconds).to_csv(folder / "s.csv", index=False)
    table.assign(latency=ticks).to_csv(folder / "x.csv", index=False)
    table.assign(latency=ticks).rename(columns={"latency": f"latency_{name}"}).to_csv(folder / "y.csv", index=False)
    want = latfit.read_log(folder / "s.csv").sample()
    assert latfit.read_log(folder / "x.csv", unit=name).sample() == want
    assert latfit.read_log(folder / "y.csv").sample() == want


# the outlier ratio


@examples(60)
@given(samples(least=1), st.integers(1, 60), st.integers(1, 30))
def test_lost_probes_never_lower_the_ratio(sample, cutoff, more):
    """At one and the same cutoff: the default one may move, because more probes are still out at later times."""
    few, many = (outlier_ratio(each, cutoff=cutoff) for each in (sample, replace(sample, lost=sample.lost + more)))
    assert many.estimate >= few.estimate - 1e-12
    assert many.low >= few.low - 1e-12


@examples(5)
@given(tables(), st.sampled_from(LAWS), st.integers(1, 12))
def test_lost_probes_never_lower_the_joint_ratio(table, law, more):
    """For one and the same law: the best one may change. The likelihood gains the factor ρ^more, which rises in ρ."""
    sample = probe_log(table).sample()
    sample = sample.cut(float(table["latency"].max()))
    few, many = (latfit.joint_outlier_ratio(each, [law]) for each in (sample, replace(sample, lost=sample.lost + more)))
    assert many.estimate >= few.estimate - 1e-6


@examples(60)
@given(samples(least=1), st.integers(1, 60), st.integers(0, 30))
def test_a_longer_cutoff_never_raises_the_ratio(sample, cutoff, more):
    """The counted one and Kaplan–Meier's. The joint one may rise: it is what the law leaves over."""
    short, long = (outlier_ratio(sample, cutoff=t) for t in (cutoff, cutoff + more))
    assert long.estimate <= short.estimate + 1e-12


# the optimum


@examples(60)
@given(samples(least=5), st.sampled_from([0.0, 0.5, 3.0]), st.lists(st.floats(1, 60), min_size=1, max_size=20))
def test_no_timeout_with_five_completions_beats_the_optimum(sample, cost, timeouts):
    """Nor any time above the clock's resolution."""
    law = Empirical.of(sample)
    limits = {"min_completions": MIN_COMPLETIONS, "min_timeout": sample.resolution}
    best = latfit.optimal_timeout(law, cost=cost, **limits)
    for t in [*timeouts, *sample.completed.expand().tolist(), math.inf]:
        if np.count_nonzero(sample.completed.expand() <= t) < MIN_COMPLETIONS or t < sample.resolution:
            continue
        E_J = float(expected_duration(law, t, cost=cost))
        assert best.expected_duration is None or best.expected_duration <= E_J * (1 + 1e-9), t
        assert best.expected_duration is not None or math.isinf(E_J), t


@pytest.mark.slow
@examples(15)
@given(st.sampled_from(["weibull(shape=0.7,scale=50)", "lognormal(mu=4,sigma=1.2)", "gamma(shape=3,scale=20)",
                        "log-logistic(shape=2,scale=60)", "erlang-mixture(p=[0.9,0.1],phases=[2,2],rates=[20,2])"]),
       st.sampled_from([0.0, 0.02, 0.3]), st.sampled_from([0.0, 5.0]),
       st.lists(st.floats(0.01, 5000), min_size=20, max_size=20))  # fmt: skip
def test_no_timeout_beats_the_optimum_of_a_law(spec, rho, cost, timeouts):
    law = Defective(parse_law(spec), rho)
    best = latfit.optimal_timeout(law, cost=cost).expected_duration
    assert (np.asarray(expected_duration(law, np.array(timeouts), cost=cost)) >= best * (1 - 1e-8)).all()


# round trips


def strict(text):
    """The document, if it is JSON as the standard has it."""
    return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} in the JSON"))


@examples(12)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from([math.inf, math.nan]) | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=20,
    )
)
def test_every_document_is_strict_json_that_comes_back(value):
    document = {"x": value}
    text = document_text(document)
    assert strict(text) == json_values(document)
    assert not [c for c in text if c != "\n" and not c.isprintable() and ord(c) < 0xA0]


@examples(12)
@given(tables(), st.sampled_from(["weibull", "lognormal", "gamma", "pareto", "uniform", "log-logistic"]))
def test_a_fitted_law_is_read_back_from_its_text(table, name):
    found = latfit.fit(probe_log(table).sample(), [name])[0]
    assume(found.law is not None)
    assert parse_law(found.law.spec()) == found.law


# the command line and Python


def shell(*arguments):
    """What a command prints as JSON, or the line with which it ends; in this process, for speed."""
    done = CliRunner().invoke(main, [str(each) for each in arguments], catch_exceptions=False)
    if done.exit_code:
        assert (done.exit_code, done.stdout) == (1, "")
        return [line for line in done.stderr.splitlines() if line.startswith("latfit: ")]
    return strict(done.stdout)


def python(compute):
    """The same from Python."""
    try:
        return json_values(compute())
    except LatfitError as error:
        return [f"latfit: {' '.join(str(error).split())}"]


def flags(options):
    """Options of a command from arguments of a function; what is None is not given."""
    for name, value in options.items():
        if value is not None:
            yield from (f"--{name.replace('_', '-')}", value)


cutoffs = st.none() | st.floats(20, 3000).map(lambda t: round(t, 1))
costs = st.sampled_from([0.0, 0.5, 12.0])
ways = st.sampled_from(["retry", "completed", "lost"])


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A table as a file of one of several formats."""
    folder, count = tmp_path_factory.mktemp("logs"), random.Random(5)

    def write(table):
        path = folder / f"log{count.random()}"
        if count.random() < 0.5:
            table.to_csv(path, index=False)
        else:
            table.to_json(path, orient="records", lines=True)
        return path

    return write


@pytest.mark.slow
@examples(3)
@given(
    tables(most=20), cutoffs, ways, costs, st.none() | st.just("lognormal"), st.none() | st.just(90.0), st.booleans(),
    st.integers(0, 9),
)  # fmt: skip
def test_analyze(written, table, cutoff, failed, cost, law, current, grouped, seed):
    path = written(table)
    options = {"cutoff": cutoff, "failed": failed, "cost": cost, "law": law, "current": current, "seed": seed,
               "resamples": 3 * (seed % 2)}  # fmt: skip
    by = "site" if grouped else None
    got = shell("analyze", path, "--json", *flags({**options, "by": by}))
    assert got == python(lambda: analyze(latfit.read_log(path), by=by or (), **options).to_dict())


@pytest.mark.slow
@examples(25)
@given(tables(), cutoffs, ways, st.sampled_from(["mle", "ls"]), st.none() | st.just(0.1), st.integers(0, 9))
def test_fit(written, table, cutoff, failed, method, rho, seed):
    path = written(table)
    laws, bootstrap = LAWS[: 1 + seed % 3], 5 * (seed % 2)
    options = {"cutoff": cutoff, "failed": failed, "method": method, "rho": rho, "seed": seed, "bootstrap": bootstrap}
    got = shell("fit", path, "--json", *flags(options), *(word for law in laws for word in ("--law", law)))

    def compute():
        sample = prepared(path, cutoff=cutoff, failed=failed).sample
        rng = np.random.default_rng(seed)
        fits = latfit.fit(sample, laws, method=method, rho="joint" if rho is None else rho, resamples=0)
        if method == "ls" and bootstrap:
            own = np.random.default_rng(seed)
            fits = [with_std_errors(sample, found, rho=rho, rng=own) for found in fits]
        tested = [(found, assess(sample, found, bootstrap=bootstrap, rng=rng)) for found in fits]
        return {"fits": [{**found.to_dict(), "ks": ks and ks.to_dict()} for found, ks in tested]}

    assert got == python(compute)


def prepared(path, **options):
    return prepare(probes_of(latfit.read_log(path)), Options(**options))


@pytest.mark.slow
@examples(20)
@given(
    tables(), cutoffs, ways, costs, st.sampled_from([None, "lognormal"]), st.sampled_from([None, 0.0, 0.2]),
    st.sampled_from([{}, {"at": 80.0}, {"copies": 2}, {"wall_clock": 30.0}, {"max_submissions": 1.4},
                     {"objective": "quantile:0.9"}, {"objective": "deadline:200"}]),
)  # fmt: skip
def test_timeout(written, table, cutoff, failed, cost, law, rho, more):
    path = written(table)
    got = shell("timeout", path, "--json", *flags({"cutoff": cutoff, "failed": failed, "cost": cost, "law": law,
                                                   "rho": rho, "resamples": 19, **more}))  # fmt: skip

    def compute():
        case = prepared(path, cutoff=cutoff, failed=failed)
        if "at" in more:
            named = {"law": law, "laws": () if law is None else (law,)}
            asked = Options(cutoff=cutoff, failed=failed, cost=cost, rho=rho, resamples=0, test=False, **named)
            made = decide([probes_of(latfit.read_log(path))], asked, figures=True)[0].require()
            known = made.timeout.source or Empirical.of(case.sample)
            return {**latfit.evaluate_timeout(known, more["at"], cost=cost).to_dict(), "warnings": []}
        laws = None if law is None else (law,)
        asked = Options(cutoff=cutoff, failed=failed, cost=cost, law=law, laws=laws, rho=rho, resamples=19, test=False,
                        **more)  # fmt: skip
        made = decide([probes_of(latfit.read_log(path))], asked, detail=True)[0].require()
        told = [{"code": warned.code, "message": warned.message} for warned in made.warnings]
        return {**made.timeout.to_dict(), "evidence": made.evidence.to_dict(), "warnings": told}

    assert got == python(compute)


@pytest.mark.slow
@examples(4)
@given(tables(), cutoffs, ways)
def test_outliers(written, table, cutoff, failed):
    path = written(table)
    got = shell("outliers", path, "--json", *flags({"cutoff": cutoff, "failed": failed}))

    def compute():
        case = prepared(path, cutoff=cutoff, failed=failed)
        sample, ratio = case.whole, case.ratio
        shown = [each.to_dict() for each in latfit.ratio_by_cutoff(sample, cutoff=ratio.cutoff)]
        try:
            joint = latfit.joint_outlier_ratio(sample.cut(ratio.cutoff))
        except latfit.FitError:
            joint = None
        names = {"estimate": "ratio", "low": "low", "high": "high", "law": "law"}
        return {
            **ratio.to_dict(), "count": ratio.count, "method": ratio.method,
            **{f"joint_{word}": joint and getattr(joint, name) for name, word in names.items()},
            "confounded": joint and joint.confounded, "by_cutoff": shown, "verdict": cutoff_verdict(sample, ratio),
        }  # fmt: skip

    assert got == python(compute)


@pytest.mark.slow
@examples(25)
@given(tables(), cutoffs, ways, costs, st.none() | st.integers(0, 3))
def test_agents(written, table, cutoff, failed, cost, restarts):
    path, spec = written(table), "gamma(shape=2,scale=40)"
    got = shell("agents", "--agent", f"log={path}", "--agent", f"law={spec}", "--json",
                *flags({"cutoff": cutoff, "failed": failed, "cost": cost, "restarts": restarts}))  # fmt: skip

    def compute():
        law = Empirical.of(prepared(path, cutoff=cutoff, failed=failed).sample)
        agents = {"log": law, "law": parse_law(spec)}
        least = {name: earliest_timeout(each) for name, each in agents.items()}
        return latfit.optimal_strategy(agents, restarts=restarts, cost=cost, min_timeouts=least).to_dict()

    assert got == python(compute)


@pytest.mark.slow
@examples(4)
@given(tables(most=30), tables(most=30), cutoffs, ways, costs, st.integers(0, 9))
def test_batch(tmp_path_factory, one, two, cutoff, failed, cost, seed):
    folder = tmp_path_factory.mktemp("batch")
    for name, table in (("one", one), ("two", two)):
        table.to_csv(folder / f"{name}.csv", index=False)
    options = {"by": "site" if seed % 2 else None, "cutoff": cutoff, "failed": failed, "cost": cost, "seed": seed,
               "resamples": 3 * (seed % 2), "workers": 1}  # fmt: skip
    arguments = [folder / "one.csv", folder / "two.csv", "--no-test", *flags(options)]
    options["by"] = options["by"] or ()
    result = latfit.run_batch([folder / "one.csv", folder / "two.csv"], test=False, **options)
    assert isinstance(result, BatchResult)
    for ending in ("jsonl", "csv"):
        CliRunner().invoke(main, ["batch", *map(str, arguments), "-o", str(folder / f"shell.{ending}")])
        write_table(result, folder / f"python.{ending}")
        assert (folder / f"shell.{ending}").read_bytes() == (folder / f"python.{ending}").read_bytes()
    rows = [strict(line) for line in (folder / "shell.jsonl").read_text().splitlines()]
    assert rows == result.rows
    for row in rows:
        if row["params"] is not None:
            assert set(strict(row["params"])) == {p.name for p in fields_of(row["best"])}


def fields_of(name):
    law = get_law(name)
    assert fields(law)
    return law.parameters
