"""Copies and compares values of plain data without running code of their classes."""

from __future__ import annotations

import array
import collections
import functools
import io
import types
from typing import Any

from ..plain_data import (
    SCALARS,
    NotPlainError,
    bound_builtin,
    instance_parts,
    is_array,
    is_heap_type,
    is_iterator,
    is_table,
    new_instance,
    rest_of,
    set_attributes,
)

_MUTABLE = (list, set, dict, collections.OrderedDict, collections.Counter, collections.defaultdict, collections.deque)


def clone(value: Any, memo: dict[int, Any] | None = None) -> Any:
    """Return a deep copy; parts that the value shares are shared in the copy. What cannot change is not copied."""
    memo = {} if memo is None else memo
    cls = type(value)
    if cls in SCALARS:
        return value
    known = memo.get(id(value))
    if known is not None:
        return known[0]
    if cls is list or cls is tuple:
        if all(type(one) in SCALARS for one in value):
            made: Any = value if cls is tuple else value.copy()
            memo[id(value)] = (made, value)
            return made
        if cls is tuple:
            made = tuple(clone(one, memo) for one in value)
            memo[id(value)] = (made, value)
            return made
    if cls in _MUTABLE:
        return _clone_container(cls, value, memo)
    if cls in (bytearray, array.array) or is_array(value) or is_table(value):
        made = value[:] if cls in (bytearray, array.array) else value.copy()
    elif cls in (io.StringIO, io.BytesIO):
        made = cls(value.getvalue(), newline="") if cls is io.StringIO else cls(value.getvalue())
        made.seek(value.tell())
    elif cls is frozenset:
        made = frozenset(clone(one, memo) for one in value)
    elif is_iterator(value):
        made = iter(clone(rest_of(value), memo))
    elif bound := bound_builtin(value):
        made = getattr(clone(bound[0], memo), bound[1])
    elif cls is types.MethodType:
        made = types.MethodType(value.__func__, clone(value.__self__, memo))
    elif cls is functools.partial:
        made = functools.partial(clone(value.func, memo), *clone(value.args, memo), **clone(value.keywords, memo))
    elif is_heap_type(cls) and not isinstance(value, type) and (parts := _state(value)) is not None:
        content = clone(parts.content, memo)
        made = new_instance(cls, parts.base, content)
        memo[id(value)] = (made, value)
        set_attributes(made, {name: clone(one, memo) for name, one in parts.attributes.items()})
        return made
    else:
        made = value
    memo[id(value)] = (made, value)
    return made


def _clone_container(cls: type, value: Any, memo: dict[int, Any]) -> Any:
    made: Any
    if cls is collections.defaultdict:
        made = collections.defaultdict(value.default_factory)
    elif cls is collections.deque:
        made = collections.deque(maxlen=value.maxlen)
    else:
        made = cls()
    memo[id(value)] = (made, value)
    if cls in (list, collections.deque):
        made.extend([clone(one, memo) for one in value])
    elif cls is set:
        made.update([clone(one, memo) for one in value])
    else:
        for key, one in value.items():
            made[clone(key, memo)] = clone(one, memo)
    return made


def same(left: Any, right: Any, seen: set[int] | None = None) -> bool:
    """Return whether two values have the same types, structure and scalars; a copy is the same as its original."""
    seen = set() if seen is None else seen
    cls = type(left)
    if cls is not type(right):
        return False
    if cls in SCALARS:
        return bool(left == right) or (left != left and right != right)
    if left is right or id(left) in seen:
        return True
    seen.add(id(left))
    if cls in (list, tuple, collections.deque):
        return len(left) == len(right) and all(same(one, other, seen) for one, other in zip(left, right, strict=True))
    if cls in _MUTABLE and cls is not set:
        if len(left) != len(right):
            return False
        pairs = zip(left.items(), right.items(), strict=True)
        return all(same(key, other, seen) and same(one, two, seen) for (key, one), (other, two) in pairs)
    if cls in (set, frozenset):
        # Members are hashed: what they hold is as it was, unless their class deceives.
        return len(left) == len(right)
    if cls is bytearray or cls is array.array:
        return bool(left == right)
    if cls in (io.StringIO, io.BytesIO):
        return not left.closed and left.tell() == right.tell() and bool(left.getvalue() == right.getvalue())
    if is_iterator(left):
        return same(rest_of(left), rest_of(right), seen)
    if (bound := bound_builtin(left)) and (other := bound_builtin(right)):
        return same(bound[0], other[0], seen)
    if cls is types.MethodType:
        return same(left.__self__, right.__self__, seen)
    if cls is functools.partial:
        return same((left.func, left.args, left.keywords), (right.func, right.args, right.keywords), seen)
    if is_table(left):
        return bool(left.equals(right))
    if is_array(left):
        return left.shape == right.shape and bool(left.tobytes() == right.tobytes())
    if is_heap_type(cls) and not isinstance(left, type):
        first, second = _state(left), _state(right)
        if first is None or second is None:
            return first is second
        if len(first.attributes) != len(second.attributes) or not same(first.content, second.content, seen):
            return False
        names = first.attributes.keys()
        return names == second.attributes.keys() and all(
            same(first.attributes[name], second.attributes[name], seen) for name in names
        )
    return True


def _state(value: Any) -> Any:
    try:
        return instance_parts(value)
    except (NotPlainError, AttributeError, TypeError):
        return None
