"""PyTorch functions and tensor methods that view, join, index or move elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..concrete.values import Value
from ..domain.records import replace
from .functions import axes, axis_of, broadcast, rule, tensor, with_sizes
from .recorder import Recorder
from .values import Shape, Tensor, as_shape, tensors_in


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


def sizes_of(sizes: Sequence[Value]) -> list[int]:
    """Sizes given one by one or as one sequence."""
    return [int(size) for size in (sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (list, tuple)) else sizes)]


def completed(sizes: Sequence[int], elements: int) -> Shape:
    """Sizes with the one -1 replaced; raises ValueError when they do not fit."""
    rest = math.prod(size for size in sizes if size != -1)
    shape = tuple(elements // max(rest, 1) if size == -1 else size for size in sizes)
    if math.prod(shape) != elements:
        raise ValueError("sizes do not fit")
    return shape


@rule("view", "reshape")
def _view(recorder: Recorder, x: Tensor, /, *sizes: Value, shape: Value = None) -> Value:
    return reshape(recorder, x, completed(sizes_of(sizes if shape is None else [shape]), x.elements))


def reshape(recorder: Recorder, x: Tensor, shape: Sequence[int]) -> Tensor:
    """Another shape; a copy when the memory is not in order."""
    if not x.contiguous or x.stored is not None:
        return moved(recorder, "copy", [x], shape)
    return viewed(recorder, x, shape)


@rule("view_as", "reshape_as")
def _view_as(recorder: Recorder, x: Tensor, other: Tensor, /) -> Value:
    return reshape(recorder, x, other.shape)


@rule("flatten", "ravel")
def _flatten(recorder: Recorder, x: Tensor, /, start_dim: Value = 0, end_dim: Value = -1) -> Value:
    start, end = axis_of(start_dim, x), axis_of(end_dim, x)
    return reshape(recorder, x, (*x.shape[:start], math.prod(x.shape[start : end + 1]), *x.shape[end + 1 :]))


@rule("unflatten")
def _unflatten(recorder: Recorder, x: Tensor, /, dim: Value, sizes: Value) -> Value:
    axis = axis_of(dim, x)
    return reshape(recorder, x, with_sizes(x, axis, *completed([int(size) for size in sizes], x.shape[axis])))


@rule("squeeze")
def _squeeze(recorder: Recorder, x: Tensor, /, dim: Value = None) -> Value:
    gone = axes(dim, len(x.shape))
    return viewed(recorder, x, [size for axis, size in enumerate(x.shape) if size != 1 or axis not in gone])


@rule("unsqueeze")
def _unsqueeze(recorder: Recorder, x: Tensor, /, dim: Value) -> Value:
    (axis,) = axes(dim, len(x.shape) + 1)
    return viewed(recorder, x, (*x.shape[:axis], 1, *x.shape[axis:]))


@rule("transpose", "swapaxes", "swapdims")
def _transpose(recorder: Recorder, x: Tensor, /, dim0: Value, dim1: Value) -> Value:
    order = list(range(len(x.shape)))
    a, b = axis_of(dim0, x), axis_of(dim1, x)
    order[a], order[b] = b, a
    return _permuted(recorder, x, order)


@rule("t", "T", "mT", "adjoint", "H")
def _t(recorder: Recorder, x: Tensor, /) -> Value:
    order = list(range(len(x.shape)))
    return _permuted(recorder, x, [*order[:-2], *order[-2:][::-1]])


@rule("permute", "permute_copy")
def _permute(recorder: Recorder, x: Tensor, /, *order: Value, dims: Value = None) -> Value:
    return _permuted(recorder, x, axes(sizes_of(order if dims is None else [dims]), len(x.shape)))


@rule("movedim", "moveaxis")
def _movedim(recorder: Recorder, x: Tensor, source: Value, destination: Value, /) -> Value:
    sources, targets = axes(source, len(x.shape)), axes(destination, len(x.shape))
    order = [axis for axis in range(len(x.shape)) if axis not in sources]
    for target, moved_axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, moved_axis)
    return _permuted(recorder, x, order)


def _permuted(recorder: Recorder, x: Tensor, order: Sequence[int]) -> Tensor:
    if sorted(order) != list(range(len(x.shape))):
        raise ValueError("not a permutation")
    long = [axis for axis in order if x.shape[axis] != 1]
    return viewed(recorder, x, [x.shape[axis] for axis in order], contiguous=x.contiguous and long == sorted(long))


@rule("contiguous")
def _contiguous(recorder: Recorder, x: Tensor, /) -> Value:
    return x if x.contiguous and x.stored is None else moved(recorder, "copy", [x], x.shape)


@rule("expand", "broadcast_to", "expand_as")
def _expand(recorder: Recorder, x: Tensor, /, *sizes: Value, size: Value = None) -> Value:
    if sizes and isinstance(sizes[0], Tensor):
        sizes = sizes[0].shape
    wanted = sizes_of(sizes if size is None else [size])
    padded = (1,) * (len(wanted) - len(x.shape)) + x.shape
    shape = tuple(old if new == -1 else new for old, new in zip(padded, wanted, strict=True))
    recorder.views += 1
    return replace(x, shape=as_shape(shape), stored=x.stored or x.elements, parameter=False, value=None)


@rule("broadcast_tensors")
def _broadcast_tensors(recorder: Recorder, *args: Value) -> Value:
    inputs = tensors_in(list(args))
    shape = broadcast([x.shape for x in inputs])
    return tuple(replace(x, shape=shape, stored=x.elements, parameter=False) for x in inputs)


@rule("meshgrid")
def _meshgrid(recorder: Recorder, *args: Value, indexing: Value = "ij") -> Value:
    inputs = tensors_in(list(args))
    shape = tuple(x.elements for x in inputs)
    if indexing == "xy" and len(shape) > 1:
        shape = (shape[1], shape[0], *shape[2:])
    return tuple(replace(x, shape=shape, stored=x.elements, contiguous=False, parameter=False) for x in inputs)


@rule("repeat", "tile")
def _repeat(recorder: Recorder, x: Tensor, /, *sizes: Value, dims: Value = None, repeats: Value = None) -> Value:
    given = dims if dims is not None else repeats
    times = sizes_of(sizes if given is None else [given])
    padded = (1,) * (len(times) - len(x.shape)) + x.shape
    times = [1] * (len(padded) - len(times)) + times
    return moved(recorder, "repeat", [x], [size * by for size, by in zip(padded, times, strict=True)])


@rule("repeat_interleave")
def _repeat_interleave(recorder: Recorder, x: Tensor, /, repeats: Value, dim: Value = None) -> Value:
    if dim is None:
        return moved(recorder, "repeat", [x], [x.elements * int(repeats)])
    axis = axis_of(dim, x)
    return moved(recorder, "repeat", [x], with_sizes(x, axis, x.shape[axis] * int(repeats)))


@rule("cat", "concat", "concatenate")
def _cat(recorder: Recorder, tensors: Value, dim: Value = None, *, axis: Value = 0) -> Value:
    inputs = [x for x in tensors_in(tensors) if x.shape != (0,)]
    joined = axis_of(axis if dim is None else dim, inputs[0])
    return moved(recorder, "cat", inputs, with_sizes(inputs[0], joined, sum(x.shape[joined] for x in inputs)))


@rule("hstack", "vstack", "dstack", "column_stack")
def _hstack(recorder: Recorder, tensors: Value, /) -> Value:
    inputs = tensors_in(tensors)
    return _cat(recorder, inputs, 1 if len(inputs[0].shape) > 1 else 0)


@rule("stack")
def _stack(recorder: Recorder, tensors: Value, dim: Value = 0) -> Value:
    inputs = tensors_in(tensors)
    (axis,) = axes(dim, len(inputs[0].shape) + 1)
    return moved(recorder, "stack", inputs, (*inputs[0].shape[:axis], len(inputs), *inputs[0].shape[axis:]))


@rule("split")
def _split(
    recorder: Recorder, x: Tensor, /, split_size_or_sections: Value = None, dim: Value = 0, *, split_size: Value = None
) -> Value:
    by = split_size if split_size_or_sections is None else split_size_or_sections
    return _parts(recorder, x, axis_of(dim, x), by)


def _parts(recorder: Recorder, x: Tensor, axis: int, by: Value) -> Value:
    """Parts of a size, or of one size each."""
    size = x.shape[axis]
    if isinstance(by, int):
        by = [min(by, size - start) for start in range(0, size, by)]
    return tuple(_part(recorder, x, axis, int(part)) for part in by[:1000])


@rule("chunk", "tensor_split")
def _chunk(recorder: Recorder, x: Tensor, /, chunks: Value, dim: Value = 0) -> Value:
    axis = axis_of(dim, x)
    return _parts(recorder, x, axis, -(-x.shape[axis] // int(chunks)))


@rule("unbind")
def _unbind(recorder: Recorder, x: Tensor, /, dim: Value = 0) -> Value:
    axis = axis_of(dim, x)
    return tuple(_part(recorder, x, axis) for _ in range(min(x.shape[axis], 2000)))


def _part(recorder: Recorder, x: Tensor, axis: int, *size: int) -> Tensor:
    """A part of a dimension, or without a size what one index of it has."""
    outer = math.prod(x.shape[:axis]) == 1
    return viewed(recorder, x, with_sizes(x, axis, *size), contiguous=x.contiguous and outer)


@rule("narrow")
def _narrow(recorder: Recorder, x: Tensor, /, dim: Value, start: Value = None, length: Value = None) -> Value:
    return _part(recorder, x, axis_of(dim, x), int(length))


@rule("select")
def _select(recorder: Recorder, x: Tensor, /, dim: Value = None) -> Value:
    return _part(recorder, x, axes(dim, len(x.shape))[0])


@rule("unfold_windows")
def _windows(recorder: Recorder, x: Tensor, /, dimension: Value, size: Value, step: Value) -> Value:
    axis = axis_of(dimension, x)
    count = (x.shape[axis] - int(size)) // int(step) + 1
    recorder.views += 1
    return replace(
        x,
        shape=as_shape((*with_sizes(x, axis, count), int(size))),
        stored=x.elements,
        contiguous=False,
        parameter=False,
    )


@rule("diag", "diagonal", "diag_embed")
def _diag(recorder: Recorder, x: Tensor, /) -> Value:
    if len(x.shape) == 1:
        return moved(recorder, "diag", [x], (x.shape[0], x.shape[0]))
    return viewed(recorder, x, (*x.shape[2:], min(x.shape[:2])), contiguous=False)


@rule("tril", "triu", "roll", "flip", "fliplr", "flipud", "rot90", "fftshift", "ifftshift", "scatter", "scatter_add",
      "index_fill", "index_add", "index_copy", "masked_scatter", "scatter_reduce", "channel_shuffle")  # fmt: skip
def _move(recorder: Recorder, x: Tensor, /) -> Value:
    return moved(recorder, "copy", [x], x.shape)


@rule("pad")
def _pad(recorder: Recorder, x: Tensor, /, pad: Value) -> Value:
    widths, shape = [int(width) for width in pad], list(x.shape)
    for axis, (before, after) in enumerate(zip(widths[::2], widths[1::2], strict=True)):
        shape[-1 - axis] += before + after
    return moved(recorder, "pad", [x], as_shape(shape))


@rule("pixel_shuffle", "pixel_unshuffle")
def _pixel_shuffle(recorder: Recorder, x: Tensor, /, upscale_factor: Value) -> Value:
    by = int(upscale_factor)
    *outer, channels, height, width = x.shape
    return moved(recorder, "pixel_shuffle", [x], (*outer, channels // by**2, height * by, width * by))


@rule("view_as_complex", "view_as_real")
def _complex(recorder: Recorder, x: Tensor, /) -> Value:
    if x.dtype.startswith("complex"):
        return replace(viewed(recorder, x, (*x.shape, 2)), dtype="fp32")
    return replace(viewed(recorder, x, x.shape[:-1]), dtype="complex64")


@rule("gather", "take_along_dim", "index_select", "take")
def _gather(recorder: Recorder, x: Tensor, /, dim: Value = None, index: Value = None) -> Value:
    chosen = tensor(dim if index is None else index)
    is_row = len(chosen.shape) == 1 and len(x.shape) > 1
    shape = with_sizes(x, axis_of(0 if dim is None else dim, x), chosen.shape[0]) if is_row else chosen.shape
    return moved(recorder, "gather", [replace(x, stored=min(x.elements, math.prod(shape))), chosen], shape, x.dtype)


@rule("embedding")
def _embedding(recorder: Recorder, index: Tensor, /, weight: Tensor) -> Value:
    shape = (*index.shape, weight.shape[-1])
    read = replace(weight, stored=min(weight.elements, math.prod(shape)))
    return moved(recorder, "embedding", [index, read], shape, weight.dtype)


@rule("one_hot")
def _one_hot(recorder: Recorder, x: Tensor, /, num_classes: Value) -> Value:
    return moved(recorder, "one_hot", [x], (*x.shape, int(num_classes)))


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
    """Return whether an index keeps all dimensions but the first whole, so that the result is contiguous."""
    return all(part is Ellipsis or part == slice(None) for part in keys[1:])
