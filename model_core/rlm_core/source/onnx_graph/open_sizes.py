"""Sizes that an ONNX model leaves open -> usual ones, before shapes are inferred.

What a model computes with shapes, such as the target of a reshape, follows from the sizes of its inputs. So the sizes
are set here, and the graph says which inputs have them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import onnx

IMAGE, TOKENS, SAMPLES = "image", "tokens", "samples"
USUAL: Mapping[str, int] = {IMAGE: 224, TOKENS: 128, SAMPLES: 16_000}
"""The sizes that a question may name: sides of images, lengths of sequences and of anything else, a second of sound."""
_BATCH, _CHANNELS = "batch", "channels"
_FIXED = {_BATCH: 1, _CHANNELS: 3}
_FLOATS = frozenset({1, 10, 11, 16})  # types of elements: float32, float16, float64, bfloat16


def assume_sizes(
    graph: onnx.GraphProto, given: Mapping[str, int] = USUAL
) -> tuple[tuple[int, ...], tuple[tuple[str, int], ...]]:
    """Set the open sizes of the inputs of a graph.

    Returns the numbers of the inputs for which that is more than a batch, and the sizes by name. Those that are
    ``given`` replace the usual ones. A batch is 1. A size with the name of one that is set before has the same value.
    """
    sizes = {**USUAL, **given}
    stored = {tensor.name for tensor in graph.initializer}
    inputs = [entry for entry in graph.input if entry.name not in stored]
    by_symbol: dict[str, int] = {}
    assumed = []
    used: dict[str, int] = {}
    for number, entry in enumerate(inputs):
        if not entry.type.HasField("tensor_type") or not entry.type.tensor_type.HasField("shape"):
            continue
        tensor = entry.type.tensor_type
        is_more = False
        for axis, size in enumerate(tensor.shape.dim):
            if not _is_open(size):
                continue
            symbol = size.dim_param
            value, name = by_symbol.get(symbol), _name(axis, tensor)
            if value is None:
                value = sizes.get(name) or _FIXED[name]
                used |= {name: value} if name in USUAL else {}
            if symbol:
                by_symbol[symbol] = value
            is_more |= axis > 0 or value != 1
            size.dim_value = value
        if is_more:
            assumed.append(number)
    if inputs:
        _forget_open(graph)
    return tuple(assumed), tuple(sorted(used.items()))


def _is_open(size: Any) -> bool:
    return not size.HasField("dim_value") or size.dim_value < 0


def _name(axis: int, tensor: Any) -> str:
    """The name of an open size by its axis, the rank and the type of the input."""
    shape = tensor.shape.dim
    if axis == 0 and len(shape) > 1:
        return _BATCH
    if len(shape) == 4:
        is_last = not _is_open(shape[3]) and shape[3].dim_value in (1, 3, 4)
        return _CHANNELS if axis == 1 and not is_last else IMAGE
    return SAMPLES if len(shape) == 2 and tensor.elem_type in _FLOATS else TOKENS


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
