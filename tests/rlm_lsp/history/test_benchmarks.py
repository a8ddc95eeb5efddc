"""A test that benchmarks a function can be run where its inputs are known, and says what is missing elsewhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_lsp.history.benchmarks import BenchmarkFile, benchmark_for


def benchmark(folder: Path, source: str, name: str = "f", file: str = "src/shapes/texts.py") -> BenchmarkFile | None:
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text("[project]\n")
    if path.parent.name == "shapes":
        (path.parent / "__init__.py").touch()
    path.write_text(source)
    [unit] = [
        one for one in Analyser().analyse(ParsedSource(source.encode(), "python"), path) if one.unit.qualname == name
    ]
    return benchmark_for(unit.unit, unit.code, path)


def test_inputs_have_the_declared_sizes_and_types(tmp_path: Path) -> None:
    source = (
        "# rlm: sizes items=50 rows[]=7\n"
        "def f(items: list[str], rows: list[list[int]], text: str, n: int, *, step: float, flag: bool = False):\n"
        "    return [item for item in items for row in rows for cell in row], text * n, step, flag\n"
    )
    made = benchmark(tmp_path, source)
    assert made is not None
    assert (made.path, made.shown) == (tmp_path / "tests" / "test_f_speed.py", "tests/test_f_speed.py")
    assert made.text == (
        "from shapes.texts import f\n\n\n"
        "def test_f_speed(benchmark):\n"
        "    items = [str(number) for number in range(50)]\n"
        "    rows = [list(range(7)) for number in range(1_000)]\n"
        '    text = "x" * 1_000\n'
        "    n = 1_000\n"
        "    step = 1000.5\n"
        "    benchmark(f, items, rows, text, n, step=step)\n"
    )


@pytest.mark.parametrize(
    ("annotation", "made"),
    [
        ("set[int]", "set(range(1_000))"),
        ("Sequence[float]", "[number / 2 for number in range(1_000)]"),
        ("tuple[int, ...]", "tuple(range(1_000))"),
        ("dict[str, int]", "{str(number): number for number in range(1_000)}"),
        ("'list[bytes]'", "[b'%d' % number for number in range(1_000)]"),
        ("Iterable", "list(range(1_000))"),
        ("typing.List[int]", "list(range(1_000))"),
        ("set[set[Other]]", "..."),
        ("Other", "..."),
    ],
)
def test_types(tmp_path: Path, annotation: str, made: str) -> None:
    found = benchmark(tmp_path, f"def f(value: {annotation}):\n    return value\n")
    assert found is not None
    assert f"    value = {made}" in found.text


def test_what_is_not_known_is_left_to_the_user(tmp_path: Path) -> None:
    found = benchmark(tmp_path, "def f(tree, items):\n    return [tree.find(item) for item in items]\n")
    assert found is not None
    assert "    tree = ...  # an input like those of your callers\n" in found.text
    assert "    items = ...  # an input of size 1,000\n" in found.text


@pytest.mark.parametrize(
    "source",
    [
        "async def f(n):\n    return n\n",
        "def f(n):\n    yield n\n",
        "class A:\n    def f(self):\n        pass\n",
        "def outer():\n    def f(n):\n        return n\n    return f\n",
    ],
)
def test_what_a_test_cannot_call_has_none(tmp_path: Path, source: str) -> None:
    name = "A.f" if "class" in source else "outer.<locals>.f" if "outer" in source else "f"
    assert benchmark(tmp_path, source, name) is None


def test_a_test_that_exists_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_f_speed.py").write_text("")
    assert benchmark(tmp_path, "def f(n: int):\n    return n\n") is None


def test_the_test_runs(tmp_path: Path) -> None:
    source = (
        "from typing import Iterable, Sequence\n\n\n"
        "def f(items: list[int], names: dict[str, int], parts: 'list[bytes]', some: set[int], rows: tuple[int, ...],\n"
        "      halves: Sequence[float], more: Iterable, text: str, n: int = 3):\n"
        "    return sum(items) * n, [len(one) for one in (names, parts, some, rows, halves, more, text)]\n"
    )
    made = benchmark(tmp_path, source, file="shapes.py")
    assert made is not None
    run = made.text + "\n\ntest_f_speed(lambda function, *arguments: print(function(*arguments)))\n"
    done = subprocess.run([sys.executable, "-c", run], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"(1498500, {[1_000] * 7})\n"
