"""Damaged logs, laws and options: answered or refused, never a traceback, never a row unaccounted for.

scripts/fuzz runs the same cases by the thousand; a seed that fails there fails here with `broken(make_case(seed), …)`.
"""

import gzip
import random

import pytest

from conftest import DATA
from fuzzing.cases import KINDS, LOG, Case, make_case, taken_apart
from fuzzing.count import count_rows
from fuzzing.logs import MAKERS
from fuzzing.rule import broken, broken_in_a_shell

CHUNK = 25


@pytest.mark.parametrize("first", range(0, 500, CHUNK))
def test_500_cases(first, tmp_path):
    told = {seed: broken(make_case(seed), tmp_path) for seed in range(first, first + CHUNK)}
    assert {seed: wrong for seed, wrong in told.items() if wrong} == {}


@pytest.mark.parametrize("seed", range(1000, 1020))
def test_20_cases_through_the_shell(seed, tmp_path):
    kinds = [kind for kind in KINDS if kind != "fixture"]
    assert broken_in_a_shell(make_case(seed, kinds[seed % len(kinds)]), tmp_path) == []


def test_a_seed_is_always_the_same_case():
    assert [make_case(seed) for seed in range(50)] == [make_case(seed) for seed in range(50)]
    assert {make_case(seed).kind for seed in range(200)} == set(KINDS)


@pytest.mark.parametrize("kind", MAKERS)
def test_logs_without_damage_are_read_whole(kind, tmp_path):
    """Every row of a valid log is usable: the cases begin with logs that latfit can read."""
    for seed in range(5):
        log = MAKERS[kind](random.Random(seed), 20)
        content = "\n".join(log.lines()).encode() + b"\n"
        case = Case(seed, kind, (), ("timeout", LOG, "--json"), content, log.format, count_rows(log, content))
        assert case.rows == (20 if kind != "htcondor" else case.rows)
        assert broken(case, tmp_path) == []


@pytest.mark.parametrize(
    ("name", "rows"),
    [("probes.csv", 6), ("pairs.tsv", 5), ("requests.jsonl", 5), ("jobs.swf", 8), ("jobs.gwf", 3), ("results.jtl", 6),
     ("sacct.txt", 2), ("sacct-header.txt", 8), ("yearless.log", 4), ("iso.log", 2)],
)  # fmt: skip
def test_the_independent_counter_counts(name, rows, tmp_path):
    content = (DATA / name).read_bytes()
    log = taken_apart(content.decode(), name)
    assert count_rows(log, content) == rows
    case = Case(0, "fixture", (), ("timeout", LOG, "--json"), content, log.format, rows)
    assert broken(case, tmp_path) == []
    wrong = Case(0, "fixture", (), ("timeout", LOG, "--json"), content, log.format, rows + 1)
    assert any("accounted for" in told for told in broken(wrong, tmp_path))


@pytest.mark.parametrize(
    ("head", "fill"),
    [(b"latency\n", b"x"), (b"latency\n", b"\n"), (b"latency,site\n1,a\n", b'"'), (b'{"latency": 1}\n', b"["),
     (b"latency\n" + b"1\n" * 50_000, b"\0"), (b"PAR1", b"\0")],
)  # fmt: skip
@pytest.mark.parametrize("pack", [bytes, lambda data: gzip.compress(data, 1)], ids=["plain", "gzip"])
def test_64_mib_of_nothing_are_bounded(head, fill, pack, tmp_path):
    case = Case(0, "csv", (), ("timeout", LOG), pack(head + fill * (1 << 26)))
    assert broken_in_a_shell(case, tmp_path) == []
