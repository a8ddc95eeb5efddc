"""What an iteration makes of the names that a loop changes."""

from __future__ import annotations

import ast

import pytest
from rlm_core.cost.bounds.transitions import Transitions, transitions
from rlm_core.cost.domain.context import Context
from rlm_core.cost.domain.dispatch import execute
from rlm_core.cost.domain.frames import Frame
from rlm_core.cost.domain.quantities import ONE, Quantity, constant, of_size
from rlm_core.cost.domain.values import Value
from rlm_core.cost.scope import Texts

X, Y, ITEMS = of_size("@0x"), of_size("@0y"), of_size("@0items")


def moves(*lines: str, before: str = "x = 1\ny = 2\nitems = [1, 2, 3]") -> tuple[Context, Transitions]:
    """The transitions of a loop with these lines, and the state in which it is read."""
    context = Context(Frame(Texts(), names={"n": Value("unknown", name="n")}), 1000)
    execute(context, ast.parse(before).body)
    [loop] = ast.parse("while n:\n" + "".join(f"    {line}\n" for line in lines)).body
    assert isinstance(loop, ast.While)
    found = transitions(context, loop)
    assert found is not None
    return context, found


@pytest.mark.parametrize(
    ("lines", "after"),
    [
        (["x += 1"], {"@0x": X + ONE}),
        (["step = 3", "x = x - step"], {"@0x": X - constant(3)}),
        (["x, y = y, x"], {"@0x": Y, "@0y": X}),
        (["middle = (x + y) // 2", "x = middle"], {"@0x": X.times(0.5) + ONE}),
        (["if n > y:", "    x += 1", "else:", "    x += 3"], {"@0x": X + Quantity({(): (1.0, 2.0, 3.0)})}),
        (["if n > y:", "    x += 3", "    continue", "x += 1"], {"@0x": X + Quantity({(): (1.0, 1.6, 3.0)})}),
        (["if n > y:", "    x += 3", "    break", "x += 1"], {"@0x": X + ONE}),
        (["items = items[1:]"], {"@0items": ITEMS - ONE}),
        (["items.append(n)", "items.append(x)"], {"@0items": ITEMS + constant(2)}),
        (["x = unknown(x)"], {}),
    ],
)
def test_transitions_are_what_the_statements_do(lines: list[str], after: dict[str, Quantity]) -> None:
    found = moves(*lines)[1].after
    assert found.keys() == after.keys()
    for symbol, quantity in after.items():
        for monomial in quantity.terms.keys() | found[symbol].terms.keys():
            assert found[symbol].terms[monomial] == pytest.approx(quantity.terms[monomial])


def test_starts_are_the_values_before_the_loop() -> None:
    starts = moves("x += 1", "items.append(x)")[1].starts
    assert starts == {"@0x": ONE, "@0items": constant(3)}


def test_reading_for_transitions_leaves_nothing_behind() -> None:
    context, _ = moves("x += 1", "items.append(x)", "return x", before="x = 1\nitems = []\nclass A:\n    pass\na = A()")
    frame = context.frame
    assert frame.names["x"].constant == 1
    assert frame.names["items"].size == constant(0)
    assert not frame.results
    assert not frame.loops
    assert context.loop_depth == 0


def test_loops_that_are_nested_too_deeply_are_not_read_again() -> None:
    context = Context(Frame(Texts()), 1000, loop_depth=3)
    [loop] = ast.parse("while n:\n    x += 1").body
    assert isinstance(loop, ast.While)
    assert transitions(context, loop) is None
