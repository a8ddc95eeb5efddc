"""Expressions of a program: names, arithmetic, subscripts, attributes and calls."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from ..domain.folding import MISSING, LargeInteger
from ..domain.records import replace
from ..torch_trace.values import LibraryName, SourceFunction, UnknownValue
from . import language
from .arithmetic import binary, compare, counted, truth
from .program import EXPRESSIONS, UNKNOWN, Program, evaluate, joined, run_function
from .values import (
    DTYPES,
    BlockPointer,
    Data,
    DType,
    Method,
    NotUnderstood,
    Pointer,
    PointerType,
    Value,
    dtype_of,
    shape_of,
)

_BUILTINS = frozenset({"range", "min", "max", "abs", "len", "float", "int", "bool", "print", "tuple", "isinstance"})


def _name(program: Program, node: ast.Name) -> Value:
    value = program.lookup(node.id)
    if value is MISSING:
        return LibraryName(node.id) if node.id in _BUILTINS else UNKNOWN
    return UNKNOWN if isinstance(value, UnknownValue) else value


def _binary(program: Program, node: ast.BinOp) -> Value:
    left, right = evaluate(program, node.left), evaluate(program, node.right)
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    return binary(program.tally, type(node.op), left, right)


def _unary(program: Program, node: ast.UnaryOp) -> Value:
    value = evaluate(program, node.operand)
    if isinstance(node.op, ast.Not):
        known = None if value is UNKNOWN else truth(value)
        return Data(shape_of(value), "bool") if known is None else not known
    if isinstance(value, Data):
        return value if value.dtype == "bool" else counted(program.tally, value.shape, value.dtype)
    if isinstance(node.op, ast.Invert):
        return not value if isinstance(value, bool) else ~value
    return -value if isinstance(node.op, ast.USub) else value


def _boolean(program: Program, node: ast.BoolOp) -> Value:
    value: Value = UNKNOWN
    unsure: list[Value] = []
    for part in node.values:
        value = evaluate(program, part)
        known = None if value is UNKNOWN else truth(value)
        if known is not None and known is isinstance(node.op, ast.Or):
            return value
        if known is None:
            unsure.append(value)
    if not unsure:
        return value
    # Of blocks, `and` is that of their elements.
    result = unsure[0]
    for value in unsure[1:]:
        if result is UNKNOWN or value is UNKNOWN:
            return UNKNOWN
        result = binary(program.tally, ast.BitAnd if isinstance(node.op, ast.And) else ast.BitOr, result, value)
    return Data((), "bool") if result is UNKNOWN else result


def _comparison(program: Program, node: ast.Compare) -> Value:
    left = evaluate(program, node.left)
    result: Value = True
    for sign, item in zip(node.ops, node.comparators, strict=True):
        right = evaluate(program, item)
        if left is UNKNOWN or right is UNKNOWN:
            if isinstance(sign, (ast.Is, ast.IsNot)):
                return UNKNOWN
            return Data(shape_of(right if left is UNKNOWN else left), "bool")
        value = compare(program.tally, type(sign), left, right)
        result = value if result is True else binary(program.tally, ast.BitAnd, result, value)
        if result is False:
            return False
        left = right
    return result


def _conditional(program: Program, node: ast.IfExp) -> Value:
    value = evaluate(program, node.test)
    known = None if value is UNKNOWN else truth(value)
    if known is None:
        return joined(evaluate(program, node.body), evaluate(program, node.orelse))
    return evaluate(program, node.body if known else node.orelse)


def _subscript(program: Program, node: ast.Subscript) -> Value:
    owner, key = evaluate(program, node.value), evaluate(program, node.slice)
    if isinstance(owner, (tuple, list, str, dict, range)):
        return owner[key]
    return expanded(owner, key if isinstance(key, tuple) else (key,))


def expanded(value: Value, key: tuple[Any, ...]) -> Value:
    """A block with new dimensions: ``value[:, None]``.

    Raises:
        NotUnderstood: the key has more than full slices and None.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = np.asarray(value)
    if any(part is not None and part != slice(None) for part in key):
        raise NotUnderstood("subscript of a block")
    if isinstance(value, np.ndarray):
        return value[key]
    if isinstance(value, Pointer):
        return replace(value, offset=expanded(value.offset, key))
    if not isinstance(value, Data):
        raise NotUnderstood("subscript")
    if sum(part is not None for part in key) > len(value.shape):
        raise NotUnderstood("more subscripts than dimensions")
    sizes = iter(value.shape)
    shape = tuple(1 if part is None else next(sizes) for part in key)
    relative, most = (None if part is None else part[key] for part in (value.relative, value.most))
    return replace(value, shape=(*shape, *sizes), relative=relative, most=most)


def _slice(program: Program, node: ast.Slice) -> Value:
    if node.lower is None and node.upper is None and node.step is None:
        return slice(None)
    return UNKNOWN


def _attribute(program: Program, node: ast.Attribute) -> Value:
    owner = evaluate(program, node.value)
    name = node.attr
    if isinstance(owner, LibraryName):
        if name in DTYPES and owner.path in ("triton.language", "tl", "torch"):
            return DType(DTYPES[name])
        return LibraryName(f"{owner.path}.{name}")
    if name == "shape":
        return shape_of(owner)
    if name in ("dtype", "type"):
        element = DType(dtype_of(owner))
        return PointerType(element) if isinstance(owner, Pointer) else element
    if name in ("element_ty", "scalar"):
        return owner.element if isinstance(owner, PointerType) else owner
    if name == "primitive_bitwidth":
        return language.bits(owner)
    if name == "value":
        return owner
    if name == "T":
        return language.transposed(owner, ())
    if name == "block_shape" and isinstance(owner, BlockPointer):
        return owner.block
    return UNKNOWN if owner is UNKNOWN else Method(owner, name)


def _call(program: Program, node: ast.Call) -> Value:
    target = evaluate(program, node.func)
    args: list[Value] = []
    for item in node.args:
        value = evaluate(program, item.value if isinstance(item, ast.Starred) else item)
        if isinstance(item, ast.Starred):
            args += list(value)
        else:
            args.append(value)
    named = {item.arg: evaluate(program, item.value) for item in node.keywords if item.arg is not None}
    if isinstance(target, SourceFunction):
        return run_function(program, target, args, named)
    if isinstance(target, DType):
        return language.cast(program, args[0], target)
    name = target.name if isinstance(target, (LibraryName, Method)) else ""
    if isinstance(target, Method):
        args = [target.owner, *args]
    return language.call(program, node, name, args, named)


def _joined_text(program: Program, node: ast.JoinedStr) -> Value:
    return "text"


EXPRESSIONS.update(
    {
        ast.Constant: lambda program, node: UNKNOWN if isinstance(node.value, LargeInteger) else node.value,
        ast.Tuple: lambda program, node: tuple(evaluate(program, item) for item in node.elts),
        ast.List: lambda program, node: tuple(evaluate(program, item) for item in node.elts),
        ast.Attribute: _attribute, ast.Name: _name, ast.Subscript: _subscript, ast.Slice: _slice,
        ast.BinOp: _binary, ast.UnaryOp: _unary, ast.BoolOp: _boolean, ast.Compare: _comparison,
        ast.IfExp: _conditional, ast.Call: _call, ast.JoinedStr: _joined_text,
    }
)  # fmt: skip
