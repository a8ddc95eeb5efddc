"""The functions of the folder ``functions`` -> measured labels, one JSON object per function, as of generated groups.

Times are scaled to the reference machine of the unit costs: by the median of what some of them take there and here.
"""

from __future__ import annotations

import ast
import gzip
import json
import statistics
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlm_core.cost.library.unit_costs import table
from rlm_core.files import atomic_write
from rlm_core.training.datasets.schema import HAND_WRITTEN

from tools.unit_costs import all_entries
from tools.unit_costs.measuring import measure as measure_entries

from ..literal.measuring import THREADS, WORKER
from ..measuring import MACHINE, Child, Summary, interpreter, version

FUNCTIONS = Path(__file__).with_name("functions")
# Primitives that most functions consist of.
_COMPARED = ("call.function", "call.method", "list.append", "loop.range", "binary.int", "get.dict", "builtins.sorted")
_ROUNDS = 3


def measure(out: Path, *, date: str, python: str | None = None) -> Summary:
    """Measure all functions and write the label file.

    Raises:
        DataError: the interpreter was not found, or ended while unit costs were measured.
    """
    python = python or interpreter()
    scale = scale_of(python)
    facts = {"python": version(python), "date": date, "machine": f"{MACHINE}, times scaled by {scale:.3g}"}
    left_out: Counter[str] = Counter()
    child = Child(python, WORKER, THREADS)
    lines = []
    try:
        for name, module in programs():
            answers = child.ask({"variants": [{"module": module, "owner": "", "name": name, "arguments": "[]"}]})
            if answers is None or "error" in answers[0]:
                left_out[answers[0]["error"] if answers else "the measuring process ended"] += 1
                continue
            group = f"{HAND_WRITTEN}{name}"
            lines.append(
                {"group": group, "family": group, "functions": [_label(name, module, answers[0], scale)]} | facts
            )
    finally:
        child.close()
    with atomic_write(out) as partial, gzip.GzipFile(partial, "wb", compresslevel=9, mtime=0) as file:
        file.write("".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines).encode())
    return Summary(len(lines), len(lines), dict(left_out))


def scale_of(python: str) -> float:
    """The time of an interpreter on the reference machine over its time here: the median of some unit costs.

    Raises:
        DataError: the measuring process ended.
    """
    entries = [entry for entry in all_entries() if entry.name in _COMPARED]
    ratios = []
    for _ in range(_ROUNDS):
        for entry, cost in measure_entries(entries, python):
            known = table()[entry.name]
            here = float(cost["each"]) or float(cost["fixed"])
            ratios.append((known.each or known.fixed) / max(here, 1e-12))
    return statistics.median(ratios)


def programs() -> Iterator[tuple[str, str]]:
    """Each function's name, and a module of it with the imports, helpers, classes and constants of its file.

    The names of helpers begin with an underscore.
    """
    for path in sorted(FUNCTIONS.glob("*.py")):
        source = path.read_text(encoding="utf-8")
        body = ast.parse(source).body
        functions = [node for node in body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
        for function in functions:
            used = _used(function, body)
            kept = [node for node in body if node is function or (node not in functions and _is_needed(node, used))]
            yield function.name, "\n\n".join(_segment(source, node) for node in kept) + "\n"


def _used(function: ast.FunctionDef, body: list[ast.stmt]) -> set[str]:
    """The names that a function needs, directly or through the classes and constants that it uses."""
    used = _names(function)
    while True:
        more = used.union(*(_names(node) for node in body if _is_needed(node, used) and not _is_import(node)))
        if more == used:
            return used
        used = more


def _names(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _is_needed(node: ast.stmt, used: set[str]) -> bool:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return any((alias.asname or alias.name.partition(".")[0]) in used for alias in node.names)
    if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
        return node.name in used
    return isinstance(node, ast.Assign) and bool(_names(node.targets[0]) & used)


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, (ast.Import, ast.ImportFrom))


def _segment(source: str, node: ast.stmt) -> str:
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
    return "\n".join(source.splitlines()[first - 1 : node.end_lineno])


def _label(name: str, module: str, answer: dict[str, Any], scale: float) -> dict[str, Any]:
    latency, low, high = (float(f"{answer[key] * scale:.4g}") for key in ("latency", "p10", "p90"))
    return {
        "kind": "base", "name": name, "module": module, "latency": latency, "spread": {"p10": low, "p90": high},
        "memory": answer["memory"],
    }  # fmt: skip
