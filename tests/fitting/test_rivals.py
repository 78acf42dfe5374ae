"""Log-likelihoods against lifelines and surpyval on the same censored data, for every law that they have.

Each rival's parameters are put into the likelihood written out with scipy.stats; latfit must not be worse.
"""

import warnings

import numpy as np
import pytest
from scipy import stats

from latfit.fitting import fit
from latfit.laws import parse_law
from latfit.sample import LatencySample

pytestmark = pytest.mark.slow

CUTOFF = 900.0
SPECS = {
    "exponential": "exponential(rate=0.003)",
    "weibull": "weibull(shape=1.4,scale=300)",
    "lognormal": "lognormal(mu=5.5,sigma=0.8)",
    "gamma": "gamma(shape=2,scale=150)",
    "log-logistic": "log-logistic(shape=2.5,scale=250)",
}
SCIPY = {
    "exponential": lambda p: stats.expon(scale=1 / p[0]),
    "weibull": lambda p: stats.weibull_min(p[0], scale=p[1]),
    "lognormal": lambda p: stats.lognorm(p[1], scale=np.exp(p[0])),
    "gamma": lambda p: stats.gamma(p[0], scale=p[1]),
    "log-logistic": lambda p: stats.fisk(p[0], scale=p[1]),
}


def draw(name, rho, seed):
    """Latencies cut off at 900 s, a share `rho` of them never returning: times and whether they returned."""
    rng = np.random.default_rng(seed)
    x = parse_law(SPECS[name]).sample(600, rng)
    x[rng.random(600) < rho] = np.inf
    return np.minimum(x, CUTOFF), x <= CUTOFF


def log_likelihood(law, rho, time, seen):
    out = np.count_nonzero(~seen)
    return float(np.sum(law.logpdf(time[seen]) + np.log1p(-rho)) + out * np.log(rho + (1 - rho) * law.sf(CUTOFF)))


def ours(name, time, seen, rho):
    sample = LatencySample.of(time[seen], censored=time[~seen], cutoff=CUTOFF, resolution=0)
    (found,) = fit(sample, [name], rho=rho)
    law = SCIPY[name](list(found.params.values()))
    assert found.log_likelihood == pytest.approx(log_likelihood(law, found.rho, time, seen), abs=1e-6)
    return found.log_likelihood


def lifelines_parameters(name, time, seen):
    lifelines = pytest.importorskip("lifelines")
    fitter = {
        "exponential": lifelines.ExponentialFitter,
        "weibull": lifelines.WeibullFitter,
        "lognormal": lifelines.LogNormalFitter,
        "log-logistic": lifelines.LogLogisticFitter,
    }[name]().fit(time, seen)
    return {
        "exponential": lambda f: (1 / f.lambda_,),
        "weibull": lambda f: (f.rho_, f.lambda_),
        "lognormal": lambda f: (f.mu_, f.sigma_),
        "log-logistic": lambda f: (f.beta_, f.alpha_),
    }[name](fitter)


def surpyval_parameters(name, time, seen, *, lfp=False):
    surpyval = pytest.importorskip("surpyval")
    law = {
        "exponential": surpyval.Exponential,
        "weibull": surpyval.Weibull,
        "lognormal": surpyval.LogNormal,
        "gamma": surpyval.Gamma,
        "log-logistic": surpyval.LogLogistic,
    }[name]
    model = law.fit(time, c=(~seen).astype(int), lfp=lfp)
    first, *rest = model.params
    order = {
        "exponential": lambda: (first,),
        "weibull": lambda: (rest[0], first),
        "lognormal": lambda: (first, rest[0]),
        "gamma": lambda: (first, 1 / rest[0]),
        "log-logistic": lambda: (rest[0], first),
    }[name]()
    return order, (1 - model.lfp_p if lfp else 0.0)


@pytest.mark.parametrize("name", ["exponential", "weibull", "lognormal", "log-logistic"])
@pytest.mark.parametrize("seed", range(3))
def test_lifelines(name, seed):
    time, seen = draw(name, 0.0, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = log_likelihood(SCIPY[name](lifelines_parameters(name, time, seen)), 0.0, time, seen)
    mine = ours(name, time, seen, 0.0)
    assert mine >= theirs - 1e-6
    assert mine == pytest.approx(theirs, abs=0.5)  # the same model, not a better one by accident


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("rho", [0.0, 0.05])
@pytest.mark.parametrize("seed", range(2))
def test_surpyval(name, rho, seed):
    time, seen = draw(name, rho, 10 + seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parameters, ratio = surpyval_parameters(name, time, seen, lfp=rho > 0)
        theirs = log_likelihood(SCIPY[name](parameters), ratio, time, seen)
    mine = ours(name, time, seen, "joint" if rho else 0.0)
    assert mine >= theirs - 1e-6
