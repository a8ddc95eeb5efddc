"""Sizes from a file's own benchmarks: read by eye, bounded, and given to the kernels that they run."""

from __future__ import annotations

import pytest
from rlm_core.queries.kernel_benchmarks import MOST, benchmarked
from rlm_core.source.parsed import ParsedSource

KERNELS = """\
import torch, triton

@triton.jit
def add_kernel(x): pass

@triton.jit
def mul_kernel(x): pass

class _Mul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): mul_kernel[(1,)](x)

mul = _Mul.apply

def add(x): add_kernel[(1,)](x)
"""


def read(text: str) -> dict[str, tuple[dict[str, str], ...]]:
    root = ParsedSource((KERNELS + text).encode(), "python").root
    return benchmarked(root, ["add_kernel", "mul_kernel"])


def report(arguments: str, body: str = "add(1)") -> str:
    return (
        f"@triton.testing.perf_report(triton.testing.Benchmark({arguments}))\ndef bench(size, provider):\n    {body}\n"
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("x_names=['M'], x_vals=[1, 2]", [{"M": "1"}, {"M": "2"}]),
        ("['M'], [1, 2]", [{"M": "1"}, {"M": "2"}]),
        ("x_names=['M', 'N'], x_vals=[7]", [{"M": "7", "N": "7"}]),
        ("x_names=['M', 'N'], x_vals=[(1, 2), [3, 4]]", [{"M": "1", "N": "2"}, {"M": "3", "N": "4"}]),
        (
            "x_names=['M'], x_vals=[2], args={'N': 4, 'p': 'x', 'eps': 0.1, 'on': True, 'K': f()}",
            [{"N": "4", "M": "2"}],
        ),
        (
            "x_names=['M'], x_vals=[2], args={'dtype': torch.bfloat16, 'mode': 'bwd'}",
            [{"dtype": "bf16", "mode": "backward", "M": "2"}],
        ),
        ("x_names=['M'], x_vals=list(range(64, 129, 64))", [{"M": "64"}, {"M": "128"}]),
        ("x_names=['M'], x_vals=[128 * i for i in range(1, 3)]", [{"M": "128"}, {"M": "256"}]),
        ("x_names=['M'], x_vals=[2**i for i in [3, 4]]", [{"M": "8"}, {"M": "16"}]),
        ("x_names=['M'], x_vals=[0, -3, 5]", [{"M": "5"}]),
    ],
)
def test_what_a_benchmark_runs_at_is_read(arguments: str, expected: list[dict[str, str]]) -> None:
    assert read(report(arguments)) == {"add_kernel": tuple(expected)}


@pytest.mark.parametrize(
    "arguments",
    [
        "x_names=['M'], x_vals=sizes()",
        "x_names=names, x_vals=[1]",
        "x_names=['M'], x_vals=[i for i in range(10) if i]",
        "x_names=['M'], x_vals=range(10**9)",
        "x_names=['M'], x_vals=[9**9**9]",
        "x_names=['M'], x_vals=7",
        "x_names=['p'], x_vals=['torch', 'triton']",
        "*everything",
        "",
    ],
)
def test_facts_missing_from_the_text_are_left_out(arguments: str) -> None:
    assert read(report(arguments)) == {}


def test_at_most_a_few_workloads_from_the_first_to_the_last() -> None:
    found = read(report("x_names=['M'], x_vals=[2**i for i in range(12, 28)]"))["add_kernel"]
    assert len(found) == MOST
    assert (found[0], found[-1]) == ({"M": "4096"}, {"M": str(2**27)})


def test_a_type_that_the_benchmark_makes_its_tensors_of() -> None:
    text = report("x_names=['M'], x_vals=[1]", "add(torch.rand(size, dtype=torch.float32))")
    assert read(text) == {"add_kernel": ({"dtype": "fp32", "M": "1"},)}


def test_a_benchmark_belongs_to_what_it_reaches_through_classes_and_names() -> None:
    assert set(read(report("x_names=['M'], x_vals=[1]", "mul(1)"))) == {"mul_kernel"}
    assert set(read(report("x_names=['M'], x_vals=[1]", "mul(add(1))"))) == {"mul_kernel", "add_kernel"}


def test_a_benchmark_that_reaches_no_kernel_belongs_to_all() -> None:
    assert set(read(report("x_names=['M'], x_vals=[1]", "library.run(1)"))) == {"add_kernel", "mul_kernel"}
    assert set(read("b = triton.testing.Benchmark(x_names=['M'], x_vals=[1])\n")) == {"add_kernel", "mul_kernel"}


def test_benchmarks_may_be_separate_from_their_function() -> None:
    text = """
WIDTH = 64
configs = []
for rows in [8, 16]:
    configs.append(triton.testing.Benchmark(x_names=['M'], x_vals=[WIDTH * 2], args={'N': rows}))

@triton.testing.perf_report(configs)
def bench(M, N, provider):
    add(M)
"""
    assert read(text) == {"add_kernel": ({"N": "8", "M": "128"},)}


def test_benchmarks_of_a_comprehension_take_its_first_values() -> None:
    text = """
@triton.testing.perf_report([triton.testing.Benchmark(x_names=['M'], x_vals=[1], args={'N': n}) for n in [8, 16]])
def bench(M, N, provider):
    add(M)
"""
    assert read(text) == {"add_kernel": ({"N": "8", "M": "1"},)}


def test_deep_and_broken_texts_end_quickly() -> None:
    assert read(report(f"x_names=['M'], x_vals=[{'(' * 300}1{')' * 300}]")) == {}
    assert read(report(f"x_names=['M'], x_vals=[{'1+' * 3000}1]")) == {}
    assert (
        read("@triton.testing.perf_report(triton.testing.Benchmark(x_names=['M'], x_vals=[1\ndef bench(:\n") is not None
    )
