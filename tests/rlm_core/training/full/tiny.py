"""Tiny full models for tests: with seeded weights, or trained on generated rows."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rlm_core
import torch
from click.testing import CliRunner, Result
from rlm_core.inference.tokenizer import Tokenizer
from rlm_core.training.full.decoder import FullConfig, NumberQuery, regress_lm_config
from rlm_core.training.full.encoders.scratch import ScratchConfig, ScratchEncoder
from rlm_core.training.full.grammar import Grammar
from rlm_core.training.full.model import FullModel
from rlm_core.training.full.numbers import NumberFormat
from rlm_lsp.cli.app import app

TEXTS = ("def f(x):\n    return x\n", "for i in range(10):\n    print(i)\n" * 4, "import os\n" * 12)
ACCURACY = NumberQuery("accuracy", "network")
LATENCY = NumberQuery("latency", "network", device="nvidia-a100-sxm4-80gb", workload={"batch": "32"})
MEMORY = NumberQuery("memory", "call", "python")
# Few enough numbers to write them all down, or to meet each of them often.
SMALL = NumberFormat(base=3, exponent_digits=1, mantissa_digits=2)
LOOSE = NumberFormat(
    base=3, exponent_digits=1, mantissa_digits=2, unique=False, special=(("NAN", "nan"), ("INF", "inf"))
)
LAST = NumberFormat(
    "exponent-last", base=4, mantissa_digits=2, exponent_range=2, unique=False, special=(("NAN", "nan"),)
)
FORMATS = {"unique": SMALL, "loose": LOOSE, "last": LAST}


def tiny_model(numbers: NumberFormat = SMALL, seed: int = 0, sharpness: float = 6.0, **changes: Any) -> FullModel:
    """Our own architecture, 16 wide; ``sharpness`` makes its probabilities uneven."""
    sizes: dict[str, Any] = {"width": 16, "heads": 2, "hidden": 24, "encoder_width": 16, "languages": ("python",)}
    return _model(FullConfig(numbers, **(sizes | changes)), seed, sharpness)


def tiny_regress_lm(numbers: NumberFormat = LOOSE, seed: int = 0, sharpness: float = 6.0) -> FullModel:
    """The architecture of regress-lm, 16 wide, for three numbers in a row."""
    return _model(regress_lm_config(numbers, 16, 2, 3), seed, sharpness)


def _model(config: FullConfig, seed: int, sharpness: float) -> FullModel:
    torch.manual_seed(seed)
    sizes = ScratchConfig(width=config.encoder_width, layers=1, heads=2, hidden=32, max_tokens=256)
    tokenizer = Tokenizer.load(Path(rlm_core.__file__).parent / "builtin" / "tokenizer.model")
    model = FullModel(config, ScratchEncoder(sizes, tokenizer)).eval()
    with torch.no_grad():
        model.decoder.logits.weight.mul_(sharpness)
    return model


def rows_of(grammar: Grammar) -> torch.Tensor:
    """All numbers that the grammar admits, ``(numbers, positions)``."""
    rows = torch.empty(1, 0, dtype=torch.int64)
    for position in range(grammar.numbers.positions):
        mask = grammar.mask(position, rows[:, 0] if position else None).expand(len(rows), -1)
        parent, token = mask.nonzero(as_tuple=True)
        rows = torch.cat([rows[parent], token[:, None]], 1)
    return rows


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
tokens_per_batch = 512
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
