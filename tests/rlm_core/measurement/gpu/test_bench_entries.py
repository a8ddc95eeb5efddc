"""What a file offers to measure, read by eye."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from rlm_core import DataError
from rlm_core.measurement.gpu.bench_entries import module_file, triton_file
from rlm_core.measurement.gpu.modules import FAMILIES, write_module

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
