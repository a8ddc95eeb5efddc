"""An ONNX graph and the question about it in numbers, for boosted trees and kernels on networks of any kind.

Sizes and costs (all nodes and live ones, by operator, kernel, depth and resolution), paths from input to output, how
a signal passes through them, and hashed counts of operator paths and neighbourhoods. In: the text of a graph.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from rlm_core.errors import RlmError
from rlm_core.queries.devices import canonical_device, device_table
from rlm_core.source.onnx_graph.costs import Cost, costs, depth, live, total
from rlm_core.source.onnx_graph.graph import Graph, elements, ordered
from rlm_core.source.onnx_graph.parse import parse
from rlm_core.source.onnx_graph.propagation import propagate
from rlm_core.source.onnx_graph.skeleton import (
    Step,
    bucket,
    kernel_of,
    kind,
    lengths,
    neighbourhoods,
    path_counts,
    path_logs,
    skeleton,
    stride_of,
)

ALONE = True
PATH_BUCKETS, LABEL_BUCKETS = 64, 64

_KINDS = ("conv", "depthwise", "product", "pool", "global", "join", "nonlinear", "norm", "other")
_KERNELS = (1, 3, 5, 7)
_THIRDS, _HALVINGS = 3, 6
_DATASETS = ("cifar10", "cifar100", "imagenet16-120", "imagenet")
_DEVICE_BITS = 8
_LENGTH_NAMES = ("shortest", "longest", "mean", "deviation")
_COUNTED = ("weighted", "wide", "pools")

_SIZE_NAMES = tuple(
    f"{scope}_{what}"
    for scope in ("all", "live")
    for what in ("nodes", "parameters", "macs", "operations", "activations", "traffic")
)
_COUNT_NAMES = tuple(f"{scope}_{name}s" for scope in ("all", "live") for name in _KINDS)
_KERNEL_NAMES = tuple(
    f"{scope}_{what}_k{size}"
    for scope in ("all", "live")
    for what in ("count", "macs", "parameters")
    for size in _KERNELS
)
_PLACE_NAMES = (
    *(f"macs_third{third}" for third in range(_THIRDS)),
    *(f"macs_halved{times}" for times in range(_HALVINGS)),
    *(f"activations_halved{times}" for times in range(_HALVINGS)),
)
_FORM_NAMES = (
    "depth",
    "largest_node_macs",
    "input_elements",
    "input_side",
    "output_elements",
    "channels_max",
    "channels_mean",
    "sequence",
    "open_values_max",
    "open_values_mean",
    "shortcuts",
    "paths",
    "reaches_output",
    "dead_share_macs",
    "dead_share_nodes",
    "receptive_field",
    "pooled_paths",
)
_PATH_NAMES = tuple(
    f"{count}_{weight}_{name}" for count in _COUNTED for weight in ("paths", "even", "signal") for name in _LENGTH_NAMES
)
_SIGNAL_NAMES = tuple(
    f"signal_{name}" for name in ("variance", "similarity", "gradient", "kernel", "conditioning", "smooth")
)
TEXT_NAMES: tuple[str, ...] = (
    "parsed",
    *_SIZE_NAMES,
    *_COUNT_NAMES,
    *_KERNEL_NAMES,
    *_PLACE_NAMES,
    *_FORM_NAMES,
    *_PATH_NAMES,
    *_SIGNAL_NAMES,
    *(f"path_{number}" for number in range(PATH_BUCKETS)),
    *(f"label_{number}" for number in range(LABEL_BUCKETS)),
)
_QUERY_NAMES = (
    *(f"dataset_{name}" for name in _DATASETS),
    "epochs",
    "validation",
    "batch",
    *(f"device_{name}" for name in ("gpu", "cpu", "phone", "accelerator")),
    "device_bandwidth",
    "device_flops",
    "device_year",
    "roofline",
    *(f"device_bit{number}" for number in range(_DEVICE_BITS)),
)
NAMES: tuple[str, ...] = TEXT_NAMES + _QUERY_NAMES


@dataclass(frozen=True, slots=True)
class Described:
    """Features of a network's text. ``values``: ``(len(TEXT_NAMES),)``; ``cost`` is None if it could not be read.

    ``counts``: operator paths and neighbourhoods by label, before hashing, for kernels between networks.
    """

    values: npt.NDArray[np.float32]
    cost: Cost | None
    counts: Mapping[str, float]


@lru_cache(maxsize=4096)
def describe(text: str) -> Described:
    """The features of a graph's text; NaN throughout if it cannot be parsed."""
    try:
        return describe_graph(parse(text))
    except (RlmError, RecursionError, OverflowError, ValueError, ArithmeticError, LookupError, TypeError):
        values = np.full(len(TEXT_NAMES), np.nan, np.float32)
        values[0] = 0.0
        return Described(values, None, {})


def features(described: Described, workload: Mapping[str, str], device: str | None) -> npt.NDArray[np.float32]:
    """The features of one query, shape ``(len(NAMES),)``; NaN where unknown."""
    query = dict.fromkeys(_QUERY_NAMES, math.nan)
    dataset = workload.get("dataset")
    for name in _DATASETS if dataset else ():
        query[f"dataset_{name}"] = float(dataset == name)
    query["epochs"] = _log_number(workload.get("epochs"))
    if "subset" in workload:
        query["validation"] = float(workload["subset"] == "val")
    query["batch"] = _log_number(workload.get("batch"))
    known = canonical_device(device) if device else None
    entry = device_table()[known] if known else None
    if entry is not None:
        for name in ("gpu", "cpu", "phone", "accelerator"):
            query[f"device_{name}"] = float(entry.kind == name)
        query["device_bandwidth"] = _log(entry.memory_bandwidth)
        query["device_flops"] = _log(entry.fp32_flops)
        query["device_year"] = float(entry.year) if entry.year else math.nan
        if described.cost is not None and entry.memory_bandwidth and entry.fp32_flops:
            batch = 10 ** (query["batch"] if query["batch"] == query["batch"] else 0.0)
            moved = described.cost.traffic * batch / entry.memory_bandwidth
            query["roofline"] = _log(max(moved, 2 * described.cost.macs * batch / entry.fp32_flops))
    if device:
        bits = bucket(known or device, 1 << _DEVICE_BITS)
        for number in range(_DEVICE_BITS):
            query[f"device_bit{number}"] = float(bits >> number & 1)
    return np.concatenate([described.values, np.array(list(query.values()), np.float32)])


def describe_graph(graph: Graph) -> Described:
    """The features of a graph; the order of its nodes does not matter."""
    graph = ordered(graph)
    parts = costs(graph)
    alive = live(graph)
    steps = skeleton(graph)
    signal = propagate(graph, alive)
    found: dict[str, float] = {"parsed": 1.0}
    found |= _sizes(graph, parts, alive)
    found |= _places(graph, parts)
    found |= _form(graph, parts, alive, steps)
    found |= _paths(graph, steps, signal.variances)
    found |= dict(zip(_SIGNAL_NAMES, signal.summary, strict=True))
    paths, labels = path_counts(steps), neighbourhoods(steps)
    found |= _hashed("path", paths, PATH_BUCKETS) | _hashed("label", labels, LABEL_BUCKETS)
    values = np.array([found[name] for name in TEXT_NAMES], np.float32)
    return Described(values, total(parts), paths | labels)


def _sizes(graph: Graph, parts: Sequence[Cost], alive: Sequence[bool]) -> dict[str, float]:
    found = dict.fromkeys((*_SIZE_NAMES, *_COUNT_NAMES, *_KERNEL_NAMES), 0.0)
    for number, (node, cost) in enumerate(zip(graph.nodes, parts, strict=True)):
        name = _kind(node.operator) or kind(node, graph.shape(node.operands[0]) if node.operands else None) or "other"
        size = max((side for side in _KERNELS if side <= kernel_of(node)), default=1)
        for scope in ("all", "live") if alive[number] else ("all",):
            found[f"{scope}_nodes"] += 1
            found[f"{scope}_{name}s"] += 1
            for what in ("parameters", "macs", "operations", "activations", "traffic"):
                found[f"{scope}_{what}"] += getattr(cost, what)
            if name in ("conv", "depthwise", "product"):
                found[f"{scope}_count_k{size}"] += 1
                found[f"{scope}_macs_k{size}"] += cost.macs
                found[f"{scope}_parameters_k{size}"] += cost.parameters
    return {name: math.log10(1 + value) for name, value in found.items()}


def _kind(operator: str) -> str:
    if operator.endswith("Normalization") or operator == "LRN":
        return "norm"
    names = ("Relu", "Sigmoid", "Tanh", "Swish", "Gelu", "Elu", "Selu", "Celu", "Mish", "Erf", "Clip", "Softplus")
    return "nonlinear" if operator.endswith(names) or operator in ("Softmax", "LogSoftmax") else ""


def _places(graph: Graph, parts: Sequence[Cost]) -> dict[str, float]:
    """Costs by third of the sum of all depths, and by how often the side of an image was halved."""
    found = dict.fromkeys(_PLACE_NAMES, 0.0)
    level: list[int] = []
    for node in graph.nodes:
        level.append(1 + max((level[ref.node] for ref in node.refs if ref.node >= 0), default=0))
    deepest = max(level, default=1)
    side = _side(graph)
    for number, (node, cost) in enumerate(zip(graph.nodes, parts, strict=True)):
        found[f"macs_third{min(_THIRDS - 1, (level[number] - 1) * _THIRDS // deepest)}"] += cost.macs
        shape = node.shapes[0]
        if side and shape and len(shape) == 4 and isinstance(shape[3], int) and shape[3] > 0:
            times = min(_HALVINGS - 1, max(0, round(math.log2(side / shape[3]))))
            found[f"macs_halved{times}"] += cost.macs
            found[f"activations_halved{times}"] += cost.activations
    return {name: math.log10(1 + value) for name, value in found.items()}


def _side(graph: Graph) -> int:
    """The width of the image that comes in; 0 without one."""
    shapes = [value.shape for value in graph.inputs if value.shape and len(value.shape) == 4]
    return next((shape[3] for shape in shapes if isinstance(shape[3], int)), 0)


def _form(graph: Graph, parts: Sequence[Cost], alive: Sequence[bool], steps: Sequence[Step]) -> dict[str, float]:
    found = dict.fromkeys(_FORM_NAMES, math.nan)
    channels = [
        shape[1] for node in graph.nodes if (shape := node.shapes[0]) and len(shape) > 2 and isinstance(shape[1], int)
    ]
    sequence = [value.shape[1] for value in graph.inputs if value.shape and len(value.shape) in (2, 3)]
    open_values = _open_values(graph)
    weighted = [step.kind in ("conv", "depthwise", "product") for step in steps]
    macs = sum(cost.macs for cost in parts)
    dead_macs = sum(cost.macs for cost, lives in zip(parts, alive, strict=True) if not lives)
    found["depth"] = math.log10(1 + depth(graph))
    found["largest_node_macs"] = math.log10(1 + max((cost.macs for cost in parts), default=0))
    found["input_elements"] = math.log10(1 + sum(elements(value.shape) for value in graph.inputs))
    found["input_side"] = float(_side(graph))
    found["output_elements"] = math.log10(1 + sum(elements(graph.shape(operand)) for operand in graph.outputs))
    if channels:
        found["channels_max"], found["channels_mean"] = math.log10(1 + max(channels)), math.log10(1 + np.mean(channels))
    if sequence and isinstance(sequence[0], int):
        found["sequence"] = math.log10(1 + sequence[0])
    found["open_values_max"] = float(max(open_values, default=0))
    found["open_values_mean"] = float(np.mean(open_values)) if open_values else 0.0
    found["shortcuts"] = math.log10(1 + _shortcuts(steps, weighted))
    found["paths"] = path_logs(steps)[-1] if steps else 0.0
    found["reaches_output"] = float(any(alive))
    found["dead_share_macs"] = dead_macs / macs if macs else 0.0
    found["dead_share_nodes"] = 1 - sum(alive) / len(alive) if alive else 0.0
    field, pooled = _receptive_field(graph, steps)
    found["receptive_field"], found["pooled_paths"] = math.log10(1 + field), pooled
    return found


def _open_values(graph: Graph) -> list[int]:
    """After each node, how many results are still to be read: the width of the graph."""
    last = list(range(len(graph.nodes)))
    for number, node in enumerate(graph.nodes):
        for ref in node.refs:
            if ref.node >= 0:
                last[ref.node] = number
    ends = [0] * (len(graph.nodes) + 1)
    for end in last:
        ends[end] += 1
    count, found = 0, []
    for number in range(len(graph.nodes)):
        count += 1
        found.append(count)
        count -= ends[number]
    return found


def _shortcuts(steps: Sequence[Step], weighted: Sequence[bool]) -> int:
    """Joins of which one side skips operators with weight that the other side passes."""
    longest: list[int] = []
    count = 0
    for number, step in enumerate(steps):
        before = [longest[source] if source >= 0 else 0 for source in step.sources]
        if step.kind == "join" and len(set(before)) > 1:
            count += 1
        longest.append(max(before, default=0) + weighted[number])
    return count


def _receptive_field(graph: Graph, steps: Sequence[Step]) -> tuple[float, float]:
    """The widest window of input pixels behind one output pixel, and the least number of pools on a path."""
    field: list[tuple[float, float]] = []
    pools: list[int] = []
    for step in steps:
        node = graph.nodes[step.node]
        size, jump = max((field[source] if source >= 0 else (1.0, 1.0) for source in step.sources), default=(1.0, 1.0))
        if step.kind in ("conv", "depthwise", "pool"):
            size, jump = min(1e9, size + (kernel_of(node) - 1) * jump), min(1e9, jump * stride_of(node))
        field.append((size, jump))
        before = min((pools[source] if source >= 0 else 0 for source in step.sources), default=0)
        pools.append(before + (step.kind == "pool"))
    return max((size for size, _ in field), default=1.0), float(pools[-1]) if pools else 0.0


def _paths(graph: Graph, steps: Sequence[Step], variances: Mapping[int, float]) -> dict[str, float]:
    """Lengths of paths to the output: all paths alike, each source of a join alike, or by share of its signal."""
    found = dict.fromkeys(_PATH_NAMES, 0.0)
    if not steps:
        return found
    counts = {
        "weighted": [float(step.kind in ("conv", "depthwise", "product")) for step in steps],
        "wide": [float(step.kind != "pool" and kernel_of(graph.nodes[step.node]) > 1) for step in steps],
        "pools": [float(step.kind == "pool") for step in steps],
    }
    logs = path_logs(steps)
    shares: dict[str, list[list[float]]] = {"paths": [], "even": [], "signal": []}
    for step in steps:
        before = [logs[source] if source >= 0 else 0.0 for source in step.sources]
        shares["paths"].append([math.exp(value - max(before)) for value in before])
        shares["even"].append([1.0] * len(before))
        shares["signal"].append(
            [variances.get(steps[source].node, 1.0) if source >= 0 else 1.0 for source in step.sources]
        )
    for count, weights in counts.items():
        for weight, share in shares.items():
            last = lengths(steps, weights, share)
            for name in _LENGTH_NAMES:
                found[f"{count}_{weight}_{name}"] = getattr(last, name)
    return found


def _hashed(prefix: str, counts: Mapping[str, float], size: int) -> dict[str, float]:
    found = np.zeros(size)
    for label, count in counts.items():
        found[bucket(label, size)] += count
    return {f"{prefix}_{number}": math.log10(1 + value) for number, value in enumerate(found)}


def _log(value: float | None) -> float:
    return math.log10(value) if value and value > 0 else math.nan


def _log_number(text: str | None) -> float:
    try:
        return _log(float(text)) if text is not None else math.nan
    except ValueError:
        return math.nan
