"""What speed costs: the fast paths in latfit, how much code each is, and the plain reference it is tested against."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

REPO = Path(__file__).parent.parent.parent


class FastPath(NamedTuple):
    """Where it is (a whole file, or what is named in it), what it must agree with, and which tests say so."""

    told: str
    file: str
    names: tuple[str, ...]
    reference: str
    tests: tuple[str, ...]  # file::test


FAST_PATHS = (
    FastPath("curves of many samples as rows of arrays", "curve.py", (),
             "the empirical law of each sample, and the formula of the rule",
             ("test_curve.py::test_rows_are_the_laws_of_their_samples",
              "test_curve.py::test_rescaling_the_outliers_is_that_of_the_law",
              "test_curve.py::test_the_robust_rule_is_its_formula",
              "decision/test_one_answer.py::test_deciding_many_at_once_equals_deciding_each_alone")),
    FastPath("batched arrays of samples", "laws/samples.py", (), "the samples fitted one by one",
             ("fitting/test_mle.py::test_a_batch_is_its_samples", "fitting/test_mle.py::test_weights_are_copies")),
    FastPath("batched Newton with ρ profiled out", "fitting/likelihood.py", (),
             "the formula written out, differences for its derivatives, and a general optimiser",
             ("fitting/test_likelihood.py::test_the_value_is_that_of_the_formula",
              "fitting/test_likelihood.py::test_derivatives",
              "fitting/test_mle.py::test_general_censoring_against_an_optimiser")),
    FastPath("kernels of the laws", "laws",
             ("Jet", "Kernel", "LocationScaleKernel", "_LognormalKernel",
              "_WeibullKernel", "_LogLogisticKernel", "_ExponentialKernel", "_GammaKernel", "_ParetoKernel",
              "_TruncatedGaussianKernel", "log_mills", "log_normaliser", "_UniformKernel", "_HybridKernel"),
             "the laws themselves, scipy, lifelines and surpyval",
             ("fitting/test_likelihood.py::test_kernel_agrees_with_the_law",
              "fitting/test_mle.py::test_no_worse_than_scipy",
              "fitting/test_rivals.py::test_lifelines", "fitting/test_rivals.py::test_surpyval")),
    FastPath("least squares on blocks of steps", "fitting/least_squares.py",
             ("Target", "finalists", "levenberg_marquardt", "_normal_equations"), "scipy `least_squares` on every step",
             ("fitting/test_least_squares.py::test_against_scipy",)),
    FastPath("batched refits and distances for p-values", "fitting/kolmogorov.py",
             ("resampled_distances", "_refitted", "_row_gaps", "standard_gaps", "_even_gaps"),
             "scipy, fitting one resample at a time",
             ("fitting/test_goodness.py::test_standard_resamples_against_scipy",
              "fitting/test_goodness.py::test_size")),
    FastPath("resamples by numpy's generators and tables", "fitting/simulate.py", (), "the cdf of each law",
             ("fitting/test_goodness.py::test_draws_follow_the_law",
              "fitting/test_goodness.py::test_resamples_look_like_the_log")),
    FastPath("bootstrap of binned counts", "resample.py", ("Bins",),
             "a loop of resample, blur, exact optimum; the truth in simulations",
             ("test_resample.py::test_bins_agree_with_a_plain_loop",
              "test_resample.py::test_coverage_and_regret")),
    FastPath("laws of many groups in one batch", "fitting/ranking.py", ("fit_many",),
             "the groups fitted and tested one by one",
             ("decision/test_one_answer.py::test_testing_many_at_once_equals_testing_each_alone",)),
    FastPath("ρ in closed form", "fitting/likelihood.py", ("profile_rho",), "bisection of the score",
             ("fitting/test_likelihood.py::test_ratio_with_one_time_of_censoring_by_a_search",
              "fitting/test_likelihood.py::test_profiled_ratio_is_the_best")),
    FastPath("many timeouts replayed at once", "evidence/replay.py", ("_Track",), "job after job in plain Python",
             ("evidence/test_replay.py::test_against_plain_lines",)),
    FastPath("all jobs of a replayed policy at once", "evidence/replay.py", ("_Copies",),
             "job after job, attempt after attempt in plain Python",
             ("evidence/test_policies.py::test_against_plain_lines",
              "evidence/test_policies.py::test_a_timeout_is_that_of_the_replay")),
    FastPath("all rounds of a resubmission at once", "restart/policies/overlap.py", ("Resubmit",),
             "copies drawn one by one, and published figures",
             ("restart/test_policies.py::test_every_policy_against_monte_carlo",
              "restart/test_policies.py::test_golden")),
    FastPath("repeated ids by their hashes", "logs/records.py", ("RepeatedIds",), "a set of the ids",
             ("logs/test_arrays.py::test_repeated_ids_are_those_of_a_set",)),
    FastPath("groups by codes", "table.py", ("Groups",),
             "pandas groupby on the text",
             ("logs/test_arrays.py::test_groups_are_those_of_pandas",
              "logs/test_arrays.py::test_blocks_with_different_words_stay_categories")),
    FastPath("CSV in blocks by Arrow", "logs/delimited.py", ("delimited_tables", "_fast"),
             "the same log row by row, and read whole",
             ("logs/test_formats.py::test_whole_blocks_and_single_rows_give_the_same_log",
              "logs/test_formats.py::test_chunks_merge_to_the_same_sample")),
    FastPath("work in threads", "_system.py", ("in_threads", "usable_cores"), "the same work on one thread",
             ("test_threads.py::test_the_number_of_threads_changes_no_number",)),
)  # fmt: skip


def _code_lines(nodes: list[ast.stmt], text: list[str]) -> int:
    """Lines that are neither blank, comment nor docstring."""
    kept: set[int] = set()
    for node in nodes:
        kept.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        for inner in ast.walk(node):
            if (
                isinstance(inner, ast.Expr)
                and isinstance(inner.value, ast.Constant)
                and isinstance(inner.value.value, str)
            ):
                kept.difference_update(range(inner.lineno, (inner.end_lineno or inner.lineno) + 1))
    return sum(1 for k in kept if text[k - 1].strip() and not text[k - 1].strip().startswith("#"))


def lines_of(path: FastPath) -> tuple[int, list[str]]:
    """How many lines of code it is, and the names that are not there any more."""
    place = REPO / "latfit" / path.file
    total, gone = 0, set(path.names)
    for file in sorted(place.glob("*.py")) if place.is_dir() else [place] * place.exists():
        source = file.read_text(encoding="utf-8")
        tree = ast.parse(source)
        nodes = [node for node in tree.body if not path.names or getattr(node, "name", None) in path.names]
        gone -= {getattr(node, "name", "") for node in nodes}
        total += _code_lines(nodes, source.splitlines())
    return total, sorted(gone) or [path.file] * (not total)


@cache
def _tests(file: str) -> frozenset[str]:
    path = REPO / "tests" / file
    tree = ast.parse(path.read_text(encoding="utf-8")) if path.exists() else ast.Module([], [])
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def table() -> list[str]:
    """The table as Markdown; what is named here and gone from the code is said so."""
    found = ["| fast path | where | lines of code | must agree with | tested by |", "|---|---|---|---|---|"]
    total = 0
    for path in FAST_PATHS:
        lines, gone = lines_of(path)
        total += lines
        where = f"`latfit/{path.file}`" + "".join(f" **gone: {name}**" for name in gone)
        missing = [test for test in path.tests if test.split("::")[1] not in _tests(test.split("::")[0])]
        tests = ", ".join(f"`{test}`" + " **missing**" * (test in missing) for test in path.tests)
        found.append(f"| {path.told} | {where} | {lines} | {path.reference} | {tests} |")
    everything = (REPO / "latfit").rglob("*.py")
    whole = sum(_code_lines(ast.parse(text).body, text.splitlines()) for text in map(Path.read_text, everything))
    return [
        *found,
        "",
        f"{total} of latfit's {whole} lines of code; blank lines, comments and docstrings do not count.",
    ]
