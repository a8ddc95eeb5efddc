"""Reading syntax: broken texts, what a block does, and names of calls."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm_core.cost.domain.syntax import (
    MOST_CHARACTERS,
    BlockSyntax,
    called_name,
    dotted_name,
    leaving,
    own_update,
    parse,
    parse_whole,
    parsed_function,
    read_update,
    walk,
)

TEXT = "def f(a):\n    x = 1\n    for i in a:\n        y = i\n    return x\n"


_MATCH = """
match f(*a, **{"k": 1}):
    case {"a": [1, *rest], **others} | C(x=(None | True) as y) if rest:
        async def g(a, /, b: int = 1, *c, d=lambda: 0, **e) -> f"{a!r:>{b}}": global x; del x[1:2], y
"""


def block(*lines: str) -> BlockSyntax:
    """Return the effects of lines."""
    return BlockSyntax(ast.parse("\n".join(lines)).body)


def expression(text: str) -> ast.expr:
    """An expression."""
    return ast.parse(text, mode="eval").body


@settings(max_examples=100)
@given(st.integers(1, 4), st.sampled_from(["x = (", "if", "for in:", "return )", "x = 'a", "def", "    = 3", "a b c"]))
def test_a_broken_line_leaves_the_others_at_their_lines(number: int, broken: str) -> None:
    lines = TEXT.split("\n")
    indent = len(lines[number]) - len(lines[number].lstrip())
    lines[number] = " " * indent + broken.strip()
    tree = parse("\n".join(lines))
    if broken.strip() != "x = (" and broken != "x = 'a":
        assert tree is not None
    if tree is None:
        return
    kept = {node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt) and not isinstance(node, ast.Pass)}
    assert {2, 5} - {number + 1} <= kept | {number + 1}


@given(st.text(max_size=200))
def test_any_text_has_a_tree_or_none(text: str) -> None:
    tree = parse(text)
    assert tree is None or isinstance(tree, ast.Module)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000,
        "x = " + "(" * 100 + "1" + ")" * 100,
        "x = " + "-" * 10_000 + "1",
        "x = " + "[" * 70 + "]" * 70,
        "x = 1\n" * MOST_CHARACTERS,
        "\0",
        "x = (\n" * 50,
    ],
)
def test_texts_that_the_parser_could_fail_on_are_refused(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize(
    "line",
    [
        "# " + "-" * 80,
        f'"""A table.\n\n+{"-" * 70}+\n"""',
        "text = '" + "(" * 70 + "'",
        "text = b'\\'" + "~" * 70 + "'",
    ],
)
def test_separators_in_comments_and_texts_are_not_nesting(line: str) -> None:
    tree = parse(f"def f(x):\n    {line}\n    return x\n")
    assert tree is not None
    assert isinstance(tree.body[0], ast.FunctionDef)


def test_a_text_is_read_whole_or_not_at_all() -> None:
    assert parse_whole("x = 1\ny = (\n") is None
    assert parse_whole("x = 1", 4) is None
    tree = parse_whole(f"x = 1{'0' * 1_000}")
    assert tree is not None
    assert "integer of" in ast.dump(tree)


def test_an_indented_text_is_read() -> None:
    tree = parse("    def f():\n        return 1\n")
    assert tree is not None
    assert isinstance(tree.body[0], ast.FunctionDef)


def test_exits_are_those_of_the_block_itself() -> None:
    assert block("if a:", "    break").breaks
    inner = block("for i in a:", "    if i:", "        break", "    continue")
    assert not inner.breaks
    assert not inner.continues
    assert inner.nested_loops
    assert block("for i in a:", "    return i").returns
    assert block("while a:", "    raise ValueError").raises
    assert block("x = yield 1").yields
    assert block("sys.exit(1)").leaves_program
    nested = block("def g():", "    return 1")
    assert not nested.returns


def test_assigned_names_are_those_that_are_bound_or_changed_by_methods() -> None:
    lines = ("x = 1", "items.append(x)", "table[key] = 2", "insort(order, 3)", "for i in x:", "    j += 1", "z = z0")
    found = block(*lines)
    assert set(found.assigned) == {"x", "items", "table", "order", "i", "j", "z"}
    assert list(found.assigned) == list(block(*lines).assigned)
    assert found.stores == {"x": 1, "i": 1, "j": 1, "z": 1}


@pytest.mark.parametrize(
    ("line", "update"),
    [
        ("n += 2", ("+", "2")),
        ("n -= k", ("-", "k")),
        ("n = n * 3", ("*", "3")),
        ("n //= 2", ("//", "2")),
        ("n /= 2", ("/", "2")),
        ("n >>= 3", ("//", "2 ** 3")),
        ("n <<= 1", ("*", "2 ** 1")),
        ("n %= 2", None),
        ("n = 2 * n", None),
        ("n = other", None),
        ("n, m = m, n", None),
    ],
)
def test_updates_say_how_a_pass_changes_a_name(line: str, update: tuple[str, str] | None) -> None:
    read = block(line).updates["n"]
    assert (None if read is None else (read[0], ast.unparse(read[1]))) == update


def test_a_name_that_is_also_bound_otherwise_has_no_update() -> None:
    assert block("n += 1", "n = 5").updates["n"] is None
    assert block("n = 5", "n += 1").updates["n"] is None


def test_operators_without_a_law_are_no_update() -> None:
    assert read_update(ast.BitXor(), ast.Constant(1)) is None


@pytest.mark.parametrize(("line", "own"), [("n += 1", True), ("n = n + 1", True), ("n, m = 1, 2", False), ("n", False)])
def test_a_separate_statement_binds_one_name(line: str, own: bool) -> None:
    statement = ast.parse(line).body[0]
    assert own_update(statement, "n") is own
    assert not own_update(statement, "x")


@pytest.mark.parametrize(
    ("line", "way"),
    [("return 1", "return"), ("raise E", "raise"), ("break", "break"), ("continue", "continue"), ("x = 1", "")],
)
def test_a_block_leaves_as_its_last_statement_does(line: str, way: str) -> None:
    body = ast.parse(f"for i in a:\n    x = 2\n    {line}" if way != "return" else f"def f():\n    {line}").body[0]
    assert isinstance(body, (ast.For, ast.FunctionDef))
    assert leaving(body.body) == way
    assert leaving([]) == ""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a.b.c", "a.b.c"),
        ("name", "name"),
        ("f().a", ""),
        ("super().method", "super().method"),
        ("a[0].b", ""),
        (".".join("abcdefghijkl"), ""),
    ],
)
def test_dotted_names(text: str, name: str) -> None:
    assert dotted_name(expression(text)) == name


@pytest.mark.parametrize(
    ("text", "name"), [("requests.get(u)", "requests.get"), ("f()()", ""), ("a[0].read()", "read"), ("len(x)", "len")]
)
def test_a_call_is_called_what_it_is_written_with(text: str, name: str) -> None:
    call = expression(text)
    assert isinstance(call, ast.Call)
    assert called_name(call) == name


def test_the_first_function_of_a_text_is_read() -> None:
    assert parsed_function("x = 1\n") is None
    assert parsed_function("def (") is None
    node = parsed_function("import a\ndef g(): pass\ndef h(): pass\n")
    assert isinstance(node, ast.FunctionDef)
    assert node.name == "g"


def test_containers_that_get_items_are_known() -> None:
    read = block("queue.append(1)", "heapq.heappush(heap, 2)", "seen.remove(3)", "groups[0].add(4)")
    assert read.grown == {"queue", "heap", "groups"}


def test_all_nodes_are_walked_but_the_contexts_of_names() -> None:
    tree = ast.parse(Path(ast.__file__).read_text(encoding="utf-8") + _MATCH)
    assert walk(tree) == [node for node in ast.walk(tree) if not isinstance(node, ast.expr_context)]
