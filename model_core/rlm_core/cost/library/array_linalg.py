"""Rules for numpy.linalg, products of arrays, and Fourier transforms: time per floating-point operation."""

from __future__ import annotations

from collections.abc import Callable

from ..domain.quantities import ONE, Quantity, constant
from ..domain.values import UNKNOWN, Call, Value
from .array_values import (
    Shape,
    array,
    as_array,
    boxed,
    broadcast,
    bytes_of,
    count_of,
    elementwise,
    integer,
    is_large,
    lost,
    moved_bytes,
    promoted,
)
from .rules import Rule, argument
from .unit_costs import each, primitive, seconds


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
        call.spend(moved_bytes(bytes_of(left)))
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
        call.spend(moved_bytes(bytes_of(left) + bytes_of(right)))
    else:
        call.spend(seconds("numpy.matmul", flops.times(result.itemsize / 8 if dtype != "complex128" else 4.0)))
    call.spend(moved_bytes(fresh=[result.bytes]))
    return result


def outer(call: Call) -> Value:
    left, right = as_array(call, argument(call, 0, "a")), as_array(call, argument(call, 1, "b"))
    if left is None or right is None:
        return lost(call, "numpy.outer")
    shape = (left.size or ONE, right.size or ONE)
    result = array(shape, promoted(left, right))
    call.spend(seconds("numpy.outer", result.size))
    call.spend(moved_bytes(fresh=[result.bytes]))
    return result


def einsum(call: Call) -> Value:
    """Products over all letters of the subscripts."""
    pattern = argument(call, 0, "subscripts").constant
    operands = [as_array(call, value) for value in call.args[1:]]
    if not isinstance(pattern, str) or any(value is None for value in operands):
        return lost(call, "numpy.einsum")
    pattern = pattern.replace(" ", "")
    inputs, arrow, output = pattern.partition("->")
    lengths: dict[str, Quantity] = {}
    for letters, value in zip(inputs.split(","), operands, strict=False):
        lengths |= zip(letters, (value.shape or ()) if value is not None else (), strict=False)
    if not arrow:
        output = "".join(sorted(letter for letter in lengths if inputs.count(letter) == 1))
    call.spend(seconds("numpy.einsum", count_of(lengths.values())))
    shape = tuple(lengths.get(letter, ONE) for letter in output)
    return array(shape) if shape else boxed("float64")


def tensordot(call: Call) -> Value:
    left, right = as_array(call, argument(call, 0, "a")), as_array(call, argument(call, 1, "b"))
    axes = argument(call, 2, "axes")
    if left is None or right is None:
        return lost(call, "numpy.matmul")
    given = integer(axes)
    if given is None and axes is not UNKNOWN:
        return lost(call, "numpy.matmul")
    count = 2 if given is None else given
    a, b = left.shape or (), right.shape or ()
    kept = (*a[: len(a) - count], *b[count:])
    flops = (count_of(a) * count_of(b[count:])).times(2.0)
    call.spend(seconds("numpy.matmul", flops))
    return array(kept, promoted(left, right)) if kept else boxed("float64")


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


def lstsq(call: Call) -> Value:
    matrix = as_array(call, argument(call, 0, "a"))
    if matrix is None or len(matrix.shape or ()) < 2:
        return lost(call, "numpy.linalg.lstsq")
    rows, columns = (matrix.shape or (ONE, ONE))[-2:]
    call.spend(seconds("numpy.linalg.lstsq", (rows * columns * columns).power(1 / 3)))
    call.allocate(bytes_of(matrix).times(2.0))
    solution = array((columns,))
    return Value("tuple", size=constant(4), item=solution, bytes=solution.bytes, payload=(solution,))


def covariance(call: Call) -> Value:
    value = as_array(call, argument(call, 0, "m", "x"))
    if value is None or not value.shape:
        return lost(call, "numpy.matmul")
    rows = value.shape[0] if len(value.shape) == 2 else ONE
    columns = value.shape[-1]
    call.spend(seconds("numpy.matmul", (rows * rows * columns).times(1.2)))
    call.spend(seconds("numpy.std", value.size))
    call.allocate(bytes_of(value))
    return array((rows, rows))


def fourier(name: str, *, half: bool = False) -> Rule:
    def rule(call: Call) -> Value:
        value = as_array(call, argument(call, 0, "a"))
        if value is None or not value.shape:
            return lost(call, name)
        size = value.size or ONE
        call.spend(seconds(name, size))
        if not half:
            call.allocate(size.times(16))
        if is_large(value):
            call.spend(size.times(each("numpy.fft") * 2))
        last = value.shape[-1].times(0.5) + ONE if half else value.shape[-1]
        result = array((*value.shape[:-1], last), "complex128")
        call.spend(moved_bytes(fresh=[result.bytes]))
        return result

    return rule
