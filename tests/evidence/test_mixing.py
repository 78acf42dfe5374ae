"""Which column explains the latencies: limits counted by hand, levels and variances by plain loops."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy import stats

from latfit.evidence import Observations, mixing
from latfit.evidence.mixing import Mixing, explained, without_level
from latfit.evidence.observations import Column


def probes(latency, times=False, **columns):
    latency = np.asarray(latency, dtype=float)
    named = {
        name: Column(name, np.asarray(codes), tuple(f"g{code}" for code in range(max(codes) + 1)))
        for name, codes in columns.items()
    }
    when = np.arange(float(latency.size)) if times else None
    return Observations(latency, np.zeros(latency.size, int), when, named)


def halves(n):
    return np.arange(n) // (n // 2) % 2


def test_eight_probes_are_the_fewest():
    """Two groups apart in every probe: F = 19.2 on 1 and 6 degrees of freedom, p = .0047; of seven p = .012."""
    found = mixing(probes(np.arange(8), host=halves(8)))
    assert found.p_value == pytest.approx(stats.f.sf(19.2, 1, 6), rel=1e-9)
    assert stats.f_oneway([1, 2, 3], [4, 5, 6, 7]).pvalue < 0.015
    assert mixing(probes(np.arange(7), host=np.arange(7) > 2)) is None


@pytest.mark.parametrize("n", [28, 29, 30])
def test_of_fewer_than_thirty_only_what_was_asked_for_counts(n):
    x = np.arange(n)
    assert mixing(probes(x, host=x > n // 2)).column.name == "host"
    assert (mixing(probes(x, kind=x > n // 2)) is not None) == (n >= 30)


@pytest.mark.parametrize(("n", "p", "said"), [(29, 0.01, True), (29, 0.03, False), (31, 0.01, False),
                                              (31, 7e-4, True), (31, 1.5e-3, False)])  # fmt: skip
def test_less_evidence_is_enough_of_few(n, p, said):
    """Of fewer than thirty a p-value below .02 is suspected, of more one below .001 counts."""
    rng, codes, found = np.random.default_rng(1), np.arange(n) % 2, 1.0
    while not 0.75 * p < found < 1.3 * p:
        x = rng.normal(codes, 1)
        ranks = stats.rankdata(x)
        found = stats.f_oneway(ranks[codes == 0], ranks[codes == 1]).pvalue
    assert (mixing(probes(np.exp(x), host=codes)) is not None) == said


def test_more_columns_need_more_evidence():
    """p is multiplied by the number of columns: .0047 of one host is suspected, of five columns not (.0235)."""
    names = ["host", "site", "url", "path", "target"]
    dull = np.arange(8) % 2
    assert mixing(
        probes(np.arange(8), **dict.fromkeys(names[:4], dull) | {"host": halves(8)})
    ).p_value == pytest.approx(4 * stats.f.sf(19.2, 1, 6))
    assert mixing(probes(np.arange(8), **dict.fromkeys(names, dull) | {"host": halves(8)})) is None


@pytest.mark.parametrize(("shift", "said"), [(0.24, False), (0.4, True)])
def test_a_small_share_does_not_matter(shift, said):
    """About 1.3 % and 3.4 % of the rank variance, both far from chance in ten thousand probes."""
    rng, codes = np.random.default_rng(2), np.arange(10_000) % 2
    x = rng.normal(shift * codes, 1)
    share, p = explained(stats.rankdata(x), codes)
    assert p < 1e-20
    assert 0.01 < share < 0.04
    assert (mixing(probes(np.exp(x), place=codes)) is not None) == said


@pytest.mark.parametrize(("within", "chosen"), [(0.3, "region"), (2.0, "rack")])
def test_the_fewest_groups_of_those_that_explain_nearly_as_much(within, chosen):
    """Eight racks in two regions: the regions tell nearly all where racks of one are alike, else the racks do."""
    rng, rack = np.random.default_rng(3), np.arange(4000) % 8
    x = np.exp(rng.normal(2.0 * (rack % 2) + within * (rack // 2), 1))
    found = mixing(probes(x, rack=rack, region=rack % 2, odd=rng.integers(0, 3, 4000)))
    assert found.column.name == chosen
    assert found.groups == (2 if chosen == "region" else 8)
    shares = {name: explained(stats.rankdata(x), codes)[0] for name, codes in (("rack", rack), ("region", rack % 2))}
    assert found.share == shares[chosen]
    assert (shares["region"] >= 0.7 * shares["rack"]) == (chosen == "region")


def test_a_column_that_tells_the_time_explains_nothing():
    """A level that rises: the column of early and late says what the time does, unless the log has no times."""
    rng, n = np.random.default_rng(4), 2000
    x, late = np.exp(rng.normal(3.0 * np.arange(n) / n, 1)), np.arange(n) * 2 // n
    assert mixing(probes(x, shift=late)).column.name == "shift"
    assert mixing(probes(x, times=True, shift=late)) is None


@pytest.mark.parametrize("n", [1, 19, 20, 21, 399, 880, 2000])
def test_the_level_by_a_loop(n):
    ranks = np.random.default_rng(n).permutation(n) + 1.0
    half = max(10, n // 40) // 2
    want = ranks.copy()
    if n >= 4 * half:
        for i in range(n):
            around = [ranks[j] for j in range(max(0, i - half), min(n, i + half + 1)) if j != i]
            want[i] = ranks[i] - sum(around) / len(around)
    np.testing.assert_allclose(without_level(ranks), want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("sizes", [(5, 7), (2, 2), (3, 0, 4, 9), (4, 1, 5), (2, 1, 1), (1, 1, 1), (6,), (3, 3, 0)])
def test_variance_between_groups_by_a_loop(sizes):
    rng = np.random.default_rng(len(sizes))
    codes = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    values = rng.normal(codes, 1.0)
    groups = [values[codes == code] for code in range(len(sizes)) if sizes[code]]
    n, k = values.size, len(groups)
    share, p = explained(values, codes)
    if k < 2 or k >= n - 1:
        assert (share, p) == (0.0, 1.0)
        return
    within = sum(sum((v - group.mean()) ** 2 for v in group) for group in groups) / (n - k)
    total = sum((v - values.mean()) ** 2 for v in values)
    between = total - (n - k) * within
    assert share == pytest.approx(max(0.0, (between - (k - 1) * within) / total), rel=1e-9)
    assert p == pytest.approx(stats.f_oneway(*groups).pvalue, rel=1e-9)


def test_groups_apart_without_any_spread():
    share, p = explained(np.array([1.0, 1, 1, 2, 2, 2]), np.array([0, 0, 0, 1, 1, 1]))
    assert (share, p) == (pytest.approx(1.0), pytest.approx(0.0, abs=1e-100))


def test_what_is_told():
    column = Column("site", np.arange(3), ("a", "b", "c"))
    assert [Mixing(column, 0.5, groups, 0.1).few for groups in (2, 30, 31)] == [True, True, False]
    assert Mixing(column, 0.5, 3, 1e-4, 1.7, "b").to_dict() == {
        "column": "site", "share": 0.5, "groups": 3, "worst_cost": 1.7, "harmed": "b", "p_value": 1e-4}  # fmt: skip
    with pytest.raises(FrozenInstanceError):
        Mixing(column, 0.5, 3, 0.1).share = 1.0
