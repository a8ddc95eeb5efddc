"""The open notebooks: which documents are cells, and of what."""

from __future__ import annotations

from collections.abc import Sequence


class Notebooks:
    """The open notebooks and the Python cells of each in order; lives on the event loop."""

    def __init__(self) -> None:
        self._cells: dict[str, tuple[str, ...]] = {}
        self._notebooks: dict[str, str] = {}

    def put(self, notebook: str, cells: Sequence[str]) -> list[str]:
        """A notebook has these cells now; the cells that it no longer has."""
        gone = [cell for cell in self._cells.get(notebook, ()) if cell not in cells]
        for cell in gone:
            del self._notebooks[cell]
        self._cells[notebook] = tuple(cells)
        self._notebooks.update(dict.fromkeys(cells, notebook))
        if not cells:
            del self._cells[notebook]
        return gone

    def of(self, cell: str) -> str | None:
        """The notebook of a cell; None for what is no cell."""
        return self._notebooks.get(cell)

    def around(self, cell: str) -> tuple[str, ...]:
        """The cells of a cell's notebook, itself among them."""
        return self._cells[self._notebooks[cell]]
