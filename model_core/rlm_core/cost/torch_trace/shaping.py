"""PyTorch functions and tensor methods that view, join, index or move elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from .functions import axes, broadcast, rule, take, tensor
from .recorder import Recorder
from .values import Shape, Tensor, Value, as_shape, tensors_in

Named = dict[str, Value]


def viewed(recorder: Recorder, x: Tensor, shape: Sequence[int], *, contiguous: bool | None = None) -> Tensor:
    """A view, which moves no data."""
    recorder.views += 1
    return x.view(tuple(shape), contiguous=contiguous)


def moved(
    recorder: Recorder, name: str, inputs: Sequence[Tensor], shape: Sequence[int], dtype: str | None = None
) -> Tensor:
    """Elements copied to a new tensor; of a single input no more are read than written."""
    output = math.prod(shape)
    kept = [replace(x, stored=output) if len(inputs) == 1 and x.elements > output else x for x in inputs]
    return recorder.add(name, "gather", kept, shape, dtype=dtype)


def sizes_of(args: Sequence[Value], named: Named, name: str = "size") -> list[int]:
    """Sizes given one by one or as one sequence."""
    given = named.get(name, args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args)
    return [int(size) for size in given]


def completed(sizes: Sequence[int], elements: int) -> Shape:
    """Sizes with the one -1 replaced; raises ValueError when they do not fit."""
    rest = math.prod(size for size in sizes if size != -1)
    shape = tuple(elements // max(rest, 1) if size == -1 else size for size in sizes)
    if math.prod(shape) != elements:
        raise ValueError("sizes do not fit")
    return shape


@rule("view", "reshape")
def _view(recorder: Recorder, args: list[Value], named: Named) -> Value:
    return reshape(recorder, tensor(args[0]), completed(sizes_of(args[1:], named, "shape"), tensor(args[0]).elements))


def reshape(recorder: Recorder, x: Tensor, shape: Sequence[int]) -> Tensor:
    """Another shape; a copy when the memory is not in order."""
    if not x.contiguous or x.stored is not None:
        return moved(recorder, "copy", [x], shape)
    return viewed(recorder, x, shape)


@rule("view_as", "reshape_as")
def _view_as(recorder: Recorder, args: list[Value], named: Named) -> Value:
    return reshape(recorder, tensor(args[0]), tensor(args[1]).shape)


@rule("flatten", "ravel")
def _flatten(recorder: Recorder, args: list[Value], named: Named) -> Value:
    x = tensor(args[0])
    (start,) = axes(take(args, named, 1, "start_dim", 0), len(x.shape))
    (end,) = axes(take(args, named, 2, "end_dim", -1), len(x.shape))
    return reshape(recorder, x, (*x.shape[:start], math.prod(x.shape[start : end + 1]), *x.shape[end + 1 :]))


@rule("unflatten")
def _unflatten(recorder: Recorder, args: list[Value], named: Named) -> Value:
    x = tensor(args[0])
    (axis,) = axes(take(args, named, 1, "dim"), len(x.shape))
    inner = completed([int(size) for size in take(args, named, 2, "sizes")], x.shape[axis])
    return reshape(recorder, x, (*x.shape[:axis], *inner, *x.shape[axis + 1 :]))


@rule("squeeze")
def _squeeze(recorder: Recorder, args: list[Value], named: Named) -> Value:
    x = tensor(args[0])
    gone = axes(take(args, named, 1, "dim"), len(x.shape))
    return viewed(recorder, x, [size for axis, size in enumerate(x.shape) if size != 1 or axis not in gone])


@rule("unsqueeze")
def _unsqueeze(recorder: Recorder, args: list[Value], named: Named) -> Value:
    x = tensor(args[0])
    (axis,) = axes(take(args, named, 1, "dim"), len(x.shape) + 1)
    return viewed(recorder, x, (*x.shape[:axis], 1, *x.shape[axis:]))


@rule("transpose", "swapaxes", "swapdims")
def _transpose(recorder: Recorder, args: list[Value], named: Named) -> Value:
    x = tensor(args[0])
    order = list(range(len(x.shape)))
    (a,), (b,) = (axes(take(args, named, 1, "dim0"), len(order)), axes(take(args, named, 2, "dim1"), len(order)))
    order[a], order[b] = b, a
    return _permuted(recorder, x, order)


@rule("t", "T", "mT", "adjoint", "H")
def _t(recorder: Recorder, args: list[Value], named: Named) -> Value:
    x = tensor(args[0])
    order = list(range(len(x.shape)))
    return _permuted(recorder, x, [*order[:-2], *order[-2:][::-1]])


@rule("permute", "permute_copy")
def _permute(recorder: Recorder, args: list[Value], named: Named) -> Value:
    x = tensor(args[0])
    return _permuted(recorder, x, axes(sizes_of(args[1:], named, "dims"), len(x.shape)))


@rule("movedim", "moveaxis")
def _movedim(recorder: Recorder, args: list[Value], named: Named) -> Value:
    x = tensor(args[0])
    sources, targets = axes(args[1], len(x.shape)), axes(args[2], len(x.shape))
    order = [axis for axis in range(len(x.shape)) if axis not in sources]
    for target, source in sorted(zip(targets, sources, strict=True)):
        order.insert(target, source)
    return _permuted(recorder, x, order)


def _permuted(recorder: Recorder, x: Tensor, order: Sequence[int]) -> Tensor:
    if sorted(order) != list(range(len(x.shape))):
        raise ValueError("not a permutation")
    long = [axis for axis in order if x.shape[axis] != 1]
    return viewed(recorder, x, [x.shape[axis] for axis in order], contiguous=x.contiguous and long == sorted(long))


@rule("contiguous")
def _contiguous(recorder: Recorder, args: list[Value], named: Named) -> Value:
    x = tensor(args[0])
    return x if x.contiguous and x.stored is None else moved(recorder, "copy", [x], x.shape)


@rule("expand", "broadcast_to", "expand_as")
def _expand(recorder: Recorder, args: list[Value], named: Named) -> Value:
    x = tensor(args[0])
    wanted = list(args[1].shape) if isinstance(args[1], Tensor) else sizes_of(args[1:], named)
    padded = (1,) * (len(wanted) - len(x.shape)) + x.shape
    shape = tuple(old if new == -1 else new for old, new in zip(padded, wanted, strict=True))
    recorder.views += 1
    return replace(x, shape=as_shape(shape), stored=x.stored or x.elements, parameter=False, value=None)


@rule("broadcast_tensors")
def _broadcast_tensors(recorder: Recorder, args: list[Value], named: Named) -> Value:
    inputs = tensors_in(args)
    shape = broadcast([x.shape for x in inputs])
    return tuple(replace(x, shape=shape, stored=x.elements, parameter=False) for x in inputs)


@rule("meshgrid")
def _meshgrid(recorder: Recorder, args: list[Value], named: Named) -> Value:
    inputs = tensors_in(args)
    shape = tuple(x.elements for x in inputs)
    if named.get("indexing") == "xy" and len(shape) > 1:
        shape = (shape[1], shape[0], *shape[2:])
    return tuple(replace(x, shape=shape, stored=x.elements, contiguous=False, parameter=False) for x in inputs)


@rule("repeat", "tile")
def _repeat(recorder: Recorder, args: list[Value], named: Named) -> Value:
    x = tensor(args[0])
    times = sizes_of(args[1:], named, "dims" if "dims" in named else "repeats")
    padded = (1,) * (len(times) - len(x.shape)) + x.shape
    times = [1] * (len(padded) - len(times)) + times
    return moved(recorder, "repeat", [x], [size * by for size, by in zip(padded, times, strict=True)])


@rule("repeat_interleave")
def _repeat_interleave(recorder: Recorder, args: list[Value], named: Named) -> Value:
    x, times = tensor(args[0]), int(take(args, named, 1, "repeats"))
    dim = take(args, named, 2, "dim")
    if dim is None:
        return moved(recorder, "repeat", [x], [x.elements * times])
    (axis,) = axes(dim, len(x.shape))
    return moved(recorder, "repeat", [x], (*x.shape[:axis], x.shape[axis] * times, *x.shape[axis + 1 :]))


@rule("cat", "concat", "concatenate")
def _cat(recorder: Recorder, args: list[Value], named: Named) -> Value:
    inputs = [x for x in tensors_in(take(args, named, 0, "tensors")) if x.shape != (0,)]
    (axis,) = axes(take(args, named, 1, "dim", named.get("axis", 0)), len(inputs[0].shape))
    first = inputs[0].shape
    return moved(recorder, "cat", inputs, (*first[:axis], sum(x.shape[axis] for x in inputs), *first[axis + 1 :]))


@rule("hstack", "vstack", "dstack", "column_stack")
def _hstack(recorder: Recorder, args: list[Value], named: Named) -> Value:
    inputs = tensors_in(args[0])
    return _cat(recorder, [inputs, 1 if len(inputs[0].shape) > 1 else 0], {})


@rule("stack")
def _stack(recorder: Recorder, args: list[Value], named: Named) -> Value:
    inputs = tensors_in(take(args, named, 0, "tensors"))
    (axis,) = axes(take(args, named, 1, "dim", 0), len(inputs[0].shape) + 1)
    return moved(recorder, "stack", inputs, (*inputs[0].shape[:axis], len(inputs), *inputs[0].shape[axis:]))


@rule("split")
def _split(recorder: Recorder, args: list[Value], named: Named) -> Value:
    x = tensor(args[0])
    (axis,) = axes(take(args, named, 2, "dim", 0), len(x.shape))
    by, size = take(args, named, 1, "split_size_or_sections", named.get("split_size")), x.shape[axis]
    if isinstance(by, int):
        by = [min(by, size - start) for start in range(0, size, by)]
    return tuple(_part(recorder, x, axis, int(part)) for part in by[:1000])


@rule("chunk", "tensor_split")
def _chunk(recorder: Recorder, args: list[Value], named: Named) -> Value:
    x = tensor(args[0])
    (axis,) = axes(take(args, named, 2, "dim", 0), len(x.shape))
    return _split(recorder, [x, -(-x.shape[axis] // int(take(args, named, 1, "chunks"))), axis], {})


@rule("unbind")
def _unbind(recorder: Recorder, args: list[Value], named: Named) -> Value:
    x = tensor(args[0])
    (axis,) = axes(take(args, named, 1, "dim", 0), len(x.shape))
    return tuple(_dropped(recorder, x, axis) for _ in range(min(x.shape[axis], 2000)))


def _part(recorder: Recorder, x: Tensor, axis: int, size: int) -> Tensor:
    outer = math.prod(x.shape[:axis]) == 1
    return viewed(recorder, x, (*x.shape[:axis], size, *x.shape[axis + 1 :]), contiguous=x.contiguous and outer)


def _dropped(recorder: Recorder, x: Tensor, axis: int) -> Tensor:
    outer = math.prod(x.shape[:axis]) == 1
    return viewed(recorder, x, x.shape[:axis] + x.shape[axis + 1 :], contiguous=x.contiguous and outer)


@rule("narrow")
def _narrow(recorder: Recorder, args: list[Value], named: Named) -> Value:
    (axis,) = axes(take(args, named, 1, "dim"), len(tensor(args[0]).shape))
    return _part(recorder, tensor(args[0]), axis, int(take(args, named, 3, "length")))


@rule("select")
def _select(recorder: Recorder, args: list[Value], named: Named) -> Value:
    return _dropped(recorder, tensor(args[0]), axes(take(args, named, 1, "dim"), len(tensor(args[0]).shape))[0])


@rule("unfold_windows")
def _windows(recorder: Recorder, args: list[Value], named: Named) -> Value:
    x = tensor(args[0])
    (axis,) = axes(take(args, named, 1, "dimension"), len(x.shape))
    size, step = int(take(args, named, 2, "size")), int(take(args, named, 3, "step"))
    count = (x.shape[axis] - size) // step + 1
    recorder.views += 1
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :], size)
    return replace(x, shape=as_shape(shape), stored=x.elements, contiguous=False, parameter=False)


@rule("diag", "diagonal", "diag_embed")
def _diag(recorder: Recorder, args: list[Value], named: Named) -> Value:
    x = tensor(args[0])
    if len(x.shape) == 1:
        return moved(recorder, "diag", [x], (x.shape[0], x.shape[0]))
    return viewed(recorder, x, (*x.shape[2:], min(x.shape[:2])), contiguous=False)


@rule("tril", "triu", "roll", "flip", "fliplr", "flipud", "rot90", "fftshift", "ifftshift", "scatter", "scatter_add",
      "index_fill", "index_add", "index_copy", "masked_scatter", "scatter_reduce", "channel_shuffle")  # fmt: skip
def _move(recorder: Recorder, args: list[Value], named: Named) -> Value:
    return moved(recorder, "copy", [tensor(args[0])], tensor(args[0]).shape)


@rule("pad")
def _pad(recorder: Recorder, args: list[Value], named: Named) -> Value:
    x = tensor(args[0])
    widths = [int(width) for width in take(args, named, 1, "pad")]
    shape = list(x.shape)
    for axis, (before, after) in enumerate(zip(widths[::2], widths[1::2], strict=True)):
        shape[-1 - axis] += before + after
    return moved(recorder, "pad", [x], as_shape(shape))


@rule("pixel_shuffle", "pixel_unshuffle")
def _pixel_shuffle(recorder: Recorder, args: list[Value], named: Named) -> Value:
    x, by = tensor(args[0]), int(take(args, named, 1, "upscale_factor"))
    *outer, channels, height, width = x.shape
    return moved(recorder, "pixel_shuffle", [x], (*outer, channels // by**2, height * by, width * by))


@rule("view_as_complex", "view_as_real")
def _complex(recorder: Recorder, args: list[Value], named: Named) -> Value:
    x = tensor(args[0])
    if x.dtype.startswith("complex"):
        return replace(viewed(recorder, x, (*x.shape, 2)), dtype="fp32")
    return replace(viewed(recorder, x, x.shape[:-1]), dtype="complex64")


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
    outer, position, first_index = True, 0, 0
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
            first_index = first_index if indices else len(shape)
            indices.append(chosen)
            position += len(chosen.shape) if chosen.dtype == "bool" else 1
        else:
            range(x.shape[position])[int(part)]
            position += 1
    if not indices:
        kept = x.contiguous and (math.prod(shape) == x.elements or _leading(keys))
        return viewed(recorder, x, shape, contiguous=kept)
    chosen_shape = (
        (indices[0].elements // 2 or 1,) if indices[0].dtype == "bool" else broadcast([part.shape for part in indices])
    )
    shape[first_index:first_index] = chosen_shape
    return moved(recorder, "index", [replace(x, stored=min(x.elements, math.prod(shape))), *indices], shape, x.dtype)


def _leading(keys: Sequence[Value]) -> bool:
    """Whether an index keeps all dimensions but the first whole, so that the result is contiguous."""
    return all(part is Ellipsis or part == slice(None) for part in keys[1:])
