"""What the functions of laws take: laws, and whatever holds latencies; the rest is refused in words."""

import numpy as np
import pandas as pd
import pytest

import latfit
from latfit.errors import LatfitError

X = np.random.default_rng(1).lognormal(1, 1.5, 300).round(3)
RIGHT = latfit.optimal_timeout(latfit.Empirical.of(latfit.LatencySample.of(X)))
FRAMES = {
    "array": X,
    "list": X.tolist(),
    "series with an index": pd.Series(X, index=range(7, 307)),
    "timedelta": pd.Series(pd.to_timedelta(X, unit="s")),
    "timedelta in ms": np.rint(X * 1000).astype("timedelta64[ms]"),
    "frame": pd.DataFrame({"submitted": pd.date_range("2026-03-01", periods=300, freq="min", tz="UTC"), "latency": X}),
    "frame in ms": pd.DataFrame({"latency_ms": X * 1000}),
    "log": latfit.from_frame(pd.DataFrame({"latency": X})),
}


@pytest.mark.parametrize("data", FRAMES.values(), ids=FRAMES)
def test_the_same_latencies_in_any_form(data):
    best = latfit.optimal_timeout(data)
    assert best.timeout == pytest.approx(RIGHT.timeout, rel=1e-9)
    assert best.expected_duration == pytest.approx(RIGHT.expected_duration, rel=1e-9)


CALLS = {
    "evaluate_timeout": lambda data: latfit.evaluate_timeout(data, RIGHT.timeout).expected_duration,
    "evaluate_policy": lambda data: latfit.evaluate_policy(data, f"timeout(t={RIGHT.timeout!r})").expected_duration,
    "expected_duration": lambda data: latfit.expected_duration(data, RIGHT.timeout),
    "moments": lambda data: latfit.moments(data, RIGHT.timeout)[1],
    "optimal_policy": lambda data: latfit.optimal_policy(data, "timeout").expected_duration,
    "compare_policies": lambda data: latfit.compare_policies(data).reference.expected_duration,
    "optimal_strategy": lambda data: latfit.optimal_strategy({"a": data}).expected_duration,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_every_function_takes_them(call):
    assert call(FRAMES["frame in ms"]) == pytest.approx(RIGHT.expected_duration, rel=1e-9)
    assert latfit.optimal_schedule(X, restarts=2).expected_duration < X.mean()
    assert latfit.restart_helps(X, RIGHT.timeout).all()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (["a", "b"], "must be numbers"),
        ("probes.csv", "read_log"),
        ({"a": 1}, "must be numbers"),
        (None, "in one row"),
        (3.0, "in one row"),
        (np.ones((2, 2)), "in one row"),
        (
            np.ma.array([1.0, 1000.0, 3.0], mask=[False, True, False]),
            "1 of 3 latencies is negative, infinite, not a number",
        ),
        (pd.DataFrame({"latency": X, "status": "nonsense"}), "unknown status"),
    ],
)
def test_arguments_without_latencies_are_refused(data, said):
    with pytest.raises(LatfitError, match=said):
        latfit.optimal_timeout(data)
    with pytest.raises(LatfitError, match=said):
        latfit.evaluate_policy(data, "timeout(t=2)")
