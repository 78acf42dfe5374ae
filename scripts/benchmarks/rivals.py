"""The rivals, each asked for the log-likelihoods of its best laws, under latfit's names where latfit has the law."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import fitter
import numpy as np
import surpyval
from lifelines import LogNormalFitter, MixtureCureFitter
from reliability import Fitters
from scipy import stats
from surpyval.diagnostics.univariate import bootstrap

from benchmarks.data import CUTOFF, Floats
from benchmarks.timing import Timed

SCIPY = {
    "uniform": stats.uniform,
    "exponential": stats.expon,
    "weibull": stats.weibull_min,
    "lognormal": stats.lognorm,
    "pareto": stats.lomax,
}  # truncnorm recurses without end on censored data
SURPYVAL = {
    "exponential": "Exponential",
    "weibull": "Weibull",
    "lognormal": "LogNormal",
    "gamma": "Gamma",
    "log-logistic": "LogLogistic",
    "Normal": "Normal",
}
RELIABILITY = {
    "exponential": "Exponential_1P",
    "weibull": "Weibull_2P",
    "lognormal": "Lognormal_2P",
    "gamma": "Gamma_2P",
    "log-logistic": "Loglogistic_2P",
    "Normal": "Normal_2P",
}
R_NAMES = {"exponential": "exp", "weibull": "weibull", "lognormal": "lnorm", "gamma": "gamma", "uniform": "unif"}
R_SCRIPT = """
suppressMessages(library(fitdistrplus))
arguments <- commandArgs(TRUE); x <- scan(arguments[1], quiet = TRUE); cutoff <- as.numeric(arguments[2])
d <- data.frame(left = pmin(x, cutoff), right = ifelse(x > cutoff, NA, x))
dlomax <- function(x, shape, scale) shape / scale * (1 + x / scale)^(-shape - 1)
plomax <- function(q, shape, scale) 1 - (1 + q / scale)^(-shape)
laws <- c({laws})
invisible(fitdistcens(d[1:200, ], "exp"))  # what is loaded on first use
start <- Sys.time()
fits <- lapply(laws, function(law) fitdistcens(d, law))
fits[[length(fits) + 1]] <- fitdistcens(d, "lomax", start = list(shape = 2, scale = 300))
seconds <- as.numeric(Sys.time() - start, units = "secs")
likelihoods <- sapply(fits, function(fit) fit$loglik)
cat(sprintf('[%.9g, [%s]]', seconds, paste(sprintf("%.12g", likelihoods), collapse = ", ")))
"""


def scipy_laws(x: Floats) -> dict[str, float]:
    """Censored fits, ρ = 0."""
    data = stats.CensoredData.right_censored(np.minimum(x, CUTOFF), x > CUTOFF)
    found = {}
    for name, law in SCIPY.items():
        args = law.fit(data) if law is stats.uniform else law.fit(data, floc=0)
        seen = law.logpdf(x[x <= CUTOFF], *args).sum()
        found[name] = float(seen + (x > CUTOFF).sum() * law.logsf(CUTOFF, *args))
    return found


def surpyval_laws(x: Floats, names: tuple[str, ...] = tuple(SURPYVAL), **options: Any) -> dict[str, float]:
    """Its own six; with `lfp` ρ is inside."""
    out = (x > CUTOFF).astype(int)
    fits = {name: getattr(surpyval, SURPYVAL[name]).fit(np.minimum(x, CUTOFF), c=out, **options) for name in names}
    return {name: -float(model.neg_ll()) for name, model in fits.items()}


def surpyval_ks(x: Floats, refits: int) -> float:
    """The Kolmogorov–Smirnov distance of the defective log-normal, found on the way to its bootstrap p-value."""
    model = surpyval.LogNormal.fit(np.minimum(x, CUTOFF), c=(x > CUTOFF).astype(int), lfp=True)
    return float(bootstrap(model, refits, 1)["observed"]["KS"])


def lifelines_cure(x: Floats) -> float:
    """The defective log-normal as a mixture cure."""
    model = MixtureCureFitter(base_fitter=LogNormalFitter()).fit(np.minimum(x, CUTOFF), x <= CUTOFF)
    return float(model.log_likelihood_)


def _reliability(name: str, x: Floats, **options: Any) -> Any:
    data = {"failures": x[x <= CUTOFF], "right_censored": np.full(np.count_nonzero(x > CUTOFF), CUTOFF)}
    with redirect_stdout(io.StringIO()):  # it prints its warnings
        return getattr(Fitters, name)(**data, print_results=False, show_probability_plot=False, **options)


def reliability_laws(x: Floats) -> dict[str, float]:
    """Its six of the kind of ours, ρ = 0."""
    return {name: float(_reliability(f"Fit_{law}", x).loglik) for name, law in RELIABILITY.items()}


def reliability_everything(x: Floats) -> dict[str, float]:
    """All of its laws."""
    plots = ("histogram_plot", "PP_plot", "best_distribution_probability_plot")
    table = _reliability("Fit_Everything", x, **{f"show_{plot}": False for plot in plots}).results
    found = dict(zip(table["Distribution"], map(float, table["Log-likelihood"]), strict=True))
    ours = {law: name for name, law in RELIABILITY.items()}
    return {ours.get(law, law): value for law, value in found.items()}


def reliability_defective(x: Floats) -> float:
    """The defective Weibull, its only law with a share that never returns."""
    return float(_reliability("Fit_Weibull_DS", x).loglik)


def fitter_laws(x: Floats) -> dict[str, Any]:
    """Parameters, location free, of what returned alone: it knows no censoring."""
    laws = [law.name for law in SCIPY.values()] + ["truncnorm"]
    found = fitter.Fitter(x[x <= CUTOFF], distributions=laws, verbose=False)
    found.fit(prefer="threads", max_workers=1)
    return dict(found.fitted_param)


def fitdistrplus_laws(x: Floats) -> Timed:
    """R's censored fits, ρ = 0, with the time that R measured, without its start-up."""
    program = shutil.which("Rscript")
    if program is None:
        raise FileNotFoundError("Rscript is not installed")
    with tempfile.TemporaryDirectory() as folder:
        data, script = Path(folder) / "x.txt", Path(folder) / "fit.R"
        np.savetxt(data, np.minimum(x, CUTOFF + 1), fmt="%.17g")
        script.write_text(R_SCRIPT.replace("{laws}", ", ".join(f'"{name}"' for name in R_NAMES.values())))
        done = subprocess.run([program, script, data, str(CUTOFF)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"Rscript: {done.stderr.strip().splitlines()[-1]}")
    elapsed, likelihoods = json.loads(done.stdout)
    return Timed(elapsed, dict(zip([*R_NAMES, "pareto"], likelihoods, strict=True)))


def r_versions() -> str:
    """Of R and fitdistrplus."""
    code = 'cat(paste0("R ", getRversion(), ", fitdistrplus ", packageVersion("fitdistrplus")))'
    program = shutil.which("Rscript")
    if program is None:
        return "R: not installed"
    done = subprocess.run([program, "-e", code], capture_output=True, text=True)
    return done.stdout or "R without fitdistrplus"
