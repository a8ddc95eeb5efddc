"""Generated functions and their edits: repeatable, various, runnable, and each edit does what its kind says."""

from __future__ import annotations

import ast

import pytest

from tools.counterfactual.edits import CALLEE, EDITS, edited
from tools.counterfactual.generator import Group, generate
from tools.counterfactual.grammar import Expansion
from tools.counterfactual.programs import Program, parse, requote
from tools.counterfactual.templates import FAMILIES
from tools.counterfactual.values import LITERALS, Argument, literal, make
from tools.counterfactual.vocabulary import DOMAINS, seeded

pytestmark = pytest.mark.extras


@pytest.fixture(scope="module")
def groups() -> list[Group]:
    return list(generate(3, 30))


def test_the_same_seed_gives_the_same_functions(groups: list[Group]) -> None:
    assert list(generate(3, 5)) == groups[:5]
    assert [group.base.text for group in generate(4, 5)] != [group.base.text for group in groups[:5]]


def test_families_take_turns_and_no_text_comes_twice(groups: list[Group]) -> None:
    assert len({group.family for group in groups}) == len({group.base.text for group in groups}) == len(groups)


@pytest.mark.parametrize("seed", range(4))
def test_every_template_expands_to_python_with_nothing_left_of_the_template(seed: int) -> None:
    for family in sorted(FAMILIES):
        expansion = Expansion(FAMILIES[family], DOMAINS["order"], seeded(family, seed))
        body = "\n".join(f"    {line}" for line in expansion.lines)
        tree = ast.parse(f"def work():\n{body}\n")
        assert any(isinstance(node, ast.Return) and node.value for node in ast.walk(tree))
        for text in (body, *expansion.helpers):
            assert not set("«¦»") & set(text)
        for helper in expansion.helpers:
            assert isinstance(ast.parse(helper).body[0], ast.FunctionDef)


def test_every_version_is_a_module_with_the_function_that_it_names(groups: list[Group]) -> None:
    for group in groups:
        for program in (group.base, *(program for _, program in group.edits)):
            tree = ast.parse(program.module)
            assert parse(program.text).name == program.name
            names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
            assert program.name in names


def test_an_edit_changes_the_function_or_a_helper_and_keeps_the_call(groups: list[Group]) -> None:
    for group in groups:
        for kind, program in group.edits:
            assert (program.name, program.arguments) == (group.base.name, group.base.arguments)
            assert (program.text != group.base.text) is not kind.startswith(CALLEE)
            assert (program.helpers != group.base.helpers) is kind.startswith(CALLEE)


def test_sizes_are_in_the_text_of_many_and_arguments_provide_the_rest(groups: list[Group]) -> None:
    arguments = sum(bool(group.base.arguments) for group in groups)
    assert len(groups) * 0.2 < arguments < len(groups) * 0.8


@pytest.mark.parametrize("kind", sorted(LITERALS))
def test_a_value_of_each_kind_can_be_written_and_made(kind: str) -> None:
    domain = DOMAINS["order"]
    argument = Argument(kind, 6, 1, domain.item)
    assert make(argument) == make(argument)
    for seed in range(4):
        # An expression of our own generator, comprehensions among them, so literal_eval will not do.
        written = eval(
            literal(kind, "6", domain, seeded(seed)),
            {},
        )
        assert type(written) is type(make(argument))


BEFORE = {
    "wrap-loop": "for x in xs:\n    total += x",
    "nest-over-same": "for x in xs:\n    total += x",
    "grow-size": "for x in range(50):\n    total += x",
    "sort-added": "for x in xs:\n    total += x",
    "list-for-set": "seen = set()\nfor x in xs:\n    if x not in seen:\n        seen.add(x)\ntotal = len(seen)",
    "scan-for-lookup": "rows = {x: x + 1 for x in xs}\nfor y in xs:\n    total += rows.get(y)",
    "pop-front": "for x in xs:\n    total += x",
    "slice-rest": "for x in xs:\n    total += x",
    "recurse": "for x in xs:\n    total += x",
    "loop-for-comprehension": "ys = [x + 1 for x in xs if x > 1]\ntotal = sum(ys)",
    "list-for-generator": "total = sum(x + 1 for x in xs)",
    "inline-in-loop": "high = max(xs)\nfor x in xs:\n    total += high - x",
    "concatenate": 'parts = []\nfor x in xs:\n    parts.append(str(x))\ntotal = "".join(parts)',
    "rebuild": "ys = []\nfor x in xs:\n    ys.append(x)\ntotal = ys",
    "sort-for-heap": "heap = []\nfor x in xs:\n    heapq.heappush(heap, x)\ntotal = heapq.heappop(heap)",
    "list-for-deque": "queue = collections.deque(xs)\nwhile queue:\n    total += queue.popleft()",
    "read-all": "for line in '1\\n2'.splitlines():\n    total += int(line)",
    "trace-in-loop": "for x in xs:\n    total += x",
    "work-in-loop": "for x in xs:\n    total += x",
    "copy-argument": "total = sum(xs)",
    "loop-for-sum": "total = sum(xs)",
    "index-loop": "for x in xs:\n    total += x",
    "drop-break": "for x in xs:\n    total += x\n    if x > 2:\n        break",
    "rename-local": "for x in xs:\n    total += x",
    "type-hints": "ys = [x for x in xs]\ntotal = ys",
    "reorder": "low = 3\nhigh = 9\ntotal = low + high",
    "flip-comparison": "for x in xs:\n    if x > 1:\n        total += x",
    "spell-out-addition": "for x in xs:\n    total += 1",
    "swap-branches": "for x in xs:\n    if x > 1:\n        total += x\n    else:\n        total -= x",
    "guard-loop": "for x in xs:\n    total += x",
}
AFTER = {
    "wrap-loop": "in range(",
    "nest-over-same": "for x in xs:\n        for ",
    "sort-added": "sorted(xs",
    "list-for-set": "seen.append(x)",
    "scan-for-lookup": "next((x + 1 for x in xs if x == y), None)",
    "pop-front": ".pop(0)",
    "slice-rest": "while ",
    "recurse": "nonlocal total",
    "loop-for-comprehension": "ys.append(x + 1)",
    "list-for-generator": "sum([x + 1 for x in xs])",
    "inline-in-loop": "total += max(xs) - x",
    "concatenate": "parts = ''",
    "rebuild": "ys = ",
    "sort-for-heap": "heap.sort()",
    "list-for-deque": "queue.pop(0)",
    "read-all": "io.StringIO(",
    "drop-break": "pass",
    "flip-comparison": "1 < x",
    "swap-branches": "not x > 1",
}


def program(body: str) -> Program:
    lines = ["def work(xs):", "    total = 0", *(f"    {line}" for line in body.split("\n")), "    return total"]
    text = ast.unparse(ast.parse("\n".join(lines))) + "\n"
    return Program("work", "", text, (), (), (Argument("ints", 4, 0, "order"),))


def run(version: Program) -> object:
    namespace: dict[str, object] = {}
    exec(version.module, namespace)
    work = namespace["work"]
    assert callable(work)
    return work([3, 1, 2, 5])


@pytest.mark.parametrize("kind", sorted(BEFORE))
def test_an_edit_does_what_its_kind_says(kind: str) -> None:
    before = program(BEFORE[kind])
    after = edited(before, kind, seeded(kind), double=False)
    assert after is not None
    assert AFTER.get(kind, "") in after.text
    if EDITS[kind].same_result:
        assert run(after) == run(before)


def test_an_edit_without_a_place_is_none() -> None:
    nothing = Program("work", "", "def work(xs):\n    return xs\n", (), (), ())
    kinds = sorted(set(BEFORE) - {"copy-argument", "rename-local"})
    assert {kind for kind in kinds if edited(nothing, kind, seeded(kind), double=False) is not None} == set()


def test_quotes_change_only_where_no_escape_is_needed() -> None:
    assert requote("x = 'a' + y['b']\n") == 'x = "a" + y["b"]\n'
    assert requote("x = '\\n'\n") == "x = '\\n'\n"
    assert requote("x = '\"'\n") == "x = '\"'\n"
