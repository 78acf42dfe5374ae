"""`latfit probe command` as a user runs it: truth, cutoffs, signals, kills, secrets."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import latfit
from latfit.measure.targets.command import _processes_of
from systems import until

LATFIT = Path(sys.executable).parent / "latfit"
pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")


def start(*words, **more):
    return subprocess.Popen([LATFIT, "probe", "command", *map(str, words)], stderr=subprocess.PIPE, text=True, **more)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def runs(path):
    return [line["run"] for line in lines(path) if "latfit" in line]


def test_the_latency_is_the_time_that_the_program_takes(tmp_path, run, monkeypatch):
    """Whatever the machine does: at least what the program itself measures, at most the time between its two lines."""
    log = tmp_path / "log"
    script = tmp_path / "nap.py"
    script.write_text("import os, time\nstart = time.monotonic()\ntime.sleep(0.1)\n"
                      "open(os.environ['LATFIT_JOB'], 'w').write(str(time.monotonic() - start))\n")  # fmt: skip
    monkeypatch.chdir(tmp_path)
    done = run("probe", "command", "-o", log, "--in-flight", 4, "--probes", 8, "--pause", 0, "--json",
               "--", sys.executable, script)  # fmt: skip
    told = json.loads(done.stdout)
    assert told["outcomes"] == {"completed": 8, "failed": 0, "censored": 0, "lost": 0}
    assert told["jobs_done"] == 8
    begins = {line["probe"]: line["t"] for line in lines(log) if "probe" in line}
    for end in [line for line in lines(log) if "end" in line]:
        own = float((tmp_path / str(end["end"])).read_text())
        assert own - 1e-5 <= end["latency"] <= end["t"] - begins[end["end"]] + 1e-5


@pytest.mark.slow
def test_outcomes_and_the_cutoff_that_leaves_nothing(tmp_path, run):
    script = tmp_path / "job"  # by the number of the job: quick, failing, hanging with a child that ignores SIGTERM
    script.write_text(
        "#!/bin/sh\ncase $((LATFIT_JOB % 4)) in 1) exit 0;; 2) exit 3;; 3) kill -9 $$;; esac\n"
        "(trap '' TERM; sleep 60) & sleep 60\n"
    )
    script.chmod(0o755)
    log = tmp_path / "log"
    done = run(
        "probe", "command", "-o", log, "--in-flight", 4, "--probes", 8, "--pause", 0, "--cutoff", "2s", "--", script
    )
    assert done.returncode == 0, done.stderr
    details = sorted((line["status"], line["detail"]) for line in lines(log) if "end" in line)
    assert details == sorted(
        2 * [("completed", "exit 0"), ("failed", "exit 3"), ("failed", "signal 9"), ("censored", "timeout")]
    )
    assert {line["latency"] for line in lines(log) if line.get("status") == "censored"} == {2.0}
    assert _processes_of(runs(log)) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_everything_and_leaves_a_whole_log(tmp_path, number):
    log, gone = tmp_path / "log", tmp_path / "gone"
    process = start("-o", log, "--in-flight", 5, "--pause", 0, "--cancel", f"touch {gone}-{{job}}", "--", "sleep", "60")
    until(lambda: log.exists() and log.read_text().count('"probe":') >= 5, 20)
    time.sleep(0.2)
    process.send_signal(number)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 0
    assert f"stopped by {number.name}" in said
    assert "5 censored" in said
    assert lines(log)[-1]["finished"].startswith("stopped")
    assert _processes_of(runs(log)) == []
    assert len(list(tmp_path.glob("gone-*"))) == 5
    frame = latfit.read_log(log).frame
    assert (frame["latency"] > 0.1).all()
    assert (frame["latency"] < 20).all()


@pytest.mark.slow
def test_kill_9_and_resume(tmp_path):
    """At random moments: every probe that was submitted is one row, and no process is left."""
    moments = random.Random(1)
    log = tmp_path / "log"
    words = ("-o", log, "--in-flight", 4, "--pause", "10ms", "--resume", "--probes", 100_000)
    known = {}
    for _ in range(6):
        process = start(*words, "--", "sleep", "0.03", stdin=subprocess.DEVNULL)
        until(lambda: log.exists() and log.stat().st_size > 0, 20)
        time.sleep(moments.uniform(0.05, 0.8))
        process.kill()
        process.communicate()
        before = lines(log)
        submitted = [line["probe"] for line in before if "probe" in line]
        assert submitted == list(range(1, len(submitted) + 1))
        rows = latfit.read_log(log).frame
        assert len(rows) == len(submitted)
        known[len(submitted)] = sum("end" in line for line in before)
    last = start(*words[:-1], max(known) + 5, "--", "sleep", "0.03")
    _, said = last.communicate(timeout=30)
    assert last.returncode == 0, said
    assert _processes_of(runs(log)) == []
    rows = latfit.read_log(log).frame
    assert len(rows) == max(known) + 5
    assert (rows["status"] == "completed").sum() == sum("end" in line for line in lines(log))


def test_resume_cleans_up_after_a_killed_run(tmp_path):
    log, gone = tmp_path / "log", tmp_path / "gone"
    cancel = ("--cancel", f"touch {gone}-{{job}}")
    process = start("-o", log, "--in-flight", 3, "--pause", 0, *cancel, "--", "sleep", "61")
    until(lambda: log.exists() and len(_processes_of(runs(log))) >= 3, 20)
    process.kill()
    process.communicate()
    assert len(_processes_of(runs(log))) == 3
    after = start("-o", log, "--resume", "--probes", 4, "--pause", 0, *cancel, "--", "sleep", "0")
    _, said = after.communicate(timeout=20)
    assert "left behind: 6" in said  # three processes, and three cancellations
    assert _processes_of(runs(log)) == []
    assert len(list(tmp_path.glob("gone-*"))) == 3
    assert latfit.read_log(log).counts == {"completed": 1, "failed": 0, "censored": 3, "lost": 0}


def test_no_secret_in_the_log(tmp_path, run):
    log = tmp_path / "log"
    done = run(
        "probe", "command", "-o", log, "--probes", 2, "--pause", 0, "--cancel", "true hunter2", "--", "true", "hunter2",
        TOKEN="hunter2",
    )  # fmt: skip
    assert done.returncode == 0
    assert "hunter2" not in log.read_text()


def test_dry_run_submits_nothing(tmp_path, run):
    done = run("probe", "command", "--dry-run", "-o", tmp_path / "log", "--", "touch", tmp_path / "x y-{job}")
    assert done.returncode == 0
    assert done.stdout.splitlines()[1] == f"touch '{tmp_path}/x y-2'"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["command", "-o", "LOG", "--", "no-such-program"], 1, "there is no such program"),
        (["command", "-o", "LOG"], 2, "there is no program to run"),
        (["command", "--", "true"], 2, "-o LOG"),
        (["command", "-o", "LOG", "--rate", "fast", "--", "true"], 2, "is not a rate"),
        (["command", "-o", "LOG", "--cutoff", "0", "--", "true"], 2, "greater than 0"),
        (["command", "-o", "LOG", "--until-precise", "500%", "--", "true"], 2, "not a share"),
        (["command", "-o", "LOG", "--arrivals", "poisson", "--", "true"], 2, "needs --rate"),
        (["command", "-o", "LOG", "--timeout", "1", "--policy", "timeout(t=1)", "--", "true"], 2, "exclude each other"),
        (["command", "-o", "LOG", "--policy", "wait(t=1)", "--", "true"], 2, "no policy 'wait'"),
        (["command", "-o", "LOG", "--attempts", "3", "--", "true"], 2, "--attempts is for jobs"),
        (["command", "-o", "LOG", "--attempts", "3", "--again-after", "1", "--", "true"], 2, "--attempts is for jobs"),
        (["command", "-o", "LOG", "--policy", "timeout(u=1)", "--", "true"], 2, "has no parameter 'u'"),
        (["command", "-o", "LOG", "--again-after", "9", "--cutoff", "8", "--", "true"], 2, "shorter than --cutoff"),
        (["command", "-o", "LOG", "--before", "missing.csv", "--", "true"], 1, "no such file"),
        (["http", "ftp://127.0.0.1/", "-o", "LOG"], 2, "not a URL"),
        (["http", "http://127.0.0.1:1/", "-o", "LOG"], 1, "the server is not there"),
        (["slurm", "-o", "/nowhere/log"], 1, "there is no such folder"),
    ],
)
def test_one_clear_line(words, code, says, tmp_path, run):
    done = run("probe", *(str(tmp_path / "log") if word == "LOG" else word for word in words))
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []  # no empty log either


def test_a_log_has_one_kind_of_probes(tmp_path, run):
    log = tmp_path / "log"
    assert run("probe", "command", "-o", log, "--probes", 1, "--pause", 0, "--", "true").returncode == 0
    done = run("probe", "command", "-o", log, "--resume", "--again-after", 1, "--probes", 2, "--", "true")
    assert done.returncode == 1
    assert "the kind of this log is probes" in done.stderr
    done = run("probe", "command", "-o", log, "--probes", 2, "--", "true")
    assert done.returncode == 1
    assert "--resume" in done.stderr


def test_a_log_has_one_program_and_one_cutoff(tmp_path, run):
    log = tmp_path / "log"
    words = ("probe", "command", "-o", log, "--resume", "--pause", 0, "--probes")
    assert run(*words, 1, "--cutoff", 60, "--", "true", "1").returncode == 0
    before = log.read_bytes()
    done = run(*words, 2, "--cutoff", 60, "--", "sleep", "0")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "the program of this log is true, that of this run is sleep" in done.stderr
    done = run(*words, 2, "--cutoff", "30", "--", "true")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "the cutoff of this log is 60 s, that of this run is 30 s" in done.stderr
    assert log.read_bytes() == before
    done = run(*words, 2, "--cutoff", "1m", "--cancel", "true", "--in-flight", 1, "--", "true", "2")
    assert done.returncode == 0, done.stderr
    assert len(latfit.read_log(log).frame) == 2


@pytest.mark.slow
def test_a_full_disk_ends_the_run_and_leaves_no_process(tmp_path):
    log = tmp_path / "log"
    words = f"ulimit -f 4; exec {LATFIT} probe command -o {log} --in-flight 5 --pause 0 -- sh -c 'sleep 0.2; sleep 0.2'"
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "cannot be written (File too large)" in done.stderr
    assert "Traceback" not in done.stderr
    assert _processes_of([json.loads(log.read_text().splitlines()[0])["run"]]) == []
    assert latfit.read_log(log).counts["completed"] > 10


@pytest.mark.slow
def test_progress_on_a_terminal(tmp_path):
    """Counts, and after enough probes the timeout as it looks so far."""
    import pty

    ours, theirs = pty.openpty()
    words = "case $((LATFIT_JOB % 4)) in 0) sleep 1;; *) sleep 0.02;; esac"
    process = subprocess.Popen(
        [LATFIT, "probe", "command", "-o", tmp_path / "log", "--in-flight", "10", "--pause", "20ms", "--duration", "60",
         "--", "sh", "-c", words],
        stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    shown, told = b"", False
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        try:
            while more := terminal.read(4096):
                shown += more
                if b"timeout " in shown and not told:
                    process.terminate()
                    told = True
        except OSError:  # the other end is closed
            pass
    assert process.wait(20) == 0
    assert b"in flight" in shown
    assert b"completed" in shown
    assert b"; timeout " in shown or b"; no timeout " in shown
    assert b"stopped by SIGTERM" in shown
