"""Shapes and costs of PyTorch code, read out of its source text; nothing is run."""

from .recorder import KINDS, Fused, Operation, Trace, fuse
from .tracing import trace

__all__ = ["KINDS", "Fused", "Operation", "Trace", "fuse", "trace"]
