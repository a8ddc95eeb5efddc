"""Rules for numpy.linalg, products of arrays, and Fourier transforms: time per floating-point operation."""

from __future__ import annotations

from collections.abc import Callable

from ..domain.quantities import ONE, constant
from ..domain.values import Call, Value
from .array_values import (
    Shape,
    array,
    as_array,
    boxed,
    broadcast,
    bytes_of,
    count_of,
    elementwise,
    lost,
    promoted,
)
from .rules import Rule, argument
from .unit_costs import primitive, seconds


def matmul(call: Call) -> Value:
    operands = [call.receiver, *call.args] if call.receiver is not None else list(call.args)
    if len(operands) < 2:
        return lost(call, "numpy.matmul")
    left, right = as_array(call, operands[0]), as_array(call, operands[1])
    if left is None or right is None or left.shape is None or right.shape is None:
        return lost(call, "numpy.matmul")
    for given, value in ((operands[0], left), (operands[1], right)):
        if given.kind in ("list", "tuple"):
            call.spend(seconds("numpy.array", value.size))
    return _product(call, left, right)


def _product(call: Call, left: Value, right: Value) -> Value:
    a, b = left.shape or (), right.shape or ()
    dtype = promoted(left, right)
    if not a or not b:
        return elementwise(call, "numpy.add", [left, right], dtype, by_bytes=True)
    if len(a) == 1 and len(b) == 1:
        call.spend(seconds("numpy.dot", a[0].times(left.itemsize / 8)))
        return boxed(dtype)
    inner = a[-1]
    if len(b) == 1:
        shape: Shape = a[:-1]
    elif len(a) == 1:
        shape = (*b[:-2], b[-1])
    else:
        shape = (*broadcast(a[:-2], b[:-2]), a[-2], b[-1])
    result = array(shape, dtype)
    flops = (count_of(shape) * inner).times(2.0)
    if dtype[0] not in "fc":
        call.spend(seconds("numpy.matmul.int", flops))
    elif len(a) == 1 or len(b) == 1:
        call.spend(seconds("numpy.matvec", flops.times(0.5 * result.itemsize / 8)))
    else:
        call.spend(seconds("numpy.matmul", flops.times(result.itemsize / 8 if dtype != "complex128" else 4.0)))
    return result


def decomposition(name: str, copies: float, parts: str, dtype: str = "float64") -> Rule:
    """A decomposition of square matrices, with ``copies`` of the matrix in work space, and its results."""
    makers = [_RESULTS[part] for part in parts.split()]

    def rule(call: Call) -> Value:
        value = as_array(call, argument(call, 0, "a", "x"))
        if value is None or len(value.shape or ()) < 2:
            return lost(call, name)
        shape = value.shape or ()
        matrices = count_of(shape[:-2])
        rows, columns = shape[-2], shape[-1]
        side = rows if rows == columns else (rows * columns).power(0.5)
        start = constant(primitive(name))
        call.spend(start + (seconds(name, side) - start) * matrices)
        call.allocate((rows * columns).times(8.0 * copies))
        results = tuple(maker(shape, dtype) for maker in makers)
        if len(results) == 1:
            return results[0]
        held = sum((result.bytes for result in results[1:]), results[0].bytes)
        return Value("tuple", size=constant(len(results)), item=results[0], bytes=held, payload=results)

    return rule


def _number_per_matrix(shape: Shape, dtype: str) -> Value:
    return array(shape[:-2], dtype) if shape[:-2] else boxed(dtype)


_RESULTS: dict[str, Callable[[Shape, str], Value]] = {
    "matrix": array,
    "diagonal": lambda shape, dtype: array(shape[:-1], dtype),
    "number": _number_per_matrix,
}


def solve(call: Call) -> Value:
    matrix, target = as_array(call, argument(call, 0, "a")), as_array(call, argument(call, 1, "b"))
    if matrix is None or target is None or not matrix.shape:
        return lost(call, "numpy.linalg.solve")
    call.spend(seconds("numpy.linalg.solve", matrix.shape[-1]))
    call.allocate(bytes_of(matrix))
    return array(target.shape or ())


def fourier(name: str, *, half: bool = False) -> Rule:
    def rule(call: Call) -> Value:
        value = as_array(call, argument(call, 0, "a"))
        if value is None or not value.shape:
            return lost(call, name)
        size = value.size or ONE
        call.spend(seconds(name, size))
        if not half:
            call.allocate(size.times(16))
        last = value.shape[-1].times(0.5) + ONE if half else value.shape[-1]
        return array((*value.shape[:-1], last), "complex128")

    return rule
