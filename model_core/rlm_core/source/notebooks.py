"""A Jupyter notebook on disk -> its Python cells, in order. Outputs are skipped, not read.

Cells are numbered from 1, all kinds of cells together, as editors and linters number them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePath

import msgspec

from rlm_core.errors import SourceError
from rlm_core.files import FileRefusedError, read_regular

from .units import MAX_FILE_BYTES

SUFFIX = ".ipynb"
# Most of a large notebook is pictures in its outputs.
_MOST_BYTES = 64 * 1024 * 1024
_OLDEST_FORMAT = 4
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Cell:
    """A Python cell of a notebook and its number."""

    number: int
    source: bytes


class _EditorMetadata(msgspec.Struct):
    languageId: str | None = None  # noqa: N815


class _CellMetadata(msgspec.Struct):
    vscode: _EditorMetadata | None = None


class _Cell(msgspec.Struct):
    cell_type: str
    source: str | list[str] = ""
    metadata: _CellMetadata | None = None

    @property
    def language(self) -> str | None:
        """The language of a cell that is not in that of its notebook."""
        editor = self.metadata.vscode if self.metadata is not None else None
        return editor.languageId if editor is not None else None


class _Kernel(msgspec.Struct):
    language: str | None = None


class _Language(msgspec.Struct):
    name: str | None = None


class _Metadata(msgspec.Struct):
    kernelspec: _Kernel | None = None
    language_info: _Language | None = None

    @property
    def language(self) -> str:
        """The language of the cells; Jupyter's own where the notebook names none."""
        kernel = self.kernelspec.language if self.kernelspec is not None else None
        return (kernel or (self.language_info.name if self.language_info is not None else None) or "python").lower()


class _Notebook(msgspec.Struct):
    nbformat: int
    cells: list[_Cell] = []
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


def is_notebook(path: PurePath) -> bool:
    """Return whether a file is a notebook, by its suffix."""
    return path.suffix.lower() == SUFFIX


def read_cells(path: Path, root: Path | None = None) -> tuple[Cell, ...]:
    """The Python cells of a notebook; none where it is in another language.

    ``root``: the folder in which the file was found, unless the user named it; links out of it are not followed.

    Raises:
        SourceError: the file cannot be read, is too large, or is not a notebook.
    """
    try:
        content = read_regular(path, _MOST_BYTES, root)
    except FileNotFoundError:
        raise SourceError(f"{path}: no such file; check the path") from None
    except FileRefusedError as error:
        raise SourceError(f"{path}: {error.strerror}; skip it or name another file") from None
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
    return cells_of(content, str(path))


def cells_of(content: bytes, path: str) -> tuple[Cell, ...]:
    """The Python cells in the bytes of a notebook. ``path`` is for messages.

    Raises:
        SourceError: the bytes are not a notebook, or one in an old format, or its code is too long.
    """
    try:
        notebook = msgspec.json.decode(content.removeprefix(_BYTE_ORDER_MARK), type=_Notebook)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise SourceError(f"{path}: is not a Jupyter notebook ({reason}); save it again in Jupyter") from None
    if notebook.nbformat < _OLDEST_FORMAT:
        advice = "convert it with `jupyter nbconvert --to notebook`"
        raise SourceError(f"{path}: is a notebook in the old format {notebook.nbformat}; {advice}")
    cells = tuple(
        Cell(number, _text(cell).encode("utf-8", errors="replace"))
        for number, cell in enumerate(notebook.cells, 1)
        if cell.cell_type == "code" and (cell.language or notebook.metadata.language) == "python"
    )
    if sum(len(cell.source) for cell in cells) > MAX_FILE_BYTES:
        raise SourceError(f"{path}: its cells are over the limit of {MAX_FILE_BYTES // 2**20} MiB; skip it")
    return cells


def _text(cell: _Cell) -> str:
    return cell.source if isinstance(cell.source, str) else "".join(cell.source)
