"""The tracker: regret against an oracle that knows the law, ablations, rivals, intervals, alarms, change points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from calibration.cases import Floats, Row, Task, coverage
from calibration.rivals import RIVALS, optimum
from calibration.systems import ATTEMPTS, CHANGE, CUTOFF, GOLDENS, Scenario, scenarios
from latfit import Tracker
from latfit.evidence.changes import find_changes
from latfit.tracking.estimate import Laws
from latfit.tracking.tracker import Guard

SEEDS = 0.1  # of the rounds: 20 of 200
MASSES = Laws.masses


class Unguarded(Guard):
    """A guard that never does anything."""

    def judge(self, *_: Any, **__: Any) -> bool:
        return False


def unspliced(laws: Laws, level: int) -> tuple[Floats, Floats, int]:
    """The masses of one memory alone: longer ones know no more buckets."""
    return MASSES(replace(laws, limit=[laws.limit[level]] * len(laws.limit)), level)


def tracked(x: Floats, start: float, seed: int, *, guard: bool = True, splice: bool = True, **options: Any) -> Floats:
    """The timeouts of a tracker that is fed with the attempts that it cuts short."""
    tracker = Tracker(initial=min(1.5 * start, CUTOFF), cutoff=CUTOFF, seed=seed, **options)
    if not guard:
        tracker._guard = Unguarded(tracker.initial, 0)
    Laws.masses = MASSES if splice else unspliced  # type: ignore[method-assign]
    try:
        return _attempts(x, tracker.next, lambda y, done: tracker.observe(y, "completed" if done else "censored"))
    finally:
        Laws.masses = MASSES  # type: ignore[method-assign]


def _attempts(x: Floats, following: Callable[[], float], observe: Callable[[float, bool], None]) -> Floats:
    given = np.empty(x.size)
    for i, y in enumerate(x.tolist()):
        given[i] = t = following()
        observe(min(y, t), y <= t)
    return given


def _mean(regrets: list[float]) -> str:
    return f"{np.mean(regrets):.1f}" if np.mean(regrets) < 1000 else "> 1000"


def goldens(rng: np.random.Generator, rounds: int, name: str) -> Row:
    """The rule, and the rule without each of its parts."""
    case, found = scenarios()[name], {}
    parts: dict[str, dict[str, Any]] = {
        "regret %": {}, "without guard": {"guard": False}, "without exploration": {"explore": 0.0},
        "without slack": {"slack": 0.0}, "without splice": {"splice": False},
    }  # fmt: skip
    draws = [case.draw(rng) for _ in range(rounds)]
    for part, options in parts.items():
        some = draws if part == "regret %" else draws[: max(2, rounds // 2)]
        found[part] = _mean([case.regret(tracked(x, case.start, seed, **options)) for seed, x in enumerate(some)])
    low, high = GOLDENS[name]
    return Row("tracking goldens", {"system": name, "golden %": f"{low:g}–{high:g}"}, found)


def rivals(rng: np.random.Generator, rounds: int, name: str) -> Row:
    """Attempts that are cut at the timeout in force: the tracker, with late listening too, and others."""
    case, found = scenarios()[name], {}
    draws = [case.draw(rng) for _ in range(rounds)]
    found["tracker"] = _mean([case.regret(tracked(x, case.start, seed)) for seed, x in enumerate(draws)])
    found["late listening"] = _mean([case.regret(_late(x, case)) for x in draws])
    for rival, kind in RIVALS.items():
        regrets = []
        for x in draws:
            one = kind(case.start)
            regrets.append(case.regret(_attempts(x, one.next, one.observe)))
        found[rival] = _mean(regrets)
    return Row("tracking rivals", {"system": name}, found)


def _late(x: Floats, case: Scenario) -> Floats:
    """Abandoned attempts are reported when they come back; here, at once."""
    tracker = Tracker(initial=min(1.5 * case.start, CUTOFF), cutoff=CUTOFF, explore=0.0)
    given = np.empty(x.size)
    for i, y in enumerate(x.tolist()):
        given[i] = tracker.next()
        tracker.observe(min(y, CUTOFF), "completed" if y <= CUTOFF else "censored")
    return given


def probes(rng: np.random.Generator, rounds: int, name: str) -> Row:
    """Probes that nothing cuts short, 200 a day: the ladder and others."""
    case, found = scenarios()[name], {}
    draws = [case.draw(rng) for _ in range(rounds)]
    found["ladder"] = _mean([case.regret(_probed(x, case)) for x in draws])
    found["window 300"] = _mean([case.regret(_window(x, case)) for x in draws])
    found["fixed"] = _mean([case.regret(np.full(ATTEMPTS, case.start)) for _ in draws])
    return Row("tracking probes", {"system": name}, found)


def _probed(x: Floats, case: Scenario) -> Floats:
    tracker = Tracker(initial=min(case.start, CUTOFF), cutoff=CUTOFF, slack=0.0, explore=0.0)
    given = np.empty(x.size)
    for start in range(0, x.size, 5):
        part = slice(start, start + 5)
        given[part] = tracker.next()
        status = np.where(x[part] <= CUTOFF, "completed", "censored")
        tracker.learn(np.minimum(x[part], CUTOFF), status)
    return given


def _window(x: Floats, case: Scenario) -> Floats:
    given = np.full(x.size, case.start)
    kept = np.column_stack([np.minimum(x, CUTOFF), x <= CUTOFF])
    for end in range(20, x.size, 10):
        given[end : end + 10] = optimum(kept[max(0, end - 300) : end]) or case.start
    return given


def covers(rng: np.random.Generator, rounds: int, name: str, at: int) -> Row:
    """The interval after so many attempts, against the law of then."""
    case, hits = scenarios()[name], []
    for seed in range(rounds):
        tracker = Tracker(initial=min(1.5 * case.start, CUTOFF), cutoff=CUTOFF, seed=seed)
        for y in case.draw(rng)[:at].tolist():
            t = tracker.next()
            tracker.observe(min(y, t), "completed" if y <= t else "censored")
        t, E = case.laws[int(case.which[at - 1])].best(round(float(case.scale[at - 1]), 6))
        ends = (tracker.interval(), tracker.interval("expected_duration"))
        hits.append([low <= true <= high for (low, high), true in zip(ends, (t, E), strict=True)])
    timeout, duration = np.array(hits).T
    return Row("tracking intervals", {"system": name, "attempts": str(at)},
               {"timeout": coverage(timeout), "E_J": coverage(duration)})  # fmt: skip


def alarms(rng: np.random.Generator, rounds: int) -> list[Row]:
    """False alarms in 10 000 probes of the bundled law, and probes until a change is said."""
    base, found = scenarios()["bundled"], []
    begun = []
    for _ in range(max(2, rounds // 4)):
        begun.append(_episodes(base.laws[0].draw(rng, 10_000)))
    found.append(Row("tracking alarms", {"change": "none"}, {"false alarms in 10 000": f"{np.mean(begun):.1f}"}))
    for name, after in (("× 3", "bundled"), ("× 1.3", "bundled"), ("ρ .02 → .2", "ρ .02 → .2")):
        factor = {"× 3": 3.0, "× 1.3": 1.3}.get(name, 1.0)
        laws, delays = scenarios()[after].laws, []
        for _ in range(rounds):
            tracker = Tracker(cutoff=CUTOFF)
            tracker.learn(*_ended(laws[0].draw(rng, 2000)))
            delays.append(_delay(tracker, factor * laws[-1].draw(rng, 2000)))
        cells = {
            "probes until the alarm, median": f"{np.median(delays):.0f}",
            "missed": f"{np.mean(np.isinf(delays)):.0%}",
        }
        found.append(Row("tracking alarms", {"change": name}, cells))
    return found


def _ended(x: Floats) -> tuple[Floats, Floats]:
    return np.minimum(x, CUTOFF), np.where(x <= CUTOFF, "completed", "censored")


def _episodes(x: Floats) -> int:
    tracker, before, count = Tracker(cutoff=CUTOFF), False, 0
    for start in range(0, x.size, 5):
        tracker.learn(*_ended(x[start : start + 5]))
        count += tracker.changed and not before
        before = tracker.changed
    return count


def _delay(tracker: Tracker, x: Floats) -> float:
    for start in range(0, x.size, 5):
        tracker.learn(*_ended(x[start : start + 5]))
        if tracker.changed:
            return start + 5
    return np.inf


def changes(rng: np.random.Generator, rounds: int) -> list[Row]:
    """Change points offline: how often one is found where there is none, and where there is one."""
    found = []
    for name, n, phi, after in (
        ("independent", 200, 0.0, {}), ("independent", 2000, 0.0, {}), ("AR(.3)", 2000, 0.3, {}),
        ("AR(.7)", 2000, 0.7, {}), ("× 1.5", 2000, 0.0, {"scale": 1.5}), ("σ 1 → .6", 2000, 0.0, {"sigma": 0.6}),
        ("ρ .02 → .1", 2000, 0.0, {"rho": 0.1}),
    ):  # fmt: skip
        hits = [bool(find_changes(None, *_log(rng, n, phi, **after), CUTOFF).changes) for _ in range(rounds)]
        kind = "found, %" if after else "false, %"
        found.append(Row("change points", {"log": name, "n": str(n)}, {kind: f"{100 * np.mean(hits):.1f}"}))
    return found


def _log(rng: np.random.Generator, n: int, phi: float, *, scale: float = 1.0, sigma: float = 1.0, rho: float = 0.02
         ) -> tuple[Floats, Floats]:  # fmt: skip
    """Log-normal latencies whose logarithms are an AR(1) process; the second half is another."""
    z = rng.standard_normal(n)
    if phi:
        for i in range(1, n):
            z[i] = phi * z[i - 1] + np.sqrt(1 - phi**2) * z[i]
    late = np.arange(n) >= n // 2
    x = np.exp(5.5 + np.where(late, sigma, 1.0) * z) * np.where(late, scale, 1.0)
    out = (rng.random(n) < np.where(late, rho, 0.02)) | (x > CUTOFF)
    return np.where(out, CUTOFF, x), np.where(out, 2, 0).astype(np.int8)


def tasks() -> list[Task]:
    names = list(scenarios())
    after = [("log-normal", 2000), ("bundled", 2000), ("Gaussian", 2000), ("log-normal × 3", CHANGE + 300),
             ("Gaussian × 3", CHANGE + 300), ("bundled × 10", CHANGE + 300), ("ρ .02 → .2", CHANGE + 300),
             ("daily cycle, × 3", 2000)]  # fmt: skip
    return [
        *(Task(goldens, (name,), SEEDS) for name in GOLDENS),
        *(Task(rivals, (name,), SEEDS) for name in names),
        *(Task(probes, (name,), SEEDS / 2) for name in names[:16]),
        *(Task(covers, case, 2 * SEEDS) for case in after),
        Task(alarms, (), SEEDS),
        Task(changes, (), 0.5),
    ]
