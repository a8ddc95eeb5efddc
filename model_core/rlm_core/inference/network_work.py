"""The kernels of a network and how much of each kind of work they do, from the text of its graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from rlm_core.source.onnx_graph.graph import Graph, Shape
from rlm_core.source.onnx_graph.kernels import Kernel, kernels
from rlm_core.source.onnx_graph.memory import GraphMemory, memory
from rlm_core.source.onnx_graph.node_codec import shape_text
from rlm_core.source.onnx_graph.operator_words import kernel_words
from rlm_core.source.onnx_graph.parse import parse

from .network_settings import ARITHMETIC, COLUMNS, MACS, MOVED, ONCE, SettingCost

Array = npt.NDArray[np.float64]
_PLACE = {name: number for number, name in enumerate(COLUMNS)}


@dataclass(frozen=True, slots=True)
class NetworkWork:
    """The kernels of a graph with the ``operators`` that lead them, and the batch of the graph.

    ``amounts``: of :data:`COLUMNS` per graph, ``(kernels, columns)``. ``open_share``: of the kernels, those with sizes
    that do not follow from the inputs; they count as 1. ``assumed``: shapes of inputs that the model leaves open, by
    their names in a workload (``arg0``). ``sizes``: of these inputs, by name (``image``).
    ``labels``: the kernels' names for people.
    """

    kernels: tuple[Kernel, ...]
    operators: tuple[str, ...]
    amounts: Array
    batch: int
    open_share: float
    assumed: Mapping[str, str]
    sizes: Mapping[str, int]
    labels: tuple[str, ...]

    def at(self, batch: int) -> Array:
        """The amounts for a batch, ``(kernels, columns)``."""
        amounts = self.amounts * (batch / self.batch)
        amounts[:, -len(ONCE) :] = self.amounts[:, -len(ONCE) :]
        return amounts


@lru_cache(256)
def work_of(text: str) -> NetworkWork:
    """The work of a graph, from its text.

    Raises:
        DataError: the text is not that of a graph.
    """
    graph = parse(text)
    found = kernels(graph, fused=False)
    amounts = np.zeros((len(found), len(COLUMNS)))
    for row, kernel in zip(amounts, found, strict=True):
        kind = work_kind(kernel)
        if kind in ARITHMETIC:
            row[_PLACE[f"{kind}.macs"]] = (kernel.macs or kernel.operations) / 1e9
        row[_PLACE[f"{kind}.moved"]] = (kernel.read + kernel.written) / 1e6
        row[_PLACE["kernels"]] = _starts(graph, kernel)
        row[_PLACE["weights"]] = kernel.weights / 1e6
    operators = tuple(graph.nodes[kernel.nodes[0]].operator for kernel in found)
    is_open = [not all(map(_is_closed, graph.nodes[kernel.nodes[-1]].shapes)) for kernel in found]
    assumed = {f"arg{number}": shape_text(graph.inputs[number].shape) for number in graph.assumed}
    labels = tuple(kernel_words(graph, kernel) for kernel in found)
    open_share = sum(is_open) / max(len(is_open), 1)
    return NetworkWork(found, operators, amounts, _batch_of(graph), open_share, assumed, dict(graph.sizes), labels)


@lru_cache(256)
def memory_of(text: str, widths: tuple[float, float]) -> GraphMemory:
    """The memory of a graph, with these bytes of a floating-point number of weights and of activations.

    Raises:
        DataError: the text is not that of a graph.
    """
    return memory(parse(text), weight_width=widths[0], activation_width=widths[1])


def factors_of(setting: SettingCost) -> Array:
    """The cost per unit of each column, ``(columns,)``, of unknown kinds the geometric mean of the known ones."""
    factors = np.array(setting.costs)
    known = np.array([name.partition(".")[0] in setting.known for name in COLUMNS])
    for columns in (MACS, MOVED):
        place = np.isin(COLUMNS, columns)
        usual = factors[place & known & (factors > 0)]
        if len(usual):
            factors[place & ~known] = np.exp(np.log(usual).mean())
    return factors


def work_kind(kernel: Kernel) -> str:
    """The kind whose costs a kernel has: a recurrent layer is a product at each step."""
    return "product" if kernel.kind == "recurrent" else kernel.kind


def _starts(graph: Graph, kernel: Kernel) -> float:
    """How often a device starts a kernel: once, or at each step of a recurrent layer."""
    if kernel.kind != "recurrent":
        return 1.0
    node = graph.nodes[kernel.nodes[0]]
    shape = graph.shape(node.operands[0])
    steps = shape[1 if node.attribute("layout") else 0] if shape else 1
    return float(steps) if isinstance(steps, int) else 1.0


def _is_closed(shape: Shape) -> bool:
    return shape is not None and all(isinstance(size, int) for size in shape)


def _batch_of(graph: Graph) -> int:
    """The first size that all inputs and outputs share; 1 where they do not."""
    shapes = [value.shape for value in graph.inputs] + [graph.shape(operand) for operand in graph.outputs]
    first = {shape[0] if shape else None for shape in shapes}
    size = first.pop() if len(first) == 1 else 1
    return size if isinstance(size, int) and size > 0 else 1
