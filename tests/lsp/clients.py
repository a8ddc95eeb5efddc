"""What real editors say that they can, as they sent it in ``initialize``: the files in ``capabilities``.

They are recorded in the editors themselves: ``RECORD_CAPABILITIES=1 pytest tests/editors/nvim tests/editors/helix
tests/editors/emacs`` writes those of the terminal editors, ``tests/editors/record_vscode.mjs`` that of VS Code with
our extension. Without the variable, the editors' tests check that they still say the same.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lsprotocol import converters, types

FOLDER = Path(__file__).parent / "capabilities"
CLIENTS = {
    "vscode": "vscode-1.139",
    "neovim": "neovim-0.12",
    "neovim-0.10": "neovim-0.10",
    "helix": "helix-25.07",
    "emacs": "emacs-30.1",
}


def capabilities(client: str) -> types.ClientCapabilities:
    """The capabilities that a client sends."""
    said: dict[str, Any] = json.loads((FOLDER / f"{CLIENTS[client]}.json").read_text())
    return converters.get_converter().structure(said["capabilities"], types.ClientCapabilities)


def reads_markdown(client: str) -> bool:
    """Whether a client shows hovers as Markdown."""
    text_document = capabilities(client).text_document
    wanted = text_document.hover.content_format if text_document and text_document.hover else None
    return bool(wanted) and types.MarkupKind.Markdown in (wanted or ())


def resolves_tooltips(client: str) -> bool:
    """Whether a client asks for the tooltip of a hint when it shows it."""
    text_document = capabilities(client).text_document
    hints = text_document.inlay_hint if text_document else None
    return bool(hints and hints.resolve_support and "tooltip" in hints.resolve_support.properties)
