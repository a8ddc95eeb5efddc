"""ONNX graphs: read from a model, written as compact text, read back from it, and their costs."""

from .graph import Constant, Graph, Node, Ref, Shape, Value, ordered
from .reader import from_model, read_onnx
from .text import OPERATORS, SYMBOLS, parse, render

__all__ = [
    "OPERATORS",
    "SYMBOLS",
    "Constant",
    "Graph",
    "Node",
    "Ref",
    "Shape",
    "Value",
    "from_model",
    "ordered",
    "parse",
    "read_onnx",
    "render",
]
