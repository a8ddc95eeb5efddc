"""Generated groups -> measured labels: CPU time and peak memory of every program, one JSON object per group.

A run writes shards of some hundred groups and continues after the last one; :func:`merge` joins them into the label
file, template by template. Programs with smaller versions are extrapolated from those and marked so; where no law
meets the smaller versions the program is left out.
"""

from __future__ import annotations

import gzip
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from rlm_core.files import atomic_write, read_json_lines

from ..measuring import MACHINE, Child, Summary, interpreter, version
from .generator import Group, Program, generate
from .laws import extrapolate

Progress = Callable[[int, int], None]
WORKER = Path(__file__).with_name("worker.py")
SHARD = 100  # groups
THREADS = {f"{library}_NUMTHREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR")}
# Extrapolations beyond these are left out.
_SLOWEST, _LARGEST = 1000.0, 1e11
_LATENCY_FLOOR, _MEMORY_FLOOR = 2e-7, 2048.0


def measure_shards(
    seed: int, groups: int, folder: Path, *, date: str, python: str | None = None, until: float | None = None,
    progress: Progress = lambda done, kept: None,
) -> None:  # fmt: skip
    """Measure groups 0 to ``groups`` of a seed into ``folder``, shard by shard; those that exist are kept.

    ``until`` is the time (seconds since the epoch) after which no shard is started; ``progress`` receives the number of
    groups done and of programs kept.

    Raises:
        DataError: the interpreter was not found.
    """
    python = python or interpreter()
    facts = {"python": version(python), "date": date, "machine": MACHINE}
    folder.mkdir(parents=True, exist_ok=True)
    kept = 0
    child = Child(python, WORKER, THREADS)
    try:
        for start in range(0, groups, SHARD):
            path = folder / f"{seed}-{start:06d}.jsonl"
            end = min(start + SHARD, groups)
            if not path.exists():
                if until is not None and time.time() > until:
                    return
                left_out: Counter[str] = Counter()
                lines = [
                    line for line in (label(group, child, left_out) for group in generate(seed, start, end)) if line
                ]
                report = {"left_out": dict(left_out)}
                with atomic_write(path) as partial:
                    text = "".join(f"{_compact(line)}\n" for line in (*(line | facts for line in lines), report))
                    partial.write_text(text, encoding="utf-8")
                kept += sum(len(line["functions"]) for line in lines)
            progress(end, kept)
    finally:
        child.close()


def _compact(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def label(group: Group, child: Child, left_out: Counter[str]) -> dict[str, Any] | None:
    """The label of a group: its base and edits with their costs; None when the base could not be measured."""
    programs = [("base", group.base), *group.edits]
    variants = [module for _, program in programs for module in _modules(program)]
    answers = child.ask(
        {
            "variants": [
                {"module": module.text, "owner": module.owner, "name": module.name, "arguments": module.arguments}
                for module in variants
            ]
        }
    )
    if answers is None:
        left_out["the measuring process ended"] += len(programs)
        return None
    functions = []
    for kind, program in programs:
        count = len(_modules(program))
        found, answers = answers[:count], answers[count:]
        function = _function(kind, program, found)
        if isinstance(function, str):
            left_out[f"{group.family.removeprefix('literal/')}: {function}"] += 1
            if kind == "base":
                return None
        else:
            functions.append(function)
    return {"group": group.name, "family": group.family, "functions": functions}


def _modules(program: Program) -> list[Any]:
    return [module for _, module in program.points] or [program.module]


def _function(kind: str, program: Program, found: list[dict[str, Any]]) -> dict[str, Any] | str:
    """A program with its costs, or why it has none."""
    module, spec = program.module, program.specification
    function: dict[str, Any] = {"kind": kind, "name": module.name, "module": module.text}
    failed = next((answer["error"] for answer in found if "error" in answer), None)
    if failed is not None:
        return str(failed)
    if not program.points:
        low, high = found[0]["p10"], found[0]["p90"]
        latency, memory = found[0]["latency"], float(found[0]["memory"])
    else:
        at = [size for size, _ in program.points]
        times, peaks = ([answer[name] for answer in found] for name in ("latency", "memory"))
        seconds = extrapolate(list(zip(at, times, strict=True)), spec.size, spec.seconds, _LATENCY_FLOOR)
        peak = extrapolate(list(zip(at, peaks, strict=True)), spec.size, spec.memory, _MEMORY_FLOOR)
        if seconds is None or peak is None:
            return "time follows no law" if seconds is None else "memory follows no law"
        if seconds > _SLOWEST or peak > _LARGEST:
            return "too slow or large to extrapolate"
        latency, memory, factor = seconds, peak, max(found[-1]["p90"] / max(found[-1]["latency"], 1e-9), 1.0)
        low, high = latency, latency * factor
        function["extrapolated"] = True
    spread = {"p10": float(f"{low:.3g}"), "p90": float(f"{high:.3g}")}
    return function | {"latency": float(f"{latency:.4g}"), "spread": spread, "memory": int(float(f"{memory:.5g}"))}


def merge(folder: Path, out: Path) -> Summary:
    """Join the shards in ``folder`` into the label file ``out`` (gzipped JSON lines).

    Programs of one template come together, since their texts are alike and compress well.

    Raises:
        DataError: a shard cannot be read.
    """
    lines: list[dict[str, Any]] = []
    left_out: Counter[str] = Counter()
    for line in _lines(sorted(folder.glob("*.jsonl"))):
        if "left_out" in line:
            left_out.update(line["left_out"])
        else:
            lines.append(line)
    lines.sort(key=lambda line: (line["family"], line["group"]))
    with atomic_write(out) as partial, gzip.GzipFile(partial, "wb", compresslevel=9, mtime=0) as file:
        for line in lines:
            file.write(f"{_compact(line)}\n".encode())
    return Summary(len(lines), sum(len(line["functions"]) for line in lines), dict(left_out))


def _lines(paths: Iterable[Path]) -> Iterator[dict[str, Any]]:
    for path in paths:
        for _, line in read_json_lines(path):
            yield line
