"""``makora-ai/triton-gpu-latency`` -> rows of basis ``module``, for users who have its Parquet files.

A row of the data set is a Python program (``x``) with a problem, the class ``Model`` of plain PyTorch and its inputs,
and an answer, the class ``ModelNew`` that computes the same with Triton kernels; ``y`` is the run time of ``ModelNew``
in milliseconds, null where the answer failed. So one measurement is a forward pass, which may launch several kernels
and operators of PyTorch: the basis is ``module``, not ``kernel`` (one launch). The text is what the server reads of
``ModelNew``: the class, what it names of the file, kernels included, and the functions that make the inputs. As for
other modules the language is PyTorch.

No public source names the GPU, so the user must. The inputs are in the text; of the workload, only that the module was
called directly is known.

The test file names a problem (``problem_id``) and how much of it was kept out of the training file
(``holdout_group``); the training file has neither. There, programs with the same ``Model`` are one group.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from rlm_core.errors import DataError
from rlm_core.queries.devices import canonical_device
from rlm_core.source.canonical import canonical
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.torch_modules import find_modules

from .builder import Progress, RowBuilder
from .code_regression import read_batches

_DATA_SET = "triton-gpu-latency"
_ANSWER, _PROBLEM = "ModelNew", "Model"
_WHOLE = "full"  # begins the name of the group of whole problems; of the others, the training file has other answers
_WORKLOAD = {"backend": "eager"}


class TritonLatencyBuilder(RowBuilder):
    """Rows of one Parquet file or of a folder of them, each read once.

    Args:
        path: the file or folder.
        device: the GPU that the run times are of, by any of its names.
        split: the split of all rows; ``auto`` puts rows of a ``holdout_group`` into ``test`` and decides by group for
            the others.

    Raises:
        DataError: there is no such file, it lacks a column, or the device is unknown.
    """

    def __init__(self, path: Path, device: str, split: str = "auto") -> None:
        super().__init__(split)
        known = canonical_device(device)
        if known is None:
            raise DataError(f"--device {device}: unknown; name the GPU on which the programs ran, such as H100")
        self._device = known
        self._paths = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        if not self._paths:
            raise DataError(f"{path}: holds no .parquet file; name the folder or a file of {_DATA_SET}")
        for own in self._paths:
            next(read_batches(own, ("x", "y"), (), _DATA_SET), None)
        self._total = sum(pq.read_metadata(own).num_rows for own in self._paths)

    def rows(self, progress: Progress = lambda done, total: None) -> Iterator[dict[str, Any]]:
        """All rows in the order of the files."""
        before = 0
        for path in self._paths:
            number = 0
            for batch, done, _ in read_batches(path, ("x", "y"), ("problem_id", "holdout_group"), _DATA_SET):
                for row in batch.to_pylist():
                    yield from self._of(f"{path.stem}/{number}", row)
                    number += 1
                progress(before + done, self._total)
            before += number

    def _of(self, name: str, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        milliseconds, program = row["y"], row["x"]
        if milliseconds is None or math.isnan(milliseconds):
            self._leave_out("the program failed", name)
        elif not 0 < milliseconds < math.inf:
            self._leave_out("no positive time", name)
        elif not isinstance(program, str) or not program.strip():
            self._leave_out("empty text", name)
        else:
            modules = _modules(program)
            if _ANSWER not in modules:
                self._leave_out(f"no module {_ANSWER}", name)
                return
            held_out = str(row.get("holdout_group") or "")
            group = _group(row.get("problem_id"), modules)
            self._units += 1
            self._rows += 1
            yield {
                "id": f"{_DATA_SET}/{name}",
                "text": modules[_ANSWER],
                "callees": [],
                "language": "pytorch",
                "basis": "module",
                "metric": "latency",
                "device": self._device,
                "workload": _WORKLOAD,
                "value": milliseconds * 1e-3,
                "group": group,
                "family": group,
                "held_out": "problem" if not held_out or held_out.startswith(_WHOLE) else "text",
                "split": "test" if held_out and self._split == "auto" else self._split_of(group),
                "source": f"{_DATA_SET} {name}",
            }


def _modules(program: str) -> dict[str, str]:
    """The texts of the modules of a program by name, as the server reads them."""
    parsed = ParsedSource(program.encode("utf-8", errors="replace"), "python")
    return {unit.qualname: unit.text for unit in find_modules(parsed)}


def _group(problem: Any, modules: Mapping[str, str]) -> str:
    """The group of a program: its problem, or without a name for it the text of the problem's module."""
    if problem is not None:
        return f"{_DATA_SET}/{problem}"
    text = canonical(modules.get(_PROBLEM, modules[_ANSWER]), "python")
    return f"{_DATA_SET}/text/{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"
