"""The sizes of a call's inputs: they are the true ones, and no code of the program runs to find them."""

from __future__ import annotations

import array
import gc
import sys
import weakref
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType, MappingProxyType
from typing import Any, ClassVar, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.measurement.functions.injected.rlm_probe import input_sizes
from rlm_core.measurement.functions.injected.rlm_probe.input_sizes import MOST_SIZES, InputSizes, sizes_of


def one(x: Any) -> None:
    """A function with one parameter."""


def sizes(x: object) -> dict[str, float]:
    return sizes_of(one.__code__, {"x": x})


_scalars = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | st.complex_numbers()
_texts = st.text(max_size=9) | st.binary(max_size=9) | st.binary(max_size=9).map(bytearray)
_sets = st.sets(st.integers(), max_size=9)
_flat = (
    _texts
    | st.lists(st.integers(), max_size=9)
    | st.lists(st.integers(), max_size=9).map(tuple)
    | st.lists(st.integers(), max_size=9).map(deque)
    | _sets
    | _sets.map(frozenset)
    | st.dictionaries(st.integers(), st.integers(), max_size=9)
    | st.dictionaries(st.integers(), st.integers(), max_size=9).map(OrderedDict)
    | st.text(max_size=9).map(Counter)
    | st.integers(0, 99).map(range)
    | st.lists(st.integers(0, 9), max_size=9).map(lambda items: array.array("i", items))
)


@given(_scalars)
def test_a_number_is_a_size_if_it_can_be_one(value: Any) -> None:
    is_size = type(value) in (int, float) and 0 <= value <= 1e15
    assert sizes(value) == ({"x": value} if is_size else {})


@given(_flat)
def test_the_length_of_a_container_or_text_is_its_size(value: Any) -> None:
    assert sizes(value) == {"x": len(value)}


@given(st.lists(_flat, min_size=1, max_size=4), st.sampled_from([list, tuple, deque]))
def test_the_mean_length_inside_is_a_size(items: list[Any], kind: Callable[[list[Any]], Any]) -> None:
    inside = sum(map(len, items)) / len(items)
    assert sizes(kind(items)) == {"x": len(items), "x[]": pytest.approx(inside)}
    by_key = dict(enumerate(items))
    for mapping in (by_key, by_key.values(), defaultdict(list, by_key)):
        assert sizes(mapping) == {"x": len(items), "x[]": pytest.approx(inside)}


@given(st.integers(1, 50), st.integers(0, 50))
def test_a_few_items_of_many_show_the_length_inside(rows: int, columns: int) -> None:
    assert sizes([[0] * columns for _ in range(rows)]) == {"x": rows, "x[]": columns}


class Meta(type):
    """A metaclass that counts what is asked of its classes."""

    asked: ClassVar[list[str]] = []

    def __hash__(cls) -> int:
        Meta.asked.append("__hash__")
        return 1

    def __eq__(cls, other: object) -> bool:
        Meta.asked.append("__eq__")
        return True

    def __getattribute__(cls, name: str) -> Any:
        Meta.asked.append(f"type.{name}")
        return type.__getattribute__(cls, name)

    def mro(cls) -> list[type]:
        return type.mro(cls)


class Descriptor:
    def __get__(self, instance: object, owner: object) -> list[int]:
        Meta.asked.append("__get__")
        return [1]


class Nosy(metaclass=Meta):
    """An object that notices everything that can be asked of it."""

    queue = Descriptor()

    def __init__(self) -> None:
        self.__dict__["held"] = [1, 2, 3]

    @property
    def items(self) -> list[int]:
        Meta.asked.append("items")
        return [1]

    def __len__(self) -> int:
        Meta.asked.append("__len__")
        return 7

    def __iter__(self) -> Iterator[int]:
        Meta.asked.append("__iter__")
        return iter(())

    def __getattribute__(self, name: str) -> Any:
        Meta.asked.append(f"__getattribute__ {name}")
        return object.__getattribute__(self, name)

    def __getattr__(self, name: str) -> Any:
        Meta.asked.append(f"__getattr__ {name}")
        return [1]

    def method(self, x: Any) -> Any:
        return self.items, self.queue, self.absent, self.held, self.__class__, self.__dict__, x.items


class NosyList(list[Any], metaclass=Meta):
    def __len__(self) -> int:
        Meta.asked.append("list.__len__")
        return 7


class IteratedList(list[Any], metaclass=Meta):
    def __iter__(self) -> Iterator[Any]:
        Meta.asked.append("list.__iter__")
        return iter(())

    def __getitem__(self, index: Any) -> Any:
        Meta.asked.append("list.__getitem__")
        return None


def test_no_code_of_the_program_is_called() -> None:
    code = Nosy.method.__code__
    nosy, overridden, derived = Nosy(), NosyList([1]), IteratedList(["ab", "abcd"])
    Meta.asked.clear()
    assert sizes_of(code, {"self": nosy, "x": overridden}) == {"self.held": 3}
    assert sizes_of(code, {"self": overridden, "x": Nosy}) == {}
    assert sizes_of(code, {"self": nosy, "x": derived}) == {"self.held": 3, "x": 2, "x[]": 3}
    assert sizes_of(code, {"self": nosy, "x": [nosy, derived]}) == {"self.held": 3, "x": 2}
    assert sizes_of(code, {"self": 1, "x": MappingProxyType({1: 2})}) == {"self": 1}
    assert Meta.asked == []


@pytest.mark.parametrize("value", [iter([1, 2]), (n for n in [1, 2]), map(str, [1, 2]), zip([1], [2], strict=True)])
def test_iterators_do_not_move(value: Any) -> None:
    assert sizes(value) == {}
    assert next(value)


def test_nothing_is_kept() -> None:
    class Held(list[int]):
        pass

    values = [Held([1, 2]), Held([3])]
    references = list(map(weakref.ref, values))
    inputs = InputSizes(one.__code__)
    assert inputs.of({"x": values}) == {"x": 2, "x[]": 1.5}
    del values
    gc.collect()
    assert [reference() for reference in references] == [None, None]


class Point(NamedTuple):
    number: int
    text: str


class Slotted:
    __slots__ = ("rows", "unset")

    def __init__(self, rows: object) -> None:
        self.rows = rows


class Queue:
    most: ClassVar[list[int]] = [1, 2]

    def __init__(self, heap: Any) -> None:
        self.heap, self.count, self.__private, self.slotted = heap, 5, "abc", Slotted([[1]])
        self.written: list[int] = []

    def read(self, other: Any, *rest: Any, limit: int = 3, **options: Any) -> Any:
        self.written = [*other.rows]
        heap = self.heap
        for _ in range(self.count):
            heap.pop()
        return any(str(x) in self.__private for x in self.most), self.slotted.rows, self.absent, rest, limit, options

    def lazily(self) -> Any:
        self.push()
        return lambda: [row + 1 for row in self.heap]

    def push(self) -> None:
        """Nothing."""

    absent: Any


def code_of(function: object) -> Any:
    assert isinstance(function, FunctionType)
    return function.__code__


def test_attributes_that_the_text_reads_are_inputs() -> None:
    queue = Queue(heap={1: "ab", 2: "abcd"})
    arguments = {"self": queue, "other": Slotted((1, 2)), "rest": (1, 2), "limit": 2.5, "options": {"a": 1}}
    assert sizes_of(code_of(Queue.read), arguments) == {
        "limit": 2.5,
        "rest": 2,
        "options": 1,
        "other.rows": 2,
        "self.heap": 2,
        "self.heap[]": 3,
        "self.count": 5,
        "self.__private": 3,
        "self.slotted.rows": 1,
        "self.slotted.rows[]": 1,
        "self.most": 2,
    }
    # Also where a function inside reads them; methods that are called are none.
    assert sizes_of(code_of(Queue.lazily), {"self": queue}) == {"self.heap": 2, "self.heap[]": 3}


def test_missing_arguments_and_strange_ones_leave_the_others() -> None:
    def two(x: Any, y: Any, z: Any) -> None:
        """Nothing."""

    released = memoryview(b"abc")
    released.release()
    assert sizes_of(two.__code__, {"x": [1], "y": released, "z": [2]}) == {"x": 1}
    assert sizes_of(two.__code__, {"x": [1], "z": [2]}) == {"x": 1}
    assert sizes(range(10**30)) == {}
    assert sizes(Point(1, "ab")) == {"x": 2}
    assert sizes([float("nan"), 1]) == {"x": 2}


def test_the_number_of_sizes_is_bounded() -> None:
    space: dict[str, Any] = {}
    names = [f"x{number}" for number in range(40)]
    exec(f"def many({', '.join(names)}): return {', '.join(f'{name}.a, {name}.b' for name in names)}", space)
    found = sizes_of(space["many"].__code__, dict.fromkeys(names, Slotted([1])))
    assert len(found) <= MOST_SIZES
    exec(f"def read(x): return {', '.join(f'x.{name}' for name in names)}", space)
    held = type("Held", (), {})()
    held.__dict__.update({name: [1] for name in names})
    assert len(sizes_of(space["read"].__code__, {"x": held})) == MOST_SIZES


def test_arrays_have_elements_and_axes() -> None:
    numpy = pytest.importorskip("numpy")

    class Derived(numpy.ndarray):  # type: ignore[misc,name-defined]
        @property
        def shape(self) -> Any:
            raise AssertionError

    assert sizes(numpy.ones((3, 4))) == {"x": 12, "x.0": 3, "x.1": 4}
    assert sizes(numpy.ones(5)) == {"x": 5}
    assert sizes(numpy.ones((2, 3)).view(Derived)) == {"x": 6, "x.0": 2, "x.1": 3}
    assert sizes([numpy.ones(4), numpy.ones((2, 3))]) == {"x": 2, "x[]": 5}
    assert sizes(numpy.int64(7)) == {"x": 7}
    assert sizes(numpy.float32(0.5)) == {"x": 0.5}
    assert sizes(numpy.complex64(1)) == sizes(numpy.bool_(1)) == {}


def test_tensors_have_elements_and_axes() -> None:
    torch = pytest.importorskip("torch")
    assert sizes(torch.ones(2, 3)) == {"x": 6, "x.0": 2, "x.1": 3}
    assert sizes(torch.nn.Parameter(torch.ones(4))) == {"x": 4}


def test_a_class_that_only_has_a_librarys_name_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def shape(self: object) -> Any:
        raise AssertionError

    for module, name in (("pandas", "DataFrame"), ("numpy", "ndarray"), ("torch", "Tensor")):
        fake = type(name, (), {"__module__": module, "shape": property(shape)})
        assert sizes(fake()) == {}


class _Frame:
    """A stand-in with the interface of a frame, as its library exports it."""

    __module__ = "pandas"
    shape = (30, 4)


def test_frames_have_rows_and_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = type("DataFrame", (_Frame,), {"__module__": "pandas"})
    module = type(sys)("pandas")
    vars(module)["DataFrame"] = frame
    monkeypatch.setitem(sys.modules, "pandas", module)
    assert sizes(frame()) == {"x.rows": 30, "x.columns": 4}
    # A class that is derived from it may say something else.
    assert sizes(type("Derived", (frame,), {})()) == {}


def test_frames_of_a_package_that_is_measured_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    numpy = pytest.importorskip("numpy")
    frame = type("DataFrame", (_Frame,), {"__module__": "pandas"})
    module = type(sys)("pandas")
    vars(module)["DataFrame"] = frame
    monkeypatch.setitem(sys.modules, "pandas", module)
    monkeypatch.setattr(input_sizes, "_LIBRARIES", dict(input_sizes._LIBRARIES))
    input_sizes.leave_out(["pandas.io", "numpy", "shapes"])
    assert sizes(frame()) == {}
    # Those of numpy are read by code in C.
    assert sizes(numpy.ones(3)) == {"x": 3}


def test_frames_of_real_libraries_have_rows_and_columns() -> None:
    for library in ("pandas", "polars"):
        frames = pytest.importorskip(library)
        assert sizes(frames.DataFrame({"a": [1, 2, 3], "b": [1, 2, 3]})) == {"x.rows": 3, "x.columns": 2}
        assert sizes(frames.Series([1, 2])) == {"x": 2}


def test_sizes_can_be_taken_again_of_the_same_function() -> None:
    inputs = InputSizes(one.__code__)
    arguments: list[Mapping[str, object]] = [{"x": [1]}, {"x": "ab"}, {"x": 3}]
    assert [inputs.of(given) for given in arguments] == [{"x": 1}, {"x": 2}, {"x": 3}]
