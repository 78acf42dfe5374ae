"""A tracker that threads share: no event is lost, none is counted twice, and asking does not disturb."""

import copy
import pickle
import sys
import threading

import numpy as np
import pytest

import latfit

THREADS, EACH = 8, 50


@pytest.fixture
def impatient():
    """Threads take turns a thousand times as often as usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)


def test_nothing_is_lost_with_eight_threads(impatient):
    """The total weight of the slowest memory depends on the number of observations, not on their order."""
    tracker, begin, wrong = latfit.Tracker(initial=1.0, cutoff=60.0), threading.Barrier(THREADS), []

    def client(k):
        rng = np.random.default_rng(k)
        begin.wait()
        for i in range(EACH):
            t, x = tracker.next(), float(rng.lognormal(0, 1))
            if not 0 < t <= 60:
                wrong.append(t)
            tracker.observe(min(x, t), "completed" if x <= t else "censored")
            if i % 100 == 99:
                tracker.interval()
                latfit.Tracker.from_json(tracker.to_json())

    threads = [threading.Thread(target=client, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert tracker.observations == THREADS * EACH
    tracker._flush()
    memories, gamma = tracker._memories, 2 ** (-1 / 8192)
    whole = memories.whole[-1] / memories.weight[-1]
    assert whole == pytest.approx((1 - gamma ** (THREADS * EACH)) / (1 - gamma), rel=1e-9)
    held = memories.counts[:, -1].sum() + memories.lost[-1]
    assert held == pytest.approx(memories.whole[-1], rel=1e-9)
    assert 0.5 < tracker.timeout < 5


def test_a_copy_is_the_same_tracker():
    tracker = latfit.Tracker(initial=1.0, cutoff=60.0)
    for x in np.random.default_rng(1).lognormal(0, 1, 200).tolist():
        tracker.observe(min(x, 5.0), "completed" if x <= 5 else "censored")
    for other in (pickle.loads(pickle.dumps(tracker)), copy.deepcopy(tracker)):
        assert other.to_json() == tracker.to_json()
        other.observe(1.0)
        assert other.observations == tracker.observations + 1
