"""A source file, or the cells of a notebook -> units with the text and callees that the model reads.

The command line and the server both come through here, so that their numbers are equal. Callees outside the file are
looked up in the file's own package on disk; ``overlay`` gives the text of files that are open in an editor.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_core.source import notebook_cells as cells
from rlm_core.source.call_graph import CallGraph, ModuleIndex, index_module, merged
from rlm_core.source.incremental import Read, Reader
from rlm_core.source.units import MAX_FILE_BYTES, find_units
from rlm_core.types import Callee, CodeText, Unit

if TYPE_CHECKING:
    from .kernel_sizes import UnitSizes

Overlay = Callable[[Path], bytes | None]
DefaultSizes = Callable[[Path | None], Mapping[str, str]]
_INDEXED_FILES = 512


@dataclass(frozen=True, slots=True)
class AnalysedUnit:
    """A unit of a file and what the predictor reads about it; ``sizes`` are a kernel's, which ``code`` holds too."""

    unit: Unit
    code: CodeText
    sizes: UnitSizes | None = None


class Analyser:
    """Analyses files and remembers the indices of the files that they import. Not thread-safe: one a thread.

    ``default_sizes`` gives the sizes that a file's kernels are asked at where the file names none, as in
    :func:`rlm_core.queries.kernel_sizes.sizes_of`.
    """

    def __init__(self, overlay: Overlay | None = None, default_sizes: DefaultSizes | None = None) -> None:
        self._overlay: Overlay = overlay or (lambda path: None)
        self._default_sizes: DefaultSizes = default_sizes or (lambda path: {})
        self._indices: OrderedDict[Path, tuple[object, ModuleIndex]] = OrderedDict()
        self._reader = Reader()
        self._cells: dict[bytes, Read] = {}

    def analyse(
        self, source: bytes, language: str, path: Path | None = None, name: str | None = None
    ) -> list[AnalysedUnit]:
        """The units of a UTF-8 source text; ``path`` lets callees be found in the rest of its package.

        By its ``name`` a text is known again: after an edit only what changed is read.

        Raises:
            SourceError: the language is unknown.
        """
        if language != "python":
            units = find_units(source, language)
            return [AnalysedUnit(unit, CodeText(unit.text, unit.language, unit.basis)) for unit in units]
        root, dotted = _package_of(path) if path is not None else (None, "")
        is_package = path is not None and path.name == "__init__.py"
        found = self._reader.read(source, dotted, is_package=is_package, name=name)
        units, index = found.units, found.index
        graph = CallGraph(lambda wanted: index if wanted == dotted else self._load(root, dotted, wanted))
        return self._read(source, units, path, lambda unit: graph.callees(index, unit))

    def analyse_cells(self, sources: Sequence[bytes]) -> list[list[AnalysedUnit]]:
        """The units of the Python cells of a notebook, cell by cell; a function may call those of all cells.

        Each cell is read by itself, so that a half-written one leaves the others alone.
        """
        kept, self._cells = self._cells, {}
        for source in sources:
            self._cells[source] = kept.get(source) or self._reader.read(cells.plain(source))
        read = [self._cells[source] for source in sources]
        index, graph = merged(part.index for part in read), CallGraph()
        return [
            self._read(source, part.units, None, lambda unit: graph.callees(index, unit))
            for source, part in zip(sources, read, strict=True)
        ]

    def _read(
        self, source: bytes, units: list[Unit], path: Path | None, callees_of: Callable[[Unit], tuple[Callee, ...]]
    ) -> list[AnalysedUnit]:
        sizes = self._sizes(source, units, path) if any(unit.kind == "kernel" for unit in units) else {}
        found = []
        for unit in units:
            callees = callees_of(unit) if unit.kind == "function" else ()
            of_unit = sizes.get(unit)
            workloads = tuple(tuple(one.items()) for one in of_unit.workloads) if of_unit is not None else ()
            found.append(
                AnalysedUnit(unit, CodeText(unit.text, unit.language, unit.basis, callees, workloads), of_unit)
            )
        return found

    def _sizes(self, source: bytes, units: list[Unit], path: Path | None) -> Mapping[Unit, UnitSizes]:
        # Imported for the first kernel: it takes numpy, which the server's start must not.
        from .kernel_sizes import sizes_of

        return sizes_of(source, units, self._default_sizes(path)).units

    def _load(self, root: Path | None, dotted: str, wanted: str) -> ModuleIndex | None:
        # Only the file's own package: what other packages cost is not looked up.
        if root is None or wanted.partition(".")[0] != dotted.partition(".")[0]:
            return None
        stem = root.joinpath(*wanted.split("."))
        for path in (stem.with_suffix(".py"), stem / "__init__.py"):
            index = self._index(path, wanted)
            if index is not None:
                return index
        return None

    def _index(self, path: Path, dotted: str) -> ModuleIndex | None:
        text = self._overlay(path)
        try:
            if text is None:
                stat = path.stat()
                if stat.st_size > MAX_FILE_BYTES:
                    return None
                version: object = (stat.st_mtime_ns, stat.st_size)
            else:
                version = text
            known = self._indices.get(path)
            if known is not None and known[0] == version:
                self._indices.move_to_end(path)
                return known[1]
            index = index_module(
                text if text is not None else path.read_bytes(), dotted, is_package=path.name == "__init__.py"
            )
        except (OSError, ValueError):
            return None
        self._indices[path] = (version, index)
        if len(self._indices) > _INDEXED_FILES:
            self._indices.popitem(last=False)
        return index


def _package_of(path: Path) -> tuple[Path, str]:
    """The folder that holds a file's top-level package, and the file's dotted module name in it."""
    path = path.resolve()
    folder, parts = path.parent, [] if path.name == "__init__.py" else [path.stem]
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts)
