"""What methods do to the containers that names hold: they grow, shrink, or an inner one grows."""

from __future__ import annotations

import ast
from dataclasses import replace

from . import library
from .domain.folding import MISSING
from .domain.quantities import ONE, constant
from .domain.values import NONE, UNKNOWN, Value
from .function_bodies import FunctionBodies
from .syntax import GROWING

SHRINKING = frozenset({"pop", "popleft", "popitem"})
_REMOVING = SHRINKING | {"remove", "discard"}
_MERGING = frozenset({"extend", "update", "extendleft"})
_INNER_ITEM_BYTES = 9.0  # a reference in a list that reserves an eighth more
_MEMORY_FILES = {"io.StringIO": 4.0, "io.BytesIO": 1.0}  # bytes per character
# Methods that tell the kind of their receiver: only containers or text have them.
_KINDS_OF_METHOD: dict[str, tuple[str, ...]] = {
    # Text has the last two as well: both look at all that is there.
    **dict.fromkeys(("append", "extend", "insert", "sort", "reverse", "index", "count"), ("list",)),
    **dict.fromkeys(("items", "keys", "values", "setdefault"), ("dict",)),
    **dict.fromkeys(("add", "discard", "union", "intersection", "difference", "issubset", "issuperset"), ("set",)),
    **dict.fromkeys(
        ("split", "rsplit", "splitlines", "strip", "lstrip", "rstrip", "lower", "upper", "startswith", "endswith",
         "encode", "isdigit", "isalpha", "isalnum", "isspace", "title", "capitalize", "casefold", "swapcase", "zfill",
         "format", "partition", "rpartition", "removeprefix", "removesuffix", "isupper", "islower", "ljust", "rjust"),
        ("str",),
    ),
    "popleft": ("deque", "collections.deque"),
    "appendleft": ("deque", "collections.deque"),
    "get": ("dict",),
    "pop": ("list",),
    "replace": ("str",),
    "decode": ("bytes",),
}  # fmt: skip


class MethodEffects(FunctionBodies):
    """Rebinds names to what methods leave of their values."""

    def container_rule(self, method: str, receiver: Value) -> library.Rule | None:
        """The rule of a method that only containers and text have, on a value that is not known."""
        for kind in _KINDS_OF_METHOD.get(method, ()):
            rule = library.method_rule(kind, method)
            if rule is not None:
                return rule
        return None

    def mutate(self, function: ast.Attribute, receiver: Value, args: list[Value]) -> None:
        """What a method adds to its receiver or takes from it."""
        method = function.attr
        if isinstance(function.value, ast.Name) and method in _REMOVING:
            self.shrunk(function.value.id, receiver, at_least_one=method not in SHRINKING)
            return
        if not args:
            return
        if not isinstance(function.value, ast.Name):
            self._fill_inner(function, args)
            return
        name = function.value.id
        if method == "write" and receiver.name in _MEMORY_FILES and receiver.size is not None:
            written = self.length(args[0])
            held = receiver.bytes + written.times(_MEMORY_FILES[receiver.name])
            self.frame.bind(name, replace(receiver, size=receiver.size + written, bytes=held))
            return
        if receiver.kind not in ("list", "set", "dict", "deque", "bytearray") and receiver.name != "collections.deque":
            return
        if method in GROWING:
            self.grown(name, receiver, ONE, args[-1] if method == "insert" else args[0])
        elif method in _MERGING:
            count = self.length(args[0])
            self.grown(name, receiver, count, args[0].item or UNKNOWN)
        elif method == "setdefault":
            self.grown(name, receiver, ONE, args[0], args[1] if len(args) > 1 else NONE)

    def shrunk(self, name: str, container: Value, *, at_least_one: bool = False) -> None:
        """Rebind a container of which an item was taken, if it is known how many it has, or that it has one."""
        size = container.size.exact if container.size is not None else None
        if container.size is None or (size is None and not at_least_one) or (size is not None and size < 1):
            return
        likely = container.size.evaluate(lambda name: 10.0)[1]
        rest = container.bytes.times(1 - 1 / max(likely, 1.0))
        left = constant(size - 1) if size is not None else container.size - ONE
        self.frame.bind(name, replace(container, constant=MISSING, size=left, payload=None, bytes=rest))

    def _fill_inner(self, function: ast.Attribute, args: list[Value]) -> None:
        """``groups[key].append(item)``: the container that the name holds grows by what an inner one takes."""
        if function.attr not in GROWING:
            return
        self.fill(function.value, constant(_INNER_ITEM_BYTES) + args[-1].bytes)
