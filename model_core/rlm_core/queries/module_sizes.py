"""The sizes at which a PyTorch module is predicted where its text has none: from how its file calls it, or its layers.

``model(torch.randn(32, 1024))`` in the file gives all sizes. Otherwise the layers of ``__init__`` give those that the
module fixes, such as the 1024 features of ``nn.Linear(1024, 10)``; batch, picture and sequence are typical ones. Sizes
count only if a forward pass with them can be followed to its end. Nothing is run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, product
from typing import Any

from rlm_core.cost.concrete.values import UNKNOWN
from rlm_core.cost.torch_trace.module_calls import ModuleCall, layers_of, module_calls, signatures
from rlm_core.cost.torch_trace.tracing import RESERVED, trace
from rlm_core.cost.torch_trace.values import Tensor, TorchLayer

BATCH, SEQUENCE = 32, 128
# A picture of ImageNet first; the others for modules that fix the picture by a layer after flattening.
PICTURES = (224, 32, 28, 64, 96, 128, 256, 299, 48, 16, 84, 227)
_CREATES = re.compile(rb"\b(?:randn|rand|zeros|ones|randint|empty|full|arange)(?:_like)?\s*\(")
_MOST_LAYERS, _MOST_TRIALS, _MOST_INPUTS = 6, 48, 4
# Of all trials for a module together: large networks are traced a few times only.
_MOST_OPERATIONS = 4_000
_IN_SEQUENCES = ("MultiheadAttention", "Transformer", "LayerNorm", "RMSNorm", "Embedding", "LSTM", "GRU", "RNN")


@dataclass(frozen=True, slots=True)
class InferredSizes:
    """The workload of a module, and the call that it is from, with its 1-based line; no call: from its layers."""

    workload: Mapping[str, str]
    line: int | None = None
    call: str = ""


def inferred_sizes(source: bytes, modules: Sequence[tuple[str, str]]) -> list[InferredSizes | None]:
    """The sizes of the modules of a file, given by name and text; None for unknown ones and those in the text."""
    called: Mapping[str, ModuleCall] = {}
    if _CREATES.search(source) and any("get_inputs" not in text for _, text in modules):
        called = _module_calls(source.decode("utf-8", "replace"))
    result: list[InferredSizes | None] = []
    for name, text in modules:
        sizes = None
        if "get_inputs" not in text:
            call = called.get(name)
            sizes = _of_call(name, text, call) if call is not None else None
            workload = _of_layers(name, text) if sizes is None else None
            sizes = sizes or (InferredSizes(dict(workload)) if workload else None)
        result.append(sizes)
    return result


def example_sizes(text: str) -> str:
    """Sizes to write in a comment for the last module of a text, by the names of its parameters."""
    names = re.findall(r"^class[ \t]+(\w+)", text, re.MULTILINE)
    initial, inputs = signatures(text, "Model" if "Model" in names else names[-1]) if names else ({}, {})
    needed = [name for name, default in inputs.items() if default is UNKNOWN] or ["arg0"]
    shapes = [f"{name}={BATCH}x1024" for name in needed[:_MOST_INPUTS]]
    numbers = [f"{name}=1024" for name, default in initial.items() if default is UNKNOWN and name not in inputs]
    return " ".join([*shapes, *numbers[:_MOST_INPUTS]])


def forward_parameters(name: str, text: str) -> list[str]:
    """The parameters of a module's ``forward`` without defaults."""
    return [parameter for parameter, default in signatures(text, name)[1].items() if default is UNKNOWN]


@lru_cache(maxsize=32)
def _module_calls(source: str) -> Mapping[str, ModuleCall]:
    return module_calls(source)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How far a forward pass could be followed: to its end, with how many operations and calls not understood."""

    complete: bool
    operations: int
    unknown: int
    inputs: tuple[tuple[int, ...], ...]


@lru_cache(maxsize=1024)
def _traced(text: str, workload: tuple[tuple[str, str], ...]) -> _Outcome:
    traced = trace(text, dict(workload))
    return _Outcome(traced.complete, len(traced.operations), traced.unknown, traced.inputs)


def _of_call(name: str, text: str, call: ModuleCall) -> InferredSizes | None:
    initial, inputs = signatures(text, name)
    workload: dict[str, str] = {}
    shapes = []
    for index, (parameter, default) in enumerate(inputs.items()):
        value = call.arguments.get(parameter, default)
        if isinstance(value, Tensor):
            shapes.append(value.shape)
            written: str | None = "x".join(map(str, value.shape))
        elif value is default:
            continue
        else:
            written = _written(value)
        if not written:
            return None
        is_taken = parameter in initial or parameter in RESERVED
        workload[f"arg{index}" if is_taken else parameter] = written
    for parameter, default in initial.items():
        value = call.initial.get(parameter, default)
        if value is not default and value != default and (written := _written(value)):
            workload[parameter] = written
    kinds = {value.dtype for value in call.arguments.values() if isinstance(value, Tensor)}
    if kinds in ({"fp16"}, {"bf16"}):
        workload["dtype"] = kinds.pop()
    traced = _traced(text, tuple(workload.items()))
    if not traced.operations or traced.inputs != tuple(shapes):
        return None
    return InferredSizes(workload, call.line, call.text)


def _written(value: Any) -> str | None:
    """A plain value as in a workload; None for another one."""
    if value is None or isinstance(value, (bool, int, float)):
        return str(value).lower()
    if isinstance(value, str):
        return value if re.fullmatch(r"[A-Za-z_]\w{0,40}", value) else None
    is_sizes = isinstance(value, (list, tuple)) and 1 < len(value) <= 16 and all(type(item) is int for item in value)
    return "x".join(map(str, value)) if is_sizes else None


@lru_cache(maxsize=512)
def _of_layers(name: str, text: str) -> tuple[tuple[str, str], ...]:
    """The sizes that the layers of a module fix, the others typical; empty where no trial can be followed."""
    initial, inputs = signatures(text, name)
    needed = [parameter for parameter, default in inputs.items() if default is UNKNOWN]
    layers = layers_of(text, name)
    if not 0 < len(needed) <= _MOST_INPUTS or any(name in initial or name in RESERVED for name in needed) or not layers:
        return ()
    left = _MOST_OPERATIONS
    for shapes in islice(_trials(list(_shapes(layers)), len(needed)), _MOST_TRIALS):
        workload = {parameter: "x".join(map(str, shape)) for parameter, shape in zip(needed, shapes, strict=True)}
        traced = _traced(text, tuple(workload.items()))
        if traced.complete and traced.operations and not traced.unknown:
            return tuple(workload.items()) if traced.inputs == tuple(shapes) else ()
        left -= traced.operations
        if left < 0:
            break
    return ()


def _trials(shapes: Sequence[tuple[int, ...]], inputs: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Shapes for all inputs: the same for each first, as most modules with several inputs combine them."""
    yield from ((shape,) * inputs for shape in shapes)
    if inputs > 1:
        yield from (trial for trial in product(shapes, repeat=inputs) if len(set(trial)) > 1)


def _shapes(layers: Sequence[TorchLayer]) -> Iterator[tuple[int, ...]]:
    """The shapes that the first layers of a module take, each once."""
    in_sequences = any(layer.name.startswith(_IN_SEQUENCES) for layer in layers)
    sized = [layer for layer in layers if any(True for _ in _taken(layer, in_sequences))]
    seen: set[tuple[int, ...]] = set()
    for layer in sized[:_MOST_LAYERS]:
        for shape in _taken(layer, in_sequences):
            if shape not in seen and all(0 < size < 10**8 for size in shape):
                seen.add(shape)
                yield shape


def _taken(layer: TorchLayer, in_sequences: bool) -> Iterator[tuple[int, ...]]:
    """The shapes that a layer takes, the most usual one first."""
    options, name = layer.options, layer.name
    for key in ("in_features", "in_channels", "input_size", "embed_dim", "d_model", "num_features", "normalized_shape"):
        size = options.get(key)
        if isinstance(size, int) and not isinstance(size, bool):
            break
    else:
        if name == "Embedding":
            yield from ((BATCH, SEQUENCE), (BATCH,))
        return
    sequence = (BATCH, SEQUENCE, size)
    if name.endswith(("1d", "2d", "3d")):
        rank = int(name[-2])
        if rank == 1:
            yield from ((BATCH, size, SEQUENCE), *([(BATCH, size)] if name.startswith("BatchNorm") else []))
        elif rank == 2:
            yield from ((BATCH, size, side, side) for side in PICTURES)
        else:
            yield (BATCH, size, 16, 112, 112)
    elif name == "Linear" and not in_sequences:
        yield from ((BATCH, size), sequence)
    elif name.endswith("Cell"):
        yield (BATCH, size)
    else:
        yield from (sequence, (BATCH, size))
