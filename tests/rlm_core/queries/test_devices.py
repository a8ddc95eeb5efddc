"""The device table: spellings, figures, and which devices a model answers for by their data sheet."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.queries import devices
from rlm_core.queries.devices import answered_by_sheet, answers_for, canonical_device, device_table, is_near, spelling

LEARNED = ("nvidia-a100-sxm4-80gb", "nvidia-h100-sxm", "nvidia-rtx-3090", "amd-mi300x")


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("NVIDIA A100 80GB", "nvidia-a100-sxm4-80gb"),
        ("NVIDIA A100 80GB PCIe", "nvidia-a100-pcie-80gb"),
        ("a100", "nvidia-a100-sxm4-80gb"),
        ("NVIDIA H100 80GB HBM3", "nvidia-h100-sxm"),
        ("Tesla T4", "nvidia-t4"),
        ("NVIDIA GeForce RTX 5090 Laptop GPU", "nvidia-rtx-5090-laptop"),
        ("NVIDIA B300 SXM6 AC", "nvidia-b300"),
        ("AMD Instinct MI250X/MI250", "amd-mi250x"),
        ("AMD Instinct MI350X/MI355X (gfx950, 256 CU)", "amd-mi350x"),
        ("AMD Instinct MI308X (gfx942, 80 CU)", "amd-mi308x"),
        ("AMD gfx1250 (96 CU)", "amd-gfx1250-96cu"),
        ("AMD Radeon PRO W6600", "amd-w6600"),
        ("RTX4090", "nvidia-rtx-4090"),
        ("1080ti", "nvidia-gtx-1080-ti"),
        ("titan_xp", "nvidia-titan-xp"),
        ("gpu_titanxp", "nvidia-titan-xp"),
        ("raspi4", "raspberry-pi-4"),
        ("gold_6226", "intel-xeon-gold-6226"),
        ("x86_64", "x86-64"),
        ("leetcode", "leetcode"),
    ],
)
def test_labels_and_users_spellings_name_one_device(name: str, device: str) -> None:
    assert canonical_device(name) == device


@pytest.mark.parametrize("name", ["", "NVIDIA", "gpu", "nvidia-z9000", "a100 90gb"])
def test_an_unknown_name_is_no_device(name: str) -> None:
    assert canonical_device(name) is None


def test_no_spelling_denotes_two_devices() -> None:
    owners: dict[str, str] = {}
    for device in device_table().values():
        for name in (device.id, device.name, *device.aliases):
            assert owners.setdefault(spelling(name), device.id) == device.id, name


@given(st.sampled_from(sorted(device_table())))
def test_an_id_names_itself_in_any_case_and_punctuation(key: str) -> None:
    assert canonical_device(key) == key
    assert canonical_device(key.upper().replace("-", "_")) == key
    assert canonical_device(device_table()[key].name) == key


def test_the_table_has_no_column_that_nothing_reads() -> None:
    table = tomllib.loads(Path(devices.__file__).with_name("devices.toml").read_text(encoding="utf-8"))
    figures = {"gb_per_s", "fp32_tflops", "fp16_tflops", "gib", "multiprocessors"}
    for kind, entries in table.items():
        for key, entry in entries.items():
            assert set(entry) <= {"name", "aliases", "year"} | (figures if kind == "gpu" else set()), key


def test_figures_of_gpus_are_of_the_right_order() -> None:
    for device in device_table().values():
        if device.kind != "gpu":
            assert device.memory_bandwidth is None
        elif device.memory_bandwidth is not None:
            assert 1e11 < device.memory_bandwidth < 1e13
            assert device.memory is not None
            assert 4 * 2**30 < device.memory < 400 * 2**30
            assert device.fp32_flops is None or 1e12 < device.fp32_flops < 2e14
            assert device.fp16_flops is None or device.fp16_flops > device.fp32_flops  # type: ignore[operator]


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
