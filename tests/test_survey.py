"""Ordinary random logs: 12 here, as many as you like by `scripts/survey`."""

import pytest

from survey import problems


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 12, 4))
def test_ordinary_logs(first, tmp_path):
    """No failure, no warning of a library, no figure that a plain computation contradicts."""
    found = [told for seed in range(first, first + 4) for told in problems(seed, tmp_path, every=False)]
    assert not found
