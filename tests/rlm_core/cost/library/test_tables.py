"""The tables: what is written in them is read, compiles, is there once, and mistakes are named by file and line."""

from __future__ import annotations

import ast
import datetime
import io
import math
import re
from importlib import import_module
from pathlib import Path

import pytest
from rlm_core.cost import library
from rlm_core.cost.domain.folding import MISSING
from rlm_core.cost.domain.quantities import constant
from rlm_core.cost.domain.values import NONE, UNKNOWN, Value
from rlm_core.cost.library.entries import Entries
from rlm_core.cost.library.rules import FLOAT, Rule, literal
from rlm_core.cost.library.statements import Statement, TableError, expanded, parsed, read_tables
from rlm_core.cost.library.unit_costs import stated, table

from .calls import RecordingCall, sized


def _entries(text: str) -> Entries:
    return Entries(list(parsed("test.txt", text)))


def _function(text: str, name: str = "f") -> Rule:
    rule = _entries(text).function(name)
    assert rule is not None
    return rule


def test_every_entry_is_a_rule() -> None:
    entries = Entries(read_tables()["entry"])
    for name in entries.functions:
        assert callable(entries.function(name))
    for key in entries.methods:
        assert callable(entries.method(*key))
    for key in entries.operators:
        assert callable(entries.operator(*key))
    for key in entries.attributes:
        assert callable(entries.attribute(*key))


def test_every_rule_in_python_is_one_that_an_entry_names() -> None:
    folder = Path(library.__file__).parent
    named = {statement.text.partition(" by ")[2].partition("(")[0] for statement in read_tables()["entry"]}
    for path in folder.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if path.name in ("__init__.py", "entries.py", "expressions.py"):
            continue
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and ast.unparse(node.returns or ast.Constant(None)) in (
                "Rule",
                "Attribute",
            ):
                assert f"{path.stem}.{node.name}" in named or node.name in used, f"{path.name}: {node.name}"


def test_an_entry_says_result_cost_and_memory_in_terms_of_the_arguments() -> None:
    rule = _function(
        "f(data, /, *, times) -> str[2 * len(data) + 1] | cost str.find(len(data)) + 1e-3 | allocate 4 * len(data)"
    )
    call = RecordingCall([sized("bytes", 10)])
    result = rule(call)
    assert (result.kind, result.size) == ("str", constant(21))
    assert call.seconds == pytest.approx(1e-3 + table()["str.find"].fixed + 10 * table()["str.find"].each)
    assert call.allocated == constant(40)


def test_an_unknown_number_makes_a_result_unknown() -> None:
    rule = _function("f(x) -> float[number(x) ** 0.5] | cost 1e-6 * (number(x) or 3)")
    known, unknown = RecordingCall([literal(16)]), RecordingCall([Value("int")])
    assert (rule(known), rule(unknown)) == (
        Value("float", number=constant(4), bytes=FLOAT.bytes),
        FLOAT,
    )
    assert [known.seconds, unknown.seconds] == pytest.approx([16e-6, 3e-6])


def test_an_iterable_is_consumed_once() -> None:
    rule = _function("f(x) -> list[items(x), int] | cost builtins.list(items(x)) + builtins.set(items(x))")
    call = RecordingCall([Value("iterator", size=constant(1000), step=constant(1e-3))])
    assert rule(call).size == constant(1000)
    assert 1 < call.seconds < 1.1


def test_a_method_through_its_class_has_its_object_first() -> None:
    entries = _entries("thing:\n    f(other) -> int[len(other)] | cost 1e-6 * len(self)")
    rule = entries.method("thing", "f")
    assert rule is not None
    left, right = sized("list", 3), sized("list", 5)
    for call in (RecordingCall([right], receiver=left), RecordingCall([left, right], receiver=Value("class"))):
        assert rule(call).number == constant(5)
        assert call.seconds == pytest.approx(3e-6)


def test_a_wait_has_its_usual_cost_or_the_one_of_the_entry() -> None:
    for clauses, seconds in (("wait network", 3e-4), ("wait thread", 1e-6), ("cost 2e-6 | wait network", 2e-6)):
        call = RecordingCall()
        assert _function(f"f | {clauses}")(call) == UNKNOWN
        assert len(call.waits) == 1
        assert call.seconds == pytest.approx(seconds)
    call = RecordingCall()
    assert _function("f | serve network")(call) == NONE
    assert call.runs_on


def test_entries_that_fold_are_computed_as_python_computes_them() -> None:
    arguments = {"math.hypot": (3.0, 4.0), "math.isclose": (1.0, 1.0), "operator.add": (2, 3), "builtins.hex": (255,)}
    folding = [name for name, entry in library.ENTRIES.functions.items() if "fold" in entry.clauses()]
    assert len(folding) > 80
    assert set(arguments) <= set(folding)
    for name, given in arguments.items():
        rule = library.rule_for(name)
        assert rule is not None
        module, _, function = name.rpartition(".")
        expected = getattr(__import__(module), function)(*given)
        assert rule(RecordingCall([literal(part) for part in given])).constant == expected
    upper = library.method_rule("str", "upper")
    assert upper is not None
    assert upper(RecordingCall(receiver=literal("ab"))).constant == "AB"
    assert upper(RecordingCall(receiver=literal(b"ab"))).constant is MISSING
    assert math.isnan(library.attribute(Value("module", name="math"), "nan").constant)  # type: ignore[union-attr]


def _real_kind(value: object) -> str:
    name = type(value).__name__
    kind = "none" if value is None else name
    return kind if type(value).__module__ == "builtins" else f"{type(value).__module__}.{name}"


def test_methods_return_what_those_of_python_return(tmp_path: Path) -> None:
    now, found = datetime.datetime(2026, 5, 6, tzinfo=datetime.UTC), re.compile("(a)(?P<b>b)").match("ab")
    file = tmp_path / "file"
    file.write_text("text\n")
    calls: list[tuple[object, str, tuple[object, ...]]] = [
        *((now, name, ()) for name in ("date", "time", "timestamp", "weekday", "isoweekday", "toordinal", "timetuple")),
        *((now, name, ()) for name in ("replace", "astimezone", "isoformat")),
        (now - now, "total_seconds", ()),
        *((found, name, ()) for name in ("group", "groups", "groupdict", "start", "end", "span")),
        *((b"ab", name, (9,)) for name in ("ljust", "rjust", "center", "zfill")),
        *((frozenset({1}), name, ({2},)) for name in ("union", "difference", "intersection", "symmetric_difference")),
        (frozenset({1}), "copy", ()),
        ({1}, "intersection_update", ({2},)),
        ({1}, "issubset", ({2},)),
        *((io.BytesIO(b"ab\n"), name, ()) for name in ("read", "readline", "readlines")),
        *((io.StringIO("ab\n"), name, ()) for name in ("read", "readline", "readlines")),
    ]
    for receiver, name, arguments in calls:
        kind = _real_kind(receiver)
        known = Value("object", name=kind.removeprefix("_")) if "." in kind else Value(kind)
        rule = library.method_rule(known.name or known.kind, name)
        assert rule is not None, (kind, name)
        made = rule(
            RecordingCall(
                [literal(part) if isinstance(part, int) else Value("set") for part in arguments], receiver=known
            )
        )
        real = getattr(receiver, name)(*arguments)
        assert (made.name or made.kind) == _real_kind(real), (kind, name)
    path = Value("object", name="pathlib.Path")
    for name, kind in {"exists": "bool", "touch": "none", "stat": "os.stat_result", "unlink": "none"}.items():
        rule = library.method_rule("pathlib.Path", name)
        assert rule is not None
        made = rule(RecordingCall(receiver=path))
        assert (made.name or made.kind) == kind == _real_kind(getattr(file, name)())


def test_functions_return_what_those_of_python_return() -> None:
    calls: dict[str, tuple[object, ...]] = {
        **dict.fromkeys(("os.path.split", "os.path.splitext", "os.path.isabs", "os.path.basename"), ("a/b.c",)),
        "os.path.getmtime": (__file__,),
        "os.path.getsize": (__file__,),
        "cmath.sqrt": (1j,),
        "statistics.median": ([1.0, 2.0, 3.0],),
    }
    for name, arguments in calls.items():
        rule = library.rule_for(name)
        assert rule is not None, name
        module, _, function = name.rpartition(".")
        real = getattr(import_module(module), function)(*arguments)
        made = rule(RecordingCall([Value("list", size=constant(3)) for _ in arguments]))
        assert made.kind == _real_kind(real), name


def test_alternatives_in_braces_are_all_combinations() -> None:
    assert expanded("{a, b}.{x, y}, c.{z}, d") == ["a.x", "a.y", "b.x", "b.y", "c.z", "d"]
    assert expanded('""') == [""]


def test_a_continuation_belongs_to_the_line_above() -> None:
    lines = list(parsed("test.txt", "# first\nf(x)\n    -> int\n    | cost 1\n\ng | cost 2"))
    assert [(found.line, found.text) for found in lines] == [(2, "f(x) -> int | cost 1"), (6, "g | cost 2")]


def test_a_sign_in_a_text_does_not_part_clauses() -> None:
    statement = Statement("test.txt", 1, (), 'cost a = 1 | run "a | \\"b\\"" | at 3')
    assert statement.clauses() == ["cost a = 1", 'run "a | \\"b\\""', "at 3"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f | cost 1\nf | cost 2", "f has an entry at test.txt:1 already"),
        ("    f | cost 1", "an indented line without a heading"),
        ("| cost 1", "nothing to continue"),
        ("f -> int", "the entry has no cost"),
        ("f | price 1", "unknown clause 'price 1'"),
        ("f | cost no.such.cost", "no.such.cost"),
        ("f | cost len(x)", "'x' is not a parameter"),
        ("f | cost 1 % 2", "unknown operator in '1 % 2'"),
        ("f | cost 1 +", r"not an expression: '1 \+'"),
        ("f -> banana | cost 1", "not a value: 'banana'"),
        ("f -> dict[3] | cost 1", "no size can be given to 'dict' like this"),
        ("f -> tuple(length=3) | cost 1", "'length' is not a field of a value"),
        ("f(x y) | cost 1", "not a parameter: 'x y'"),
        ("f | wait weather", "weather"),
        ("f by texts.no_such_rule", "no_such_rule"),
        ('f -> object("a) | cost 1', "a text has no end"),
    ],
)
def test_a_mistake_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(TableError, match=rf"^test\.txt:\d+: .*{message}"):
        _function(text)


def test_a_cost_that_is_not_a_number_is_named_with_its_line() -> None:
    for text in ('cost a = banana | run "a"', "cost a 3"):
        with pytest.raises(TableError, match=r"^test\.txt:7: .*(not a cost|not a number)"):
            stated(Statement("test.txt", 7, (), text))
