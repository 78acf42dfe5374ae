"""Analyses whose pages are looked at: the bundled log, a withheld decision, failures, many groups, hostile names."""

from functools import cache

import numpy as np
import pandas as pd

import latfit

HOSTILE = "</script><img src=x onerror=window.hacked=1>"


def _log(latency, **columns):
    start = pd.Timestamp("2026-01-01", tz="UTC")
    when = start + pd.to_timedelta(np.arange(len(latency)) * 10.0, "s")
    frame = pd.DataFrame({"latency": latency, "submitted": when, **columns})
    return latfit.from_frame(
        frame, latency="latency", submitted="submitted", status="status" if "status" in columns else None
    )


def _bundled(rng):
    return latfit.example_log(), {"by": "broker", "current": 1000.0}


def _mixed(rng):
    fast = rng.random(2000) < 0.7
    latency = np.where(fast, rng.uniform(0.002, 0.005, 2000), rng.normal(0.3, 0.03, 2000))
    return _log(latency, endpoint=np.where(fast, "/health", "/report")), {}


def _failures(rng):
    chance = rng.random(600)
    status = np.where(chance < 0.8, "completed", np.where(chance < 0.95, "failed", "censored"))
    latency = np.minimum(np.round(rng.lognormal(-1.5, 1.0, 600), 2) + 0.01, 9.0)
    return _log(np.where(status == "censored", 10.0, latency), status=status), {}


def _many(rng):
    names = [f"host-{i}.a-long-name.example.org" for i in rng.integers(0, 220, 2200)]
    return _log(rng.lognormal(5, 0.8, 2200), host=names), {"by": "host"}


def _hostile(rng):
    values = rng.choice([HOSTILE, "javascript:alert(1)", "a\u202eb\x1b[31m&<b>", '"onload="window.hacked=1'], 400)
    return _log(rng.lognormal(5, 0.5, 400), **{HOSTILE: values}), {"by": HOSTILE}


def _few(rng):
    return latfit.from_frame(pd.DataFrame({"latency": [1.0, 2.0, 3.0]}), latency="latency"), {}


LOGS = {"bundled": _bundled, "mixed": _mixed, "failures": _failures, "many": _many, "hostile": _hostile, "few": _few}


@cache
def analysed(name):
    """The analysis of one of the logs, without bootstraps."""
    log, options = LOGS[name](np.random.default_rng(1))
    return latfit.analyze(log, resamples=0, test=False, laws=["lognormal"], **options)


@cache
def page(name):
    """Its page."""
    from latfit.report import to_html

    if name == "histogram":
        histogram = latfit.Histogram.of([0.05, 0.1, 0.25, 0.5, 1.0], [0, 10, 40, 30, 10], n_inf=6, lost=4)
        return to_html(latfit.guaranteed_timeout(histogram), path="histogram.csv")
    return to_html(analysed(name))
