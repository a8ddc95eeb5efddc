"""What runs inside measured tests, piece by piece: what is in scope, when it is watched, and what that costs."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import FunctionType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.measurement.functions.injected.rlm_probe.function_registry import (
    TESTS_A_LEVEL,
    Function,
    FunctionRegistry,
    Scope,
)
from rlm_core.measurement.functions.injected.rlm_probe.injection import Injector
from rlm_core.measurement.functions.injected.rlm_probe.latency import LatencyMeter
from rlm_core.measurement.functions.injected.rlm_probe.memory import MemoryMeter
from rlm_core.measurement.functions.injected.rlm_probe.session import Request
from rlm_core.measurement.functions.recordings import read_recordings
from rlm_core.measurement.functions.run import HungProcess, Watchdog
from rlm_core.measurement.functions.sources import packages_under

pytestmark = pytest.mark.timeout(120)


@pytest.mark.parametrize(
    ("module", "taken"),
    [
        ("shapes", True),
        ("shapes.area.fast", True),
        ("shapesque", False),
        ("shapes.tests.area", False),
        ("shapes.area.test_fast", False),
        ("shapes.conftest", False),
        ("numpy.linalg.solvers", True),
        ("numpy.fft", False),
    ],
)
def test_only_the_packages_themselves_are_in_scope(module: str, taken: bool) -> None:
    assert Scope(["shapes", "numpy.linalg"]).takes(module) == taken
    assert not Scope([]).takes(module)


@given(st.integers(1, 6), st.integers(1, 400))
def test_a_function_that_all_tests_reach_sleeps_ever_longer(calls: int, tests: int) -> None:
    roster = FunctionRegistry(calls)
    switched: list[bool] = []
    roster.switch = lambda function, on: switched.append(on)
    function = roster.function("m", "f", "m.py", 1, "function")
    watched = []
    for number in range(tests):
        roster.begin()
        if function.is_on:
            watched.append(number)
            roster.touched.append(function)
        roster.end()
    gaps = [after - before for before, after in pairwise(watched)]
    assert gaps == sorted(gaps)
    assert gaps[: TESTS_A_LEVEL - 1] == [1] * min(len(gaps), TESTS_A_LEVEL - 1)
    assert len(watched) == function.tests
    # Switched in turns, and never for nothing.
    assert switched == [bool(number % 2) for number in range(len(switched))]


def test_the_limit_of_calls_holds_for_outermost_calls() -> None:
    roster = FunctionRegistry(2)
    meter = LatencyMeter(roster)
    function = roster.function("m", "f", "m.py", 1, "function")
    for _ in range(3):
        meter.begin(function)
        meter.begin(function)
        meter.end(function)
        meter.end(function)
    assert len(function.raw) == 2
    assert function.recursive
    assert not function.is_on


@given(st.lists(st.tuples(st.sampled_from("be"), st.integers(0, 2)), max_size=40))
def test_ends_without_begins_and_begins_without_ends_break_nothing(events: list[tuple[str, int]]) -> None:
    for make in (LatencyMeter, MemoryMeter):
        roster = FunctionRegistry(3)
        meter = make(roster)
        functions = [roster.function("m", f"f{number}", "m.py", number, "function") for number in range(3)]
        for what, number in events:
            (meter.begin if what == "b" else meter.end)(functions[number])
        assert all(len(one.raw) + len(one.samples) <= one.taken <= 3 for one in functions)
        # The next test starts anew.
        roster.end()
        roster.begin()
        for one in functions:
            one.raw.clear()
            meter.begin(one)
            meter.end(one)
        assert isinstance(meter, MemoryMeter) or all(len(one.raw) == 1 for one in functions)


SOURCE = '''
"""A module."""
from __future__ import annotations

def decorate(function):
    return function


@decorate
def documented(a: int, *, b=2) -> int:
    """Says what it does."""
    return a + b


def only_documented():
    """Nothing else."""


def fails():
    try:
        raise KeyError("inner")
    except KeyError:
        return locals()


def stream():
    yield 1


class A:
    __slots__ = ("x",)

    def __init__(self):
        super().__init__()
        self.x = 1

    def raises(self):
        raise ValueError(self.x)
'''


def test_injection_leaves_functions_as_they_are(tmp_path: Path) -> None:
    roster = FunctionRegistry(5)
    injector = Injector(Scope(()), roster, LatencyMeter(roster))
    plain: dict[str, object] = {"__name__": "m"}
    watched: dict[str, object] = {"__name__": "m"}
    exec(compile(SOURCE, "m.py", "exec"), plain)
    exec(injector.rewritten(SOURCE.encode(), "m", "m.py"), watched)
    for name in ("documented", "only_documented", "fails", "stream"):
        one, other = plain[name], watched[name]
        assert isinstance(one, FunctionType)
        assert isinstance(other, FunctionType)
        assert one.__doc__ == other.__doc__
        assert one.__code__.co_firstlineno == other.__code__.co_firstlineno
        assert one.__code__.co_varnames == other.__code__.co_varnames
        assert one.__annotations__ == other.__annotations__
    assert plain.keys() == watched.keys()
    assert watched["documented"](1) == 3  # type: ignore[operator]
    assert watched["fails"]() == {}  # type: ignore[operator]
    with pytest.raises(ValueError, match="1") as caught:
        watched["A"]().raises()  # type: ignore[operator]
    assert caught.traceback[-1].lineno + 1 == SOURCE.splitlines().index("        raise ValueError(self.x)") + 1
    found = {one.qualname: one for one in roster.functions}
    assert set(found) == {"decorate", "documented", "only_documented", "fails", "A.__init__", "A.raises"}
    assert {name: len(one.raw) for name, one in found.items()} == {
        "decorate": 1,
        "documented": 1,
        "only_documented": 0,
        "fails": 1,
        "A.__init__": 1,
        "A.raises": 0,
    }
    assert (found["A.raises"].exceptions, found["fails"].exceptions) == (1, 0)
    assert found["documented"].line == SOURCE.splitlines().index("@decorate") + 1


def test_a_request_survives_the_environment() -> None:
    request = Request("/a b", "memory", ("x", "y.z"), 3, 1.5, "skip", "only", True)
    assert Request.from_text(request.to_text()) == request


def test_packages_of_a_project_are_found_without_its_tests(tmp_path: Path) -> None:
    for name in (
        "src/shapes/__init__.py",
        "src/shapes/inner/__init__.py",
        "libs/other-one/src/other/__init__.py",
        "tests/__init__.py",
        "docs/examples/__init__.py",
        ".venv/lib/thing/__init__.py",
        "env/lib/thing/__init__.py",
        "src/alone.py",
        "setup.py",
        "rlm_bench.py",
        "test_top.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    assert sorted(packages_under(tmp_path)) == ["alone", "other", "shapes"]


def test_a_recording_counts_up_to_where_it_breaks(tmp_path: Path) -> None:
    start = '["start",{"format":"rlm-spool-1","metric":"latency","began":1}]\n'
    whole = '["function",0,"m","f","m.py",1,"function"]\n["test","t1"]\n["seen",[[0,1,1,0,[5,6]]]]\n'
    (tmp_path / "1-1.jsonl").write_text(start + whole + '["test","t2"]\n["seen",[[0,0,0')
    (tmp_path / "2-1.jsonl").write_text(start + whole + '["seen",[[9,0,0,0,[1]]]]\n' + whole)
    (tmp_path / "3-1.jsonl").write_bytes(b"\xff\xfe\n")
    (tmp_path / "4-1.jsonl").write_text("")
    first, second = read_recordings(tmp_path)
    assert (first.tests, first.in_test, first.end) == (["t1", "t2"], True, None)
    for one in (first, second):
        seen = one.functions[0]
        assert (seen.samples.tolist(), seen.tests, seen.exceptions, seen.recursive) == ([5, 6], 1, 1, True)


def test_the_watchdog_reports_a_test_that_does_not_end_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    path = tmp_path / "77-1.jsonl"
    path.write_text('["start",{}]\n["test","a"]\n["seen",[]]\n["test","tests/b.py::test_b"]\n["se')
    watchdog = Watchdog(tmp_path, [], 5)
    assert watchdog.look() is None
    now = 1004.0
    assert watchdog.look() is None
    now = 1006.0
    assert watchdog.look() == HungProcess(77, "tests/b.py::test_b")
    assert watchdog.look() is None
    now = 2000.0
    assert watchdog.look() == HungProcess(None, "")
    assert Watchdog(tmp_path, [], 0).look() is None


def test_a_function_is_one_however_often_its_module_is_loaded() -> None:
    roster = FunctionRegistry(5)
    one = roster.function("m", "f", "m.py", 1, "function")
    assert isinstance(one, Function)
    assert roster.function("m", "f", "m.py", 1, "function") is one
    assert roster.function("m", "f", "m.py", 2, "function") is not one
