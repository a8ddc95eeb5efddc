"""A few examples per function are kept, of different sizes, whatever the arguments do."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from rlm_core.measurement.functions.injected.rlm_probe.call_examples import EXAMPLES, ExampleWriter
from rlm_core.measurement.functions.injected.rlm_probe.function_registry import Function
from rlm_core.measurement.functions.injected.rlm_probe.plain_data import decode


@pytest.fixture
def writer(tmp_path: Path) -> ExampleWriter:
    return ExampleWriter(tmp_path, ("tests",))


def called(writer: ExampleWriter, function: Function, *arguments: Any, **named: Any) -> None:
    def target(first: Any, /, second: Any = 2, *rest: Any, key: Any = None, **options: Any) -> None:
        writer.take(function, sys._getframe())

    target(*arguments, **named)


def lines(writer: ExampleWriter, tmp_path: Path) -> list[dict[str, Any]]:
    writer.finish()
    (path,) = tmp_path.glob("*.examples")
    return [json.loads(line) for line in path.read_text().splitlines()][1:]


def new_function(name: str = "target") -> Function:
    return Function(0, "tests.shapes", name, "shapes.py", 3, "function")


def test_all_kinds_of_parameters_are_kept_by_name(writer: ExampleWriter, tmp_path: Path) -> None:
    called(writer, new_function(), [1], 3, 4, 5, key="k", other=(1,))
    [line] = lines(writer, tmp_path)
    assert decode(line["arguments"], ()) == {
        "first": [1], "second": 3, "rest": (4, 5), "key": "k", "options": {"other": (1,)},
    }  # fmt: skip
    assert (line["module"], line["qualname"], line["line"]) == ("tests.shapes", "target", 3)


def test_examples_differ_in_size_and_are_few(writer: ExampleWriter, tmp_path: Path) -> None:
    function = new_function()
    for size in (2, 3, 3, 20, 200, 1000, 2000):
        called(writer, function, [0] * size)
    kept = [len(decode(line["arguments"], ())["first"]) for line in lines(writer, tmp_path)]
    # Sizes below the next power of two are alike.
    assert kept == [2, 20, 200, 1000]
    assert len(kept) == EXAMPLES


def test_an_example_is_that_of_the_beginning(writer: ExampleWriter, tmp_path: Path) -> None:
    items = [1, 2]
    called(writer, new_function(), items)
    items.append(3)
    assert decode(lines(writer, tmp_path)[0]["arguments"], ())["first"] == [1, 2]


def test_other_arguments_are_given_up_and_the_reason_is_kept(writer: ExampleWriter, tmp_path: Path) -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    for number, value in enumerate((object, deep, "x" * (1 << 20), [0] * 10_000, lambda: 1)):
        called(writer, new_function(f"f{number}"), value)
    found = {line["qualname"]: line.get("why", "") for line in lines(writer, tmp_path)}
    assert found.pop("f0") == ""
    assert list(found) == ["f1", "f2", "f3", "f4"]
    assert found["f3"] == "too many items"
    assert "<lambda>" in found["f4"]


def test_nothing_is_written_after_the_end(writer: ExampleWriter, tmp_path: Path) -> None:
    writer.close()
    called(writer, new_function(), [1])
    assert lines(writer, tmp_path) == []
