"""PyTorch functions that pick elements by index: gathers, embeddings and subscripts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from .functions import axes, broadcast, rule, take, tensor
from .recorder import Recorder
from .shaping import moved, viewed
from .values import Tensor, Value

Named = dict[str, Value]


@rule("gather", "take_along_dim", "index_select", "take")
def _gather(recorder: Recorder, args: list[Value], named: Named) -> Value:
    x, index = tensor(args[0]), tensor(take(args, named, 2, "index", args[1] if len(args) > 1 else None))
    shape = index.shape
    if len(index.shape) == 1 and len(x.shape) > 1:
        (axis,) = axes(take(args, named, 1, "dim", 0), len(x.shape))
        shape = (*x.shape[:axis], index.shape[0], *x.shape[axis + 1 :])
    return moved(recorder, "gather", [replace(x, stored=min(x.elements, math.prod(shape))), index], shape, x.dtype)


@rule("embedding")
def _embedding(recorder: Recorder, args: list[Value], named: Named) -> Value:
    index, table = tensor(args[0]), tensor(take(args, named, 1, "weight"))
    shape = (*index.shape, table.shape[-1])
    return moved(
        recorder, "embedding", [index, replace(table, stored=min(table.elements, math.prod(shape)))], shape, table.dtype
    )


@rule("one_hot")
def _one_hot(recorder: Recorder, args: list[Value], named: Named) -> Value:
    x = tensor(args[0])
    return moved(recorder, "one_hot", [x], (*x.shape, int(take(args, named, 1, "num_classes"))))


def index(recorder: Recorder, x: Tensor, key: Value) -> Tensor:
    """``x[key]`` for integers, slices, None, Ellipsis and index tensors."""
    keys = list(key) if isinstance(key, tuple) else [key]
    used = sum(
        len(part.shape)
        if isinstance(part, Tensor) and part.dtype == "bool"
        else part is not None and part is not Ellipsis
        for part in keys
    )
    rest = len(x.shape) - used
    if rest < 0:
        raise IndexError("too many indices")
    if Ellipsis not in [part if part is Ellipsis else None for part in keys]:
        keys.append(Ellipsis)
    shape: list[int] = []
    indices: list[Tensor] = []
    outer, position, place = True, 0, 0
    for part in keys:
        if part is None:
            shape.append(1)
        elif part is Ellipsis:
            shape += x.shape[position : position + rest]
            outer = outer and math.prod(x.shape[position : position + rest]) == 1
            position += rest
        elif isinstance(part, slice):
            length = len(range(x.shape[position])[part])
            shape.append(length)
            outer = (outer or length == x.shape[position]) and part.step in (None, 1)
            position += 1
        elif isinstance(part, (Tensor, list)):
            chosen = part if isinstance(part, Tensor) else Tensor((len(part),), "int64")
            place = place if indices else len(shape)
            indices.append(chosen)
            position += len(chosen.shape) if chosen.dtype == "bool" else 1
        else:
            range(x.shape[position])[int(part)]
            position += 1
    if not indices:
        kept = x.contiguous and (math.prod(shape) == x.elements or _leading(keys))
        return viewed(recorder, x, shape, contiguous=kept)
    found = (
        (indices[0].elements // 2 or 1,) if indices[0].dtype == "bool" else broadcast([part.shape for part in indices])
    )
    shape[place:place] = found
    return moved(recorder, "index", [replace(x, stored=min(x.elements, math.prod(shape))), *indices], shape, x.dtype)


def _leading(keys: Sequence[Value]) -> bool:
    """Whether an index keeps all but the first dimension whole, so that what it gives lies in one piece."""
    return all(part is Ellipsis or part == slice(None) for part in keys[1:])
