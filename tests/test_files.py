"""Files are written whole, and are on the disk before they take their name."""

import os
from pathlib import Path

import numpy as np

from latfit.files import whole_file
from latfit.sample import Tally


def test_bytes_are_on_the_disk_before_the_name_and_the_name_before_the_end(tmp_path, monkeypatch):
    done = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (done.append(str(Path(f"/proc/self/fd/{fd}").readlink())), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda a, b: (done.append("replace"), replace(a, b)))
    with whole_file(tmp_path / "x.txt") as part:
        part.write_text("all of it")
    assert done == [str(part), "replace", str(tmp_path)]
    assert Path(tmp_path / "x.txt").read_text() == "all of it"


def test_a_tally_leaves_the_arrays_of_its_caller_alone():
    values, counts = np.array([1.0, 2.0]), np.array([3, 4])
    tally = Tally(values, counts)
    values[0], counts[0] = 1.5, 7
    assert (tally.values.tolist(), tally.counts.tolist()) == ([1, 2], [3, 4])
    assert not tally.values.flags.writeable
    assert not Tally.of([2.0, 1.0]).values.flags.writeable
