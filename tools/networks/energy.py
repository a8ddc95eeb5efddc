"""Measured energy of NAS-Bench-201 cells on a Raspberry Pi 5 -> rows of basis ``network``.

Input: ``hwnasbench360.csv.gz``, one row per cell, with the energy of one inference above idle in millijoules. The
graphs are those of :mod:`tools.nas`, for images of 3x32x32; a family is the function that a cell computes.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlm_core.errors import DataError
from rlm_core.source.onnx_graph.reader import from_model
from rlm_core.source.onnx_graph.render import render
from rlm_core.training.datasets.builder import Progress, RowBuilder

from tools.nas import nasbench201

ENERGY = "hwnasbench360.csv.gz"
DEVICE = "raspberry-pi-5"
BACKENDS = {"energy_mj_pi5_onnx_cifar100": "onnxruntime", "energy_mj_pi5_litert_cifar100": "litert"}
"""Columns by what ran the network. TorchMobile is left out: held-out cells rank by .93 there."""
_LEAST = 0.005  # mJ: what is below was not resolved


class EnergyBuilder(RowBuilder):
    """Rows of the labels in a folder: joules of one inference with one thread.

    Cells are in an order by hash, so that the first ``most`` of them are a sample.
    """

    def __init__(self, labels: Path, most: int | None = None) -> None:
        super().__init__("train")
        path = labels / ENERGY
        try:
            with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
                labelled = [
                    (row["arch_str"], {backend: float(row[name] or 0) for name, backend in BACKENDS.items()})
                    for row in csv.DictReader(file)
                ]
        except (OSError, KeyError, ValueError) as error:
            raise DataError(f"{path}: cannot be read as energies of networks ({error!r})") from None

        connected = [label for label in labelled if nasbench201.has_path(label[0])]
        for arch, _ in labelled:
            if not nasbench201.has_path(arch):
                self._leave_out("cell without a path from its input", arch)
        self._labels = sorted(connected, key=lambda label: hashlib.sha256(label[0].encode()).digest())[:most]

    def rows(self, progress: Progress = lambda done, total: None) -> Iterator[dict[str, Any]]:
        """All rows, in the order of the cells."""
        self._units = len(self._labels)
        for done, (arch, energies) in enumerate(self._labels, 1):
            text = render(from_model(nasbench201.build(arch)))
            for row in _rows(arch, text, energies):
                self._rows += 1
                yield row
            progress(done, len(self._labels))


def _rows(arch: str, text: str, energies: Mapping[str, float]) -> Iterator[dict[str, Any]]:
    for backend, millijoules in energies.items():
        if millijoules > _LEAST:
            family = nasbench201.key(arch)
            yield {
                "id": f"networks/energy/{backend}/{arch}",
                "text": text,
                "callees": [],
                "language": "onnx",
                "basis": "network",
                "metric": "energy",
                "device": DEVICE,
                "workload": {"batch": "1", "backend": backend, "mode": "infer", "threads": "1"},
                "value": millijoules / 1e3,
                "group": family,
                "family": family,
                "held_out": "architecture",
                "split": "train",
                "source": "HW-NAS-Bench-360",
            }
