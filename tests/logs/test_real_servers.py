"""HAProxy and nginx run for real before a slow backend: their own logs are read as what happened."""

import contextlib
import http.client
import shutil
import socket
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import latfit

SLOW = 0.15
GIVES_UP = 1  # seconds that the proxies wait for the backend


class Backend(BaseHTTPRequestHandler):
    """Answers at once, slowly, with an error, or too late."""

    def do_GET(self):
        time.sleep({"/slow": SLOW, "/late": GIVES_UP + 1}.get(self.path, 0))
        code = {"/broken": 500, "/missing": 404}.get(self.path, 200)
        with contextlib.suppress(OSError):  # whoever asked has given up
            self.send_response(code)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


@pytest.fixture
def backend():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Backend)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def running(command, port, output):
    """A server in the foreground, from when it listens until the block ends."""
    with output.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        try:
            for _ in range(200):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                assert process.poll() is None, output.read_text()
                time.sleep(0.05)
            yield
        finally:
            process.terminate()
            process.wait(20)


def ask(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    with contextlib.closing(connection):
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        return answer.status


def wait_for(log, text):
    """A server may write its line after the answer."""
    for _ in range(200):
        if text in log.read_text():
            return
        time.sleep(0.05)
    raise AssertionError(log.read_text())


ASKED = {"/fast": 200, "/slow": 200, "/missing": 404, "/broken": 500, "/late": 504}


def needs(program):
    found = shutil.which(program) or shutil.which(program, path="/usr/sbin")
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


@pytest.mark.slow
def test_haproxy(backend, tmp_path):
    front, tcp, gone = free_port(), free_port(), free_port()
    (tmp_path / "cfg").write_text(f"""
global
    log stdout format raw local0
defaults
    log global
    timeout connect 1s
    timeout client 5s
    timeout server {GIVES_UP}s
    retries 0
frontend web
    mode http
    option httplog
    bind 127.0.0.1:{front}
    use_backend nowhere if {{ path /gone }}
    default_backend app
backend app
    mode http
    server s1 127.0.0.1:{backend}
backend nowhere
    mode http
    server s2 127.0.0.1:{gone}
listen raw
    mode tcp
    option tcplog
    bind 127.0.0.1:{tcp}
    server s1 127.0.0.1:{backend}
""")
    log = tmp_path / "log"
    with running([needs("haproxy"), "-db", "-f", str(tmp_path / "cfg")], front, log):
        answers = {path: ask(front, path) for path in (*ASKED, "/gone")}
        assert ask(tcp, "/slow") == 200
        wait_for(log, "raw raw/s1")
    assert answers == ASKED | {"/gone": 503}
    read = latfit.read_log(log)
    assert read.facts.format == "haproxy"
    http = read.frame[read.frame["frontend"] == "web"].set_index("path")
    assert dict(http["status"]) == {
        "/fast": "completed", "/slow": "completed", "/missing": "completed", "/broken": "failed", "/late": "censored",
        "/gone": "failed",
    }  # fmt: skip
    assert http.loc["/slow", "latency"] >= SLOW
    assert http.loc["/late", "latency"] >= GIVES_UP
    (connection,) = read.frame.loc[read.frame["frontend"] == "raw", "latency"]
    assert connection >= SLOW
    headers = latfit.read_log(log, columns={"latency": "Tr"}, max_refused=1).frame.set_index("path")
    assert headers.loc["/slow", "latency"] >= SLOW


@pytest.mark.slow
def test_nginx(backend, tmp_path):
    port = free_port()
    (tmp_path / "cfg").write_text(f"""
daemon off; pid {tmp_path}/pid; error_log stderr; worker_processes 1;
events {{ }}
http {{
    log_format timed '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent '
                     '"$http_referer" "$http_user_agent" $request_time $upstream_response_time';
    log_format ltsv 'time:$time_iso8601\\tmethod:$request_method\\turi:$uri\\tstatus:$status\\treqtime:$request_time';
    access_log {tmp_path}/timed timed;
    access_log {tmp_path}/ltsv ltsv;
    client_body_temp_path {tmp_path}; proxy_temp_path {tmp_path}; fastcgi_temp_path {tmp_path};
    uwsgi_temp_path {tmp_path}; scgi_temp_path {tmp_path};
    server {{
        listen 127.0.0.1:{port};
        location / {{ proxy_pass http://127.0.0.1:{backend}; proxy_read_timeout {GIVES_UP}s; }}
    }}
}}
""")
    with running([needs("nginx"), "-p", str(tmp_path), "-c", str(tmp_path / "cfg")], port, tmp_path / "log"):
        assert {path: ask(port, path) for path in ASKED} == ASKED
        wait_for(tmp_path / "ltsv", "/late")
    outcomes = dict.fromkeys(ASKED, "completed") | {"/broken": "failed", "/late": "censored"}
    for name, kind, column in (("timed", "access", "path"), ("ltsv", "ltsv", "uri")):
        read = latfit.read_log(tmp_path / name)
        assert read.facts.format == kind
        frame = read.frame.set_index(column)
        assert dict(frame["status"]) == outcomes
        assert frame.loc["/slow", "latency"] >= SLOW
        assert frame.loc["/late", "latency"] >= GIVES_UP
    assert "latency is field10 (field 10 of 11" in latfit.read_log(tmp_path / "timed").facts.notes[0]
