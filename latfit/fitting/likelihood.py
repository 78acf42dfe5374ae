"""The profile likelihood (over ρ) of defective, censored samples, and its maximum in batches.

ℓ(θ, ρ) = Σ log((1−ρ) f(x_i)) + Σ log(ρ + (1−ρ) S(c_j)) + lost · log ρ.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from latfit.laws.kernel import Kernel
from latfit.laws.samples import SampleBatch, weighted_sum
from latfit.numbers import Bools, Floats

MAX_NEWTON_STEPS = 100
SMALL_SAMPLE = 64  # up to this many latencies, samples are searched from every start
DECREMENT = 1e-7  # Newton converges quadratically: after a step that gains this much the next gains 1e-14
REFIT_DECREMENT = 1e-2  # for resamples, whose sampling error is a gain of about 1: the next step gains 1e-4


class Likelihood(NamedTuple):
    """ℓ at u, profiled over ρ: value (B,), gradient (p, B), Hessian (p, p, B); and ρ̂ with its derivatives.

    `hess_u` is the Hessian at fixed ρ, `cross` is ∂²ℓ/∂u∂ρ (p, B) and `curve` is ∂²ℓ/∂ρ² (B,).
    """

    value: Floats
    grad: Floats
    hess: Floats
    rho: Floats
    hess_u: Floats
    cross: Floats
    curve: Floats

    def take(self, rows: Any) -> Likelihood:
        return Likelihood(*(part[..., rows] for part in self))

    def put(self, rows: Any, other: Likelihood, others: Any) -> None:
        for target, source in zip(self, other, strict=True):
            target[..., rows] = source[..., others]


@np.errstate(all="ignore")  # a step may go too far; the caller refuses values that are not finite
def log_likelihood(kernel: Kernel, batch: SampleBatch, u: Floats) -> Likelihood:
    """ℓ of each sample at u, maximised over ρ unless that is given."""
    done = kernel.completions(batch, u) if batch.cell else kernel.density(batch, u)
    late = kernel.survival(batch.c, u)
    log_s = np.where(batch.c_weights > 0, late.value, 0.0)
    r = profile_rho(batch, log_s) if batch.rho is None else batch.rho
    log_late = np.log1p(-r)[:, None] + log_s
    log_out = np.logaddexp(np.log(r)[:, None], log_late)
    q = np.where(r[:, None] > 0, np.exp(log_late - log_out), 1.0)  # P(merely late | still out at c)
    value = done.value + batch.n * np.log1p(-r) + weighted_sum(batch.c_weights, log_out)
    inverse = np.exp(-log_out)
    curve = -batch.n / (1 - r) ** 2 - weighted_sum(batch.c_weights, (inverse * -np.expm1(log_s)) ** 2)
    if batch.lost.any():
        value = value + np.where(batch.lost > 0, batch.lost * np.log(r), 0.0)
        curve = curve - np.where(batch.lost > 0, batch.lost / r**2, 0.0)
    weight = batch.c_weights * q
    pull = weight * late.grad
    grad = done.grad + _over_last(pull)
    cross = -_over_last(pull * inverse) / (1 - r)
    hess = done.hess + _over_last(weight * late.hess + (1 - q) * pull[:, None] * late.grad[None])
    profiled = hess
    if batch.rho is None and r.any():
        inside = np.where(r > 0, 1 / curve, 0.0)
        profiled = hess - inside * cross[:, None] * cross[None]
    return Likelihood(value, grad, profiled, r, hess, cross, curve)


def _over_last(values: Floats) -> Floats:
    """The sum over the last axis, which usually has one element: the common cutoff."""
    return values[..., 0] if values.shape[-1] == 1 else np.asarray(values.sum(axis=-1))


@np.errstate(all="ignore")
def profile_rho(batch: SampleBatch, log_s: Floats) -> Floats:
    """The ρ that maximises ℓ given S(c_j): max(0, 1 − p/F(T)), p = n/(n+m), if all m were cut at one T.

    With l lost and none cut it is l/(n + l). Otherwise it is the root of the score, by Newton's method inside a
    shrinking bracket: ℓ is concave in ρ.
    """
    n, lost = batch.n, batch.lost
    if not batch.c_weights.any():
        return np.asarray(lost / batch.probes)
    if log_s.shape[1] == 1 and not lost.any():
        rho = 1 - n / ((n + batch.n_out) * -np.expm1(log_s[:, 0]))
        return np.where((batch.n_out > 0) & (rho > 0), rho, 0.0)
    S = np.exp(np.broadcast_to(log_s, (batch.size, log_s.shape[1])))
    F = -np.expm1(np.broadcast_to(log_s, S.shape))
    # ρ is 0 if the score at 0 is not positive, and at most the share that did not return
    rising = (lost > 0) | (weighted_sum(batch.c_weights, np.where(batch.c_weights > 0, F / S, 0.0)) > n)
    low, high = np.zeros(batch.size), np.where(rising, 1 - n / batch.probes, 0.0)
    rho = high / 2
    for _ in range(100):
        part = np.where(batch.c_weights > 0, F / (rho[:, None] + (1 - rho[:, None]) * S), 0.0)
        lost_part = np.where(lost > 0, lost / rho, 0.0)
        score = weighted_sum(batch.c_weights, part) + lost_part - n / (1 - rho)
        slope = -weighted_sum(batch.c_weights, part**2) - np.where(lost > 0, lost / rho**2, 0) - n / (1 - rho) ** 2
        step = rho - score / slope
        low, high = np.where(score > 0, rho, low), np.where(score > 0, high, rho)
        new = np.where((step > low) & (step < high), step, (low + high) / 2)
        moved, rho = np.abs(new - rho), new
        if (moved <= 1e-15 + 1e-12 * rho).all():  # Newton: the next step is far smaller
            break
    return np.where(rho < 1e-14, 0.0, rho)


def moved(u: Floats, step: Floats) -> Floats:
    """The parameters after a step of the free ones."""
    return np.concatenate([u[: len(step)] + step, u[len(step) :]]) if len(step) < len(u) else u + step


class Maximum(NamedTuple):
    """The parameters that maximise the likelihood of each sample, and whether Newton's method converged."""

    u: Floats
    at: Likelihood
    converged: Bools


def maximise(
    kernel: Kernel, batch: SampleBatch, starts: list[Floats], *, above: Floats | None = None, rough: bool = False
) -> Maximum:
    """The maximum of each sample's likelihood, from its best start, or from several if there may be several maxima.

    That is so in small samples, and for laws that want several starts `followed`. Otherwise samples whose best start is
    not `above` these values stay at it. A `rough` search is good enough for resamples.
    """
    decrement = REFIT_DECREMENT if rough else DECREMENT
    if batch.thinned is not None:
        starts = [maximise(kernel, batch.thinned, starts, rough=True).u]
    if len(starts) > kernel.followed > 1:
        starts = _best_starts(kernel, batch, starts)
    elif batch.x.shape[1] > SMALL_SAMPLE or len(starts) == 1:
        return _newton(kernel, batch, starts, above, decrement)
    tried = _newton(kernel, batch.repeated(len(starts)), [np.concatenate(starts, axis=1)], None, decrement)
    # an unbounded likelihood has only local maxima: prefer one that was reached
    value = np.where(np.isfinite(tried.at.value), tried.at.value, -np.inf)
    value -= np.where(tried.converged, 0.0, 1e-9 if kernel.followed == 1 else 1e300)
    value = value.reshape(len(starts), batch.size)
    best = (value >= value.max(axis=0) - 1e-9).argmax(axis=0) * batch.size + np.arange(batch.size)
    return Maximum(tried.u[:, best], tried.at.take(best), tried.converged[best])


@np.errstate(all="ignore")
def _newton(
    kernel: Kernel, batch: SampleBatch, starts: list[Floats], above: Floats | None, decrement: float
) -> Maximum:
    """Newton's method from the best start of each sample, with negative eigenvalues enforced and steps shortened."""
    u, at = best_start(kernel, batch, starts)
    step, gain = _newton_step(kernel, u, at)
    share = kernel.limit_step(u, step)
    converged = np.zeros(batch.size, dtype=bool)
    alive = np.isfinite(at.value) if above is None else at.value > above
    rows, part = np.arange(batch.size), batch  # evaluated: all that are alive, and some others
    for _ in range(MAX_NEWTON_STEPS):
        if not alive.any():
            break
        if alive[rows].sum() <= 0.6 * rows.size:
            rows = np.flatnonzero(alive)
            part = batch.take(rows)
        candidate = moved(u[:, rows], np.where(alive[rows], share[rows], 0.0) * step[:, rows])
        new = log_likelihood(kernel, part, candidate)
        old, close = at.value[rows], gain[rows] < decrement
        better = np.isfinite(new.grad).all(axis=0)
        better &= new.value >= old + 1e-4 * share[rows] * gain[rows]
        better |= close & (new.value >= old - 1e-9 * (1 + np.abs(old)))
        better &= alive[rows]
        share[rows[~better]] *= 0.25
        taken = rows[better]
        if taken.size == batch.size:
            u, at = candidate, new
        else:
            u[:, taken] = candidate[:, better]
            at.put(taken, new, better)
        converged[taken] = close[better] & (share[taken] > 0.99)
        moving = taken[~converged[taken]]
        if moving.size:
            still_moving = at if moving.size == batch.size else at.take(moving)
            step[:, moving], gain[moving] = _newton_step(kernel, u[:, moving], still_moving)
            share[moving] = kernel.limit_step(u[:, moving], step[:, moving])
        alive &= ~converged & (share > 1e-9)
    return Maximum(u, at, converged)


def _best_starts(kernel: Kernel, batch: SampleBatch, starts: list[Floats]) -> list[Floats]:
    values = np.stack([log_likelihood(kernel, batch, start).value for start in starts])
    order = np.argsort(-np.where(np.isnan(values), -np.inf, values), axis=0, kind="stable")[: kernel.followed]
    every = np.stack(starts)
    return [np.take_along_axis(every, best[None, None], axis=0)[0] for best in order]


def best_start(kernel: Kernel, batch: SampleBatch, starts: list[Floats]) -> tuple[Floats, Likelihood]:
    """The most likely start of each sample."""
    if batch.size == 1 and len(starts) > 1:  # all starts of one sample in one call
        all_u = np.concatenate(starts, axis=1)
        tried = log_likelihood(kernel, batch.repeated(len(starts)), all_u)
        best = [int(np.argmax(np.where(np.isnan(tried.value), -np.inf, tried.value)))]
        return all_u[:, best], tried.take(best)
    u = np.array(starts[0], dtype=np.float64)
    at = Likelihood(*(np.array(part) for part in log_likelihood(kernel, batch, u)))
    for other in starts[1:]:
        there = log_likelihood(kernel, batch, other)
        better = (there.value > at.value) | (np.isfinite(there.value) & ~np.isfinite(at.value))
        better &= np.isfinite(there.grad).all(axis=0)
        u[:, better] = other[:, better]
        at.put(better, there, better)
    return u, at


def _newton_step(kernel: Kernel, u: Floats, at: Likelihood) -> tuple[Floats, Floats]:
    """The step |H|⁻¹g (p, B), with absolute eigenvalues, and the gain gᵀ|H|⁻¹g/2 that it promises."""
    size = kernel.curvature_scale(u)[: len(kernel.free)]
    hess = (at.hess * (size[:, None] * size[None])).transpose(2, 0, 1)
    grad = (at.grad * size).T
    if not (np.isfinite(hess).all() and np.isfinite(grad).all()):
        ok = np.asarray(np.isfinite(hess).all(axis=(1, 2)) & np.isfinite(grad).all(axis=1))
        hess, grad = np.where(ok[:, None, None], hess, -np.eye(len(size))), np.where(ok[:, None], grad, 0.0)
    values, vectors = np.linalg.eigh(hess)
    along = (vectors * grad[:, :, None]).sum(axis=1)
    strength = np.abs(values)
    strength = np.maximum(strength, 1e-10 * strength.max(axis=1, keepdims=True) + 1e-300)
    move = along / strength
    return size * (vectors * move[:, None, :]).sum(axis=2).T, (along * move).sum(axis=1) / 2
