"""The graphs of labelled networks: exported from timm without weights, and kept as texts in a folder.

Needs the packages timm and torch, of versions that the labels name. A network is built without initialising its
weights, which are then left out of the file, so that the largest take a few seconds and no disk.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlm_core.errors import DataError, RlmError
from rlm_core.files import atomic_write
from rlm_core.source.onnx_graph.costs import costs, total
from rlm_core.source.onnx_graph.graph import words
from rlm_core.source.onnx_graph.parse import parse
from rlm_core.source.onnx_graph.reader import from_model
from rlm_core.source.onnx_graph.render import render

from .labels import LabelledNetwork

TIMM_VERSION = "1.0.24"
FUSED = "+fused"
"""At the end of the name of a network whose parallel branches were fused before it was exported."""
_TOLERANCE = 0.011  # of the number of parameters, which labels round to 10,000
_KEPT_VALUES = 64  # of a constant: shapes and scales, never weights
_INITIALISERS = frozenset(
    words("add_ clamp_ copy_ div_ erfinv_ fill_ mul_ normal_ ones_ sub_ trunc_normal_ uniform_ zero_ zeros_")
)
_WEIGHT_ELEMENTS = 2**16  # of a view that an initialiser writes, such as half of a weight


def text_of(network: LabelledNetwork, folder: Path) -> str | None:
    """The text of a network's graph in a folder; None where none there has the labelled number of parameters."""
    for ending in ("", FUSED):
        path = folder / f"{network.file}{ending}.txt"
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            if has_parameters(text, network.parameters):
                return text
    return None


def has_parameters(text: str, millions: float) -> bool:
    """Return whether a graph has about as many parameters as the label says."""
    found = total(costs(parse(text))).parameters / 1e6
    return abs(found - millions) <= max(_TOLERANCE * millions, 0.006)


def is_fused_elsewhere(network: LabelledNetwork, folder: Path) -> bool:
    """Return whether a network was exported, and has fewer parameters in the label: those of its fused branches."""
    path = folder / f"{network.file}.txt"
    if not path.is_file() or (folder / f"{network.file}{FUSED}.txt").is_file():
        return False
    return total(costs(parse(path.read_text(encoding="utf-8")))).parameters / 1e6 > network.parameters * (
        1 + _TOLERANCE
    )


def export(network: LabelledNetwork, folder: Path, *, fused: bool = False) -> None:
    """Write the text of a network's graph to a folder.

    Raises:
        DataError: the network cannot be built or exported.
    """
    try:
        model = build(network.name, network.size, fused=fused)
        text = render(from_model(to_onnx(model, [_image(network.size)])))
    except (RlmError, RuntimeError, ValueError, TypeError, AssertionError, AttributeError, KeyError) as error:
        raise DataError(f"{network.file}: cannot be exported ({type(error).__name__}: {str(error)[:200]})") from None
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_write(folder / f"{network.file}{FUSED if fused else ''}.txt") as partial:
        partial.write_text(text, encoding="utf-8")


def import_onnx(path: Path, folder: Path) -> None:
    """Write the text of an exported file to a folder, under its name."""
    import onnx

    with atomic_write(folder / f"{path.stem}.txt") as partial:
        partial.write_text(render(from_model(onnx.load(os.fspath(path), load_external_data=False))), encoding="utf-8")


def build(name: str, size: int, *, fused: bool = False) -> Any:
    """A network of timm for images of ``size`` pixels, ready for inference, with weights of any values."""
    import timm

    if timm.__version__ != TIMM_VERSION:
        raise DataError(f"timm {timm.__version__} has other networks; run: pip install timm=={TIMM_VERSION}")
    with without_initialisation():
        model = timm.create_model(name, pretrained=False, exportable=True)
        config = getattr(model, "pretrained_cfg", {})
        if config.get("fixed_input_size") and tuple(config.get("input_size", (0,)))[-1] != size:
            model = timm.create_model(name, pretrained=False, exportable=True, img_size=size)
    model.eval()
    return timm.utils.reparameterize_model(model) if fused else model


def _image(size: int) -> Any:
    import torch

    return torch.zeros(1, 3, size, size)


def to_onnx(model: Any, inputs: Sequence[Any]) -> Any:
    """A network for ``inputs``, which are tensors, as an ONNX model whose large weights have no values."""
    import onnx_ir
    import onnxscript.optimizer
    import torch

    with torch.no_grad():
        program = torch.export.export(model, tuple(inputs), strict=False)
    written: Any = torch.onnx.export(program, (), dynamo=True, optimize=False, verbose=False)
    exported: Any = written.model
    for value in exported.graph.initializers.values():
        if value.shape is not None and _elements(value.shape) > _KEPT_VALUES:
            value.const_value = None
    onnxscript.optimizer.optimize_ir(exported)
    for value in exported.graph.initializers.values():
        if value.const_value is None or value.const_value.size > _KEPT_VALUES:
            shape = onnx_ir.Shape(list(value.shape))
            value.const_value = onnx_ir.ExternalTensor("weights", 0, 0, value.dtype, shape=shape, name=value.name)
    return onnx_ir.to_proto(exported)


def _elements(shape: Any) -> int:
    count = 1
    for side in shape:
        count *= int(side)
    return count


def without_initialisation() -> Any:
    """A context in which torch leaves new weights as they come: random values cost most of the time of building."""
    import torch
    from torch.overrides import TorchFunctionMode

    class WithoutInitialisation(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if args and getattr(func, "__name__", "") in _INITIALISERS and _is_weight(args[0]):
                return args[0]
            return func(*args, **(kwargs or {}))

    def _is_weight(value: Any) -> bool:
        if isinstance(value, torch.nn.Parameter):
            return True
        if not isinstance(value, torch.Tensor) or value._base is None:
            return False
        return value.numel() > _WEIGHT_ELEMENTS

    return WithoutInitialisation()
