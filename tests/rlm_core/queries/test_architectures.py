"""Architectures of GPUs by the id of the device."""

from __future__ import annotations

from rlm_core.queries.architectures import architecture_of
from rlm_core.queries.devices import device_table


def test_the_longest_beginning_of_an_id_decides() -> None:
    names = [
        "nvidia-l4",
        "nvidia-l40s",
        "nvidia-l20",
        "nvidia-rtx-4090",
        "nvidia-rtx-a6000",
        "nvidia-h20",
        "amd-mi300x",
    ]
    found = [architecture.name for name in names if (architecture := architecture_of(name)) is not None]
    assert found == ["sm_89", "sm_89", "sm_89", "sm_89", "sm_86", "sm_90", "gfx942"]


def test_data_centre_cards_have_one_and_processors_have_none() -> None:
    cards = [name for name in device_table() if name.startswith(("nvidia-a1", "nvidia-h", "nvidia-b", "amd-mi"))]
    assert len(cards) > 15
    assert all(architecture_of(name) is not None for name in cards)
    assert architecture_of("x86-64") is None
    assert architecture_of("nvidia-rtx-3090").threads == 1536  # type: ignore[union-attr]
