"""How a signal passes through a network with random weights of infinite width: closed forms, nothing is run.

A value is a sum of independent sources (the output of each layer with weights is one), so a sum of a value and a
function of it is right about what they share. For each source we follow the variance and, for two pairs of inputs
(alike and unlike), the correlation; ReLU by the arc-cosine kernels (Cho and Saul 2009), depth as in mean-field theory
(Schoenholz et al., arXiv 1611.01232), gradients by the recursion of the neural tangent kernel (arXiv 1806.07572).
Pooling keeps the smooth part of a signal and a ninth of the variance of the rest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .graph import GLOBAL_POOLS, POOLS, PRODUCTS, Constant, Edge, Graph, Node

_ALIKE, _UNLIKE = 0.9, 0.0  # correlation of the two pairs of inputs
_SMOOTH = 0.5  # share of an input's variance that pooling keeps
_POOLED = 1 / 9
_ROUGHENED = 0.9  # of the smooth share is left after a nonlinearity
_MOST_SOURCES = 256
_GATES = ("Relu", "Swish", "Gelu", "Clip", "Mish", "Elu", "Selu", "Celu")
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class SignalSource:
    """A source of variance 1: the correlations of both pairs, and the share that is smooth in space."""

    alike: float
    unlike: float
    smooth: float


@dataclass(frozen=True, slots=True)
class Signal:
    """``variances`` by node; ``summary``: (variance, similarity, gradient, kernel, conditioning, smooth) at the output.

    Variance and kernel as log10; similarity: correlation left of unlike inputs and of alike ones, their difference;
    gradient: log10 of its decay from the last to the first layer with weights; conditioning: kernel of unlike inputs
    against that of equal ones.
    """

    variances: Mapping[int, float]
    summary: tuple[float, float, float, float, float, float]


@dataclass(frozen=True, slots=True)
class _Moments:
    variance: float
    alike: float
    unlike: float
    smooth: float


_Value = dict[int, float]


class _Forward:
    """The forward pass: coefficients of sources by value."""

    def __init__(self, graph: Graph) -> None:
        self.sources: list[SignalSource] = []
        self.values: dict[Edge, _Value] = {}
        for number in range(len(graph.inputs)):
            self.values[Edge(-1, number)] = self.fresh(1.0, SignalSource(_ALIKE, _UNLIKE, _SMOOTH))

    def fresh(self, variance: float, source: SignalSource) -> _Value:
        self.sources.append(source)
        return {len(self.sources) - 1: math.sqrt(max(0.0, variance))}

    def moments(self, value: _Value) -> _Moments:
        variance = alike = unlike = smooth = 0.0
        for number, weight in value.items():
            source, square = self.sources[number], weight * weight
            variance += square
            alike += square * source.alike
            unlike += square * source.unlike
            smooth += square * source.smooth
        return _Moments(variance, alike, unlike, smooth)

    def node(self, node: Node, inputs: Sequence[_Value]) -> _Value:
        first = self.moments(inputs[0])
        if node.operator in PRODUCTS:
            return self._mixed(first, first.variance)
        if node.operator.endswith("Normalization"):
            return self._normalized(inputs[0], first)
        if node.operator in POOLS or node.operator in GLOBAL_POOLS:
            return self._pooled(inputs[0], 0.0 if node.operator in GLOBAL_POOLS else _POOLED)
        if node.operator.endswith(_GATES):
            return self._gated(inputs[0], first)
        if len(inputs) == 1:
            return inputs[0]
        if node.operator == "Mul":
            parts = [self.moments(value) for value in inputs]
            variance = math.prod(min(1e6, part.variance) for part in parts)
            return self._mixed(parts[0], variance)
        scale = 1 / math.sqrt(len(inputs)) if node.operator in ("Concat", "Mean") else 1.0
        return self._sum(inputs, scale)

    def _mixed(self, moments: _Moments, variance: float) -> _Value:
        """A layer with weights mixes all sources into one."""
        whole = moments.variance or 1.0
        source = SignalSource(moments.alike / whole, moments.unlike / whole, moments.smooth / whole)
        return self.fresh(variance, source)

    def _normalized(self, value: _Value, moments: _Moments) -> _Value:
        """Removes the mean over inputs, which is what unlike inputs share."""
        left = max(_TINY, moments.variance - moments.unlike)
        if len(value) == 1:
            whole = moments.variance or 1.0
            share = min(1 - 1e-9, moments.unlike / whole)
            alike = (moments.alike / whole - share) / (1 - share)
            return self.fresh(1.0, SignalSource(alike, 0.0, moments.smooth / whole))
        return {number: weight / math.sqrt(left) for number, weight in value.items()}

    def _pooled(self, value: _Value, rough: float) -> _Value:
        weights: _Value = {}
        for number, weight in value.items():
            source = self.sources[number]
            kept = source.smooth + (1 - source.smooth) * rough
            # What is left of a source is smoother than the source: a separate source with the same kernel.
            self.sources.append(SignalSource(source.alike, source.unlike, source.smooth / kept if kept else 1.0))
            weights[len(self.sources) - 1] = weight * math.sqrt(kept)
        return weights

    def _gated(self, value: _Value, moments: _Moments) -> _Value:
        """ReLU(v) = v / 2 + |v| / 2; the second term is uncorrelated with the first."""
        weights = {number: weight / 2 for number, weight in value.items()}
        variance = moments.variance / 4
        if variance <= 0:
            return weights
        whole = moments.variance
        alike = (arc_cosine(moments.alike / whole) - moments.alike / whole / 4) * 4
        unlike = (arc_cosine(moments.unlike / whole) - moments.unlike / whole / 4) * 4
        return weights | self.fresh(variance, SignalSource(alike, unlike, _ROUGHENED * moments.smooth / whole))

    def _sum(self, inputs: Sequence[_Value], scale: float) -> _Value:
        weights: _Value = {}
        for value in inputs:
            for number, weight in value.items():
                weights[number] = weights.get(number, 0.0) + weight * scale
        if len(weights) > _MOST_SOURCES:
            moments = self.moments(weights)
            return self._mixed(moments, moments.variance)
        return weights


def arc_cosine(correlation: float) -> float:
    """E[relu(a) relu(b)] of unit Gaussians; 1/2 at correlation 1."""
    rho = min(1.0, max(-1.0, correlation))
    return (math.sqrt(1 - rho * rho) + rho * (math.pi - math.acos(rho))) / (2 * math.pi)


def arc_cosine_slope(correlation: float) -> float:
    """E[relu'(a) relu'(b)] of unit Gaussians; 1/2 at correlation 1."""
    return (math.pi - math.acos(min(1.0, max(-1.0, correlation)))) / (2 * math.pi)


def propagate(graph: Graph, alive: Sequence[bool]) -> Signal:
    """Propagate forward through the live nodes for variances, backward for gradients."""
    forward = _Forward(graph)
    before: dict[int, list[Edge]] = {}
    moments: dict[Edge, _Moments] = {ref: forward.moments(value) for ref, value in forward.values.items()}
    for number, node in enumerate(graph.nodes):
        if not alive[number]:
            continue
        before[number] = [ref for ref in node.refs if ref in forward.values]
        value = forward.node(node, [forward.values[ref] for ref in before[number]])
        for output in range(len(node.shapes)):
            ref = Edge(number, output)
            forward.values[ref], moments[ref] = value, forward.moments(value)
    ends = [operand for operand in graph.outputs if isinstance(operand, Edge) and operand in moments]
    if not before or not ends:
        return Signal({}, (0.0,) * 6)
    last = moments[ends[0]]
    whole = last.variance or 1.0
    gradient, kernel, conditioning = _backward(graph, before, moments, ends)
    summary = (
        math.log10(_TINY + last.variance),
        (last.alike - last.unlike) / whole,
        gradient,
        math.log10(_TINY + kernel),
        conditioning,
        last.smooth / whole,
    )
    return Signal({ref.node: value.variance for ref, value in moments.items() if ref.node >= 0}, summary)


def _backward(
    graph: Graph, before: Mapping[int, Sequence[Edge]], moments: Mapping[Edge, _Moments], ends: Sequence[Edge]
) -> tuple[float, float, float]:
    """Decay of the gradient from last to first layer with weights; kernel of equal inputs, share of unlike ones."""
    slopes: dict[Edge, tuple[float, float]] = dict.fromkeys(ends, (1.0, 1.0))
    kernel = unlike = 0.0
    layers: list[float] = []
    for number in reversed(list(before)):
        node = graph.nodes[number]
        same, cross = slopes.get(Edge(number), (0.0, 0.0))
        if not before[number] or not same:
            continue
        entering = moments[before[number][0]]
        if node.operator in PRODUCTS and len(node.operands) > 1 and isinstance(node.operands[1], Constant):
            kernel += same * entering.variance
            unlike += cross * entering.unlike
            layers.append(same)
        gain, cross_gain = _gain(node, entering)
        for ref in before[number]:
            old = slopes.get(ref, (0.0, 0.0))
            slopes[ref] = min(1e30, old[0] + same * gain), min(1e30, old[1] + cross * cross_gain)
    if not layers:
        return 0.0, 0.0, 0.0
    decay = math.log10((layers[-1] + _TINY) / (layers[0] + _TINY))
    return decay, kernel, unlike / kernel if kernel else 0.0


def _gain(node: Node, entering: _Moments) -> tuple[float, float]:
    if node.operator.endswith("Normalization"):
        return (1 / max(_TINY, entering.variance - entering.unlike),) * 2
    if node.operator in POOLS:
        kept = _SMOOTH + (1 - _SMOOTH) * _POOLED
        return kept, kept
    if node.operator.endswith(_GATES):
        whole = entering.variance or 1.0
        return 0.5, arc_cosine_slope(entering.unlike / whole)
    return 1.0, 1.0
