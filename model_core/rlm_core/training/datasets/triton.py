"""Labels of Triton kernels and PyTorch modules + git repositories -> rows of basis ``kernel`` and ``module``.

The text is what ``units.kernels`` and ``units.modules`` make of the measured source, read by blob id, from a file or
from a value in a line of a journal; the query has device, sizes, dtype, mode and backend. Repeats of one (text, device,
workload) are one row with their median.

Some figures are the wall time of a Python function with its launches. What an empty function costs there, the floor, is
subtracted from them, and the row keeps it: a remainder at or below the floor is only known not to be above it.
"""

from __future__ import annotations

import hashlib
import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_core.errors import DataError
from rlm_core.queries.devices import canonical_device
from rlm_core.source.canonical import canonical
from rlm_core.source.torch_modules import module_text
from rlm_core.source.triton_kernels import kernel_text

from .builder import Progress, RowBuilder, read_labels
from .cache import find_repository, read_blobs
from .splits import merge_groups
from .triton_groups import fold, kernel_group, operator_group, problem_group, problem_of
from .triton_workloads import benchmark_of, config_blob, is_host_timed, label_workload

_FIELDS = frozenset({"repo", "kernel_id", "language", "device", "latency_ms", "source_path"})
_KERNELS = frozenset({"triton", "pytorch+triton"})


@dataclass(frozen=True, slots=True)
class _Text:
    """A text that rows are about and the group that its label's name gives it."""

    text: str
    language: str
    group: str
    source: str


class TritonBuilder(RowBuilder):
    """Rows of label files and of folders of them, with sources from repositories in a source cache.

    Label files that have operators in common belong into one data set, whose groups are then the same for both.

    Raises:
        DataError: there is no label file, or a row lacks a field.
    """

    def __init__(self, labels: Sequence[Path], cache: Path, split: str = "auto", *, download: bool = True) -> None:
        super().__init__(split)
        files = [path for given in labels for path in _label_files(given)]
        self._labels = [row for path in files for row in read_labels(path, _FIELDS, "Triton")]
        self._operators = {fold(_name(label)) for label in self._labels if benchmark_of(label) == "tritonbench_t"}
        self._cache, self._download = cache, download
        self.groups: dict[str, Counter[str]] = {}

    def rows(self, progress: Progress = lambda done, total: None) -> Iterator[dict[str, Any]]:
        """All rows; ``groups`` then holds the number of rows of each group by basis."""
        found = list(self._found(progress))
        texts = {id(text): text for text, *_ in found}.values()
        # Both languages are written in Python's syntax.
        merged = merge_groups((canonical(text.text, "python"), text.group) for text in texts)
        cells: dict[tuple[str, str, str, str], list[tuple[float, float | None]]] = defaultdict(list)
        first: dict[tuple[str, str, str, str], tuple[_Text, dict[str, str], str, str]] = {}
        for text, label, workload, device in found:
            basis = "kernel" if text.language == "triton" else "module"
            cell = (basis, text.text, device, json.dumps(workload, sort_keys=True))
            cells[cell].append(_measurement(label))
            first.setdefault(cell, (text, workload, device, label["kernel_id"]))
        self._units = len({cell[:2] for cell in cells})
        self.groups = {"kernel": Counter(), "module": Counter()}
        for cell, values in cells.items():
            text, workload, device, name = first[cell]
            group = merged[text.group]
            self.groups[cell[0]][group] += 1
            self._rows += 1
            floors = [floor for _, floor in values if floor is not None]
            digest = hashlib.sha256("\0".join(cell).encode(errors="replace")).hexdigest()[:16]
            yield {
                "id": f"triton/{name}/{digest}",
                "text": text.text,
                "callees": [],
                "language": text.language,
                "basis": cell[0],
                "metric": "latency",
                "device": device,
                "workload": workload,
                "value": statistics.median(value for value, _ in values),
                "floor": max(floors) if floors else None,
                "group": group,
                "family": group,
                "held_out": "kernel" if cell[0] == "kernel" else "problem",
                "split": self._split_of(group),
                "source": text.source,
            }

    def _found(self, progress: Progress) -> Iterator[tuple[_Text, dict[str, Any], dict[str, str], str]]:
        by_repository: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for label in self._labels:
            reason = _unusable(label)
            if reason is not None:
                self._leave_out(reason, label["kernel_id"])
            else:
                by_repository[label["repo"]].append(label)
        done = len(self._labels) - sum(map(len, by_repository.values()))
        for repository, labels in by_repository.items():
            path = find_repository(self._cache, repository, download=self._download)
            if path is None:
                self._leave_out("repository not found", repository, len(labels))
            else:
                names = {label["source_blob"]: None for label in labels}
                names |= {name: None for label in labels if (name := config_blob(label)) is not None}
                contents = {
                    name: content.decode("utf-8", errors="replace")
                    for name, content in read_blobs(path, names)
                    if content is not None
                }
                yield from self._usable(repository, labels, contents)
            done += len(labels)
            progress(done, len(self._labels))

    def _usable(
        self, repository: str, labels: list[dict[str, Any]], contents: dict[str, str]
    ) -> Iterator[tuple[_Text, dict[str, Any], dict[str, str], str]]:
        texts: dict[tuple[str, str, int], _Text] = {}
        journals: dict[str, list[str]] = {}
        for label in labels:
            row = label["row"] if label.get("key") == "code" else None
            where = f"{repository}@{label['source_blob']}:{label['source_path']}{'' if row is None else f':{row + 1}'}"
            source = contents.get(label["source_blob"])
            if source is not None and row is not None:
                lines = journals.setdefault(label["source_blob"], source.splitlines())
                source = _code(lines[row] if row < len(lines) else "")
            device = canonical_device(label["device"])
            workload = label_workload(label, contents)
            if source is None:
                self._leave_out("blob not in the repository", where)
            elif not source.strip():
                self._leave_out("empty source", where)
            elif device is None:
                self._leave_out(f"unknown device {label['device']}", label["kernel_id"])
            elif workload is None:
                self._leave_out("sizes not in the repository", label["kernel_id"])
            elif is_host_timed(label) and not label.get("floor_ms"):
                self._leave_out("too few others to know what an empty function costs", label["kernel_id"])
            elif not label["latency_ms"] > 0:
                self._leave_out("no positive time", label["kernel_id"])
            else:
                key = (label["source_blob"], _name(label), -1 if row is None else row)
                if key not in texts:
                    texts[key] = _text(label, source, where, self._operators)
                yield texts[key], label, workload, device


def _unusable(label: dict[str, Any]) -> str | None:
    if label["language"] == "baseline":
        return "baseline of another library, its source is not named"
    if label["language"] not in (*_KERNELS, "pytorch"):
        return f"language {label['language']} is not supported"
    if not label.get("source_blob"):
        return "source not named by the labels"
    return None


def _label_files(given: Path) -> list[Path]:
    if not given.is_dir():
        return [given]
    files = sorted((*given.glob("*.jsonl"), *given.glob("*.jsonl.gz")))
    if not files:
        raise DataError(f"{given}: holds no .jsonl or .jsonl.gz file; name the folder of the Triton labels")
    return files


def _code(line: str) -> str:
    """The program in a line of a journal, empty where there is none."""
    with suppress(ValueError, TypeError, KeyError):
        return str(json.loads(line)["code"])
    return ""


def _measurement(label: Mapping[str, Any]) -> tuple[float, float | None]:
    """The time of a label in seconds, and the floor below which it is not known; None without one."""
    seconds = label["latency_ms"] * 1e-3
    if not is_host_timed(label):
        return seconds, None
    floor = label["floor_ms"] * 1e-3
    return max(seconds - floor, floor), floor


def _name(label: Mapping[str, Any]) -> str:
    """The kernel, operator or problem that a label is about."""
    names = label.get("kernel_name")
    name = names if isinstance(names, str) and names else label["kernel_id"]
    return str(name).split("/", 1)[-1].removesuffix(".py").rstrip(".")


def _text(label: Mapping[str, Any], source: str, where: str, operators: Collection[str]) -> _Text:
    name = _name(label)
    if label["language"] in _KERNELS:
        chosen = {name} if benchmark_of(label) == "vllm_triton_backend" else None
        return _Text(kernel_text(source, chosen), "triton", kernel_group(name), where)
    problem = problem_of(label["kernel_id"], label["source_path"])
    if problem is None:
        return _Text(module_text(source, name), "pytorch", operator_group(name, operators), where)
    return _Text(module_text(source), "pytorch", problem_group(*problem), where)
