"""All rules together: they never raise, cost something, cost more for more, and are found by name."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlm_core.cost import library
from rlm_core.cost.domain.quantities import constant, of_size
from rlm_core.cost.domain.values import NONE, UNKNOWN, Value
from rlm_core.cost.library import unit_costs
from rlm_core.cost.library.rules import ENDLESS, literal

from .calls import RecordingCall, sized

FUNCTIONS = sorted(library.ENTRIES.functions)
METHODS = sorted(library.ENTRIES.methods)

SAMPLES = (
    UNKNOWN,
    NONE,
    Value("unknown", name="values"),
    literal(0),
    literal(-3),
    literal(7),
    literal(10**400),
    literal(2.5),
    literal(float("nan")),
    literal(float("inf")),
    literal("text"),
    literal(""),
    literal(b"ab"),
    literal(True),
    literal((1, "a")),
    Value("int"),
    Value("int", number=of_size("n")),
    Value("str"),
    sized("list", 5, literal(1)),
    Value("list"),
    sized("dict", 3, literal("k"), entry=literal(1)),
    sized("set", 0),
    Value("range", size=constant(4), item=Value("int"), payload=(0.0, 1.0, 4.0)),
    Value("iterator", size=ENDLESS),
    Value("iterator", size=of_size("n"), item=UNKNOWN),
    Value("function", name="builtins.str"),
    Value("user-function"),
    Value("object", name="re.Pattern"),
    Value("slice"),
)
VALUES = st.sampled_from(SAMPLES)
ARGUMENTS = st.lists(VALUES, max_size=4)
KEYWORDS = st.dictionaries(st.sampled_from(["key", "default", "repeat", "k", "n", "r", "p", "level", "indent"]), VALUES)


def _check(rule: library.Rule | None, call: RecordingCall) -> None:
    assert rule is not None
    assert isinstance(rule(call), Value)
    assert call.spent.evaluate(lambda size: 10.0)[1] >= 0


def test_every_rule_accepts_every_value() -> None:
    for value in SAMPLES:
        for arguments in ([], [value], [value, value], [Value("user-function"), value]):
            for name in FUNCTIONS:
                _check(library.rule_for(name), RecordingCall(arguments))
            for key in METHODS:
                _check(library.method_rule(*key), RecordingCall(arguments, receiver=value))


@settings(max_examples=400, deadline=None)
@given(name=st.sampled_from(FUNCTIONS), arguments=ARGUMENTS, keywords=KEYWORDS)
def test_a_function_rule_accepts_any_arguments(name: str, arguments: list[Value], keywords: dict[str, Value]) -> None:
    _check(library.rule_for(name), RecordingCall(arguments, keywords))


@settings(max_examples=400, deadline=None)
@given(key=st.sampled_from(METHODS), receiver=VALUES, arguments=ARGUMENTS, keywords=KEYWORDS)
def test_a_method_rule_accepts_any_arguments(
    key: tuple[str, str], receiver: Value, arguments: list[Value], keywords: dict[str, Value]
) -> None:
    _check(library.method_rule(*key), RecordingCall(arguments, keywords, receiver))


READERS = [
    "builtins.sorted", "builtins.list", "builtins.tuple", "builtins.set", "builtins.sum", "builtins.min",
     "builtins.max",
    "builtins.any", "builtins.repr", "collections.Counter", "collections.deque", "heapq.heapify", "json.dumps",
    "pickle.dumps", "copy.deepcopy", "copy.copy", "statistics.mean", "math.fsum", "random.shuffle",
    "itertools.permutations",
]  # fmt: skip


@pytest.mark.parametrize("name", READERS)
@given(sizes=st.tuples(st.integers(1, 10**6), st.integers(1, 10**6)))
def test_more_items_never_cost_less(name: str, sizes: tuple[int, int]) -> None:
    small, large = sorted(sizes)
    rule = library.rule_for(name)
    assert rule is not None
    costs = []
    for size in (small, large):
        call = RecordingCall([sized("list", size, Value("int"))])
        result = rule(call)
        costs.append(
            (call.seconds + result.step.evaluate(lambda name: 1.0)[1], result.bytes.evaluate(lambda name: 1.0)[1])
        )
    assert costs[0][0] <= costs[1][0] * (1 + 1e-9)
    assert costs[0][1] <= costs[1][1] * (1 + 1e-9)


TEXT_READERS = ["hashlib.sha256", "zlib.compress", "base64.b64encode", "json.loads", "re.escape"]


@pytest.mark.parametrize("name", TEXT_READERS)
def test_bytes_cost_in_proportion(name: str) -> None:
    rule = library.rule_for(name)
    assert rule is not None
    calls = [RecordingCall([sized("bytes", size)]) for size in (10**5, 10**6)]
    for call in calls:
        rule(call)
    assert calls[1].seconds / calls[0].seconds == pytest.approx(10, rel=0.2)


def test_every_unit_cost_that_a_rule_names_was_measured() -> None:
    table = unit_costs.table()
    folder = Path(library.__file__).parent
    named = set()
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id in ("seconds", "primitive", "each") and isinstance(node.args[0], ast.Constant):
                named.add(node.args[0].value)
    assert len(named) > 100
    assert named <= table.keys()


@pytest.mark.parametrize(
    ("owner", "method"), [("builtins.dict", "fromkeys"), ("itertools.chain", "from_iterable"), ("builtins.str", "join")]
)
def test_a_method_called_through_its_class_has_the_rule_of_its_dotted_name(owner: str, method: str) -> None:
    rule = library.method_rule("function", method)
    assert rule is not None
    call = RecordingCall([sized("list", 100, literal("ab"))], receiver=Value("function", name=owner))
    rule(call)
    assert call.seconds > 0
