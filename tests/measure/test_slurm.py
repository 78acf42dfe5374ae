"""`latfit probe slurm` on a real SLURM of several nodes on loopback, with real trouble."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import latfit
from systems import slurm, until, why_no_slurm

LATFIT = Path(sys.executable).parent / "latfit"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(why_no_slurm() is not None, reason=str(why_no_slurm()))]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with slurm(tmp_path_factory.mktemp("slurm")) as running:
        yield running


@pytest.fixture
def probe(cluster, tmp_path):
    started = []

    def call(*words, name="log", **more):
        process = subprocess.Popen(
            [LATFIT, "probe", "slurm", "-o", tmp_path / name, "--poll", "100ms", "--pause", "50ms", *map(str, words)],
            env=cluster.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more,
        )  # fmt: skip
        started.append(process)
        return process

    yield call
    for process in started:  # a test that failed leaves nothing to the next one
        if process.poll() is None:
            process.kill()
            process.communicate()
    cluster.call("scancel", "--user=root")
    until(lambda: cluster.jobs() == [], 40)


def ends(log):
    return [line for line in map(json.loads, log.read_text().splitlines()) if "end" in line]


def test_jobs_complete(cluster, probe, tmp_path):
    _, said = probe("--in-flight", 6, "--probes", 12, "--job", "sleep 0.4", "--", "--partition=main").communicate(
        timeout=60
    )
    assert "12 completed" in said
    assert all(end["latency"] > 0.4 for end in ends(tmp_path / "log"))
    assert latfit.read_log(tmp_path / "log").counts["completed"] == 12
    assert cluster.jobs() == []


def test_the_wait_alone_and_a_job_that_fails(cluster, probe, tmp_path):
    words = ("--in-flight", 4, "--probes", 4, "--job")
    _, said = probe(*words, "sleep 30", "--until", "start", "--cutoff", 20).communicate(timeout=60)
    assert "4 completed" in said
    until(lambda: cluster.jobs() == [], 60)  # the jobs themselves are not left running
    _, said = probe(*words, "exit 3", name="failing").communicate(timeout=60)
    assert "4 failed" in said
    assert {end["detail"] for end in ends(tmp_path / "failing")} == {"FAILED"}


def test_a_held_job_is_an_outlier_and_is_cancelled(cluster, probe, tmp_path):
    _, said = probe("--in-flight", 3, "--probes", 3, "--cutoff", "1500ms", "--", "--hold").communicate(timeout=60)
    assert "3 censored" in said
    assert {end["latency"] for end in ends(tmp_path / "log")} == {1.5}
    assert cluster.jobs() == []


def test_a_refused_submission_is_a_failure(cluster, probe, tmp_path):
    _, said = probe("--in-flight", 1, "--probes", 2, "--", "--partition=none").communicate(timeout=60)
    assert "2 failed" in said
    assert "invalid partition" in ends(tmp_path / "log")[0]["detail"].lower()


def test_a_drained_node_and_one_killed_mid_job(cluster, probe, tmp_path):
    """Two of four nodes: one takes no jobs, one dies with a job on it, which never ends and must be cancelled."""
    cluster.call("scontrol", "update", "nodename=n1", "state=drain", "reason=test")
    try:
        process = probe("--in-flight", 3, "--probes", 3, "--cutoff", 8, "--job", "sleep 3", "--", "--exclusive")
        until(lambda: cluster.call("squeue", "-h", "-t", "R", "-w", "n2"), 20)
        cluster.kill_node("n2")
        _, said = process.communicate(timeout=60)
    finally:
        cluster.call("scontrol", "update", "nodename=n1", "state=resume")
        conf = cluster.environment["SLURM_CONF"]
        subprocess.run(["slurmd", "-N", "n2", "-f", conf], env=cluster.environment, check=True, timeout=30)
    assert "2 completed, 1 censored" in said
    until(lambda: cluster.jobs() == [], 30)
    until(lambda: len(cluster.call("sinfo", "-h", "-N", "-t", "idle").splitlines()) >= 4, 30)


def test_kill_9_leaves_jobs_and_resume_clears_them(cluster, probe, tmp_path):
    process = probe("--in-flight", 5, "--probes", 50, "--job", "sleep 60")
    until(lambda: len(cluster.jobs()) >= 5, 30)
    process.kill()
    process.communicate()
    assert len(cluster.jobs()) >= 5
    submitted = (tmp_path / "log").read_text().count('"probe":')
    out, said = probe("--resume", "--probes", submitted + 2, "--in-flight", 2, "--json").communicate(timeout=60)
    told = json.loads(out)
    assert told["outcomes"]["completed"] == 2, said
    assert told["cleared"] >= 5
    until(lambda: cluster.jobs() == [], 60)
    counts = latfit.read_log(tmp_path / "log").counts
    assert (counts["completed"], counts["censored"]) == (2, submitted)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_jobs(cluster, probe, tmp_path, number):
    process = probe("--in-flight", 4, "--job", "sleep 60")
    until(lambda: len(cluster.jobs()) >= 3, 30)
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert "stopped by" in said
    until(lambda: cluster.jobs() == [], 60)
    assert json.loads((tmp_path / "log").read_text().splitlines()[-1])["finished"]


def test_a_missing_controller_is_reported(tmp_path, run):
    conf = tmp_path / "slurm.conf"
    conf.write_text(
        "ClusterName=x\nSlurmctldHost=localhost\nSlurmctldPort=1\nAuthType=auth/none\nCredType=cred/none\n"
        "MessageTimeout=2\nNodeName=n1\nPartitionName=main Nodes=n1\n"
    )
    start = time.monotonic()
    done = run("probe", "slurm", "-o", tmp_path / "log", SLURM_CONF=str(conf))
    assert done.returncode == 1
    assert "SLURM does not answer" in done.stderr
    assert time.monotonic() - start < 60
