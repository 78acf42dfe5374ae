"""`latfit probe http` on a real service: fast, slow, hanging, 500, cut and refused, also behind HAProxy."""

import json
import shutil

import pytest

import latfit
from systems import Service, free_ports, haproxy, until

aiohttp = pytest.importorskip("aiohttp", reason="the http target needs aiohttp: pip install 'latfit[http]'")


def mixed(path, rng):
    """60 % in 20 ms, 15 % in 150 ms, 10 % hang, 10 % fail with 500, 5 % are cut."""
    u = rng.random()
    return 0.02 if u < 0.6 else 0.15 if u < 0.75 else "hang" if u < 0.85 else "500" if u < 0.95 else "cut"


def ends(log):
    return [line for line in map(json.loads, log.read_text().splitlines()) if "end" in line]


@pytest.mark.slow
def test_every_outcome_matches_the_service(tmp_path, run_anew):
    log = tmp_path / "log"
    did = {}

    def draw(path, rng):
        did[path] = mixed(path, rng)
        return did[path]

    with Service(draw).running() as service:
        done = run_anew(
            "probe", "http", service.url + "/{job}", "-o", log, "--in-flight", 20, "--probes", 200, "--pause", 0,
            "--cutoff", "600ms", "--json",
        )  # fmt: skip
        told = json.loads(done.stdout)
        until(lambda: service.out == 0, 5)  # what was cut off is gone on the server, too
    assert told["submissions"] == 200
    assert len(service.seen) == len(set(service.seen)) == len(did)  # none is repeated by the client library
    for end in ends(log):
        # a single probe has the number of its job; one that is cut while it connects never reaches the service
        what = did.get(f"/{end['end']}", "hang")
        if what == "hang" or end["status"] == "censored":  # any answer may come too late
            assert (end["status"], end["latency"], end["detail"]) == ("censored", 0.6, "timeout")
        elif isinstance(what, float):
            assert (end["status"], end["detail"]) == ("completed", "HTTP 200")
            assert what <= end["latency"] <= 0.6
        else:
            assert end["status"] == "failed"
            assert end["detail"] in {"500": ("HTTP 500",), "cut": ("ServerDisconnectedError", "reset")}[what]
    assert latfit.read_log(log).counts == told["outcomes"]
    assert min(told["outcomes"][status] for status in ("completed", "failed", "censored")) > 0


def test_expected_codes_and_connections(tmp_path, run):
    with Service(lambda path, rng: "500").running() as service:
        log = tmp_path / "log"
        words = ("-o", log, "--probes", 10, "--in-flight", 1, "--pause", 0)
        done = run("probe", "http", service.url, *words)
        assert "10 failed" in done.stderr
        assert "all 10 probes that came back failed: HTTP 500" in done.stderr
        assert service.connections <= 2 + 1  # the first look, and one that is used again
        done = run(
            "probe", "http", service.url, *words[:1], tmp_path / "log2", *words[2:], "--expect", "5xx", "--no-reuse"
        )
        assert "10 completed" in done.stderr
        assert service.connections >= 11


@pytest.mark.slow
def test_error_answers_are_reported(tmp_path, run):
    """By default a 404 is an answer; a note reports it if all answers were 404."""
    with Service(lambda path, rng: 0.0 if path == "/" or int(path[1:]) % 4 else "404").running() as service:
        words = ("--probes", 8, "--in-flight", 1, "--pause", 0)
        done = run("probe", "http", service.url + "/{job}", "-o", tmp_path / "a", *words)
        assert "8 completed" in done.stderr
        assert "note: 2 of 8 answers were HTTP 404" in done.stderr
        told = json.loads(run("probe", "http", service.url + "/{job}", "-o", tmp_path / "b", *words, "--json").stdout)
        assert told["notes"][0].startswith("2 of 8 answers were HTTP 404")
        done = run("probe", "http", service.url + "/{job}", "-o", tmp_path / "c", *words, "--expect", "200,404")
        assert "8 completed" in done.stderr
        assert "note: 2 of" not in done.stderr
        done = run("probe", "http", service.url, "-o", tmp_path / "d", *words)
        assert "404" not in done.stderr
        done = run("probe", "http", service.url + "/4", "-o", tmp_path / "d", *words, "--resume")
        assert done.returncode == 1
        assert f"the url of this log is {service.url}, that of this run is {service.url}/4" in done.stderr


@pytest.mark.slow
def test_headers_are_sent_and_not_logged(tmp_path, run):
    got = []

    class Listening(Service):
        async def answer(self, reader, writer):
            got.append((await reader.read(10_000)).decode())  # nothing from the look whether it is there
            writer.write(b"HTTP/1.1 204 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            writer.close()

    headers = tmp_path / "headers"
    headers.write_text("Authorization: Bearer hunter2\nX-Job: {job}/{attempt}\n")
    log = tmp_path / "log"
    with Listening(None).running() as service:
        url = service.url + "/path?token=hunter2"
        both = run("probe", "http", url.replace("//", "//me:hunter2@"), "-o", log, "--headers", headers)
        assert both.returncode == 1
        assert "leave out one of them" in both.stderr
        done = run("probe", "http", url, "-o", log, "--probes", 2, "--pause", 0, "--in-flight", 1, "--headers", headers)
        dry = run("probe", "http", url, "-o", log, "--dry-run", "--headers", headers)
    assert done.returncode == 0, done.stderr
    sent = [request for request in got if request]
    assert any("X-Job: 1/1" in request for request in sent)
    assert any("Bearer hunter2" in request for request in sent)
    assert "hunter2" not in log.read_text() + done.stderr
    assert "Bearer" not in dry.stdout
    assert json.loads(log.read_text().splitlines()[0])["url"] == f"{service.url}/path"


def test_a_server_that_does_not_exist(tmp_path, run):
    done = run("probe", "http", f"http://127.0.0.1:{free_ports(1)}/", "-o", tmp_path / "log", "--probes", 1)
    assert done.returncode == 1
    assert "the server is not there" in done.stderr


@pytest.mark.skipif(shutil.which("haproxy") is None, reason="HAProxy is not installed (Debian: haproxy)")
@pytest.mark.slow
def test_behind_haproxy_the_gain_is_measured(tmp_path, run):
    """One of four servers is slow and one refuses; requests go to any, so a resubmission is a new draw."""
    with Service(lambda p, r: 0.01).running() as fast, Service(lambda p, r: 0.02).running() as other, Service(
        lambda p, r: 0.8
    ).running() as slow, haproxy(tmp_path, [fast.port, other.port, slow.port, free_ports(1)]) as url:  # fmt: skip
        before, after = tmp_path / "before", tmp_path / "after"
        run(
            "probe",
            "http",
            url + "/{job}",
            "-o",
            before,
            "--in-flight",
            8,
            "--probes",
            240,
            "--pause",
            "20ms",
            "--seed",
            1,
        )
        log = latfit.read_log(before)
        assert log.counts["failed"] > 20  # HAProxy says 503 for the server that refuses
        done = run(
            "probe", "http", url + "/{job}", "-o", after, "--in-flight", 8, "--probes", 120, "--before", before,
            "--pause", "20ms", "--seed", 2, "--json",
        )  # fmt: skip
    told = json.loads(done.stdout)
    assert told["jobs_done"] >= 110  # a schedule is finite: now and then every attempt of a job is refused
    jobs = latfit.read_log(after).frame
    spent = jobs.groupby("job")["latency"].sum().mean()  # attempts follow each other, so a job takes their sum
    waited = latfit.read_log(before).frame
    waiting = waited["latency"].sum() / (waited["status"] == "completed").sum()
    assert spent < 0.7 * waiting
