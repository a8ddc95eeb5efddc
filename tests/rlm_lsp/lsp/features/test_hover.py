"""Which unit a hover is about."""

from __future__ import annotations

import pytest
from lsprotocol import types
from pygls.workspace import PositionCodec
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_lsp.lsp.documents import Analysis, Document, place
from rlm_lsp.lsp.features.hover import unit_at
from rlm_lsp.lsp.text_positions import Lines

pytestmark = pytest.mark.timeout(30)

SOURCE = b"def outer(\n    a,\n):\n    def inner(): return a\n    return inner\n"


@pytest.mark.parametrize(
    ("line", "name"), [(0, "outer"), (1, "outer"), (2, "outer"), (3, "outer.<locals>.inner"), (4, None)]
)
def test_the_innermost_unit_whose_header_has_the_line(line: int, name: str | None) -> None:
    lines = Lines(SOURCE, PositionCodec())
    units = tuple(place(unit, lines) for unit in Analyser().analyse(ParsedSource(SOURCE, "python")))
    found = unit_at(Analysis(Document("file:///a.py", None, "python", 1, SOURCE), units), line)
    assert (found.analysed.unit.qualname if found is not None else None) == name
    assert found is None or found.hint >= types.Position(line, 0)
