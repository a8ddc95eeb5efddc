"""Benchmarks as classes whose setup is a constructor, and the figures of what is said of them."""

from __future__ import annotations

import ast

from tools.experiments.benchmark_costs import Answer, answers, as_class, figures, in_part

_CODE = """class Sums:
    def time_sum(self, n, kind):
        np.sum(self.values)

    def setup(self, n, kind):
        self.values = np.ones(n)
"""


def _row(n: int) -> dict[str, object]:
    return {
        "repo": "owner/bench", "name": "bench.Sums.time_sum", "param_names": ["n", "kind"],
        "params": [str(n), "'a'"], "seconds": n * 1e-9, "project": "numpy",
    }  # fmt: skip


def test_parameters_become_constants_of_setup_and_of_the_timed_method() -> None:
    text = as_class(_CODE, ["n", "kind"], ["1000", "'a'"])
    assert text is not None
    [node] = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    functions = {item.name: ast.unparse(item) for item in node.body if isinstance(item, ast.FunctionDef)}
    assert functions["__init__"].splitlines()[1:3] == ["    n = 1000", "    kind = 'a'"]
    assert "    n = 1000" in functions["time_sum"]
    assert as_class("def time_it(:", [], []) is None
    assert as_class("x = 1", [], []) is None


def test_a_cost_that_the_text_fixes_grows_with_the_parameter() -> None:
    codes = {"owner+bench": {"bench.Sums.time_sum": {"code": _CODE}}}
    found = list(answers([_row(n) for n in (1_000, 100_000, 10_000_000)], codes))
    assert [answer.band is not None for answer in found] == [True] * 3
    assert found[2].median > 50 * found[1].median
    lines = list(figures(found, 1.0))
    assert lines[0].startswith("3 rows, 100.0% answered")
    assert lines[1].startswith("1 series")
    assert lines[1].endswith("100.0%")


def test_a_wrong_growth_counts_as_wrong() -> None:
    found = [Answer("a", (str(n),), n * 1e-9, 1e-6, (1e-7, 1e-5), ()) for n in (10, 1_000, 100_000)]
    assert list(figures(found, 1.0))[1].endswith("0.0%")


def test_a_module_is_in_one_half() -> None:
    assert in_part(_row(1)) == in_part(_row(5)) in ("development", "exam")
