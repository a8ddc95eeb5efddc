"""Sizes that an ONNX model leaves open -> usual ones, before shapes are inferred.

What a model computes with shapes, such as the target of a reshape, follows from the sizes of its inputs. So the sizes
are set here, and the graph says which inputs have them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import onnx

_CHANNELS, _SIDE = 3, 224  # of an image
_TOKENS = 128  # of a sequence, and of anything else
_SAMPLES = 16_000  # of a recording: a second
_FLOATS = frozenset({1, 10, 11, 16})  # types of elements: float32, float16, float64, bfloat16


def assume_sizes(graph: onnx.GraphProto) -> tuple[int, ...]:
    """Set the open sizes of the inputs of a graph; return the numbers of those for which that is more than a batch.

    A batch is 1. A size with the name of one that is set before has the same value.
    """
    stored = {tensor.name for tensor in graph.initializer}
    inputs = [entry for entry in graph.input if entry.name not in stored]
    named: dict[str, int] = {}
    assumed = []
    for number, entry in enumerate(inputs):
        if not entry.type.HasField("tensor_type") or not entry.type.tensor_type.HasField("shape"):
            continue
        tensor = entry.type.tensor_type
        is_more = False
        for axis, size in enumerate(tensor.shape.dim):
            if not _is_open(size):
                continue
            name = size.dim_param
            value = named.get(name) or _usual(axis, tensor)
            if name:
                named[name] = value
            is_more |= axis > 0 or value != 1
            size.dim_value = value
        if is_more:
            assumed.append(number)
    if inputs:
        _forget_open(graph)
    return tuple(assumed)


def _is_open(size: Any) -> bool:
    return not size.HasField("dim_value") or size.dim_value < 0


def _usual(axis: int, tensor: Any) -> int:
    """The usual value of a size by its axis, the rank and the type of the input."""
    sizes = tensor.shape.dim
    if axis == 0:
        return 1 if len(sizes) > 1 else _TOKENS
    if len(sizes) == 4:
        is_last = sizes[3].dim_value in (1, 3, 4) and not _is_open(sizes[3])
        return _CHANNELS if axis == 1 and not is_last else _SIDE
    return _SAMPLES if len(sizes) == 2 and tensor.elem_type in _FLOATS else _TOKENS


def _forget_open(graph: onnx.GraphProto) -> None:
    """Remove stored shapes with open sizes: they now follow from the inputs."""
    kept = [entry for entry in graph.value_info if not _has_open(entry)]
    if len(kept) < len(graph.value_info):
        del graph.value_info[:]
        graph.value_info.extend(kept)
    for entry in graph.output:
        if _has_open(entry):
            entry.type.tensor_type.ClearField("shape")


def _has_open(entry: Any) -> bool:
    return entry.type.HasField("tensor_type") and any(map(_is_open, entry.type.tensor_type.shape.dim))
