"""What the snippets do with answers, connections and commands that fail, run for real."""

import asyncio
import contextlib
import gc
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
import warnings

import pytest

from hanging import Full, HangingServer
from latfit.settings import TOOLS, Plan
from real_tools import RUNNERS, free_port, missing, process, wait_port

T = 0.3
PYTHON = ["requests", "httpx", "tenacity", "stamina", "aiohttp"]
CLIENTS = [*PYTHON, "fetch", "curl"]


def call(name, snippet, url, folder):
    """Run the snippet of a client against `url`; whether it got an answer does not matter."""
    if name == "curl":
        subprocess.run(["bash", "-c", snippet.replace("URL", url)], capture_output=True, timeout=30)
    elif name == "fetch":
        (folder / "fetch.mjs").write_text(f"{snippet}\nawait get({url!r}).catch(() => 0);\n")
        subprocess.run(["node", folder / "fetch.mjs"], capture_output=True, timeout=30)
    else:
        names = {"URL": url}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # an HTTPError of urllib holds its connection
            with contextlib.suppress(Exception):
                exec(compile(snippet, "snippet", "exec"), names)
                if name == "aiohttp":
                    asyncio.run(names["get"](url))
            gc.collect()
        for owner in {"session", "client"} & names.keys():
            names[owner].close()


@pytest.mark.slow
@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize(("status", "failures", "arrivals"), [(404, False, 1), (404, True, 1), (503, True, 2)])
def test_answers_4xx_are_answers_and_5xx_are_failures(name, status, failures, arrivals, tmp_path):
    absent = missing(RUNNERS[name][1])
    if absent:
        pytest.skip(f"not here: {', '.join(absent)}")
    with contextlib.closing(HangingServer(hangs=0, status=status)) as server:
        call(name, TOOLS[name].snippet(Plan((5.0,) * 2, 0.0, failures)), server.url, tmp_path)
        assert len(server.arrivals) == arrivals


@pytest.mark.slow
@pytest.mark.parametrize("name", CLIENTS)
def test_refused_connections_are_retried_where_the_log_has_failures(name, tmp_path):
    """The pause between attempts shows that there was a second one."""
    absent = missing(RUNNERS[name][1])
    if absent:
        pytest.skip(f"not here: {', '.join(absent)}")
    attempts = 3 if name == "requests" else 2  # urllib3 does not wait before the first retry
    begun = time.monotonic()
    call(name, TOOLS[name].snippet(Plan((5.0,) * attempts, 1.0, True)), f"http://127.0.0.1:{free_port()}/", tmp_path)
    assert time.monotonic() - begun > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("failures", [False, True])
def test_tenacity_retries_the_timeout_of_connecting(failures, monkeypatch, tmp_path):
    attempts, real = [], urllib.request.urlopen

    def counted(*arguments, **options):
        attempts.append(time.monotonic())
        return real(*arguments, **options)

    monkeypatch.setattr(urllib.request, "urlopen", counted)
    with contextlib.closing(Full()) as full:
        call("tenacity", TOOLS["tenacity"].snippet(Plan((T,) * 3, 0.0, failures)), full.url, tmp_path)
    assert len(attempts) == 3
    assert attempts[-1] - attempts[0] > 1.9 * T


@pytest.fixture
def haproxy(tmp_path):
    if not shutil.which("haproxy"):
        pytest.skip("not here: haproxy")

    def configured(plan, backend):
        port, path = free_port(), tmp_path / "haproxy.cfg"
        front = f"frontend front\n    mode http\n    timeout client 60s\n    bind 127.0.0.1:{port}\n"
        snippet = TOOLS["haproxy"].snippet(plan).replace("HOST:PORT", f"127.0.0.1:{backend}")
        path.write_text(f"{front}    default_backend NAME\n{snippet}\n")
        return port, str(path)

    return configured


@pytest.mark.parametrize("failures", [False, True])
def test_haproxy_validates_the_backend(haproxy, failures):
    _, path = haproxy(Plan((0.35,) * 3, 0.0, failures), 1)
    checked = subprocess.run(["haproxy", "-c", "-f", path], capture_output=True, text=True, timeout=30)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.slow
def test_haproxy_cuts_connecting_and_tries_again(haproxy):
    """Connecting gets no answer: three attempts of t, then 503."""
    with contextlib.closing(Full()) as full:
        port, path = haproxy(Plan((0.5,) * 3), full.port)
        with process("haproxy", "-db", "-f", path):
            wait_port(port)
            begun = time.monotonic()
            with pytest.raises(urllib.error.HTTPError, match="503"):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20)
            assert 1.4 < time.monotonic() - begun < 10  # HAProxy's own limits are 60 s


@pytest.fixture
def shell(tmp_path):
    """Runs a snippet with stand-in programs that record how they are called."""

    def run(snippet, **programs):
        for program, body in {"sleep": "", **programs}.items():
            (tmp_path / program).write_text(f'#!/bin/sh\necho {program} "$@" >> {tmp_path}/calls\n{body}\n')
            (tmp_path / program).chmod(0o755)
        env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        done = subprocess.run(["bash", "-c", snippet], env=env, capture_output=True, text=True, timeout=30)
        return done.returncode, (tmp_path / "calls").read_text().splitlines()

    return run


def test_slurm_reports_that_every_run_failed(shell):
    code, calls = shell(TOOLS["slurm-time"].snippet(Plan((60.0,) * 3, 2.0)), srun="exit 7")
    assert code == 7
    assert calls[1::2] == ["srun -t 00:01:00 CMD"] * 3
    waits = [float(call.split()[1]) for call in calls[::2]]
    assert waits[0] == 0  # then the pause, and up to a tenth of the timeout
    assert all(2 <= wait <= 2 + 6 for wait in waits[1:])
    assert shell(TOOLS["slurm-time"].snippet(Plan((60.0,) * 3, 2.0)), srun="exit 0")[0] == 0


QUEUE = TOOLS["slurm"].snippet(Plan((60.0,) * 2, 2.0)).replace("MINUTES", "1")


def test_slurm_without_a_job_has_nothing_to_cancel(shell):
    code, calls = shell(QUEUE, sbatch="exit 1", scancel="", squeue="")
    assert code == 1
    assert [call.split()[0] for call in calls] == ["sleep", "sbatch"] * 2


@pytest.mark.parametrize(("cancelled", "code", "submitted"), [("echo 5", 1, 2), ("", 0, 1)])
def test_slurm_reports_whether_a_job_left_the_queue(shell, cancelled, code, submitted):
    ended, calls = shell(QUEUE, sbatch="echo 5", scancel="", squeue=cancelled)
    assert ended == code
    assert sum(call.startswith("sbatch") for call in calls) == submitted
    waits = [float(call.split()[1]) for call in calls if call.startswith("sleep")]
    assert waits[::2] == [0, *waits[2::2]]
    assert all(2 <= wait <= 2 + 6 for wait in waits[2::2])
    assert waits[1::2] == [60] * submitted
