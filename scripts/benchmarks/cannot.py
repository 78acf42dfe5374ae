"""Who cannot do it: each rival and each job, with the reason; every claim about Python is tried again in each run."""

from __future__ import annotations

import inspect
import pkgutil
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import autograd.numpy as anp
import fitter
import lifelines
import numpy as np
import reliability
import surpyval
from lifelines.fitters import ParametricUnivariateFitter
from reliability import Fitters, Reliability_testing
from scipy import stats

from benchmarks import rivals
from benchmarks.data import CUTOFF, probes

RIVALS = ("scipy", "surpyval", "lifelines", "reliability", "fitter", "fitdistrplus")


class Claim(NamedTuple):
    """What a rival can do, why not all of it, and a trial that is true while this is so."""

    can: str
    why: str = ""
    trial: Callable[[], bool] | None = None


X = probes(300, seed=8)
TIME, OUT = np.minimum(X, CUTOFF), X > CUTOFF
CENSORED = stats.CensoredData.right_censored(TIME, OUT)
GROUPS = np.random.default_rng(9).lognormal(5, 1, (3, 50))
QUIET = {"show_probability_plot": False, "print_results": False}


def fails(run: Callable[[], Any], problem: type[Exception] = Exception) -> bool:
    """Whether it ends in an error of this kind."""
    try:
        run()
    except problem:
        return True
    return False


def lacks(function: Any, word: str) -> bool:
    """Whether a function has no such parameter."""
    return word not in inspect.signature(function).parameters


def unnamed(module: Any, *words: str) -> bool:
    """Whether no public name of a package and its modules holds one of these words."""
    names = set(dir(module))
    for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if not found.name.startswith("_"):
            names.add(found.name)
            names.update(dir(import_module(f"{module.__name__}.{found.name}")) if not found.ispkg else ())
    return not any(word in name.lower() for name in names for word in words)


def defective(base: str) -> Any:
    return lifelines.MixtureCureFitter(base_fitter=getattr(lifelines, base)()).fit(TIME, ~OUT)


def lifelines_lomax() -> bool:
    """A law of the user's own: Pareto II by its cumulative hazard."""

    class Lomax(ParametricUnivariateFitter):
        _fitted_parameter_names, _bounds = ["a_", "nu_"], [(0, None), (0, None)]

        def _cumulative_hazard(self, params: Any, times: Any) -> Any:
            return params[1] * anp.log1p(times / params[0])

    found = Lomax().fit(TIME, ~OUT, initial_point=np.array([300.0, 2.0]))
    return bool(np.isclose(found.log_likelihood_, rivals.scipy_laws(X)["pareto"], atol=1e-3))


def surpyval_lomax() -> bool:
    """The same in surpyval."""
    hazard = lambda x, a, nu: nu * anp.log1p(x / a)  # noqa: E731
    law = surpyval.CustomDistribution("Lomax", hazard, ["a", "nu"], [(0, None), (0, None)], (0, np.inf))
    return bool(np.isclose(-law.fit(TIME, c=OUT.astype(int)).neg_ll(), rivals.scipy_laws(X)["pareto"], atol=1e-3))


def fitted_by_fitter(data: Any, law: str) -> Any:
    found = fitter.Fitter(data, distributions=[law], verbose=False)
    found.fit(prefer="threads", max_workers=1)
    return found.fitted_param[law]


OWN_HAZARD = "no such law; works if the user writes its cumulative hazard"
OWN_DENSITY = "no such law; works if the user writes its density and cdf"
COMPLETE = "complete samples only"
ONE = "one sample per call, needs a loop"

JOBS: dict[str, dict[str, Claim]] = {
    "right-censoring": {
        "scipy": Claim("yes", trial=lambda: bool(stats.lognorm.fit(CENSORED, floc=0))),
        "surpyval": Claim("yes", trial=lambda: bool(rivals.surpyval_laws(X, ("lognormal",)))),
        "lifelines": Claim("yes", trial=lambda: bool(lifelines.LogNormalFitter().fit(TIME, ~OUT))),
        "reliability": Claim("yes", trial=lambda: bool(rivals.reliability_laws(X))),
        "fitter": Claim("no", "takes arrays of numbers only",
                        lambda: fails(lambda: fitted_by_fitter(CENSORED, "lognorm"))),
        "fitdistrplus": Claim("yes"),
    },
    "one defective law (a share ρ never returns)": {
        "scipy": Claim("no", "no mixture with a mass at ∞", lambda: unnamed(stats, "defective", "cure")),
        "surpyval": Claim("yes", trial=lambda: bool(rivals.surpyval_laws(X, ("lognormal",), lfp=True))),
        "lifelines": Claim("yes", trial=lambda: bool(defective("LogNormalFitter"))),
        "reliability": Claim("part", "Weibull only", lambda: all(
            "Weibull" in name for name in dir(Fitters) if name.endswith(("_DS", "_DSZI")))),
        "fitter": Claim("no", "it fits scipy's laws"),
        "fitdistrplus": Claim("part", OWN_DENSITY),
    },
    "ρ in the ranking of laws": {
        "scipy": Claim("no", "no ρ"),
        "surpyval": Claim("part", "`lfp` law by law, not in `fit_best`", lambda: lacks(surpyval.fit_best, "lfp")),
        "lifelines": Claim("part", "law by law; the exponential does not converge in seconds",
                           lambda: fails(lambda: defective("ExponentialFitter"))),
        "reliability": Claim("no", "only its Weibull has ρ in `Fit_Everything`"),
        "fitter": Claim("no", "no ρ"),
        "fitdistrplus": Claim("no", "no ranking of user-defined laws with ρ"),
    },
    "Pareto II": {
        "scipy": Claim("yes", trial=lambda: bool(stats.lomax.fit(CENSORED, floc=0))),
        "surpyval": Claim("part", OWN_HAZARD, surpyval_lomax),
        "lifelines": Claim("part", OWN_HAZARD, lifelines_lomax),
        "reliability": Claim("no", "no such law, no user-defined laws", lambda: unnamed(Fitters, "pareto", "lomax")),
        "fitter": Claim("part", COMPLETE, lambda: bool(fitted_by_fitter(X[~OUT], "lomax"))),
        "fitdistrplus": Claim("part", OWN_DENSITY),
    },
    "Gaussian truncated at 0": {
        "scipy": Claim("part", f"{COMPLETE}: censored ones recurse without end",
                       lambda: fails(lambda: stats.truncnorm.fit(CENSORED), RecursionError)),
        "surpyval": Claim("yes", trial=lambda: bool(surpyval.Normal.fit(TIME, c=OUT.astype(int), tl=0))),
        "lifelines": Claim("part", OWN_HAZARD),
        "reliability": Claim("no", "no truncation", lambda: lacks(Fitters.Fit_Normal_2P, "truncation")),
        "fitter": Claim("part", COMPLETE),
        "fitdistrplus": Claim("part", OWN_DENSITY),
    },
    "log-normal–Pareto hybrid, starts found": {
        "scipy": Claim("part", "`curve_fit` with the user's function and start"),
        "surpyval": Claim("part", "by likelihood, from the user's cumulative hazard and start"),
        "lifelines": Claim("part", "by likelihood, from the user's cumulative hazard and start"),
        "reliability": Claim("no", "no user-defined laws", lambda: unnamed(Fitters, "custom")),
        "fitter": Claim("no", "scipy's laws only"),
        "fitdistrplus": Claim("part", "from the user's density, cdf and start"),
    },
    "bootstrap p-value with refits": {
        "scipy": Claim("part", COMPLETE, lambda: fails(
            lambda: stats.goodness_of_fit(stats.lognorm, CENSORED, known_params={"loc": 0}, n_mc_samples=9))),
        "surpyval": Claim("yes", trial=lambda: rivals.surpyval_ks(X, 2) > 0),
        "lifelines": Claim("no", "no test of fit", lambda: unnamed(lifelines, "goodness", "kolmogorov")),
        "reliability": Claim("no", "`KStest` treats the law as known",
                             lambda: lacks(Reliability_testing.KStest, "bootstrap")),
        "fitter": Claim("no", "its p-value treats the fitted law as known",
                        lambda: lacks(fitter.Fitter.fit, "bootstrap")),
        "fitdistrplus": Claim("no", "`gofstat` decides for some laws, not for censored data"),
    },
    "optimal timeout": {
        "scipy": Claim("no", "no such function", lambda: unnamed(stats, "restart", "timeout")),
        "surpyval": Claim("no", "no such function", lambda: unnamed(surpyval, "restart", "timeout")),
        "lifelines": Claim("no", "no such function", lambda: unnamed(lifelines, "restart", "timeout")),
        "reliability": Claim("no", "its `optimal_replacement_time` is about wearing parts",
                             lambda: unnamed(reliability, "restart", "timeout")),
        "fitter": Claim("no", "no such function", lambda: unnamed(fitter, "restart")),
        "fitdistrplus": Claim("no", "no such function"),
    },
    "many groups in one call": {
        "scipy": Claim("no", ONE, lambda: fails(lambda: stats.lognorm.fit(GROUPS))),
        "surpyval": Claim("no", ONE, lambda: fails(lambda: surpyval.LogNormal.fit(GROUPS))),
        "lifelines": Claim("no", ONE, lambda: fails(lambda: lifelines.LogNormalFitter().fit(GROUPS))),
        "reliability": Claim("no", ONE, lambda: fails(lambda: Fitters.Fit_Lognormal_2P(failures=GROUPS, **QUIET))),
        "fitter": Claim("no", "reads a table as one sample", lambda: len(fitted_by_fitter(GROUPS, "lognorm")) == 3),
        "fitdistrplus": Claim("no", ONE),
    },
}  # fmt: skip


def holds(claim: Claim) -> bool:
    """Whether the trial says what is claimed; claims without one were tried by hand."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return claim.trial is None or bool(claim.trial())
        except Exception:
            return False


def table() -> list[str]:
    """Who can do what, and the reasons."""
    found = ["| job | " + " | ".join(RIVALS) + " |", "|---" * (len(RIVALS) + 1) + "|"]
    reasons = []
    for job, claims in JOBS.items():
        cells = [claims[rival].can + (", **not so any more**" * (not holds(claims[rival]))) for rival in RIVALS]
        found.append(f"| {job} | " + " | ".join(cells) + " |")
        told = [f"{rival}: {claims[rival].why}" for rival in RIVALS if claims[rival].why]
        reasons.append(f"- {job}: {'; '.join(told)}.")
    tried = sum(claim.trial is not None for claims in JOBS.values() for claim in claims.values())
    count = len(JOBS) * len(RIVALS)
    said = f"latfit does all of these. {tried} of the {count} cells were tried in this run, the others by hand."
    return [*found, "", said, "", *reasons]
