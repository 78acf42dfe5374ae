"""Durations: as people write them, and as they read them."""

import datetime as dt
import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latfit.errors import LatfitError
from latfit.units import parse_duration, seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("358", 358), ("350ms", 0.35), ("6m", 360), ("1h30m", 5400), ("1m 20s", 80), ("00:04:32", 272),
        ("272.5 s", 272.5), ("272450ms", 272.45), ("1 day, 0:04:32", 86672), ("0 days 00:04:32.5", 272.5),
        ("2-01:00:00", 176400), ("PT4M32S", 272), ("P1DT1.5S", 86401.5), ("7d", 604800), ("1w", 604800),
        ("5 µs", 5e-6), ("5μs", 5e-6), ("12us", 12e-6), ("3ns", 3e-9), ("1e3", 1000), (".5s", 0.5), ("2 Hours", 7200),
        ("1 min 20.5 sec", 80.5), ("  7 ", 7), ("0", 0),
    ],
)  # fmt: skip
def test_durations_as_people_write_them(text, expected):
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "s", "m", "1m20", "20s1m", "1h 1h", "04:32", "1.5.2", "-3", "-1s", "nan", "inf", "1e999", "p", "pt", "5 x",
     "5 parsecs", "1:2:3:4", "00:61:00", "½s", "٣", "1" * 5000 + "x"],
)  # fmt: skip
def test_invalid_durations_are_refused(text):
    with pytest.raises(LatfitError, match="is not a duration; write seconds"):
        parse_duration(text)


@given(st.timedeltas(min_value=dt.timedelta(0), max_value=dt.timedelta(days=9999)))
def test_every_duration_that_python_and_pandas_write(delta):
    assert parse_duration(str(delta)) == pytest.approx(delta.total_seconds(), abs=1e-5)
    assert parse_duration(pd.Timedelta(delta).isoformat()) == pytest.approx(delta.total_seconds(), abs=1e-5)
    assert parse_duration(str(pd.Timedelta(delta))) == pytest.approx(delta.total_seconds(), abs=1e-5)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 s"), (2.5e-9, "2.5 ns"), (5.6e-6, "5.6 µs"), (0.0056, "5.6 ms"), (0.99951, "1 s"), (0.9994, "999 ms"),
        (1, "1 s"), (357.6, "358 s"), (1034.2, "1034 s"), (3600, "1 h"), (7500, "2 h 5 min"), (10243, "2 h 51 min"),
        (172800, "2 d"), (9e5, "10 d 10 h"), (None, "no limit"), (math.inf, "no limit"), (-90, "-90 s"),
    ],
)  # fmt: skip
def test_seconds_as_people_read_them(value, text):
    assert seconds(value) == text


@given(st.floats(1e-9, 1e9))
def test_printed_durations_can_be_read_back(value):
    assert parse_duration(seconds(value)) == pytest.approx(value, rel=0.021)


def test_a_very_long_text_is_refused_quickly():
    with pytest.raises(LatfitError, match="is not a duration"):
        parse_duration("1" * 1_000_000 + "x")
