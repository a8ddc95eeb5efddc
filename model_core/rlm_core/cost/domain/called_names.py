"""The calls that a text is written with: which names it calls, and in which lines.

What a call costs may be known in one text and unknown in another that is written with the same call, since a type hint,
an import or a callee has changed. Comparisons of texts therefore look at names, not at what is known of them.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from .syntax import called_name, parse, walk

_CACHED_TEXTS = 512


@dataclass(frozen=True, slots=True)
class WrittenCalls:
    """The last parts of the called names, such as ``get`` of ``requests.get``, with their lines ``(first, last)``.

    Lines are 0-based and inclusive.
    """

    lines: Mapping[str, tuple[tuple[int, int], ...]]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and last_part(name) in self.lines

    def across(self, line: int) -> frozenset[str]:
        """The names that calls across a line have."""
        return frozenset(
            name for name, spans in self.lines.items() if any(first <= line <= last for first, last in spans)
        )


def last_part(name: str) -> str:
    """``get`` of ``requests.get`` or ``requests.get()``."""
    return name.removesuffix("()").rpartition(".")[2]


@lru_cache(_CACHED_TEXTS)
def written_calls(text: str) -> WrittenCalls | None:
    """The calls of a Python text; None where it cannot be parsed."""
    tree = parse(text)
    if tree is None:
        return None
    found: dict[str, list[tuple[int, int]]] = {}
    for node in walk(tree):
        if isinstance(node, ast.Call) and (name := called_name(node)):
            span = node.lineno - 1, (node.end_lineno or node.lineno) - 1
            found.setdefault(last_part(name), []).append(span)
    return WrittenCalls({name: tuple(spans) for name, spans in found.items()})
