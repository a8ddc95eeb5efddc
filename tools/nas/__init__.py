"""Networks of NAS benchmarks: architecture codes -> ONNX graphs -> rows with measured accuracy and latency."""

from .builder import Builder

__all__ = ["Builder"]
