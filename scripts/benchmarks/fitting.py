"""Rows on fitting: ranking laws, groups, p-values and the hybrid, against scipy, surpyval, lifelines and R."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import curve_fit
from scipy.special import ndtr

from benchmarks.timing import Row, in_turns, median, seconds
from latfit.fitting import CLASSICAL, SampleBatch, fit, fit_batch
from latfit.fitting.least_squares import target
from latfit.goodness import ks_test
from latfit.laws import parse_law
from latfit.sample import LatencySample

CUTOFF = 2000.0
SCIPY = (stats.uniform, stats.expon, stats.weibull_min, stats.lognorm, stats.lomax)  # truncnorm recurses without end
SURPYVAL = ("Exponential", "Weibull", "LogNormal", "Gamma", "LogLogistic", "Normal")

R_SCRIPT = """
suppressMessages(library(fitdistrplus))
x <- scan(commandArgs(TRUE)[1], quiet = TRUE); T <- 2000
d <- data.frame(left = pmin(x, T), right = ifelse(x > T, NA, x)); invisible(fitdistcens(d[1:200, ], "exp"))
lomax <- list(shape = 2, scale = 300)
dlomax <<- function(x, shape, scale) shape / scale * (1 + x / scale)^(-shape - 1)
plomax <<- function(q, shape, scale) 1 - (1 + q / scale)^(-shape)
start <- Sys.time()
for (law in c("exp", "weibull", "lnorm", "gamma")) fitdistcens(d, law)
fitdistcens(d, "lomax", start = lomax)
cat(as.numeric(Sys.time() - start, units = "secs"))
"""


def probes(n: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Log-normal latencies, 2.5 % of them outliers."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < 0.025, np.inf, rng.lognormal(5.5, 1, n))


def sample_of(x: np.ndarray[Any, Any], cutoff: float | None = CUTOFF) -> LatencySample:
    if cutoff is None:
        return LatencySample.of(x, resolution=0)
    seen = x[x <= cutoff]
    return LatencySample.of(seen, censored=[cutoff] * (x.size - seen.size), cutoff=cutoff, resolution=0)


def scipy_laws(x: np.ndarray[Any, Any]) -> dict[str, float]:
    """Log-likelihoods of scipy's censored fits, ρ = 0."""
    data = stats.CensoredData.right_censored(np.minimum(x, CUTOFF), x > CUTOFF)
    found = {}
    for law in SCIPY:
        args = law.fit(data) if law is stats.uniform else law.fit(data, floc=0)
        seen = law.logpdf(x[x <= CUTOFF], *args).sum()
        found[law.name] = float(seen + (x > CUTOFF).sum() * law.logsf(CUTOFF, *args))
    return found


def surpyval_laws(x: np.ndarray[Any, Any], names: tuple[str, ...] = SURPYVAL, **options: Any) -> dict[str, float]:
    """Log-likelihoods of surpyval's own six."""
    import surpyval

    out = (x > CUTOFF).astype(int)
    fits = {name: getattr(surpyval, name).fit(np.minimum(x, CUTOFF), c=out, **options) for name in names}
    return {name: -float(model.neg_ll()) for name, model in fits.items()}


def compared(work: str, target_: str, rival: str, theirs: Callable[[], Any], ours: Callable[[], Any], rounds: int = 3,
             note: Callable[[Any, Any], str] | None = None, scale: float = 1.0) -> Row:  # fmt: skip
    """One row; `scale` multiplies the rival's time where it did only a part of the work. A rival may be missing."""
    results: dict[str, Any] = {}

    def run(name: str, work_: Callable[[], Any]) -> float:
        def keep() -> None:
            results[name] = work_()

        return seconds(keep)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run("latfit", ours)
        try:
            told, mine = in_turns(rounds, lambda: run("rival", theirs), lambda: run("latfit", ours))
        except Exception as problem:  # a rival that is missing or fails is listed with the reason
            own = median([run("latfit", ours) for _ in range(rounds)])
            reason = f"not measured: {type(problem).__name__}: {problem}"
            return Row(work, rival, None, own, "s", target_, None, reason[:200])
    rival_time, own_time = scale * median(told), median(mine)
    text = note(results["rival"], results["latfit"]) if note else ""
    return Row(work, rival, rival_time, own_time, "s", target_, rival_time / own_time, text)


def likelihoods(theirs: dict[str, float], ours: list[Any]) -> str:
    """Log-likelihoods side by side, by the names that both know."""
    names = {"expon": "exponential", "weibull_min": "weibull", "lognorm": "lognormal", "lomax": "pareto",
             "Exponential": "exponential", "Weibull": "weibull", "LogNormal": "lognormal"}  # fmt: skip
    own = {found.name: found.log_likelihood for found in ours}
    pairs = [(names[name], value, own[names[name]]) for name, value in theirs.items() if names.get(name) in own]
    return "log-likelihoods (rival, latfit): " + ", ".join(f"{n} {a:.2f} {b:.2f}" for n, a, b in pairs)


def r_seconds(x: np.ndarray[Any, Any]) -> float:
    """What fitdistrplus takes for five laws, without R's start-up."""
    program = shutil.which("Rscript")
    if program is None:
        raise FileNotFoundError("Rscript is not installed")
    with tempfile.TemporaryDirectory() as folder:
        data, script = Path(folder) / "x.txt", Path(folder) / "fit.R"
        data.write_text("\n".join(map(str, np.minimum(x, CUTOFF + 1))))
        script.write_text(R_SCRIPT)
        done = subprocess.run([program, script, data], capture_output=True, text=True, check=True)
    return float(done.stdout)


def ranking_rows(quick: bool) -> list[Row]:
    found = []
    for n, scipy_target, surpyval_target in ((2137, "≥ 15 ×", "≥ 15 ×"), (100_000, "≥ 30 ×", "≥ 30 ×")):
        if quick and n > 10_000:
            continue
        x = probes(n)
        sample, work = sample_of(x), f"rank the 6 classical laws with ρ, n = {n}"

        def ours(sample: LatencySample = sample) -> Any:
            return fit(sample, CLASSICAL)

        rivals = (("scipy CensoredData (5 of the 6, ρ = 0)", scipy_laws, scipy_target),
                  ("surpyval (its own six, ρ = 0)", surpyval_laws, surpyval_target))  # fmt: skip
        for rival, run, wanted in rivals:
            found.append(compared(work, wanted, rival, lambda run=run, x=x: run(x), ours, note=likelihoods))
    x = probes(2137)
    sample = sample_of(x)
    own = median([seconds(lambda: fit(sample, CLASSICAL)) for _ in range(5)])
    work, rival = "rank the 6 classical laws with ρ, n = 2137", "R fitdistrplus (5 laws, ρ = 0)"
    try:
        theirs = median([r_seconds(x) for _ in range(3)])
        row = Row(work, rival, theirs, own, "s", "≥ 5 ×", theirs / own)
    except (OSError, subprocess.CalledProcessError) as problem:
        row = Row(work, rival, None, own, "s", "≥ 5 ×", None, f"not measured: {problem}"[:120])
    return [*found, row]


def lifelines_cure(x: np.ndarray[Any, Any]) -> float:
    """A mixture-cure log-normal fitted to one group; its log-likelihood."""
    from lifelines import LogNormalFitter, MixtureCureFitter

    model = MixtureCureFitter(base_fitter=LogNormalFitter())
    model.fit(np.minimum(x, CUTOFF), event_observed=x <= CUTOFF)
    return float(model.log_likelihood_)


def group_rows(quick: bool) -> list[Row]:
    groups, size = (200 if quick else 1000), 500
    x = probes(groups * size).reshape(groups, size)
    inside = x <= CUTOFF
    few = 5

    def ours() -> Any:
        batch = SampleBatch.of_groups(x[inside], inside.sum(axis=1), (~inside).sum(axis=1), CUTOFF)
        return fit_batch("lognormal", batch).log_likelihood

    def theirs() -> Any:
        return [surpyval_laws(row, ("LogNormal",), lfp=True)["LogNormal"] for row in x[:few]]

    def told(a: Any, b: Any) -> str:
        gap = float(np.max(np.asarray(a) - b[:few]))
        return f"extrapolated from {few} groups; rival's log-likelihood exceeds latfit's by at most {gap:.2g}"

    work, wanted, scale = f"defective log-normal, {groups} groups of {size}", "≥ 1000 ×", groups / few
    return [
        compared(work, wanted, "surpyval lfp", theirs, ours, note=told, scale=scale),
        compared(work, wanted, "lifelines mixture cure", lambda: [lifelines_cure(row) for row in x[:few]], ours,
                 note=told, scale=scale),
    ]  # fmt: skip


def p_value_rows(quick: bool) -> list[Row]:
    count, n = (199 if quick else 999), 1000
    rng = np.random.default_rng(1)
    found = []
    for spec, law, wanted in (("lognormal(mu=5.5,sigma=1)", stats.lognorm, "≥ 3 ×"),
                              ("weibull(shape=1.5,scale=300)", stats.weibull_min, "≥ 100 ×")):  # fmt: skip
        x = parse_law(spec).sample(n, rng)
        sample = sample_of(x, None)
        best = fit(sample, [parse_law(spec).name], rho=0.0)[0]

        def theirs(x: Any = x, law: Any = law) -> Any:
            test = stats.goodness_of_fit(law, x, known_params={"loc": 0}, statistic="ks", n_mc_samples=count, rng=2)
            return test.pvalue

        def ours(sample: Any = sample, best: Any = best) -> Any:
            return ks_test(sample, best, bootstrap=count, rng=np.random.default_rng(2)).p_bootstrap

        work = f"KS p-value, {count} refits, n = {n}, {best.name}"
        told = lambda a, b: f"p {a:.3f} and {b:.3f}"  # noqa: E731
        found.append(compared(work, wanted, "scipy goodness_of_fit", theirs, ours, note=told, rounds=1 if quick else 3))
    x = probes(n, seed=3)
    sample = sample_of(x)
    best, few = fit(sample, ["lognormal"])[0], 5

    def refits() -> Any:
        rows = probes(n * few, seed=4).reshape(few, n)
        return [surpyval_laws(row, ("LogNormal",), lfp=True) for row in rows]

    def censored() -> Any:
        return ks_test(sample, best, bootstrap=count, rng=np.random.default_rng(2)).p_bootstrap

    work = f"KS p-value, {count} refits, n = {n}, defective and censored log-normal"
    rival = f"surpyval lfp, its refits alone, extrapolated from {few}"
    found.append(compared(work, "≥ 1000 ×", rival, refits, censored, scale=count / few))
    return found


def hybrid_rows(quick: bool) -> list[Row]:
    law = parse_law("lognormal-pareto(mu=4.7,sigma=0.7,a=750,nu=2.2,k=0.45,t_min=103,t_max=9790)")
    x = np.ceil(law.sample(2084, np.random.default_rng(5)))
    sample = LatencySample.of(x[x <= 10_000], censored=[10_000.0] * int(53 + (x > 10_000).sum()), cutoff=10_000.0)
    goal = target(sample)
    t, y = goal.t[0], goal.y[0]
    t_min, t_max = sample.completed.values[0] - 1, sample.completed.values[-1]

    def model(t: Any, mu: float, sigma: float, a: float, nu: float, k: float) -> Any:
        alpha = ((t - t_min) / (t_max - t_min)) ** k
        return (1 - alpha) * ndtr((np.log(t - t_min) - mu) / sigma) + alpha * (1 - (a / (a + t)) ** nu)

    def theirs() -> float:
        found, _ = curve_fit(model, t, y, p0=(4.7, 0.7, 750, 2.2, 0.45), maxfev=20_000)
        return float(((model(t, *found) - y) ** 2).sum())

    def ours() -> float:
        return float(fit(sample, ["lognormal-pareto"], method="ls")[0].sse or np.inf)

    note = lambda a, b: f"sse {a:.6f} and {b:.6f}"  # noqa: E731
    work = f"log-normal–Pareto least squares over {t.size} steps, automatic multi-start"
    rounds = 3 if quick else 9
    return [compared(work, "≥ 1 ×", "scipy curve_fit from the truth", theirs, ours, note=note, rounds=rounds)]


def growth_rows(quick: bool) -> list[Row]:
    """How the cost of ranking grows with n and with the number of groups; no rival."""
    found = []
    for n in (10**3, 10**4, 10**5) if quick else (10**3, 10**4, 10**5, 10**6, 10**7):
        sample = sample_of(probes(n))
        start = time.perf_counter()
        fit(sample, CLASSICAL)
        took = time.perf_counter() - start
        found.append(Row(f"rank the 6 classical laws, n = {n:.0e}", "growth", None, took, "s", "≥ 0 ×", None))
    for groups in (10**2, 10**3) if quick else (10**2, 10**3, 10**4):
        x = probes(groups * 500).reshape(groups, 500)
        batch = SampleBatch.of_rows(x, CUTOFF)
        start = time.perf_counter()
        for law in CLASSICAL:
            fit_batch(law, batch, errors=False)
        took = time.perf_counter() - start
        rate = json.dumps({"groups per second": round(groups / took)})
        work = f"fit the 6 classical laws to {groups} groups of 500"
        found.append(Row(work, "growth", None, took, "s", "≥ 0 ×", None, rate))
    return found


def rows(quick: bool) -> list[Row]:
    """All rows on fitting."""
    parts = (ranking_rows, group_rows, p_value_rows, hybrid_rows, growth_rows)
    return [row for part in parts for row in part(quick)]
