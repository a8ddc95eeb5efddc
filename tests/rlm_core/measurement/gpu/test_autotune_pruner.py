"""Pruning configurations: the hook, the rule, and the file of forests."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core import ModelError
from rlm_core.inference.trees import Forest
from rlm_core.measurement.gpu.autotune_pruner import (
    NAMES,
    Choice,
    Pruner,
    early_config_prune,
    features,
    numbers,
    sizes_of,
)


@dataclass(frozen=True)
class Config:
    """As much of ``triton.Config`` as the hook asks."""

    block: int
    num_warps: int

    def all_kwargs(self) -> Mapping[str, object]:
        return {"BLOCK": self.block, "num_warps": self.num_warps, "maxnreg": None}


CONFIGS = [Config(block, warps) for block in (32, 64, 128, 256, 1024) for warps in (1, 2, 4, 8, 16, 32)]


def prefers_small(column: str) -> Forest:
    """A tree that likes a feature to be at most 7."""
    return Forest(
        np.array([NAMES.index(column), -1, -1], np.int16),
        np.array([7, 0, 0], np.float32),
        np.array([1, 0, 0], np.int32),
        np.array([2, 0, 0], np.int32),
        np.array([True, False, False]),
        np.array([0, 1, 2], np.float32),
        np.array([0], np.int32),
        np.array([0, -1, 0], np.float32),
    )


@given(st.lists(st.sampled_from(CONFIGS), min_size=1, max_size=40), st.floats(0.01, 1), st.integers(1, 5))
def test_the_requested_share_is_kept_and_nothing_is_made_up(configs: list[Config], share: float, least: int) -> None:
    kept = early_config_prune(share=share, least=least, device="H100")(configs, {"n": 10}, other=3)
    assert len(kept) == min(len(configs), max(least, math.ceil(share * len(configs))))
    for config in kept:
        assert kept.count(config) <= configs.count(config)


def test_without_measurements_blocks_of_64_to_512_threads_come_first_in_one_order() -> None:
    hook = early_config_prune(share=2 / 3)
    kept = hook(CONFIGS, {})
    assert {config.num_warps for config in kept} == {2, 4, 8, 16}
    assert kept == hook(CONFIGS, {})
    assert kept != sorted(kept, key=CONFIGS.index)


def test_a_known_kernel_is_ranked_by_its_forest(tmp_path: Path) -> None:
    Pruner({"mine": prefers_small("tile"), "other": prefers_small("threads")}).save(tmp_path / "team.pruner")
    by_tile = early_config_prune(tmp_path / "team.pruner", kernel="mine", share=0.5)(CONFIGS, {})
    assert {config.block for config in by_tile[:15]} == {32, 64, 128}
    by_threads = early_config_prune(tmp_path / "team.pruner", kernel="other", share=0.5)(CONFIGS, {})
    assert {config.num_warps for config in by_threads} == {1, 2, 4}


def test_a_pruner_of_one_kernel_needs_no_name() -> None:
    kept = early_config_prune(Pruner({"mine": prefers_small("tile")}), share=0.5)(CONFIGS, {})
    assert {config.block for config in kept} == {32, 64, 128}


def test_a_bad_file_or_share_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"nonsense")
    for path in (tmp_path / "bad", tmp_path / "nothing"):
        with pytest.raises(ModelError, match="missing or corrupt"):
            early_config_prune(path)
    with pytest.raises(ModelError, match="share"):
        early_config_prune(share=0)


class Tensor:
    def numel(self) -> int:
        return 64 * 128


def test_a_launch_and_its_row_have_the_same_sizes() -> None:
    launch = {"x_ptr": Tensor(), "n": 1000, "eps": 1e-5, "flag": True, "BLOCK": 64, "num_warps": 4}
    row = {"x_ptr": "64x128 fp16", "n": "1000", "eps": "1e-05", "flag": "True", "BLOCK": "64", "num_warps": "4"}
    assert sizes_of(launch, {"BLOCK": 64}) == sizes_of(row, {"BLOCK": 64}) == (math.log2(1000), 13)


def test_features_say_what_a_block_does() -> None:
    cuda = Choice({"block_size_x": 32, "block_size_y": 4, "tile_size_x": 2}, (20,), "nvidia-a100-pcie-40gb")
    assert (cuda.threads, cuda.tile) == (128, 256)
    named = dict(zip(NAMES, features(cuda), strict=True))
    assert (named["threads"], named["tile"], named["work"], named["blocks"]) == (7, 8, 1, 12)
    assert named["multiprocessors"] == 108
    triton = Choice(numbers({"BLOCK_M": 64, "BLOCK_N": "32", "num_warps": "4", "on": "True"}), (), "amd-mi300x")
    assert (triton.threads, triton.tile) == (256, 2048)
    assert np.isnan(features(Choice({}, (), None))[-1])
