"""Small projects with tests of their own, for the tests of measuring."""

from __future__ import annotations

import os
import sys
from pathlib import Path

SHAPES = '''
import functools
import threading


def square(side):
    return side * side


def total(sides):
    values = []
    for side in sides:
        values.append(square(side))
    return sum(values)


def slow(n):
    found = 0
    for i in range(n):
        found += i % 7
    return found


def around(n):
    return slow(n) + slow(n)


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def refuses(n):
    """Says no to large numbers."""
    if n > 1:
        raise ValueError(n)
    return n


def hold(size):
    block = bytearray(size)
    return len(block)


def hold_inside(size):
    held = hold(size)
    return held


def stream(n):
    for i in range(n):
        yield i


async def later(n):
    return n


def on_threads(n):
    workers = [threading.Thread(target=square, args=(n,)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


class Box:
    @functools.lru_cache  # noqa: B019
    def volume(self, n):
        def inner(m):
            return m

        return inner(n)
'''
TESTS = """
import asyncio

import pytest
import shapes


@pytest.mark.parametrize("n", range(4))
def test_total(n):
    for _ in range(9):
        assert shapes.total(range(n)) >= 0


@pytest.mark.parametrize("n", range(4))
def test_around(n):
    for _ in range(50):
        assert shapes.around(2000)


def test_the_rest():
    assert shapes.fib(10) == 55
    assert shapes.refuses(1) == 1
    with pytest.raises(ValueError):
        shapes.refuses(2)
    assert shapes.hold_inside(1 << 20) == 1 << 20
    assert sum(shapes.stream(10)) == 45
    assert asyncio.run(shapes.later(3)) == 3
    assert shapes.Box().volume(3) == 3
    shapes.on_threads(3)


def test_that_fails():
    assert shapes.square(2) == 5
"""
QUIET = ("-q", "--tb=no", "-p", "no:cacheprovider", "--no-header", "--no-summary")


def write_project(folder: Path, tests: str = TESTS, code: str = SHAPES) -> Path:
    """A project in the ``src`` layout with the package ``shapes``, and its tests."""
    package = folder / "src" / "shapes"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(code, encoding="utf-8")
    (folder / "tests").mkdir()
    (folder / "tests" / "test_shapes.py").write_text(tests, encoding="utf-8")
    (folder / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["src"]\n', encoding="utf-8")
    return folder


def environment(home: Path, **more: str) -> dict[str, str]:
    """An environment for subprocesses: our packages importable, no plugins but those named, data under ``home``."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": "",
        "XDG_DATA_HOME": str(home),
        **more,
    }
