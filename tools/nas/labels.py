"""The label files of NAS benchmarks: a CSV row -> the architecture that it is about and its measurements in SI units.

Every file has one reader here. Columns of throughput are not read, because images per second at an unstated batch size,
with several batches in flight, do not give a latency. Top-5 accuracies and training times are not read either, because
they are not among our metrics. Of HAT's latency only the sum of encoder and decoder is read.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rlm_core.errors import DataError
from rlm_core.queries.devices import canonical_device

from . import fbnet, hat, mnasnet, nasbench101, nasbench201, nasbench_macro, ofa
from .spaces import Architecture

# Only GPUs were measured at several batches; `essential_ph_1` is a phone's name.
_BATCHED = re.compile(r"(1080ti|2080ti|titanx|titanxp|titan_xp|titan_rtx|v100)_(\d+)")
_PRUNED_SECONDS = 0.5e-3
Row = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One value: seconds or a fraction; ``name`` distinguishes the measurements of an architecture."""

    name: str
    metric: str
    device: str | None
    workload: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Entry:
    """One row: ``space`` and ``arguments`` build the network, equal ``key`` means the same network for a split."""

    name: str
    space: str
    arguments: tuple[object, ...]
    key: str
    measurements: tuple[Measurement, ...]
    left_out: tuple[str, ...] = field(default=())

    @property
    def architecture(self) -> Architecture:
        """The network to build."""
        return self.space, self.arguments

    @property
    def group(self) -> str:
        """The group of the architecture, short and fit for a split."""
        return f"{self.space}/{hashlib.sha256(self.key.encode()).hexdigest()[:12]}"

    @property
    def code(self) -> str:
        """The arguments as text."""
        return " ".join(map(str, self.arguments))


def read_entries(path: Path) -> list[Entry]:
    """The rows of a label file, recognized by its name.

    Raises:
        DataError: the file is not one of :data:`FILES`, cannot be read, or lacks a column.
    """
    if path.name not in FILES:
        raise DataError(f"{path}: not a label file of networks; known are {', '.join(FILES)}")
    read = FILES[path.name]
    number = 1
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            entries = []
            for number, row in enumerate(csv.DictReader(file), 2):
                entries.append(read(row, number))
            return entries
    except KeyError as error:
        raise DataError(f"{path}:{number}: lacks column {error}; is this the right file?") from None
    except ValueError as error:
        raise DataError(f"{path}:{number}: {error}; fix or remove the line") from None
    except (OSError, EOFError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read ({error})") from None


def _nasbench201_latency(row: Row, number: int) -> Entry:
    arch = row["arch_str"]
    measurements, left_out = _latencies(row, {"arch_index", "arch_str"})
    if not nasbench201.has_path(arch):
        # A Pixel 3 and a Raspberry Pi ran these cells pruned to nothing: microseconds that no network takes.
        kept = tuple(m for m in measurements if m.value >= _PRUNED_SECONDS)
        left_out += ("network without a path, pruned away before it was measured",) * (len(measurements) - len(kept))
        measurements = kept
    name = f"nasbench201/{row['arch_index']}"
    return Entry(name, "nasbench201", (arch,), nasbench201.key(arch), measurements, left_out)


def _nasbench201_accuracy(row: Row, number: int) -> Entry:
    arch = row["arch_str"]
    columns = [
        (f"{dataset}_{subset}_{epochs}ep", dataset.replace("imagenet16_120", "imagenet16-120"), epochs, subset)
        for dataset in ("cifar10", "cifar100", "imagenet16_120")
        for epochs, subset in (("200", "test"), ("12", "val"), ("12", "test"))
    ]
    measurements, left_out = _accuracies(row, columns, 0.01)
    name = f"nasbench201/{row['arch_index']}"
    return Entry(name, "nasbench201", (arch,), nasbench201.key(arch), measurements, left_out)


def _nasbench101(row: Row, number: int) -> Entry:
    epochs = ("4", "12", "36", "108")
    sample = "module_hash" not in row
    columns = (
        [(f"{subset}_accuracy_{e}", "cifar10", e, subset) for e in epochs for subset in ("val", "test")]
        if sample
        else [(f"val_acc_{e}ep", "cifar10", e, "val") for e in epochs]
    )
    measurements, left_out = _accuracies(row, columns, 1.0)
    name = f"nasbench101-sample/{row['id']}" if sample else f"nasbench101/{row['module_hash']}"
    cell = nasbench101.renumbered(row["adjacency"], row["ops"], int(row["params"]))
    return Entry(name, "nasbench101", cell, nasbench101.key(*cell), measurements, left_out)


def _nasbench_macro(row: Row, number: int) -> Entry:
    arch = row["arch"]
    measurements, left_out = _accuracies(row, [("mean_acc", "cifar10", "50", "test")], 0.01)
    key = nasbench_macro.key(arch)
    return Entry(f"nasbench_macro/{arch}", "nasbench_macro", (arch,), key, measurements, left_out)


def _fbnet(row: Row, number: int) -> Entry:
    arch = row["arch_str"]
    measurements, left_out = _latencies(row, {"arch_index", "arch_str", "op_idx"})
    return Entry(f"fbnet/{row['arch_index']}", "fbnet", (arch,), fbnet.key(arch), measurements, left_out)


def _ofa(row: Row, number: int) -> Entry:
    layers = row["depth"], row["kernel"], row["expand"]
    measurements, left_out = _latencies(row, {"arch_index", "resolution", "depth", "kernel", "expand"})
    arguments = (int(row["resolution"]), *layers)
    return Entry(f"ofa/{row['arch_index']}", "ofa", arguments, ofa.key(*layers), measurements, left_out)


def _mnasnet(row: Row, number: int) -> Entry:
    blocks = row["block_e"], row["block_k"], row["block_l"], row["block_se"]
    accuracies, lacking = _accuracies(row, [("val_top1", "imagenet", "16", "val")], 0.01)
    latencies, also = _latencies({name: row[f"latency_{name}_ms"] for name in ("vck190", "zcu102")}, set())
    name = f"mnasnet/{row['result_id']}"
    return Entry(name, "mnasnet", blocks, mnasnet.key(*blocks), accuracies + latencies, lacking + also)


def _hat(row: Row, number: int) -> Entry:
    task, device = row["task"], row["device"]
    sizes = hat.parse(row)
    length = str(hat.TASKS[task].length)
    measurements, left_out = _latencies({device: row["latency_ms"]}, set(), {"beam": "5", "steps": length})
    return Entry(f"hat/{number - 2}", "hat", (task, sizes), hat.key(task, sizes), measurements, left_out)


FILES: dict[str, Callable[[Row, int], Entry]] = {
    "nasbench201_accuracy.csv.gz": _nasbench201_accuracy,
    "nasbench201_latency.csv.gz": _nasbench201_latency,
    "nasbench101_20k.csv.gz": _nasbench101,
    "nasbench101_sample100.csv.gz": _nasbench101,
    "nasbenchmacro_cifar10_accuracy.csv.gz": _nasbench_macro,
    "accelnasbench_mnasnet.csv.gz": _mnasnet,
    "fbnet_latency.csv.gz": _fbnet,
    "ofa_latency.csv.gz": _ofa,
    "hat_transformer_latency.csv.gz": _hat,
}


def _accuracies(
    row: Row, columns: list[tuple[str, str, str, str]], unit: float
) -> tuple[tuple[Measurement, ...], tuple[str, ...]]:
    """Columns as (name, data set, epochs, subset), values in ``unit`` -> fractions."""
    found: list[Measurement] = []
    left_out: list[str] = []
    for column, dataset, epochs, subset in columns:
        value = _number(row[column])
        if value is None or not 0 < value * unit <= 1:
            left_out.append("no accuracy in the column")
            continue
        workload = {"dataset": dataset, "epochs": epochs, "subset": subset}
        found.append(Measurement(f"accuracy/{dataset}/{epochs}/{subset}", "accuracy", None, workload, value * unit))
    return tuple(found), tuple(left_out)


def _latencies(
    row: Row, other: set[str], more: Mapping[str, str] | None = None
) -> tuple[tuple[Measurement, ...], tuple[str, ...]]:
    """Every column that is not ``other`` names a device and perhaps a batch; milliseconds -> seconds."""
    found: list[Measurement] = []
    left_out: list[str] = []
    for column, text in row.items():
        if column in other:
            continue
        match = _BATCHED.fullmatch(column)
        name, batch = (match[1], match[2]) if match else (column, "1")
        device = canonical_device(name)
        if device is None:
            raise ValueError(f"unknown device {name!r}")
        value = _number(text)
        if value is None or value <= 0:
            left_out.append("no latency in the column")
            continue
        workload = {"batch": batch, **(more or {}), **_setting(row, column)}
        found.append(Measurement(f"latency/{device}/{batch}", "latency", device, workload, value * 1e-3))
    return tuple(found), tuple(left_out)


def _setting(row: Row, column: str) -> dict[str, str]:
    # FBNet on the Xeon Gold 6226 is 3.5 times as slow as on the 6240, unlike NAS-Bench-201: another set-up of it.
    return {"setup": "slow"} if column == "gold_6226" and "op_idx" in row else {}


def _number(text: str) -> float | None:
    return float(text) if text.strip() else None
