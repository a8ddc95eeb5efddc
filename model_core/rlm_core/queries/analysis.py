"""A source file, or the cells of a notebook -> units with the text, callees and sizes that the model reads.

The command line and the server both use this module, so their numbers are equal. Callees outside the file are looked
up in the file's package on disk; ``overlay`` gives the texts that take precedence over the disk, such as those of open
editors, already parsed where they are analysed too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cachetools import LRUCache

from rlm_core.source.call_graph import CallGraph, ModuleIndex, index_module, merged
from rlm_core.source.incremental import PythonFile, PythonReader
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import MAX_FILE_BYTES, cell_source, find_units
from rlm_core.types import Callee, CodeText, Unit

if TYPE_CHECKING:
    from .kernel_sizes import UnitSizes

Overlay = Callable[[Path], ParsedSource | bytes | None]
DefaultSizes = Callable[[Path | None], Mapping[str, str]]
_INDEXED_FILES = 512


@dataclass(frozen=True, slots=True)
class AnalysedUnit:
    """A unit of a file and what the predictor reads about it; ``sizes`` of a kernel are in ``code`` too."""

    unit: Unit
    code: CodeText
    sizes: UnitSizes | None = None


class Analyser:
    """Analyses files and remembers the indices of the files that they import. Not thread-safe: use one per thread.

    ``default_sizes`` gives the sizes of a file's kernels where the file names none, see
    :func:`rlm_core.queries.kernel_sizes.sizes_of`.
    """

    def __init__(self, overlay: Overlay | None = None, default_sizes: DefaultSizes | None = None) -> None:
        self._overlay: Overlay = overlay or (lambda path: None)
        self._default_sizes: DefaultSizes = default_sizes or (lambda path: {})
        self._indices: LRUCache[Path, tuple[object, ModuleIndex]] = LRUCache(_INDEXED_FILES)
        self._reader = PythonReader()
        self._cells: dict[bytes, PythonFile] = {}

    def analyse(self, parsed: ParsedSource, path: Path | None = None, name: str | None = None) -> list[AnalysedUnit]:
        """The units of a source text; ``path`` lets callees be found in the rest of its package.

        ``name`` identifies the text across versions: after an edit only what changed is analysed.

        Raises:
            SourceError: the language is unknown.
        """
        if parsed.language != "python":
            units = find_units(parsed)
            return [AnalysedUnit(unit, CodeText(unit.text, unit.language, unit.basis)) for unit in units]
        root, dotted = _package_of(path) if path is not None else (None, "")
        is_package = path is not None and path.name == "__init__.py"
        file = self._reader.read(parsed, dotted, is_package=is_package, name=name)
        graph = CallGraph(lambda module: file.index if module == dotted else self._load(root, dotted, module))
        return self._analysed(parsed, file.units, path, lambda unit: graph.callees(file.index, unit))

    def analyse_cells(self, sources: Sequence[bytes]) -> list[list[AnalysedUnit]]:
        """The units of the Python cells of a notebook, cell by cell; a function may call those of all cells.

        Each cell is analysed separately, so that a half-written one does not affect the others.
        """
        cells = [cell_source(source) for source in sources]
        previous, self._cells = self._cells, {}
        for cell in cells:
            self._cells[cell.source] = previous.get(cell.source) or self._reader.read(cell)
        files = [self._cells[cell.source] for cell in cells]
        index, graph = merged(file.index for file in files), CallGraph()
        return [
            self._analysed(cell, file.units, None, lambda unit: graph.callees(index, unit))
            for cell, file in zip(cells, files, strict=True)
        ]

    def _analysed(
        self,
        parsed: ParsedSource,
        units: list[Unit],
        path: Path | None,
        callees_of: Callable[[Unit], tuple[Callee, ...]],
    ) -> list[AnalysedUnit]:
        sizes = self._sizes(parsed, units, path) if any(unit.kind == "kernel" for unit in units) else {}
        analysed = []
        for unit in units:
            callees = callees_of(unit) if unit.kind == "function" else ()
            of_unit = sizes.get(unit)
            workloads = tuple(tuple(workload.items()) for workload in of_unit.workloads) if of_unit is not None else ()
            code = CodeText(unit.text, unit.language, unit.basis, callees, workloads)
            analysed.append(AnalysedUnit(unit, code, of_unit))
        return analysed

    def _sizes(self, parsed: ParsedSource, units: list[Unit], path: Path | None) -> Mapping[Unit, UnitSizes]:
        # Imported for the first kernel: it imports numpy, which the server's start must not.
        from .kernel_sizes import sizes_of

        return sizes_of(parsed, units, self._default_sizes(path)).units

    def _load(self, root: Path | None, dotted: str, module: str) -> ModuleIndex | None:
        # Only the file's package: what other packages cost is not looked up.
        if root is None or module.partition(".")[0] != dotted.partition(".")[0]:
            return None
        stem = root.joinpath(*module.split("."))
        for path in (stem.with_suffix(".py"), stem / "__init__.py"):
            index = self._index(path, module)
            if index is not None:
                return index
        return None

    def _index(self, path: Path, dotted: str) -> ModuleIndex | None:
        overlay = self._overlay(path)
        parsed = ParsedSource(overlay, "python") if isinstance(overlay, bytes) else overlay
        try:
            if parsed is None:
                stat = path.stat()
                if stat.st_size > MAX_FILE_BYTES:
                    return None
                version: object = (stat.st_mtime_ns, stat.st_size)
            else:
                version = parsed.source
            known = self._indices.get(path)
            if known is not None and known[0] == version:
                return known[1]
            if parsed is None or parsed.language != "python":
                parsed = ParsedSource(path.read_bytes() if parsed is None else parsed.source, "python")
            index = index_module(parsed, dotted, is_package=path.name == "__init__.py")
        except (OSError, ValueError):
            return None
        self._indices[path] = (version, index)
        return index


def _package_of(path: Path) -> tuple[Path, str]:
    """The folder that holds a file's top-level package, and the file's dotted module name in it."""
    path = path.resolve()
    folder, parts = path.parent, [] if path.name == "__init__.py" else [path.stem]
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts)
