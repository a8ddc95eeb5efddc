"""One Python file -> its functions, classes, imports, and the calls and types in its functions.

A file is indexed as a whole, or statement by statement after an edit (:mod:`rlm_core.source.incremental`). Where calls
lead is resolved by :mod:`rlm_core.source.call_graph`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

from tree_sitter import Node, Query

from rlm_core.types import Unit

from . import languages
from .parsed import ParsedSource, name_text, query_cursor
from .units import find_functions

_MOST_CONSTANT_BYTES = 2_000
_MOST_CLASS_BYTES = 4_000
_MOST_TARGET = 200  # characters of an object whose type is looked up
_MOST_BODY_BYTES = 20_000  # of a statement that runs when the module is imported
_RUN_AT_IMPORT = frozenset({
    "expression_statement", "if_statement", "for_statement", "while_statement", "with_statement", "try_statement",
})  # fmt: skip

_QUERY = """
(call function: (identifier) @name) @call
(call function: (attribute object: (_) @object attribute: (identifier) @name)) @call
((attribute object: (identifier) @object attribute: (identifier) @name) @read (#eq? @object "self"))
(for_statement right: (_) @items body: (block) @loop)
(while_statement body: (block) @loop)
(list_comprehension body: (_) @loop)
(set_comprehension body: (_) @loop)
(dictionary_comprehension body: (_) @loop)
(generator_expression body: (_) @loop)
(if_statement consequence: (block) @branch)
(elif_clause consequence: (block) @branch)
(else_clause) @branch
(except_clause) @branch
(raise_statement) @branch
(case_clause) @branch
(typed_parameter (identifier) @variable type: (type) @type)
(typed_default_parameter name: (identifier) @variable type: (type) @type)
(assignment left: (identifier) @variable type: (type) @type)
(assignment left: (identifier) @variable right: (call function: [(identifier) (attribute)] @type))
(assignment left: (attribute object: (identifier) @object) @variable type: (type) @type (#eq? @object "self"))
(assignment left: (attribute object: (identifier) @object) @variable
 right: (call function: [(identifier) (attribute)] @type) (#eq? @object "self"))
(assignment left: (attribute object: (identifier) @object) @variable right: (identifier) @source (#eq? @object "self"))
"""
_GLOBAL, _NAME = re.compile(r"^[^\S\n]*global[^\S\n]+([^\n#;]+)", re.MULTILINE), re.compile(r"\w+")
_LITERAL_RANGE = re.compile(r"range\(\s*(?:(\d[\d_]{0,12})\s*,\s*)?(\d[\d_]{0,12})\s*\)")


@dataclass(frozen=True, slots=True)
class Call:
    """One call expression: the called name and, for an attribute, the text of the object it is looked up on.

    ``loops`` and ``branches`` count what is around it in its unit, ``times`` is the product of literal trip counts.
    ``is_read`` marks ``self.name`` without parentheses, which calls a property.
    """

    name: str
    target: str | None
    loops: int = 0
    branches: int = 0
    times: float = 1.0
    is_read: bool = False


@dataclass(slots=True)
class ModuleIndex:
    """The functions, classes, imports and calls of one Python file.

    ``units`` are the file's functions by qualified name (the last definition of a name wins), ``bases`` the base-class
    names of each top-level class, ``classes`` their texts without methods, ``constants`` the texts of the expressions
    that module and class bodies assign to a name (``SIZE``, ``Class.SIZE``), ``imports`` maps a local name to
    ``(module, name or None)``, ``calls`` has the calls in a unit, by its text. ``types`` has the types of a unit's
    variables and parameters as written, by its text, and ``attributes`` those of a class's attributes. ``state`` has
    the names of the module that its functions bind again, and ``body`` the texts of its statements with calls that are
    in no function or class.
    """

    dotted: str
    units: dict[str, Unit] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    bases: dict[str, list[str]] = field(default_factory=dict)
    classes: dict[str, str] = field(default_factory=dict)
    imports: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    calls: dict[str, tuple[Call, ...]] = field(default_factory=dict)
    by_name: dict[str, list[str]] = field(default_factory=dict)
    types: dict[str, dict[str, str]] = field(default_factory=dict)
    attributes: dict[str, dict[str, str]] = field(default_factory=dict)
    state: set[str] = field(default_factory=set)
    body: list[str] = field(default_factory=list)


@cache
def _query() -> Query:
    return Query(languages.grammar("python"), _QUERY)


def index_module(parsed: ParsedSource, dotted: str = "", *, is_package: bool = False) -> ModuleIndex:
    """Index one Python file; ``dotted`` is its module name, needed to follow relative imports."""
    return index_units(find_functions(parsed.source, parsed.root), parsed.root, dotted, is_package=is_package)


def index_units(
    units: Sequence[Unit],
    root: Node,
    dotted: str = "",
    *,
    is_package: bool = False,
    known: ModuleIndex | None = None,
) -> ModuleIndex:
    """Index a parsed Python file, or one of its top-level statements, whose functions are ``units``.

    The calls and types of functions whose text is in the index ``known`` are taken from there.
    """
    index = ModuleIndex(dotted)
    for unit in units:
        index.units[unit.qualname] = unit
        index.state.update(name for names in _GLOBAL.findall(unit.text) for name in _NAME.findall(names))
        index.by_name.setdefault(unit.qualname.rsplit(".", 1)[-1], []).append(unit.qualname)
    _read_top_level(root, index, dotted if is_package else dotted.rpartition(".")[0])
    if known is not None:
        texts = {unit.text for unit in units}
        index.calls.update((text, known.calls[text]) for text in texts & known.calls.keys())
        index.types.update((text, known.types[text]) for text in texts & known.types.keys())
    if fresh := [unit for unit in units if unit.text not in index.calls]:
        _read_bodies(root, fresh, index)
    for unit in units:
        _read_attributes(unit, index)
    return index


def _read_bodies(root: Node, units: Sequence[Unit], index: ModuleIndex) -> None:
    """Read the calls of functions with their loops and branches, and types of their variables."""
    cursor = query_cursor(_query())
    cursor.set_byte_range(min(unit.span.start_byte for unit in units), max(unit.span.end_byte for unit in units))
    calls: list[tuple[int, Call]] = []
    types: list[tuple[int, str, str]] = []
    around: list[tuple[int, int, int, float]] = []  # start, end, loops and literal trips; a branch has no loop
    called: set[int] = set()
    reads: list[tuple[int, int, str]] = []
    for _, captures in cursor.matches(root):
        if "call" in captures:
            node, target = captures["call"][0], captures.get("object")
            text = name_text(target[0])[:_MOST_TARGET] if target else None
            calls.append((node.start_byte, Call(name_text(captures["name"][0]), text)))
            called.add(captures["name"][0].end_byte)
        elif "read" in captures:
            node = captures["read"][0]
            reads.append((node.start_byte, node.end_byte, name_text(captures["name"][0])))
        elif "loop" in captures:
            node, items = captures["loop"][0], captures.get("items")
            literal = _LITERAL_RANGE.fullmatch(name_text(items[0])) if items else None
            trips = max(int(literal[2]) - int(literal[1] or 0), 0) if literal else 0
            around.append((node.start_byte, node.end_byte, 1, float(max(trips, 1))))
        elif "branch" in captures:
            node = captures["branch"][0]
            around.append((node.start_byte, node.end_byte, 0, 1.0))
        else:
            node = captures["variable"][0]
            given = captures.get("type")
            types.append(
                (
                    node.start_byte,
                    name_text(node),
                    name_text(given[0]) if given else "=" + name_text(captures["source"][0]),
                )
            )
    # What is only read comes after the calls: `self.name()` is not a property.
    calls += [(start, Call(name, "self", is_read=True)) for start, end, name in reads if end not in called]
    calls.sort(key=lambda entry: entry[0])
    types.sort(key=lambda entry: entry[0])
    starts, type_starts = [start for start, _ in calls], [start for start, *_ in types]
    nesting = _Nesting(around)
    for unit in units:
        first, end = (bisect_left(starts, at) for at in (unit.span.start_byte, unit.span.end_byte))
        outer = nesting.at(unit.span.start_byte)
        index.calls[unit.text] = tuple(_placed(call, nesting.at(start), outer) for start, call in calls[first:end])
        first, end = (bisect_left(type_starts, at) for at in (unit.span.start_byte, unit.span.end_byte))
        variables: dict[str, str] = {}
        for _, name, text in types[first:end]:
            variables.setdefault(name, text)
        if variables:
            index.types[unit.text] = variables


def _read_attributes(unit: Unit, index: ModuleIndex) -> None:
    """Note the types of the attributes that a method sets."""
    variables = index.types.get(unit.text, {})
    owner = unit.qualname.partition(".<locals>")[0].rpartition(".")[0]
    if owner not in index.bases:
        return
    for name, text in variables.items():
        if name.startswith("self."):
            known = variables.get(text[1:]) if text.startswith("=") else text
            if known is not None and not known.startswith("="):
                index.attributes.setdefault(owner, {}).setdefault(name.removeprefix("self."), known)


class _Nesting:
    """How many loops and branches are around a byte, and the product of the loops' literal trip counts."""

    def __init__(self, around: list[tuple[int, int, int, float]]) -> None:
        events = [(start, 1, loop, trips) for start, _, loop, trips in around]
        events += [(end, -1, loop, trips) for _, end, loop, trips in around]
        events.sort(key=lambda event: (event[0], event[1]))
        self._bytes: list[int] = []
        self._states: list[tuple[int, int, float]] = []
        loops, branches, times = 0, 0, 1.0
        for at, sign, loop, trips in events:
            loops += sign * loop
            branches += sign * (1 - loop)
            times = times * trips if sign > 0 else times / trips
            self._bytes.append(at)
            self._states.append((loops, branches, times))

    def at(self, byte: int) -> tuple[int, int, float]:
        """Loops, branches and times around a byte."""
        index = bisect_right(self._bytes, byte) - 1
        return self._states[index] if index >= 0 else (0, 0, 1.0)


def _placed(call: Call, around: tuple[int, int, float], outer: tuple[int, int, float]) -> Call:
    """A call with the loops and branches between its unit and it."""
    if around == outer:
        return call
    loops, branches, times = around[0] - outer[0], around[1] - outer[1], around[2] / outer[2]
    return Call(call.name, call.target, loops, branches, times, call.is_read)


def merged(parts: Iterable[ModuleIndex], dotted: str = "") -> ModuleIndex:
    """The index of a file that consists of parts with these indices, in order; later definitions win."""
    result = ModuleIndex(dotted)
    for part in parts:
        result.units.update(part.units)
        result.bases.update(part.bases)
        result.classes.update(part.classes)
        result.constants.update(part.constants)
        result.imports.update(part.imports)
        result.calls.update(part.calls)
        result.types.update(part.types)
        result.state.update(part.state)
        result.body += part.body
        for owner, attributes in part.attributes.items():
            result.attributes[owner] = {**attributes, **result.attributes.get(owner, {})}
        for name, qualnames in part.by_name.items():
            result.by_name.setdefault(name, []).extend(qualnames)
    return result


def _read_top_level(root: Node, index: ModuleIndex, package: str) -> None:
    statements = root.named_children if root.type == "module" else [root]
    texts = (node.text for node in statements if node.type in _RUN_AT_IMPORT and node.text is not None)
    index.body += [text.decode("utf-8", "replace") for text in texts if b"(" in text and len(text) <= _MOST_BODY_BYTES]
    stack = list(reversed(statements))
    while stack:
        node = stack.pop()
        if node.type == "class_definition":
            bases = node.child_by_field_name("superclasses")
            names = [name_text(base) for base in bases.named_children] if bases is not None else []
            class_name = name_text(node.child_by_field_name("name"))
            index.bases[class_name] = names
            text = _class_text(node)
            if len(text) <= _MOST_CLASS_BYTES:
                index.classes[class_name] = text
            body = node.child_by_field_name("body")
            for statement in body.named_children if body is not None else ():
                _read_constant(statement, f"{class_name}.", index)
                _read_attribute(statement, class_name, index)
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


def _class_text(node: Node) -> str:
    """The text of a class without its methods: decorators, bases, and what its body assigns."""
    around, body = node.parent, node.child_by_field_name("body")
    lines = []
    if around is not None and around.type == "decorated_definition":
        lines += [name_text(child) for child in around.named_children if child.type == "decorator"]
    bases = node.child_by_field_name("superclasses")
    lines.append(f"class {name_text(node.child_by_field_name('name'))}{name_text(bases) if bases is not None else ''}:")
    for statement in body.named_children if body is not None else ():
        inner = statement.named_children[0] if statement.named_children else None
        if statement.type == "expression_statement" and inner is not None and inner.type == "assignment":
            lines.append(f"    {name_text(statement)}")
    return "\n".join([*lines, "    pass"])


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


def _read_attribute(statement: Node, class_name: str, index: ModuleIndex) -> None:
    """Keep the type of an annotated name of a class body."""
    node = (
        statement.named_children[0] if statement.type == "expression_statement" and statement.named_children else None
    )
    if node is None or node.type != "assignment":
        return
    left, given = node.child_by_field_name("left"), node.child_by_field_name("type")
    if left is not None and given is not None and left.type == "identifier":
        index.attributes.setdefault(class_name, {})[name_text(left)] = name_text(given)


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
