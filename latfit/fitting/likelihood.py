"""The likelihood of defective, censored samples, with ρ profiled out, and its batched maximum.

ℓ(θ, ρ) = Σ log((1−ρ) f(x_i)) + Σ log(ρ + (1−ρ) S(c_j)) + lost · log ρ.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from latfit.laws.kernel import Kernel
from latfit.laws.samples import SampleBatch, weighted_sum
from latfit.numbers import Bools, Floats

MAX_NEWTON_STEPS = 100
SMALL_SAMPLE = 64  # samples of at most this many latencies are searched from every start
DECREMENT = 1e-7  # Newton converges quadratically: after a step that gains this much the next gains 1e-14
REFIT_DECREMENT = 1e-2  # for resamples, whose own error is a gain of about 1: the next step gains 1e-4 at most


Ratio: TypeAlias = float | Floats | None  # ρ of all samples, of each (B,), or None: it is to be estimated


def ratio_of(rho: Ratio, rows: Any) -> Ratio:
    """ρ of some of the samples."""
    return rho[rows] if isinstance(rho, np.ndarray) else rho


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


@np.errstate(all="ignore")  # a step may go too far; what is not finite is refused by the caller
def log_likelihood(kernel: Kernel, batch: SampleBatch, u: Floats, rho: Ratio) -> Likelihood:
    """ℓ of each sample at u; ρ is profiled out where it is None."""
    done = kernel.completions(batch, u)
    late = kernel.survival(batch.c, u)
    log_s = np.where(batch.c_weights > 0, late.value, 0.0)
    r = profile_rho(batch, log_s) if rho is None else np.full(batch.size, rho)
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
    if rho is None and r.any():
        inside = np.where(r > 0, 1 / curve, 0.0)
        profiled = hess - inside * cross[:, None] * cross[None]
    return Likelihood(value, grad, profiled, r, hess, cross, curve)


def _over_last(values: Floats) -> Floats:
    """The sum over the last axis, which mostly has one element: all that were out were cut at one time."""
    return values[..., 0] if values.shape[-1] == 1 else np.asarray(values.sum(axis=-1))


@np.errstate(all="ignore")
def profile_rho(batch: SampleBatch, log_s: Floats) -> Floats:
    """The ρ that maximises ℓ given S(c_j): max(0, 1 − p/F(T)), p = n/(n+m), when all m were cut at one T.

    With l lost it is the root above 0 of l S + (m F + l (F − S) − n S) ρ − (n + m + l) F ρ², and l/(n + l) where nobody
    was cut. Otherwise the root of the score in ρ, which is concave: Newton's steps inside a shrinking bracket.
    """
    n, lost = batch.n, batch.lost
    if not batch.c_weights.any():
        return np.asarray(lost / batch.probes)
    if log_s.shape[1] == 1 and not lost.any():
        rho = 1 - n / ((n + batch.n_out) * -np.expm1(log_s[:, 0]))
        return np.where((batch.n_out > 0) & (rho > 0), rho, 0.0)
    if log_s.shape[1] == 1:
        F, S = -np.expm1(log_s[:, 0]), np.exp(log_s[:, 0])
        b, a = batch.n_out * F + lost * (F - S) - n * S, batch.probes * F
        root = np.sqrt(b * b + 4 * a * lost * S)
        rho = np.where(b > 0, (b + root) / (2 * a), 2 * lost * S / (root - b))  # nothing cancels
        return np.where(rho > 1e-14, rho, 0.0)
    S = np.exp(np.broadcast_to(log_s, (batch.size, log_s.shape[1])))
    F = -np.expm1(np.broadcast_to(log_s, S.shape))
    # ρ is 0 where the score at 0 is not positive, and cannot exceed the share that did not return
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


class Maximum(NamedTuple):
    """Where the likelihood of each sample is largest, and whether Newton's method arrived there."""

    u: Floats
    at: Likelihood
    converged: Bools


def maximise(
    kernel: Kernel,
    batch: SampleBatch,
    rho: Ratio,
    starts: list[Floats],
    *,
    above: Floats | None = None,
    decrement: float = DECREMENT,
) -> Maximum:
    """The maximum of each sample's likelihood, from its best start, or from several where there may be several maxima.

    A small sample can have several maxima, and so can a law that wants several starts `followed`. Of others those of
    which no start is `above` are left there. Newton's method ends with a step that promises to gain less than
    `decrement`.
    """
    if batch.thinned is not None:
        starts = [maximise(kernel, batch.thinned, rho, starts, decrement=1e-3).u]
    if len(starts) > kernel.followed > 1:
        starts = _best_starts(kernel, batch, rho, starts)
    elif batch.x.shape[1] > SMALL_SAMPLE or len(starts) == 1:
        return _newton(kernel, batch, rho, starts, above, decrement)
    every = np.tile(np.arange(batch.size), len(starts))
    wide, all_u = batch.repeated(len(starts)), np.concatenate(starts, axis=1)
    tried = _newton(kernel.take(every), wide, ratio_of(rho, every), [all_u], None, decrement)
    parts = [slice(at, at + batch.size) for at in range(0, every.size, batch.size)]
    best, *others = (Maximum(tried.u[:, part], tried.at.take(part), tried.converged[part]) for part in parts)
    for other in others:
        with np.errstate(invalid="ignore"):
            better = (other.at.value > best.at.value + 1e-9) | ~np.isfinite(best.at.value)
            at_least = other.at.value >= best.at.value - 1e-9
        if kernel.followed > 1:  # a likelihood without bound has local maxima only: one that was reached counts
            at_least, better = np.ones_like(at_least), better & (other.converged | ~best.converged)
        better |= other.converged & ~best.converged & at_least
        best.u[:, better] = other.u[:, better]
        best.converged[better] = other.converged[better]
        best.at.put(better, other.at, better)
    return best


@np.errstate(all="ignore")
def _newton(
    kernel: Kernel, batch: SampleBatch, rho: Ratio, starts: list[Floats], above: Floats | None, decrement: float
) -> Maximum:
    """Newton's method with eigenvalues made negative and step halving, from the best start of each sample."""
    u, at = best_start(kernel, batch, rho, starts)
    step, gain = _newton_step(kernel, u, at)
    share = kernel.limit_step(u, step)
    converged = np.zeros(batch.size, dtype=bool)
    alive = np.isfinite(at.value) if above is None else at.value > above
    rows, part, chosen = np.arange(batch.size), batch, kernel  # what is evaluated: all that are alive, and some others
    for _ in range(MAX_NEWTON_STEPS):
        if not alive.any():
            break
        if alive[rows].sum() <= 0.6 * rows.size:
            rows = np.flatnonzero(alive)
            part, chosen = batch.take(rows), kernel.take(rows)
        candidate = u[:, rows] + np.where(alive[rows], share[rows], 0.0) * step[:, rows]
        new = log_likelihood(chosen, part, candidate, ratio_of(rho, rows))
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


def _best_starts(kernel: Kernel, batch: SampleBatch, rho: Ratio, starts: list[Floats]) -> list[Floats]:
    values = np.stack([log_likelihood(kernel, batch, start, rho).value for start in starts])
    order = np.argsort(-np.where(np.isnan(values), -np.inf, values), axis=0, kind="stable")[: kernel.followed]
    every = np.stack(starts)
    return [np.take_along_axis(every, best[None, None], axis=0)[0] for best in order]


def best_start(kernel: Kernel, batch: SampleBatch, rho: Ratio, starts: list[Floats]) -> tuple[Floats, Likelihood]:
    """The start of each sample at which its likelihood is largest."""
    if batch.size == 1 and len(starts) > 1:  # all starts of one sample in one call
        every, all_u = np.zeros(len(starts), dtype=np.intp), np.concatenate(starts, axis=1)
        tried = log_likelihood(kernel, batch.repeated(len(starts)), all_u, ratio_of(rho, every))
        best = [int(np.argmax(np.where(np.isnan(tried.value), -np.inf, tried.value)))]
        return all_u[:, best], tried.take(best)
    u = np.array(starts[0], dtype=np.float64)
    at = Likelihood(*(np.array(part) for part in log_likelihood(kernel, batch, u, rho)))
    for other in starts[1:]:
        there = log_likelihood(kernel, batch, other, rho)
        better = (there.value > at.value) | (np.isfinite(there.value) & ~np.isfinite(at.value))
        better &= np.isfinite(there.grad).all(axis=0)
        u[:, better] = other[:, better]
        at.put(better, there, better)
    return u, at


def _newton_step(kernel: Kernel, u: Floats, at: Likelihood) -> tuple[Floats, Floats]:
    """The step (p, B) along −|H|⁻¹ in the eigenvectors of H, and what it should gain, gᵀ|H|⁻¹g/2."""
    size = kernel.curvature_scale(u)
    hess = (at.hess * (size[:, None] * size[None])).transpose(2, 0, 1)
    grad = (at.grad * size).T
    if not (np.isfinite(hess).all() and np.isfinite(grad).all()):
        ok = np.asarray(np.isfinite(hess).all(axis=(1, 2)) & np.isfinite(grad).all(axis=1))
        hess, grad = np.where(ok[:, None, None], hess, -np.eye(u.shape[0])), np.where(ok[:, None], grad, 0.0)
    values, vectors = np.linalg.eigh(hess)
    along = (vectors * grad[:, :, None]).sum(axis=1)
    strength = np.abs(values)
    strength = np.maximum(strength, 1e-10 * strength.max(axis=1, keepdims=True) + 1e-300)
    move = along / strength
    return size * (vectors * move[:, None, :]).sum(axis=2).T, (along * move).sum(axis=1) / 2


@np.errstate(all="ignore")
def inverse_information(information: Floats) -> Floats:
    """The inverses (B, p, p) of information matrices, not a number where one is not positive definite."""
    diagonal = np.einsum("bii->bi", information)
    size = np.sqrt(diagonal)
    scale = size[:, :, None] * size[:, None, :]
    scaled = information / scale
    fine = (diagonal > 0).all(axis=1) & (np.abs(scaled) < 2).all(axis=(1, 2))  # correlations, if they are any
    fine[fine] = np.linalg.eigvalsh(scaled[fine])[:, 0] > 1e-12
    inverse = np.full_like(scaled, np.nan)
    inverse[fine] = np.linalg.inv(scaled[fine])
    return np.asarray(inverse / scale)
