"""How each law is searched for: its unconstrained parameters, starting points and, for least squares, its gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from latfit.errors import FitError
from latfit.fitting.batch import Floats, SampleBatch
from latfit.fitting.hybrid import FREE, HYBRID, HybridModel, hybrid_starts
from latfit.fitting.kernel import KERNELS, Kernel
from latfit.fitting.least_squares import Model, finalists, target
from latfit.fitting.numeric import Build, LawModel, law_builder, law_class, quartiles
from latfit.laws import ContinuousLaw
from latfit.sample import LatencySample


@dataclass(frozen=True, eq=False)
class Problem:
    """Times are measured in `unit`; `build` makes the law of u, and `held` names parameters that do not vary."""

    unit: float
    build: Build
    starts: list[Floats]
    model: Model
    held: tuple[str, ...] = ()


def least_squares_problem(name: str, sample: LatencySample) -> Problem:
    """The problem for least squares."""
    if name == HYBRID:
        return hybrid_problem(sample)
    if name in KERNELS:
        return _kernel_problem(KERNELS[name], sample)
    return _plain_problem(name, sample)


def likelihood_problem(name: str, sample: LatencySample) -> Problem:
    """The problem for maximum likelihood of a law without a kernel; the hybrid starts from its least squares."""
    if name != HYBRID:
        return _plain_problem(name, sample)
    if not sample.resolution and sample.completed.values[0] > 0:
        raise FitError(f"{HYBRID} starts at the smallest latency where the clock has no step, with density 0: use ls")
    problem = hybrid_problem(sample)
    goal = target(sample)
    best = finalists(problem.model, goal._replace(t=goal.t / problem.unit), problem.starts)
    starts = [u[:, 0] for u in best]
    return Problem(problem.unit, problem.build, starts, problem.model, problem.held)


def hybrid_problem(sample: LatencySample) -> Problem:
    """t_min is the smallest latency less one step of the clock, t_max the largest."""
    values, unit = sample.completed.values, quartiles(sample)[1]
    if values.size <= FREE:
        raise FitError(f"{HYBRID} has {FREE} free parameters; {values.size} distinct latencies do not determine them")
    t_min, t_max = max(0.0, values[0] - sample.resolution) / unit, values[-1] / unit
    model = HybridModel(np.array([t_min]), np.array([t_max]))
    starts = hybrid_starts(values / unit, sample.completed.counts.astype(np.float64), t_min)

    def build(u: Floats) -> ContinuousLaw:
        law: ContinuousLaw = law_class(HYBRID)(**model.params(u[:, None]))
        return law

    return Problem(unit, build, starts, model, held=("t_min", "t_max"))


def _kernel_problem(kernel: Kernel, sample: LatencySample) -> Problem:
    unit = quartiles(sample)[1]
    batch = SampleBatch.of_sample(sample).scaled(unit)
    rough = law_class(kernel.law).start(*(q / unit for q in quartiles(sample)))
    start = kernel.unnatural(np.array([[rough[name]] for name in kernel.parameters]), 1.0)

    def build(u: Floats) -> ContinuousLaw:
        law: ContinuousLaw = law_class(kernel.law)(*map(float, kernel.natural(u[:, None], 1.0)[0][:, 0]))
        return law

    return Problem(unit, build, [u[:, 0] for u in (start, *kernel.starts(batch))], kernel)


def _plain_problem(name: str, sample: LatencySample) -> Problem:
    build, to_u = law_builder(name)
    unit = quartiles(sample)[1]
    q1, q2, q3 = (q / unit for q in quartiles(sample))
    rough = law_class(name).start(q1, q2, q3)
    wider = law_class(name).start(q1 / 2, q2, q3 * 2)
    return Problem(unit, build, [to_u(rough), to_u(wider)], LawModel(build))
