"""The encoder of a student as a PyTorch module, so that training can start from it.

A folder of ``rlm-lsp train`` has its weights. An exported ``encoder.onnx`` holds them too, its matrices as int8 with a
scale per column, in the order in which the encoder multiplies by them. The result is compared with the graph;
an encoder whose answers differ is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import onnx
import torch
from onnx.numpy_helper import to_array
from safetensors.torch import load_file

from rlm_core.errors import ModelError
from rlm_core.inference.card import read_card
from rlm_core.inference.encoder import open_session
from rlm_core.inference.student import ENCODER, TOKENIZER
from rlm_core.inference.tokenizer import Tokenizer

from .export import WEIGHTS
from .network import Encoder, StudentConfig

_PROBES, _LENGTH = 4, 48
_ALIKE = 0.99  # least cosine of vectors; the graph rounds activations to eight bits too
_MATRICES = ("qkv", "out", "up", "down")
Array = npt.NDArray[np.float32]


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


_SIZES = ("vocabulary", "width", "layers", "heads", "hidden", "context")


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
