"""A program that tunes a full model in the processes that were launched: arguments are data set, model and output.

Each process writes what it got to a file of its own beside the output, and prints what only the main one may.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rlm_core.training.distributed import processes
from rlm_core.training.full.training_config import ModelFitConfig
from rlm_core.training.tuning.full import tune_full
from rlm_core.training.tuning.run import Options

LOOP = ModelFitConfig(
    epochs=12, learning_rate=3e-3, tokens_per_batch=512, warmup_steps=5, group_power=1.0, precision="float32"
)


def main() -> None:
    """Tune."""
    data, model, out = map(Path, sys.argv[1:])
    with processes(accelerate=True) as group:
        found = tune_full([data], model, out, Options("ours", fewest=100), print, LOOP, group)
        out.with_name(f"{out.name}-{group.rank}.txt").write_text(f"{found.model} {found.refused}")


if __name__ == "__main__":
    main()
