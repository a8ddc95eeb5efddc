"""Values of expressions that name what a benchmark runs at: Python's, or an error where they depend on what runs."""

from __future__ import annotations

from typing import Any

import pytest
from rlm_core.queries.literals import constants, value_of
from rlm_core.source.parsed import ParsedSource

NAMES = {"N": 3, "sizes": [1, 2], "dtype": "torch.float16"}


def value(text: str) -> Any:
    (statement,) = ParsedSource(f"x = {text}\n".encode(), "python").root.named_children
    return value_of(statement.named_children[0].child_by_field_name("right"), NAMES)


@pytest.mark.parametrize(
    "text",
    ["0x10", "-2 ** 3", "N * 128 + 1", "[2 ** i for i in range(4, 7)]", "[1, (2, 'a' 'b')], None", "list(range(1000))",
     "int(1e3) // 7", "tuple([True])", "[size\n for size in range(800)]", "dict()", "{'a': N, 'b': {}}", "(1,\n 2)"],
)  # fmt: skip
def test_plain_expressions_have_pythons_value(text: str) -> None:
    expected = eval(f"({text})", dict(NAMES))  # from our own list, to compare with
    assert value(text) == (list(expected) if isinstance(expected, range) else expected)


def test_dotted_names_are_their_text_and_entries_that_are_not_known_are_left_out() -> None:
    assert value("[torch.float16, dtype]") == ["torch.float16", "torch.float16"]
    assert value("{'a': 1, 'b': unknown, 'c': {'d': f(2), 'e': tl.int8}}") == {"a": 1, "c": {"e": "tl.int8"}}


@pytest.mark.parametrize(
    "text",
    ["unknown", "[1, unknown]", "f(1)", "1 if unknown else 2", "[i for i in range(9) if unknown]", "N and 2", "x.y()",
     "range(10 ** 9)", "[i for i in range(5000)]", "9 ** 9 ** 9", "torch.rand(3)", "f'{N}'", "f(x).y", "b'a'",
     "+".join(["N"] * 4_000), "(" * 90 + "1" + ")" * 90],
)  # fmt: skip
def test_what_depends_on_what_runs_or_is_too_large_has_no_value(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        value(text)


def test_constants_of_a_file_are_known_next_to_those_that_are_not() -> None:
    text = "cache = dict()\nempty = list()\nsize = 4\nname = f()\nsize_of_rows = size * 2\nsize = g()\n"
    root = ParsedSource(text.encode(), "python").root
    assert constants(root) == {"cache": {}, "empty": [], "size_of_rows": 8}
