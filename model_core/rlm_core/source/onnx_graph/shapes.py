"""Output shapes that follow from an operator, its attributes and the shapes of its operands.

The text leaves out what these rules give, so reader and parser must use the same rules; a shape that differs is written
out. An operator without a rule keeps the shape of its first operand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from .graph import BROADCAST, GLOBAL_POOLS, MAX_RANK, POOLS, REDUCTIONS, Attribute, Constant, Operand, Shape

RECURRENT = frozenset(("DynamicQuantizeLSTM", "GRU", "LSTM", "RNN"))
Attributes = Mapping[str, Attribute]
Size = int | str


def infer(
    operator: str, operands: Sequence[Operand], shapes: Sequence[Shape], attributes: Attributes, outputs: int
) -> tuple[Shape, ...]:
    """The shapes of the outputs; None where the rules do not know. ``shapes``: of the operands."""
    # Some operators add the ranks of their operands: in a chain of them sizes double at each.
    found = _inferred(operator, operands, shapes, attributes, outputs)
    return tuple(shape if shape is None or len(shape) <= MAX_RANK else None for shape in found)


def _inferred(
    operator: str, operands: Sequence[Operand], shapes: Sequence[Shape], attributes: Attributes, outputs: int
) -> tuple[Shape, ...]:
    rule = _RULES.get(operator)
    try:
        if rule is not None:
            shape = rule(operands, shapes, attributes)
        elif operator in BROADCAST:
            shape = broadcast(
                [of_operand for of_operand, operand in zip(shapes, operands, strict=True) if operand is not None]
            )
        elif operator in POOLS:
            kernel = integers(attributes.get("kernel_shape"))
            shape = _windowed(shapes[0], kernel, attributes) if kernel else None
        elif operator in REDUCTIONS:
            shape = _reduced(operands, shapes, attributes)
        elif operator == "DynamicQuantizeLinear":
            return (shapes[0], (), ())[:outputs]
        elif operator == "Split":
            return _split(operands, shapes, attributes, outputs)
        elif operator in RECURRENT:
            return _recurrent(shapes, attributes, outputs)
        else:
            shape = next(
                (of_operand for of_operand, operand in zip(shapes, operands, strict=True) if operand is not None), None
            )
    except (IndexError, KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError):
        shape = None
    return (shape,) * outputs


def integers(value: object) -> tuple[int, ...]:
    """A list attribute as integers; empty where it is missing."""
    return tuple(int(item) for item in value) if isinstance(value, tuple) else ()


def integer(value: object, default: int) -> int:
    """An integer attribute."""
    return int(value) if isinstance(value, int | float) else default


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """NumPy's broadcasting; an unknown size is ``?``."""
    if not shapes or any(shape is None for shape in shapes):
        return None
    known = [shape for shape in shapes if shape is not None]
    if all(shape == known[0] for shape in known[1:]):
        return known[0]
    rank = max(len(shape) for shape in known)
    padded = [(1,) * (rank - len(shape)) + shape for shape in known]
    return tuple(_joined(sizes) for sizes in zip(*padded, strict=True))


def _joined(sizes: Sequence[Size]) -> Size:
    kept = {size for size in sizes if size != 1}
    if not kept:
        return 1
    if len(kept) == 1:
        return kept.pop()
    numbers = {size for size in kept if isinstance(size, int)}
    return numbers.pop() if len(numbers) == 1 else "?"


def same_padding(kernel: Sequence[int], dilations: Sequence[int]) -> tuple[int, ...]:
    """Padding that keeps the size at stride 1, for odd kernels; begins first, then ends."""
    half = tuple((size - 1) // 2 * step for size, step in zip(kernel, dilations, strict=True))
    return half + half


def _windowed(shape: Shape, kernel: Sequence[int], attributes: Attributes, channels: Size | None = None) -> Shape:
    if shape is None or len(shape) != len(kernel) + 2:
        return None
    rank = len(kernel)
    strides = integers(attributes.get("strides")) or (1,) * rank
    dilations = integers(attributes.get("dilations")) or (1,) * rank
    pads = integers(attributes.get("pads")) or (0,) * (2 * rank)
    padding = str(attributes.get("auto_pad") or "NOTSET")
    sizes: list[Size] = []
    for axis in range(rank):
        size = shape[axis + 2]
        if isinstance(size, str):
            sizes.append("?")
        elif padding.startswith("SAME"):
            sizes.append(math.ceil(size / strides[axis]))
        else:
            free = size + pads[axis] + pads[axis + rank] - dilations[axis] * (kernel[axis] - 1) - 1
            up = strides[axis] - 1 if attributes.get("ceil_mode") else 0
            sizes.append((free + up) // strides[axis] + 1)
    return (shape[0], shape[1] if channels is None else channels, *sizes)


def _convolution(operands: Sequence[Operand], shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    weight = shapes[1]
    if weight is None or any(isinstance(size, str) for size in weight):
        return None
    return _windowed(shapes[0], [int(size) for size in weight[2:]], attributes, weight[0])


def _transposed(operands: Sequence[Operand], shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape, weight = shapes[0], shapes[1]
    if shape is None or weight is None or "output_shape" in attributes or "auto_pad" in attributes:
        return None
    rank = len(weight) - 2
    strides = integers(attributes.get("strides")) or (1,) * rank
    dilations = integers(attributes.get("dilations")) or (1,) * rank
    pads = integers(attributes.get("pads")) or (0,) * (2 * rank)
    extra = integers(attributes.get("output_padding")) or (0,) * rank
    sizes: list[Size] = []
    for axis in range(rank):
        size = shape[axis + 2]
        if isinstance(size, str):
            sizes.append("?")
            continue
        reach = dilations[axis] * (int(weight[axis + 2]) - 1) + 1
        sizes.append(strides[axis] * (size - 1) + extra[axis] + reach - pads[axis] - pads[axis + rank])
    return (shape[0], int(weight[1]) * integer(attributes.get("group"), 1), *sizes)


def _gemm(operands: Sequence[Operand], shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    a, b = shapes[0], shapes[1]
    if a is None or b is None:
        return None
    rows = a[1] if attributes.get("transA") else a[0]
    return (rows, b[0] if attributes.get("transB") else b[1])


def _matmul(operands: Sequence[Operand], shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    a, b = shapes[0], shapes[1]
    if not a or not b:
        return None
    if len(b) == 1:
        return a[:-1]
    if len(a) == 1:
        return (*b[:-2], b[-1])
    batch = broadcast([a[:-2], b[:-2]])
    return None if batch is None else (*batch, a[-2], b[-1])


def _global(operands: Sequence[Operand], shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape = shapes[0]
    return None if shape is None else (*shape[:2], *(1 for _ in shape[2:]))


def _flatten(operands: Sequence[Operand], shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape = shapes[0]
    if shape is None:
        return None
    axis = integer(attributes.get("axis"), 1)
    axis = axis + len(shape) if axis < 0 else axis
    return (_product(shape[:axis]), _product(shape[axis:]))


def _product(sizes: Sequence[Size]) -> Size:
    """One symbol times ones stays the symbol."""
    if all(isinstance(size, int) for size in sizes):
        return math.prod(int(size) for size in sizes)
    kept = [size for size in sizes if size != 1]
    return kept[0] if len(kept) == 1 else "?"


def vector(operand: Operand) -> tuple[int, ...] | None:
    """The values of a small integer constant."""
    if isinstance(operand, Constant) and operand.values is not None:
        return tuple(int(value) for value in operand.values)
    return None


def _reshape(operands: Sequence[Operand], shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    wanted, shape = vector(operands[1]), shapes[0]
    if wanted is None:
        return None
    sizes: list[Size] = []
    for axis, size in enumerate(wanted):
        sizes.append(("?" if shape is None else shape[axis]) if size == 0 else size)
    if -1 not in sizes:
        return tuple(sizes)
    free = sizes.index(-1)
    rest = sizes[:free] + sizes[free + 1 :]
    if shape is None:
        sizes[free] = "?"
        return tuple(sizes)
    # A symbol on both sides cancels.
    ours, theirs = list(rest), list(shape)
    for symbol in [size for size in rest if isinstance(size, str) and size != "?"]:
        if symbol in theirs:
            ours.remove(symbol)
            theirs.remove(symbol)
    total, known = _product(theirs), _product(ours)
    if isinstance(total, int) and isinstance(known, int) and known:
        sizes[free] = total // known
    else:
        sizes[free] = total if known == 1 else "?"
    return tuple(sizes)


def _transpose(operands: Sequence[Operand], shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape = shapes[0]
    if shape is None:
        return None
    axes = integers(attributes.get("perm")) or tuple(reversed(range(len(shape))))
    return tuple(shape[axis] for axis in axes)


def _concat(operands: Sequence[Operand], shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    if any(shape is None for shape in shapes):
        return None
    known = [shape for shape in shapes if shape is not None]
    axis = integer(attributes.get("axis"), 0) % len(known[0])
    parts = [shape[axis] for shape in known]
    total: Size = sum(int(part) for part in parts) if all(isinstance(part, int) for part in parts) else "?"
    return tuple(total if at == axis else size for at, size in enumerate(known[0]))


def _axes(operands: Sequence[Operand], attributes: Attributes, rank: int) -> tuple[int, ...] | None:
    """Of Squeeze, Unsqueeze and reductions: an attribute in old operator sets, a constant operand in new ones."""
    given = attributes.get("axes")
    if isinstance(given, tuple):
        axes: tuple[int, ...] | None = integers(given)
    elif len(operands) > 1 and operands[1] is not None:
        axes = vector(operands[1])
    else:
        return ()
    return None if axes is None else tuple(axis % rank for axis in axes)


def _reduced(operands: Sequence[Operand], shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape = shapes[0]
    if shape is None:
        return None
    axes = _axes(operands, attributes, len(shape))
    if axes is None:
        return None
    if not axes and attributes.get("noop_with_empty_axes"):
        return shape
    axes = axes or tuple(range(len(shape)))
    if integer(attributes.get("keepdims"), 1):
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def _arg(operands: Sequence[Operand], shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    axes = (integer(attributes.get("axis"), 0),)
    return _reduced(operands[:1], shapes, {"axes": axes, "keepdims": attributes.get("keepdims", 1)})


def _squeeze(operands: Sequence[Operand], shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape = shapes[0]
    if shape is None:
        return None
    axes = _axes(operands, attributes, len(shape))
    if axes is None:
        return None
    axes = axes or tuple(axis for axis, size in enumerate(shape) if size == 1)
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def _unsqueeze(operands: Sequence[Operand], shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape = shapes[0]
    given = attributes.get("axes")
    count = len(integers(given)) if given else len(vector(operands[1]) or ())
    if shape is None or not count:
        return None
    axes = _axes(operands, attributes, len(shape) + count) or ()
    rest = iter(shape)
    return tuple(1 if axis in axes else next(rest) for axis in range(len(shape) + count))


def _gather(operands: Sequence[Operand], shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape, index = shapes[0], shapes[1]
    if shape is None or index is None:
        return None
    axis = integer(attributes.get("axis"), 0) % len(shape)
    return (*shape[:axis], *index, *shape[axis + 1 :])


def _slice(operands: Sequence[Operand], shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    shape = shapes[0]
    starts, ends = vector(operands[1]), vector(operands[2])
    if shape is None or starts is None or ends is None:
        return None
    axes = vector(operands[3]) if len(operands) > 3 and operands[3] is not None else tuple(range(len(starts)))
    steps = vector(operands[4]) if len(operands) > 4 and operands[4] is not None else (1,) * len(starts)
    if axes is None or steps is None:
        return None
    sizes: list[Size] = list(shape)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        size = sizes[axis]
        sizes[axis] = len(range(*slice(start, end, step).indices(size))) if isinstance(size, int) else "?"
    return tuple(sizes)


def _split(
    operands: Sequence[Operand], shapes: Sequence[Shape], attributes: Attributes, outputs: int
) -> tuple[Shape, ...]:
    shape = shapes[0]
    if shape is None:
        return (None,) * outputs
    axis = integer(attributes.get("axis"), 0) % len(shape)
    parts = integers(attributes.get("split")) or (vector(operands[1]) if len(operands) > 1 else None)
    size = shape[axis]
    if parts is None and isinstance(size, int):
        count = integer(attributes.get("num_outputs"), outputs)
        each = -(-size // count)
        parts = tuple(min(each, size - each * at) for at in range(outputs))
    if parts is None or len(parts) < outputs:
        return (None,) * outputs
    return tuple((*shape[:axis], parts[at], *shape[axis + 1 :]) for at in range(outputs))


def _recurrent(shapes: Sequence[Shape], attributes: Attributes, outputs: int) -> tuple[Shape, ...]:
    """All hidden states, then the last one and that of the cell."""
    shape, weight = shapes[0], shapes[2]
    if shape is None or weight is None or len(shape) != 3:
        return (None,) * outputs
    directions, hidden = weight[0], attributes.get("hidden_size", weight[-1])
    if not isinstance(hidden, int):
        return (None,) * outputs
    if attributes.get("layout"):
        batch, steps = shape[0], shape[1]
        every: Shape = (batch, steps, directions, hidden)
        last: Shape = (batch, directions, hidden)
    else:
        steps, batch = shape[0], shape[1]
        every, last = (steps, directions, batch, hidden), (directions, batch, hidden)
    return (every, last, last)[:outputs]


def _range(operands: Sequence[Operand], shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    bounds = [vector(operand) for operand in operands]
    if len(bounds) != 3 or not all(bounds):
        return ("?",)
    start, end, step = (bound[0] for bound in bounds if bound)
    return (len(range(start, end, step)),)


def _shape_of(operands: Sequence[Operand], shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    return None if shapes[0] is None else (len(shapes[0]),)


def _filled(operands: Sequence[Operand], shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    return vector(operands[0])


def _expand(operands: Sequence[Operand], shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    wanted = vector(operands[1])
    return None if wanted is None else broadcast([shapes[0], wanted])


def _scalar(operands: Sequence[Operand], shapes: Sequence[Shape], attributes: Attributes) -> Shape:
    return ()


_RULES: dict[str, Callable[[Sequence[Operand], Sequence[Shape], Attributes], Shape]] = {
    "Conv": _convolution,
    "ConvTranspose": _transposed,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "MatMulInteger": _matmul,
    "Flatten": _flatten,
    "Reshape": _reshape,
    "Transpose": _transpose,
    "Concat": _concat,
    "ArgMax": _arg,
    "ArgMin": _arg,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Gather": _gather,
    "Slice": _slice,
    "Shape": _shape_of,
    "Size": _scalar,
    "Range": _range,
    "ConstantOfShape": _filled,
    "Expand": _expand,
    **dict.fromkeys(GLOBAL_POOLS, _global),
}
