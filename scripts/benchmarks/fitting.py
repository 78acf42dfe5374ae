"""Rows on fitting: six laws ranked, and one law over many groups."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks import rivals
from benchmarks.data import CUTOFF, Floats, probes, sample_of
from benchmarks.timing import Row, duel, never_worse
from latfit.fitting import CLASSICAL, SampleBatch, fit, fit_batch


class Peer(NamedTuple):
    """Someone who ranks laws: what is said of them, how they are asked, and what they make of ρ."""

    told: str
    run: Callable[[Floats], Any]
    rho: float | str | None = 0.0
    rounds: int = 5


PEERS = {
    "scipy": Peer("scipy CensoredData, 5 of the 6, ρ = 0", rivals.scipy_laws),
    "surpyval": Peer("surpyval, its six laws, ρ = 0", rivals.surpyval_laws),
    "surpyval-lfp": Peer("surpyval, its six laws, with ρ", partial(rivals.surpyval_laws, lfp=True), "joint", 3),
    "fitdistrplus": Peer("R fitdistrplus, 6 laws, ρ = 0", rivals.fitdistrplus_laws),
    "reliability": Peer("reliability, six laws, ρ = 0", rivals.reliability_laws, 0.0, 3),
    "reliability-all": Peer("reliability Fit_Everything, 15 laws", rivals.reliability_everything, 0.0, 1),
    "fitter": Peer("fitter, the six laws, outliers dropped, free location", rivals.fitter_laws, None, 3),
}
TARGETS = {
    2137: {"scipy": "≥ 30 ×", "surpyval": "≥ 17 ×", "reliability": "≥ 16 ×"},
    100_000: {"scipy": "≥ 45 ×", "surpyval": "≥ 45 ×"},
}


def rank(key: str, n: int, name: str, quick: bool) -> list[Row]:
    """Raw latencies to six ranked laws, ρ and censoring inside for latfit whatever the rival does."""
    x, peer = probes(n), PEERS[name]

    def judged(theirs: dict[str, Any], ours: Any) -> tuple[bool | None, str]:
        if peer.rho is None:
            return None, "a different question, without censoring"
        asked = [law for law in theirs if law.islower()]  # Normal reaches below 0: no law of latency
        own = {found.name: found.log_likelihood for found in fit(sample_of(x), asked, rho=peer.rho)}
        ok, told = never_worse(
            [own[law] - theirs[law] for law in asked], "log-likelihood with " + ("ρ" if peer.rho else "ρ = 0")
        )
        return ok, f"{told}; best {max(theirs.values()):.2f}, latfit with ρ {ours[0].log_likelihood:.2f}"

    work, rounds = (
        f"rank the 6 classical laws with ρ and censoring, n = {n}",
        min(2, peer.rounds) if quick else peer.rounds,
    )
    wanted = TARGETS[n].get(name, "≥")
    return [
        duel(
            key,
            work,
            peer.told,
            wanted,
            lambda: peer.run(x),
            lambda: fit(sample_of(x), CLASSICAL),
            rounds=rounds,
            judge=judged,
        )
    ]


FEW = 5  # a peer's loop is measured on so many groups
DEFECTIVE: dict[str, tuple[str, str, Callable[[Floats], float], str]] = {
    "surpyval": ("lognormal", "surpyval lfp", lambda x: rivals.surpyval_laws(x, ("lognormal",), lfp=True)["lognormal"],
                 "≥ 4000 ×"),
    "lifelines": ("lognormal", "lifelines mixture cure", rivals.lifelines_cure, "≥"),
    "reliability": ("weibull", "reliability Fit_Weibull_DS", rivals.reliability_defective, "≥"),
}  # fmt: skip


def defective(key: str, name: str, quick: bool) -> list[Row]:
    """One law with ρ over many groups, from raw latencies; the peer's loop is measured on five of them."""
    groups, size = (200 if quick else 1000), 500
    law, told, run, wanted = DEFECTIVE[name]
    x = probes(groups * size).reshape(groups, size)

    def ours() -> Floats:
        return fit_batch(law, SampleBatch.of_rows(x, CUTOFF)).log_likelihood

    return [
        duel(
            key,
            f"defective {law}, {groups} groups of {size}",
            f"{told}, {FEW} groups × {groups // FEW}",
            wanted,
            lambda: [run(row) for row in x[:FEW]],
            ours,
            rounds=1 if quick else 5,
            scale=groups / FEW,
            judge=lambda a, b: never_worse(list(b[:FEW] - np.array(a)), "log-likelihood"),
        )
    ]


BENCHES = (
    {f"rank/{name}": partial(rank, n=2137, name=name) for name in PEERS}
    | {f"rank-large/{name}": partial(rank, n=100_000, name=name) for name in ("scipy", "surpyval", "surpyval-lfp")}
    | {f"defective/{name}": partial(defective, name=name) for name in DEFECTIVE}
)
