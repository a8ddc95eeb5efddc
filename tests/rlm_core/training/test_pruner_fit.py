"""Fitting a pruner to measured configurations, and Triton's autotuner using it."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton
from click.testing import CliRunner
from rlm_core import DataError
from rlm_core.measurement.gpu.autotune_pruner import Pruner, early_config_prune
from rlm_core.measurement.gpu.bench_rows import Row
from rlm_core.training.pruner_fit import fit, trials_of
from rlm_lsp.cli.app import app

CONFIGS = [
    {"BLOCK_M": m, "BLOCK_N": n, "num_warps": w, "num_stages": s}
    for m, n, w, s in itertools.product((16, 32, 64, 128), (16, 32, 64, 128), (2, 4, 8, 16), (1, 2, 3))
]


def seconds(config: dict[str, int], speed: float) -> float:
    """A made-up law: a tile of 64 x 128 by eight warps in three stages is best, everywhere."""
    far = [np.log2(config[name] / best) for name, best in {"BLOCK_M": 64, "BLOCK_N": 128, "num_warps": 8}.items()]
    return float(1e-3 / speed * (1 + np.square(far).sum() + (3 - config["num_stages"])))


def rows_on(device: str, speed: float) -> list[Row]:
    return [
        {
            "key": f"{device} {number}",
            "status": "ok",
            "device": device,
            "kernel": "matmul",
            "config": {name: str(value) for name, value in config.items()},
            "launches": [{"kernel": "matmul", "arguments": {"a_ptr": "64x128 fp16", "M": "4096"}}],
            "latency": seconds(config, speed),
        }
        for number, config in enumerate(CONFIGS)
    ]


def test_a_kernel_measured_on_other_gpus_is_pruned_by_the_autotuner_on_a_new_one(tmp_path: Path) -> None:
    for device, speed in (("NVIDIA A100-SXM4-80GB", 1.0), ("NVIDIA L4", 0.2)):
        text = "".join(json.dumps(row) + "\n" for row in rows_on(device, speed))
        (tmp_path / f"{device}.jsonl").write_text(text)
    out = tmp_path / "team.pruner"
    command = ["bench", "pruner", *map(str, sorted(tmp_path.glob("*.jsonl"))), "--out", str(out)]
    result = CliRunner().invoke(app, command)
    assert (result.exit_code, result.exception) == (0, None)
    assert result.stdout.splitlines()[0] == (
        f"matmul: {2 * len(CONFIGS)} configurations on nvidia-a100-sxm4-80gb, nvidia-l4"
    )

    def matmul(a_ptr: Any, M: int, BLOCK_M: Any, BLOCK_N: Any) -> None:  # noqa: N803
        """Never launched: pruning comes before that."""

    options = ("num_warps", "num_stages")
    configs = [
        triton.Config({name: one[name] for name in one if name not in options}, **{name: one[name] for name in options})
        for one in CONFIGS
    ]
    hook = early_config_prune(out, share=0.1, device="H100")
    tuner = triton.autotune(configs, key=["M"], prune_configs_by={"early_config_prune": hook})(triton.jit(matmul))
    tuner.nargs = {"a_ptr": None, "M": 4096}
    kept = tuner.prune_configs({})
    assert len(kept) == 20
    best = min(seconds({**one.kwargs, "num_warps": one.num_warps, "num_stages": one.num_stages}, 3.0) for one in kept)
    assert best <= 1.1 * min(seconds(config, 3.0) for config in CONFIGS)


def test_only_measured_configurations_are_trials() -> None:
    [good, failed, plain, compiled] = rows_on("NVIDIA L4", 1.0)[:4]
    failed["status"], plain["config"] = "timeout", None
    del compiled["latency"]
    [trial] = trials_of([good, failed, plain, compiled])
    assert (trial.kernel, trial.choice.device, trial.seconds) == ("matmul", "nvidia-l4", good["latency"])
    assert trial.choice.sizes == (12, 13)


def test_too_few_configurations_are_refused() -> None:
    with pytest.raises(DataError, match="no kernel has 20"):
        fit(list(trials_of(rows_on("NVIDIA L4", 1.0)[:19])))


def test_a_fitted_pruner_is_the_same_after_a_file(tmp_path: Path) -> None:
    trials = list(trials_of(rows_on("NVIDIA L4", 1.0)))
    pruner = fit(trials, seeds=1)
    pruner.save(tmp_path / "p")
    choices = [trial.choice for trial in trials]
    assert Pruner.load(tmp_path / "p").rank("matmul", choices) == pruner.rank("matmul", choices)
