"""NAS label files -> rows of basis ``network``: the text of an architecture's ONNX graph with every value known of it.

| file | read as |
|---|---|
| nasbench201_accuracy | accuracy on CIFAR-10, CIFAR-100 and ImageNet16-120 after 12 and 200 epochs |
| nasbench201_latency | latency on 17 devices, GPUs at three batches (27 columns) |
| nasbench101_20k, nasbench101_sample100 | accuracy on CIFAR-10 after 4, 12, 36 and 108 epochs (train time: no metric) |
| nasbenchmacro_cifar10_accuracy | accuracy on CIFAR-10, mean of three runs |
| accelnasbench_mnasnet | ImageNet accuracy of a shortened training, latency on two FPGAs (throughput: no latency) |
| fbnet_latency | latency on 17 devices, GPUs at three batches (27 columns) |
| ofa_latency | latency on four GPUs at three batches |
| hat_transformer_latency | latency of translating one sentence on three devices |

A network is written once for all its queries: NAS-Bench-201 with the CIFAR-10 head and 32 pixels, whatever the query's
data set, and with batch 1, whatever the query's batch. Networks at chance level are kept: that is what they learn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from rlm_core.errors import DataError
from rlm_core.source.onnx_graph.reader import from_model
from rlm_core.source.onnx_graph.render import render
from rlm_core.training.datasets.builder import BuildReport, Progress, RowBuilder

from .labels import FILES, Entry, Measurement, read_entries
from .spaces import Architecture, build

_CHUNK = 64


def network_text(architecture: Architecture) -> str:
    """The compact text of an architecture's network."""
    return render(from_model(build(architecture)))


class NasBuilder(RowBuilder):
    """Rows of the label files in a folder."""

    def __init__(self, labels: Path, split: str = "auto", *, workers: int = 2) -> None:
        super().__init__(split)
        self._entries: dict[str, list[Entry]] = {}
        for name in FILES:
            if (labels / name).exists():
                self._entries[name] = read_entries(labels / name)
            else:
                self._leave_out("label file not in the folder", name)
        if not self._entries:
            raise DataError(f"{labels}: none of the label files of networks is there ({', '.join(FILES)})")
        self._workers = workers
        self._texts: dict[Architecture, str] = {}

    def rows(self, progress: Progress = lambda done, total: None) -> Iterator[dict[str, Any]]:
        """All rows, file by file, in the order of the label files."""
        entries = [entry for file in self._entries.values() for entry in file]
        for done, (entry, text) in enumerate(zip(entries, self._read(entries), strict=True), 1):
            for reason in entry.left_out:
                self._leave_out(reason, entry.name)
            for measurement in entry.measurements:
                self._rows += 1
                yield _row(entry, measurement, text, self._split_of(entry.group))
            progress(done, len(entries))

    def report(self) -> BuildReport:
        """The numbers of kept and left-out rows; units are distinct texts."""
        self._units = len(set(self._texts.values()))
        return super().report()

    def _read(self, entries: Iterable[Entry]) -> Iterator[str]:
        """The text of each entry's network, made once for each architecture."""
        wanted = [entry.architecture for entry in entries]
        new = list(dict.fromkeys(wanted))
        if self._workers > 1:
            with ProcessPoolExecutor(self._workers) as pool:
                yield from self._in_order(wanted, zip(new, pool.map(network_text, new, chunksize=_CHUNK), strict=True))
        else:
            yield from self._in_order(wanted, ((key, network_text(key)) for key in new))

    def _in_order(self, wanted: Iterable[Architecture], made: Iterator[tuple[Architecture, str]]) -> Iterator[str]:
        for key in wanted:
            while key not in self._texts:
                name, text = next(made)
                self._texts[name] = text
            yield self._texts[key]


def _row(entry: Entry, measurement: Measurement, text: str, split: str) -> dict[str, Any]:
    return {
        "id": f"nas/{entry.name}/{measurement.name}",
        "text": text,
        "callees": [],
        "language": "onnx",
        "basis": "network",
        "metric": measurement.metric,
        "device": measurement.device,
        "workload": dict(measurement.workload),
        "value": measurement.value,
        "group": entry.group,
        "family": entry.group,
        "held_out": "architecture",
        "split": split,
        "source": f"{entry.space} {entry.code}",
    }
