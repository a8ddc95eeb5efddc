"""The devices of ``devices.toml``: names as labels and users write them -> a canonical id, kind and data-sheet figures.

A basis whose features describe a GPU by its data sheet also predicts for GPUs that were not in the training data:
unseen code is ranked nearly as well on a GPU that was left out of training as with its rows (docs/gpu.md). That was
measured among the training GPUs, so a data sheet far from theirs is refused.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal

DeviceKind = Literal["gpu", "cpu", "phone", "accelerator"]


@dataclass(frozen=True, slots=True)
class Device:
    """A device: bytes/s, operations/s, bytes; None is unknown. ``aliases`` are other spellings."""

    id: str
    name: str
    kind: DeviceKind
    aliases: tuple[str, ...] = ()
    memory_bandwidth: float | None = None
    fp32_flops: float | None = None
    fp16_flops: float | None = None
    memory: float | None = None
    multiprocessors: int | None = None
    year: int | None = None


_TABLE = Path(__file__).with_name("devices.toml")
SHEET_BASES = ("kernel", "module")  # whose features describe a GPU by its data sheet
MIN_SHEET_DEVICES = 10  # left out in turn, for bands
_SHEET_MARGIN = 1.5  # beyond the smallest and the largest figure among the training GPUs
_SHEET_FIGURES = ("memory_bandwidth", "fp32_flops", "fp16_flops", "multiprocessors")
# A tuned model answers for the machine where its calls were measured; `measured-x86-64` is not the one of the labels.
OWN_PREFIX = "measured-"
_NOISE = re.compile(r"\b(?:nvidia|amd|intel|geforce|instinct|tesla|radeon|graphics|gpu)\b|[^a-z0-9]+")


@cache
def device_table() -> Mapping[str, Device]:
    """The devices by id, read when they are first asked for."""
    kinds: Any = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    return {key: _device(key, kind, entry) for kind, entries in kinds.items() for key, entry in entries.items()}


def _device(key: str, kind: DeviceKind, entry: dict[str, Any]) -> Device:
    def figure(name: str, unit: float) -> float | None:
        return float(entry[name]) * unit if name in entry else None

    return Device(
        key,
        entry["name"],
        kind,
        tuple(entry.get("aliases", ())),
        figure("gb_per_s", 1e9),
        figure("fp32_tflops", 1e12),
        figure("fp16_tflops", 1e12),
        figure("gib", 2**30),
        entry.get("multiprocessors"),
        entry.get("year"),
    )


def canonical_device(name: str) -> str | None:
    """The id of the device called ``name``; None for an unknown one.

    Case, punctuation, makers and product lines do not count: ``A100 80GB`` and ``nvidia_a100-80gb`` are the same.
    """
    return _by_spelling().get(spelling(name))


def known_device(name: str, known: Sequence[str]) -> str:
    """The name of a device in a model with the devices ``known``: its id, or that of a tuned model's machine."""
    device = canonical_device(name) or name
    measured = OWN_PREFIX + device
    return measured if measured in known and device not in known else device


def spelling(name: str) -> str:
    """A name without case, punctuation, maker and product line."""
    return _NOISE.sub("", re.sub(r"_+", " ", name.lower()))


@cache
def _by_spelling() -> dict[str, str]:
    spellings: dict[str, str] = {}
    for device in device_table().values():
        for name in (device.id, device.name, *device.aliases):
            spellings[spelling(name)] = device.id
    spellings.pop("", None)
    return spellings


@lru_cache(1024)
def is_near(device: str, learned: tuple[str, ...]) -> bool:
    """Return whether a GPU's data sheet is complete and near those of its maker's devices in ``learned``."""
    maker = device.partition("-")[0]
    known = [sheet for name in learned if name.startswith(f"{maker}-") and (sheet := _data_sheet(name)) is not None]
    sheet = _data_sheet(device)
    if sheet is None or not known:
        return False
    return all(
        min(others) / _SHEET_MARGIN <= figure <= max(others) * _SHEET_MARGIN
        for figure, *others in zip(sheet, *known, strict=True)
    )


def answered_by_sheet(basis: str, device: str | None, learned: Sequence[str]) -> bool:
    """Return whether predictions of a basis for a device rely on its data sheet; those in ``learned`` do not."""
    return basis in SHEET_BASES and device is not None and device not in learned and is_near(device, tuple(learned))


def answers_for(basis: str, device: str, learned: Sequence[str]) -> bool:
    """Return whether a model trained on the devices in ``learned`` predicts for a device."""
    return device in learned or answered_by_sheet(basis, device, learned)


def _data_sheet(device: str) -> tuple[float, ...] | None:
    entry = device_table().get(device)
    if entry is None or entry.kind != "gpu":
        return None
    figures = [figure for name in _SHEET_FIGURES if (figure := getattr(entry, name)) is not None]
    return tuple(figures) if len(figures) == len(_SHEET_FIGURES) else None
