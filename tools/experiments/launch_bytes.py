"""How well the bytes of launches that follow from the text agree with those that Triton's interpreter counts.

    python -m tools.experiments.launch_bytes --data triton.parquet --cache SOURCES [--half development] [--kernels 100]

A kernel is a text of the data set with its file, at its smallest workload. Half of the groups, by a hash, are for
development and half for the exam. Each runs in a separate process, on the CPU; loads, stores and atomics are counted
where the interpreter does them. Needs the train extra and triton. The files are code of others: run it in a container.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import math
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_SECONDS = 40.0
_MOST_ELEMENTS = 2**22  # of a tensor that is made


def half_of(group: str) -> str:
    """The half that a group is in, by a hash of its name."""
    return "exam" if hashlib.sha256(f"launch/{group}".encode()).digest()[0] % 2 else "development"


def main() -> None:
    """Compare the bytes of kernels and print how many agree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--half", choices=["development", "exam"], default="development")
    parser.add_argument("--kernels", type=int, default=100)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    results: list[dict[str, Any]] = []
    ran = 0
    for row, text in _cases(arguments.data, arguments.cache, arguments.half):
        result = {"id": row["id"], **compare(text, row["workload"])}
        results.append(result)
        ran += result["outcome"] in ("agree", "differ", "unknown")
        print(json.dumps(result), flush=True)
        if ran >= arguments.kernels:
            break
    counts: dict[str, int] = defaultdict(int)
    for result in results:
        counts[result["outcome"]] += 1
    print(json.dumps(counts))
    print(f"{ran} kernels ran; bytes within 5 %: {counts['agree']} ({counts['agree'] / max(ran, 1):.1%})")
    if arguments.out:
        arguments.out.write_text(json.dumps(results, indent=1))


def _cases(paths: list[Path], cache: Path, half: str) -> Iterator[tuple[dict[str, Any], str]]:
    """The rows of the smallest workload of each text of a half with their files, groups in turn, in a fixed order."""
    from rlm_core.training.datasets.schema import read_rows

    from .launch_sources import source_files

    smallest: dict[str, dict[str, Any]] = {}
    for row in read_rows(paths):
        if row["basis"] != "kernel" or row["split"] not in ("train", "val") or half_of(row["group"]) != half:
            continue
        old = smallest.get(row["text"])
        if old is None or _size(row["workload"]) < _size(old["workload"]):
            smallest[row["text"]] = row
    by_group: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in sorted(smallest.values(), key=lambda row: hashlib.sha256(row["text"].encode()).hexdigest()):
        by_group[row["group"]].append(row)
    order = sorted(by_group, key=lambda group: hashlib.sha256(group.encode()).hexdigest())
    chosen = [by_group[group][turn] for turn in range(4) for group in order if turn < len(by_group[group])]
    files = source_files(chosen, cache)
    for row in chosen:
        yield row, files[row["id"]]


def _size(workload: dict[str, str]) -> float:
    parts = (part for value in workload.values() for part in value.split("x"))
    return math.prod(float(part) for part in parts if part.isdigit() and int(part) > 0)


def compare(text: str, workload: dict[str, str]) -> dict[str, Any]:
    """The outcome for a text at a workload: ``agree`` where the bytes of each kernel are within 5 %."""
    from rlm_core.cost.torch_trace.values import Tensor
    from rlm_core.cost.triton_launch.host import launch_facts, read_program
    from rlm_core.cost.triton_launch.workload import best_of, workload_calls

    program = read_program(text)
    if program is None:
        return {"outcome": "no program"}
    message = ""
    for function, arguments, named in workload_calls(program, workload):
        trace = program.run(function, arguments, named)
        if not trace.launches or any(not launch.variants for launch in trace.launches):
            continue
        if any(
            isinstance(value, Tensor) and value.elements > _MOST_ELEMENTS for value in (*arguments, *named.values())
        ):
            return {"outcome": "too large"}
        case: dict[str, Any] = {"text": text, "function": function.name, "args": [*map(_plain, arguments)]}
        case["named"] = {name: _plain(value) for name, value in named.items()}
        measured = _interpreted(case)
        if isinstance(measured, str):
            message = message or measured
            continue
        expected: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        known = True
        for launch in trace.launches:
            facts = best_of(launch_facts(launch))
            known = known and facts is not None and facts.known
            name = launch.kernel.name
            for place, part in enumerate(("least", "likely", "most")):
                if facts is not None:
                    expected[name][place] += sum(getattr(facts.counts[kind], part) for kind in ("loaded", "stored"))
        counted: dict[str, float] = defaultdict(float)
        for name, loaded, stored in measured:
            counted[name] += loaded + stored
        if not counted:
            return {"outcome": "no launch", "function": function.name}
        is_close = all(abs(expected[name][1] - total) <= 0.05 * total for name, total in counted.items())
        holds = all(expected[name][0] * 0.999 <= total <= expected[name][2] * 1.001 for name, total in counted.items())
        outcome = "agree" if known and is_close else "differ" if known else "unknown"
        return {"outcome": outcome, "range holds": holds, "expected": dict(expected), "counted": dict(counted)}
    return {"outcome": "did not run", "message": message[-200:]}


def _plain(value: Any) -> Any:
    from rlm_core.cost.concrete.values import LibraryName
    from rlm_core.cost.torch_trace.values import Tensor

    if isinstance(value, Tensor):
        return {"shape": list(value.shape), "dtype": value.dtype}
    if isinstance(value, LibraryName):
        return {"name": value.path}
    return value if isinstance(value, (int, float, str, bool, list, tuple)) or value is None else {"none": True}


def _interpreted(case: dict[str, Any]) -> list[tuple[str, float, float]] | str:
    """The bytes of each launch as the interpreter counts them; a message when the program fails."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.json"
        path.write_text(json.dumps(case))
        command = [sys.executable, "-m", "tools.experiments.launch_interpreter", str(path)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            return "timeout"
    lines = [line for line in done.stdout.splitlines() if line.startswith("LAUNCHES ")]
    if not lines:
        return done.stderr[-300:]
    return [tuple(entry) for entry in json.loads(lines[-1].removeprefix("LAUNCHES "))]


def stripped(text: str) -> str:
    """A file without its tests and what it runs at the top level."""
    tree = ast.parse(text)
    kept: list[ast.stmt] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith(("test", "bench")):
            continue
        if isinstance(node, (ast.Expr, ast.If, ast.For, ast.With)):
            continue
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and "test" in ast.unparse(node.value.func):
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)) and getattr(node, "module", "") != "__future__":
            handler = ast.ExceptHandler(ast.Name("ImportError"), None, [ast.Pass()])
            node = ast.Try([node], [handler], [], [])
        kept.append(node)
    tree.body = kept
    return ast.unparse(ast.fix_missing_locations(tree))


if __name__ == "__main__":
    main()
