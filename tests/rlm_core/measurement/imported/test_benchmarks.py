"""Results of pytest-benchmark and CodSpeed count for the functions that the benchmarks time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rlm_core import DataError
from rlm_core.measurement.imported.benchmarks import is_benchmark_file, read_benchmarks

TESTS = """
import pytest
import shapes.geometry
from shapes import pairs as all_pairs, parse


def test_parse(benchmark):
    assert benchmark(parse, "x," * 1000)


@pytest.mark.parametrize("n", [10, 100])
def test_pairs(benchmark, n):
    benchmark.pedantic(all_pairs, (list(range(n)),), rounds=10)


def test_module(benchmark):
    benchmark(shapes.geometry.area, 2)


class TestBox:
    def test_method(self, benchmark):
        benchmark(shapes.geometry.Box.area, shapes.geometry.Box())


def test_lambda(benchmark):
    benchmark(lambda: parse("x"))


def test_two(benchmark):
    benchmark(parse, "x")
    benchmark(all_pairs, [])


def test_builtin(benchmark):
    benchmark(sorted, [1])


@pytest.mark.benchmark
def test_whole():
    parse("x")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path.resolve()
    package = root / "src" / "shapes"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from .texts import parse\nfrom .texts import pairs\n")
    (package / "texts.py").write_text("def parse(text):\n    pass\n\n\ndef pairs(items):\n    pass\n")
    (package / "geometry.py").write_text("def area(n):\n    pass\n\n\nclass Box:\n    def area(self):\n        pass\n")
    (root / "tests").mkdir()
    (root / "tests" / "test_speed.py").write_text(TESTS)
    return root


def stats(scale: float, **others: float) -> dict[str, float]:
    spread = {"min": 1.0, "q1": 2.0, "median": 3.0, "q3": 4.0, "max": 14.0}
    return {name: value * scale for name, value in spread.items()} | others


def benchmark_json(*names: str, scale: float = 1e-6) -> dict[str, Any]:
    return {
        "machine_info": {
            "python_implementation": "CPython",
            "python_version": "3.12.4",
            "cpu": {"brand_raw": "Some CPU", "count": 2},
        },
        "commit_info": {"id": "unversioned"},
        "benchmarks": [
            {"name": name, "fullname": f"tests/test_speed.py::{name}", "stats": stats(scale, rounds=50, iterations=2)}
            for name in names
        ],
        "datetime": "2026-11-28T07:04:40.944281+00:00",
        "version": "5.2.0",
    }


def codspeed_json(root: Path, *names: str) -> dict[str, Any]:
    nanoseconds = {f"{name}_ns": value for name, value in stats(1000.0).items()}
    return {
        "creator": {"name": "pytest-codspeed", "version": "4.0.0", "pid": 1},
        "python": {"sysconfig": {"py_version_short": "3.13"}, "dependencies": []},
        "instrument": {"type": "walltime"},
        "benchmarks": [
            {
                "name": name,
                "uri": f"{root}/tests/test_speed.py::{name}",
                "stats": nanoseconds | {"rounds": 50, "iter_per_round": 2},
            }
            for name in names
        ],
    }


def read(root: Path, content: dict[str, Any]) -> Any:
    encoded = json.dumps(content).encode()
    assert is_benchmark_file(encoded)
    return read_benchmarks(Path("b.json"), encoded, root, 5.0)


def test_functions_behind_imports(project: Path) -> None:
    result = read(project, benchmark_json("test_parse", "test_module", "TestBox::test_method", "test_whole"))
    assert {(timing.file.relative_to(project).as_posix(), timing.name) for timing in result.timings} == {
        ("src/shapes/texts.py", "parse"),
        ("src/shapes/geometry.py", "area"),
        ("src/shapes/geometry.py", "Box.area"),
        ("tests/test_speed.py", "test_whole"),
    }
    assert not result.left_out
    assert (result.tool, result.device, result.runtime) == ("pytest-benchmark", "Some CPU", "cpython-3.12")
    assert result.measured_at == pytest.approx(1795849480.9, abs=0.1)


def test_quantiles_lie_between_quartiles_and_extremes(project: Path) -> None:
    [timing] = read(project, benchmark_json("test_parse")).timings
    assert (timing.low, timing.median, timing.high) == pytest.approx((1.4e-6, 3e-6, 10e-6))
    assert (timing.calls, timing.runs) == (100, 1)


def test_benchmarks_of_one_function_are_one_timing(project: Path) -> None:
    content = benchmark_json("test_pairs[10]")
    content["benchmarks"] += benchmark_json("test_pairs[100]", scale=1e-4)["benchmarks"]
    [timing] = read(project, content).timings
    assert (timing.low, timing.high) == pytest.approx((1.4e-6, 1e-3))
    assert (timing.calls, timing.runs) == (200, 2)


@pytest.mark.parametrize("test", ["test_lambda", "test_two", "test_builtin"])
def test_what_is_not_one_function_is_left_out(project: Path, test: str) -> None:
    result = read(project, benchmark_json(test))
    assert not result.timings
    assert result.left_out == {"what the benchmark times is not one function of the project": 1}


def test_a_test_that_is_gone_is_left_out(project: Path) -> None:
    result = read(project, benchmark_json("test_gone"))
    assert list(result.left_out) == ["the benchmark's test is not below the working directory, or has another name now"]


def test_codspeed(project: Path) -> None:
    result = read(project, codspeed_json(project, "test_parse", "test_whole"))
    assert (result.tool, result.runtime, result.measured_at) == ("CodSpeed", "cpython-3.13", 5.0)
    assert {timing.name: timing.median for timing in result.timings} == pytest.approx(
        {"parse": 3e-6, "test_whole": 3e-6}
    )


@pytest.mark.parametrize(
    "change",
    [
        {"benchmarks": 5},
        {"benchmarks": [{"fullname": "t.py::t", "stats": {}}]},
        {"benchmarks": [{"fullname": "t.py::t", "stats": stats(-1, rounds=1)}]},
        {"datetime": "soon"},
    ],
)
def test_other_json_is_one_line(project: Path, change: dict[str, Any]) -> None:
    content = json.dumps(benchmark_json("test_parse") | change).encode()
    with pytest.raises(DataError, match=r"^b\.json: neither a result of pytest --benchmark-json nor"):
        read_benchmarks(Path("b.json"), content, project, 0)


def test_tests_outside_of_the_project_are_not_read(project: Path) -> None:
    (project.parent / "test_out.py").write_text(TESTS)
    content = benchmark_json("test_parse")
    content["benchmarks"][0]["fullname"] = "../test_out.py::test_whole"
    assert not read(project, content).timings
