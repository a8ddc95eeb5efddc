"""Versions of one function on the command line: ranked, with how many of them to measure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rlm_lsp.cli.app import app

from tests import softmax_kernels
from tests.distinct_items import FAST, SLOW

pytestmark = pytest.mark.timeout(120)

OTHER = "\n\ndef other(items):\n    return distinct(items)\n"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["rank", *map(str, arguments)])


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    slow, fast = tmp_path / "slow.py", tmp_path / "fast.py"
    slow.write_text(SLOW)
    fast.write_text(FAST + OTHER)
    return slow, fast


def test_the_faster_version_comes_first_at_the_sizes(files: tuple[Path, Path]) -> None:
    slow, fast = files
    result = run(slow, f"{fast}::distinct", "--size", "items=10k")
    assert result.exit_code == 0, result.output
    first, second, last = result.stdout.splitlines()
    assert first.endswith("fast.py::distinct")
    assert second == f"{slow}: slower than {fast}::distinct"
    assert last == (
        "measure the first: it is within 1.2 times of the fastest, with about 85 % probability"
        " (1 of 1 pairs could be distinguished)"
    )


def test_json_names_what_is_faster(files: tuple[Path, Path]) -> None:
    slow, fast = files
    answer = json.loads(run(slow, f"{fast}::distinct", "--size", "items=10k", "--format", "json").stdout)
    assert [one["candidate"] for one in answer["candidates"]] == [f"{fast}::distinct", str(slow)]
    assert [one["slower_than"] for one in answer["candidates"]] == [[], [f"{fast}::distinct"]]
    assert (answer["measure"], answer["at_sizes"]) == (1, True)


def test_versions_that_cannot_be_distinguished_are_all_measured(tmp_path: Path) -> None:
    for name in ("fetch", "load"):
        (tmp_path / f"{name}.py").write_text(f"def f(path):\n    return {name}(path)\n")
    result = run(tmp_path / "fetch.py", tmp_path / "load.py")
    assert result.stdout.splitlines()[-1] == "cannot tell which is the fastest: measure all"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["{fast}", "{slow}"], "name one function as FILE::NAME; there are: distinct, other"),
        (["{fast}::missing", "{slow}"], "name one function as FILE::NAME"),
        (["{slow}"], "name 2 to 30 candidates"),
        (["{slow}", "{slow}", "--size", "items"], "`items` is not NAME=VALUE"),
        (["{slow}", "{slow}", "--size", "items=many"], "`many` is not a size"),
    ],
)
def test_mistakes_are_one_line(files: tuple[Path, Path], arguments: list[str], why: str) -> None:
    slow, fast = files
    result = run(*(argument.format(slow=slow, fast=fast) for argument in arguments))
    assert result.exit_code != 0
    assert why in f"{result.output}{result.exception}"


def test_kernels_are_ranked_on_a_device(tmp_path: Path) -> None:
    slow, fast = tmp_path / "slow.py", tmp_path / "fast.py"
    slow.write_text(softmax_kernels.SLOW)
    fast.write_text(softmax_kernels.FAST)
    sizes = [part for name, value in softmax_kernels.SIZES.items() for part in ("--workload", f"{name}={value}")]
    result = run(slow, f"{fast}::softmax_kernel", "--device", "h100", *sizes)
    assert result.exit_code == 0, result.output
    first, second, last = result.stdout.splitlines()
    assert (first, second) == (f"{fast}::softmax_kernel", f"{slow}: slower than {fast}::softmax_kernel")
    assert "with about 90 % probability" in last
    assert (
        "name one kernel as FILE::NAME; there are: softmax_kernel"
        in run(slow, f"{fast}::softmax", "--device", "h100", *sizes).output
    )
