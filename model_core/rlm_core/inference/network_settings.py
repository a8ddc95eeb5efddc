"""The fitted costs of kernels by setting, a device with a workload, as a model's directory has them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import msgspec

from rlm_core.errors import ModelError
from rlm_core.files import read_regular
from rlm_core.source.onnx_graph.kernels import KINDS
from rlm_core.types import LEVELS, Metric

NETWORK_COSTS = "network_costs.json"
FORMAT = "rlm-network-costs-2"
_MAX_BYTES = 4 * 2**20
BATCH = "batch"
ARITHMETIC = ("conv", "pointwise", "grouped", "depthwise", "product", "attention", "batched", "recurrent", "pool")
MACS, MOVED = tuple(f"{kind}.macs" for kind in ARITHMETIC), tuple(f"{kind}.moved" for kind in KINDS)
ONCE = ("kernels", "weights")
"""What costs once per batch: starting a kernel, and reading a million weights."""
COLUMNS = (*MACS, *MOVED, *ONCE)
"""Per image: 1e9 multiply-accumulates (of a pool, elements in windows) and 1e6 moved elements by kind; :data:`ONCE`."""


class SettingCost(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The fitted costs of a setting: a latency in seconds, or an ``energy`` in joules.

    ``costs``: per unit of each of :data:`COLUMNS`. ``errors``: quantiles of log(measured / predicted) at ``LEVELS``,
    for families that the fit did not see. ``batches``: the 5 % and 95 % quantiles of the measured ones, and the median.
    ``known``: the kinds of kernels that enough families have. ``fixed``: what each network costs for work that all
    measured networks have alike. Where a number is stated only for networks like those of one search space, ``most``
    and ``least`` are the most work of each column and the least cost of one, and ``largest`` the most elements that one
    of their kernels reads and writes; elsewhere they are empty and 0.
    """

    device: str
    workload: dict[str, str]
    costs: tuple[float, ...]
    errors: tuple[float, ...]
    batches: tuple[int, int, int]
    known: tuple[str, ...]
    groups: int
    rows: int
    metric: Metric = "latency"
    most: tuple[float, ...] = ()
    least: float = 0.0
    largest: int = 0
    fixed: float = 0.0

    def at(self, batch: int) -> dict[str, str]:
        """The whole workload of a query with a batch."""
        return {BATCH: str(batch), **self.workload}


class _CostFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    columns: tuple[str, ...]
    settings: tuple[SettingCost, ...]


def save(settings: Sequence[SettingCost], path: Path) -> None:
    """Write the costs of settings; the first of a metric on a device is its default."""
    content = msgspec.json.format(msgspec.json.encode(_CostFile(FORMAT, COLUMNS, tuple(settings))), indent=0)
    path.write_bytes(content + b"\n")


def load(path: Path) -> tuple[SettingCost, ...]:
    """Read what :func:`save` wrote.

    Raises:
        ModelError: the file is missing or corrupt, or has other columns.
    """
    try:
        file = msgspec.json.decode(read_regular(path, _MAX_BYTES), type=_CostFile)
    except (OSError, msgspec.DecodeError) as error:
        raise ModelError(f"{path}: missing or corrupt ({error}); reinstall the model") from None
    if file.format != FORMAT or file.columns != COLUMNS or not all(map(_is_sound, file.settings)):
        raise ModelError(f"{path}: corrupt, or of another version; reinstall the model")
    return file.settings


def _is_sound(setting: SettingCost) -> bool:
    """Return whether all numbers are finite, costs are not negative, and errors rise."""
    return (
        len(setting.costs) == len(COLUMNS)
        and len(setting.errors) == len(LEVELS)
        and all(
            0 <= value < math.inf
            for value in (*setting.costs, *setting.most, setting.least, setting.largest, setting.fixed)
        )
        and len(setting.most) in (0, len(COLUMNS))
        and all(math.isfinite(value) for value in setting.errors)
        and list(setting.errors) == sorted(setting.errors)
        and 0 < setting.batches[0] <= setting.batches[2] <= setting.batches[1]
    )
