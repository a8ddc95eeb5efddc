"""Calls of methods, and what they do to the containers that names hold."""

from __future__ import annotations

import ast

from .. import library
from ..bounds.recursion_syntax import is_own_part
from ..bounds.transitions import is_symbolic
from ..domain import object_sizes
from ..domain.context import Context
from ..domain.quantities import ONE, Quantity, constant
from ..domain.records import replace
from ..domain.syntax import GROWING, MERGING, REMOVING, SHRINKING
from ..domain.values import NONE, UNKNOWN, Value
from ..library.encoding import row_width, text_width
from ..library.unit_costs import primitive
from .bindings import fill, grow, shrink
from .expressions import attribute_of
from .function_bodies import is_open
from .library_calls import apply_rule
from .places import kept_place
from .shown_types import of_kind


def method_target(context: Context, receiver: Value, function: ast.Attribute) -> Value:
    """Return the callee of ``receiver.name``: a function of a module or class, or the mark for a method of a value."""
    if receiver.kind == "module":
        return attribute_of(context, receiver, function.attr)
    if (
        receiver.kind == "class"
        or (receiver.kind == "unknown" and receiver.name in ("self", "cls"))
        or (receiver.kind == "object" and receiver.payload is not None)
    ):
        own = _own_method(context, function.attr) if receiver.name in ("self", "cls") else None
        if own is not None:
            return own
        definition = context.frame.scope.function(function.attr, receiver.name, context.frame.qualname)
        if definition is not None:
            return Value("user-function", name=definition.qualname, payload=definition)
    if (
        receiver.kind == "unknown"
        and context.frame.node is not None
        and is_own_part(function.value, context.frame.node)
    ):
        own = _own_method(context, function.attr)
        if own is not None:
            return own
    if receiver.kind == "unknown":
        text = ast.unparse(function.value) if isinstance(function.value, (ast.Name, ast.Attribute, ast.Call)) else None
        if text is not None and len(text) < 80 and (library.method_rule("", function.attr) is None):
            definition = context.frame.scope.function(function.attr, text, context.frame.qualname)
            if definition is not None and not is_open(context, definition):
                return Value("user-function", name=definition.qualname, payload=definition)
    return METHOD


def _own_method(context: Context, name: str) -> Value | None:
    """The method of a name that is being read, called on ``self`` or a part of it."""
    owner = context.frame.qualname.rpartition(".")[0]
    qualname = f"{owner}.{name}" if owner else name
    for frame in reversed(context.open):
        if frame.qualname == qualname and frame.node is not None:
            return Value("user-function", name=name, payload=(frame.node, frame))
    bound = context.frame.lookup(f"self.{name}")
    return bound if bound is not None and bound.kind == "user-function" else None


def call_method(
    context: Context,
    function: ast.Attribute,
    receiver: Value,
    args: list[Value],
    keywords: dict[str, Value],
    name: str,
    *,
    is_awaited: bool = False,
) -> Value:
    """Return the result of a method of a value; what it does to its receiver is applied.

    No method of a container or text is awaited, and few take keywords: such a call is that of another type.
    """
    method = function.attr
    kinds = (
        [receiver.kind]
        if receiver.kind not in ("object", "unknown")
        else [receiver.name]
        if receiver.kind == "object"
        else []
    )
    rule = next((rule for kind in [*kinds, ""] if (rule := library.method_rule(kind, method)) is not None), None)
    if rule is None and receiver.kind == "list":
        receiver = Value("unknown", size=receiver.size)  # of something unknown, which was not a list
    if rule is None and receiver.kind == "unknown":
        telling = library.TELLING.get(method)
        rule = library.method_rule(telling, method) if telling is not None else None
        if telling is None and not is_awaited and (not keywords or method in _WITH_KEYWORDS):
            rule = _container_rule(method, len(args))
        if rule is None:
            for owner in library.usual_owners(_last_name(function.value), method):
                rule = library.method_rule(owner, method) if library.may_take(owner, method, args) else None
                if rule is not None:
                    telling = owner
                    break
        if telling is not None:
            receiver = of_kind(telling, receiver.name)
        if method == "join" and not args:
            # That of a text takes an argument.
            rule = library.method_rule("threading.Thread", "join")
    if rule is None:
        context.meter.spend(primitive("call.builtin"))
        context.meter.miss(f"{name}()")
        return library.method_result(receiver, method)
    context.note_kind(receiver.name if receiver.kind == "object" else receiver.kind)
    result = apply_rule(context, rule, name, args, keywords, receiver)
    apply_effects(context, function, receiver, args)
    return result


def _last_name(node: ast.expr) -> str:
    """The name of an object as it is written: ``session`` of ``self.session`` and of ``session()``."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


METHOD = Value("function", name="")
_POP_WITH_DEFAULT = 2  # arguments
_WITH_KEYWORDS = frozenset(
    {"sort", "split", "rsplit", "splitlines", "encode", "decode", "format", "update", "replace", "to_bytes"}
)
"""Methods of containers and text that take keywords."""
_MEMORY_FILES = {"io.StringIO": 0.0, "io.BytesIO": 1.0}  # bytes per character; a StringIO lists what is written
_REFERENCE = 9.0  # in a list that reserves an eighth more
_ROW_WRITER = "csv.writer()"
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


def _container_rule(method: str, given: int) -> library.Rule | None:
    """The rule of a method that only containers and text have, on a value that is not known.

    Only that of a dict takes a default: ``pop(key, None)``.
    """
    kinds = ("dict",) if method == "pop" and given == _POP_WITH_DEFAULT else _KINDS_OF_METHOD.get(method, ())
    for kind in kinds:
        rule = library.method_rule(kind, method)
        if rule is not None:
            return rule
    return None


def apply_effects(context: Context, function: ast.Attribute, receiver: Value, args: list[Value]) -> None:
    """Apply what a method adds to its receiver or takes from it."""
    method = function.attr
    place = kept_place(context, function.value)
    if place and method in REMOVING:
        is_key = receiver.kind == "dict" and method == "pop"  # which may be missing
        at_least_one = method not in SHRINKING or (not is_key and is_symbolic(receiver.size))
        shrink(context, place, receiver, at_least_one=at_least_one)
        return
    if not args:
        return
    if not place:
        _fill_inner(context, function, args)
        return
    if method == "write":
        _write(context, place, ONE, context.length(args[0]), args[0].bytes)
        return
    if method == "writelines":
        item = args[0].item or UNKNOWN
        _write(context, place, context.length(args[0]), text_width(item), item.bytes)
        return
    if receiver.name == _ROW_WRITER:
        _write_rows(context, method, receiver, args[0])
        return
    if receiver.kind not in ("list", "set", "dict", "deque", "bytearray") and receiver.name != "collections.deque":
        return
    if method in GROWING:
        grow(context, place, receiver, ONE, args[-1] if method == "insert" else args[0])
    elif method in MERGING:
        count = context.length(args[0])
        grow(context, place, receiver, count, args[0].item or UNKNOWN)
    elif method == "setdefault":
        grow(context, place, receiver, ONE, args[0], args[1] if len(args) > 1 else NONE)


def _write(context: Context, name: str, count: Quantity, width: Quantity, held: Quantity) -> None:
    """``count`` texts of ``width`` characters, which hold ``held`` bytes, are written to a file in memory."""
    file = context.frame.names.get(name)
    if file is None or file.name not in _MEMORY_FILES or file.size is None:
        return
    each = constant(_REFERENCE) + held if file.name == "io.StringIO" else width.times(_MEMORY_FILES[file.name])
    context.frame.bind(name, replace(file, size=file.size + count * width, bytes=file.bytes + count * each))
    context.hold()


def _write_rows(context: Context, method: str, writer: Value, argument: Value) -> None:
    """A writer of rows writes each as one text to its file, if that is the only one in memory here."""
    files = [name for name, value in context.frame.names.items() if value.name in _MEMORY_FILES]
    kind = writer.item.name if writer.item is not None else ""
    if len(files) != 1 or context.frame.names[files[0]].name != kind or method not in ("writerow", "writerows"):
        return
    count = context.length(argument) if method == "writerows" else ONE
    width = row_width(argument if method == "writerow" else argument.item or UNKNOWN)
    _write(context, files[0], count, width, width + constant(object_sizes.TEXT_HEADER))


def _fill_inner(context: Context, function: ast.Attribute, args: list[Value]) -> None:
    """``groups[key].append(item)``: the container that the name holds grows by what an inner one takes."""
    if function.attr not in GROWING:
        return
    fill(context, function.value, constant(_REFERENCE) + args[-1].bytes)
