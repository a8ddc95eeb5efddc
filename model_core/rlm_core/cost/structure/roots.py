"""Which inputs bound the loops of an outlined text: `n` in ``for i < n`` is the length of a parameter, or a number.

Assignments are followed by name, without scopes or order: enough for `n = len(nums)`, wrong for a name with two
meanings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .literals import number, split_arguments
from .parts import Loop, Outline, Routine

_MAX_SOURCE = 20_000
_MAX_STEPS = 4
_MAX_VALUE = 80
# The name comes before its type.
_NAME_FIRST = frozenset({"python", "typescript", "javascript", "rust", "go", "kotlin", "scala", "swift"})
_ASSIGNMENT = re.compile(r"(?<![\w.])(\w+)(?:: ?[\w<>\[\]]{1,20})? ?:?= ?([^=,;\n][^,;\n]{0,80})")
_PAIR = re.compile(r"(?<![\w.])(\w+), ?(\w+) ?:?= ?([^=,;\n][^,;\n]{0,80}), ?([^,;\n]{1,80})")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_INNER = re.compile(r"\w\[(?:0|\w+)\]")
_TYPES = (
    ("matrix", re.compile(r"\[\]\[\]|vector<vector|List\[List|Vec<Vec|List<List|string>>|vector<string|\[\]string|"
                          r"string\[\]|List\[str\]|String\[\]|Vec<String")),
    ("list", re.compile(r"vector|\[\]|List|Vec|Array|list|\bset|map|Map")),
    ("text", re.compile(r"[sS]tring|\bstr\b|char")),
    ("number", re.compile(r"\bint|long|number|\b[iu]\d\d\b|size|double|float")),
    ("node", re.compile(r"Node")),
)  # fmt: skip
_NO_NAMES = frozenset((
    "len", "length", "size", "range", "xrange", "reversed", "enumerate", "zip", "sorted", "int", "long", "auto",
    "in", "of", "min", "max", "and", "or", "not", "i32", "i64", "usize", "as", "begin", "end", "Math", "count",
    "Len", "iter", "chars", "bytes", "as_bytes", "self", "this",
))  # fmt: skip


class Roots:
    """The inputs behind the bounds of an outline's loops."""

    def __init__(self, structure: Outline) -> None:
        main = max(structure.routines, key=lambda routine: (len(routine.loops) + len(routine.calls), -routine.start))
        self.parameters = parameter_kinds(main, structure.language)
        self._index = {name: place for place, name in enumerate(self.parameters)}
        text = structure.source[:_MAX_SOURCE].decode(errors="replace")
        self._values: dict[str, str] = {}
        for match in _PAIR.finditer(text):
            self._values.setdefault(match[1], match[3])
            self._values.setdefault(match[2], match[4])
        for match in _ASSIGNMENT.finditer(text):
            self._values.setdefault(match[1], match[2])

    def of(self, bound: str) -> str:
        """The first input that a bound depends on: ``0`` or ``0[]`` for (items of) the first, ``c`` a number, ``?``."""
        inner = ""
        for _ in range(_MAX_STEPS):
            bound = bound[:_MAX_VALUE]
            if number(bound) is not None:
                return "c"
            inner = inner or ("[]" if _INNER.search(bound) else "")
            names = [name for name in _IDENTIFIER.findall(bound) if name not in _NO_NAMES]
            known = [name for name in names if name in self._index]
            if known:
                return f"{self._index[known[0]]}{inner}"
            following = next((self._values[name] for name in names if name in self._values), None)
            if following is None:
                break
            bound = following
        return "?"

    def path(self, loop: Loop) -> str:
        """The inputs of a loop and those around it, outermost first; the same letter is the same input."""
        roots: list[str] = []
        entry: Loop | None = loop
        while entry is not None and len(roots) < 6:
            roots.append("log" if entry.kind in ("halving", "search") else self.of(entry.bound))
            entry = entry.parent
        letters: dict[str, str] = {}
        named = []
        for root in reversed(roots):
            plain = root.removesuffix("[]")
            if plain.isdigit():
                letter = letters.setdefault(plain, "abcdef"[len(letters) % 6])
                named.append(letter + root[len(plain) :])
            else:
                named.append(root)
        return " ".join(named)


def parameter_kinds(routine: Routine, language: str) -> dict[str, str]:
    """The parameters of a routine with what their types say: a matrix, list, text, number, node or nothing."""
    parameters: dict[str, str] = {}
    for part in split_arguments(routine.signature)[:8]:
        names = _IDENTIFIER.findall(part.partition("=")[0])
        if not names:
            continue
        if language in _NAME_FIRST:
            name = next((name for name in names if name not in ("mut", "val", "var")), names[0])
        else:
            name = names[-1]
        if name not in ("self", "this", "cls"):
            parameters[name] = next((kind for kind, pattern in _TYPES if pattern.search(part)), "")
    return parameters


def sketch(kinds: Sequence[str]) -> str:
    """The kinds of parameters in one word."""
    return " ".join(kind or "-" for kind in kinds)
