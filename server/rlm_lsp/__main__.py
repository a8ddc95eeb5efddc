"""``python -m rlm_lsp``: the same as the ``rlm-lsp`` command."""

from __future__ import annotations

from .cli.app import main

main()
