"""Names of sizes -> the inputs that they come from."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.cost.input_names import InputNames

FUNCTION = """
def f(lines, n, *, table=None, **options):
    for line in lines:
        for character in line: pass
        words = line.split(",")
    for index, row in enumerate(table):
        for cell in row[1:]: pass
    for key, value in options.items(): pass
    for left, right in zip(lines, table): pass
    with open("x") as file:
        for record in file: pass
        text = file.read()
    count, width = map(int, input().split())
    other = looked_up(lines)
    best = None
    for best in lines: pass
    either = lines
    either = table
    for entry in self.entries: pass
    for name in REGISTRY: pass
    for i in range(1, n + 1): pass
    kept = [x for x in lines if x]
    for item in kept: pass
    node = lines
    while node: node = node.next
    size = lambda part: len(part)
    try: pass
    except ValueError as error: pass
"""
INPUTS = {
    "lines": "lines",
    "options": "options",
    "line": "lines[]",
    "line[]": "lines[][]",
    "character": "lines[][]",
    "words": "lines[]",
    "row": "table[]",
    "cell": "table[][]",
    "value": "options[]",
    "left": "lines[]",
    "right": "table[]",
    "file": "file",
    "record": "file[]",
    "text": "text",
    "width": "width",
    "best": "lines[]",
    "entry": "self.entries[]",
    "name": "REGISTRY[]",
    "i": "n",
    "item": "lines[]",
    "node": "lines",
    "node.next": "lines.next",
    "self.entries": "self.entries",
    "other": None,
    "either": None,
    "part": None,
    "error": None,
    "of_a_callee": None,
    "?3": None,
    "": None,
}


@pytest.mark.parametrize("name", INPUTS)
def test_a_size_is_that_of_an_input_or_has_no_name(name: str) -> None:
    assert InputNames(FUNCTION, is_function=True).of(name) == INPUTS[name]


def test_a_program_reads_its_inputs() -> None:
    program = "import sys\nn = int(input())\nfor line in sys.stdin:\n    row = line.split()\nrest = [0] * n\n"
    names = InputNames(program, is_function=False)
    assert [names.of(name) for name in ("n", "line", "row", "rest")] == ["n", "sys.stdin[]", "sys.stdin[]", None]
    solution = InputNames("class Solution:\n    def f(self, nums):\n        for x in nums: pass\n", is_function=False)
    assert [solution.of("nums"), solution.of("x")] == ["nums", "nums[]"]


NAMES = st.sampled_from(["xs", "a", "b", "c"])
STATEMENTS = st.one_of(
    st.builds("for {} in {}: pass".format, NAMES, NAMES),
    st.builds("{} = {}".format, NAMES, NAMES),
    st.builds("{} = {}[{}]".format, NAMES, NAMES, NAMES),
    st.builds("{}, {} = {}".format, NAMES, NAMES, NAMES),
    st.builds("{} = g({})".format, NAMES, NAMES),
    st.builds("{} = {}.next".format, NAMES, NAMES),
)


@given(st.lists(STATEMENTS, max_size=8), NAMES)
def test_no_local_name_is_an_input(statements: list[str], name: str) -> None:
    text = "def f(xs):\n    pass\n" + "".join(f"    {statement}\n" for statement in statements)
    found = InputNames(text, is_function=True).of(name)
    tree = ast.parse(text)
    local = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    if found is not None:
        assert found.replace("[]", "").partition(".")[0] not in local - {"xs"}


@pytest.mark.parametrize("text", ["", "def", "def f(:", "x = = 1", "(" * 100])
def test_a_text_that_cannot_be_read_has_no_inputs(text: str) -> None:
    assert InputNames(text, is_function=True).of("x") is None
    assert InputNames(text, is_function=False).of("x") is None
