"""Function labels and a wheel -> rows, with every reason to leave one out, and the call graph of a package."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from rlm_core.errors import DataError
from rlm_core.queries.analysis import Analyser
from rlm_core.queries.file_units import file_units
from rlm_core.training.datasets.functions import (
    CALL_GRAPH_SCHEMA,
    DEVICE,
    LATENCY_FLOOR_SECONDS,
    RUNTIME,
    CallGraphBuilder,
    FunctionBuilder,
)
from rlm_core.training.datasets.schema import read_calls, read_facts, read_rows, write_rows

MODULE = '''"""A module."""

from .tools import helper


def work(items):
    """Do it."""
    # with help
    return [helper(item) for item in items]


class Box:
    @property
    def size(self):
        return self._measure()

    def _measure(self):
        return 1


twice = lambda x: 2 * x  # noqa: E731
'''
WORK = 'def work(items):\n    """Do it."""\n    # with help\n    return [helper(item) for item in items]\n'
SIZE = "    @property\n    def size(self):\n        return self._measure()\n"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A source cache with the wheel of ``small-package`` 1.0."""
    with zipfile.ZipFile(tmp_path / "small_package-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("small_package/__init__.py", "")
        wheel.writestr("small_package/main.py", MODULE)
        wheel.writestr("small_package/tools.py", "def helper(item):\n    return item\n")
        wheel.writestr("small_package/dos.py", "def dos(x):\r\n    return x\r\n")
        wheel.writestr("small_package/latin.py", "# coding: latin-1\ndef latin():\n    return 'é'\n".encode("latin-1"))
    return tmp_path


def label(**changes: Any) -> dict[str, Any]:
    """A good label of ``work``, changed."""
    fields: dict[str, Any] = {
        "package": "small-package",
        "version": "1.0",
        "module": "small_package.main",
        "qualname": "work",
        "file": "small_package/main.py",
        "firstlineno": 6,
        "calls": 20,
        "generator": False,
        "latency_us": {"p10": 1.0, "p50": 2.0, "p90": 9.0},
        "latency_ok": True,
        "mem_calls": 20,
        "peak_bytes": {"p10": 0, "p50": 480, "p90": 900},
        "source_sha1": hashlib.sha1(WORK.encode()).hexdigest(),
    }
    return fields | changes


def build(cache: Path, *labels: dict[str, Any], split: str = "auto") -> tuple[list[dict[str, Any]], FunctionBuilder]:
    path = cache / "labels.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in labels))
    builder = FunctionBuilder(path, cache, split, download=False, workers=1)
    return list(builder.rows()), builder


def test_a_function_gives_a_row_a_metric_in_si_units(cache: Path) -> None:
    rows, builder = build(cache, label())
    assert {row["metric"]: row["value"] for row in rows} == {"latency": pytest.approx(2e-6), "memory": 480.0}
    for row in rows:
        assert row["text"] == WORK
        assert (row["basis"], row["language"], row["device"], row["workload"]) == ("call", "python", DEVICE, RUNTIME)
        assert (row["family"], row["group"]) == ("small-package", "small-package/small_package.main")
        assert row["source"] == "small-package==1.0:small_package/main.py:6"
    assert builder.report().left_out == {}
    assert (builder.report().rows, builder.report().units) == (2, 1)


def test_sizes_of_a_label_are_columns(cache: Path) -> None:
    calls = {"sizes": {"items": 4.0}, "median": 2e-6, "calls": 20, "scaled": False}
    sized = label(
        sizes={"latency": {"items": [3, 4, 5]}}, sized={"latency": [calls], "memory": []}, first={"latency": 1e-3}
    )
    rows, _ = build(cache, sized)
    write_rows(rows, cache / "rows.parquet")
    latency, memory = read_rows([cache / "rows.parquet"])
    assert (latency["sizes"], latency["sized"], latency["first"]) == ({"items": [3, 4, 5]}, [calls], 1e-3)
    assert (memory["sizes"], memory["sized"], memory["first"]) == (None, [], None)
    # Labels from before have none.
    assert {row["sizes"] for row in build(cache, label())[0]} == {None}


def test_callees_come_from_the_same_wheel(cache: Path) -> None:
    rows, _ = build(cache, label())
    assert rows[0]["callees"] == [{"text": "def helper(item):\n    return item", "level": 1}]


def test_a_row_has_what_predict_reads_of_the_function_in_its_package(cache: Path, tmp_path: Path) -> None:
    rows, _ = build(cache, label())
    with zipfile.ZipFile(cache / "small_package-1.0-py3-none-any.whl") as wheel:
        wheel.extractall(tmp_path / "unpacked")
    [text] = file_units(Analyser(), tmp_path / "unpacked" / "small_package" / "main.py")
    [code] = [entry.code for entry in text.units if entry.unit.qualname == "work"]
    assert code.calls is not None
    assert [function.text for function in code.calls.functions()] == ["def helper(item):\n    return item"]
    for row in rows:
        assert [(callee["text"], callee["level"]) for callee in row["callees"]] == [
            (callee.text, callee.depth) for callee in code.callees
        ]
        assert read_facts(row["work"]) == code.work
        assert read_calls(row["calls"]) == code.calls


def test_a_file_that_predict_refuses_gives_rows_of_the_text_alone(cache: Path) -> None:
    text = "def binary():\n    return 1\n"
    with zipfile.ZipFile(cache / "small_package-1.0-py3-none-any.whl", "a") as wheel:
        wheel.writestr("small_package/zeros.py", text.encode() + b"ZERO = '\xff'\n")
    digest = hashlib.sha1(text.encode()).hexdigest()
    rows, _ = build(cache, label(file="small_package/zeros.py", qualname="binary", firstlineno=1, source_sha1=digest))
    assert [(row["text"], row["callees"], row["calls"]) for row in rows] == [(text, [], None)] * 2


def test_a_decorated_method_is_read_from_its_decorator_on(cache: Path) -> None:
    measured = label(qualname="Box.size", firstlineno=13, source_sha1=hashlib.sha1(SIZE.encode()).hexdigest())
    rows, _ = build(cache, measured)
    assert rows[0]["text"] == SIZE
    assert [callee["text"].strip() for callee in rows[0]["callees"]] == ["def _measure(self):\n        return 1"]


@pytest.mark.parametrize(
    ("file", "qualname", "line", "text"),
    [
        ("small_package/dos.py", "dos", 1, "def dos(x):\n    return x\n"),
        ("small_package/latin.py", "latin", 2, "def latin():\n    return 'é'\n"),
        ("small_package/main.py", "<lambda>", 21, "twice = lambda x: 2 * x  # noqa: E731\n"),
    ],
)
def test_line_ends_encodings_and_lambdas_are_read_as_python_does(
    cache: Path, file: str, qualname: str, line: int, text: str
) -> None:
    digest = hashlib.sha1(text.encode()).hexdigest()
    rows, builder = build(cache, label(file=file, qualname=qualname, firstlineno=line, source_sha1=digest))
    assert builder.report().left_out == {}
    assert rows[0]["text"] == text


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"generator": True}, "generator or coroutine"),
        ({"calls": 4, "mem_calls": 4}, "fewer than 5 good calls"),
        ({"latency_ok": False, "peak_bytes": None}, "fewer than 5 good calls"),
        ({"source_sha1": "0" * 40}, "source hash differs or file absent"),
        ({"file": "small_package/gone.py"}, "source hash differs or file absent"),
        ({"firstlineno": 4000}, "source hash differs or file absent"),
    ],
)
def test_what_is_left_out_is_counted_by_its_reason(cache: Path, changes: dict[str, Any], reason: str) -> None:
    rows, builder = build(cache, label(**changes))
    assert rows == []
    assert builder.report().left_out == {reason: 1}
    assert builder.report().examples == {reason: ["small-package:small_package.main:work"]}


def test_a_package_without_a_wheel_is_counted_and_named(cache: Path) -> None:
    rows, builder = build(cache, label(), label(version="2.0"), label(version="2.0", qualname="other"))
    assert len(rows) == 2
    [(reason, count)] = builder.report().left_out.items()
    assert count == 2
    assert "wheel" in reason


def test_a_metric_without_enough_calls_is_left_out_alone(cache: Path) -> None:
    rows, _ = build(cache, label(mem_calls=None))
    assert [row["metric"] for row in rows] == ["latency"]


def test_values_below_what_was_resolved_are_the_floor(cache: Path) -> None:
    rows, _ = build(cache, label(latency_us={"p50": -0.2}, peak_bytes={"p50": -32}))
    assert [row["value"] for row in rows] == [LATENCY_FLOOR_SECONDS, 0.0]


def test_one_split_may_be_had_for_all_rows(cache: Path) -> None:
    rows, _ = build(cache, label(), split="train")
    assert {(row["split"], row["held_out"]) for row in rows} == {("train", "package")}


def test_packages_of_the_test_set_are_never_trained_on(cache: Path) -> None:
    (cache / "small_package-1.0-py3-none-any.whl").rename(cache / "click-8.0-py3-none-any.whl")
    rows, _ = build(cache, label(package="click", version="8.0"))
    assert {(row["split"], row["held_out"]) for row in rows} == {("test", "package")}


@pytest.mark.parametrize("row", [{"repo": "a/b"}, 3, {"package": "x", "version": "1.0"}])
def test_labels_of_another_kind_are_reported(tmp_path: Path, row: object) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(DataError, match=r"labels\.jsonl:1: .* is missing; is this a file of function labels"):
        FunctionBuilder(path, tmp_path)


GRAPH_MODULE = "from .tools import helper\n\n\ndef work(items):\n    return [helper(item) for item in items]\n"
GRAPH_WORK = "def work(items):\n    return [helper(item) for item in items]\n"


def graph_rows(folder: Path, **changes: Any) -> dict[str, dict[str, Any]]:
    """The rows of a package in which ``work`` has a label, by id."""
    with zipfile.ZipFile(folder / "small_package-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("small_package/__init__.py", "")
        wheel.writestr("small_package/main.py", GRAPH_MODULE)
        wheel.writestr(
            "small_package/tools.py", "def helper(item):\n    return inner(item)\n\n\ndef inner(x):\n    return x\n"
        )
    work = label(firstlineno=4, source_sha1=hashlib.sha1(GRAPH_WORK.encode()).hexdigest())
    path = folder / "labels.jsonl"
    path.write_text(json.dumps(work | changes) + "\n")
    builder = CallGraphBuilder(path, folder, download=False, workers=1)
    write_rows(builder.rows(), folder / "calls.parquet", CALL_GRAPH_SCHEMA)
    return {row["id"]: row for row in read_rows([folder / "calls.parquet"])}


def test_a_labelled_function_and_what_it_calls_are_rows(tmp_path: Path) -> None:
    found = graph_rows(tmp_path)
    work, helper = found["small-package:small_package.main:work"], found["small-package:small_package.tools:helper"]
    assert len(found) == 2
    assert (work["latency"], work["memory"]) == (pytest.approx(2e-6), 480.0)
    assert [(site["candidates"], site["loops"]) for site in work["sites"]] == [([helper["id"]], 1)]
    assert (helper["split"], helper["latency"], helper["sites"]) == ("none", None, [])
    assert work["group"] == "small-package/small_package.main"


def test_generators_and_functions_with_few_calls_have_no_row(tmp_path: Path) -> None:
    assert graph_rows(tmp_path, generator=True) == {}
    assert graph_rows(tmp_path, calls=1, mem_calls=1) == {}


def test_all_functions_of_a_test_package_are_test_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_core.training.datasets.functions.TEST_PACKAGES", frozenset({"small-package"}))
    assert graph_rows(tmp_path)["small-package:small_package.main:work"]["split"] == "test"
