"""An ONNX model -> a graph of operators, attributes, edges and shapes.

Weights count by shape, and neither they nor values of external data are loaded. Nothing is run. The ``onnx`` package is
an extra and imported when first used.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_core.errors import ModelError
from rlm_core.files import open_regular

from .graph import Graph, ordered
from .graph_reader import GraphReader, is_large
from .memory import shared_bytes
from .model_nodes import inlined_count, node_count
from .open_sizes import USUAL, assume_sizes
from .wire import MAX_NODES, Deadline, is_inferable, without_weights

if TYPE_CHECKING:
    import onnx

_NEEDS_ONNX = "reading a .onnx file needs the onnx package; run: pip install '.[onnx]'"
_MAX_BYTES = 2**31  # what protobuf can write; most of it are weights, which are not read
_MAX_SECONDS = 10.0  # of processor time


def read_onnx(path: Path, root: Path | None = None, sizes: Mapping[str, int] = USUAL) -> Graph:
    """The graph of a ``.onnx`` file, which with its links resolved is below ``root``, if given.

    ``sizes``: those of its inputs where the file leaves them open, see :func:`.open_sizes.assume_sizes`.

    Raises:
        ModelError: the onnx package is missing, the file cannot be read as an ONNX model, or that takes too long.
    """
    onnx = _onnx()
    deadline = Deadline(_MAX_SECONDS)
    try:
        with open_regular(path, _MAX_BYTES, root) as file:
            content = without_weights(file, os.fstat(file.fileno()).st_size, deadline)
        model = onnx.load_model_from_string(content)
    except OSError as error:
        hint = "give the path of a .onnx file, with large weights in other files"
        raise ModelError(f"{path}: cannot be read ({error.strerror}); {hint}") from None
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None
    except Exception:  # protobuf's errors have no common public class
        raise ModelError(f"{path}: not an ONNX model; export the network to ONNX again") from None
    try:
        return from_model(model, deadline, sizes)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None
    except (UnicodeDecodeError, TypeError):  # protobuf gives such names as bytes, or raises on them
        raise ModelError(f"{path}: a name in the graph is not UTF-8; export the network to ONNX again") from None


def from_model(model: onnx.ModelProto, deadline: Deadline | None = None, sizes: Mapping[str, int] = USUAL) -> Graph:
    """The graph of a model in memory, in canonical order. The model is left as it is; see :func:`read_onnx`.

    Raises:
        ModelError: the onnx package is missing, the model is too large or takes too long, or an edge of it leads
            nowhere.
    """
    onnx = _onnx()
    if not model.graph.node and not model.graph.output:
        raise ModelError("the ONNX model has no nodes; export the network to ONNX again")
    if node_count(model.graph) > MAX_NODES:
        raise ModelError(f"the ONNX graph has more than {MAX_NODES:,} nodes; name a part of it")
    shell = _shell(model)
    assumed, named = assume_sizes(shell.graph, sizes)
    shell = _with_shapes(shell)
    versions = {entry.domain: entry.version for entry in shell.opset_import}
    graph = GraphReader(onnx, versions, deadline or Deadline(_MAX_SECONDS)).graph(shell.graph, {})
    return ordered(replace(graph, assumed=assumed, sizes=named, shared=shared_bytes(graph)))


def _onnx() -> Any:
    try:
        import onnx
    except ImportError:
        raise ModelError(_NEEDS_ONNX) from None
    return onnx


def _shell(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy without the values of large weights, so that shape inference is fast at any size."""
    onnx = _onnx()
    shell = onnx.ModelProto()
    for field, value in model.ListFields():
        if field.name == "graph":
            for part, content in value.ListFields():
                if part.name != "initializer":
                    _copy(shell.graph, part.name, content)
        else:
            _copy(shell, field.name, value)
    for tensor in model.graph.initializer:
        if is_large(tensor.dims):
            shell.graph.initializer.add(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
        else:
            shell.graph.initializer.append(tensor)
    return shell  # type: ignore[no-any-return]


def _copy(target: Any, name: str, value: Any) -> None:
    if isinstance(value, str | bytes | int | float):
        setattr(target, name, value)
    elif hasattr(value, "CopyFrom"):
        getattr(target, name).CopyFrom(value)
    else:
        getattr(target, name).extend(value)


def _with_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Local functions inlined and shapes inferred, each as far as the onnx package can."""
    import onnx.inliner
    import onnx.shape_inference

    if inlined_count(model) > MAX_NODES:
        model.ClearField("functions")  # inferring shapes would go through all of them too
    if model.functions:
        with contextlib.suppress(Exception):  # the calls then remain operators
            model = onnx.inliner.inline_local_functions(model)
    if not is_inferable(model.graph):
        return model
    try:
        return onnx.shape_inference.infer_shapes(model, strict_mode=False, data_prop=True)
    except Exception:  # a custom operator, an unknown version: our own rules have to do
        return model
