"""Functions of ``triton.language`` that arrange the elements of blocks: views, transposes, joins."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..concrete.values import Named, Value
from ..domain.records import replace
from .arithmetic import plain
from .program import Program
from .values import Data, NotUnderstood, Pointer, Shape, bounded, broadcast, dtype_of, promoted, shape_of


def argument(args: list[Value], named: Named, index: int, name: str, default: Value = None) -> Value:
    """The argument at a position or under its name; a scalar of numpy as Python's own number."""
    value = args[index] if len(args) > index else named.get(name, default)
    return plain(value)


def shape_argument(value: Value) -> Shape:
    """A shape argument; raises LimitReached for one that is larger than any block can be."""
    sizes = value if isinstance(value, (tuple, list)) else (value,)
    return bounded(tuple(int(plain(size)) for size in sizes))


def _sizes(args: list[Value], named: Named) -> Shape:
    """The shape after a block: a tuple, or its sizes one by one."""
    return shape_argument(args[1] if len(args) == 2 else tuple(args[1:]) or named.get("shape", ()))


def transposed(value: Value, order: tuple[Any, ...]) -> Value:
    """A block with its dimensions in another order, by default the reverse.

    Raises:
        NotUnderstood: it has none.
    """
    rank = len(shape_of(value))
    if order and isinstance(order[0], tuple):
        order = order[0]
    axes = tuple(order) or (*range(rank - 2), rank - 1, rank - 2)
    return _arranged(value, lambda array: array.transpose(axes), tuple(shape_of(value)[axis] for axis in axes))


def _arranged(value: Value, action: Callable[[Any], Any], shape: Shape) -> Value:
    """A block whose known arrays are arranged in another way."""
    if isinstance(value, np.ndarray):
        return action(value)
    if isinstance(value, Pointer):
        return replace(value, offset=_arranged(value.offset, action, shape))
    if isinstance(value, Data):
        relative, most = (None if part is None else action(part) for part in (value.relative, value.most))
        return replace(value, shape=shape, relative=relative, most=most)
    if isinstance(value, (int, float)):
        return _arranged(np.asarray(value), action, shape)
    raise NotUnderstood("not a block")


def _trans(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    return transposed(args[0], tuple(args[1:]))


def _reshape(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    shape = _sizes(args, named)
    whole = math.prod(shape_of(args[0]))
    if -1 in shape:
        shape = tuple(whole // -math.prod(shape) if size == -1 else size for size in shape)
    if math.prod(shape) != whole:
        raise NotUnderstood("reshape")
    return _arranged(args[0], lambda array: array.reshape(shape), shape)


def _ravel(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    return _arranged(args[0], lambda array: array.reshape(-1), (math.prod(shape_of(args[0])),))


def _broadcast_to(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    shape = _sizes(args, named)
    broadcast(shape_of(args[0]), shape)
    return _arranged(args[0], lambda array: np.broadcast_to(array, shape), shape)


def _broadcast(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    shape = broadcast(*map(shape_of, args[:2]))
    return tuple(_arranged(value, lambda array: np.broadcast_to(array, shape), shape) for value in args[:2])


def _expand_dims(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    axis = argument(args, named, 1, "axis")
    rank = len(shape_of(args[0])) + 1
    shape = list(shape_of(args[0]))
    shape.insert(axis % rank, 1)
    return _arranged(args[0], lambda array: np.expand_dims(array, axis), tuple(shape))


def _join(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    shape = broadcast(shape_of(args[0]), shape_of(args[1]))
    result = (*shape, 2) if name == "join" else (*shape[:-1], shape[-1] * 2)
    return Data(bounded(result), promoted(*args[:2]))


def _split(program: Program, node: ast.Call, args: list[Value], named: Named) -> Value:
    part = Data(shape_of(args[0])[:-1], dtype_of(args[0]))
    return part, part


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


RULES: dict[str, Callable[[Program, ast.Call, list[Value], Named], Value]] = {
    "trans": _trans, "permute": _trans, "reshape": _reshape, "view": _reshape, "ravel": _ravel,
    "broadcast_to": _broadcast_to, "broadcast": _broadcast, "expand_dims": _expand_dims, "join": _join,
    "interleave": _join, "cat": _join, "split": _split,
}  # fmt: skip
