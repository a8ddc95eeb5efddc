"""Sizes of functions: from comments, settings and measurements, in this order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.queries.function_sizes import (
    SizeRules,
    analysis_sizes,
    input_names_of,
    inputs_of,
    is_size_of,
    known_sizes,
    recorded_sizes,
    with_sizes,
)
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import Anchor, SizedCalls, SizeSpread, SizeValue

from tests.rlm_core.inference.test_anchoring import cost

TOTAL = "def total(items: list[int]) -> int:\n    return sum(item * item for item in items)\n"
OTHER = "def other(items: list[int]) -> int:\n    return sum(item * item for item in items)\n"
RULES = SizeRules({"items": (5.0, "items"), "rows": (2.0, "src/*.py")}, {"shop.total": {"items": 7.0}})


def analysed(source: str, rules: SizeRules | None = None, path: Path | None = None) -> dict[str, AnalysedUnit]:
    analyser = Analyser(size_rules=lambda file: rules or SizeRules())
    return {entry.unit.qualname: entry for entry in analyser.analyse(ParsedSource(source.encode(), "python"), path)}


def sizes(source: str, name: str = "total", rules: SizeRules | None = None) -> dict[str, tuple[float, str, str]]:
    found = analysed(source, rules)[name].code.sizes
    return {size.name: (size.value, size.source, size.rule) for size in found}


def test_the_settings_give_sizes_by_function_then_by_glob_and_name() -> None:
    assert RULES.of("shop", "total")["items"] == SizeValue("items", 7.0, "settings", "shop.total")
    assert RULES.of("shop", "other")["items"] == SizeValue("items", 5.0, "settings", "items")
    assert RULES.of("", "total")["rows"] == SizeValue("rows", 2.0, "settings", "src/*.py")
    assert SizeRules(by_function={"total": {"items": 7.0}}).of("any.module", "total")["items"].value == 7.0


def test_a_comment_takes_precedence_over_the_settings() -> None:
    assert sizes(TOTAL, rules=RULES)["items"] == (5.0, "settings", "items")
    assert sizes(f"# rlm: sizes items=10k\n{TOTAL}", rules=RULES)["items"][:2] == (10_000, "comment")


def test_the_qualified_name_in_the_settings_has_the_module(tmp_path: Path) -> None:
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").write_text("")
    path = package / "cart.py"
    path.write_text(TOTAL)
    rules = SizeRules(by_function={"shop.cart.total": {"items": 9.0}})
    [size] = analysed(TOTAL, rules, path)["total"].code.sizes
    assert (size.value, size.rule) == (9.0, "shop.cart.total")


def test_only_sizes_that_the_cost_depends_on_are_known() -> None:
    rules = SizeRules({"items": (5.0, "items"), "other": (6.0, "other")})
    assert list(sizes(TOTAL, rules=rules)) == ["items"]
    assert not sizes("def total(items: list[int]) -> int:\n    return 1\n", rules=rules)


def test_recorded_sizes_count_where_nothing_else_is_given() -> None:
    spread = SizeSpread(3, 12, 40)
    measured = (Anchor(replace(cost(), sizes=(("items", spread),))),)
    assert recorded_sizes(measured) == {"items": spread}
    assert known_sizes(["items"], {}, measured) == (SizeValue("items", 12, "recorded"),)
    given_size = SizeValue("items", 5, "settings", "items")
    assert known_sizes(["items", "n"], {"items": given_size}, measured) == (given_size,)


def test_the_sizes_of_measured_calls_count_as_inputs() -> None:
    work = analysed(TOTAL)["total"].code.work
    measured = (Anchor(replace(cost(), sized=(SizedCalls({"deep": 3.0}, 1.0, 2),))),)
    assert input_names_of(TOTAL, work, measured) == ["items", "deep"]


def test_the_size_of_a_local_value_is_that_of_its_input() -> None:
    source = "def total(rows: list[list[int]]) -> int:\n    return sum(x for row in rows for x in row)\n"
    work = analysed(source)["total"].code.work
    assert "rows[]" in inputs_of(source, work).values()


def test_an_edit_of_a_comment_changes_the_sizes() -> None:
    analyser = Analyser()
    first, second = (
        analyser.analyse(ParsedSource(f"# rlm: sizes items={value}\n{TOTAL}".encode(), "python"), name="a")
        for value in ("1k", "2k")
    )
    assert [entry.code.sizes[0].value for entry in (*first, *second)] == [1000, 2000]


ROWS = "def f(a) -> int:\n    t = 0\n    for row in a:\n        for x in row:\n            t += 1\n    return t\n"
AXES = "def f(a) -> int:\n    t = 0\n    for i in range(a.shape[0]):\n        t += 1\n    return t\n"
BOTH = "def f(a) -> int:\n    rows, columns = a.shape\n    return sum(1 for i in range(rows) for j in range(columns))\n"
FRAME = "def f(df) -> int:\n    t = 0\n    for i, row in df.iterrows():\n        t += 1\n    return t\n"
ARRAY = {"a": 600.0, "a.0": 20.0, "a.1": 30.0}  # as it is recorded: the elements, and the axes


def recorded(**sizes: float) -> tuple[Anchor, ...]:
    return (
        Anchor(replace(cost(), sizes=tuple((name, SizeSpread(1, size, 2 * size)) for name, size in sizes.items()))),
    )


@pytest.mark.parametrize(
    ("text", "written", "used"),
    [
        # A loop over an array runs once per row, not per element.
        (ROWS, {}, {"a": 20.0, "row": 30.0}),
        (ROWS, {"a.0": 5.0}, {"a": 5.0, "row": 30.0}),
        (ROWS, {"a": 7.0, "a[]": 8.0}, {"a": 7.0, "row": 8.0}),
        (AXES, {}, {"a.shape[]": 20.0}),
        (AXES, {"a.0": 5.0}, {"a.shape[]": 5.0}),
        (AXES, {"a": 6.0}, {"a.shape[]": 6.0}),
        (BOTH, {}, {"rows": 20.0, "columns": 30.0}),
        (BOTH, {"a.1": 3.0}, {"rows": 20.0, "columns": 3.0}),
    ],
)
def test_names_of_axes_meet_what_is_recorded_and_written(
    text: str, written: dict[str, float], used: dict[str, float]
) -> None:
    code = analysed(text)["f"].code
    given = {name: SizeValue(name, value, "comment") for name, value in written.items()}
    sizes = known_sizes(input_names_of(code.text, code.work), given, recorded(**ARRAY))
    assert analysis_sizes(code, sizes) == used
    assert {size.name for size in sizes} <= {*ARRAY, *written}


def test_the_rows_of_a_frame_are_its_length() -> None:
    code = analysed(FRAME)["f"].code
    [size] = known_sizes(input_names_of(code.text, code.work), {}, recorded(**{"df.rows": 50.0, "df.columns": 3.0}))
    assert (size.name, analysis_sizes(code, [size])) == ("df.rows", {"df": 50.0})


def test_a_size_in_a_question_replaces_other_sizes_of_the_same_input() -> None:
    code = replace(analysed(ROWS)["f"].code, sizes=(SizeValue("a", 7.0, "comment"), SizeValue("a[]", 8.0, "comment")))
    asked = with_sizes(code, {"a.0": 1000.0, "other": 5.0})
    assert {(size.name, size.value) for size in asked.sizes} == {("a.0", 1000.0), ("a[]", 8.0)}
    assert is_size_of("a.0", ["a"])
    assert not is_size_of("a.2", ["a", "a[]"])
    assert with_sizes(code, {"other": 5.0}) == code
