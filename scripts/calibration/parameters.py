"""Parameters of fitted laws: 1.96 standard errors either way, and profile likelihood."""

from __future__ import annotations

import numpy as np

from calibration.cases import Row, Task, bundled, coverage, latencies, law_of, recorded, short
from calibration.ratios import CHI2_95, CUTS, LAWS, SIZES
from latfit.fitting import BatchFit, SampleBatch, fit, fit_batch, with_std_errors
from latfit.fitting.profile import profile_likelihood
from latfit.laws import Defective
from latfit.restart import expected_duration, optimal_timeout

COMPLETE = (0.0, 1.0)
LATE, REFITS = 0.9999, 50  # a cutoff that all who return meet, as least squares presumes; refits for a standard error


def standard_errors(rng: np.random.Generator, rounds: int, spec: str, rho: float, centile: float) -> list[Row]:
    """The estimate ± 1.96 standard errors, on the log scale for positive parameters; ρ estimated too."""
    law = law_of(spec)
    cutoff = None if centile == 1 else float(law.ppf(centile))
    found = [fit_batch(law.name, SampleBatch.of_rows(latencies(law, (rounds, n), rho, rng), cutoff)) for n in SIZES]
    case = {"law": short(spec), "ρ": f"{rho:g}", "cut at": "–" if cutoff is None else f"{centile:.1%}", "clock": "fine"}
    return _rows("standard-errors", case, law.params, found)


def coarse_clock(rng: np.random.Generator, rounds: int, spec: str, step: float) -> list[Row]:
    """The same on a clock that rounds, read in cells where that matters."""
    law, (rho, centile), found = law_of(spec), CUTS[0], []
    cutoff = step * round(float(law.ppf(centile)) / step)
    for n in SIZES:
        x = (latencies(law, n, rho, rng) for _ in range(rounds))
        found.append(fit_batch(law.name, SampleBatch.of_samples([recorded(each, cutoff, step) for each in x])))
    case = {"law": short(spec), "ρ": f"{rho:g}", "cut at": f"{centile:.1%}", "clock": f"{step:g} s"}
    return _rows("standard-errors", case, law.params, found)


def _rows(table: str, case: dict[str, str], truth: dict[str, float], fits: list[BatchFit]) -> list[Row]:
    rows = []
    for i, (name, true) in enumerate(truth.items()):
        cells = {}
        for n, found in zip(SIZES, fits, strict=True):
            estimate, error = found.params[:, i], np.sqrt(found.covariance[:, i, i])
            there = np.isfinite(error)
            with np.errstate(divide="ignore", invalid="ignore"):
                off = (estimate - true) / error if name == "mu" else np.log(estimate / true) * estimate / error
                plain = (estimate - true) / error
            cells[f"n = {n}"] = coverage((np.abs(off) <= 1.959964)[there])
            cells[f"plain, n = {n}"] = coverage((np.abs(plain) <= 1.959964)[there])
            if there.mean() < 0.995:
                cells[f"n = {n}"] += f" ({100 * there.mean():.0f} %)"
        cells = {key: cells[key] for key in sorted(cells, key=lambda key: key.startswith("plain"))}
        rows.append(Row(table, {"parameter": name, **case}, cells))
    return rows


def profile(rng: np.random.Generator, rounds: int, spec: str, n: int, rho: float, centile: float) -> Row:
    """`profile_interval` covers the truth if the likelihood there, the others maximised, is within χ²/2 of the top."""
    law, hits = law_of(spec), []
    cutoff = float(law.ppf(centile))
    for _ in range(rounds):
        sample = recorded(latencies(law, n, rho, rng), cutoff)
        found = fit(sample, [law.name])[0]
        if found.log_likelihood is not None:
            enough = found.log_likelihood - CHI2_95 / 2
            hits.append([profile_likelihood(sample, found, name)(true) >= enough for name, true in law.params.items()])
    columns = zip(law.params, np.array(hits).T, strict=True)
    case = {"law": short(spec), "n": str(n), "ρ": f"{rho:g}", "cut at": f"{centile:.1%}"}
    covered = [f"{name} {coverage(column)}" for name, column in columns]
    return Row("profile", case, {"first parameter": covered[0], "second parameter": covered[1]})


def least_squares(rng: np.random.Generator, rounds: int, spec: str, n: int) -> Row:
    """Least squares ± 1.96 bootstrap standard errors, on the log scale for positive parameters."""
    law, hits = law_of(spec), []
    cutoff = float(law.ppf(LATE))
    for _ in range(rounds):
        sample = recorded(latencies(law, n, CUTS[0][0], rng), cutoff)
        found = with_std_errors(sample, fit(sample, [law.name], method="ls")[0], count=REFITS, rng=rng)
        errors = found.std_errors or {}
        hits.append([_within(name, found.params[name], true, errors.get(name)) for name, true in law.params.items()])
    columns = zip(law.params, np.array(hits).T, strict=True)
    covered = [f"{name} {coverage(column)}" for name, column in columns]
    return Row("ls-errors", {"law": short(spec), "n": str(n)}, {"first": covered[0], "second": covered[1]})


def hybrid_errors(rng: np.random.Generator, rounds: int, centile: float) -> Row:
    """The same for the hybrid law of the bundled log, at its size, and what the timeout of the fitted law costs."""
    law, rho, n = bundled(), 0.0248, 2137
    cutoff = float(law.ppf(centile))
    true = Defective(law, rho)
    best, truth = optimal_timeout(true).expected_duration, {**law.params, "rho": rho}
    names, hits, regrets = ("mu", "sigma", "a", "nu", "k", "rho"), [], []
    for _ in range(rounds):
        sample = recorded(latencies(law, n, rho, rng), cutoff, 1.0)
        found = fit(sample, [law.name], method="ls", seed=int(rng.integers(2**31)))[0]
        estimates, errors = {**found.params, "rho": found.rho}, found.std_errors or {}
        hits.append([_within(name, estimates[name], truth[name], errors.get(name)) for name in names])
        regrets.append(float(expected_duration(true, optimal_timeout(found).timeout)) / best - 1)
    columns = zip(names, np.array(hits).T, strict=True)
    cells = {name: coverage(column) for name, column in columns}
    cells["regret, median / largest"] = f"{100 * np.median(regrets):.3f} % / {100 * max(regrets):.2f} %"
    return Row("hybrid-errors", {"law": law.name, "n": str(n), "cutoff": f"{cutoff:.0f} s"}, cells)


def _within(name: str, estimate: float, true: float, error: float | None) -> bool:
    if error is None:
        return False
    off = estimate - true if name in ("mu", "rho") else estimate * np.log(estimate / true)
    return bool(abs(off) <= 1.959964 * error)


def tasks() -> list[Task]:
    return [
        *(Task(standard_errors, (spec, *cut), 4) for spec in LAWS for cut in (COMPLETE, *CUTS)),
        *(Task(coarse_clock, ("lognormal(mu=5.5,sigma=1)", step), 1) for step in (1.0, 60.0)),
        *(
            Task(profile, (spec, n, *CUTS[1]))
            for spec in ("lognormal(mu=5.5,sigma=1)", "weibull(shape=1.5,scale=300)", "pareto(a=300,nu=2.5)")
            for n in (50, 200)
        ),
        *(
            Task(least_squares, (spec, n), 0.5)
            for spec in ("lognormal(mu=5.5,sigma=1)", "weibull(shape=1.5,scale=300)")
            for n in (200, 1000)
        ),
        *(Task(hybrid_errors, (centile,), 2) for centile in (0.9974, LATE)),
    ]
