"""The local variables of Python source, by the scopes of the language, and their canonical names.

A local variable is bound in a function, lambda or comprehension. Parameters are called ``p1``, ``p2`` ... and the
others ``v1``, ``v2`` ... in the order in which they appear. ``self`` and ``cls``, names of modules and classes,
builtins, attributes, keywords of calls, names declared ``global`` and imported names stay. Linear in the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

# What binds a name, what is not a variable, and what has a scope; part of a query for the grammar of Python.
_PARAMETERS = """[
  (identifier) @parameter
  (default_parameter name: (identifier) @parameter)
  (typed_parameter . (identifier) @parameter)
  (typed_parameter . (_ (identifier) @parameter))
  (typed_default_parameter name: (identifier) @parameter)
  (list_splat_pattern (identifier) @parameter)
  (dictionary_splat_pattern (identifier) @parameter)
  (tuple_pattern (identifier) @parameter)]"""
# A pattern for any node with parameters would be tried at each node, in a time that grows with the square of the depth.
QUERY = """
(identifier) @name
(attribute) @attribute
(keyword_argument name: (identifier) @fixed)
(keyword_pattern . (identifier) @fixed)
[(function_definition) (lambda) (class_definition) (list_comprehension) (set_comprehension) (dictionary_comprehension)
 (generator_expression)] @scope
(function_definition parameters: (_ PARAMETERS))
(lambda parameters: (_ PARAMETERS))
(assignment left: (identifier) @bound)
(augmented_assignment left: (identifier) @bound)
[(pattern_list (identifier) @bound) (tuple_pattern (identifier) @bound) (list_pattern (identifier) @bound)]
(list_splat_pattern (identifier) @bound)
(for_statement left: (identifier) @bound)
(for_in_clause left: (identifier) @bound)
(as_pattern_target [(identifier) @bound (tuple (identifier) @bound) (list (identifier) @bound)])
(delete_statement (identifier) @bound)
(case_pattern [(dotted_name . (identifier) @bound .) (as_pattern (identifier) @bound)])
(keyword_pattern (dotted_name . (identifier) @bound .))
(splat_pattern (identifier) @bound)
(named_expression name: (identifier) @walrus)
(function_definition name: (identifier) @bound)
(class_definition name: (identifier) @bound)
(global_statement (identifier) @global)
(nonlocal_statement (identifier) @nonlocal)
(import_statement name: (dotted_name . (identifier) @import))
(import_from_statement name: (dotted_name (identifier) @import))
(aliased_import alias: (identifier) @import)
[(import_from_statement module_name: (_) @module) (aliased_import name: (_) @module)]
""".replace("PARAMETERS", _PARAMETERS)
# A later role takes precedence: a splat among parameters is also a pattern.
_ROLES = ("bound", "walrus", "parameter", "fixed", "global", "nonlocal", "import")
_AFTER_FIXED = _ROLES[_ROLES.index("fixed") :]
_COMPREHENSIONS = frozenset(
    ("list_comprehension", "set_comprehension", "dictionary_comprehension", "generator_expression")
)
_OUTER = "outer"  # the part of a comprehension that belongs to the scope around it
_RECEIVERS = frozenset((b"self", b"cls"))
# A call of one of these sees the names of local variables.
_OBSERVERS = frozenset((b"locals", b"eval", b"exec"))
_MAX_NESTING = 40  # scopes nested deeper count as one


@dataclass(slots=True)
class _Scope:
    """A function, lambda, comprehension, class or the module, by its node type ("" for the module).

    ``bound`` gives of each name that is bound there the letter of its canonical name; empty for a name that stays.
    """

    kind: str
    parent: _Scope | None
    bound: dict[bytes, bytes] = field(default_factory=dict)
    declared: dict[bytes, bool] = field(default_factory=dict)  # name -> whether it is global


@dataclass(frozen=True, slots=True)
class _Region:
    """The text of a scope; up to ``header`` only its parameters belong to it."""

    start: int
    end: int
    kind: str
    header: int


@dataclass(frozen=True, slots=True)
class _OpenRegion:
    region: _Region
    scope: _Scope
    around: _Scope


def local_names(
    source: bytes, captures: Mapping[str, Sequence[Node]], skipped: Sequence[tuple[int, int]]
) -> dict[int, bytes]:
    """The canonical names of local variables, by the offset of each identifier.

    Args:
        source: the text in UTF-8.
        captures: what :data:`QUERY` captures in its syntax tree.
        skipped: spans whose identifiers do not count, ascending.
    """
    roles = {node.start_byte: role for role in _ROLES for node in captures.get(role, ())}
    for node in captures.get("attribute", ()):
        # As a pattern it would stay open at all nodes inside, in a time that grows with the square of the depth.
        attribute = node.child_by_field_name("attribute")
        if attribute is not None and roles.get(attribute.start_byte) not in _AFTER_FIXED:
            roles[attribute.start_byte] = "fixed"
    for node in captures.get("module", ()):
        roles.update(dict.fromkeys(range(node.start_byte, node.end_byte), "fixed"))
    regions = iter(_regions(captures.get("scope", ())))
    spans = iter(skipped)
    region, span = next(regions, None), next(spans, None)
    module = _Scope("", None)
    open_regions = [_OpenRegion(_Region(0, len(source) + 1, "", 0), module, module)]
    uses: list[tuple[int, bytes, _Scope]] = []
    for start, end in sorted(node.byte_range for node in captures.get("name", ())):
        while span is not None and span[1] <= start:
            span = next(spans, None)
        while region is not None and region.start <= start:
            _open(region, open_regions)
            region = next(regions, None)
        while open_regions[-1].region.end <= start:
            open_regions.pop()
        role = roles.get(start, "")
        if role == "fixed" or (span is not None and span[0] <= start):
            continue
        name = source[start:end]
        top = open_regions[-1]
        scope = top.scope
        if role != "parameter" and start < top.region.header:
            scope = top.around
        _bind(name, role, scope)
        uses.append((start, name, scope))
    return _numbered(uses)


def _regions(nodes: Sequence[Node]) -> list[_Region]:
    """The texts of scopes, those that start first and those that contain others before those."""
    regions = []
    for node in nodes:
        kind, body = node.type, node.child_by_field_name("body")
        if kind in ("function_definition", "lambda"):
            parameters = node.child_by_field_name("parameters")
            first = parameters or body
            if first is not None:
                header = parameters.end_byte if parameters is not None else 0
                regions.append(_Region(first.start_byte, node.end_byte, kind, header))
        elif kind == "class_definition":
            if body is not None:
                regions.append(_Region(body.start_byte, body.end_byte, kind, 0))
        else:
            regions.append(_Region(node.start_byte, node.end_byte, kind, 0))
            clause = next((child for child in node.named_children if child.type == "for_in_clause"), None)
            right = clause.child_by_field_name("right") if clause is not None else None
            if right is not None:
                regions.append(_Region(right.start_byte, right.end_byte, _OUTER, 0))
    return sorted(regions, key=lambda region: (region.start, -region.end, region.kind != _OUTER))


def _open(region: _Region, open_regions: list[_OpenRegion]) -> None:
    while open_regions[-1].region.end <= region.start:
        open_regions.pop()
    top = open_regions[-1]
    scope = top.around if region.start < top.region.header else top.scope
    if region.kind == _OUTER:
        around = scope.parent or scope
        open_regions.append(_OpenRegion(region, around, around))
    elif len(open_regions) < _MAX_NESTING:
        open_regions.append(_OpenRegion(region, _Scope(region.kind, scope), scope))


def _bind(name: bytes, role: str, scope: _Scope) -> None:
    """Note what an occurrence of a name says about its scope."""
    if role == "parameter":
        scope.bound[name] = b"" if name in _RECEIVERS else b"p"
    elif role in ("global", "nonlocal"):
        scope.declared[name] = role == "global"
    elif role == "import":
        scope.bound[name] = b""
    elif role == "walrus":
        while scope.kind in _COMPREHENSIONS and scope.parent is not None:
            scope = scope.parent
        scope.bound.setdefault(name, b"v")
    elif role == "bound":
        scope.bound.setdefault(name, b"v")


def _numbered(uses: Sequence[tuple[int, bytes, _Scope]]) -> dict[int, bytes]:
    """The canonical name of each use of a local variable, by its offset."""
    kept: set[bytes] = set()
    local: list[tuple[int, bytes, _Scope]] = []
    for start, name, scope in uses:
        binder = _binder(name, scope)
        if binder is None:
            kept.add(name)
        else:
            local.append((start, name, binder))
    if kept & _OBSERVERS:
        return {}
    numbers = {b"p": 0, b"v": 0}
    names: dict[tuple[int, bytes], bytes] = {}
    renamed: dict[int, bytes] = {}
    for start, name, binder in local:
        key = id(binder), name
        if key not in names:
            letter = binder.bound[name]
            numbers[letter] += 1
            while b"%s%d" % (letter, numbers[letter]) in kept:
                numbers[letter] += 1
            names[key] = b"%s%d" % (letter, numbers[letter])
        renamed[start] = names[key]
    return renamed


def _binder(name: bytes, scope: _Scope) -> _Scope | None:
    """The scope whose local variable a name is; None for a name that stays."""
    current: _Scope | None = scope
    while current is not None and current.kind:
        if name in current.declared:
            if current.declared[name]:
                return None
        elif name in current.bound and (current is scope or current.kind != "class_definition"):
            return current if current.bound[name] and current.kind != "class_definition" else None
        current = current.parent
    return None
