"""The functions that a Python function calls, in the same file or package.

``index_module`` indexes one file; ``CallGraph`` resolves calls by name over the modules that a loader gives it, at most
two levels deep. Names are resolved as in Python (module globals, imports, ``self`` and base classes); a method called
on an unknown object counts only if its name is defined once in the file. A model reads the callees next to the caller,
since the cost of a function includes what it calls.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from io import TextIOWrapper

from tree_sitter import Node, Query, QueryCursor

from rlm_core.types import Callee, Unit

from . import languages
from .parsed import ParsedSource, name_text
from .units import find_functions

MAX_LEVEL = 2
MAX_CALLEES = 12  # per level; the first in the order of the calls
_MOST_CONSTANT_BYTES = 2_000

_QUERY = """
(call function: (identifier) @name) @call
(call function: (attribute object: (_) @object attribute: (identifier) @name)) @call
"""


@dataclass(frozen=True, slots=True)
class Call:
    """One call expression: the called name and, for an attribute, the text of the object it is looked up on."""

    name: str
    target: str | None


@dataclass(slots=True)
class ModuleIndex:
    """The functions, classes, imports and calls of one Python file.

    ``units`` are the file's functions by qualified name (the last definition of a name wins), ``bases`` the base-class
    names of each top-level class, ``constants`` the texts of the expressions that module and class bodies assign to
    a name (``SIZE``, ``Class.SIZE``), ``imports`` maps a local name to ``(module, name or None)``, ``calls`` has the
    calls in a unit, by its text.
    """

    dotted: str
    units: dict[str, Unit] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    bases: dict[str, list[str]] = field(default_factory=dict)
    imports: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    calls: dict[str, tuple[Call, ...]] = field(default_factory=dict)
    by_name: dict[str, list[str]] = field(default_factory=dict)


Loader = Callable[[str], "ModuleIndex | None"]


@cache
def _query() -> Query:
    return Query(languages.grammar("python"), _QUERY)


def index_module(parsed: ParsedSource, dotted: str = "", *, is_package: bool = False) -> ModuleIndex:
    """Index one Python file; ``dotted`` is its module name, needed to follow relative imports."""
    return index_units(find_functions(parsed.source, parsed.root), parsed.root, dotted, is_package=is_package)


def index_units(units: Sequence[Unit], root: Node, dotted: str = "", *, is_package: bool = False) -> ModuleIndex:
    """Index a parsed Python file, or one of its top-level statements, whose functions are ``units``."""
    index = ModuleIndex(dotted)
    for unit in units:
        index.units[unit.qualname] = unit
        index.by_name.setdefault(unit.qualname.rsplit(".", 1)[-1], []).append(unit.qualname)
    _read_top_level(root, index, dotted if is_package else dotted.rpartition(".")[0])
    calls: list[tuple[int, Call]] = []
    for _, captures in QueryCursor(_query()).matches(root):
        target = captures.get("object")
        call = Call(name_text(captures["name"][0]), name_text(target[0]) if target else None)
        calls.append((captures["call"][0].start_byte, call))
    calls.sort(key=lambda entry: entry[0])
    starts = [at for at, _ in calls]
    for unit in units:
        first, end = bisect_left(starts, unit.span.start_byte), bisect_left(starts, unit.span.end_byte)
        index.calls[unit.text] = tuple(call for _, call in calls[first:end])
    return index


def merged(parts: Iterable[ModuleIndex], dotted: str = "") -> ModuleIndex:
    """The index of a file that consists of parts with these indices, in order; later definitions win."""
    result = ModuleIndex(dotted)
    for part in parts:
        result.units.update(part.units)
        result.bases.update(part.bases)
        result.constants.update(part.constants)
        result.imports.update(part.imports)
        result.calls.update(part.calls)
        for name, qualnames in part.by_name.items():
            result.by_name.setdefault(name, []).extend(qualnames)
    return result


def _read_top_level(root: Node, index: ModuleIndex, package: str) -> None:
    stack = list(reversed(root.named_children)) if root.type == "module" else [root]
    while stack:
        node = stack.pop()
        if node.type == "class_definition":
            bases = node.child_by_field_name("superclasses")
            names = [name_text(base) for base in bases.named_children] if bases is not None else []
            class_name = name_text(node.child_by_field_name("name"))
            index.bases[class_name] = names
            body = node.child_by_field_name("body")
            for statement in body.named_children if body is not None else ():
                _read_constant(statement, f"{class_name}.", index)
        elif node.type == "expression_statement":
            _read_constant(node, "", index)
        elif node.type == "import_statement":
            for child in node.named_children:
                if child.type == "aliased_import":
                    module = name_text(child.child_by_field_name("name"))
                    index.imports[name_text(child.child_by_field_name("alias"))] = (module, None)
                else:
                    index.imports[name_text(child)] = (name_text(child), None)
        elif node.type == "import_from_statement":
            _read_from_import(node, index, package)
        elif node.type in (
            "decorated_definition",
            "if_statement",
            "try_statement",
            "block",
            "else_clause",
            "except_clause",
        ):
            stack.extend(reversed(node.named_children))


def _read_constant(statement: Node, prefix: str, index: ModuleIndex) -> None:
    """Keep the text of an assignment to one name."""
    node = (
        statement.named_children[0] if statement.type == "expression_statement" and statement.named_children else None
    )
    if node is None or node.type != "assignment":
        return
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is None or right is None:
        return
    if left.type == "pattern_list" and right.type == "expression_list":
        names, values = left.named_children, right.named_children
        if len(names) == len(values) and right.end_byte - right.start_byte <= _MOST_CONSTANT_BYTES:
            for name, value in zip(names, values, strict=True):
                if name.type == "identifier":
                    index.constants[prefix + name_text(name)] = name_text(value)
        return
    if left.type != "identifier":
        return
    if right.end_byte - right.start_byte <= _MOST_CONSTANT_BYTES:
        index.constants[prefix + name_text(left)] = name_text(right)


def _read_from_import(node: Node, index: ModuleIndex, package: str) -> None:
    source = node.child_by_field_name("module_name")
    module = name_text(source)
    if module.startswith("."):
        dots = len(module) - len(module.lstrip("."))
        parents = package.split(".") if package else []
        base = parents[: len(parents) - (dots - 1)] if dots > 1 else parents
        module = ".".join([*base, *filter(None, [module.lstrip(".")])])
    for child in node.named_children:
        if child == source:
            continue
        if child.type == "aliased_import":
            name, alias = name_text(child.child_by_field_name("name")), name_text(child.child_by_field_name("alias"))
            index.imports[alias] = (module, name)
        elif child.type == "dotted_name":
            index.imports[name_text(child)] = (module, name_text(child))


# On an unknown object these are more likely a built-in container's than the file's own.
_CONTAINER_METHODS = frozenset(
    name
    for kind in (list, dict, set, str, bytes, deque, Counter, re.Pattern, re.Match, TextIOWrapper)
    for name in dir(kind)
    if not name.startswith("_")
)


class CallGraph:
    """Callees of functions over the modules that ``load`` can give (dotted name -> index or None)."""

    def __init__(self, load: Loader | None = None) -> None:
        self._load: Loader = load or (lambda dotted: None)

    def callees(self, module: ModuleIndex, unit: Unit) -> tuple[Callee, ...]:
        """The functions of the same file or package that ``unit`` calls, nearest first, each once."""
        seen = {(module.dotted, unit.qualname)}
        frontier = [(module, unit)]
        callees: list[Callee] = []
        for level in range(1, MAX_LEVEL + 1):
            reached: list[tuple[ModuleIndex, Unit]] = []
            for owner, caller in frontier:
                for home, callee in self._direct(owner, caller):
                    key = (home.dotted, callee.qualname)
                    if key not in seen and len(reached) < MAX_CALLEES:
                        seen.add(key)
                        reached.append((home, callee))
            callees += [Callee(callee.text, level) for _, callee in reached]
            frontier = reached
        return tuple(callees)

    def _direct(self, module: ModuleIndex, unit: Unit) -> list[tuple[ModuleIndex, Unit]]:
        resolved = []
        for call in module.calls.get(unit.text, ()):
            callee = self.resolve(module, unit.qualname, call)
            if callee is None:
                continue
            # What is defined inside the unit is part of its text already.
            if callee[0] is not module or not callee[1].qualname.startswith(unit.qualname + ".<locals>."):
                resolved.append(callee)
        return resolved

    def load(self, dotted: str) -> ModuleIndex | None:
        """The index of a module, None where it cannot be had."""
        return self._load(dotted)

    def resolve(self, module: ModuleIndex, caller: str, call: Call) -> tuple[ModuleIndex, Unit] | None:
        """The function that a call runs in a unit of ``module`` with the qualified name ``caller``."""
        if call.target is None:
            return self._global(module, call.name)
        owner = caller.split(".<locals>")[0].rpartition(".")[0]
        if call.target in ("self", "cls"):
            return self._method(module, owner, call.name)
        if call.target.startswith("super("):
            return self._inherited(module, owner, call.name)
        if call.target in module.bases:
            return self._method(module, call.target, call.name)
        if call.target in module.imports:
            source, name = module.imports[call.target]
            home = self._load(source if name is None else f"{source}.{name}")
            if home is not None:
                return self._global(home, call.name)
            if name is not None and (home := self._load(source)) is not None:
                return self._method(home, name, call.name)
            return None
        if call.name in _CONTAINER_METHODS:
            return None
        candidates = [name for name in module.by_name.get(call.name, []) if "." in name]
        return (module, module.units[candidates[0]]) if len(candidates) == 1 else None

    def _global(self, module: ModuleIndex, name: str, depth: int = 0) -> tuple[ModuleIndex, Unit] | None:
        if name in module.units:
            return module, module.units[name]
        if name in module.bases:
            return self._method(module, name, "__init__")
        if name in module.imports and depth < 4:
            source, original = module.imports[name]
            home = self._load(source) if original is not None else None
            if home is not None and original is not None and home is not module:
                return self._global(home, original, depth + 1)
        return None

    def _method(self, module: ModuleIndex, owner: str, name: str, depth: int = 0) -> tuple[ModuleIndex, Unit] | None:
        qualname = f"{owner}.{name}"
        if qualname in module.units:
            return module, module.units[qualname]
        return self._inherited(module, owner, name, depth)

    def _inherited(self, module: ModuleIndex, owner: str, name: str, depth: int = 0) -> tuple[ModuleIndex, Unit] | None:
        if depth > 6:
            return None
        for base in module.bases.get(owner, []):
            if base in module.bases and base != owner:
                hit = self._method(module, base, name, depth + 1)
            elif base in module.imports:
                source, original = module.imports[base]
                home = self._load(source) if original is not None else None
                hit = (
                    self._method(home, original, name, depth + 1) if home is not None and original is not None else None
                )
            else:
                hit = None
            if hit is not None:
                return hit
        return None
