"""Labels of Triton kernels and PyTorch modules + git repositories -> rows of basis ``kernel`` and ``module``.

The text is what ``kernels`` and ``modules`` make of the source that was measured,
read by blob id; the query carries device, sizes, dtype, mode and backend. Repeats of one (text, device, workload) are
one row with their median. A group is an idea (softmax, whoever wrote it) or a problem.
"""

from __future__ import annotations

import hashlib
import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_core.errors import DataError
from rlm_core.queries.devices import canonical_device
from rlm_core.source.canonical import canonical
from rlm_core.source.units.kernels import kernel_text
from rlm_core.source.units.modules import module_text

from . import triton_sizes as sizes
from .cache import find_repository, read_blobs
from .functions import Progress
from .labels import read_labels
from .schema import Report
from .splits import merge_groups, split_of
from .triton_groups import kernel_group, operator_group, problem_group, problem_of

_FIELDS = frozenset({"repo", "kernel_id", "language", "device", "latency_ms", "source_path"})
_KERNELS = frozenset({"triton", "pytorch+triton"})
# FP32 is what PyTorch makes of a problem that names no dtype.
_DEFAULT_MODULE_DTYPE = "float32"


@dataclass(frozen=True, slots=True)
class _Text:
    """A text that rows are about and the group that its label's name gives it."""

    text: str
    language: str
    group: str
    source: str


class Builder:
    """Builds the rows of a folder of label files or one of them; after :meth:`rows`, :meth:`report` says what lacks.

    Raises:
        DataError: no label file, or a row lacks a field.
    """

    def __init__(self, labels: Path, cache: Path, split: str = "auto", *, download: bool = True) -> None:
        files = sorted((*labels.glob("*.jsonl"), *labels.glob("*.jsonl.gz"))) if labels.is_dir() else [labels]
        if not files:
            raise DataError(f"{labels}: holds no .jsonl or .jsonl.gz file; name the folder of the Triton labels")
        self._labels = [row for path in files for row in read_labels(path, _FIELDS, "Triton")]
        self._cache, self._split, self._download = cache, split, download
        self._missing: Counter[str] = Counter()
        self._examples: dict[str, list[str]] = defaultdict(list)
        self._rows = self._units = 0
        self.groups: dict[str, Counter[str]] = {}

    def rows(self, progress: Progress = lambda done, total: None) -> Iterator[dict[str, Any]]:
        """All rows; ``groups`` then holds the number of rows of each group by basis."""
        found = list(self._found(progress))
        texts = {id(text): text for text, *_ in found}.values()
        # Both languages are written in Python's syntax.
        merged = merge_groups((canonical(text.text, "python"), text.group) for text in texts)
        cells: dict[tuple[str, str, str, str], list[float]] = defaultdict(list)
        first: dict[tuple[str, str, str, str], tuple[_Text, dict[str, str], str, str]] = {}
        for text, label, workload, device in found:
            basis = "kernel" if text.language == "triton" else "module"
            cell = (basis, text.text, device, json.dumps(workload, sort_keys=True))
            cells[cell].append(label["latency_ms"] * 1e-3)
            first.setdefault(cell, (text, workload, device, label["kernel_id"]))
        self._units = len({cell[:2] for cell in cells})
        self.groups = {"kernel": Counter(), "module": Counter()}
        for cell, values in cells.items():
            text, workload, device, name = first[cell]
            group = merged[text.group]
            self.groups[cell[0]][group] += 1
            self._rows += 1
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
                "value": statistics.median(values),
                "group": group,
                "family": group,
                "held_out": "kernel" if cell[0] == "kernel" else "problem",
                "split": split_of(group) if self._split == "auto" else self._split,
                "source": text.source,
            }

    def report(self) -> Report:
        """What was kept and what was left out, by reason."""
        return Report(self._rows, self._units, dict(self._missing), dict(self._examples))

    def _found(self, progress: Progress) -> Iterator[tuple[_Text, dict[str, Any], dict[str, str], str]]:
        by_repository: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for label in self._labels:
            reason = _unusable(label)
            if reason is not None:
                self._count(reason, label["kernel_id"])
            else:
                by_repository[label["repo"]].append(label)
        done = len(self._labels) - sum(map(len, by_repository.values()))
        for repository, labels in by_repository.items():
            path = find_repository(self._cache, repository, download=self._download)
            if path is None:
                self._count("repository not found", repository, len(labels))
            else:
                names = {label["source_blob"]: None for label in labels}
                names |= {name: None for label in labels if (name := _config(label)) is not None}
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
        texts: dict[tuple[str, str], _Text] = {}
        for label in labels:
            where = f"{repository}@{label['source_blob']}:{label['source_path']}"
            source = contents.get(label["source_blob"])
            device = canonical_device(label["device"])
            workload = _workload(label, contents)
            if source is None:
                self._count("blob not in the repository", where)
            elif not source.strip():
                self._count("empty source", where)
            elif device is None:
                self._count(f"unknown device {label['device']}", label["kernel_id"])
            elif workload is None:
                self._count("sizes not in the repository", label["kernel_id"])
            elif not label["latency_ms"] > 0:
                self._count("no positive time", label["kernel_id"])
            else:
                key = (label["source_blob"], _unit_name(label))
                if key not in texts:
                    texts[key] = _text(label, source, where)
                yield texts[key], label, workload, device

    def _count(self, reason: str, example: str, rows: int = 1) -> None:
        self._missing[reason] += rows
        if len(self._examples[reason]) < 5:
            self._examples[reason].append(example)


def _unusable(label: dict[str, Any]) -> str | None:
    if label["language"] == "baseline":
        return "baseline of another library, its source is not named"
    if label["language"] not in (*_KERNELS, "pytorch"):
        return f"language {label['language']} is not one of ours"
    if not label.get("source_blob"):
        return "source not named by the labels"
    return None


def _benchmark(label: dict[str, Any]) -> str:
    return str(label["kernel_id"]).split("/", 1)[0]


def _unit_name(label: dict[str, Any]) -> str:
    """Which part of a file a label is about."""
    return str(label.get("kernel_name") or label["kernel_id"])


def _text(label: dict[str, Any], source: str, where: str) -> _Text:
    name = _unit_name(label).split("/", 1)[-1].removesuffix(".py").rstrip(".")
    if label["language"] in _KERNELS:
        chosen = {name} if _benchmark(label) == "vllm_triton_backend" else None
        return _Text(kernel_text(source, chosen), "triton", kernel_group(name), where)
    problem = problem_of(label["kernel_id"], label["source_path"])
    if problem is None:
        return _Text(module_text(source, name), "pytorch", operator_group(name), where)
    return _Text(module_text(source), "pytorch", problem_group(*problem), where)


def _config(label: dict[str, Any]) -> str | None:
    """The name in the repository of the file that overrides a problem's sizes."""
    path = label.get("config_path")
    return f"{label['commit']}:{path}" if path and "\n" not in path else None


def _workload(label: dict[str, Any], contents: dict[str, str]) -> dict[str, str] | None:
    """The workload of a label; None when the file that holds its sizes cannot be read."""
    given, benchmark = label.get("input_size"), _benchmark(label)
    dtypes = [str(name) for name in label.get("dtypes_in_harness") or label.get("input_extra") or ()]
    if isinstance(given, list):
        return sizes.positional(given, dtypes)
    if (config := _config(label)) is not None:
        try:
            given = sizes.merged_configs(json.loads(contents[config]))
        except (KeyError, ValueError, TypeError, AttributeError):
            return None
    # A string names a setting whose sizes stand in the source.
    model_size = "vocab_size" if "cross_entropy" in label["kernel_id"] else "hidden_size"
    given = given if isinstance(given, dict) else {}
    named = sizes.named(given, [*dtypes, *_other_dtypes(label)], model_size)
    if benchmark == "liger":
        named["mode"] = str(label["mode"])
        variant = _VARIANTS.get(str(label.get("provider")))
        if variant is not None:
            named["variant"] = variant
    if benchmark in ("vllm_triton_backend", "aiter"):
        named["autotuned"] = "best"
    if label.get("backend"):
        named["backend"] = sizes.backend(label["backend"])
        named.setdefault("dtype", sizes.dtype_name(_DEFAULT_MODULE_DTYPE))
    return named


_VARIANTS = {"liger_tiled": "tiled", "liger_in_place": "in-place", "liger-fp32-accum": "fp32-accumulation"}


def _other_dtypes(label: dict[str, Any]) -> list[str]:
    """Dtypes that only the name of a GEMM says: activations and weights of 8 bits."""
    return ["fp8"] if "a8w8_blockscale" in label["kernel_id"] else []
