"""What a log holds is data: it is not run, not unpickled, not followed, and not taken as markup or as a command.

And nothing goes out to a network.
"""

import ast
import csv
import ctypes
import json
import os
import pickle
import platform
import pty
import re
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import latfit
import latfit.settings
from conftest import REPO
from fuzzing.agree import few_laws
from latfit.cli import main
from latfit.laws import parse_law
from latfit.report import to_markdown, to_text
from latfit.tracking.watch import Watch, prometheus

LATFIT = Path(sys.executable).parent / "latfit"
QUICK = {"laws": ["exponential"], "test": False, "resamples": 0}

# nothing of a log is run: the source


CALLS = {"eval", "exec", "compile", "__import__", "execfile"}
METHODS = {
    "system",
    "popen",
    "create_subprocess_shell",
    "eval",
    "query",
    "read_pickle",
    "Unpickler",
    "spawnl",
    "spawnv",
    "execv",
    "execl",
}
MODULES = {
    "pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "yaml", "subprocess", "pty", "code",
    "socket", "urllib.request", "http", "requests", "httpx", "aiohttp", "fsspec", "ftplib", "xml", "webbrowser",
}  # fmt: skip


# what a user asks for in so many words: a command to measure and a page to fetch; the error of a client's own command
ASKED_FOR = {
    ("measure/targets/command.py", "subprocess"),
    ("measure/targets/http.py", "aiohttp"),
    ("retrying.py", "subprocess"),
}


def dangers(path):
    """Everything in a module that could execute text, unpickle bytes or reach a network."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
            yield from (name for name in names if name in MODULES)
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in CALLS:
                yield node.func.id
            if isinstance(node.func, ast.Attribute):
                owner = ast.unparse(node.func.value)
                if node.func.attr in METHODS or (node.func.attr == "load" and owner in ("np", "numpy")):
                    yield f"{owner}.{node.func.attr}"
            yield from (f"{word.arg}=True" for word in node.keywords
                        if word.arg in ("allow_pickle", "shell") and ast.unparse(word.value) != "False")  # fmt: skip


def test_the_source_runs_nothing_and_unpickles_nothing():
    package = REPO / "latfit"
    found = {(path.relative_to(package).as_posix(), what) for path in package.rglob("*.py") for what in dangers(path)}
    assert found == ASKED_FOR


def test_the_scan_finds_what_it_looks_for(tmp_path):
    (tmp_path / "x.py").write_text(
        "import pickle, subprocess\nfrom urllib import request\neval('1')\nframe.query('a')\nos.system('x')\n"
        "np.load(f, allow_pickle=True)\nrun('x', shell=True)\n__import__('os')\npd.read_pickle('x')\n"
    )
    assert set(dangers(tmp_path / "x.py")) == {
        "pickle", "subprocess", "urllib.request", "eval", "frame.query", "os.system", "np.load", "allow_pickle=True",
        "shell=True", "__import__", "pd.read_pickle",
    }  # fmt: skip


# nothing of a log is run: what happens


class Touch:
    """Pickled, it makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


COMMANDS = [
    "=cmd|'/c touch canary'!A1", "+1+1", "@SUM(1)", "$(touch canary)", "`touch canary`", "; touch canary",
    "__import__('os').system('touch canary')", "{{7*7}}", "%s%n", "!!python/object/apply:os.system [id]",
]  # fmt: skip


@pytest.fixture
def canary(tmp_path, monkeypatch):
    """A file that must not appear; the working folder is where it would."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "canary"


def test_the_canary_detects_execution(canary):
    pickle.loads(pickle.dumps(Touch(canary)))
    assert canary.exists()


def test_cells_that_look_like_commands_are_text(canary):
    rows = 3 * COMMANDS
    frame = pd.DataFrame({"latency": np.arange(1.0, 31), "status": "completed", COMMANDS[0]: rows, "site": rows})
    frame.to_csv("x.csv", index=False)
    frame.to_json("x.jsonl", orient="records", lines=True)
    frame.to_parquet("x.parquet")
    for name in ("x.csv", "x.jsonl", "x.parquet"):
        result = latfit.analyze(latfit.read_log(name), by=["site", COMMANDS[0]], **QUICK)
        assert sorted(group.key["site"] for group in result.groups) == sorted(COMMANDS)
    assert not canary.exists()


def test_parquet_that_carries_pickles(canary):
    """Extension types and metadata of pandas that are pickles, bytes that are pickles, words that name classes."""
    evil = pickle.dumps(Touch(canary))
    n = 20
    marked = {"ARROW:extension:name": "arrow.py_extension_type", "ARROW:extension:metadata": evil}
    about = {"index_columns": ["site"], "column_indexes": [], "pandas_version": "2.0.0", "columns": [
        {"name": "site", "field_name": "site", "pandas_type": "object", "numpy_type": "object",
         "metadata": {"encoding": evil.hex()}}]}  # fmt: skip
    schema = pa.schema(
        [
            pa.field("latency", pa.float64()),
            pa.field("status", pa.string()),
            pa.field("site", pa.binary()),
            pa.field("queue", pa.binary(), metadata=marked),
        ],
        metadata={"pandas": json.dumps(about), "pickle": evil},
    )
    columns = [np.arange(1.0, n + 1), ["completed"] * n, [evil] * n, [evil] * n]
    pq.write_table(pa.Table.from_arrays([pa.array(c) for c in columns], schema=schema), "x.parquet")
    log = latfit.read_log("x.parquet")
    assert len(log.frame) == n
    latfit.analyze(log, by=["site", "queue"], **QUICK)
    latfit.convert_log("x.parquet", "y.csv")
    latfit.convert_log("x.parquet", "y.parquet")
    assert not canary.exists()


@pytest.mark.parametrize(
    "spec",
    [
        "lognormal(mu=__import__('os').system('touch canary'),sigma=1)",
        "__import__('os').system('touch canary')",
        "lognormal(mu=(1).__class__,sigma=1)",
        "lognormal(mu=1e5**9,sigma=1)",
        "lognormal(**{'mu':1})",
        "lognormal.__init__(mu=1,sigma=1)",
        "exponential(rate=lambda: 1)",
        "discrete(values=[__import__('os').system('touch canary')],probs=[1])",
        "discrete(values=[x for x in (1,2)],probs=[1])",
        "exponential(rate=1);import os",
        "exponential(rate=1)\nimport os",
        "exponential(__class__=1)",
        "os.system",
        "$(touch canary)",
    ],
)
def test_a_law_is_parsed_and_never_run(spec, canary):
    with pytest.raises(latfit.LawError):
        parse_law(spec)
    assert not canary.exists()


# what a user asks to be run, and who may add to it


def test_a_probe_runs_its_words_and_no_shell(canary, run):
    words = ["$(touch canary)", "`touch canary`", "; touch canary", "| touch canary", "&& touch canary", "{job}"]
    script = canary.parent / "show"
    script.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "$LATFIT_PROBE"\n')
    script.chmod(0o755)
    done = run("probe", "command", "-o", "log", "--probes", 1, "--pause", 0, "--", script, *words)
    assert done.returncode == 0, done.stderr
    (shown,) = canary.parent.glob("latfit-*")
    assert shown.read_text().splitlines() == [*words[:-1], "1"]
    done = run("probe", "command", "-o", "log2", "--probes", 1, "--pause", 0, "--cutoff", "50ms", "--cancel",
               "echo ; touch canary", "--", "sleep", "9")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not canary.exists()


@pytest.mark.slow
def test_settings_hold_nothing_of_the_log(canary):
    """Snippets for a shell or a configuration contain only latfit's own words and numbers."""
    evil = "$(touch canary)`x`'\";<script>"
    frame = pd.DataFrame({"latency": np.arange(1.0, 61) / 7, "status": "completed", evil: 20 * [evil, "b", "c"]})
    frame.to_json(f"{evil}.jsonl", orient="records", lines=True)
    for tool in latfit.settings.TOOLS:
        with few_laws():
            done = CliRunner().invoke(main, ["settings", tool, f"{evil}.jsonl", "--json"])
        shown = json.loads(done.stdout)
        said = json.dumps([shown["snippet"], shown["written"], shown["notes"]])
        assert not any(part in said for part in ("canary", "<script>")), (tool, said)
    assert not canary.exists()


def test_states_and_journals_are_data(canary, run):
    """A pickle in the place of a state or a journal is refused, and not unpickled."""
    Path("log.csv").write_text("latency\n" + "1\n2\n3\n" * 20)
    evil = pickle.dumps(Touch(canary))
    for name in ("state", "tracker", "t.csv.journal", "probes"):
        Path(name).write_bytes(evil)
    resumed = ("--probes", 1, "--pause", 0, "--", "true")
    for words in (
        ["watch", "log.csv", "--cutoff", 60, "--state", "state"],
        ["probe", "command", "-o", "new", "--tracker", "tracker", *resumed],
        ["probe", "command", "-o", "probes", "--resume", *resumed],
        ["batch", "log.csv", "-o", "t.csv", "--resume", "--resamples", 0, "--no-test", "--workers", 1],
    ):
        done = run(*words)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), (words, done.stderr)
    assert not canary.exists()


class Redirect(BaseHTTPRequestHandler):
    """Sends every request to /elsewhere, with a cookie and a command."""

    def do_GET(self):
        self.server.asked.append(self.path)
        self.send_response(302, "$(touch canary)")
        self.send_header("Location", "/elsewhere")
        self.send_header("Set-Cookie", "a=b")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.mark.slow
def test_a_target_cannot_send_a_probe_elsewhere_or_learn_a_secret(canary, run):
    with HTTPServer(("127.0.0.1", 0), Redirect) as server:
        server.asked = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        secret = "s3cr3tT0ken"
        Path("headers").write_text(f"Authorization: Bearer {secret}\nX-Key: {secret}\n")
        url = f"http://127.0.0.1:{server.server_port}/ask?token={secret}"
        done = run("probe", "http", url, "--headers", "headers", "-o", "log.jsonl", "--probes", 12, "--pause", 0,
                   LATFIT_TEST_SECRET=secret)  # fmt: skip
        server.shutdown()
    assert done.returncode == 0, done.stderr
    assert {path.split("?")[0] for path in server.asked} == {"/ask"}
    report = run("analyze", "log.jsonl", "--resamples", 0, "-o", "out")
    assert report.returncode == 0, report.stderr
    told = [done.stdout, done.stderr, report.stdout, report.stderr]
    written = [path.read_text() for path in (Path("log.jsonl"), *Path("out").iterdir()) if path.suffix != ".png"]
    assert not any(secret in text for text in (*told, *written))
    assert not canary.exists()


@pytest.mark.parametrize("name", ["é.csv", 'a"b\\c\nd', '"} 1\nlatfit_evil 1', "\x1b[2J", "\\"])
def test_a_name_stays_one_label_of_the_text_file(name, canary):
    """Prometheus knows three escapes, and refuses a whole file for any other."""
    parser = pytest.importorskip("prometheus_client.parser")
    Path(name).write_text("latency\n" + "1\n2\n3\n" * 20)
    with Watch(name, cutoff=60.0) as watch:
        watch.read()
        families = list(parser.text_string_to_metric_families(prometheus(watch)))
    samples = [sample for family in families for sample in family.samples]
    assert {sample.labels["log"] for sample in samples} == {name}
    assert all(sample.name.startswith("latfit_") and sample.name != "latfit_evil" for sample in samples)


# links and permissions


def test_a_log_of_probes_is_not_written_through_a_link(canary, run):
    for target in ("other", "nowhere"):
        Path("log").unlink(missing_ok=True)
        Path("log").symlink_to(target)
        Path("other").write_text("")
        done = run("probe", "command", "-o", "log", "--probes", 1, "--resume", "--", "true")
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert "link" in done.stderr
        assert Path("other").read_text() == ""
        assert not Path("nowhere").exists()


def test_a_state_is_not_written_through_a_link(canary, run):
    Path("log.csv").write_text("latency\n" + "1\n2\n3\n" * 20)
    Path("other").write_text("mine")
    for option in ("--state", "--textfile"):
        Path("link").unlink(missing_ok=True)
        Path("link").symlink_to("other" if option == "--textfile" else "nowhere")
        done = run("watch", "log.csv", "--cutoff", 60, option, "link")
        assert done.returncode == 0, done.stderr
        assert not Path("link").is_symlink()
    assert Path("other").read_text() == "mine"
    assert not Path("nowhere").exists()


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_restricted_permissions_are_kept(mode, canary, run):
    Path("log.csv").write_text("latency\n" + "1\n2\n3\n" * 20)
    Path("out.csv").write_text("old")
    Path("out.csv").chmod(mode)
    assert run("convert", "log.csv", "-o", "out.csv").returncode == 0
    assert Path("out.csv").stat().st_mode & 0o777 == mode


# names lead nowhere

NAMES = ["../../evil", "/tmp/latfit-evil", "..", "a\nb", "a\x00b", "con", "~root", "x" * 400, "\x1b[2J", "file:///etc"]


@pytest.mark.slow
def test_group_names_create_no_files(canary):
    inside = canary.parent / "a" / "b"
    inside.mkdir(parents=True)
    frame = pd.DataFrame({"latency": np.arange(1.0, 61), "status": "completed", "../site": 6 * NAMES})
    frame.to_json(inside / "x.jsonl", orient="records", lines=True)
    for arguments, made in (
        (["analyze", "x.jsonl", "--by", "../site", "--resamples", "0", "-o", "out"], {"report.md", "results.json"}),
        (["batch", "x.jsonl", "--by", "../site", "--resamples", "0", "--no-test", "--workers", "1", "-o", "t.csv"],
         {"t.csv"}),
    ):  # fmt: skip
        done = subprocess.run([LATFIT, *arguments], cwd=inside, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found = {path.relative_to(inside).as_posix() for path in inside.rglob("*") if path.is_file()}
        assert {name.split("/")[-1] for name in found} >= made
    assert {name for name in found if not name.endswith(".png")} == {
        "x.jsonl", "t.csv", "out/report.html", "out/report.md", "out/results.json",
    }  # fmt: skip
    assert [path.name for path in canary.parent.iterdir()] == ["a"]
    assert [path.name for path in inside.parent.iterdir()] == ["b"]
    assert not Path("/tmp/latfit-evil").exists()


# markup

MARKUP = ["<script>alert(1)</script>", "![x](http://a.example/x.png)", "[x](javascript:alert(1))", "a|b|c", "`a`",
          "**a**", "_a_ ~~b~~", "# a", "- a", "1. a", "<https://a.example>", "https://a.example", "www.a.example",
          "&lt;b&gt; &#60;", "a\nb\n\n# c", "\\", "$a$", "@someone", "<!--", "| --- |", "---", "==="]  # fmt: skip


def test_markdown_shows_what_came_from_the_log_and_nothing_more(canary):
    column = "<b>|`col`\n# x"
    frame = pd.DataFrame({"latency": np.arange(1.0, 5 * len(MARKUP) + 1), "status": "completed", column: 5 * MARKUP})
    frame.loc[0, "status"] = "<img src=x>|![y](z)\n# up"
    name = "<i>[x](y)`|![z](w)# 1.jsonl"
    frame.to_json(name, orient="records", lines=True)
    result = latfit.analyze(latfit.read_log(name, unit="s"), by=column, **QUICK)
    text = to_markdown(result, figures=["cdf.png"])
    plain = re.sub(r"\\[!-/:-@\[-`{-~]", "", text)  # without what is escaped
    *lines, figure = plain.strip().split("\n")
    assert figure == "![cdf.png](cdf.png)"
    rest = "\n".join(lines)
    assert not re.search(r"[<>`~$@]|\]\(|!\[|://|\bwww\.|&(?!amp;|lt;|gt;)", rest)
    assert "*" not in rest
    # headings, lists and tables are latfit's own; a number begins a list only if a point and a space follow
    numbers = r"\d+(\.\d+)? (% |submissions per job; )"
    own = rf"$|[A-Z]|{numbers}|# latfit: |## [A-Z]|- [a-z-]+: |\| |own : its interval|&lt;i&gt;"
    for line in lines:
        assert re.match(own, line), line
    tables = [table.split("\n") for table in re.findall(r"(?:^\| .*\n)+", rest + "\n", flags=re.MULTILINE)]
    tables = [[row for row in table if row] for table in tables]
    assert all(len({row.count("|") for row in table}) == 1 for table in tables)
    assert max(map(len, tables)) == len(set(MARKUP)) + 2  # all groups but a small one, all of them, a heading, its line


@pytest.mark.slow
def test_figures_hold_nothing_of_the_log(canary):
    frame = pd.DataFrame({"latency": np.arange(1.0, 31), "<script>x</script>": "<script>y</script>"})
    frame.to_csv("<script>z.csv", index=False)
    done = subprocess.run(
        [LATFIT, "plot", "<script>z.csv", "--unit", "s", "--figure", "cdf", "-o", "x.svg"],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "script" not in Path("x.svg").read_text()


# the terminal

ESCAPES = ["\x1b[2J", "\x1b]0;title\x07", "\x9b2J", "\x08\x08", "a\rb", "\u202egnp", "\x1bP", "\x7f"]


def on_a_terminal(*arguments):
    """What a command writes to a terminal, on stdout or stderr."""
    terminal, end = pty.openpty()
    process = subprocess.Popen([LATFIT, *map(str, arguments)], stdout=end, stderr=end, stdin=subprocess.DEVNULL)
    os.close(end)
    shown = b""
    try:
        while part := os.read(terminal, 1 << 16):
            shown += part
    except OSError:  # the other end is closed
        pass
    os.close(terminal)
    process.wait(timeout=60)
    return shown.decode()


def assert_harmless(shown):
    """Nothing but text, lines, progress and latfit's own bold headings and coloured verdict."""
    own = re.sub("\x1b\\[(?:0|1|22|3[1-3])m", "", shown).replace("\r\n", "\n")
    own = re.sub("\r(?:reading|logs|groups|[a-z ]+ …)[^\r\x1b]*|\r +\r", "", own)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", own), repr(own)


@pytest.mark.slow
def test_a_log_cannot_command_the_terminal(canary):
    odd = canary.parent / "odd"
    odd.mkdir()
    column = f"site{''.join(ESCAPES)}"
    frame = pd.DataFrame({"latency": [*np.arange(1.0, 41), -1], "status": "completed"})
    frame[column] = [*(5 * ESCAPES), "x"]
    frame["id"] = [*range(40), "\x1b[2J"]
    frame.loc[3, "status"] = "\x1b[2J"
    frame.loc[4, "id"] = 3
    name = f"a{''.join(ESCAPES)}.jsonl"
    frame.to_json(odd / name, orient="records", lines=True)
    (odd / f"b{''.join(ESCAPES)}").write_text("\x1b[2J;\x1b[2J\n1;2\n")
    shown = on_a_terminal("analyze", odd / name, "--by", column, "--resamples", 0)
    assert r"\x1b[2J" in shown
    assert "probes" in shown
    assert_harmless(shown)
    shown = on_a_terminal("batch", odd, "--by", column, "--resamples", 0, "--no-test", "--workers", 1, "-o", "t.csv")
    assert "logs could not be read: 1" in shown
    assert_harmless(shown)
    for arguments in (["outliers", odd / name, "--json"], ["outliers", next(odd.glob("b*"))], ["convert", odd / name,
                      "-o", "y.csv"]):  # fmt: skip
        shown = on_a_terminal(*arguments)
        assert shown
        assert_harmless(shown)
    text = to_text(latfit.analyze(latfit.read_log(odd / name), by=column, **QUICK))
    assert_harmless(text)


# tables


def test_a_table_of_a_batch_holds_names_as_they_are(canary):
    """A spreadsheet may take =1+1 for a formula; a table that changed it could not be joined with the log."""
    frame = pd.DataFrame({"latency": np.arange(1.0, 101), "status": "completed", "site": 10 * COMMANDS})
    frame.to_csv("x.csv", index=False)
    result = latfit.run_batch("x.csv", by="site", resamples=0, test=False, workers=1)
    latfit.batch.write_table(result, Path("t.csv"))
    with Path("t.csv").open(newline="") as file:
        assert sorted(row["site"] for row in csv.DictReader(file)) == sorted(COMMANDS)
    assert "spreadsheet" in (REPO / "docs" / "howto-batch.md").read_text()


def test_names_that_are_not_text_are_written(canary):
    os.makedirs(b"odd/site=\xff")  # noqa: PTH103
    frame = pd.DataFrame({"latency": np.arange(1.0, 31), "status": "completed"})
    frame.to_csv(os.fsdecode(b"odd/site=\xff/\xfe.csv"), index=False)
    result = latfit.run_batch("odd", by=["file", "site"], resamples=0, test=False, workers=1)
    for ending in ("csv", "jsonl", "parquet"):
        latfit.batch.write_table(result, Path(f"t.{ending}"))
    assert pq.read_table("t.parquet").to_pylist() == result.rows
    assert (result.rows[0]["file"], result.rows[0]["site"]) == (r"odd/site=\xff/\xfe.csv", r"\xff")


def test_odd_text_inside_a_log(canary):
    """Halves of characters in JSON, bytes and text that is no UTF-8 in Parquet."""
    lines = [f'{{"latency": {k}, "status": "completed", "site": "a\\ud800", "\\udc00": 1}}\n' for k in range(1, 21)]
    Path("x.jsonl").write_text("".join(lines))
    columns = {"latency": [float(k) for k in range(1, 21)], "status": ["completed"] * 20}
    odd = pa.array([b"\xff"] * 20)
    pq.write_table(pa.table({**columns, "site": odd}), "x.parquet")
    for name, site in (("x.jsonl", "a\ufffd"), ("x.parquet", r"\xff")):
        log = latfit.read_log(name)
        assert set(log.samples("site")) == {(site,)}
        for ending in ("csv", "jsonl", "parquet"):
            latfit.convert_log(name, f"y.{ending}")
    pq.write_table(pa.table({**columns, "site": odd.view(pa.string())}), "z.parquet")
    with pytest.raises(latfit.LogError, match="damaged"):
        latfit.read_log("z.parquet")


# no network

SOCKET = {"x86_64": 41, "aarch64": 198}.get(platform.machine()) if sys.platform == "linux" else None


def no_internet():
    """From now on this process and its children die if they make an internet socket, in any language: seccomp."""
    codes = [
        (0x20, 0, 0, 0),  # the number of the system call; jumps, below, count from the next line
        (0x15, 0, 3, SOCKET),
        (0x20, 0, 0, 16),  # its first argument, the family
        (0x15, 2, 0, 2),  # AF_INET
        (0x15, 1, 0, 10),  # AF_INET6
        (0x06, 0, 0, 0x7FFF0000),  # allowed
        (0x06, 0, 0, 0x80000000),  # killed
    ]
    packed = b"".join(
        code.to_bytes(2, sys.byteorder) + bytes([yes, no]) + k.to_bytes(4, sys.byteorder) for code, yes, no, k in codes
    )
    kept = ctypes.create_string_buffer(packed)

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    program = Program(len(codes), ctypes.addressof(kept))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # no new privileges
    assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0, os.strerror(ctypes.get_errno())


def offline(*arguments):
    return subprocess.run(
        list(map(str, arguments)), preexec_fn=no_internet, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.slow
@pytest.mark.skipif(SOCKET is None, reason="the system call's number is known for Linux on two machines")
def test_no_network_traffic_leaves(canary):
    made = offline(sys.executable, "-c", "import socket; socket.socket()")
    assert made.returncode == -signal.SIGSYS  # the proof that the guard is there
    assert offline(sys.executable, "-c", "import socket; socket.socket(socket.AF_UNIX)").returncode == 0
    frame = pd.DataFrame({"latency": np.arange(1.0, 41), "status": "completed", "site": 20 * ["a", "b"]})
    frame.to_csv("x.csv", index=False)
    frame.head(4).to_csv("tiny.csv", index=False)
    Path("s3:/bucket").mkdir(parents=True)
    frame.to_parquet(canary.parent / "s3:" / "bucket" / "x.parquet")
    for arguments in (
        ["analyze", "tiny.csv", "--resamples", 9, "-o", "out"],
        ["fit", "x.csv", "--law", "weibull", "--bootstrap", 9],
        ["timeout", "x.csv"],
        ["batch", "x.csv", "--by", "site", "--resamples", 9, "--workers", 2, "-o", "s3:/bucket/t.parquet"],
        ["convert", "s3:/bucket/x.parquet", "-o", "s3:/bucket/y.parquet"],
    ):
        done = offline(LATFIT, *arguments)
        assert done.returncode == 0, (arguments, done.returncode, done.stderr)
    assert pq.read_table(pa.OSFile("s3:/bucket/y.parquet")).num_rows == 40


def test_a_url_is_not_a_file_and_nothing_is_fetched(canary, run):
    asked = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"latency\n" + b"1\n2\n3\n" * 20)

        do_HEAD = do_PUT = do_GET  # noqa: N815

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/log"
        for url in (f"{address}.csv", f"{address}.parquet", "s3://bucket/x.parquet", f"file://{__file__}"):
            with pytest.raises(latfit.LogError, match="no such file"):
                latfit.read_log(url)
        Path("x.csv").write_text("latency\n" + "1\n2\n3\n" * 20)
        for output in (f"{address}.csv", f"{address}.parquet"):
            with pytest.raises(latfit.LatfitError, match="there is no folder"):
                latfit.convert_log("x.csv", output)
        done = run("batch", f"{address}.csv", "-o", "t.csv")
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)
        assert "no such file" in done.stderr
        server.shutdown()
    assert asked == []
