"""A file -> its texts with their units: one text of a source file, one per Python cell of a notebook.

The command line and the server read files that no editor has open with this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rlm_core.source.notebooks import Cell, is_notebook, read_cells
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import cell_source, read_source

from .analysis import AnalysedUnit, Analyser
from .network_sizes import sized_network

NETWORK_SUFFIX = ".onnx"


@dataclass(frozen=True, slots=True)
class TextUnits:
    """A text and its units. ``cell`` is the number of a notebook's cell, see :mod:`rlm_core.source.notebooks`."""

    parsed: ParsedSource
    units: list[AnalysedUnit]
    cell: int | None = None


def file_units(analyser: Analyser, path: Path, root: Path | None = None) -> list[TextUnits]:
    """Read and analyse a file. ``root``: the folder in which it was found, unless the user named it.

    Raises:
        SourceError: the file cannot be read, or reading its text as a whole fails.
    """
    if is_notebook(path):
        return notebook_units(analyser, read_cells(path, root), path)
    sizes = analyser.network_sizes(path) if path.suffix.lower() == NETWORK_SUFFIX else {}
    parsed = read_source(path, root, sizes)
    units = analyser.analyse(parsed, path)
    return [TextUnits(parsed, [replace(unit, code=sized_network(unit.code, sizes)) for unit in units])]


def notebook_units(analyser: Analyser, cells: Sequence[Cell], path: Path | None = None) -> list[TextUnits]:
    """Analyse the cells of a notebook; a function may call those of all cells.

    Raises:
        SourceError: the cells are too complex, or reading them fails.
    """
    found = analyser.analyse_cells([cell.source for cell in cells], path)
    return [TextUnits(cell_source(cell.source), units, cell.number) for cell, units in zip(cells, found, strict=True)]
