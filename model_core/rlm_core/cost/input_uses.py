"""How the text of a function uses each of its inputs: counts of places in its syntax.

Input: the text of a Python function. Output: per input (a parameter, or attributes of one, as ``items`` or
``self.queue``) how often it is looped over, passed on, searched, compared and so on. Local names count as the input
that they come from.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Mapping
from functools import lru_cache

from .domain.syntax import Function, parse_whole, parsed_function, walk
from .input_names import InputNames, input_names

USES = (
    "loops", "comprehensions", "while_tests", "ranges", "loops_that_may_end_early", "deepest_loop",
    "passed_to_builtins", "passed_to_others", "passed_in_loops", "passed_to_itself", "methods", "methods_in_loops",
    "attributes", "items_taken", "slices", "compared", "searched", "lengths", "type_tests", "truth_tests",
    "returned", "stored", "added_to", "formatted", "in_branches", "in_loops", "all",
)  # fmt: skip
OF_INPUT = (
    "is_parameter", "is_rest", "attributes_deep", "default_is_number", "default_is_none", "hint_is_number",
    "hint_is_text", "hint_is_container",
)  # fmt: skip
_BUILTINS = frozenset(dir(builtins))
_MOST_INPUTS = 12
_MOST_ATTRIBUTES = 8
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_NUMBERS, _TEXTS = frozenset({"int", "float", "complex", "Decimal"}), frozenset({"str", "bytes", "bytearray"})
_CONTAINERS = frozenset({
    "list", "dict", "set", "frozenset", "tuple", "deque", "List", "Dict", "Set", "FrozenSet", "Tuple", "Sequence",
    "Iterable", "Iterator", "Collection", "Mapping", "MutableMapping", "MutableSequence", "AbstractSet", "ndarray",
    "DataFrame", "Series",
})  # fmt: skip
_EXITS = (ast.Break, ast.Return, ast.Raise)
_OWN = ("self", "cls")
_OF_CONTAINERS = (
    "loops", "comprehensions", "passed_to_builtins", "items_taken", "slices", "searched", "lengths",
)  # fmt: skip


class InputUses:
    """The inputs of one function and how it uses them."""

    def __init__(self, text: str) -> None:
        self._function = parsed_function(text)
        self._names: InputNames = input_names(text, is_function=True)
        self._counts: dict[str, dict[str, float]] = {}
        self._waiting: list[tuple[ast.AST, ast.AST, _Place]] = []
        self._parameters: tuple[str, ...] = ()
        self._defaults: dict[str, ast.expr] = {}
        self._hints: dict[str, str] = {}
        self._rest: frozenset[str] = frozenset()
        if isinstance(self._function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._read_parameters(self._function)
            self._visit_all(self._function.body, self._function, _Place())
        # Not by recursion: a text may be nested deeper than Python's own limit.
        while self._waiting:
            self._visit(*self._waiting.pop())

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs that the text reads, those that are used most first, at most 12."""
        counted = ((name, counts) for name, counts in self._counts.items() if name not in _OWN or _is_container(counts))
        ranked = sorted(counted, key=lambda item: -item[1]["all"])
        return tuple(name for name, _ in ranked[:_MOST_INPUTS])

    @property
    def arguments(self) -> frozenset[str]:
        """The ``**kwargs``, and the ``*args`` that the text passes on or looks into, and never goes through.

        Their size is the number of arguments in a call, which no input makes large.
        """
        if not self._rest or not isinstance(self._function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return frozenset()
        looked_up = {
            node.value for node in walk(self._function) if isinstance(node, (ast.Starred, ast.Subscript, ast.Attribute))
        }
        used = {node.id for node in walk(self._function) if isinstance(node, ast.Name) and node not in looked_up}
        keywords = self._function.args.kwarg
        return (self._rest - used) | ({keywords.arg} if keywords is not None else set())

    def features(self, name: str) -> list[float]:
        """The counts of :data:`USES` of an input, then what :data:`OF_INPUT` names."""
        counts = self._counts.get(name, {})
        default, hint = self._defaults.get(name), self._hints.get(name, "")
        of_input = (
            name in self._parameters,
            name in self._rest,
            name.count("."),
            isinstance(default, ast.Constant) and type(default.value) in (int, float),
            isinstance(default, ast.Constant) and default.value is None,
            hint in _NUMBERS,
            hint in _TEXTS,
            hint in _CONTAINERS,
        )
        return [*(counts.get(use, 0.0) for use in USES), *map(float, of_input)]

    def _read_parameters(self, function: Function) -> None:
        arguments = function.args
        rest = [one.arg for one in (arguments.vararg, arguments.kwarg) if one is not None]
        positional = [*arguments.posonlyargs, *arguments.args]
        named = (*positional, *arguments.kwonlyargs)
        self._parameters = (*(one.arg for one in named), *rest)
        self._rest = frozenset(rest)
        defaults = positional[len(positional) - len(arguments.defaults) :]
        self._defaults = {one.arg: value for one, value in zip(defaults, arguments.defaults, strict=True)}
        self._defaults |= {one.arg: v for one, v in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if v}
        self._hints = {one.arg: _outermost(one.annotation) for one in named if one.annotation is not None}

    def _input(self, node: ast.AST) -> str | None:
        """The input that an expression is, or that a local name was bound to."""
        path = _path(node)
        found = self._names.of(path) if path is not None else None
        if found is None or found.endswith("[]"):
            return None
        return found if found.partition(".")[0] in self._parameters else None

    def _inputs_within(self, node: ast.AST) -> set[str]:
        return {found for one in ast.walk(node) if (found := self._input(one)) is not None}

    def _count(self, name: str, use: str, times: float = 1.0) -> None:
        counts = self._counts.setdefault(name, dict.fromkeys(USES, 0.0))
        counts[use] += times

    def _visit(self, node: ast.AST, parent: ast.AST, place: _Place) -> None:
        if isinstance(node, _LOOPS):
            self._visit_loop(node, place)
            return
        if isinstance(node, _COMPREHENSIONS):
            self._visit_comprehension(node, place)
            return
        if isinstance(node, ast.If):
            self._visit_all([node.test], node, place)
            self._visit_all([*node.body, *node.orelse], node, place.in_branch())
            return
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = self._input(node.func.value)
            if name is not None:
                self._count(name, "methods_in_loops" if place.loops else "methods")
        name = self._input(node)
        if name is not None and not isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
            self._count_use(name, node, parent, place)
        self._visit_all(ast.iter_child_nodes(node), node, place)

    def _visit_all(self, nodes: Iterable[ast.AST], parent: ast.AST, place: _Place) -> None:
        """Visit nodes later, with the node above them and where they are."""
        self._waiting.extend((node, parent, place) for node in nodes)

    def _visit_loop(self, node: ast.For | ast.AsyncFor | ast.While, place: _Place) -> None:
        may_end = any(isinstance(one, _EXITS) for statement in node.body for one in ast.walk(statement))
        head = node.test if isinstance(node, ast.While) else node.iter
        for name in self._inputs_within(head):
            self._count(name, "while_tests" if isinstance(node, ast.While) else "loops")
            self._count(name, "loops_that_may_end_early", may_end)
            self._reach(name, place.loops)
        self._visit_all([head], node, place.in_loop() if isinstance(node, ast.While) else place)
        self._visit_all([*node.body, *node.orelse], node, place.in_loop())

    def _visit_comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, place: _Place
    ) -> None:
        inside = place.in_loop()
        for depth, generator in enumerate(node.generators):
            for name in self._inputs_within(generator.iter):
                self._count(name, "comprehensions")
                self._reach(name, place.loops + depth)
            # Only the first iterable is evaluated once.
            self._visit_all([generator.iter], generator, inside if depth else place)
            self._visit_all(generator.ifs, generator, inside)
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._visit_all(results, node, inside)

    def _reach(self, name: str, loops: int) -> None:
        counts = self._counts.setdefault(name, dict.fromkeys(USES, 0.0))
        counts["deepest_loop"] = max(counts["deepest_loop"], float(loops))

    def _count_use(self, name: str, node: ast.AST, parent: ast.AST, place: _Place) -> None:
        self._count(name, "all")
        self._count(name, "in_loops", place.loops > 0)
        self._count(name, "in_branches", place.branches > 0)
        if isinstance(parent, ast.Call) and node is not parent.func:
            called = _path(parent.func) or ""
            self._count(name, _PASSED.get(called, "passed_to_builtins" if called in _BUILTINS else "passed_to_others"))
            if place.loops and called not in _PASSED:
                self._count(name, "passed_in_loops")
            if self._function is not None and called.rpartition(".")[2] == getattr(self._function, "name", None):
                self._count(name, "passed_to_itself")
        elif isinstance(parent, ast.Subscript) and node is parent.value:
            self._count(name, "slices" if isinstance(parent.slice, ast.Slice) else "items_taken")
        elif isinstance(parent, ast.Compare):
            is_searched = node in parent.comparators and any(isinstance(op, ast.In | ast.NotIn) for op in parent.ops)
            self._count(name, "searched" if is_searched else "compared")
        elif (use := _USE_BELOW.get(type(parent))) is not None:
            self._count(name, use)


class _Place:
    """How many loops and branches a node is in."""

    __slots__ = ("branches", "loops")

    def __init__(self, loops: int = 0, branches: int = 0) -> None:
        self.loops, self.branches = loops, branches

    def in_loop(self) -> _Place:
        return _Place(self.loops + 1, self.branches)

    def in_branch(self) -> _Place:
        return _Place(self.loops, self.branches + 1)


_PASSED: Mapping[str, str] = {"len": "lengths", "isinstance": "type_tests", "range": "ranges"}
_USE_BELOW: Mapping[type[ast.AST], str] = {
    ast.Attribute: "attributes",
    ast.Return: "returned",
    ast.Assign: "stored",
    ast.AnnAssign: "stored",
    ast.AugAssign: "added_to",
    ast.FormattedValue: "formatted",
    ast.BoolOp: "truth_tests",
    ast.UnaryOp: "truth_tests",
    ast.If: "truth_tests",
    ast.IfExp: "truth_tests",
}


def _outermost(hint: ast.expr) -> str:
    """The name of a type hint without what it holds, modules, and None as another choice."""
    match hint:
        case ast.Constant(value=str(text)):
            parsed = parse_whole(text, mode="eval")
            return _outermost(parsed.body) if isinstance(parsed, ast.Expression) else ""
        case ast.Subscript(value=ast.Name(id="Optional") | ast.Attribute(attr="Optional"), slice=held):
            return _outermost(held)
        case ast.BinOp(left=left, right=ast.Constant(value=None)):
            return _outermost(left)
        case ast.Subscript(value=value):
            return _outermost(value)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return ""


def _is_container(counts: Mapping[str, float]) -> bool:
    """Return whether an object is used as one that holds items itself, not only for its attributes."""
    return any(counts[use] for use in _OF_CONTAINERS)


def _path(node: ast.AST) -> str | None:
    """A name with attributes as a text; None for another expression, and for more attributes than inputs have."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < _MOST_ATTRIBUTES:
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


@lru_cache(maxsize=1024)
def input_uses(text: str) -> InputUses:
    """The uses of a function's inputs; equal texts share them."""
    return InputUses(text)
