"""Which statements about the launches of kernels are true: those of the product against Triton's interpreter.

    python -m tools.experiments.launch_statements FOLDER [--kernels 100] [--seed 0] [--out RESULTS.json]

A case is a kernel that the product finds in a Python file of the folder, with the workload that it would be predicted
at, sizes above 128 made smaller. What the product states of its launches is compared with what the interpreter counts
of the same grid and arguments: bytes moved, bytes at different addresses, and operations; a number is right within 5 %,
a range where it holds. That the launch is the right one is not judged here. Needs the train extra and triton. The files
are code of others: run it in a container.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rlm_core.cost.concrete.values import LibraryName, SourceFunction, UnknownValue, Value
from rlm_core.cost.torch_trace.values import Tensor
from rlm_core.cost.triton_launch.host import launch_facts, read_program
from rlm_core.cost.triton_launch.pointers import pointer_parameters
from rlm_core.cost.triton_launch.values import DType, Pointer
from rlm_core.cost.triton_launch.workload import best_of, workload_calls
from rlm_core.inference.features.launch import assumed_of, stated_facts
from rlm_core.inference.launch_cost import launch_cost
from rlm_core.queries.kernel_sizes import sizes_of
from rlm_core.source.canonical import canonical
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.triton_kernels import find_kernels
from rlm_core.types import LaunchCost

_MOST_ELEMENTS = 2**20  # of a tensor that is made
_LARGE, _SMALLER = 128, 16  # sizes above are divided, down to this one at least
_CLOSE = 0.05
Interpreter = Callable[[dict[str, Any]], "dict[str, float] | str"]


def main() -> None:
    """Judge the statements about kernels and print how many are right of each kind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kernels", type=int, default=100, help="that the interpreter runs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    cases = list(_cases(arguments.folder))
    random.Random(arguments.seed).shuffle(cases)
    results: list[dict[str, Any]] = []
    with interpreter() as ask:
        for name, file, text, workload in cases:
            result = {"kernel": name, "workload": dict(workload), **judge(file, text, workload, ask)}
            results.append(result)
            print(json.dumps(result), flush=True)
            if sum(result["outcome"] == "ran" for result in results) >= arguments.kernels:
                break
    print(json.dumps(Counter(result["outcome"] for result in results)))
    print("\n".join(summary(results)))
    if arguments.out:
        arguments.out.write_text(json.dumps(results, indent=1))


def summary(results: list[dict[str, Any]]) -> list[str]:
    """A line for each kind of statement: how many are right."""
    ran = [result for result in results if result["outcome"] == "ran"]
    kinds = dict.fromkeys(kind for result in ran for kind in result["right"])
    lines = []
    for kind in kinds:
        judged = [result["right"][kind] for result in ran if kind in result["right"]]
        lines.append(f"{kind}: {sum(judged)} of {len(judged)} right ({sum(judged) / max(len(judged), 1):.1%})")
    return lines


def _cases(folder: Path) -> Iterator[tuple[str, str, str, dict[str, str]]]:
    """The kernels of a folder: their name, the text of their file, their own text and a workload."""
    for path in sorted(folder.rglob("*.py")):
        file = path.read_text(encoding="utf-8", errors="replace")
        parsed = ParsedSource(file.encode(), "python")
        for unit, sizes in sizes_of(parsed, find_kernels(parsed)).units.items():
            name = f"{path.relative_to(folder)}:{unit.qualname}"
            yield name, file, canonical(unit.text, "triton"), _smaller(sizes.workloads[0])


def _smaller(workload: Mapping[str, str]) -> dict[str, str]:
    def size(text: str) -> str:
        number = int(text)
        return text if number <= _LARGE else str(max(number // _SMALLER, _LARGE))

    return {
        name: "x".join(size(part) if part.isdigit() else part for part in text.split("x"))
        for name, text in workload.items()
    }


def judge(file: str, text: str, workload: Mapping[str, str], ask: Interpreter) -> dict[str, Any]:
    """What is right of the statements about a kernel; ``silent`` where there are none."""
    stated, launches = launch_cost(text, workload, None), _launches(text, workload)
    if stated is None or not launches:
        return {"outcome": "silent"}
    cases: list[dict[str, Any]] = [
        {
            "text": file,
            "kernel": name,
            "grid": list(grid),
            "named": {key: _plain(value) for key, value in named.items()},
        }
        for name, grid, named in launches
    ]
    made = [value for case in cases for value in case["named"].values() if isinstance(value, dict)]
    if any(math.prod(value.get("shape", [])) > _MOST_ELEMENTS for value in made):
        return {"outcome": "too large"}
    counted = [ask(case) for case in cases]
    failed = [result for result in counted if isinstance(result, str)]
    if failed:
        return {"outcome": "did not run", "message": failed[0][-200:]}
    results = [result for result in counted if not isinstance(result, str)]
    shown = [{name: value for name, value in case["named"].items() if value is not None} for case in cases]
    return {
        "outcome": "ran", "assumed": stated.assumed, **_compared(stated, results),
        "grids": [case["grid"] for case in cases], "named": shown,
    }  # fmt: skip


def _launches(text: str, workload: Mapping[str, str]) -> list[tuple[str, tuple[int, ...], dict[str, Value]]]:
    """The launches that the statements are about: kernel, grid and arguments."""
    program = read_program(text)
    if program is None:
        return []
    facts = stated_facts(text, workload)
    if facts is None:
        return []
    if facts.assumed:
        assumed = assumed_of(text, workload)
        assert assumed is not None, "facts that are assumed are those of an assumed launch"
        kernel = program.kernels[assumed[0].kernel].function
        return [(kernel.name, assumed[0].grid, _complete(kernel, assumed[1]))]
    for function, arguments, named in workload_calls(program, workload):
        trace = program.run(function, arguments, named)
        found = [
            (launch.kernel.name, variant.grid, _complete(launch.kernel.function, variant.arguments))
            for launch, own in zip(trace.launches, facts.facts, strict=False)
            for variant in launch.variants
            if (*variant.grid, 1, 1)[:3] == own.grid and best_of(launch_facts(launch)) == own
        ]
        names = [launch.kernel.name for launch in trace.launches]
        if trace.complete and len(found) >= len(names) and names == [own.kernel for own in facts.facts]:
            return found[: len(names)]
    return []


def _complete(kernel: SourceFunction, arguments: Mapping[str, Value]) -> dict[str, Value]:
    """The arguments with tensors and numbers for those that are not known, on which nothing depends."""
    spec, pointers = kernel.node.args, pointer_parameters(kernel)
    dtype = next((value.dtype for value in arguments.values() if isinstance(value, (Tensor, Pointer))), "fp32")
    unknown = [
        item.arg
        for item in (*spec.args, *spec.kwonlyargs)
        if item.arg not in {**kernel.defaults, **arguments} or isinstance(arguments.get(item.arg), UnknownValue)
    ]
    return {**arguments, **{name: Pointer(name, dtype) if name in pointers else 1 for name in unknown}}


def _compared(stated: LaunchCost, counted: list[dict[str, float]]) -> dict[str, Any]:
    def total(*names: str) -> float:
        return sum(launch[name] for launch in counted for name in names)

    moved, distinct, flops = total("loaded", "stored"), total("distinct"), total("flops")
    pairs = {
        "moved": ((stated.moved.least, stated.moved.likely, stated.moved.most), moved),
        "operations": ((stated.flops.least, stated.flops.likely, stated.flops.most), flops),
    }
    if stated.programs is not None:
        pairs["programs"] = ((stated.programs,) * 3, total("programs"))
    if stated.distinct is not None:
        pairs["distinct"] = ((stated.distinct,) * 3, distinct)
    if stated.intensity is not None:
        pairs["intensity"] = ((stated.intensity,) * 3, flops / distinct if distinct else 0.0)
    return {
        "right": {name: _is_right(*ends, actual) for name, (ends, actual) in pairs.items()},
        "stated": {name: ends for name, (ends, _) in pairs.items()},
        "counted": {name: actual for name, (_, actual) in pairs.items()},
    }


def _is_right(least: float, likely: float, most: float, actual: float) -> bool:
    is_range = least < most * (1 - _CLOSE)
    return least <= actual * 1.001 and actual <= most * 1.001 if is_range else abs(likely - actual) <= _CLOSE * actual


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return {"shape": list(value.shape), "dtype": value.dtype}
    if isinstance(value, Pointer):
        return {"dtype": value.dtype}
    if isinstance(value, (LibraryName, DType)):
        return {"name": value.name}
    return value if isinstance(value, (int, float, str, bool, list, tuple)) or value is None else {"none": True}


@contextmanager
def interpreter() -> Iterator[Interpreter]:
    """A process that runs cases: what it counts of a launch, or a message when that fails."""
    command = [sys.executable, "-m", "tools.experiments.launch_interpreter"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None, "it is a pipe"
        assert process.stdout is not None, "it is a pipe"
        asked, answers = process.stdin, process.stdout

        def ask(case: dict[str, Any]) -> dict[str, float] | str:
            asked.write(json.dumps(case) + "\n")
            asked.flush()
            found: dict[str, float] | str = json.loads(answers.readline())
            return found

        yield ask
        asked.close()


def stripped(text: str) -> str:
    """The kernels and functions of a file, and those of its imports and constants that work."""
    tree = ast.parse(text)
    kept: list[ast.stmt] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith(("test", "bench")):
            # The configuration is part of the case.
            node.decorator_list = [part for part in node.decorator_list if "jit" in ast.unparse(part)]
            kept.append(node)
        elif isinstance(node, (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)) and not _is_future(node):
            handler = ast.ExceptHandler(ast.Name("Exception"), None, [ast.Pass()])
            kept.append(ast.Try([node], [handler], [], []))
    tree.body = kept
    return ast.unparse(ast.fix_missing_locations(tree))


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


if __name__ == "__main__":
    main()
