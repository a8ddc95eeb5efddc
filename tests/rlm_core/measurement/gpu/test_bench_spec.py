"""Sheets: TOML -> cases; sizes are worked out and nothing is run."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core import DataError
from rlm_core.measurement.gpu.bench_spec import BenchSpec, evaluate, module_file, read_bench_spec, triton_file
from rlm_core.measurement.gpu.modules import FAMILIES, write_module

SHEET = """
[[bench]]
call = "softmax"
reference = "torch.softmax"
sizes = { M = [1, 2], N = 100 }
dtypes = ["fp16", "float32"]
arguments = ["M x N", 1, { value = "N" }, { tensor = "N", dtype = "int32", fill = "zeros" }]

[[bench]]
kernel = "softmax_kernel"
grid = ["cdiv(M, BLOCK)", 1]
constants = { BLOCK = 64 }
arguments = [{ tensor = "M x N", output = true }]
"""


def read(tmp_path: Path, text: str) -> list[BenchSpec]:
    path = tmp_path / "softmax.bench.toml"
    path.write_text(text)
    source, benches = read_bench_spec(path)
    assert source == tmp_path / "softmax.py"
    return benches


def test_sizes_are_crossed_with_dtypes(tmp_path: Path) -> None:
    first, second = read(tmp_path, SHEET)
    cases = [(dict(case.sizes), case.dtype) for case in first.cases()]
    assert cases == [({"M": m, "N": 100}, dtype) for m in (1, 2) for dtype in ("fp16", "fp32")]
    assert [(one.shape, one.value, one.dtype) for one in first.arguments] == [
        (("M", "N"), None, None),
        (None, 1, None),
        (None, "N", None),
        (("N",), None, "int32"),
    ]
    assert second.launch
    assert second.grid == ("cdiv(M, BLOCK)", "1")
    assert second.arguments[0].output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bench = ", "is not TOML"),
        ("", r"has no \[\[bench\]\]"),
        ("[[bench]]\ncall = 'f'\nkernel = 'g'", "neither or both"),
        ("[[bench]]\nkernel = 'g'", "needs a grid"),
        ("[[bench]]\ncall = 'f'\nsize = { M = 1 }", "size is not known"),
        ("[[bench]]\ncall = 'f'\nsizes = { M = [0] }", "size M: is not a list of whole numbers"),
        ("[[bench]]\ncall = 'f'\nsizes = { M = [true] }", "size M"),
        ("[[bench]]\ncall = 'f'\ndtypes = ['fp12']", "dtype 'fp12' is not known"),
        ("[[bench]]\ncall = 'f'\narguments = [{ tensor = 'M', fill = 'sevens' }]", "fill 'sevens'"),
        ("[[bench]]\ncall = 'f'\narguments = [{ value = 1, tensor = 'M' }]", "an argument is"),
        ("[[bench]]\ncall = 'f'\nrtol = -1", "rtol: is not a number"),
        (f"[[bench]]\ncall = 'f'\nsizes = {{ M = {list(range(1, 200))}, N = {list(range(1, 200))} }}", "39,601 cases"),
    ],
)
def test_what_is_not_understood_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, text)


expressions = st.recursive(
    st.sampled_from(["M", "N", "3", "128"]),
    lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(
        lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
    ),
    max_leaves=6,
)


@given(expressions, st.integers(1, 9), st.integers(1, 9))
def test_an_expression_means_what_python_says(expression: str, m: int, n: int) -> None:
    try:
        expected = eval(expression, {"M": m, "N": n})
    except ZeroDivisionError:
        with pytest.raises(DataError, match="ZeroDivisionError"):
            evaluate(expression, {"M": m, "N": n})
        return
    assert evaluate(expression, {"M": m, "N": n}) == expected


@given(st.integers(1, 10**6), st.integers(1, 10**4))
def test_a_grid_covers_its_size_and_no_more(n: int, block: int) -> None:
    blocks = evaluate("cdiv(N, B)", {"N": n, "B": block})
    assert (blocks - 1) * block < n <= blocks * block
    power = evaluate("next_power_of_2(N)", {"N": n})
    assert power >= n > power // 2
    assert power.bit_count() == 1


@pytest.mark.parametrize(
    "expression",
    [
        *("__import__('os')", "M.real", "[1]", "M if N else 1", "lambda: 1", "2**99", "9" * 40, "f(M)", "M and N", "X"),
        *("True", "(" * 300 + "1" + ")" * 300),
    ],
)
def test_nothing_but_sums_and_products_is_worked_out(expression: str) -> None:
    with pytest.raises(DataError, match="cannot be worked out"):
        evaluate(expression, {"M": 2, "N": 3})


KERNEL = "import triton\n@triton.jit\ndef kernel(x): pass\n"


def test_the_ways_to_call_a_kernel_are_found_without_running_the_file(tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(
        "raise SystemExit\n"
        + KERNEL
        + "def bench(): pass\ndef bench_large(): pass\ndef benchmarks(): pass\n"
        + "@triton.testing.perf_report([])\ndef report(n): pass\n"
    )
    (tmp_path / "kernels.bench.toml").write_text("[[bench]]\ncall = 'f'\n")
    found = triton_file(path)
    assert found is not None
    assert found.kernels == ("kernel",)
    assert [(entry.way, entry.name) for entry in found.entries] == [
        ("sheet", "0:f"),
        ("bench", "bench"),
        ("bench", "bench_large"),
        ("report", "report"),
    ]
    by_sheet = triton_file(tmp_path / "kernels.bench.toml")
    assert by_sheet == found


def test_a_changed_sheet_makes_other_measurements(tmp_path: Path) -> None:
    path, sheet = tmp_path / "kernels.py", tmp_path / "kernels.bench.toml"
    path.write_text(KERNEL)
    digests = set()
    for text in ("[[bench]]\ncall = 'f'\n", "[[bench]]\ncall = 'g'\n"):
        sheet.write_text(text)
        found = triton_file(path)
        assert found is not None
        digests.add(found.digest)
    assert len(digests) == 2


def test_files_without_kernels_or_inputs_offer_nothing(tmp_path: Path) -> None:
    path = tmp_path / "plain.py"
    path.write_text("import torch\nclass Model(torch.nn.Module): pass\n")
    assert triton_file(path) is None
    assert module_file(path) is None
    with pytest.raises(DataError, match="cannot be read"):
        triton_file(tmp_path / "nothing.py")


def test_a_generated_module_is_a_file_that_bench_torch_takes(tmp_path: Path) -> None:
    for number in range(3 * len(FAMILIES)):
        written = write_module(7, number)
        assert written == write_module(7, number)
        path = tmp_path / f"module{number}.py"
        path.write_text(written.source)
        ast.parse(written.source)
        found = module_file(path)
        assert found is not None, written.source
        assert found.module == "Model"


def test_generated_modules_differ() -> None:
    written = [write_module(0, number) for number in range(300)]
    assert {one.family for one in written} == set(FAMILIES)
    assert len({one.source for one in written}) > 280
    assert [write_module(0, number) for number in range(11)] != [write_module(1, number) for number in range(11)]
