"""Entries of numpy: creation, elementwise operations, reductions, sorting, linear algebra, and memory traffic.

Elements are float64 unless the name says otherwise. Sizes stay in the second-level cache; ``numpy.stream``,
``numpy.page`` and ``numpy.far`` are what larger arrays cost more per byte or element.
"""

from __future__ import annotations

from .entries import Entry, step

_NUMPY = "import numpy as np\n"
_RANDOM = _NUMPY + "rng = np.random.default_rng(0)\n"
_FLOATS = _RANDOM + "a = rng.random(n) + .5\n"
_INTEGERS = _RANDOM + "a = rng.integers(1, 1000, n)\n"
_MATRIX = _RANDOM + "a = rng.random((n, n)) + np.eye(n) * n\n"
_CACHED = (10, 1_000, 30_000)
_MATRICES = (3, 30, 100, 300)


def _array(name: str, snippet: str, setup: str = _FLOATS, *, law: str = "n", sizes: tuple[int, ...] = _CACHED) -> Entry:
    return Entry(f"numpy.{name}", snippet, setup, law, sizes)


ENTRIES = (
    # Memory: n is a number of bytes, for `far` one of elements.
    Entry(
        "numpy.page", "np.empty(n, 'u1').fill(1)", _NUMPY + "a = np.ones(n, 'u1')", "n", (1 << 26, 1 << 27), "a.fill(1)"
    ),
    Entry(
        "numpy.page.small",
        "m = mmap.mmap(-1, n, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\nnp.frombuffer(m, 'u1').fill(1)\ndel m",
        _NUMPY + "import mmap\na = np.ones(n, 'u1')",
        "n",
        (1 << 18, 1 << 21),
        "a.fill(1)",
    ),
    Entry(
        "numpy.stream",
        "a.max()",
        _NUMPY + "a = np.ones(n // 8)\nb = np.ones(1 << 13)\nturns = range(n // 8 >> 13)",
        "n",
        (1 << 26, 1 << 27),
        "for _ in turns:\n    b.max()",
    ),
    Entry(
        "numpy.far",
        "a.take(index)",
        _RANDOM + "a = rng.random(n)\nindex = rng.integers(0, n, 1 << 16)\nb = a[:1 << 12]\nnear = index & 4095",
        "1",
        (1 << 24,),
        "b.take(near)",
        1,
        1 << 16,
    ),
    _array("zeros", "np.zeros(n)", _NUMPY),
    step("numpy.zeros.large", "np.zeros(n)", _NUMPY, unroll=1, n=1 << 24),
    step("numpy.empty", "np.empty(n)", _NUMPY),
    _array("ones", "np.ones(n)", _NUMPY),
    _array("arange", "np.arange(n)", _NUMPY),
    _array("linspace", "np.linspace(0, 1, n)", _NUMPY),
    _array("meshgrid", "np.meshgrid(a, a)", _NUMPY + "a = np.ones(2)", law="1", sizes=(2,)),
    _array("array", "np.array(a)", _NUMPY + "a = [float(i) for i in range(n)]"),
    _array("iterate", "for _ in a:\n    pass", _FLOATS),
    _array("row", "a.max(axis=1)", _RANDOM + "a = rng.random((n, 2))"),
    _array("tolist", "a.tolist()"),
    step("numpy.item", "a[i]", _NUMPY + "a = np.ones(100)\ni = 50"),
    step("numpy.store", "a[i] = 1.0", _NUMPY + "a = np.ones(100)\ni = 50"),
    # An operand that is not an array is made one first.
    step("numpy.scalar", "a + 1", _NUMPY + "a = np.ones(10)", baseline="a + a"),
    # Arithmetic with an element that was read from an array.
    step("numpy.number", "b + 1.5", _NUMPY + "b = np.float64(2.5)"),
    step("numpy.slice", "a[1:50]", _NUMPY + "a = np.ones(100)"),
    step("numpy.view", "a.reshape(10, 10)", _NUMPY + "a = np.ones(100)"),
    _array("random.rand", "np.random.rand(n)", _NUMPY),
    _array("random.random", "rng.random(n)", _RANDOM),
    _array("random.normal", "rng.standard_normal(n)", _RANDOM),
    _array("random.randint", "np.random.randint(0, 100, n)", _NUMPY),
    _array("random.integers", "rng.integers(0, 100, n)", _RANDOM),
    _array("random.gamma", "rng.gamma(2.0, 1.0, n)", _RANDOM),
    _array("random.choice", "np.random.choice(a, n)"),
    step("numpy.random.default_rng", "np.random.default_rng(0)", _NUMPY, unroll=1),
    step("numpy.random.seed", "np.random.seed(0)", _NUMPY, unroll=1),
    _array("permutation", "np.random.permutation(n)", _NUMPY),
    _array("add", "a + a"),
    _array("divide", "a / a"),
    _array("floor_divide", "a // 3", _INTEGERS),
    _array("modulo", "a % .3"),
    _array("modulo.int", "a % 3", _INTEGERS),
    _array("power", "a ** 3"),
    _array("power.int", "a ** 3", _INTEGERS),
    _array("sqrt", "np.sqrt(a)"),
    _array("exp", "np.exp(a)"),
    _array("tan", "np.tan(a)"),
    _array("sin", "np.sin(a)"),
    _array("round", "np.round(a)"),
    _array("compare", "a > 1"),
    _array("copy", "np.copy(a)"),
    _array("cast", "a.astype(int)"),
    _array("clip", "np.clip(a, .7, 1.2)"),
    _array("where", "np.where(a > 1, a, 0)", sizes=(10, 1_000, 300_000)),
    _array("nonzero", "a.nonzero()", _RANDOM + "a = rng.random(n) > .5"),
    _array("mask", "a[mask]", _FLOATS + "mask = a > 1", sizes=(10, 1_000, 300_000)),
    _array("take", "a[index]", _FLOATS + "index = rng.integers(0, n, n)"),
    _array("triangle", "np.tril(a)", _RANDOM + "a = rng.random((n // 100, 100))", sizes=(1_000, 10_000)),
    step("numpy.vectorize", "np.vectorize(len)", _NUMPY),
    step(
        "numpy.vectorize.call",
        "f(a)",
        _NUMPY + "f = np.vectorize(abs)\na = np.ones(1000)",
        baseline="for x in a.tolist():\n    abs(x)",
        unroll=1,
        per=1000,
    ),
    step(
        "numpy.apply_along_axis",
        "np.apply_along_axis(len, 1, a)",
        _NUMPY + "a = np.ones((1000, 3))",
        unroll=1,
        per=1000,
    ),
    _array("sum", "np.sum(a)"),
    _array("sum.bool", "np.sum(a)", _RANDOM + "a = rng.random(n) > .5"),
    _array("prod", "np.prod(a)"),
    _array("mean", "np.mean(a)"),
    _array("std", "np.std(a)"),
    _array("max", "np.max(a)"),
    _array("any", "np.any(a > 2)"),
    _array("argmax", "np.argmax(a)"),
    _array("median", "np.median(a)", sizes=(10, 1_000, 300_000)),
    _array("percentile", "np.percentile(a, 90)", sizes=(10, 1_000, 300_000)),
    _array("cumsum", "np.cumsum(a)"),
    _array("sort", "np.sort(a)", law="n log n", sizes=(10, 1_000, 300_000)),
    _array("argsort", "np.argsort(a)", law="n log n", sizes=(10, 1_000, 300_000)),
    _array("partition", "np.partition(a, n // 2)", sizes=(10, 1_000, 300_000)),
    _array("unique", "np.unique(a)", law="n log n", sizes=(10, 1_000, 300_000)),
    _array("unique.int", "np.unique(a)", _INTEGERS, sizes=(10, 1_000, 300_000)),
    Entry(
        "numpy.searchsorted",
        "np.searchsorted(a, b)",
        _FLOATS + "a.sort()\nb = rng.random(n) + .5",
        "n log n",
        (10, 1_000, 100_000),
    ),
    _array("histogram", "np.histogram(a)"),
    _array("bincount", "np.bincount(a)", _INTEGERS),
    _array("concatenate", "np.concatenate([a, b])", _FLOATS + "b, a = a[:n // 2], a[n // 2:]"),
    step(
        "numpy.concatenate.piece",
        "np.concatenate(pieces)",
        _NUMPY + "pieces = [np.ones(1)] * 100",
        unroll=1,
        per=100,
    ),
    _array("tile", "np.tile(a, 2)", _RANDOM + "a = rng.random(n // 2)"),
    _array("repeat", "np.repeat(a, 2)", _RANDOM + "a = rng.random(n // 2)"),
    _array("pad", "np.pad(a, 1)", law="1", sizes=(100,)),
    _array("fft", "np.fft.fft(a)", law="n log n", sizes=(16, 1_024, 65_536)),
    _array("rfft", "np.fft.rfft(a)", law="n log n", sizes=(16, 1_024, 65_536)),
    # Products: n is a number of floating-point operations (a power of 8 times 2), of elements for `matvec` and `dot`.
    Entry(
        "numpy.matmul",
        "a @ a",
        _RANDOM + "side = round((n / 2) ** (1 / 3))\na = rng.random((side, side))",
        "n",
        (2 * 4**3, 2 * 40**3, 2 * 200**3, 2 * 600**3),
    ),
    Entry(
        "numpy.matmul.int",
        "a @ a",
        _RANDOM + "side = round((n / 2) ** (1 / 3))\na = rng.integers(0, 9, (side, side))",
        "n",
        (2 * 4**3, 2 * 30**3, 2 * 200**3),
    ),
    Entry(
        "numpy.matvec",
        "a @ b",
        _RANDOM + "side = round(n ** .5)\na = rng.random((side, side))\nb = rng.random(side)",
        "n",
        (10**2, 300**2, 1000**2),
    ),
    Entry(
        "numpy.einsum",
        "np.einsum('ij,jk->ik', a, a)",
        _RANDOM + "side = round(n ** (1 / 3))\na = rng.random((side, side))",
        "n",
        (4**3, 30**3, 100**3),
    ),
    _array("dot", "a.dot(a)"),
    Entry(
        "numpy.outer",
        "np.outer(a, a)",
        _RANDOM + "a = rng.random(round(n ** .5))",
        "n",
        (10**2, 30**2, 200**2),
    ),
    _array("linalg.norm", "np.linalg.norm(a)"),
    _array("linalg.inv", "np.linalg.inv(a)", _MATRIX, law="n^2.6", sizes=_MATRICES),
    _array("linalg.pinv", "np.linalg.pinv(a)", _MATRIX, law="n^2.5", sizes=_MATRICES),
    _array("linalg.det", "np.linalg.det(a)", _MATRIX, law="n^2.5", sizes=_MATRICES),
    _array("linalg.cholesky", "np.linalg.cholesky(a)", _RANDOM + "a = np.eye(n) * n + 1", law="n^2.5", sizes=_MATRICES),
    _array("linalg.qr", "np.linalg.qr(a)", _MATRIX, law="n^2.3", sizes=_MATRICES),
    _array("linalg.svd", "np.linalg.svd(a)", _MATRIX, law="n^2.5", sizes=_MATRICES),
    _array("linalg.svdvals", "np.linalg.svd(a, compute_uv=False)", _MATRIX, law="n^2.5", sizes=_MATRICES),
    _array("linalg.eig", "np.linalg.eig(a)", _MATRIX, law="n^2.4", sizes=_MATRICES),
    _array("linalg.eigvals", "np.linalg.eigvals(a)", _MATRIX, law="n^2.4", sizes=_MATRICES),
    _array(
        "linalg.eigh",
        "np.linalg.eigh(a)",
        _RANDOM + "a = rng.random((n, n))\na = a + a.T",
        law="n^2.4",
        sizes=_MATRICES,
    ),
    _array(
        "linalg.eigvalsh",
        "np.linalg.eigvalsh(a)",
        _RANDOM + "a = rng.random((n, n))\na = a + a.T",
        law="n^2.4",
        sizes=_MATRICES,
    ),
    _array("linalg.solve", "np.linalg.solve(a, b)", _MATRIX + "b = a[0]", law="n^2.5", sizes=_MATRICES),
    _array("linalg.lstsq", "np.linalg.lstsq(a, b)", _MATRIX + "b = a[0]", law="n^2.5", sizes=_MATRICES),
)
