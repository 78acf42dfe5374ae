"""Targets whose first two attempts hang: what a tool's snippet is run against."""

import itertools
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HANGS = 2
LONGEST = 30.0  # seconds after which a hanging attempt gives up by itself


class Hanging:
    """Records when attempts arrive; the first `hangs` of them are not answered until `close`."""

    def __init__(self, hangs=HANGS):
        self.hangs, self.arrivals = hangs, []
        self._lock, self._over = threading.Lock(), threading.Event()

    def attempt(self):
        """One attempt: hangs, or returns at once."""
        with self._lock:
            self.arrivals.append(time.monotonic())
            number = len(self.arrivals)
        if number <= self.hangs:
            self._over.wait(LONGEST)

    def close(self):
        self._over.set()


class HangingServer(Hanging):
    """An HTTP server on loopback that answers with `status`."""

    def __init__(self, hangs=HANGS, body=b"<ok/>", status=200):
        super().__init__(hangs)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.attempt()
                try:
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    self.close_connection = True

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        super().close()
        self.server.shutdown()
        self.server.server_close()


class Full:
    """A port of loopback where connecting gets no answer: its queue is full."""

    def __init__(self):
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=0)
        self.port = self.listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        self.waiting = [socket.socket() for _ in range(4)]
        for one in self.waiting:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", self.port))

    def close(self):
        for one in (*self.waiting, self.listening):
            one.close()


class HangingCommand:
    """A command whose first attempts hang, in a process of its own; it records its starts in a file."""

    def __init__(self, folder, hangs=HANGS):
        self.file, script = Path(folder) / "arrivals", Path(folder) / "attempt.sh"
        script.write_text(  # a shell starts at once, also on a busy machine
            f"date +%s.%N >> {self.file}\n"
            f"if [ $(wc -l < {self.file}) -le {hangs} ]; then exec sleep {LONGEST:g}; fi\n"
            "echo done\n"
        )
        self.command = f"sh {script}"

    @property
    def arrivals(self):
        return [float(line) for line in self.file.read_text().split()] if self.file.exists() else []

    def close(self):
        pass


class Lateness:
    """How late this machine wakes a thread at worst, in seconds: what a tool may be late without being wrong."""

    def __init__(self):
        self.worst, self._over = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self):
        begun = time.monotonic()
        while not self._over.wait(0.01):
            now = time.monotonic()
            self.worst, begun = max(self.worst, now - begun - 0.01), now

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()


def gaps(target):
    """The times between the arrivals."""
    times = target.arrivals
    return [later - earlier for earlier, later in itertools.pairwise(times)]
