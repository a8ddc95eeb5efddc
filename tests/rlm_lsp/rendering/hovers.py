"""The text of a hover in one piece."""

from __future__ import annotations

from typing import Any

from rlm_lsp.rendering.hover import hover_text


def whole_hover(*arguments: Any, markdown: bool, **named: Any) -> str:
    """The text of a hover with its details, for a client that cannot show them as a document."""
    return hover_text(*arguments, markdown=markdown, **named).together(markdown=markdown)
