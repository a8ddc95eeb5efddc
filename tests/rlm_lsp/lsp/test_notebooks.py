"""The notebooks that the client has open: their cells in order."""

from __future__ import annotations

from rlm_lsp.lsp.notebooks import Notebooks


def test_a_notebook_knows_its_cells_in_order() -> None:
    notebooks = Notebooks()
    assert notebooks.put("n", ["a", "b", "c"]) == []
    assert notebooks.put("n", ["c", "a"]) == ["b"]
    assert notebooks.around("a") == ("c", "a")
    assert (notebooks.of("c"), notebooks.of("b")) == ("n", None)
    assert notebooks.put("n", []) == ["c", "a"]
    assert notebooks.of("a") is None
