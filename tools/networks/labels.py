"""Labels of real networks: a table of measured latencies -> the measurements, by network.

Input: ``timm_latency.csv.gz``, one row per network, image size and setting. A fifth of the groups is blind: no model is
fitted or chosen on their rows.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rlm_core.errors import DataError

TIMM = "timm_latency.csv.gz"
HUB = "qaihub_models.csv.gz"
_BLIND_ONE_IN = 5
_WORKLOAD = ("mode", "dtype", "layout", "backend")


@dataclass(frozen=True, slots=True)
class LabelledNetwork:
    """A network of timm at one image size; ``parameters`` in millions, as measured: some are of fused networks."""

    name: str
    size: int
    parameters: float

    @property
    def file(self) -> str:
        """The name of its graph's file, without an ending."""
        return f"{self.name}@{self.size}"


@dataclass(frozen=True, slots=True)
class NetworkLabel:
    """A measured latency in seconds for a batch, by setting: device, workload (batch among it) and runtime.

    ``counts``: multiply-accumulates and activations of an image in 1e9 and 1e6, as the origin states them; 0 for
    unknown.
    """

    network: LabelledNetwork
    group: str
    device: str
    workload: Mapping[str, str]
    seconds: float
    counts: tuple[float, float]
    line: int


@dataclass(frozen=True, slots=True)
class HubNetwork:
    """A network of Qualcomm AI Hub: ``parameters`` in millions, 0 for unknown, and the ``source`` of its text."""

    name: str
    group: str
    parameters: float
    source: str


def is_blind(group: str) -> bool:
    """Return whether a group of networks is kept for the final judgement."""
    return int(hashlib.sha256(f"networks/{group}".encode()).hexdigest()[:8], 16) % _BLIND_ONE_IN == 0


def read_timm(folder: Path) -> list[NetworkLabel]:
    """The labels of timm's networks in the folder of label files; networks that timm no longer has are left out.

    Raises:
        DataError: the file is missing or has other columns.
    """
    path = folder / TIMM
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["model_now"]]
            return [_label(row) for row in rows]
    except (OSError, KeyError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as labels of networks ({error!r})") from None


def read_hub(folder: Path) -> list[HubNetwork]:
    """The networks of Qualcomm AI Hub in the folder of label files.

    Raises:
        DataError: the file is missing or has other columns.
    """
    path = folder / HUB
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            return [
                HubNetwork(row["model"], row["group"], float(row["params_m"] or 0), row["text_source"])
                for row in csv.DictReader(file)
            ]
    except (OSError, KeyError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as networks of AI Hub ({error!r})") from None


def _label(row: Mapping[str, str]) -> NetworkLabel:
    return NetworkLabel(
        LabelledNetwork(row["model_now"], int(row["img_size"]), float(row["params_m"])),
        row["group"],
        row["device"],
        {
            "batch": row["batch"],
            **{name: row[name] for name in _WORKLOAD},
            "runtime": f"pytorch-{row['pytorch']}",
        },
        float(row["latency_s"]),
        (float(row["gmacs"] or 0), float(row["macts_m"] or 0)),
        int(row["line"]),
    )
