"""A trained directory -> an exported one: encoder and head as ONNX, the encoder's matrices in int8.

The encoder runs one text at a time, so its dynamic activation scales depend on that text alone. The number of
quantised matrix products is asserted: a quantiser that skips some silently would ship a larger and slower file.

The encoder can be read back, so that training can start from it. A folder of ``rlm-lsp train`` has its weights. An
exported ``encoder.onnx`` holds them too, its matrices as int8 with a scale per column, in the order in which the
encoder multiplies by them. The result is compared with the graph; an encoder whose answers differ is refused.
"""

from __future__ import annotations

import copy
import logging
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import onnx
import torch
from onnx.numpy_helper import to_array
from onnxruntime.quantization import QuantType, quantize_dynamic
from safetensors.torch import load_file

from rlm_core.errors import ModelError
from rlm_core.folders import ScratchFolder
from rlm_core.inference.card import read_card
from rlm_core.inference.encoder import open_session
from rlm_core.inference.novelty import DISTANCE
from rlm_core.inference.student import ENCODER, HEAD, NGRAM_RIDGE, TOKENIZER, TREES
from rlm_core.inference.tokenizer import Tokenizer
from rlm_core.queries.query_vector import QUERY
from rlm_core.source.syntax_counts import FACTS

from .network import Encoder, Head, Student, StudentConfig

WEIGHTS = "student.safetensors"
_OPSET = 18
_PROBES, _LENGTH = 4, 48
_ALIKE = 0.99  # least cosine of vectors; the graph rounds activations to eight bits too
_MATRICES = ("qkv", "out", "up", "down")
Array = npt.NDArray[np.float32]
_SIZES = ("vocabulary", "width", "layers", "heads", "hidden", "context")


def export(model: Path, out: Path, *, quantise: bool = True) -> None:
    """Export the student in ``model`` to ``out``.

    Raises:
        ModelError: ``model`` is not a directory that training wrote.
    """
    card = read_card(model)
    student = Student(StudentConfig(**card.sizes))
    student.load_state_dict(load_file(model / WEIGHTS))
    student.eval()
    out.mkdir(parents=True, exist_ok=True)
    export_encoder(student, out / ENCODER, quantise=quantise)
    export_head(student.head, student.config, out / HEAD)
    copied = (TOKENIZER, NGRAM_RIDGE, TREES, DISTANCE)
    for name in copied:
        shutil.copyfile(model / name, out / name)
    replace(card, files={}).write(out, [ENCODER, HEAD, *copied])


def export_encoder(student: Student, path: Path, *, quantise: bool = True) -> None:
    """Write the encoder as ONNX: ids ``(1, tokens)`` int64 -> vector ``(1, width)`` float32."""
    with ScratchFolder() as scratch, _quiet():
        plain = scratch / ENCODER
        _write(_encoder_program(_encoder_sizes(student.config)), student.encoder, plain)
        if quantise:
            _quantise(plain, path)
        else:
            shutil.copyfile(plain, path)
    _strip(path)


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the exporter's remarks about packages that it does not need."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "root", "onnxscript")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _encoder_sizes(sizes: StudentConfig) -> StudentConfig:
    """Return the sizes with defaults for those of the head, which the graph of the encoder does not depend on."""
    defaults = StudentConfig()
    return replace(
        sizes,
        head_hidden=defaults.head_hidden,
        base_hidden=defaults.base_hidden,
        slices=defaults.slices,
        outcomes=defaults.outcomes,
    )


@lru_cache(maxsize=4)
def _encoder_program(sizes: StudentConfig) -> torch.onnx.ONNXProgram:
    tokens = torch.export.Dim("tokens", min=1, max=sizes.context)
    with torch.random.fork_rng(devices=()):
        encoder = Encoder(sizes).eval()
    ids = torch.full((1, min(37, sizes.context)), 5)
    return _trace(encoder, {"ids": ids}, "vector", {"ids": {1: tokens}})


def export_head(head: Head, sizes: StudentConfig, path: Path) -> None:
    """Write a head of these sizes as ONNX; its inputs are those of :meth:`Head.forward`."""
    with _quiet():
        _write(_head_program(sizes), head, path)
    _strip(path)


@lru_cache(maxsize=4)
def _head_program(sizes: StudentConfig) -> torch.onnx.ONNXProgram:
    rows, width = torch.export.Dim("rows", min=1, max=4096), sizes.width
    with torch.random.fork_rng(devices=()):
        head = Head(sizes).eval()
    inputs = {
        "unit": torch.zeros(3, width),
        "callees": torch.zeros(3, 4 * width),
        "counts": torch.zeros(3, 2),
        "wide": torch.zeros(3),
        "facts": torch.zeros(3, FACTS),
        "slice": torch.zeros(3, dtype=torch.int64),
        "date": torch.zeros(3),
        "query": torch.zeros(3, QUERY),
    }
    return _trace(head, inputs, "logits", {name: {0: rows} for name in inputs})


def _trace(
    module: torch.nn.Module, inputs: dict[str, torch.Tensor], output: str, shapes: dict[str, dict[int, Any]]
) -> torch.onnx.ONNXProgram:
    """Return the graph of a module before it is optimised, when every parameter still has its name.

    Tracing takes nearly all the time of an export. It does not depend on the weights, so it happens once per size.
    """
    program = torch.onnx.export(
        module,
        tuple(inputs.values()),
        input_names=list(inputs),
        output_names=[output],
        dynamic_shapes=shapes,
        opset_version=_OPSET,
        dynamo=True,
        optimize=False,
        verbose=False,
    )
    # A weight whose name the exporter changed would keep the value that it was traced with.
    known = {name for name, _ in (*module.named_parameters(), *module.named_buffers())}
    if program is None or not known.issuperset(program.model.graph.initializers):
        raise RuntimeError("the traced graph has weights under other names; the exporter has changed")
    return program


def _write(traced: torch.onnx.ONNXProgram, module: torch.nn.Module, path: Path) -> None:
    """Write a traced graph with the weights of a module."""
    program = copy.copy(traced)
    program.model = traced.model.clone()
    program.apply_weights(module.state_dict())
    program.optimize()
    program.save(path, external_data=False)


def _strip(path: Path) -> None:
    """Remove what the exporter notes about the source it traced: stack traces with paths of this machine."""
    model = onnx.load(str(path))
    graph = model.graph
    for entry in (model, graph, *graph.node, *graph.initializer, *graph.value_info, *graph.input, *graph.output):
        entry.doc_string = ""
        del entry.metadata_props[:]
    onnx.save(model, str(path))


def _quantise(plain: Path, target: Path) -> None:
    model = onnx.load(str(plain))
    # The exporter keeps the shapes of weights that its optimiser has transposed since; they are inferred again.
    del model.graph.value_info[:]
    quantize_dynamic(
        model,
        str(target),
        op_types_to_quantize=["MatMul", "Gather"],
        weight_type=QuantType.QInt8,
        per_channel=True,
        extra_options={"MatMulConstBOnly": True},
    )
    expected = _constant_products(onnx.load(str(plain)))
    found = sum(
        node.op_type in ("MatMulInteger", "DynamicQuantizeMatMul") for node in onnx.load(str(target)).graph.node
    )
    if found != expected:
        raise RuntimeError(f"{found} of {expected} matrix products were quantised; the exporter's graph has changed")


def _constant_products(model: onnx.ModelProto) -> int:
    constants = {tensor.name for tensor in model.graph.initializer if np.prod(tensor.dims) > 0}
    return sum(node.op_type in ("MatMul", "Gemm") and node.input[1] in constants for node in model.graph.node)


def read_encoder(folder: Path) -> Encoder:
    """The encoder of the student in ``folder``, which ``rlm-lsp train`` or ``rlm-lsp export`` wrote.

    Weights of an exported one are rounded to the int8 of its file.

    Raises:
        ModelError: the folder holds no student, or its files do not belong together.
    """
    try:
        encoder = Encoder(StudentConfig(**read_card(folder).sizes))
    except TypeError as error:
        raise ModelError(f"{folder}: the sizes in its card are not those of a student ({error})") from None
    if (folder / WEIGHTS).is_file():
        weights = load_file(folder / WEIGHTS)
        state = {name: weights.get(f"encoder.{name}") for name in encoder.state_dict()}
        _fill(encoder, state, folder / WEIGHTS)
        return encoder
    path = folder / ENCODER
    session = open_session(path)  # says what is wrong with a file that cannot be read
    try:
        state = _exported(onnx.load(str(path)).graph, encoder)
    except KeyError as error:
        raise ModelError(f"{path}: has no constant {error}; export the model again") from None
    _fill(encoder, state, path)
    generator = torch.Generator().manual_seed(0)
    length = min(_LENGTH, encoder.config.context)
    probes = torch.randint(0, encoder.config.vocabulary, (_PROBES, length), generator=generator)
    with torch.inference_mode():
        found = encoder.eval()(probes)
    expected = torch.from_numpy(np.concatenate([session.run(None, {"ids": one[None].numpy()})[0] for one in probes]))
    alike = float(torch.cosine_similarity(found, expected).min())
    if not alike > _ALIKE:
        raise ModelError(f"{path}: is not the encoder of a student (cosine {alike:.3f}); export the model again")
    return encoder.train()


def _fill(encoder: Encoder, state: dict[str, torch.Tensor | None], path: Path) -> None:
    for name, own in encoder.state_dict().items():
        found = state.get(name)
        if found is None or found.shape != own.shape:
            raise ModelError(f"{path}: has no weights {name} of shape {tuple(own.shape)}; export the model again")
        own.copy_(found)


def _exported(graph: onnx.GraphProto, encoder: Encoder) -> dict[str, torch.Tensor | None]:
    """The parameters by name: matrices in the order of the products, everything else by the exporter's names."""
    constants = {tensor.name: tensor for tensor in graph.initializer}

    def whole(name: str) -> Array:
        """A constant in float32; one that was quantised times its scale, which is per column or one for all."""
        if name in constants:
            return to_array(constants[name]).astype(np.float32)
        own, scale, zero = (to_array(constants[f"{name}_{part}"]) for part in ("quantized", "scale", "zero_point"))
        result: Array = ((own.astype(np.float32) - zero.astype(np.float32)) * scale).astype(np.float32)
        return result

    def is_known(name: str) -> bool:
        return name in constants or f"{name}_quantized" in constants

    layers = range(encoder.config.layers)
    order = [f"layers.{layer}.{matrix}.weight" for layer in layers for matrix in _MATRICES]
    order += ["score.weight", "pool.weight"]
    products = [
        (node.input[1].removesuffix("_quantized"), any(entry.name == "transB" and entry.i for entry in node.attribute))
        for node in graph.node
        if node.op_type in ("MatMulInteger", "MatMul", "Gemm") and node.input[1] in constants
    ]
    state = {
        name: torch.from_numpy(whole(matrix) if transposed else whole(matrix).T)
        for name, (matrix, transposed) in zip(order, products, strict=False)
    }
    by_name = {name: torch.from_numpy(whole(name)) for name in encoder.state_dict() if is_known(name)}
    return {**by_name, **state}


@dataclass(frozen=True, slots=True)
class Start:
    """A student's encoder and tokenizer, and the student's id."""

    model_id: str
    encoder: Encoder
    tokenizer: Tokenizer

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the student in ``folder``.

        Raises:
            ModelError: it cannot be read.
        """
        return cls(read_card(folder).model_id, read_encoder(folder), Tokenizer.load(folder / TOKENIZER))

    def sized(self, own: StudentConfig) -> StudentConfig:
        """The sizes of a student with the head of ``own`` and this encoder."""
        return replace(own, **{name: getattr(self.encoder.config, name) for name in _SIZES})
