"""Recursion over the parts of a structure: a function that calls itself for the children of a node, or the next one.

However the parts are stored, each call gets another one, so that all calls together are as many as there are nodes. A
function that makes one such call on each path goes down one way only. Input: the syntax of a function. Output: the
parameter that the calls replace by its parts, and whether each of the parts gets a call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..domain.syntax import Function, nodes_of, walk
from .links import is_link, is_way_down
from .recursion_syntax import calls_itself, deciding_conditions

_OF_ITEMS = frozenset({"items", "values"})
_KINDS = frozenset({"hasattr", "isinstance", "len", "type"})
"""Functions that tell what a part is, and not what it holds."""
_Plain = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class StructureWalk:
    """A recursion over the parts of what a parameter is bound to.

    ``links`` are the attributes that lead to parts. ``of_all``: each part gets a call, whatever it holds. ``asks_end``:
    calls are made for missing parts too, such as the children of a leaf, and end at once.
    """

    parameter: str
    links: frozenset[str]
    of_all: bool
    asks_end: bool

    @property
    def is_chain(self) -> bool:
        """True if a node leads to one other node only."""
        return len(self.links) == 1 and not any(map(is_way_down, self.links))

    @property
    def is_of_items(self) -> bool:
        """True if the parts are the items of a container, whose size is the number of these."""
        return self.links <= _OF_ITEMS

    def share_of_parts(self, test: ast.expr, going: float) -> float | None:
        """The share of calls for which a condition holds that asks whether there is a part; None for others.

        ``going`` is the share of the calls that do not end at once.
        """
        if not _is_of_parts(test, self.parameter, self.links, frozenset()):
            return None
        return going if _holds_for_parts(test) else 1 - going


@lru_cache(maxsize=128)
def structure_walk(node: Function) -> StructureWalk | None:
    """The walk that a recursive function is; None for another recursion."""
    if isinstance(node, ast.Lambda):
        return None
    calls = [inner for inner in nodes_of(node) if isinstance(inner, ast.Call) and calls_itself(inner, node)]
    parameters = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    is_method = parameters[:1] in (["self"], ["cls"])
    for place, parameter in enumerate(parameters):
        parts = _Parts(node, parameter)
        given = [_argument(call, place, parameter, is_method=is_method) for call in calls]
        links = [parts.link_of(argument) for argument in given if argument is not None]
        if links and len(links) == len(calls) and all(link is not None for link in links):
            found = frozenset(link for link in links if link)
            tests = deciding_conditions(node)
            of_all = not _stops_early(node, calls) and all(
                _is_of_parts(test, parameter, found, _KINDS | parts.names) for test in tests
            )
            asked = [part for test in tests for part in (test.values if isinstance(test, ast.BoolOp) else [test])]
            asks_end = any(_is_of_parts(test, parameter, frozenset(), frozenset()) for test in asked)
            return StructureWalk(parameter, found, of_all, asks_end)
    return None


class _Parts:
    """The names that a function binds to parts of a parameter, and the attributes by which they are parts."""

    def __init__(self, node: _Plain, parameter: str) -> None:
        self.parameter = parameter
        self.of_names: dict[str, str] = {}
        bound = [*_bindings(node)]
        known = -1
        while known != len(self.of_names):
            known = len(self.of_names)
            for name, source in bound:
                link = self.link_of(source)
                if link is not None:
                    self.of_names.setdefault(name, link)

    @property
    def names(self) -> frozenset[str]:
        """The names of parts."""
        return frozenset(self.of_names)

    def link_of(self, source: ast.expr) -> str | None:
        """The attribute by which an expression is a part, ``""`` for an item; None for what is none."""
        link: str | None = None
        while True:
            match source:
                case ast.Attribute(value=value, attr=attribute):
                    link, source = attribute, value
                case ast.Subscript(value=value, slice=index) if not isinstance(index, ast.Slice):
                    link, source = link or "", value
                case ast.Call(func=ast.Attribute(value=value, attr=method), args=[]) if (
                    is_link(method) or method in _OF_ITEMS
                ):
                    link, source = link or method, value
                case ast.Call(args=[value, *_]) if not isinstance(value, ast.Starred):
                    link, source = link or "", value
                case ast.BoolOp(op=ast.Or(), values=[value, *_]):
                    source = value
                case ast.Name(id=name) if name in self.of_names:
                    return link or self.of_names[name]
                case ast.Name(id=name) if name == self.parameter:
                    return link
                case _:
                    return None


def _bindings(node: _Plain) -> Iterator[tuple[str, ast.expr]]:
    """The names that a function binds to an expression, or to the items of one."""
    for inner in nodes_of(node):
        match inner:
            case ast.For(target=target, iter=source) | ast.comprehension(target=target, iter=source):
                # What a loop binds is an item of what it runs over.
                item = ast.Subscript(source, ast.Constant(0), ast.Load())
                yield from ((part.id, item) for part in walk(target) if isinstance(part, ast.Name))
            case ast.Assign(targets=[ast.Name(id=name)], value=source):
                yield name, source
            case _:
                pass


def _argument(call: ast.Call, place: int, parameter: str, *, is_method: bool) -> ast.expr | None:
    """What a recursive call passes for a parameter; of a method, what it is called on counts as the first."""
    if is_method and not place:
        return call.func.value if isinstance(call.func, ast.Attribute) else None
    named = next((keyword.value for keyword in call.keywords if keyword.arg == parameter), None)
    place -= is_method
    return named or (call.args[place] if place < len(call.args) else None)


def _is_of_parts(test: ast.expr, parameter: str, links: frozenset[str], others: frozenset[str]) -> bool:
    """Return whether a condition only asks whether there are parts, or with ``others`` what they are."""
    match test:
        case ast.BoolOp(values=values):
            return all(_is_of_parts(value, parameter, links, others) for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _is_of_parts(operand, parameter, links, others)
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() | ast.Eq() | ast.NotEq()], comparators=[right]):
            is_none = isinstance(right, ast.Constant) and right.value is None
            return is_none and _is_of_parts(left, parameter, links, others)
        case ast.Name(id=name):
            return name == parameter or name in others
        case ast.Attribute(value=value, attr=attribute):
            return attribute in links and _is_of_parts(value, parameter, links, others)
        case ast.Call(func=ast.Name(id=name), args=[value, *_]) if name in others:
            return _is_of_parts(value, parameter, links, others)
    return False


def _holds_for_parts(test: ast.expr) -> bool:
    """Return whether a condition that asks whether there is a part holds where there is one."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _holds_for_parts(operand)
        case ast.Compare(ops=[op, *_]):
            return isinstance(op, (ast.IsNot, ast.NotEq))
        case ast.BoolOp(values=[value, *_]):
            return _holds_for_parts(value)
    return True


def _stops_early(node: _Plain, calls: Sequence[ast.Call]) -> bool:
    """Return whether what a call returns decides whether the next is made."""

    def recurs(part: ast.AST) -> bool:
        return any(inner in calls for inner in walk(part))

    for inner in nodes_of(node):
        match inner:
            case ast.BoolOp(values=[first, *rest]) if recurs(first) and any(map(recurs, rest)):
                return True
            case ast.Call(func=ast.Name(id="any" | "all" | "next"), args=[argument, *_]) if recurs(argument):
                return True
            case ast.For(body=body) if any(isinstance(last, ast.Return) and recurs(last) for last in body):
                return True
    return False
