"""rlm-lsp: the language server and the command line around ``rlm_core``. No model code lives here."""

from __future__ import annotations

from rlm_core import __version__

__all__ = ["__version__"]
