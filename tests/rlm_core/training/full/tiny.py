"""Tiny full models with seeded weights, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rlm_core
import torch
from rlm_core.inference.tokenizer import Tokenizer
from rlm_core.training.full.config import FullConfig, regress_lm_config
from rlm_core.training.full.encoders.scratch import ScratchConfig, ScratchEncoder
from rlm_core.training.full.grammar import Grammar
from rlm_core.training.full.model import FullModel
from rlm_core.training.full.numbers import NumberFormat
from rlm_core.training.full.query_tokens import Ask

TEXTS = ("def f(x):\n    return x\n", "for i in range(10):\n    print(i)\n" * 4, "import os\n" * 12)
ACCURACY = Ask("accuracy", "network")
LATENCY = Ask("latency", "network", device="nvidia-a100-sxm4-80gb", workload={"batch": "32"})
MEMORY = Ask("memory", "call", "python")
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
