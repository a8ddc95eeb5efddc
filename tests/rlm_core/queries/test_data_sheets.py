"""Devices that are known by their data sheet alone: which of them a model answers for."""

from __future__ import annotations

import pytest
from rlm_core.queries.data_sheets import answered_by_sheet, answers_for, is_near

LEARNED = ("nvidia-a100-sxm4-80gb", "nvidia-h100-sxm", "nvidia-rtx-3090", "amd-mi300x")


@pytest.mark.parametrize(
    ("device", "near"),
    [
        ("nvidia-rtx-3090-ti", True),
        ("nvidia-h200", True),
        ("amd-mi325x", True),
        ("nvidia-t4", False),  # a third of the least bandwidth
        ("nvidia-b200", False),  # beyond the largest
        ("amd-rx-7900-xtx", False),  # among NVIDIA's figures, far from AMD's
        ("intel-max-1550", False),  # nothing of its maker was learned
        ("nvidia-gtx-1080", False),  # matrix units unknown
        ("pixel-3", False),
        ("no-such-gpu", False),
    ],
)
def test_a_data_sheet_counts_among_those_of_its_makers_learned_devices(device: str, near: bool) -> None:
    assert is_near(device, LEARNED) == near
    assert answered_by_sheet("kernel", device, LEARNED) == answers_for("kernel", device, LEARNED) == near
    assert not answered_by_sheet("network", device, LEARNED)


def test_a_learned_device_needs_no_data_sheet() -> None:
    assert all(is_near(device, LEARNED) for device in LEARNED)
    assert not any(answered_by_sheet("kernel", device, LEARNED) for device in LEARNED)
    assert all(answers_for(basis, device, LEARNED) for basis in ("kernel", "module") for device in LEARNED)
    assert not answered_by_sheet("kernel", None, LEARNED)
    assert not answers_for("kernel", "nvidia-h200", ())
