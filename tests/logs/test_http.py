"""HTTP codes to outcomes: the table, the user's options, and the notes."""

from http import HTTPStatus

import numpy as np
import pandas as pd
import pytest

from latfit.logs import ReadOptions
from latfit.logs.records import Records
from latfit.logs.vocabulary import OutcomeTally, http_outcome


@pytest.mark.parametrize("code", HTTPStatus)
def test_every_standard_code_has_an_outcome(code):
    gave_up = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.GATEWAY_TIMEOUT}
    come_again = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.TOO_EARLY}
    expected = "failed" if code.value >= 500 or code in come_again else "completed"
    assert http_outcome(str(code.value)) == ("censored" if code in gave_up else expected)


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("2xx", "completed"), ("5XX", "failed"), (" 200 ", "completed"), ("200.0", "completed"), ("0", "failed"),
        ("000", "failed"), ("-", "failed"), ("499", "censored"), ("700", None), ("20", None), ("2000", None),
        ("ok", None), ("٢٠٠", None),
    ],
)  # fmt: skip
def test_other_ways_to_write_a_code(code, outcome):
    assert http_outcome(code) == outcome


def test_user_statuses_come_first_and_codes_before_classes():
    said = {"4xx": "failed", "404": "completed", "-": "lost", "504": "failed"}
    codes = ("404", "400", "429", "-", "504", "200")
    assert [http_outcome(code, said) for code in codes] == [
        "completed", "failed", "failed", "lost", "failed", "completed",
    ]  # fmt: skip


def test_code_counts_are_reported_and_unknown_codes_refused():
    outcomes = OutcomeTally(ReadOptions(statuses={"3XX": "failed"}), "code")
    records = Records(np.arange(7), np.ones(7), np.zeros(7, dtype=np.int8))
    outcomes.statuses(pd.Series(["200", "404"]), records)  # after these, numbers are HTTP codes
    codes = pd.Series(["200", "404", "200", "302", None, "999", "504"])
    records.status = outcomes.statuses(codes.fillna("-"), records)
    outcomes.add(codes, records)
    assert records.status.tolist() == [0, 0, 0, 1, 1, -1, 2]
    assert list(records.reasons) == [5]
    assert "unknown status: '999'" in records.reasons[5]
    (note,) = outcomes.last().notes
    assert "200 (2), 404 (1) completed; 302 (1), none (1) failed; 504 (1) censored" in note


def test_without_codes_nothing_is_reported():
    assert OutcomeTally(ReadOptions(), "code").last().notes == []
