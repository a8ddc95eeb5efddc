"""Cells of notebooks: Python with lines that only IPython understands, and functions that other cells may call."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from .callgraph import ModuleIndex
from .types import Unit

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


def moved(unit: Unit, size: int) -> Unit:
    """A unit that starts ``size`` bytes further on; lines and columns stay."""
    span = replace(unit.span, start_byte=unit.span.start_byte + size, end_byte=unit.span.end_byte + size)
    return replace(unit, span=span)


def merged(indices: Sequence[ModuleIndex], starts: Sequence[int]) -> ModuleIndex:
    """The index of a notebook whose cells have these indices and start at these bytes; later definitions win."""
    result = ModuleIndex("")
    for index, start in zip(indices, starts, strict=True):
        result.units.update({name: moved(unit, start) for name, unit in index.units.items()})
        result.bases.update(index.bases)
        result.imports.update(index.imports)
        result.calls += [replace(call, at=call.at + start) for call in index.calls]
    for name in result.units:
        result.by_name.setdefault(name.rsplit(".", 1)[-1], []).append(name)
    return result
