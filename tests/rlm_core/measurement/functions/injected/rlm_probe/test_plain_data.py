"""Values of plain data are written as JSON and rebuilt; nothing of the program runs, and no file can make code run."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import functools
import io
import json
import pathlib
import re
import threading
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.measurement.functions.injected.rlm_probe.plain_data import Limits, NotPlainError, decode, encode

PACKAGES = (__name__.partition(".")[0],)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8) | st.binary()
HASHABLE = st.integers() | st.text(max_size=8) | st.tuples(st.integers(), st.text(max_size=3))
VALUES = st.recursive(
    SCALARS
    | st.dates()
    | st.datetimes().map(lambda one: one.replace(fold=0))
    | st.timedeltas()
    | st.decimals(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.lists(inner, max_size=3).map(collections.deque)
        | st.dictionaries(HASHABLE, inner, max_size=4)
        | st.sets(HASHABLE, max_size=4)
        | st.frozensets(HASHABLE, max_size=4)
    ),
    max_leaves=20,
)


class Colour(enum.Enum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: int


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    name: str
    places: list[int]


class Node:
    def __init__(self, name: str) -> None:
        self.name = name
        self.parent: Node | None = None
        self.children: list[Node] = []


class Table(collections.OrderedDict[str, int]):
    title = ""


class Default(collections.defaultdict[str, list[int]]):
    pass


class Watchful:
    """Whatever it is asked, it says that somebody has asked."""

    asked: list[str] = []  # noqa: RUF012

    def __init__(self) -> None:
        self.items = [1, 2]

    def __getattribute__(self, name: str) -> Any:
        Watchful.asked.append(name)
        return object.__getattribute__(self, name)

    def __len__(self) -> int:
        Watchful.asked.append("len")
        return 2

    def __hash__(self) -> int:
        Watchful.asked.append("hash")
        return 1

    def __eq__(self, other: object) -> bool:
        Watchful.asked.append("eq")
        return True


class Closing:
    closed: list[str] = []  # noqa: RUF012

    def __del__(self) -> None:
        Closing.closed.append("closed")


def rebuilt(value: Any, **limits: int) -> Any:
    return decode(json.loads(json.dumps(encode(value, PACKAGES, Limits(**limits)))), PACKAGES)


@given(VALUES)
def test_values_are_rebuilt_with_their_types(value: Any) -> None:
    made = rebuilt(value)
    assert made == value
    assert repr(made) == repr(value) or isinstance(value, (set, frozenset)) or "{" in repr(value)


def test_special_values_are_rebuilt() -> None:
    lines: list[str] = []
    file = io.StringIO("a\nb")
    file.read(2)
    values = [
        Colour.RED, Point(1, 2), Slotted("a", [1]), range(3, 9, 2), slice(1, None), 1 + 2j, decimal.Decimal("1.50"),
        datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC), collections.Counter("aab"), pathlib.PurePosixPath("/a/b"),
        re.compile("a+", re.IGNORECASE), re, len, int, Slotted, functools.partial(int, base=2),
    ]  # fmt: skip
    assert rebuilt(values)[:-1] == values[:-1]
    assert rebuilt(values[-1])("11") == 3
    assert rebuilt(file).read() == "b"
    assert next(rebuilt(iter([1, 2]))) == 1
    table = Table(b=1, a=2)
    table.title = "t"
    assert (list(rebuilt(table).items()), rebuilt(table).title) == ([("b", 1), ("a", 2)], "t")
    default = rebuilt(Default(list, a=[1]))
    assert type(default) is Default
    assert default["b"] == []
    append, made = rebuilt([lines.append, lines])
    append("x")
    assert made == ["x"]
    assert rebuilt([threading.Lock()])[0].acquire(blocking=False)


def test_shared_parts_and_cycles_are_kept() -> None:
    root, child = Node("root"), Node("child")
    child.parent = root
    root.children.append(child)
    made = rebuilt([root, root])
    assert made[0] is made[1]
    assert made[0].children[0].parent is made[0]
    assert made[0] is not root


def test_an_iterator_is_not_moved_on() -> None:
    iterator = iter([1, 2, 3])
    next(iterator)
    assert list(rebuilt(iterator)) == [2, 3]
    assert list(iterator) == [2, 3]


def test_nothing_of_a_class_runs() -> None:
    watchful = Watchful()
    Watchful.asked.clear()
    made = encode([watchful], PACKAGES)
    assert Watchful.asked == []
    decode(made, PACKAGES)
    assert Watchful.asked == []


@pytest.mark.parametrize(
    "value",
    [
        lambda: 1,
        (n for n in range(3)),
        threading.Thread(),
        re.match("a", "a"),
        Closing(),
        open,
        eval,
        pathlib.Path.unlink,
        1 << 20_000,
        [[[[[[[[]]]]]]]],
        list(range(50)),
        "x" * 200,
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_values_and_large_ones_are_refused(value: Any) -> None:
    with pytest.raises(NotPlainError):
        encode(value, PACKAGES, Limits(items=30, text=100, depth=5))


@pytest.mark.parametrize(
    "node",
    [
        ["module", "no_such_package"],
        ["global", "os", "system"],
        ["global", "builtins", "eval"],
        ["global", "subprocess", "Popen"],
        ["instance", "tempfile", "_TemporaryFileCloser", "object", None, []],
        ["instance", "no_such_package", "Anything", "object", None, []],
        ["instance", "builtins", "object", "object", None, []],
        ["method", "system", "os"],
        ["builtin method", [0], "append"],
        ["tuple", [[0]]],
        ["no such tag"],
    ],
    ids=str,
)
def test_what_another_hand_wrote_makes_no_code_run(node: list[Any]) -> None:
    with pytest.raises(NotPlainError):
        decode({"nodes": [node], "root": [0]}, PACKAGES)
