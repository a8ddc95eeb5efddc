"""The operations of a traced forward pass with their sizes, and their memory traffic with fusion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..concrete.frame import Budget, LimitReached
from .values import WIDTH, Shape, Tensor, as_shape

KINDS = (
    "gemm", "conv", "elementwise", "reduction", "normalisation", "attention", "pooling", "gather", "scan", "rnn",
    "other",
)  # fmt: skip
FUSABLE = frozenset({"elementwise", "reduction", "normalisation", "gather", "pooling"})
_MAX_OPERATIONS = 20_000
_MAX_STEPS = 150_000
_MAX_ITERATIONS = 400  # a longer loop is traced that far and counts as not understood


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on tensors.

    ``macs`` are multiply-accumulates of products, ``flops`` other arithmetic; ``read`` and ``written`` are bytes;
    ``weights`` is in elements; ``kernels`` is the number of launches in eager mode; ``inputs`` pairs the operation that
    wrote an input (-1: none) with the bytes read from it.
    """

    name: str
    kind: str
    shape: Shape
    dtype: str
    macs: float
    flops: float
    read: float
    written: float
    weights: float
    kernels: int
    inputs: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """One forward pass as far as it follows from its source text.

    ``unknown`` counts the calls whose result had to be guessed, ``views`` the operations that move no data;
    ``complete`` is False when a limit cut the trace short.
    """

    operations: tuple[Operation, ...] = ()
    unknown: int = 0
    views: int = 0
    parameters: int = 0
    input_elements: int = 0
    inputs: tuple[Shape, ...] = ()
    outputs: tuple[Shape, ...] = ()
    complete: bool = False


@dataclass(frozen=True, slots=True)
class FusedTraffic:
    """Bytes and launches that stay with an operation when neighbouring pointwise work is fused."""

    read: float
    written: float
    kernels: int


class Recorder(Budget):
    """Collects the operations of a trace, within limits on steps and operations."""

    def __init__(self, most_steps: int = _MAX_STEPS, most_iterations: int = _MAX_ITERATIONS) -> None:
        super().__init__(most_steps)
        self.operations: list[Operation] = []
        self.unknown = 0
        self.views = 0
        self.dtype = "fp32"
        self.most_iterations = most_iterations
        self.repeated = 1.0  # how often what is recorded happens: more than once in loops that are followed in part

    def add(
        self, name: str, kind: str, inputs: Sequence[Tensor], shape: Sequence[int], *, dtype: str | None = None,
        macs: float = 0.0, flops: float = 0.0, passes: float = 1.0, weights: float = 0.0, kernels: int = 1,
    ) -> Tensor:  # fmt: skip
        """Record an operation and return its output; ``passes`` is how often the inputs are read.

        Raises:
            LimitReached: there are too many operations.
            ValueError: the output is not a shape.
        """
        if len(self.operations) >= _MAX_OPERATIONS:
            raise LimitReached
        dtype = dtype or promote([tensor.dtype for tensor in inputs]) or self.dtype
        output = Tensor(as_shape(shape), dtype, len(self.operations))
        reads = tuple((tensor.source, passes * float(tensor.bytes)) for tensor in inputs)
        read = sum(size for _, size in reads) + weights * WIDTH.get(dtype, 4)
        operation = Operation(
            name, kind, output.shape, dtype, float(macs), float(flops), float(read), float(output.bytes),
            float(weights), kernels, reads,
        )  # fmt: skip
        self.operations.append(operation)
        return output


_RANK = {name: rank for rank, name in enumerate((
    "bool", "uint8", "int8", "int16", "int32", "int64", "fp8", "fp16", "bf16", "tf32", "fp32", "fp64", "complex64",
    "complex128",
))}  # fmt: skip


def promote(dtypes: Sequence[str]) -> str | None:
    """The dtype of an operation on tensors of these dtypes (the wider one); None for none."""
    return max(dtypes, key=lambda name: _RANK.get(name, 0), default=None)


def fuse(operations: Sequence[Operation]) -> list[FusedTraffic]:
    """Memory traffic when every chain of fusable operations keeps its intermediate tensors in registers.

    A tensor is written only if an operation outside such chains, or nothing, reads it; a fused operation launches no
    kernel. That is the bound that a fusing compiler approaches.
    """
    readers: dict[int, list[str]] = {}
    for operation in operations:
        for source, _ in operation.inputs:
            readers.setdefault(source, []).append(operation.kind)
    fused = []
    for index, operation in enumerate(operations):
        if operation.kind not in FUSABLE:
            fused.append(FusedTraffic(operation.read, operation.written, operation.kernels))
            continue
        inside = sum(size for source, size in operation.inputs if source >= 0 and operations[source].kind in FUSABLE)
        kinds = readers.get(index, [])
        joined = bool(kinds) and all(kind in FUSABLE for kind in kinds)
        fused.append(FusedTraffic(operation.read - inside, 0.0 if joined else operation.written, 0 if joined else 1))
    return fused
