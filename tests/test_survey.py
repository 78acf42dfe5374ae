"""Ordinary logs: not one failure, no warning of a library, no answer that contradicts itself."""

import pytest

from survey import problems


@pytest.mark.parametrize("block", range(10))
def test_ordinary_logs(block, tmp_path):
    found = [told for seed in range(30 * block, 30 * block + 30) for told in problems(seed, tmp_path)]
    assert not found, "\n".join(found)
