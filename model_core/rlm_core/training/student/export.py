"""A trained directory -> an exported one: encoder and head as ONNX, the encoder's matrices in int8.

The encoder runs one text at a time, so its dynamic activation scales depend on that text alone. The number of
quantised matrix products is asserted: a quantiser that skips some silently would ship a larger and slower file.
"""

from __future__ import annotations

import copy
import logging
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from safetensors.torch import load_file

from rlm_core.folders import ScratchFolder
from rlm_core.inference.card import read_card
from rlm_core.inference.novelty import DISTANCE
from rlm_core.inference.student import ENCODER, HEAD, NGRAM_RIDGE, TOKENIZER, TREES
from rlm_core.queries.query_vector import QUERY
from rlm_core.source.syntax_counts import FACTS

from .network import Encoder, Head, Student, StudentConfig

WEIGHTS = "student.safetensors"
_OPSET = 18


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
        _write(_encoder_program(student.config), student.encoder, plain)
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


@lru_cache(maxsize=1)
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


@lru_cache(maxsize=1)
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
