"""Features of modules: complete, finite where they can be, and moving the right way with sizes, backend and device."""

from __future__ import annotations

import math

import numpy as np
import pytest
from rlm_core.cost.torch_trace.recorder import KINDS
from rlm_core.inference.features import module

TEXT = """
size = 1024
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(size, size)
    def forward(self, x):
        return torch.tanh(self.first(x) * 2 + 1)
def get_inputs():
    return [torch.rand(256, size)]
"""


def named(workload: dict[str, str], device: str | None, text: str = TEXT) -> dict[str, float]:
    row = module.features(module.describe(text), workload, device)
    assert row.shape == (len(module.NAMES),)
    assert row.dtype == np.float32
    return {name: float(value) for name, value in zip(module.NAMES, row, strict=True)}


def test_names_are_distinct() -> None:
    assert len(set(module.NAMES)) == len(module.NAMES)


def test_totals_follow_from_the_text() -> None:
    found = named({"backend": "eager"}, "nvidia-a100-sxm4-80gb")
    assert found["log_macs"] == pytest.approx(math.log10(256 * 1024 * 1024), abs=1e-4)
    assert found["log_parameters"] == pytest.approx(math.log10(1024 * 1024 + 1024), abs=1e-4)
    assert found["unknown_share"] == 0
    assert sum(found[f"share_{kind}"] for kind in KINDS) == pytest.approx(1, abs=1e-5)


def test_fusion_and_faster_devices_shorten_the_estimate() -> None:
    eager = named({"backend": "eager"}, "nvidia-t4")
    assert named({"backend": "compile"}, "nvidia-t4")["log_estimate"] < eager["log_estimate"]
    assert named({"backend": "eager"}, "nvidia-h100-sxm")["log_estimate"] < eager["log_estimate"]
    assert named({"backend": "compile-max-autotune"}, "nvidia-t4")["mode_max-autotune"] == 1


def test_a_workload_changes_sizes() -> None:
    large = named({"size": "4096"}, "nvidia-t4")
    assert large["log_macs"] == pytest.approx(math.log10(256 * 4096 * 4096), abs=1e-4)


def test_an_unknown_device_leaves_what_depends_on_it_open() -> None:
    for device in (None, "abacus"):
        found = named({}, device)
        assert math.isnan(found["log_estimate"])
        assert found["log_macs"] > 0


@pytest.mark.parametrize("text", ["", "class Model(", "x = 1", "class Model(nn.Module): pass"])
def test_odd_texts_give_a_row(text: str) -> None:
    assert named({"backend": "eager", "arg0": "3x"}, "nvidia-t4", text)["unknown_share"] == 1
