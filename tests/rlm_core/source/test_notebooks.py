"""Notebooks on disk: their Python cells with numbers, and what cannot be read as one clear line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rlm_core import SourceError
from rlm_core.source.notebooks import cells_of, read_cells

from tests.notebooks import notebook_text


def numbered(content: bytes | str) -> list[tuple[int, str]]:
    data = content.encode() if isinstance(content, str) else content
    return [(cell.number, cell.source.decode()) for cell in cells_of(data, "a.ipynb")]


def notebook(*cells: dict[str, Any], **fields: Any) -> str:
    return json.dumps({"nbformat": 4, "metadata": {}, "cells": list(cells), **fields})


def test_python_cells_have_the_numbers_that_editors_show() -> None:
    assert numbered(notebook_text("x = 1\ny = 2\n", "z = 3")) == [(2, "x = 1\ny = 2\n"), (3, "z = 3")]


def test_a_source_may_be_one_text_and_the_file_may_begin_with_a_byte_order_mark() -> None:
    text = notebook({"cell_type": "code", "source": "x = 'µ'"})
    assert numbered(b"\xef\xbb\xbf" + text.encode()) == [(1, "x = 'µ'")]


def test_outputs_are_not_read_whatever_is_in_them() -> None:
    text = notebook({"cell_type": "code", "source": "x", "outputs": {"not": ["what", 1]}, "execution_count": "one"})
    assert numbered(text) == [(1, "x")]


@pytest.mark.parametrize(
    "metadata", [{"kernelspec": {"language": "R"}}, {"language_info": {"name": "julia"}, "kernelspec": None}]
)
def test_a_notebook_in_another_language_has_no_python_cell(metadata: dict[str, Any]) -> None:
    python = {"cell_type": "code", "source": "x", "metadata": {"vscode": {"languageId": "python"}}}
    text = notebook({"cell_type": "code", "source": "y <- 1"}, python, metadata=metadata)
    assert numbered(text) == [(2, "x")]


def test_a_cell_in_another_language_is_left_out() -> None:
    other = {"cell_type": "code", "source": "SELECT 1", "metadata": {"vscode": {"languageId": "sql"}}}
    assert numbered(notebook(other, {"cell_type": "raw", "source": "y"}, {"cell_type": "code", "source": "x"})) == [
        (3, "x")
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"cells": [', "is not a Jupyter notebook"),
        (b"", "is not a Jupyter notebook"),
        (b"[1, 2]", "is not a Jupyter notebook"),
        (b"\xff\xfe", "is not a Jupyter notebook"),
        (b"[" * 100_000, "is not a Jupyter notebook"),
        (b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": 3}]}', "is not a Jupyter notebook"),
        (b'{"nbformat": 3, "worksheets": []}', "old format 3; convert it"),
        (notebook({"cell_type": "code", "source": "x" * (2 * 1024 * 1024 + 1)}).encode(), "over the limit of 2 MiB"),
    ],
)
def test_what_is_not_a_notebook_is_one_clear_line(content: bytes, reason: str) -> None:
    with pytest.raises(SourceError, match=reason) as caught:
        cells_of(content, "a.ipynb")
    assert str(caught.value).startswith("a.ipynb: ")
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such file"):
        read_cells(tmp_path / "none.ipynb")
    (tmp_path / "folder").mkdir()
    outside = tmp_path / "outside.ipynb"
    outside.write_text(notebook_text("x"))
    (tmp_path / "folder" / "link.ipynb").symlink_to(outside)
    with pytest.raises(SourceError, match="outside"):
        read_cells(tmp_path / "folder" / "link.ipynb", tmp_path / "folder")
