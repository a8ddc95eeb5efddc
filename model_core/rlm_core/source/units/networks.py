"""Networks: the compact text of an ONNX graph is one unit."""

from __future__ import annotations

from rlm_core.types import Span, Unit


def find_network(source: bytes) -> Unit:
    """The whole text as a unit; its name is the first line, which tells the inputs."""
    lines = source.split(b"\n")
    whole = Span(0, 0, len(lines) - 1, len(lines[-1]), 0, len(source))
    first = Span(0, 0, 0, len(lines[0]), 0, len(lines[0]))
    return Unit("network", "onnx", "network", source.decode("utf-8", errors="replace"), whole, first, first)
