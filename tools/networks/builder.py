"""Labels and graphs of real networks -> rows of basis ``network``; rows of blind groups are the test split."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlm_core.errors import DataError
from rlm_core.training.datasets.builder import Progress, RowBuilder

from .graphs import text_of
from .labels import LabelledNetwork, NetworkLabel, is_blind, read_timm


class NetworkBuilder(RowBuilder):
    """Rows of the labels in a folder whose graphs are in another one."""

    def __init__(self, labels: Path, graphs: Path) -> None:
        super().__init__("auto")
        self._labels = read_timm(labels)
        self._graphs = graphs
        self._texts: dict[LabelledNetwork, str | None] = {}
        if not graphs.is_dir():
            raise DataError(f"{graphs}: not a folder; export the graphs first: python -m tools.networks export")

    def rows(self, progress: Progress = lambda done, total: None) -> Iterator[dict[str, Any]]:
        """All rows, in the order of the labels."""
        for done, label in enumerate(self._labels, 1):
            text = self._text(label.network)
            if text is None:
                self._leave_out("no graph with this number of parameters", label.network.file)
            else:
                self._rows += 1
                yield _row(label, text, done)
            progress(done, len(self._labels))
        self._units = len({text for text in self._texts.values() if text is not None})

    def _text(self, network: LabelledNetwork) -> str | None:
        if network not in self._texts:
            self._texts[network] = text_of(network, self._graphs)
        return self._texts[network]


def _row(label: NetworkLabel, text: str, number: int) -> dict[str, Any]:
    return {
        "id": f"networks/timm/{number}",
        "text": text,
        "callees": [],
        "language": "onnx",
        "basis": "network",
        "metric": "latency",
        "device": label.device,
        "workload": dict(label.workload),
        "value": label.seconds,
        "group": label.group,
        "family": label.group,
        "held_out": "architecture",
        "split": "test" if is_blind(label.group) else "train",
        "source": f"timm {label.network.file}",
    }
