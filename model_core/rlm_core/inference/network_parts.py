"""The kernels of a predicted network -> what limits it, and its most expensive operators, as part of the prediction."""

from __future__ import annotations

from collections.abc import Sequence

from rlm_core.types import NetworkParts, OperatorCost

SHOWN = 10
"""The number of operators that are kept: a chart shows so many."""


def network_parts(costs: Sequence[float], labels: Sequence[str], arithmetic: float, once: float) -> NetworkParts:
    """The parts of a latency.

    Args:
        costs: seconds of each kernel of the network.
        labels: their names for people; kernels with the same name are the same operator of repeated blocks.
        arithmetic: the share of the time that grows with multiply-accumulates.
        once: the share of the time that a batch of any size takes.
    """
    seconds: dict[str, list[float]] = {}
    for cost, label in zip(costs, labels, strict=True):
        seconds.setdefault(label, []).append(cost)
    total = sum(costs)
    most = sorted(seconds, key=lambda label: -sum(seconds[label]))[:SHOWN]
    operators = tuple(
        OperatorCost(label, len(seconds[label]), sum(seconds[label]), sum(seconds[label]) / total) for label in most
    )
    return NetworkParts(arithmetic, operators, len(costs), once)
