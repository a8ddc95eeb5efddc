"""Functions of a real project are called again with larger inputs: growth, effects, crashes, hangs, bench files."""

from __future__ import annotations

import json
import math
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from rlm_core import DataError
from rlm_core.measurement.functions.collect import collect, new_run
from rlm_core.measurement.functions.run import SuitePlan, run
from rlm_core.measurement.functions.scaling import (
    ScaledFunction,
    ScaleLimits,
    left_out,
    read_scaled,
    scale,
    scaled_calls,
)
from rlm_core.measurement.store import Store

from .projects import QUIET, environment, write_project

pytestmark = pytest.mark.timeout(300)

CODE = """
import functools
import os
import time

SEEN = []


class Stack:
    def __init__(self, items):
        self.items = list(items)
        self.title = "a title"

    def smallest(self):
        return sorted(self.items)[0]

    def pairs(self):
        return sum(1 for one in self.items for other in self.items if one < other)


def constant(items):
    return items[0]


def linear(items):
    total = 0
    for item in items:
        total += item * 2
    return total


def quadratic(items):
    return sum(1 for one in items for other in items if one == other)


def count(n):
    total = 0
    for number in range(n):
        total += number
    return total


@functools.lru_cache
def cached(text):
    total = 0
    for letter in text:
        total += ord(letter)
    return total


def consumes(items):
    total = 0
    while items:
        total += items.pop()
    return total


def writes(path, text):
    with open(path, "w") as file:
        file.write(text)


def waits(items):
    time.sleep(0.001)
    return len(items)


def remembers(items):
    SEEN.append(len(items))
    return len(SEEN)


def endless(items):
    while len(items) > 10:
        pass
    return 1


def blocks(items):
    if len(items) > 10:
        os.read(os.pipe()[0], 1)
    return 1


def leaves(items):
    if len(items) > 10:
        os._exit(3)
    return 1


def strict(text):
    if len(text) > 10:
        raise ValueError(text)
    return text


def takes_a_function(items, key):
    return sorted(items, key=key)


def parse(text):
    return [part for part in text.split(",") if part]
"""
TESTS = """
import shapes


def test_all(tmp_path):
    items = list(range(40))
    stack = shapes.Stack(items)
    assert stack.smallest() == 0
    assert stack.pairs() == 780
    assert shapes.constant(items) == 0
    assert shapes.linear(items) == 1560
    assert shapes.quadratic(items) == 40
    assert shapes.count(300) == 44850
    assert shapes.cached("hello, hello, hello") > 0
    assert shapes.consumes(list(items)) == 780
    shapes.writes(str(tmp_path / "file"), "text")
    shapes.waits([1, 2, 3, 4])
    shapes.remembers([1, 2, 3, 4])
    shapes.endless([1, 2, 3, 4])
    shapes.blocks([1, 2, 3, 4])
    shapes.leaves([1, 2, 3, 4])
    shapes.strict("abcd")
    shapes.takes_a_function([2, 1], lambda one: one)
"""
BENCH = """
import shapes


def bench_parse(n):
    return shapes.parse, "x," * n


def bench_pairs(n):
    return (shapes.Stack(range(n)).pairs,)


def bench_nothing(n):
    return n


def helper():
    raise RuntimeError
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with examples."""
    folder = write_project(tmp_path_factory.mktemp("project"), TESTS, CODE)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(folder / "home").items():
            patch.setenv(name, value)
        place = new_run(Store(folder / "data" / "m.sqlite3"))
        plan = SuitePlan(sys.executable, QUIET, folder, ("shapes",), ("latency",), examples=True)
        run(plan, place, lambda note: None)
    (folder / "rlm_bench.py").write_text(BENCH, encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def called(place: Path) -> tuple[dict[str, ScaledFunction], list[str]]:
    notes: list[str] = []
    limits = ScaleLimits(call=0.2, function=2.0)
    found = scale(place, sys.executable, limits, notes.append, place.parents[2] / "rlm_bench.py")
    return {one.qualname: one for one in reversed(found)}, notes


def exponent(function: ScaledFunction) -> float:
    """The slope of a line through the points at which all inputs are larger, in the logarithms."""
    points = [point for point in function.points if point.grown == function.points[0].grown]
    xs = [math.log(point.factor) for point in points]
    ys = [math.log(point.seconds) for point in points]
    middle = sum(xs) / len(xs)
    return sum((x - middle) * y for x, y in zip(xs, ys, strict=True)) / sum((x - middle) ** 2 for x in xs)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("constant", 0),
        ("linear", 1),
        ("quadratic", 2),
        ("Stack.pairs", 2),
        ("count", 1),
        ("cached", 1),
        ("consumes", 1),
    ],
)
def test_growth_is_found(called: tuple[dict[str, ScaledFunction], list[str]], name: str, wanted: float) -> None:
    function = called[0][name]
    assert function.points[-1].factor >= 10
    assert exponent(function) == pytest.approx(wanted, abs=0.3)


def test_only_fast_functions_get_more_than_a_hundred_times_as_much(
    called: tuple[dict[str, ScaledFunction], list[str]],
) -> None:
    grown = [one for one in called[0].values() if one.points and one.points[0].grown]  # not from the bench file
    curves = [[point for point in one.points if point.grown == one.points[0].grown] for one in grown]
    followed = [(before, after) for curve in curves for before, after in pairwise(curve) if after.factor > 100]
    assert max(after.factor for _, after in followed) == 1000
    assert all(before.seconds <= 1e-4 * before.factor for before, _ in followed)


def test_points_say_what_grew_and_how_large_it_was(called: tuple[dict[str, ScaledFunction], list[str]]) -> None:
    points = [point for point in called[0]["linear"].points if point.grown == ("items",)]
    assert [point.sizes["items"] for point in points] == [40 * point.factor for point in points]
    assert all(point.least <= point.seconds and point.calls >= 3 for point in points)
    # The items are read and a few numbers made.
    assert all(0 <= point.peak < 1000 for point in points)
    assert {point.grown for point in called[0]["Stack.smallest"].points} == {("self.items",)}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("writes", "has effects: open for writing"),
        ("waits", "has effects: time.sleep"),
        ("remembers", "changes global state"),
        ("endless", "time"),
        ("strict", "raises ValueError"),
        ("takes_a_function", "not plain data"),
        ("leaves", "ends the process (status 3)"),
        ("bench_nothing", "a bench function must return"),
    ],
)
def test_why_a_function_has_no_curve(called: tuple[dict[str, ScaledFunction], list[str]], name: str, why: str) -> None:
    assert called[0][name].why.startswith(why)
    assert called[0][name].points == ()


def test_a_function_that_ends_or_blocks_the_process_is_lost_alone(
    called: tuple[dict[str, ScaledFunction], list[str]],
) -> None:
    found, notes = called
    assert [note for note in notes if note.startswith("leaves with larger inputs ends the process (status 3)")]
    assert not found["blocks"].points
    # All others have an answer.
    assert len(found) == 19
    assert sum(left_out(list(found.values())).values()) == sum(not one.points for one in found.values())


def test_a_bench_file_makes_inputs_for_functions_and_methods(
    called: tuple[dict[str, ScaledFunction], list[str]],
) -> None:
    parse = called[0]["parse"]
    assert [point.sizes["text"] for point in parse.points][:3] == [20, 60, 200]
    assert exponent(parse) == pytest.approx(1, abs=0.3)
    assert parse.module == "shapes"


def test_curves_become_part_of_the_measurements(
    place: Path, called: tuple[dict[str, ScaledFunction], list[str]]
) -> None:
    measurements = {one.qualname: one for one in collect(place, "a processor").measurements}
    rows = [row for row in measurements["linear"].sized if row.scaled]
    assert rows == list(scaled_calls(called[0]["linear"], "latency"))
    assert [row.sizes["items"] for row in rows[:3]] == [40, 120, 400]
    assert [row.sizes["items"] for row in measurements["linear"].sized if not row.scaled] == [40]
    assert not any(row.scaled for row in measurements["writes"].sized)
    assert all(one.points for one in read_scaled(place).values())


def test_nothing_is_called_without_examples_and_a_broken_file_ends_early(tmp_path: Path) -> None:
    assert scale(tmp_path, sys.executable, ScaleLimits(), lambda note: None) == []
    (tmp_path / "1-2.examples").write_text('{"format": "another"}\n{"module": 1}\n')
    (tmp_path / "2-3.examples").write_text('{"format": "rlm-exam')
    assert scale(tmp_path, sys.executable, ScaleLimits(), lambda note: None) == []


def test_a_bench_file_that_cannot_be_read_is_an_error(place: Path, tmp_path: Path) -> None:
    (tmp_path / "rlm_bench.py").write_text("def bench_(")
    with pytest.raises(DataError, match="cannot be read"):
        scale(place, sys.executable, ScaleLimits(), lambda note: None, tmp_path / "rlm_bench.py")


def test_examples_are_bounded_data(place: Path) -> None:
    (path,) = place.glob("*.examples")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert "packages" in lines[0]
    assert {line["qualname"] for line in lines[1:] if "why" in line} == {"takes_a_function"}
    assert all(set(line["arguments"]) == {"nodes", "root"} for line in lines[1:] if "why" not in line)
