"""Files are written whole, and are on the disk before they take their name."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from latfit._system import whole_file, whole_files
from latfit.errors import LatfitError
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


def test_files_that_belong_together_take_their_names_together(tmp_path, monkeypatch):
    """All are on the disk before the first takes its name, and a signal waits until the last has it."""
    done, replace = [], os.replace
    paths = [tmp_path / name for name in ("a", "b", "c")]
    for path in paths:
        path.write_text("old")

    def renamed(part, path):
        done.append([path.read_text() for path in paths])
        signal.raise_signal(signal.SIGTERM)
        replace(part, path)

    monkeypatch.setattr(os, "replace", renamed)
    before = signal.signal(signal.SIGTERM, lambda *_: done.append([path.read_text() for path in paths]))
    try:
        with whole_files(paths) as parts:
            for part in parts:
                part.write_text("new")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert done == [["old"] * 3, ["new", "old", "old"], ["new", "new", "old"], ["new"] * 3]


def _half(paths):
    """Write the first, and find that the second is a folder."""
    with whole_files(paths) as parts:
        parts[0].write_text("new")
        parts[1].unlink()
        parts[1].mkdir()
        parts[1].write_text("x")


def test_one_failed_write_leaves_all_files_unchanged(tmp_path):
    paths = [tmp_path / name for name in ("a", "b", "c")]
    paths[0].write_text("old")
    with pytest.raises(LatfitError, match="b: cannot be written"):
        _half(paths)
    assert [path.name for path in sorted(tmp_path.iterdir()) if path.is_file()] == ["a"]
    assert paths[0].read_text() == "old"


def test_a_tally_copies_the_arrays_of_its_caller():
    values, counts = np.array([1.0, 2.0]), np.array([3, 4])
    tally = Tally(values, counts)
    values[0], counts[0] = 1.5, 7
    assert (tally.values.tolist(), tally.counts.tolist()) == ([1, 2], [3, 4])
    assert not tally.values.flags.writeable
    assert not Tally.of([2.0, 1.0]).values.flags.writeable
