"""Which laws are tried on a sample, how they rank, and how well they fit: one rule for every command."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b

import numpy as np

from latfit.decision.options import Options
from latfit.decision.prepare import Prepared
from latfit.decision.result import FittedLaw
from latfit.errors import FitError, LatfitError
from latfit.fitting import (
    COMPETING,
    Fit,
    JointRatio,
    SampleBatch,
    assess,
    cell_width,
    default_laws,
    fit,
    fit_batch,
    fitted_law,
    joint_outlier_ratio,
    ks_distance,
)
from latfit.fitting.estimate import BatchFit
from latfit.fitting.search import kernel_of, law_class
from latfit.laws import Law
from latfit.resample import RESAMPLES
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
    """The likelihood fits of each sample, best first; many samples in batches, without tests their best alone."""
    quick = list(dict.fromkeys(default_laws("mle") if options.laws is None else options.laws))
    if options.law is not None and options.law not in quick:
        quick.append(options.law)
    if not quick:
        return [[] for _ in cases]
    samples = [case.sample for case in cases]

    def fits(some: Sequence[LatencySample], laws: Sequence[str]) -> list[list[Fit]]:
        if len(cases) == 1 or options.law is not None:
            return [fit(sample, laws) for sample in some]
        return [found if options.test else found[:1] for found in _of_many(some, laws)]

    found = fits(samples, quick)
    if options.laws is not None:
        return found
    far = [at for at, sample in enumerate(samples) if _is_far(sample, found[at][0])]
    for at, others in zip(far, fits([samples[at] for at in far], elaborate()), strict=True):
        found[at] = sorted([*found[at], *others], key=_order)
    return found


def _order(one: Fit) -> tuple[bool, float]:
    """The best comes first, what failed last."""
    return one.error is not None, one.score


def _is_far(sample: LatencySample, best: Fit) -> bool:
    """Whether even the best of the simple laws does not come near, so that those of many parameters are tried."""
    if sample.completed.values.size < MANY_COMPLETIONS or best.law is None:
        return False
    return float(np.sqrt(sample.n)) * ks_distance(sample, best.law.cdf, best.rho or 0.0) > FAR


def _of_many(samples: Sequence[LatencySample], laws: Sequence[str]) -> list[list[Fit]]:
    """The laws of each sample, best first by BIC; samples alike in clock and size are fitted together."""
    alike: dict[tuple[float, int], list[int]] = defaultdict(list)
    for at, sample in enumerate(samples):
        # rows of one batch share a clock that makes cells, and are padded to less than twice their size
        alike[cell_width(sample), sample.completed.values.size.bit_length()].append(at)
    found: list[list[Fit]] = [[] for _ in samples]
    for members in alike.values():
        for at, mine in zip(members, _one_batch([samples[at] for at in members], laws), strict=True):
            found[at] = mine
    return found


def _one_batch(samples: Sequence[LatencySample], laws: Sequence[str]) -> list[list[Fit]]:
    """The laws of samples that make one batch; where a batch fails, its samples are fitted one by one."""
    try:
        with np.errstate(all="ignore"):  # a step may go too far, where it is refused
            batch = SampleBatch.of_samples(samples)
            every = [_fits_of(fit_batch(law, batch, errors=False), batch) for law in laws]
    except (LatfitError, ArithmeticError, np.linalg.LinAlgError):
        return [fit(sample, laws) for sample in samples]
    return [sorted(mine, key=_order) for mine in zip(*every, strict=True)]


def _fits_of(found: BatchFit, batch: SampleBatch) -> list[Fit]:
    """The fit of one law to each sample of a batch, without standard errors."""
    kernel, law, probes = kernel_of(found.law), law_class(found.law), batch.probes.astype(int).tolist()
    held = {} if kernel is None else dict(zip(kernel.held, kernel.read(batch).tolist(), strict=True))
    errors = dict.fromkeys([name for name in found.parameters if name not in held] + ["rho"])
    score = len(errors) * np.log(batch.probes) - 2 * found.log_likelihood
    fits = []
    for at, n in enumerate(probes):
        params = dict(zip(found.parameters, found.params[at].tolist(), strict=True))
        params |= {name: values[at] for name, values in held.items()}
        try:
            if found.error[at] or not np.isfinite(score[at]):
                raise FitError(str(found.error[at]) or "the likelihood is not finite")
            made = law(**params)
        except LatfitError as problem:  # a search may end at what is no law
            fits.append(Fit(found.law, "mle", n, error=str(problem)))
            continue
        fits.append(Fit(found.law, "mle", n, law=made, rho=float(found.rho[at]), params=params, std_errors=errors,
                        log_likelihood=float(found.log_likelihood[at]), bic=float(score[at]), converged=True,
                        at_limit=bool(found.at_limit[at])))  # fmt: skip
    return fits


def elaborate() -> list[str]:
    """Laws of many parameters, which the paper fits by least squares: tried where no simple one comes near."""
    simple = default_laws("mle")
    return [name for name in default_laws("ls") if name not in simple]


def tested(case: Prepared, one: Fit, options: Options, key: Key) -> FittedLaw:
    """A fit with its test; the p-value depends on the sample, the law and the seed alone."""
    if one.law is None:
        return FittedLaw(one, None, None, None)
    resamples = RESAMPLES if options.test and options.resamples else 0
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


def joint(case: Prepared, fits: Sequence[Fit], *, detail: bool) -> JointRatio | None:
    """The ratio estimated together with the best of the simple laws; None where no law could be fitted.

    Without `detail` also where it lies inside the interval of the counted ratio: then the two agree, whatever its own.
    """
    found = simple_fits(fits)
    if not found or not (detail or not case.ratio.low <= (found[0].rho or 0.0) <= case.ratio.high):
        return None
    try:
        return joint_outlier_ratio(case.sample, [one.name for one in found if one.score - found[0].score < COMPETING])
    except FitError:
        return None


def simple_fits(fits: Sequence[Fit]) -> list[Fit]:
    """The likelihood fits that succeeded, without the laws of many parameters."""
    rich = elaborate()
    return [one for one in fits if one.method == "mle" and one.error is None and one.name not in rich]
