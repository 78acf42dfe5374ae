"""Each recipe of CONTRIBUTING.md: what is added from outside the package is seen everywhere."""

import re
import subprocess
import sys

import pytest

from conftest import REPO

USE = """
import json
import numpy as np
from click.testing import CliRunner
import latfit
import latfit.settings
from latfit.batch import run_batch
from latfit.cli import main

def call(*args):
    done = CliRunner().invoke(main, list(map(str, args)))
    assert done.exit_code == 0, (args, done.stderr)
    return done.stdout

rng = np.random.default_rng(0)
np.savetxt("log.csv", np.round(rng.rayleigh(100, 400), 1), header="latency_s", comments="", fmt="%.1f")
assert "rayleigh(sigma=100)" in call("laws")
fits = json.loads(call("fit", "log.csv", "--bootstrap", 19, "--json"))["fits"]
mine = next(f for f in fits if f["law"] == "rayleigh")
assert abs(mine["params"]["sigma"] - 100) < 10 and mine["ks"]["p_bootstrap"] > 0
assert fits[0]["law"] == "rayleigh", [f["law"] for f in fits]
assert json.loads(call("analyze", "log.csv", "--resamples", 19, "--json"))["best"] == "rayleigh"
sample = latfit.example_log().sample(cutoff=10_000)  # cut where log(1 − F) is −inf; ρ leaves the closed form
(far,) = latfit.fit(sample, ["rayleigh"])
closed_form = np.sqrt(np.mean(sample.completed.expand() ** 2) / 2)
assert far.converged and abs(far.params["sigma"] / closed_form - 1) < 1e-4, (far.params, closed_form)
row = run_batch("log.csv", resamples=0, test=False, workers=1).rows[0]
assert row["best"] == "rayleigh", row["best"]

open("pings.txt", "w").write("#pings\\n" + "".join(f"{1700000000 + i}~{5 + i % 7}\\n" for i in range(60)))
log = latfit.read_log("pings.txt")
assert log.facts.format == "pings" and log.counts["completed"] == 60
assert "pings" in call("formats")
assert max(log.frame["latency"]) == 0.011

law = "lognormal(mu=5.5,sigma=1)"
found = json.loads(call("timeout", "--law", law, "--rho", 0.025, "--objective", "cautious:2", "--json"))
E, s = found["expected_duration"], found["std_duration"]
assert abs(found["objective"]["value"] - (E + 2 * s)) < 1e-6

outcome = latfit.evaluate_policy(latfit.parse_law("exponential(rate=0.01)"), "twice(t=60)")
assert abs(outcome.expected_duration - 100) < 1e-6
rows = json.loads(call("compare", "--law", law, "--rho", 0.025, "--policy", "twice(t=300)", "--json"))["strategies"]
assert any(row["policy"].startswith("twice") for row in rows)

open("few.csv", "w").write("latency\\n" + "\\n".join(str(i) for i in range(1, 21)))
codes = [w["code"] for w in json.loads(call("timeout", "few.csv", "--resamples", 0, "--json"))["warnings"]]
assert "tiny" in codes, codes
assert "tiny" in run_batch("few.csv", resamples=0, test=False, workers=1).rows[0]["warnings"]

latfit.settings.register(latfit.settings.Tool.read("wget.toml"))
assert "wget" in call("settings")
assert "--timeout=6 --tries=3" in call("settings", "wget", "--timeout", 6, "--attempts", 3)
print("all seen")
"""


@pytest.mark.slow
def test_recipes(tmp_path):
    text = (REPO / "CONTRIBUTING.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 5
    (tool,) = re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)
    (tmp_path / "wget.toml").write_text(tool)
    (tmp_path / "mine.py").write_text("\n".join(blocks))
    (tmp_path / "use.py").write_text("import mine\n" + USE)
    done = subprocess.run([sys.executable, "use.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("all seen\n"), done.stderr[-3000:]
