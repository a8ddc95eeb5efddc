"""Files in memory hold what is written to them, also by a writer of rows; measured against the interpreter."""

from __future__ import annotations

import csv
import inspect
import io
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource


def rows_one_by_one() -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    for number in range(5000):
        writer.writerow((number, "name", 0.5))
    return buffer.getvalue()


def all_rows() -> str:
    rows = [(number, "name", 0.5) for number in range(5000)]
    buffer = io.StringIO()
    csv_writer = csv.writer(buffer)
    csv_writer.writerows(rows)
    return buffer.getvalue()


def rows_of_names() -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=["a", "b"])
    for number in range(5000):
        writer.writerow({"a": number, "b": "text"})
    return buffer.getvalue()


def one_row() -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerow((1, 2, 3))
    return buffer.getvalue()


def lines() -> str:
    buffer = io.StringIO()
    for number in range(5000):
        buffer.write(f"line of text {number}\n")
    return buffer.getvalue()


def lines_at_once() -> bytes:
    buffer = io.BytesIO()
    buffer.writelines([b"a line of bytes that is written" for _ in range(5000)])
    return buffer.getvalue()


def likely_bytes(text: str) -> float:
    parsed = ParsedSource(f"import csv\nimport io\n\n\n{text}".encode(), "python")
    work = next(unit.code.work for unit in Analyser().analyse(parsed) if unit.code.basis == "call")
    assert work is not None
    return work.memory.known.likely


def peak(function: Callable[[], Any]) -> int:
    function()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        result = function()
        return tracemalloc.get_traced_memory()[1] - before if result else 0
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("function", [rows_one_by_one, all_rows, rows_of_names, one_row, lines, lines_at_once])
def test_what_is_written_is_held(function: Callable[[], Any]) -> None:
    # From CPython 3.12 on, a StringIO joins what is written at once, and so holds less.
    assert 0.6 < likely_bytes(inspect.getsource(function)) / peak(function) < 3


def test_a_writer_without_a_file_in_memory_holds_nothing_else() -> None:
    text = (
        "def f(file):\n    other = io.StringIO()\n    writer = csv.writer(file)\n"
        "    for i in range(5000):\n        writer.writerow((i, i))\n    return other.getvalue()\n"
    )
    assert likely_bytes(text) < 150_000
