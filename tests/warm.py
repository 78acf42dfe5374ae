"""The command `latfit` in a new process that need not import numpy, pandas and latfit first.

Importing them takes several times as long as what most commands do. So a server imports them once, and forks for each
call: a process of its own, with the caller's arguments, folder, environment and open files. What belongs to the start
of the interpreter is shared: its locale, its encodings, its seed of hashes. A call that names environment variables
starts from nothing, as do the commands of the README (`run_anew`), test_faults.py and verify/test_ten_minutes.py.
"""

import gc
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile

LIBRARIES = (
    "click", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "matplotlib.dates",
    "matplotlib.figure", "multiprocessing", "pandas", "pyarrow.compute", "pyarrow.csv", "pyarrow.json",
    "pyarrow.parquet", "scipy.fft", "scipy.optimize.elementwise", "scipy.special", "scipy.stats",
)  # fmt: skip
LIMIT = 120  # s that a call may take


def serve(address):
    """Fork for each call; returns only in the forked process, or ends when standard input does."""
    import latfit

    for name in (*LIBRARIES, *(module.name for module in pkgutil.walk_packages(latfit.__path__, "latfit."))):
        with suppress(ModuleNotFoundError):  # what is optional
            import_module(name)
    gc.freeze()  # a forked process need not look through all of this at its end
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen()
    print("ready", flush=True)
    while listening in select.select([listening, 0], [], [])[0]:
        with listening.accept()[0] as call:
            _, files, _, _ = socket.recv_fds(call, 1, 3)
            with warnings.catch_warnings(action="ignore"):  # of threads: those of the libraries are idle
                process = os.fork()
            if process == 0:
                listening.close()
                return become(files, **json.load(call.makefile()))
            for file in files:
                os.close(file)
            code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            call.sendall(str(code).encode())
    sys.exit()


def become(files, arguments, folder, environment):
    """Turn the forked process into what `latfit ARGUMENTS` would be, and run it."""
    for standard, file in enumerate(files):
        os.dup2(file, standard)
        os.close(file)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    signal.alarm(LIMIT)
    sys.argv = [str(Path(sys.executable).parent / "latfit"), *arguments]
    sys.path[0] = str(Path(sys.executable).parent)
    from latfit.__main__ import run

    run()


def ask(address, *arguments, stdin=None):
    """Hand one call over to the server, with a pipe or nothing as its input; returns the finished process."""
    mode = {"mode": "w+b"} if isinstance(stdin, bytes) else {"mode": "w+", "encoding": "utf-8"}
    data = stdin.encode() if isinstance(stdin, str) else stdin
    given, feed = os.pipe()
    writing = threading.Thread(target=_feed, args=(feed, data or b""))
    with TemporaryFile(**mode) as out, TemporaryFile(**mode) as err, socket.socket(socket.AF_UNIX) as call:
        call.connect(str(address))
        socket.send_fds(call, [b"!"], [given, out.fileno(), err.fileno()])
        os.close(given)
        writing.start()
        words = {"arguments": arguments, "folder": str(Path.cwd()), "environment": {**os.environ}}
        call.sendall(json.dumps(words).encode())
        call.shutdown(socket.SHUT_WR)
        code = int(call.recv(16))
        writing.join()
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess(arguments, code, out.read(), err.read())


def _feed(pipe, data):
    with suppress(BrokenPipeError), os.fdopen(pipe, "wb") as file:
        file.write(data)


if __name__ == "__main__":
    serve(sys.argv[2])
