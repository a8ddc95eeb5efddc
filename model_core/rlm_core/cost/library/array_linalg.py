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


def _matmul(call: Call) -> Value:
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


def _outer(call: Call) -> Value:
    left, right = as_array(call, argument(call, 0, "a")), as_array(call, argument(call, 1, "b"))
    if left is None or right is None:
        return lost(call, "numpy.outer")
    shape = (left.size or ONE, right.size or ONE)
    result = array(shape, promoted(left, right))
    call.spend(seconds("numpy.outer", result.size))
    call.spend(moved_bytes(fresh=[result.bytes]))
    return result


def _einsum(call: Call) -> Value:
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


def _tensordot(call: Call) -> Value:
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


def _linalg(name: str, result: Callable[[Value], Value], copies: float) -> Rule:
    """A decomposition of square matrices, with ``copies`` of the matrix in work space."""

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
        return result(value)

    return rule


def _same(value: Value) -> Value:
    return array(value.shape or (), "float64")


def _diagonal_sized(value: Value) -> Value:
    return array((value.shape or (ONE,))[:-1], "float64")


def _number_result(value: Value) -> Value:
    batch = (value.shape or ())[:-2]
    return array(batch) if batch else boxed("float64")


def _pair(first: Callable[[Value], Value], second: Callable[[Value], Value]) -> Callable[[Value], Value]:
    def result(value: Value) -> Value:
        a, b = first(value), second(value)
        return Value("tuple", size=constant(2), item=a, bytes=a.bytes + b.bytes, payload=(a, b))

    return result


def _svd_result(value: Value) -> Value:
    a, b = _same(value), _diagonal_sized(value)
    return Value("tuple", size=constant(3), item=a, bytes=a.bytes + b.bytes + a.bytes, payload=(a, b, a))


def _complex(make: Callable[[Value], Value]) -> Callable[[Value], Value]:
    return lambda value: array(make(value).shape or (), "complex128")


def _solve(call: Call) -> Value:
    matrix, target = as_array(call, argument(call, 0, "a")), as_array(call, argument(call, 1, "b"))
    if matrix is None or target is None or not matrix.shape:
        return lost(call, "numpy.linalg.solve")
    call.spend(seconds("numpy.linalg.solve", matrix.shape[-1]))
    call.allocate(bytes_of(matrix))
    return array(target.shape or ())


def _lstsq(call: Call) -> Value:
    matrix = as_array(call, argument(call, 0, "a"))
    if matrix is None or len(matrix.shape or ()) < 2:
        return lost(call, "numpy.linalg.lstsq")
    rows, columns = (matrix.shape or (ONE, ONE))[-2:]
    call.spend(seconds("numpy.linalg.lstsq", (rows * columns * columns).power(1 / 3)))
    call.allocate(bytes_of(matrix).times(2.0))
    solution = array((columns,))
    return Value("tuple", size=constant(4), item=solution, bytes=solution.bytes, payload=(solution,))


def _covariance(call: Call) -> Value:
    value = as_array(call, argument(call, 0, "m", "x"))
    if value is None or not value.shape:
        return lost(call, "numpy.matmul")
    rows = value.shape[0] if len(value.shape) == 2 else ONE
    columns = value.shape[-1]
    call.spend(seconds("numpy.matmul", (rows * rows * columns).times(1.2)))
    call.spend(seconds("numpy.std", value.size))
    call.allocate(bytes_of(value))
    return array((rows, rows))


def _fft(name: str, dtype: str, *, half: bool = False) -> Rule:
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
        result = array((*value.shape[:-1], last), dtype)
        call.spend(moved_bytes(fresh=[result.bytes]))
        return result

    return rule


_FUNCTIONS: dict[str, Rule] = {
    **dict.fromkeys(("dot", "matmul", "inner", "vdot"), _matmul),
    "outer": _outer,
    "einsum": _einsum,
    "tensordot": _tensordot,
    **dict.fromkeys(("cov", "corrcoef"), _covariance),
    "linalg.inv": _linalg("numpy.linalg.inv", _same, 2),
    "linalg.pinv": _linalg("numpy.linalg.pinv", _same, 4),
    "linalg.det": _linalg("numpy.linalg.det", _number_result, 1),
    "linalg.slogdet": _linalg("numpy.linalg.det", _pair(_number_result, _number_result), 1),
    "linalg.cholesky": _linalg("numpy.linalg.cholesky", _same, 1),
    "linalg.qr": _linalg("numpy.linalg.qr", _pair(_same, _same), 2),
    "linalg.svd": _linalg("numpy.linalg.svd", _svd_result, 6),
    "linalg.svdvals": _linalg("numpy.linalg.svdvals", _diagonal_sized, 1),
    "linalg.eig": _linalg("numpy.linalg.eig", _pair(_complex(_diagonal_sized), _complex(_same)), 5),
    "linalg.eigvals": _linalg("numpy.linalg.eigvals", _complex(_diagonal_sized), 1),
    "linalg.eigh": _linalg("numpy.linalg.eigh", _pair(_diagonal_sized, _same), 3),
    "linalg.eigvalsh": _linalg("numpy.linalg.eigvalsh", _diagonal_sized, 1),
    "linalg.matrix_rank": _linalg("numpy.linalg.svdvals", _number_result, 1),
    "linalg.cond": _linalg("numpy.linalg.svdvals", _number_result, 1),
    "linalg.solve": _solve,
    "linalg.lstsq": _lstsq,
    **dict.fromkeys(("fft.fft", "fft.ifft", "fft.fft2", "fft.ifft2", "fft.fftn"), _fft("numpy.fft", "complex128")),
    "fft.rfft": _fft("numpy.rfft", "complex128", half=True),
}
FUNCTIONS: dict[str, Rule] = {f"numpy.{name}": rule for name, rule in _FUNCTIONS.items()}
METHODS: dict[tuple[str, str], Rule] = {
    **{("array", name): _FUNCTIONS[name] for name in ("dot",)},
}
OPERATORS: dict[tuple[str, str], Rule] = {("array", "@"): _matmul}
