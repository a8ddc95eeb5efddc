"""A generated data set of functions with enough groups to calibrate on, and a tiny full model trained on it."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result
from rlm_core.training.datasets.schema import write_rows
from rlm_core.training.full.predictor import TorchPredictor
from rlm_lsp.cli.app import app

# Tensors here are tiny: more threads would only wait for each other.
torch.set_num_threads(1)

CONFIG = """
kind = "full"
name = "tiny-full"
[encoder]
vocabulary = 540
width = 32
layers = 1
heads = 2
hidden = 48
max_tokens = 64
[decoder]
width = 32
layers = 1
heads = 2
hidden = 48
[numbers]
mantissa_digits = 3
[train]
epochs = 24
tokens_a_batch = 512
learning_rate = 5e-3
warmup_steps = 5
group_power = 1.0
precision = "float32"
log_steps = 5
threads = 1
"""


@dataclass(frozen=True, slots=True)
class Trained:
    """A tiny full model: its data set, configuration and directory."""

    data: Path
    config: Path
    directory: Path


def run_cli(*arguments: object) -> Result:
    """Run a command that must succeed."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result


def rows(packages: int = 100) -> list[dict[str, Any]]:
    """Functions whose cost grows with their loops, two a package; many packages are to calibrate on."""
    found = []
    for number in range(2 * packages):
        loops, package = 1 + number % 3, number // 2
        lines = [f"def work_{number}(items):"]
        lines += [f"{'    ' * (depth + 1)}for x{depth} in items:" for depth in range(loops)]
        lines += ["    " * (loops + 1) + f"helper(x0 + {number % 7})", "    return items"]
        helper = {"text": f"def helper(x):\n    return x * {number % 4}\n", "level": 1}
        point = zlib.crc32(f"package{package}".encode()) / 2**32
        split = "cal" if point < 0.4 else "val" if point < 0.46 else "test" if point < 0.54 else "train"
        for metric, scale in (("latency", 1e-6), ("memory", 300.0)):
            found.append(
                {
                    "id": f"functions/{number}/{metric}",
                    "text": "\n".join(lines) + "\n",
                    "callees": [helper] if number % 3 else [],
                    "language": "python",
                    "basis": "call",
                    "metric": metric,
                    "device": "x86-64",
                    "workload": {"runtime": "cpython-3.12"},
                    # A memory at the floor is one that is not resolved.
                    "value": 64.0 if metric == "memory" and number % 11 == 0 else scale * 10**loops * (1 + number % 5),
                    "group": f"package{package}/module{number}",
                    "family": f"package{package}",
                    "held_out": "package",
                    "split": split,
                    "source": f"package{package}==1.0:module{number}.py:1",
                }
            )
    return found


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of 400 rows in two slices."""
    path = tmp_path_factory.mktemp("data") / "rows.parquet"
    assert write_rows(rows(), path) == 400
    return path


@pytest.fixture(scope="session")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configuration of a model that trains in seconds."""
    path = tmp_path_factory.mktemp("config") / "full.toml"
    path.write_text(CONFIG)
    return path


@pytest.fixture(scope="session")
def full(data: Path, config: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A tiny full model, trained by the command line."""
    folder = tmp_path_factory.mktemp("full") / "run"
    run_cli("train", "--data", data, "--config", config, "--out", folder)
    return Trained(data, config, folder)


@pytest.fixture(scope="session")
def predictor(full: Trained) -> TorchPredictor:
    """The tiny model as a predictor."""
    return TorchPredictor(full.directory, "cpu")
