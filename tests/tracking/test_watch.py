"""A log that grows, rotates, is truncated and half written, and a watch that is killed again and again."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

import latfit
import latfit.tracking.watch as module
from conftest import DATA
from latfit.errors import LogError
from latfit.tracking.tail import TAIL_BLOCK, Tail
from latfit.tracking.watch import prometheus

LATFIT = Path(sys.executable).parent / "latfit"
HEADER = "submitted,latency,status\n"


def rows(rng, n, scale=1.0, start=0):
    x = scale * rng.lognormal(0, 0.8, n)
    out = (rng.random(n) < 0.03) | (x > 60)
    return [f"{1.7e9 + start + i:.0f},{60 if o else y:.4f},{'censored' if o else 'completed'}\n"
            for i, (y, o) in enumerate(zip(x, out, strict=True))]  # fmt: skip


def state_of(watch):
    return watch.tracker.to_json(), watch.refused


@pytest.fixture
def Watch():
    """The class, with every watch closed in the end."""
    with ExitStack() as stack:
        yield lambda *args, **options: stack.enter_context(module.Watch(*args, **options))


@pytest.fixture
def lines():
    return rows(np.random.default_rng(1), 3000)


@pytest.mark.slow
def test_the_state_does_not_depend_on_how_the_log_grew(tmp_path, lines, Watch):
    whole, grown = tmp_path / "whole.csv", tmp_path / "grown.csv"
    text = (HEADER + "".join(lines) + "not,a,row at all\n").encode()
    whole.write_bytes(text)
    one, other = Watch(whole, cutoff=60.0), Watch(grown, cutoff=60.0, state=tmp_path / "state")
    assert one.read() == 3000
    rng, at = np.random.default_rng(2), 0
    while at < len(text):
        step = int(rng.integers(1, 9000))  # anywhere in a line
        with grown.open("ab") as file:
            file.write(text[at : at + step])
        at += step
        other.read()
        other.notice()
        if rng.random() < 0.3:  # another process goes on
            other = Watch(grown, cutoff=60.0, state=tmp_path / "state")
    assert state_of(one) == state_of(other)
    assert one.refused == 1
    assert other.read() == 0


def test_the_watch_follows_the_optimum_of_the_log(tmp_path, lines, Watch):
    log = tmp_path / "log.csv"
    log.write_text(HEADER + "".join(lines))
    watch = Watch(log, cutoff=60.0)
    watch.read()
    notice = watch.notice()
    best = latfit.optimal_timeout(latfit.Empirical.of(latfit.read_log(log).sample(cutoff=60.0)))
    assert notice.expected_duration == pytest.approx(best.expected_duration, rel=0.03)
    assert watch.notice() is None  # said already
    with log.open("a") as file:
        file.writelines(rows(np.random.default_rng(3), 2000, scale=4, start=3000))
    assert watch.read() == 2000
    again = watch.notice()
    assert again.changed
    assert again.kept_regret > 0.1
    assert again.timeout == pytest.approx(4 * notice.timeout, rel=0.5)


def test_rotation_truncation_and_an_absent_log(tmp_path, lines, Watch):
    log = tmp_path / "log.csv"
    watch = Watch(log, cutoff=60.0, state=tmp_path / "state")
    assert watch.read() == 0
    log.write_text(HEADER)
    assert watch.read() == 0  # a header alone says nothing yet
    assert isinstance(watch.trouble, LogError)
    log.write_text(HEADER + "".join(lines[:500]) + lines[500][:9])
    assert watch.read() == 500
    with log.open("a") as file:
        file.write(lines[500][9:] + lines[501].rstrip("\n"))
    log.rename(tmp_path / "log.csv.1")
    with (tmp_path / "log.csv.1").open("a") as file:  # a writer that has not noticed yet
        file.write("\n" + lines[502].rstrip("\n"))
    assert watch.read() == 2  # the last one may still be written
    log.write_text(HEADER + "".join(lines[503:1000]))
    assert watch.read() == 498
    log.write_text(HEADER + "".join(lines[1000:1010]))  # truncated
    assert watch.read() == 10
    one = Watch(tmp_path / "all.csv", cutoff=60.0)
    (tmp_path / "all.csv").write_text(HEADER + "".join(lines[:1010]))
    one.read()
    assert state_of(one) == state_of(watch)


def test_a_log_rotated_between_two_runs(tmp_path, lines, Watch):
    log = tmp_path / "log.csv"
    log.write_text(HEADER + "".join(lines[:300]))
    first = Watch(log, cutoff=60.0, state=tmp_path / "state")
    first.read()
    first.tail.close()
    with log.open("a") as file:
        file.writelines(lines[300:400])
    log.rename(tmp_path / "log.csv.1")
    log.write_text(HEADER + "".join(lines[400:600]))
    assert Watch(log, cutoff=60.0, state=tmp_path / "state").read() == 300


@pytest.mark.parametrize("again", [False, True])
def test_a_truncated_log_that_has_outgrown_its_old_size(tmp_path, lines, Watch, again):
    """Truncated in place between two reads, and longer than before at the second: nothing is lost."""
    log, state = tmp_path / "log.csv", tmp_path / "state"
    log.write_text(HEADER + "".join(lines[:300]))
    watch = Watch(log, cutoff=60.0, state=state)
    assert watch.read() == 300
    with log.open("r+") as file:
        file.truncate(0)
        file.write(HEADER + "".join(lines[300:800]))
    if again:  # by another process, which knows the state
        watch.save()
        watch = Watch(log, cutoff=60.0, state=state)
    assert watch.read() == 500
    one = Watch(tmp_path / "all.csv", cutoff=60.0)
    (tmp_path / "all.csv").write_text(HEADER + "".join(lines[:800]))
    one.read()
    assert state_of(one) == state_of(watch)


def test_lines_longer_than_a_block(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"a\n" + b"x" * (2 * TAIL_BLOCK + 5))
    tail = Tail(log)
    assert [data for data, _ in tail.lines()] == [b"a\n"]
    with log.open("ab") as file:
        file.write(b"\nb\n")
    assert b"".join(data for data, _ in tail.lines()) == b"x" * (2 * TAIL_BLOCK + 5) + b"\nb\n"
    tail.close()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("l.jsonl", "".join(f'{{"latency": {1 + i % 9 / 10}, "status": "completed"}}\n' for i in range(60))),
        ("l.tsv", "latency_ms\tstatus\n" + "".join(f"{900 + 10 * (i % 9)}\tcompleted\n" for i in range(60))),
        ("l.txt", "".join(f"{1 + i % 9 / 10}\n" for i in range(60))),
    ],
)
def test_other_formats(tmp_path, name, text, Watch):
    log = tmp_path / name
    middle = text.index("\n", len(text) // 2) + 1
    log.write_text(text[:middle])
    watch = Watch(log, cutoff=60.0, options={"unit": "s"} if name == "l.txt" else {})
    seen = watch.read()
    with log.open("a") as file:
        file.write(text[middle:])
    assert seen + watch.read() == 60
    assert 0.9 < watch.notice().timeout < 2.5


@pytest.mark.slow
def test_the_log_of_a_probe_is_followed_while_it_grows(tmp_path, run, Watch):
    """Each end counts once, in the order of the ends; what is on its way does not count."""
    whole, grown = tmp_path / "probes.jsonl", tmp_path / "grown.jsonl"
    done = run("probe", "command", "-o", whole, "--probes", 60, "--in-flight", 20, "--cutoff", "60s", "--",
               "sh", "-c", "sleep 0.0$((RANDOM % 5 + 1))")  # fmt: skip
    assert done.returncode == 0, done.stderr
    text, watch = whole.read_bytes(), Watch(grown, cutoff=60.0)
    for at in range(0, len(text), 700):
        with grown.open("ab") as file:
            file.write(text[at : at + 700])
        watch.read()
    ends = [json.loads(line) for line in text.splitlines() if b'"end"' in line]
    assert (len(ends), watch.tracker.observations, watch.refused) == (60, 60, 0)
    known = latfit.Tracker(initial=60.0, cutoff=60.0)
    known.guard_nothing()
    for at, end in enumerate(ends, start=1):
        known.learn(end["latency"], end["status"])
        if at % module.REFRESH_EVERY == 0:
            known.refresh()
    assert watch.tracker.to_json() == known.to_json()


def test_logs_and_states_that_cannot_be_used_are_reported(tmp_path, lines, Watch):
    log, state = tmp_path / "log.csv", tmp_path / "state"
    log.write_text(HEADER + "".join(lines[:100]))
    Watch(log, cutoff=60.0, state=state).read()
    with pytest.raises(LogError, match="cutoff 60"):
        Watch(log, cutoff=50.0, state=state)
    with pytest.raises(LogError, match="state of a watch of"):
        Watch(tmp_path / "other.csv", cutoff=60.0, state=state)
    state.write_text("{}")
    with pytest.raises(LogError, match="remove it"):
        Watch(log, cutoff=60.0, state=state)
    packed = tmp_path / "log.gz"
    packed.write_bytes(b"\x1f\x8b" + b"0" * 50)
    with pytest.raises(LogError, match="compressed"):
        Watch(packed, cutoff=60.0).read()


def gauges(text):
    """The samples of a text file, by Prometheus' own parser: name and labels without the log, and the value."""
    parser = pytest.importorskip("prometheus_client.parser")
    families = list(parser.text_string_to_metric_families(text))
    assert all(family.type in ("gauge", "counter") and family.documentation for family in families)
    samples = [sample for family in families for sample in family.samples]
    assert len({sample.labels["log"] for sample in samples}) == 1
    return {(sample.name.removeprefix("latfit_"), sample.labels.get("attempt")): sample.value for sample in samples}


def test_prometheus_reads_the_text_file(tmp_path, lines, run, Watch):
    log, text = tmp_path / 'a "log".csv', tmp_path / "latfit.prom"
    log.write_text(HEADER + "".join(lines[:1000]))
    done = run("watch", log, "--cutoff", 60, "--textfile", text, "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    figures = gauges(text.read_text())
    assert figures["timeout_seconds", None] == said["timeout"]
    assert figures["observations_total", None] == said["observations"] == 1000
    retry = json.loads(run("timeout", log, "--cutoff", 60, "--json").stdout)["retry"]
    assert said["retry"]["timeouts"] == retry["timeouts"]
    for attempt, timeout in enumerate(retry["timeouts"], start=1):
        assert figures["retry_timeout_seconds", str(attempt)] == timeout
    assert figures["retry_attempts", None] == retry["attempts"]
    assert figures["retry_expected_duration_seconds", None] == pytest.approx(retry["expected_duration"])
    assert figures["retry_worst_loss_ratio", None] == pytest.approx(retry["worst_loss"])
    assert "then wait: " in run("watch", log, "--cutoff", 60).stdout
    unread = gauges(prometheus(Watch(log, cutoff=60.0)))  # before anything was read
    assert {name for (name, _), value in unread.items() if value != value} == {
        "retry_attempts", "retry_expected_duration_seconds", "retry_worst_loss_ratio", "expected_duration_seconds"
    }  # fmt: skip


def test_the_watch_reports_that_waiting_is_best(tmp_path, run):
    log, text = tmp_path / "x.csv", tmp_path / "x.prom"
    rng = np.random.default_rng(4)
    log.write_text(HEADER + "".join(f"{1.7e9 + i:.0f},{1 + rng.random() / 10:.4f},completed\n" for i in range(300)))
    done = run("watch", log, "--cutoff", 60, "--textfile", text, "--json")
    assert json.loads(done.stdout)["retry"] is None
    assert gauges(text.read_text())["retry_attempts", None] == 1
    assert " wait; without limit: " in run("watch", log, "--cutoff", 60).stdout


@pytest.mark.slow
def test_late_runs_of_hangs_keep_the_timeout_in_its_interval(tmp_path, Watch):
    """12 of 1400 hang for 30 s and are logged together when they end: 5 s was exported beside 80 to 104 ms."""
    rng = np.random.default_rng(8)
    submitted = np.cumsum(rng.exponential(0.2, 1400))
    latency = rng.lognormal(-2.5, 0.5, 1400)
    hung = np.zeros(1400, dtype=bool)
    hung[[300, 301, 303, 304, 700, 701, 702, 1100, 1101, 1102, 1104, 1105]] = True
    latency = np.where(hung, 30.0, latency)
    order = np.argsort(submitted + latency)
    text = [f"{1.7e9 + submitted[i]:.3f},{latency[i]:.4f},{'censored' if hung[i] else 'completed'}\n" for i in order]
    log, runs = tmp_path / "late.csv", np.flatnonzero(hung[order])
    assert (np.diff(runs) <= 3).sum() >= 7  # they are logged in runs
    log.write_text(HEADER)
    watch = Watch(log, cutoff=30.0)
    for at in range(0, 1400, 100):
        with log.open("a") as file:
            file.writelines(text[at : at + 100])
        watch.read()
        watch.review()
        notice, figures = watch.notice(matters=0.0), gauges(prometheus(watch))
        low, high = figures["timeout_low_seconds", None], figures["timeout_high_seconds", None]
        assert low <= figures["timeout_seconds", None] <= high
        assert figures["timeout_seconds", None] < 2.0
        if notice is not None:
            assert notice.low <= notice.timeout <= notice.high
    timeouts = [value for (name, _), value in gauges(prometheus(watch)).items() if name == "retry_timeout_seconds"]
    assert timeouts
    assert max(timeouts) < 5.0


def test_the_command_says_why_it_cannot(tmp_path, run):
    done = run("watch", tmp_path / "none.csv", "--cutoff", 60)
    assert (done.returncode, done.stdout) == (1, "")
    assert "--follow" in done.stderr
    assert "--cutoff" in run("watch", tmp_path / "none.csv").stderr
    done = run("watch", tmp_path / "none.csv", "--follow")
    assert done.returncode == 2
    assert "there is no such file yet; to wait for it, give --cutoff" in done.stderr
    for follow in ([], ["--follow"]):
        done = run("watch", "-", *follow, stdin="latency\n1\n2\n")
        assert (done.returncode, done.stdout) == (2, "")
        assert "standard input cannot be watched" in done.stderr
    (tmp_path / "few.csv").write_text("latency\n1\n2\n")
    done = run("watch", tmp_path / "few.csv", "--cutoff", 60)
    assert done.returncode == 0
    assert "too few" in done.stdout


def fast_failures(rng, n=400):
    """Errors return within milliseconds, and the log does not distinguish them from answers."""
    x = np.where(rng.random(n) < 0.3, rng.uniform(0.002, 0.006, n), rng.lognormal(-1.5, 0.6, n))
    return "submitted,latency\n" + "".join(f"{1.7e9 + 3 * i:.0f},{y:.4f}\n" for i, y in enumerate(x))


def two_endpoints(rng, n=400, start=0):
    slow = rng.random(n) < 0.4
    x = np.where(slow, 3.0, 0.1) * rng.lognormal(0, 0.2, n)
    return [f"{1.7e9 + start + i:.0f},{y:.4f},completed,{'/report' if s else '/search'}\n"
            for i, (y, s) in enumerate(zip(x, slow, strict=True))]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("code", ["no-outcomes", "mixed"])
def test_the_watch_sets_no_timeout_that_analyze_withholds(tmp_path, run, code):
    rng = np.random.default_rng(5)
    log = tmp_path / "x.csv"
    log.write_text(fast_failures(rng) if code == "no-outcomes"
                   else "submitted,latency,status,endpoint\n" + "".join(two_endpoints(rng)))  # fmt: skip
    told = json.loads(run("analyze", log, "--cutoff", 30, "--resamples", 0, "--json").stdout)
    assert told["timeout"]["withheld"] == [code]
    done = run("watch", log, "--cutoff", 30, "--json", "--textfile", tmp_path / "x.prom")
    assert json.loads(done.stdout)["withheld"] == [code]
    assert f"warning: WITHHELD ({code})" in done.stderr
    assert "latfit analyze" in done.stderr
    assert "} 1" in next(
        line for line in (tmp_path / "x.prom").read_text().splitlines() if line.startswith("latfit_withheld")
    )
    assert f"WITHHELD ({code}): not to be set" in run("watch", log, "--cutoff", 30).stdout


def test_a_gain_that_analyze_finds_implausible_is_withheld(tmp_path, run):
    rng = np.random.default_rng(9)
    x, log = rng.lognormal(-7, 0.3, 300), tmp_path / "x.csv"
    log.write_text(HEADER + "".join(f"{1.7e9 + i:.0f},{y:.6f},{'lost' if i % 20 == 0 else 'completed'}\n"
                                    for i, y in enumerate(x)))  # fmt: skip
    assert "not plausible" in run("analyze", log, "--cutoff", 60).stderr
    done = run("watch", log, "--cutoff", 60, "--json")
    notice = json.loads(done.stdout)
    assert (notice["retry"], notice["withheld"]) == (None, ["implausible"])
    assert "warning: WITHHELD (implausible)" in done.stderr


def test_an_answer_that_holds_is_reported_without_a_warning(tmp_path, lines, run):
    log = tmp_path / "x.csv"
    log.write_text("start,latency,result\n" + "".join(lines[:1000]))
    done = run("watch", log, "--cutoff", 60, "--json")
    assert json.loads(done.stdout)["withheld"] == []
    assert "warning" not in done.stderr
    assert done.stderr.count("column 'start' is read as submitted") == 1


def test_the_log_is_analysed_again_when_it_has_doubled(tmp_path, Watch):
    """One endpoint at first, two later: the third look finds it, and not every block of lines is a look."""
    rng = np.random.default_rng(6)
    log = tmp_path / "x.csv"
    log.write_text(
        "submitted,latency,status,endpoint\n" + "".join(row for row in two_endpoints(rng, 300) if "search" in row)
    )
    watch, found = Watch(log, cutoff=30.0), []
    for k in range(8):
        watch.read()
        found.append(watch.review())
        with log.open("a") as file:
            file.writelines(two_endpoints(rng, 100, start=1000 * (k + 1)))
    assert [one is not None for one in found].index(True) == 0
    assert 2 <= sum(one is not None for one in found) <= 3
    assert watch.withheld == ("mixed",)
    assert watch.notice().to_dict()["withheld"] == ["mixed"]


def test_the_cutoff_is_that_of_analyze(tmp_path, lines, run):
    log, state = tmp_path / "x.csv", tmp_path / "state"
    log.write_text(HEADER + "".join(lines[:600]))
    cutoff = json.loads(run("outliers", log, "--json").stdout)["cutoff"]
    done = run("watch", log, "--json", "--state", state)
    assert done.returncode == 0, done.stderr
    assert done.stdout == run("watch", log, "--json", "--cutoff", cutoff).stdout
    with log.open("a") as file:
        file.writelines(line.replace(",60.0", ",90.0") for line in lines[600:800])
    assert run("watch", log, "--json", "--state", state).returncode == 0  # that of the state, whatever was added
    assert json.loads(state.read_text())["tracker"]["cutoff"] == cutoff


@pytest.mark.parametrize(("text", "code"), [(None, 2), ("", 2), (HEADER, 1)])
def test_a_missing_cutoff_is_requested(tmp_path, run, text, code):
    log = tmp_path / "x.csv"
    if text is not None:
        log.write_text(text)
    done = run("watch", log, "--follow")
    assert (done.returncode, done.stdout) == (code, "")
    assert "--cutoff" in done.stderr.splitlines()[-1]


def following(log, state):
    return subprocess.Popen(
        [LATFIT, "watch", log, "--cutoff", "60", "--follow", "--poll", "0.01", "--state", state],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.slow
def test_nothing_is_lost_after_two_kills(tmp_path, lines, Watch):
    """scripts/kill does it 100 times, with 200 000 lines."""
    log, state, whole = tmp_path / "log.csv", tmp_path / "state", tmp_path / "whole.csv"
    whole.write_text(HEADER + "".join(lines))
    one = Watch(whole, cutoff=60.0)
    one.read()
    log.write_text(HEADER)
    rng = np.random.default_rng(4)
    for part in np.array_split(np.arange(3000), 2):
        process = following(log, state)
        before = state.stat().st_mtime_ns if state.exists() else 0
        with log.open("a") as file:
            for i in part:
                file.write(lines[i])
                file.flush()
        while not state.exists() or state.stat().st_mtime_ns == before:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.005)
        time.sleep(rng.random() / 50)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    process = following(log, state)
    deadline = time.monotonic() + 60
    while json.loads(state.read_text())["tracker"]["seen"] < 3000 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    err = process.communicate()[1]
    assert process.returncode in (0, -signal.SIGTERM), err  # still starting, perhaps
    assert json.dumps(json.loads(state.read_text())["tracker"]) == one.tracker.to_json()


def test_a_directory_is_reported_as_one(run, tmp_path):
    for follow in ([], ["--follow"]):
        done = run("watch", tmp_path, *follow)
        assert (done.returncode, done.stdout) == (1, "")
        assert "this is a directory" in done.stderr


@pytest.mark.parametrize("path", sorted(DATA.iterdir()), ids=lambda path: path.name)
def test_a_log_of_any_format_may_grow_in_pieces(path, tmp_path, Watch):
    """What is read in one piece, and what an open reader is given bit by bit, are the same attempts."""
    text = path.read_bytes()
    whole = Watch(path, cutoff=1e6)
    try:
        count = whole.read()
    except LogError as problem:
        pytest.skip(str(problem))
    ends = [at + 1 for at, byte in enumerate(text) if byte == ord("\n")]
    grown = Watch(tmp_path / path.name, cutoff=1e6)
    at = 0
    for end in [*ends[len(ends) // 2 :: max(1, len(ends) // 8)], len(text)]:
        with (tmp_path / path.name).open("ab") as file:
            file.write(text[at:end])
        at = end
        grown.read()
    assert grown.tracker.observations == count
    assert state_of(grown) == state_of(whole)


def test_a_new_line_costs_few_calls(tmp_path, lines, Watch):
    log = tmp_path / "log.csv"
    log.write_text(HEADER + "".join(lines[:1000]))
    calls, counting = [], threading.Event()

    def count(frame, event, _):
        if event == "call" and counting.is_set() and f"{os.sep}latfit{os.sep}" in frame.f_code.co_filename:
            calls.append(frame.f_code.co_qualname)

    threading.setprofile(count)
    try:
        watch = Watch(log, cutoff=60.0)
        watch.read()
        watch.notice()
    finally:
        threading.setprofile(None)
    sys.setprofile(count)
    try:
        for line in lines[1000:1010]:
            with log.open("a") as file:
                file.write(line)
            counting.set()
            assert watch.read() == 1
            watch.notice()
            counting.clear()
    finally:
        sys.setprofile(None)
    assert 10 * 30 < len(calls) <= 10 * 100
