"""Shapes and costs of PyTorch code, derived from its source text; nothing is run.

This module fills the tables of the dispatcher in :mod:`.context`.
"""

from . import expressions, statements

__all__ = ["expressions", "statements"]
