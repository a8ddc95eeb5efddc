"""Columns that describe a text beside the known devices' predictions: how many operators of each kind a network has.

A device family that the model has never seen weighs operators differently (a launch costs a GPU more than a phone);
a few counts let ten measurements find that. Other bases have no columns: the known devices say enough.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from rlm_core.errors import RlmError
from rlm_core.types import Basis, CodeText

from .fit import Array

_KINDS = {
    "Add": "merge",
    "Concat": "merge",
    "AveragePool": "pool",
    "MaxPool": "pool",
    "Gemm": "product",
    "MatMul": "product",
    "Identity": "identity",
    "BatchNormalization": "normalisation",
    "LayerNormalization": "normalisation",
}
_NETWORK = ("pointwise", "spatial", "wide", "grouped", "merge", "pool", "product", "identity", "normalisation", "other")


def column_names(basis: Basis) -> tuple[str, ...]:
    """The columns of a basis."""
    return _NETWORK if basis == "network" else ()


def text_columns(code: CodeText, names: Sequence[str]) -> Array:
    """The columns called ``names`` of a text, ``(names,)``: log10 of one plus a count; NaN where unknown."""
    counts = _counts(code.text) if code.basis == "network" else None
    if counts is None:
        return np.full(len(names), np.nan)
    return np.array([math.log10(1 + counts[name]) if name in _NETWORK else math.nan for name in names])


@lru_cache(1024)
def _counts(text: str) -> Counter[str] | None:
    """Operators by kind; None when the text is no graph."""
    from rlm_core.source.onnx_graph.graph import Constant, Node
    from rlm_core.source.onnx_graph.parse import parse

    def kind(node: Node) -> str:
        if node.operator not in ("Conv", "ConvTranspose"):
            return _KINDS.get(node.operator, "other")
        group, weight = node.attribute("group"), node.operands[1] if len(node.operands) > 1 else None
        if isinstance(group, int) and group > 1:
            return "grouped"
        size = max(weight.shape[2:], default=1) if isinstance(weight, Constant) else 1
        return "pointwise" if size == 1 else "spatial" if size <= 3 else "wide"

    try:
        return Counter(kind(node) for node in parse(text).nodes)
    except (RlmError, ValueError):
        return None
