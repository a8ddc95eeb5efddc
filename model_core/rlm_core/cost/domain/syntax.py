"""The syntax tree of a unit's text, also where a few lines are broken: most texts are while they are typed.

Lines that do not parse become ``pass`` (or ``if True:`` above an indented block), so the rest can be analysed. Line
numbers stay those of the text.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from rlm_core.source.canonical import dedent

from .folding import MOST_BITS, LargeInteger

LoopNode = ast.For | ast.AsyncFor | ast.While
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
MOST_CHARACTERS = 100_000
_MOST_REPAIRS = 12
_MOST_NESTING = 60  # of brackets, and of prefix operators
_MOST_PARTS = 8
_BRACKETS = re.compile(r"[()\[\]{}]")
_LONG_NUMBER = re.compile(rf"\d\w{{{MOST_BITS // 4 - 1}}}")
_PREFIXES = re.compile(r"[-+~](?:\s*[-+~]){59}")
# Literals of text, and comments.
_TEXTS = re.compile(r"""\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\#[^\n]*""")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
# Of nodes of any type: what is not a node, and the contexts of names.
_TEXT_FIELDS = frozenset({"arg", "asname", "attr", "conversion", "ctx", "id", "is_async", "kind", "level", "lineno",
                          "module", "n", "s", "simple", "type_comment"})  # fmt: skip
_PARENTS: dict[type[ast.AST], tuple[str, ...]] = {ast.Constant: (), ast.Name: ()}
_LEAF_TYPES = frozenset({ast.Load, ast.Store, ast.Del, ast.Pass, ast.arg})
GROWING = frozenset({"append", "add", "appendleft", "insert", "push", "put"})
"""Methods that add an item to a container."""
MERGING = frozenset({"extend", "update", "extendleft"})
"""Methods that add all items of another container."""
SHRINKING = frozenset({"pop", "popleft", "popitem"})
"""Methods that take an item from a container and return it."""
REMOVING = SHRINKING | {"remove", "discard"}
"""Methods that take an item from a container."""
_CHANGING = GROWING | MERGING | REMOVING

LEAVING = frozenset({"sys.exit", "exit", "quit", "os._exit", "os.abort", "os.execv", "os.execvp"})
"""Calls that end the program."""


def parse(text: str) -> ast.Module | None:
    """The tree of a text, repaired where it is broken; None for a text that is too long, too nested or too broken."""
    if len(text) > MOST_CHARACTERS or _is_too_nested(text):
        return None
    lines = dedent(text).split("\n")
    for _ in range(_MOST_REPAIRS):
        try:
            return cast(ast.Module, _read("\n".join(lines)))
        except SyntaxError as error:
            if not _repair(lines, (error.lineno or 0) - 1):
                return None
        except (ValueError, RecursionError, MemoryError):
            return None
    return None


def parse_whole(text: str, most: int = MOST_CHARACTERS, *, mode: str = "exec") -> ast.AST | None:
    """The tree of a text as it is; None for a text of more than ``most`` characters, too nested, or broken.

    ``mode`` is that of :func:`ast.parse`.
    """
    if len(text) > most or _is_too_nested(text):
        return None
    try:
        return _read(text, mode)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _read(text: str, mode: str = "exec") -> ast.AST:
    """The tree of a text; a :class:`LargeInteger` stands for each literal that is too large to compute with."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree: ast.AST = ast.parse(text, mode=mode)
    if _LONG_NUMBER.search(text) is not None:
        for node in walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value.bit_length() > MOST_BITS:
                node.value = LargeInteger(node.value.bit_length())  # type: ignore[assignment]
    return tree


@lru_cache(maxsize=128)
def parsed_function(text: str) -> Function | None:
    """The first function of a text; equal texts share the tree."""
    tree = parse(text)
    if tree is None:
        return None
    return next((node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))), None)


@lru_cache(maxsize=128)
def parsed_class(text: str) -> ast.ClassDef | None:
    """The first class of a text; equal texts share the tree."""
    tree = parse(text)
    return next((node for node in tree.body if isinstance(node, ast.ClassDef)), None) if tree is not None else None


def walk(node: ast.AST) -> list[ast.AST]:
    """Return a node and all below it, in the order of :func:`ast.walk`, without the contexts of names."""
    nodes = [node]
    for parent in nodes:  # which grows
        kind = type(parent)
        fields = _PARENTS.get(kind)
        if fields is None:
            fields = _PARENTS[kind] = tuple(field for field in kind._fields if field not in _TEXT_FIELDS)
        for field in fields:
            child = getattr(parent, field, None)
            if isinstance(child, list):
                nodes += [item for item in child if isinstance(item, ast.AST)]
            elif isinstance(child, ast.AST):
                nodes.append(child)
    return nodes


@lru_cache(maxsize=128)
def nodes_of(node: Function) -> tuple[ast.AST, ...]:
    """Return the nodes of a function, see :func:`walk`."""
    return tuple(walk(node))


def label_of(node: ast.expr) -> str:
    """The last name of what is called, subscripted or named."""
    while isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


@lru_cache(maxsize=128)
def data_fields(node: ast.ClassDef) -> dict[str, ast.expr | None] | None:
    """The fields of a dataclass or named tuple with their defaults; None for other classes."""
    is_data = any(label_of(decorator) == "dataclass" for decorator in node.decorator_list)
    if not is_data and not any(label_of(base) == "NamedTuple" for base in node.bases):
        return None
    return {
        statement.target.id: _default_of(statement.value)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and label_of(statement.annotation) != "ClassVar"
    }


def _default_of(value: ast.expr | None) -> ast.expr | None:
    """The default of a field of a dataclass, also where ``field`` gives it."""
    if not isinstance(value, ast.Call) or label_of(value) != "field":
        return value
    given = {keyword.arg: keyword.value for keyword in value.keywords}
    factory = given.get("default_factory")
    return ast.copy_location(ast.Call(factory, [], []), value) if factory is not None else given.get("default")


@lru_cache(maxsize=256)
def parse_expression(text: str) -> ast.expr | None:
    """The tree of an expression; None for a text that is none, or that is too long or too nested.

    Equal texts share the tree.
    """
    tree = parse_whole(text, mode="eval")
    return tree.body if isinstance(tree, ast.Expression) else None


def _repair(lines: list[str], number: int) -> bool:
    """Replace a broken line; False where that changes nothing."""
    number = min(number, len(lines) - 1)
    while number > 0 and not lines[number].strip():
        number -= 1
    if number < 0:
        return False
    line = lines[number]
    width = len(line) - len(line.lstrip())
    following = next((below for below in lines[number + 1 :] if below.strip()), "")
    opens_block = len(following) - len(following.lstrip()) > width
    replacement = line[:width] + ("if True:" if opens_block else "pass")
    if line == replacement:
        # The block below is what does not fit: take it to the margin of this line.
        replacement = line[:width] + "pass"
        if line == replacement:
            return False
    lines[number] = replacement
    return True


def _is_too_nested(text: str) -> bool:
    """Return whether the parser could run out of stack: nesting in the code, not in its texts and comments."""
    return _has_deep_nesting(text) and _has_deep_nesting(_TEXTS.sub("''", text))


def _has_deep_nesting(text: str) -> bool:
    """Return whether a text has deep brackets, or long chains of prefix operators."""
    if max(text.count("("), text.count("["), text.count("{")) >= _MOST_NESTING:
        depth = 0
        for bracket in _BRACKETS.findall(text):
            depth = depth + 1 if bracket in "([{" else max(depth - 1, 0)
            if depth > _MOST_NESTING:
                return True
    return _PREFIXES.search(text) is not None


class BlockSyntax:
    """The effects of the statements of a loop or branch, nested functions left out; read in one pass.

    ``breaks`` and ``continues`` are those of the block itself, not of loops in it. ``assigned`` are the names that are
    bound or changed by a method, and attributes that are, see :func:`place_of`; ``stores`` counts the places that bind
    one, and ``updates`` says how one changes in one pass, see :func:`read_update`. ``remade`` are those that are
    assigned something made of their value before.
    """

    __slots__ = (
        "assigned", "breaks", "continues", "filled", "grown", "leaves_program", "nested_loops", "nodes", "raises",
        "remade", "returns", "risks", "stores", "updates", "yields",
    )  # fmt: skip

    def __init__(self, body: Sequence[ast.AST]) -> None:
        self.breaks = self.continues = self.returns = self.raises = self.yields = False
        self.leaves_program = self.risks = self.nested_loops = False
        self.nodes = 0
        self.assigned: dict[str, None] = {}  # in an order that is always the same
        self.stores: dict[str, int] = {}
        self.grown: set[str] = set()  # names of containers that get items by a method
        self.filled: set[str] = set()  # or by an assignment
        self.updates: dict[str, tuple[str, ast.expr] | None] = {}
        self.remade: set[str] = set()
        stack: list[tuple[ast.AST, bool]] = [(node, False) for node in reversed(body)]
        while stack:
            node, nested = stack.pop()
            self.nodes += 1
            kind = type(node)
            if kind is ast.Name:
                if not isinstance(node.ctx, ast.Load):  # type: ignore[attr-defined]
                    name: str = node.id  # type: ignore[attr-defined]
                    self.assigned[name] = None
                    self.stores[name] = self.stores.get(name, 0) + 1
                continue
            if kind is ast.Attribute and not isinstance(node.ctx, ast.Load) and (place := place_of(node)):  # type: ignore[attr-defined, arg-type]
                self.assigned[place] = None
                self.stores[place] = self.stores.get(place, 0) + 1
            if kind is ast.Constant or kind in _LEAF_TYPES:
                continue
            read = _READERS.get(kind)
            if read is not None:
                read(self, node, nested)
            if kind in _FUNCTIONS:
                continue
            for field in node._fields:
                child = getattr(node, field, None)
                # What follows a loop with `else` is not in it any more.
                inside = nested or (kind in _LOOPS and field != "orelse")
                if isinstance(child, ast.AST):
                    stack.append((child, inside))
                elif isinstance(child, list):
                    stack += [(item, inside) for item in reversed(child) if isinstance(item, ast.AST)]

    def _break(self, node: ast.AST, nested: bool) -> None:
        self.breaks |= not nested

    def _continue(self, node: ast.AST, nested: bool) -> None:
        self.continues |= not nested

    def _return(self, node: ast.AST, nested: bool) -> None:
        self.returns = True

    def _raise(self, node: ast.AST, nested: bool) -> None:
        self.raises = True

    def _yield(self, node: ast.AST, nested: bool) -> None:
        self.yields = True

    def _loop(self, node: ast.AST, nested: bool) -> None:
        self.nested_loops = True

    def _call(self, node: ast.Call, nested: bool) -> None:
        self.risks = True
        function = node.func
        if isinstance(function, ast.Attribute):
            root = function.value
            while isinstance(root, ast.Subscript):
                root = root.value
            place = place_of(root)
            if place and (isinstance(root, ast.Name) or function.attr in _CHANGING):
                self.assigned[place] = None
                if function.attr in GROWING:
                    self.grown.add(place)
                    self.filled.add(place)
        name = called_name(node)
        inserts = name.rpartition(".")[2].startswith(("insort", "heappush"))
        if inserts and node.args and (place := place_of(node.args[0])):
            self.assigned[place] = None
            self.grown.add(place)
        self.leaves_program |= name in LEAVING

    def _subscript(self, node: ast.Subscript, nested: bool) -> None:
        self.risks = True
        root = node.value
        while isinstance(root, ast.Subscript):
            root = root.value
        if not isinstance(node.ctx, ast.Load) and (place := place_of(root)):
            self.assigned[place] = None
            if isinstance(node.ctx, ast.Store):
                self.filled.add(place)

    def _augmented(self, node: ast.AugAssign, nested: bool) -> None:
        if place := place_of(node.target):
            self._update(place, read_update(node.op, node.value))
            self.remade.add(place)

    def _assign(self, node: ast.Assign, nested: bool) -> None:
        value = node.value
        read = {place_of(inner) for inner in walk(value) if isinstance(inner, (ast.Name, ast.Attribute))}
        for target in node.targets:
            if place := place_of(target):
                self.remade |= {place} & read
                is_own = isinstance(value, ast.BinOp) and place_of(value.left) == place
                self._update(
                    place, read_update(value.op, value.right) if isinstance(value, ast.BinOp) and is_own else None
                )
            else:
                for inner in walk(target):
                    if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                        self.updates[inner.id] = None

    def _update(self, name: str, update: tuple[str, ast.expr] | None) -> None:
        self.updates[name] = update if self.updates.get(name, update) is not None else None


_READERS: dict[type, Callable[[BlockSyntax, Any, bool], None]] = {
    ast.Break: BlockSyntax._break,
    ast.Continue: BlockSyntax._continue,
    ast.Return: BlockSyntax._return,
    ast.Raise: BlockSyntax._raise,
    ast.Yield: BlockSyntax._yield,
    ast.YieldFrom: BlockSyntax._yield,
    ast.For: BlockSyntax._loop,
    ast.AsyncFor: BlockSyntax._loop,
    ast.While: BlockSyntax._loop,
    ast.Call: BlockSyntax._call,
    ast.Subscript: BlockSyntax._subscript,
    ast.AugAssign: BlockSyntax._augmented,
    ast.Assign: BlockSyntax._assign,
}


def read_update(op: ast.operator, amount: ast.expr) -> tuple[str, ast.expr] | None:
    """How ``name op= amount`` changes a name: ``+``, ``-``, ``*``, ``/`` or ``//`` by an amount, else None.

    A shift multiplies or divides by a power of two.
    """
    match op:
        case ast.Add():
            return "+", amount
        case ast.Sub():
            return "-", amount
        case ast.Mult():
            return "*", amount
        case ast.Div():
            return "/", amount
        case ast.FloorDiv():
            return "//", amount
        case ast.RShift() | ast.LShift():
            return "//" if isinstance(op, ast.RShift) else "*", ast.BinOp(ast.Constant(2), ast.Pow(), amount)
        case _:
            return None


def own_update(statement: ast.stmt, name: str) -> bool:
    """Return whether a statement binds a name and nothing else: ``name op= amount`` or ``name = ...``."""
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.target, ast.Name) and statement.target.id == name
    return (
        isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and isinstance(statement.targets[0], ast.Name)
        and statement.targets[0].id == name
    )


def leaving(body: Sequence[ast.stmt]) -> str:
    """How a block ends: ``return``, ``raise``, ``break``, ``continue``, or nothing."""
    last = body[-1] if body else None
    if isinstance(last, ast.Return):
        return "return"
    if isinstance(last, ast.Raise):
        return "raise"
    return "break" if isinstance(last, ast.Break) else "continue" if isinstance(last, ast.Continue) else ""


def place_of(node: ast.expr) -> str:
    """The name of what an expression reads or binds: ``items``, or ``self.items`` of an attribute, else ``""``."""
    if isinstance(node, ast.Name):
        return node.id
    is_attribute = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    return f"{node.value.id}.{node.attr}" if is_attribute else ""  # type: ignore[attr-defined]


def dotted_name(node: ast.expr) -> str:
    """``a.b.c`` as text; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute) and len(parts) < _MOST_PARTS:
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        return ".".join([node.id, *reversed(parts)])
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super":
        return ".".join(["super()", *reversed(parts)])
    return ""


def called_name(node: ast.Call) -> str:
    """The name that a call is written with, such as ``requests.get``; only the last part of a longer expression."""
    name = dotted_name(node.func)
    return name or (node.func.attr if isinstance(node.func, ast.Attribute) else "")


@lru_cache(maxsize=256)
def bound_methods(node: Function) -> Mapping[str, ast.Attribute]:
    """Map names that a function binds once, to an attribute of a name, to that attribute."""
    found: dict[str, list[ast.expr | None]] = {}
    for inner in nodes_of(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, (ast.Store, ast.Del)):
            found.setdefault(inner.id, []).append(None)
        elif isinstance(inner, ast.Assign) and len(inner.targets) == 1 and isinstance(inner.targets[0], ast.Name):
            found.setdefault(inner.targets[0].id, []).append(inner.value)
    methods = {}
    for name, values in found.items():
        # The target of the assignment is a name that is stored, too.
        bound = [value for value in values if value is not None]
        if len(values) == 2 and len(bound) == 1 and isinstance(bound[0], ast.Attribute) and dotted_name(bound[0]):
            methods[name] = bound[0]
    return methods
