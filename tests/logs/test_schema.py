"""Which column is what: evidence adds up, and a near-tie is a question."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import latfit
from latfit.errors import LogError
from latfit.logs.formats import ReadOptions
from latfit.logs.schema import resolve_roles

SCRIPT = Path(__file__).parent.parent.parent / "scripts" / "calibration" / "tables.py"


def read(text, **options):
    header, *rows = (line.split(",") for line in text.strip().split("\n"))
    frame = pd.DataFrame(rows, columns=header, dtype="str").replace("", None)
    return resolve_roles(header, ReadOptions(**options), "log", frame)[0]


@pytest.fixture(scope="module")
def tables():
    spec = importlib.util.spec_from_file_location("tables", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["tables"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["tables"]


@pytest.mark.slow
@pytest.mark.parametrize("half", [0, 1])
def test_tables_of_the_grammar_are_read_right_or_asked_about(half, tables):
    verdicts = [tables.judge(*tables.make(seed, half)) for seed in range(60)]
    assert sum(verdict.startswith("wrong") for verdict in verdicts) <= 1
    assert verdicts.count("asked") <= 9


def test_whole_numbers_beside_http_codes_are_milliseconds():
    roles = read("Latency,Status Code\n35,200\n40,200\n41,500\n5,200\n17,200\n22,201\n")
    assert (roles.latency, roles.unit, roles.status) == (("Latency",), "ms", "Status Code")


def test_adjacent_times_in_milliseconds_determine_the_unit():
    rows = "".join(f"{1740618567874 + at},POST,{35000 + at % 7},201\n" for at in range(12))
    assert read(f"StartTime,RequestType,Latency,ResponseCode\n{rows}").unit == "ms"


def test_a_difference_of_times_proves_the_unit():
    rows = "".join(
        f"2026-03-02T06:00:{at:02d}Z,2026-03-02T06:00:{at + 3 + at % 4:02d}Z,{3 + at % 4}\n" for at in range(9)
    )
    roles = read(f"start,end,elapsed\n{rows}")
    assert (roles.latency, roles.unit, roles.submitted) == (("elapsed",), "s", "start")


def test_the_wait_is_read_rather_than_the_run_time_after_it():
    rows = "".join(f"{1000 + at},{1007 + 3 * at},{1100 + 9 * at}\n" for at in range(9))
    roles = read(f"creation_time,scheduled_time,deletion_time\n{rows}")
    assert (roles.submitted, roles.ended) == ("creation_time", "scheduled_time")


@pytest.mark.parametrize(
    "header",
    ["p50_ms,p95_ms", "min_rtt,avg_rtt", "geo_distance_km,cost_usd", "prompt_tokens,response_bytes", "lat,lon"],
)
def test_other_columns_are_neither_read_nor_suggested_as_latency(header):
    rows = "".join(f"{11.25 + at * 7 % 5},{20.5 + at * 3 % 7}\n" for at in range(9))
    with pytest.raises(LogError, match=r"Name it: --column latency=NAME"):
        read(f"{header}\n{rows}")


def test_a_tie_is_a_question_with_both_options():
    rows = "".join(f"{11.25 + at * 7 % 5},{20.5 + at * 3 % 7}\n" for at in range(9))
    with pytest.raises(
        LogError, match=r"--column latency=fetch_ms, or --column latency=store_ms|=store_ms, or .*=fetch_ms"
    ):
        read(f"fetch_ms,store_ms\n{rows}")
    with pytest.raises(LogError, match=r"--unit s, or --unit ms|--unit ms, or --unit s"):
        read("Duration\n" + "".join(f"{80 + at * 7 % 50}\n" for at in range(9)))


def test_a_text_without_a_format_gets_a_pattern_that_reads_it(tmp_path):
    path = tmp_path / "worker.txt"
    path.write_text("[w1] job 17 done: took 120ms\n[w1] idle\n[w2] job 18 done: took 95ms\n")
    with pytest.raises(LogError, match="--pattern") as raised:
        latfit.read_log(path)
    pattern = str(raised.value).split("--pattern '")[1].removesuffix("'")
    assert latfit.read_log(path, pattern=pattern).frame["latency"].tolist() == [0.12, 0.095]


def test_seconds_that_would_overlap_a_hundredfold_are_asked_about(tmp_path):
    """Pings of one worker, one after the other: whole numbers around 400 in a column that is only called latency."""
    path = tmp_path / "pings.csv"
    rows = [f"2026-03-02 06:{at // 15:02d}:{at % 15 * 4:02d},eu-{at % 3},{300 + 37 * at % 200}" for at in range(300)]
    path.write_text("\n".join(["datetime,to,latency", *rows]))
    with pytest.raises(latfit.LatfitError, match=r"may be in ms or s.*--unit ms, or --unit s"):
        latfit.read_log(path)


def test_a_column_called_latency_beside_times_of_another_name_may_be_in_milliseconds(tmp_path):
    """Only a log that latfit wrote has its names, and there the times are called `submitted`."""
    path = tmp_path / "pings.csv"
    rows = [f"2026-03-02 06:{at // 3:02d}:{at % 3 * 17:02d};{90 + 37 * at % 200},5;1" for at in range(80)]
    path.write_text("\n".join(["time;latency;ok", *rows]))
    with pytest.raises(latfit.LatfitError, match=r"may be in s or ms.*--unit s, or --unit ms"):
        latfit.read_log(path)


def test_columns_of_one_question_are_offered_in_one_unit(tmp_path):
    """Three columns of pings and their spread, without a header: the spread alone would rather be seconds."""
    rows = [
        f"2014-08-30 23:55:{at:02d},8.8.8.8,OK,{20.4 + at % 7},{38.4 + at % 9},{91.4 + at % 11},{at % 7 / 9 + 0.5:.3f}"
        for at in range(50)
    ]
    path = tmp_path / "ping.log"
    path.write_text("\n".join([*rows, ""]))
    with pytest.raises(LogError, match="Choose one") as error:
        latfit.read_log(path)
    offered = str(error.value).split("Choose one: ")[1].split(", or ")
    assert len(offered) > 1
    assert len({option.partition("--unit ")[2] for option in offered} - {""}) <= 1


def test_a_latency_between_whole_milliseconds_and_latfits_own_seconds_is_a_question(tmp_path):
    """Many logs call a column `latency` that is in milliseconds; only the other names of latfit's schema settle it."""
    rng = np.random.default_rng(4)
    when = pd.Timestamp("2026-03-02") + pd.to_timedelta(np.arange(3000) * 4, unit="s")
    table = pd.DataFrame({"datetime": when.strftime("%Y-%m-%d %-H:%M:%S"), "to": "eu", "latency": 0})
    table["latency"] = rng.lognormal(6, 0.4, len(table)).astype(int)
    table.to_csv(path := tmp_path / "x.csv", index=False)
    with pytest.raises(latfit.LatfitError, match="--unit ms, or --unit s"):
        latfit.read_log(path)
    log = latfit.read_log(path, unit="ms")
    assert log.frame["submitted"].iloc[1] == pd.Timestamp("2026-03-02 00:00:04Z")
    table.rename(columns={"datetime": "submitted"}).to_csv(path, index=False)
    assert latfit.read_log(path).frame["latency"].max() == table["latency"].max()


@pytest.mark.parametrize(
    ("columns", "unit", "is_certain"),
    [
        (("timestamp", "url", "latency", "status"), "ms", True),
        (("timestamp", "latency", "status"), "ms", False),
        (("latency", "status"), "s", False),
        (("timestamp", "rtt"), "ms", False),
    ],
)
def test_ordinary_tables_of_milliseconds_are_not_read_as_seconds(columns, unit, is_certain, tmp_path):
    rng, n = np.random.default_rng(1), 400
    latency = rng.lognormal(5, 0.7, n).astype(int) * (1000 if "rtt" in columns else 1)  # in microseconds
    sent = pd.Timestamp("2026-03-02") + pd.to_timedelta(2 * np.arange(n), unit="s")
    codes = rng.choice(["200", "500"] if "url" in columns else ["ok", "error"], n)
    cells = {"timestamp": sent.astype(str), "url": "/a", "latency": latency, "rtt": latency, "status": codes}
    pd.DataFrame(cells)[list(columns)].to_csv(path := tmp_path / "x.csv", index=False)
    if is_certain:
        assert latfit.read_log(path).facts.unit == unit
    else:
        with pytest.raises(latfit.LatfitError, match=f"Choose one: --unit {unit}, or"):
            latfit.read_log(path)
