"""GPUs of which no measurement was learned: a basis whose features tell a GPU by its data sheet answers for them too.

Code that the model has not seen is ranked nearly as well on a GPU that was left out of training as with its rows
(docs/gpu.md). That holds among the GPUs that were learned, so a data sheet far from theirs is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from .devices import DEVICES

BASES = ("kernel", "module")
FEWEST_DEVICES = 10  # left out in turn, for bands
_MARGIN = 1.5  # beyond the least and the largest figure that was learned
_FIGURES = ("memory_bandwidth", "fp32_flops", "fp16_flops", "multiprocessors")


@lru_cache(1024)
def is_near(device: str, learned: tuple[str, ...]) -> bool:
    """Whether all figures of a device's data sheet are known and near those of its maker's devices in ``learned``."""
    maker = device.partition("-")[0]
    sheets = [sheet for name in learned if name.startswith(f"{maker}-") and (sheet := _sheet(name)) is not None]
    own = _sheet(device)
    if own is None or not sheets:
        return False
    return all(
        min(others) / _MARGIN <= figure <= max(others) * _MARGIN for figure, *others in zip(own, *sheets, strict=True)
    )


def answered_by_sheet(basis: str, device: str | None, learned: Sequence[str]) -> bool:
    """Whether a basis answers for a device by its data sheet; those in ``learned`` it answers for anyway."""
    return basis in BASES and device is not None and device not in learned and is_near(device, tuple(learned))


def answers_for(basis: str, device: str, learned: Sequence[str]) -> bool:
    """Whether a model with these devices has an answer about a device."""
    return device in learned or answered_by_sheet(basis, device, learned)


def _sheet(device: str) -> tuple[float, ...] | None:
    entry = DEVICES.get(device)
    if entry is None or entry.kind != "gpu":
        return None
    figures = [figure for name in _FIGURES if (figure := getattr(entry, name)) is not None]
    return tuple(figures) if len(figures) == len(_FIGURES) else None
