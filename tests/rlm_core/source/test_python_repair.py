"""What stands around an unfinished statement is read as if the statement were not there."""

from __future__ import annotations

import sysconfig
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.python_repair import without_unfinished
from rlm_core.source.units import find_units

BEFORE = "def before(n):\n    return [n]\n\n"
AFTER = '\n\nclass After:\n    def method(self):\n        """Doc."""\n        return {"a": [1]}\n'
UNFINISHED = [
    "x = foo(bar, ",
    "x = [1, (2, 3]",
    "x = {1: [",
    "x = 'abc",
    "x = f\"{a['b']}",
    'x = """abc',
    "'''",
    "return [x for",
    "if (a and",
    "if a",
    "for ",
    "with open(path",
    "def g(",
    "def g(a, b",
    "class B(",
    "@decorated(",
    "x = )",
    "x = foo(a))",
    "foo(a,\n        b,",
    "x = (  # )",
    "x = n if",
    "x = n +  # more",
    "raise ValueError from",
    "n.",
]
STANDARD = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))


def units(text: str) -> dict[str, str]:
    return {unit.qualname: unit.text for unit in find_units(ParsedSource(text.encode(), "python"))}


@pytest.mark.parametrize(("head", "last"), [("", ""), ("def typed(n):\n    ", "    return n\n")])
def test_functions_around_an_unfinished_line_keep_their_text(head: str, last: str) -> None:
    around = units(BEFORE + AFTER)
    found = {line: units(f"{BEFORE}{head}{line}\n{last}{AFTER}") for line in UNFINISHED}
    wrong = [
        line for line, kept in found.items() if not kept.items() >= around.items() or ("typed" in kept) != bool(head)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("line", "name"), [("def g(a, b", "g"), ("async def g(a, b) -> int", "g"), ("class B(A, C", "B.m")]
)
def test_a_header_that_is_typed_keeps_its_name(line: str, name: str) -> None:
    body = "    def m(self):\n        return 1\n" if "class" in line else "    return 1\n"
    assert name in units(f"{BEFORE}{line}\n{body}{AFTER}")


def test_the_unit_that_is_typed_keeps_its_whole_text() -> None:
    typed = "def typed(n):\n    x = foo(n, \n        [n,\n    return x"
    assert units(BEFORE + typed + "\n" + AFTER)["typed"] == typed


def test_strings_with_code_in_them_stay_strings() -> None:
    holder = 'def holder():\n    return """\ndef inner(n):\n    return n\n"""\n'
    found = units(BEFORE + holder + "\nx = foo(\n\n" + holder.replace("holder", "other") + AFTER)
    assert set(found) == {"before", "holder", "other", "After.method"}


def test_valid_code_comes_back_unchanged() -> None:
    changed = [path.name for path in STANDARD if without_unfinished(path.read_bytes()) != path.read_bytes()]
    assert changed == []
    assert len(STANDARD) > 100


@given(st.text(st.sampled_from("()[]{}\"'\\\n :#adefx=,"), max_size=120))
def test_lines_and_offsets_stay(text: str) -> None:
    source = text.encode()
    once = without_unfinished(source)
    assert len(once) == len(source)
    assert [i for i, byte in enumerate(once) if byte == 10] == [i for i, byte in enumerate(source) if byte == 10]


@pytest.mark.parametrize(
    "piece", ["(", "f(\n", "'", '"""', "'''\n", "\\", "\\\n", "def f(\n", "'''\ndef f(", "x = [\n", "a\n"]
)
def test_no_text_takes_a_time_that_grows_with_the_square_of_its_length(piece: str) -> None:
    def seconds(length: int) -> float:
        began = time.process_time()
        without_unfinished((piece * (length // len(piece))).encode())
        return time.process_time() - began

    assert seconds(400_000) < 1 + 8 * seconds(100_000)
