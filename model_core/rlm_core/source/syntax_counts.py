"""The structure of a canonical text: counts from its syntax tree (loops, nesting, calls ...), alike for all languages.

The counts need no label and have two uses: the encoder is pretrained to predict them, and the query head reads them as
features. Node types are classified by their names, which tree-sitter grammars mostly share; a text without a grammar
has only its words and numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from tree_sitter import Node

from . import languages
from .node_categories import node_category
from .parsed import ParsedSource

Array = npt.NDArray[np.float32]
NAMES = (
    "nodes",
    "depth",
    "loops",
    "loop_nesting",
    "nested_loops",
    "calls",
    "calls_in_loops",
    "calls_in_nested_loops",
    "branches",
    "branches_in_loops",
    "functions",
    "classes",
    "returns",
    "assignments",
    "operations",
    "operations_in_loops",
    "subscripts",
    "subscripts_in_loops",
    "literals",
    "strings",
    "collections",
    "raises",
    "recursive_calls",
    "names",
    "lines",
    "largest_number",
)
_AMOUNTS = 5
FACTS = _AMOUNTS + len(NAMES)
_WORD = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"(?<![\w.])\d[\d_]*(?![\w.])")
_MAX_NODES = 20_000


_IN_LOOPS = {"calls": "calls_in_loops", "branches": "branches_in_loops", "operations": "operations_in_loops",
             "subscripts": "subscripts_in_loops"}  # fmt: skip


def structure(text: str, language: str) -> Array:
    """The counts of a canonical text as ``log1p`` values in the order of :data:`NAMES`.

    Raises:
        SourceError: the language is unknown.
    """
    counts = dict.fromkeys(NAMES, 0.0)
    if languages.by_name(language).grammar is not None:
        _count(ParsedSource(text.encode("utf-8", "replace"), language).root, counts)
    counts["names"] = len(set(_WORD.findall(text)))
    counts["lines"] = text.count("\n") + 1
    numbers = [int(number.replace("_", "") or 0) for number in _NUMBER.findall(text) if len(number) < 19]
    # In effect the logarithm is taken twice: sizes matter by their order of magnitude.
    counts["largest_number"] = np.log1p(max(numbers, default=0))
    return np.log1p(np.array([counts[name] for name in NAMES], dtype=np.float64)).astype(np.float32)


def facts(counts: Array, tokens: int, level1: Sequence[int], level2: Sequence[int]) -> Array:
    """The features of a unit for the query head, next to its encoding. Shape ``(FACTS,)``.

    Args:
        counts: the unit's :func:`structure`.
        tokens: the unit's number of tokens.
        level1: the numbers of tokens of the callees at level 1.
        level2: the numbers of tokens of the callees at level 2.
    """
    amounts = np.log1p([tokens, len(level1), sum(level1), len(level2), sum(level2)])
    return np.concatenate([amounts, counts]).astype(np.float32)


def _count(root: Node, counts: dict[str, float]) -> None:
    """Walk over the named nodes once; ``loops`` is the number of loops around a node, ``names`` its functions."""
    cursor = root.walk()
    depth = nodes = 0
    around: list[str | None] = []  # the category of each open node
    loops = 0
    names: list[bytes] = []
    while True:
        node = cursor.node
        assert node is not None
        category = node_category(node.type) if node.is_named else None
        nodes += 1
        if category is not None:
            _count_node(node, category, loops, names, counts)
        counts["depth"] = max(counts["depth"], depth)
        if nodes < _MAX_NODES and cursor.goto_first_child():
            depth += 1
            around.append(category)
            loops += category == "loops"
            if category == "functions":
                names.append(_name(node))
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent() or not around:
                counts["nodes"] = nodes
                return
            depth -= 1
            left = around.pop()
            loops -= left == "loops"
            if left == "functions":
                names.pop()


def _count_node(node: Node, category: str, loops: int, names: list[bytes], counts: dict[str, float]) -> None:
    counts[category] += 1
    if category == "loops":
        counts["loop_nesting"] = max(counts["loop_nesting"], loops + 1)
        counts["nested_loops"] += loops > 0
    elif loops and category in _IN_LOOPS:
        counts[_IN_LOOPS[category]] += 1
        if category == "calls" and loops > 1:
            counts["calls_in_nested_loops"] += 1
    if category == "calls" and names:
        called = _name(node).rpartition(b".")[2]
        counts["recursive_calls"] += bool(called) and called in names


def _name(node: Node) -> bytes:
    """The identifier that a definition binds or a call names, empty when there is none."""
    identifier = node.child_by_field_name("name") or node.child_by_field_name("function")
    if identifier is None and node.named_child_count:
        identifier = node.named_child(0)
    text = identifier.text if identifier is not None else None
    return text if text is not None and len(text) < 80 else b""
