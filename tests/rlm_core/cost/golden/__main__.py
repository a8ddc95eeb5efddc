"""Renews the golden files: ``python -m tests.rlm_core.cost.golden``. Read what changed before you commit it."""

from __future__ import annotations

from .polynomials import golden_files

for path, text in golden_files().items():
    path.write_text(text, encoding="utf-8")
