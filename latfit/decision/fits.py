"""Which laws are tried on a sample, how they rank, and how well they fit: one rule for every command."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b

import numpy as np

from latfit.decision.options import TEST_RESAMPLES, Options
from latfit.decision.prepare import Prepared
from latfit.decision.result import FittedLaw
from latfit.errors import FitError, LatfitError
from latfit.fitting import (
    COMPETING,
    Fit,
    JointRatio,
    SampleBatch,
    cell_width,
    default_laws,
    fit,
    fit_batch,
    fitted_law,
    joint_outlier_ratio,
)
from latfit.fitting.search import kernel_of, law_class
from latfit.goodness import assess, ks_distance
from latfit.laws import Law
from latfit.restart import expected_duration, optimal_timeout
from latfit.sample import LatencySample

Key = tuple[str, ...]

FAR = 0.8  # √n times the distance of the best law, from which on the laws of many parameters are tried too
MANY_COMPLETIONS = 100  # and with how many distinct latencies


def generator(seed: int, *names: str) -> np.random.Generator:
    """Random numbers that depend on the seed and on names, not on who else is analysed."""
    digest = blake2b("\0".join(names).encode(), digest_size=8).digest()
    return np.random.default_rng([seed, int.from_bytes(digest)])


def ranked(cases: Sequence[Prepared], options: Options) -> list[list[Fit]]:
    """The likelihood fits of each sample, best first; without tests the best one alone, all samples in batches."""
    quick = list(dict.fromkeys(default_laws("mle") if options.laws is None else options.laws))
    if options.law is not None and options.law not in quick:
        quick.append(options.law)
    if not quick:
        return [[] for _ in cases]
    alone = options.test or len(cases) == 1 or options.law is not None
    samples = [case.sample for case in cases]
    found = [fit(sample, quick) for sample in samples] if alone else _best_of_many(samples, quick)
    return found if options.laws is not None else _with_elaborate(samples, found, alone)


def _best_of_many(samples: Sequence[LatencySample], laws: Sequence[str]) -> list[list[Fit]]:
    """The best law of each sample by BIC; samples alike in clock and size are fitted together."""
    alike: dict[tuple[float, int], list[int]] = defaultdict(list)
    for at, sample in enumerate(samples):
        # rows of one batch share a clock that makes cells, and are padded to less than twice their size
        alike[cell_width(sample), sample.completed.values.size.bit_length()].append(at)
    found: list[list[Fit]] = [[] for _ in samples]
    for members in alike.values():
        for at, best in zip(members, _one_batch([samples[at] for at in members], laws), strict=True):
            found[at] = [best]
    return found


def _one_batch(samples: Sequence[LatencySample], laws: Sequence[str]) -> list[Fit]:
    """The best law of samples that make one batch; where a batch fails, its samples are fitted one by one."""
    try:
        with np.errstate(all="ignore"):  # a step may go too far, where it is refused
            batch = SampleBatch.of_samples(samples)
            fits = [fit_batch(law, batch, errors=False) for law in laws]
    except (LatfitError, ArithmeticError, np.linalg.LinAlgError):
        return [fit(sample, laws)[0] for sample in samples]
    held = [{} if (kernel := kernel_of(law)) is None else dict(zip(kernel.held, kernel.read(batch), strict=True))
            for law in laws]  # fmt: skip
    free = [len(f.parameters) - len(read) + 1 for f, read in zip(fits, held, strict=True)]
    scores = np.array([k * np.log(batch.probes) - 2 * f.log_likelihood for k, f in zip(free, fits, strict=True)])
    scores[~np.isfinite(scores) | np.array([f.error != "" for f in fits])] = np.inf
    chosen = []
    for at, k in enumerate(scores.argmin(axis=0)):
        if not np.isfinite(scores[k, at]):
            chosen.append(Fit(laws[0], "mle", samples[at].n, error="no law could be fitted"))
            continue
        params = dict(zip(fits[k].parameters, fits[k].params[at].tolist(), strict=True))
        params |= {name: float(values[at]) for name, values in held[k].items()}
        try:
            law = law_class(fits[k].law)(**params)
        except LatfitError as problem:  # a search may end at what is no law
            chosen.append(Fit(fits[k].law, "mle", samples[at].n, error=str(problem)))
            continue
        chosen.append(Fit(fits[k].law, "mle", samples[at].n, law=law, rho=float(fits[k].rho[at]), params=params,
                          log_likelihood=float(fits[k].log_likelihood[at]), bic=float(scores[k, at]), converged=True,
                          at_limit=bool(fits[k].at_limit[at])))  # fmt: skip
    return chosen


def elaborate() -> list[str]:
    """Laws of many parameters, which the paper fits by least squares: tried where no simple one comes near."""
    simple = default_laws("mle")
    return [name for name in default_laws("ls") if name not in simple]


def _with_elaborate(samples: Sequence[LatencySample], found: list[list[Fit]], alone: bool) -> list[list[Fit]]:
    """The same with the laws of many parameters, where no other one comes near."""
    far = [at for at, (sample, fits) in enumerate(zip(samples, found, strict=True)) if _is_far(sample, fits[0])]
    some, laws = [samples[at] for at in far], elaborate()
    more = [fit(sample, laws) for sample in some] if alone else _best_of_many(some, laws)
    for at, others in zip(far, more, strict=True):
        found[at] = sorted([*found[at], *others], key=lambda one: (one.error is not None, one.score))
    return found


def _is_far(sample: LatencySample, best: Fit) -> bool:
    """Whether even the best of the simple laws does not come near the latencies."""
    if sample.completed.values.size < MANY_COMPLETIONS or best.law is None:
        return False
    return float(np.sqrt(sample.n)) * ks_distance(sample, best.law.cdf, best.rho or 0.0) > FAR


def tested(case: Prepared, one: Fit, options: Options, key: Key) -> FittedLaw:
    """A fit with its test; the p-value depends on the sample, the law and the seed alone."""
    if one.law is None:
        return FittedLaw(one, None, None, None)
    resamples = TEST_RESAMPLES if options.test and options.resamples else 0
    rng = generator(options.seed, "test", one.name, one.method, *key)
    return FittedLaw(one, assess(case.sample, one, bootstrap=resamples, rng=rng), None, None)


def tested_as_needed(case: Prepared, fits: Sequence[Fit], options: Options, key: Key) -> list[FittedLaw]:
    """The fits with the tests that a decision rests on: until one is accepted, and that of the best simple one."""
    rich, found, accepted, simple = elaborate(), [], False, False
    for one in fits:
        first = one.name not in rich and one.error is None and not simple
        simple = simple or first
        made = tested(case, one, options, key) if first or not accepted else FittedLaw(one, None, None, None)
        accepted = accepted or made.rejected is False
        found.append(made)
    return found


def put_to_use(fitted: FittedLaw, sample: LatencySample, options: Options, data: Law, least: float | None) -> FittedLaw:
    """A fit with the timeout that it would give, and what that would cost on the data."""
    if fitted.fit.law is None:
        return fitted
    try:
        optimum = optimal_timeout(fitted_law(sample, fitted.fit), cost=options.cost)
    except (LatfitError, ArithmeticError):  # a law so extreme that it has no usable times
        return fitted
    regret = None
    if least:
        t = np.inf if optimum.timeout is None else optimum.timeout
        regret = max(0.0, float(expected_duration(data, t, cost=options.cost)) / least - 1)
    return replace(fitted, optimum=optimum, regret=regret)


def least_squares(sample: LatencySample, options: Options) -> list[Fit]:
    """The paper's law by the paper's method, beside the likelihood fits."""
    return fit(sample, elaborate(), method="ls") if options.laws is None else []


def joint(sample: LatencySample, fits: Sequence[Fit]) -> JointRatio | None:
    """The ratio estimated together with the best of the simple laws; None where no law could be fitted."""
    rich = elaborate()
    found = [one for one in fits if one.method == "mle" and one.error is None and one.name not in rich]
    if not found:
        return None
    try:
        return joint_outlier_ratio(sample, [one.name for one in found if one.score - found[0].score < COMPETING])
    except FitError:
        return None
