"""Bad logs: one clear line with what was found, where, and what to do; nothing is dropped silently."""

import gzip

import numpy as np
import pytest

import latfit
from conftest import DATA, EGEE
from latfit.errors import LogError, MissingColumn, TooManyRefused, UnknownFormat

SWF_ROW = "{id} 0 {wait} 10 1 -1 -1 1 100 -1 1 1 1 -1 2 -1 -1 -1\n"


@pytest.mark.parametrize(
    ("content", "error", "says"),
    [
        (b"", LogError, "the file is empty"),
        (b"latency,status\n", LogError, r"header \(latency, status\) but no row"),
        (b"\x7fELF\x00\x00\x01", LogError, "binary file"),
        (b"<?xml version='1.0'?><x/>", UnknownFormat, "no format recognises"),
        (b"once upon a time there was a log", UnknownFormat, "begins 'once upon"),
        (b"," * 5000 + b"\n1,2\n", LogError, "rename one of them"),
        (b"a,b\n1,2\n", MissingColumn, r"no column looks like a latency.*--column latency=NAME"),
        (b"a,rest,b\nx,1.5,y\nz,2.5,y\n", MissingColumn, r"--column latency=NAME, or"),
        (b"a,b\nx,y\n", MissingColumn, r"--column latency=NAME, or"),
        (b"from,to\n1700000000,1700000009\n", MissingColumn, r"--column latency=NAME, or"),
        (b"latency,latency\n1,2\n", LogError, "two columns are called 'latency'"),
        (b"latency,status\n1,up\n2,up\n", TooManyRefused, "none of the 2 rows.*line 2: unknown status: 'up'"),
        (b"latency\n-1\n-2\n3\n", TooManyRefused, "2 of 3 rows were refused.*line 2: negative latency"),
        (b"latency\nfast\nslow\n1\n", TooManyRefused, "unparseable latency: 'fast'"),
        (b"submitted,latency\n2026-03-01T00:00:00Z,1\n2026-03-01T00:00:00,2\n", LogError, "with and without an offset"),
        (b'{"latency": 1\n{"latency"\n', LogError, "no line holds a JSON object"),
        (b"; Version: 2.2\n; Note: nothing here\n", LogError, "no job below"),
        ("".join(SWF_ROW.format(id=i, wait=-1) for i in range(9)).encode(), LogError, r"every wait is missing \(-1\)"),
        (
            b"JobID|Submit|State|User\n1|2026-03-01T00:00:00|COMPLETED|x\n",
            MissingColumn,
            "line 1 must name jobid, submit, start",
        ),
        (b"PAR1 but not really", LogError, "Parquet file is damaged"),
        (gzip.compress(b"latency\n1\n" * 5000)[:-20], LogError, "compressed data are damaged or cut short"),
        (b"latency\n" + b"1" * (1 << 25), LogError, "line 2 is longer than 16 MiB"),
        (b"x" * 10**6, UnknownFormat, "no format recognises"),
        (b"a" * 10**5 + b",b\n1,2\n", UnknownFormat, "no format recognises"),
    ],
)
def test_one_clear_line(content, error, says, tmp_path, run):
    path = tmp_path / "log"
    path.write_bytes(content)
    with pytest.raises(error, match=says):
        latfit.read_log(path)
    done = run("outliers", path)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith("latfit: ")]
    assert len(told) == 1
    assert str(path) in told[0]


def test_no_file_and_a_directory(tmp_path, run):
    for path, says in (
        (tmp_path, "this is a directory"),
        (tmp_path / "none", "no such file"),
        (tmp_path / "*.x", "no file"),
    ):
        done = run("outliers", path)
        assert (done.returncode, done.stdout) == (1, "")
        assert says in done.stderr


def test_a_log_with_only_lost_probes_is_reported(tmp_path, run):
    (tmp_path / "x.csv").write_text("latency,status\n1,lost\n2,lost\n")
    done = run("outliers", tmp_path / "x.csv")
    assert done.returncode == 1
    assert "none of the 2 probes returned" in done.stderr


def test_wrong_names_from_the_user():
    with pytest.raises(MissingColumn, match=r"no column 'rtt' for latency; there are: id, submitted, broker"):
        latfit.read_log(EGEE, columns={"latency": "rtt"})
    with pytest.raises(LogError, match="'speed' is not a role of a column"):
        latfit.read_log(EGEE, columns={"speed": "latency"})
    with pytest.raises(LogError, match="cannot be read as 'fine'"):
        latfit.read_log(EGEE, statuses={"ok": "fine"})
    with pytest.raises(LogError, match="'days' is not a unit"):
        latfit.read_log(EGEE, unit="days")
    with pytest.raises(UnknownFormat, match="'xls' is not a log format"):
        latfit.read_log(EGEE, format="xls")
    with pytest.raises(LogError, match="not a time zone"):
        latfit.read_log(DATA / "sacct.txt", timezone="Mars/Olympus")


def test_a_truncated_last_line_costs_one_row(tmp_path):
    text = EGEE.read_text()
    cut = text[: text.rindex(",") - 3]
    (tmp_path / "x.csv").write_text(cut)
    log = latfit.read_log(tmp_path / "x.csv")
    assert len(log.frame) == 2136
    assert [(r.line, r.reason) for r in log.facts.refused.first] == [(2138, "wrong number of fields: 4 instead of 5")]


def test_one_refused_row_is_allowed_and_the_share_can_be_set(tmp_path):
    (tmp_path / "x.csv").write_text("latency\n1\n-1\n")
    assert len(latfit.read_log(tmp_path / "x.csv").frame) == 1
    (tmp_path / "y.csv").write_text("latency\n" + "1\n" * 90 + "-2\n" * 10)
    assert len(latfit.read_log(tmp_path / "y.csv").frame) == 90
    with pytest.raises(TooManyRefused, match="more than 5%"):
        latfit.read_log(tmp_path / "y.csv", max_refused=0.05)


@pytest.mark.parametrize("field", ['"open', 'a "quoted" word', '"two\nlines"', '"a,b"', "€", "\udcff", "x" * 300_000])
def test_odd_fields_cost_at_most_their_own_row(field, tmp_path):
    rows = [f"{i},{i % 7 + 1},site" for i in range(200)]
    rows[50] = f"50,2,{field}"
    text = "id,latency,site\n" + "\n".join(rows) + "\n"
    (tmp_path / "x.csv").write_bytes(text.encode(errors="surrogateescape"))
    log = latfit.read_log(tmp_path / "x.csv")
    assert len(log.frame) + log.facts.refused.count == 200
    assert log.facts.refused.count <= 1
    assert np.count_nonzero(log.frame["site"] == "site") == 199


def test_many_refused_are_counted_and_the_first_are_shown(tmp_path):
    (tmp_path / "x.csv").write_text("latency\n" + "1\n" * 3000 + "-1\n" * 3000)
    log = latfit.read_log(tmp_path / "x.csv", max_refused=1)
    assert log.facts.refused.count == 3000
    assert log.facts.refused.reasons == {"negative latency": 3000}
    assert len(log.facts.refused.first) == 1000


@pytest.mark.slow
def test_a_bad_log_leaves_no_file(tmp_path, run):
    (tmp_path / "x.csv").write_text("latency\n" + "-1\n" * 10 + "1\n")
    assert run("convert", tmp_path / "x.csv", "-o", tmp_path / "y.csv").returncode == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.csv"]
    assert run("convert", DATA / "probes.csv", "-o", tmp_path / "y.xls").returncode == 2
    assert run("convert", DATA / "probes.csv", "-o", tmp_path).returncode == 2
    (tmp_path / "z.csv").mkdir()
    assert run("convert", DATA / "probes.csv", "-o", tmp_path / "z.csv").returncode == 1
    (tmp_path / "z.csv").rmdir()
    assert run("convert", tmp_path / "x.csv", "-o", tmp_path / "x.csv", "--max-refused", 1).returncode == 1
    assert run("convert", DATA / "probes.csv", "-o", tmp_path / "no" / "y.csv").returncode == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.csv"]


def test_a_column_near_the_largest_float_is_not_suggested(tmp_path):
    path = tmp_path / "huge.csv"
    path.write_text("x,pause\n" + "".join(f"1e308,{k}.5\n" for k in (3, 1, 2, 5)))
    with pytest.raises(LogError, match="--column latency=NAME"):
        latfit.read_log(path)


def test_an_infinite_latency_of_a_run_that_was_cancelled(tmp_path):
    path = tmp_path / "runs.csv"
    head = "run_id,name,status,conclusion,event,created_at,duration_seconds\n"
    runs = [("cancelled", "1e400"), ("success", 12), ("failure", "1e400"), ("success", 9)]
    rows = [f"{k},CI,completed,{word},push,2026-03-01T00:00:0{k}Z,{took}\n" for k, (word, took) in enumerate(runs)]
    path.write_text(head + "".join(rows))
    log = latfit.read_log(path, max_refused=1)
    assert np.isfinite(log.frame.latency[log.frame.status != "lost"]).all()
    assert log.counts["lost"] == 1  # it failed, and nothing tells when
    assert log.sample().n == 4
