"""Compact text of a graph: ``render`` writes it, ``parse`` reads it back; the symbols that a tokenizer should hold."""

from .operators import OPERATORS, SYMBOLS
from .parse import parse
from .render import render

__all__ = ["OPERATORS", "SYMBOLS", "parse", "render"]
