"""``rlm-lsp serve-model`` with the tests' predictor, in a process of its own.

A text that begins with ``hold`` keeps the model busy: it prints ``held`` and waits for a line on stdin.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import rlm_core
from rlm_core import CodeText, Prediction, Query
from rlm_lsp.cli.app import main

from .support import LengthPredictor


class Holding(LengthPredictor):
    """Waits for a line where a text says so."""

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        if any(code.text.startswith("hold") for code in texts):
            print("held", flush=True)
            sys.stdin.readline()
        return super().predict(texts, queries)


if __name__ == "__main__":
    setattr(rlm_core, "load", lambda model, threads=0: Holding())  # noqa: B010 (mypy holds functions to be constant)
    main()
