"""Histograms among the logs of a batch."""

import pytest

from latfit.batch import run_batch
from latfit.buckets import Histogram
from latfit.histograms import guaranteed_timeout


def write(path, **counts):
    rows = [
        f"{site},{le},{n}\n" for site, ns in counts.items() for le, n in zip(("1", "2", "4", "+Inf"), ns, strict=True)
    ]
    path.write_text("site,le,count\n" + "".join(rows))


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "monday.csv", a=(0, 50, 20, 3), b=(0, 5, 1, 0))
    write(tmp_path / "tuesday.csv", a=(0, 40, 10, 2), b=(0, 20, 10, 9))
    return tmp_path


def test_histograms_of_one_group_add_up(folder):
    result = run_batch(folder, by="site", cost=0.1, resamples=0, test=False, workers=1)
    rows = {row["site"]: row for row in result.rows}
    assert not result.bad_files
    assert not result.bad_groups
    for site, counts, beyond in (("a", [0, 90, 30], 5), ("b", [0, 25, 11], 9)):
        found = guaranteed_timeout(Histogram.of([1, 2, 4], counts, n_inf=beyond), cost=0.1)
        row = rows[site]
        assert (row["probes"], row["basis"]) == (sum(counts) + beyond, "histogram")
        assert (row["timeout"], row["guaranteed"]) == (found.optimum.timeout, found.guaranteed)
        assert (row["least"], row["worst_regret"]) == (found.least, found.worst_regret)
        assert row["error"] is None


def test_logs_and_histograms_together(folder):
    (folder / "probes.csv").write_text("site,latency\n" + "".join(f"c,{1 + k % 7}\n" for k in range(40)))
    result = run_batch(folder, by="site", resamples=0, test=False, workers=1)
    assert [row["site"] for row in result.rows] == ["c", "a", "b"]
    assert result.to_frame()["guaranteed"].notna().tolist() == [False, True, True]


def test_histograms_that_do_not_add_up_are_reported(folder):
    (folder / "other.csv").write_text("site,le,count\na,1.5,9\na,3,9\na,+Inf,0\n")
    result = run_batch(folder, by="site", resamples=0, test=False, workers=1)
    assert [name for name, _ in result.bad_groups] == ["site=a"]
    assert "do not fit" in result.bad_groups[0][1]


def test_a_missing_label_is_an_error(folder):
    with pytest.raises(Exception, match="no histogram has the label 'queue'"):
        run_batch(folder, by="queue", resamples=0, test=False, workers=1)
