"""Least squares for the log-normal–Pareto law (Glatard et al. 2006, eq. 14).

u = (μ, log σ, log ν/a, log 1/a, log k): in these the ridge between a and ν disappears. t_min, the smallest latency
less one step of the clock, and t_max, the largest latency, stay fixed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from latfit.fitting.batch import Floats

HYBRID = "lognormal-pareto"
FREE = 5  # t_min and t_max are read off the sample


@dataclass(frozen=True, eq=False)
class HybridModel:
    """F = (1−α) Φ((log(t − t_min) − μ)/σ) + α (1 − (a/(a+t))^ν), α = ((t − t_min)/(t_max − t_min))^k.

    `t_min` and `t_max` are (B,), one for each sample.
    """

    t_min: Floats
    t_max: Floats

    def cdf(self, t: Floats, u: Floats) -> tuple[Floats, Floats]:
        """F and its gradient in u."""
        mu, log_sigma, log_r, log_b, log_k = u[:, :, None]
        t_min, t_max = self.t_min[:, None], self.t_max[:, None]
        log_past = np.log(np.maximum(t - t_min, 1e-300))
        log_share = log_past - np.log(t_max - t_min)
        k = np.exp(log_k)
        alpha = np.exp(k * np.minimum(log_share, 0.0))
        sigma, r, b = np.exp(log_sigma), np.exp(log_r), np.exp(log_b)
        z = (log_past - mu) / sigma
        phi = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        body, A = ndtr(z), r / b * np.log1p(b * t)
        rest = np.exp(-A)
        tail = -np.expm1(-A)
        F = (1 - alpha) * body + alpha * tail
        by_body = -(1 - alpha) * phi
        by_tail = alpha * rest
        by_b = by_tail * (r * t / (1 + b * t) - A)
        by_k = (tail - body) * alpha * k * np.minimum(log_share, 0.0)
        return F, np.stack([by_body / sigma, by_body * z, by_tail * A, by_b, by_k])

    def take(self, rows: NDArray[np.intp]) -> HybridModel:
        """The model for some of the samples; one t_min and t_max stand for all."""
        return self if self.t_min.size == 1 else HybridModel(self.t_min[rows], self.t_max[rows])

    def params(self, u: Floats) -> dict[str, float]:
        """The law's parameters of the first sample."""
        mu, log_sigma, log_r, log_b, log_k = (float(v) for v in u[:, 0])
        a, nu = np.exp(-log_b), np.exp(log_r - log_b)
        t_min, t_max = float(self.t_min[0]), float(self.t_max[0])
        named = {"mu": mu, "sigma": np.exp(log_sigma), "a": a, "nu": nu, "k": np.exp(log_k)}
        return {name: float(value) for name, value in named.items()} | {"t_min": t_min, "t_max": t_max}

    @staticmethod
    def unnatural(params: dict[str, float], unit: float) -> Floats:
        """The law's parameters as u (p, 1), times measured in `unit`."""
        log_b = np.log(unit / params["a"])
        u = (params["mu"] - np.log(unit), np.log(params["sigma"]), np.log(params["nu"]) + log_b, log_b)
        return np.array([*u, np.log(params["k"])])[:, None]


def hybrid_starts(values: Floats, counts: Floats, t_min: float) -> list[Floats]:
    """32 starts: 4 weights k × 4 Pareto tails through the 90th centile × 2 log-normal bodies from the quartiles."""
    share = np.cumsum(counts) / counts.sum()
    q1, q2, q3, q9 = values[np.searchsorted(share, (0.25, 0.5, 0.75, 0.9))]
    q9 = max(q9, 1e-3 * values[-1])
    low, middle, high = np.log(np.maximum(np.array([q1, q2, q3]) - t_min, 1e-6 * q9))
    sigma = max((high - low) / 1.349, 1e-3)
    starts = []
    for k, nu, shift in product((0.1, 0.4, 1.3, 3.5), (0.5, 1.0, 2.0, 5.0), (0.0, 0.4)):
        log_b = np.log((10 ** (1 / nu) - 1) / q9)
        body = (middle - shift * sigma, np.log(sigma * (1 - shift)))
        starts.append(np.array([*body, np.log(nu) + log_b, log_b, np.log(k)]))
    return starts
