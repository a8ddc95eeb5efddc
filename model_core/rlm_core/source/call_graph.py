"""The functions that a Python function calls, in the same file or package.

``index_module`` indexes one file; ``CallGraph`` resolves calls by name over the modules that a loader gives it. Names
are resolved as in Python (module globals, imports, ``self`` and base classes).

A unit's calls are read in two ways. ``callees`` are texts for the encoder, at most two levels deep; a method called on
an unknown object counts only if its name is defined once in the file. ``call_sites`` are places, for the costs that
propagate from callees to callers: types that an assignment or annotation shows are followed, overridden stubs are
replaced by what overrides them, and a method of an unknown object may be any of the few that have its name.
"""

from __future__ import annotations

import builtins
import re
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from io import TextIOWrapper

from tree_sitter import Node, Query, QueryCursor

from rlm_core.types import Callee, Unit

from . import languages
from .parsed import ParsedSource, name_text
from .units import find_functions, is_stub

MAX_LEVEL = 2
MAX_CALLEES = 12  # per level; the first in the order of the calls
# A name that more functions have says too little about which of them is called.
MAX_CANDIDATES = 6
MAX_SITES = 24  # call sites of a unit that are looked up, in source order
_MOST_CONSTANT_BYTES = 2_000
_MOST_TARGET = 200  # characters of an object whose type is looked up
_MOST_HOPS = 4  # re-exports of a name that are followed
_MOST_CLASSES = 64  # base classes that are searched for a name, each once

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
_LITERAL_RANGE = re.compile(r"range\(\s*(?:(\d[\d_]{0,12})\s*,\s*)?(\d[\d_]{0,12})\s*\)")
_OPTIONAL = re.compile(r"(?:typing\.)?(?:Optional|Type|type|ClassVar|Final)\[(.*)\]", re.DOTALL)
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_CONSTRUCTED = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\(.*\)", re.DOTALL)
_PROPERTY = re.compile(r"\s*@[^\n]*property\b")


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
    names of each top-level class, ``constants`` the texts of the expressions that module and class bodies assign to
    a name (``SIZE``, ``Class.SIZE``), ``imports`` maps a local name to ``(module, name or None)``, ``calls`` has the
    calls in a unit, by its text. ``types`` has the types of a unit's variables and parameters as written, by its text,
    and ``attributes`` those of a class's attributes.
    """

    dotted: str
    units: dict[str, Unit] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    bases: dict[str, list[str]] = field(default_factory=dict)
    imports: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    calls: dict[str, tuple[Call, ...]] = field(default_factory=dict)
    by_name: dict[str, list[str]] = field(default_factory=dict)
    types: dict[str, dict[str, str]] = field(default_factory=dict)
    attributes: dict[str, dict[str, str]] = field(default_factory=dict)


Loader = Callable[[str], "ModuleIndex | None"]
Resolved = tuple[ModuleIndex, Unit]
# The modules that may define a function of a name; None where they are too many to say anything.
NameLookup = Callable[[str], "Sequence[ModuleIndex] | None"]


@dataclass(frozen=True, slots=True)
class ResolvedCall:
    """A place of a unit that calls one of ``candidates``, with what is around it as in :class:`Call`."""

    candidates: tuple[Resolved, ...]
    loops: int = 0
    branches: int = 0
    times: float = 1.0


@dataclass(frozen=True, slots=True)
class ResolvedCalls:
    """The calls of a unit: those to functions of the workspace, and how many others there are.

    ``outside`` counts calls of builtins, of containers and of other packages, ``unresolved`` calls of unknown objects.
    """

    sites: tuple[ResolvedCall, ...] = ()
    outside: int = 0
    unresolved: int = 0


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
    known: Sequence[ModuleIndex] = (),
) -> ModuleIndex:
    """Index a parsed Python file, or one of its top-level statements, whose functions are ``units``.

    The calls and types of functions whose text is in a ``known`` index are taken from there.
    """
    index = ModuleIndex(dotted)
    for unit in units:
        index.units[unit.qualname] = unit
        index.by_name.setdefault(unit.qualname.rsplit(".", 1)[-1], []).append(unit.qualname)
    _read_top_level(root, index, dotted if is_package else dotted.rpartition(".")[0])
    for earlier in known:
        for text in {unit.text for unit in units} & earlier.calls.keys():
            index.calls[text] = earlier.calls[text]
            if text in earlier.types:
                index.types[text] = earlier.types[text]
    if fresh := [unit for unit in units if unit.text not in index.calls]:
        _read_bodies(root, fresh, index)
    for unit in units:
        _read_attributes(unit, index)
    return index


def _read_bodies(root: Node, units: Sequence[Unit], index: ModuleIndex) -> None:
    """Read the calls of functions with their loops and branches, and types of their variables."""
    cursor = QueryCursor(_query())
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
        result.constants.update(part.constants)
        result.imports.update(part.imports)
        result.calls.update(part.calls)
        result.types.update(part.types)
        for owner, attributes in part.attributes.items():
            result.attributes[owner] = {**attributes, **result.attributes.get(owner, {})}
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


_BUILTINS = frozenset(dir(builtins))
# On an unknown object these are more likely a built-in container's than the file's own.
_CONTAINER_METHODS = frozenset(
    name
    for kind in (list, dict, set, str, bytes, deque, Counter, re.Pattern, re.Match, TextIOWrapper)
    for name in dir(kind)
    if not name.startswith("_")
)


class CallGraph:
    """Callees of functions over the modules that ``load`` can give (dotted name -> index or None)."""

    def __init__(self, load: Loader | None = None, named: NameLookup | None = None) -> None:
        self._load: Loader = load or (lambda dotted: None)
        self._named: NameLookup = named or (lambda name: ())

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
            callee = self.resolve(module, unit.qualname, call) if not call.is_read else None
            if callee is None:
                continue
            # What is defined inside the unit is part of its text already.
            if callee[0] is not module or not callee[1].qualname.startswith(unit.qualname + ".<locals>."):
                resolved.append(callee)
        return resolved

    def call_sites(self, module: ModuleIndex, unit: Unit) -> ResolvedCalls:
        """The calls of ``unit``, each with the functions of the workspace that it may run.

        Calls that run the same functions under the same loops and branches are one site, whose ``times`` add up.
        """
        sites: dict[tuple[object, ...], ResolvedCall] = {}
        outside = unresolved = 0
        known: dict[tuple[str, str | None, bool], tuple[Resolved, ...] | None] = {}
        for call in module.calls.get(unit.text, ()):
            key = call.name, call.target, call.is_read
            if key not in known:
                known[key] = self.candidates(module, unit, call)
            candidates = known[key]
            if candidates is None:
                outside += 1
            elif not candidates:
                unresolved += 1
            else:
                places = tuple((home.dotted, callee.qualname) for home, callee in candidates)
                if places == ((module.dotted, unit.qualname),) or len(candidates) == 0:
                    continue
                site = (places, call.loops, call.branches)
                before = sites.get(site)
                if before is not None or len(sites) < MAX_SITES:
                    times = call.times + (before.times if before is not None else 0.0)
                    sites[site] = ResolvedCall(candidates, call.loops, call.branches, times)
        return ResolvedCalls(tuple(sites.values()), outside, unresolved)

    def candidates(self, module: ModuleIndex, unit: Unit, call: Call) -> tuple[Resolved, ...] | None:
        """The functions that a call of ``unit`` may run: none where they are unknown, None for a call outside.

        In the order of module and qualified name, at most ``MAX_CANDIDATES``.
        """
        if call.is_read:
            owner = unit.qualname.split(".<locals>")[0].rpartition(".")[0]
            read = self._method(module, owner, call.name) if owner in module.bases else None
            return (read,) if read is not None and _PROPERTY.match(read[1].text) else None
        callee = self.resolve(module, unit.qualname, call)
        if callee is None and call.target is not None:
            owner_type = self._type_of(module, unit, call.target)
            if owner_type is not None:
                callee = self._method(*owner_type, call.name)
        if callee is not None and not is_stub(callee[1]):
            if callee[0] is module and callee[1].qualname.startswith(unit.qualname + ".<locals>."):
                return None  # It is part of the unit's text.
            return (callee,)
        if callee is None and self._is_outside(module, call):
            return None
        if call.target is None:
            return ()
        return self._by_name(module, call.name)

    def _by_name(self, module: ModuleIndex, name: str) -> tuple[Resolved, ...]:
        homes = self._named(name)
        if homes is None:
            return ()
        modules = {home.dotted: home for home in (module, *homes)}
        methods = [
            (home, home.units[qualname])
            for _, home in sorted(modules.items())
            for qualname in sorted(set(home.by_name.get(name, ())))
            if "." in qualname and "<locals>" not in qualname and not is_stub(home.units[qualname])
        ]
        return tuple(methods) if len(methods) <= MAX_CANDIDATES else ()

    def _is_outside(self, module: ModuleIndex, call: Call) -> bool:
        """Whether a call that resolves to nothing is one of a builtin, a container or another package."""
        if call.target is None:
            if call.name in module.imports:
                source, _ = module.imports[call.name]
                return self._load(source) is None
            return call.name in _BUILTINS or call.name in module.bases
        if call.name in _CONTAINER_METHODS:
            return True
        first = call.target.partition(".")[0]
        return first in module.imports and self._load(module.imports[first][0]) is None

    def _type_of(self, module: ModuleIndex, unit: Unit, target: str, depth: int = 0) -> tuple[ModuleIndex, str] | None:
        """The class of an object, where an assignment or annotation shows it: its module and name."""
        if depth > _MOST_HOPS:
            return None
        owner = unit.qualname.split(".<locals>")[0].rpartition(".")[0]
        if target in ("self", "cls"):
            return (module, owner) if owner in module.bases else None
        if (made := _CONSTRUCTED.fullmatch(target)) is not None:
            return self._class_of(module, made[1])
        if _DOTTED.fullmatch(target) is None:
            return None
        variables = module.types.get(unit.text, {})
        if target in variables:
            text = variables[target]
            if not text.startswith("="):
                return self._class_of(module, text)
            return self._type_of(module, unit, text[1:], depth + 1) if text[1:] != target else None
        first, _, last = target.rpartition(".")
        if first:
            holder = self._type_of(module, unit, first, depth + 1)
            return self._attribute_type(*holder, last) if holder is not None else None
        text = module.constants.get(target, "")
        return self._class_of(module, made[1]) if (made := _CONSTRUCTED.fullmatch(text)) is not None else None

    def _attribute_type(
        self, module: ModuleIndex, owner: str, name: str, seen: set[tuple[str, str]] | None = None
    ) -> tuple[ModuleIndex, str] | None:
        seen = set() if seen is None else seen
        if (module.dotted, owner) in seen or len(seen) >= _MOST_CLASSES:
            return None
        seen.add((module.dotted, owner))
        text = module.attributes.get(owner, {}).get(name)
        if text is not None:
            return self._class_of(module, text)
        if (made := _CONSTRUCTED.fullmatch(module.constants.get(f"{owner}.{name}", ""))) is not None:
            return self._class_of(module, made[1])
        for base in module.bases.get(owner, []):
            home = self._class_of(module, base)
            if home is not None:
                found = self._attribute_type(*home, name, seen)
                if found is not None:
                    return found
        return None

    def _class_of(self, module: ModuleIndex, text: str, depth: int = 0) -> tuple[ModuleIndex, str] | None:
        """The class that an annotation or a constructor's name means, through imports and re-exports."""
        text = text.strip().strip("\"'")
        if (inner := _OPTIONAL.fullmatch(text)) is not None:
            text = inner[1].strip().strip("\"'")
        if "|" in text:
            parts = [part.strip() for part in text.split("|")]
            classes = [found for part in parts if (found := self._class_of(module, part, depth)) is not None]
            return classes[0] if len(classes) == 1 else None
        if _DOTTED.fullmatch(text) is None or depth > _MOST_HOPS:
            return None
        if text in module.bases:
            return module, text
        first, _, rest = text.partition(".")
        if first not in module.imports:
            return None
        source, original = module.imports[first]
        if rest:
            holder, _, last = rest.rpartition(".")
            dotted = ".".join(filter(None, [source, original, holder]))
            home = self._load(dotted)
            return self._class_of(home, last, depth + 1) if home is not None else None
        home = self._load(source) if original is not None else None
        return self._class_of(home, original, depth + 1) if home is not None and original is not None else None

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

    def _method(
        self, module: ModuleIndex, owner: str, name: str, seen: set[tuple[str, str]] | None = None
    ) -> tuple[ModuleIndex, Unit] | None:
        qualname = f"{owner}.{name}"
        if qualname in module.units:
            return module, module.units[qualname]
        return self._inherited(module, owner, name, seen)

    def _inherited(
        self, module: ModuleIndex, owner: str, name: str, seen: set[tuple[str, str]] | None = None
    ) -> tuple[ModuleIndex, Unit] | None:
        """A method of the first base that has it; ``seen`` has the classes that were looked at, each once."""
        seen = set() if seen is None else seen
        if (module.dotted, owner) in seen or len(seen) >= _MOST_CLASSES:
            return None
        seen.add((module.dotted, owner))
        for base in module.bases.get(owner, []):
            if base in module.bases and base != owner:
                hit = self._method(module, base, name, seen)
            elif base in module.imports:
                source, original = module.imports[base]
                home = self._load(source) if original is not None else None
                hit = self._method(home, original, name, seen) if home is not None and original is not None else None
            else:
                hit = None
            if hit is not None:
                return hit
        return None
