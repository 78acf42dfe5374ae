"""Real systems on loopback, started and stopped here: a SLURM of several nodes, an HTTP service, HAProxy before it."""

import asyncio
import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

STATUSES = {"404": b"404 Not Found", "500": b"500 Sorry"}
SLURM_CONF = """\
ClusterName=probe
SlurmctldHost=localhost
SlurmctldPort={port}
SlurmUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/log/ctld.log
SlurmdLogFile={folder}/log/%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/jobcomp.txt
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0
SlurmdTimeout=300
NodeName=n[1-{nodes}] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=2 State=UNKNOWN
PartitionName=main Nodes=n[1-{nodes}] Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""


def free_ports(count):
    """Ports of loopback that nobody uses, one after the other."""
    for first in range(random.randrange(20000, 50000), 60000, count):
        with contextlib.ExitStack() as held:
            try:
                for port in range(first, first + count):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first
    raise RuntimeError("no free ports")


def why_no_slurm():
    """Why SLURM cannot be started here; None if it can."""
    for program in ("slurmctld", "slurmd", "sbatch"):
        if shutil.which(program) is None:
            return f"{program} is not installed (Debian: slurmctld slurmd slurm-client)"
    return None if os.getuid() == 0 else "starting slurmd this way needs root"


@dataclass
class SlurmCluster:
    """A running SLURM; `environment` is what its programs need."""

    folder: Path
    environment: dict
    nodes: int

    def call(self, *words):
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=30).stdout.strip()

    def jobs(self):
        """The jobs that wait or run."""
        return self.call("squeue", "--noheader", "--format=%i %T %j").splitlines()

    def kill_node(self, name):
        """SIGKILL for a node's daemon and the job that it runs, as if the power had failed."""
        until(lambda: self._job_processes(name), 20)  # a job is RUNNING before its process is there
        os.kill(int((self.folder / f"{name}.pid").read_text()), signal.SIGKILL)
        for pid in self._job_processes(name):
            with contextlib.suppress(OSError):
                parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
                if "slurmstepd" in Path(f"/proc/{parent}/comm").read_text():
                    os.kill(parent, signal.SIGKILL)
                os.kill(pid, signal.SIGKILL)

    def _job_processes(self, name):
        """The processes of the jobs that run on a node of this cluster."""
        jobs = {f"SLURM_JOB_ID={job}" for job in self.call("squeue", "-h", "-t", "R", "-w", name, "-o", "%i").split()}
        ours, found = f"SLURM_CONF={self.environment['SLURM_CONF']}", []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                environment = (entry / "environ").read_bytes().decode(errors="replace").split("\0")
                if ours in environment and jobs.intersection(environment):
                    found.append(int(entry.name))
        return found


@contextlib.contextmanager
def slurm(folder, nodes=4):
    """A SLURM of several nodes on this host, ended by the pid files of its daemons."""
    for name in ("state", "spool", "log"):
        (folder / name).mkdir(parents=True)
    port = free_ports(nodes + 1)
    conf = folder / "slurm.conf"
    conf.write_text(SLURM_CONF.format(folder=folder, port=port, nodes=nodes, first=port + 1, last=port + nodes))
    environment = {**os.environ, "SLURM_CONF": str(conf)}
    cluster = SlurmCluster(folder, environment, nodes)
    daemons = [
        ["slurmctld", "-f", str(conf)],
        *(["slurmd", "-N", f"n{k}", "-f", str(conf)] for k in range(1, nodes + 1)),
    ]
    try:
        for words in daemons:
            subprocess.run(words, env=environment, check=True, capture_output=True, timeout=30)
        until(lambda: len(cluster.call("sinfo", "-h", "-N", "-t", "idle").splitlines()) >= nodes, 30)
        yield cluster
    finally:
        cluster.call("scancel", "--user=root")
        time.sleep(0.2)
        for pid_file in folder.glob("*.pid"):
            with contextlib.suppress(OSError, ValueError):
                os.kill(int(pid_file.read_text()), signal.SIGTERM)
        with contextlib.suppress(AssertionError):
            until(lambda: not list(folder.glob("*.pid")), 10)
        for pid_file in folder.glob("*.pid"):
            with contextlib.suppress(OSError, ValueError):
                os.kill(int(pid_file.read_text()), signal.SIGKILL)


def until(true, limit):
    """Wait until something is true; an assertion fails if it does not become so."""
    end = time.monotonic() + limit
    while not true():
        assert time.monotonic() < end, f"not within {limit} s"
        time.sleep(0.05)


@dataclass
class Service:
    """An HTTP service whose requests are fast, slow, hang, fail with 500 or are cut, at random or by the job.

    `draw(path, rng)` gives what to do: seconds to wait, or "hang", "404", "500", "cut". `seen` are the paths in order.
    """

    draw: object
    seed: int = 0
    port: int = 0
    seen: list = field(default_factory=list)
    connections: int = 0
    out: int = 0

    async def answer(self, reader, writer):
        rng = self.rng
        self.connections += 1
        try:
            while request := await reader.readuntil(b"\r\n\r\n"):
                path = request.split(b" ", 2)[1].decode()
                self.seen.append(path)
                self.out += 1
                try:
                    what = self.draw(path, rng)
                    if what == "hang":
                        await reader.read(1)  # until the client is gone
                        return
                    if what == "cut":
                        writer.transport.abort()
                        return
                    if what not in STATUSES:
                        await asyncio.sleep(what)
                finally:
                    self.out -= 1
                status = STATUSES.get(what, b"200 OK")
                writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 2\r\n\r\nok")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client is gone, or the service ends
        finally:
            writer.close()

    @contextlib.contextmanager
    def running(self):
        """The service, in a thread of its own."""
        self.rng = random.Random(self.seed)
        loop = asyncio.new_event_loop()
        ready = threading.Event()

        async def serve():
            server = await asyncio.start_server(self.answer, "127.0.0.1", self.port, backlog=4096)
            self.port = server.sockets[0].getsockname()[1]
            self.stop = asyncio.Event()
            ready.set()
            await self.stop.wait()
            server.close()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

        thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
        thread.start()
        assert ready.wait(10)
        try:
            yield self
        finally:
            loop.call_soon_threadsafe(self.stop.set)
            thread.join(10)
            loop.run_until_complete(asyncio.sleep(0.05))
            loop.close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"


@contextlib.contextmanager
def haproxy(folder, ports, balance="random"):
    """HAProxy before several services; yields its URL. A port that nobody listens at refuses."""
    port = free_ports(1)
    servers = "\n".join(f"  server s{k} 127.0.0.1:{each}" for k, each in enumerate(ports))
    conf = folder / "haproxy.cfg"
    conf.write_text(
        "defaults\n  mode http\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s\n  retries 0\n"
        f"frontend f\n  bind 127.0.0.1:{port}\n  default_backend b\nbackend b\n  balance {balance}\n{servers}\n"
    )
    process = subprocess.Popen(
        ["haproxy", "-db", "-f", str(conf)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until(lambda: _listens(port), 10)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def _listens(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
