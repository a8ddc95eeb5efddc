"""Cells of notebooks: Python with lines that only IPython understands."""

from __future__ import annotations

import re

# `%timeit f()`, `!ls`, `?f`; a line that goes on with the operator `%` has a blank behind it.
_ESCAPE = re.compile(rb"^([ \t]*)(?:%(?=%?[A-Za-z])|!|\?)", re.MULTILINE)
_CELL_MAGIC = re.compile(rb"\s*%%([A-Za-z]\w*)")
_OF_PYTHON = (b"capture", b"prun", b"time", b"timeit")  # cell magics whose cells are Python
_TEXT = re.compile(rb"[^\r\n]")


def plain(cell: bytes) -> bytes:
    """A cell as Python in which every offset is what it was.

    Lines for IPython count as comments, a cell in another language as blanks.
    """
    magic = _CELL_MAGIC.match(cell)
    if magic is not None and magic[1] not in _OF_PYTHON:
        return _TEXT.sub(b" ", cell)
    return _ESCAPE.sub(rb"\1#", cell)
