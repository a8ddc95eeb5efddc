"""A data set to time training with: the functions of the standard library and of torch here, with made-up values.

    python -m tools.experiments.gpu.training_rows --out rows.parquet [--root FOLDER...] [--most 8000]

Texts have the lengths of real ones, with the functions of the same file that they call. Nothing can be learned from
the values.
"""

from __future__ import annotations

import argparse
import ast
import sysconfig
import warnings
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rlm_core.training.datasets.schema import write_rows
from rlm_core.training.datasets.splits import split_of

_SKIPPED = {"test", "tests", "idlelib", "lib2to3", "site-packages", "dist-packages", "__pycache__"}
_CALLEES = 4


def main() -> None:
    """Write the data set and say how large it is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--root", type=Path, nargs="+", default=[Path(sysconfig.get_path("stdlib")), *_torch()])
    parser.add_argument("--most", type=int, default=8000)
    arguments = parser.parse_args()
    count = write_rows(rows(arguments.root, arguments.most), arguments.out)
    print(f"{arguments.out}: {count} rows of {count // 2} functions")


def _torch() -> list[Path]:
    spec = find_spec("torch")
    return [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec is not None else []


def rows(roots: Sequence[Path], most: int) -> Iterator[dict[str, Any]]:
    """Two rows, latency and memory, of each of at most ``most`` functions."""
    for number, (module, name, text, callees) in enumerate(_functions(roots)):
        if number == most:
            return
        group = f"python/{module}"
        for metric, value in (("latency", 1e-8 * len(text)), ("memory", 10.0 * len(text))):
            yield {
                "id": f"{group}:{name}:{number}/{metric}",
                "text": text,
                "callees": [{"text": callee, "level": 1} for callee in callees],
                "language": "python",
                "basis": "call",
                "metric": metric,
                "device": "x86-64",
                "workload": {"runtime": "cpython-3.12"},
                "value": value,
                "group": group,
                "family": "python",
                "held_out": "module",
                "split": split_of(group),
                "source": f"{module}:{name}",
            }


def _functions(roots: Sequence[Path]) -> Iterator[tuple[str, str, str, list[str]]]:
    """Module, name and text of functions, and the texts of what they call in their file."""
    for root in roots:
        for path in sorted(root.rglob("*.py")):
            if _SKIPPED & set(path.relative_to(root).parts):
                continue
            try:
                source = path.read_text(encoding="utf-8")
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    tree = ast.parse(source)
            except (OSError, ValueError, SyntaxError):
                continue
            lines = source.splitlines(keepends=True)
            found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
            texts = {node.name: "".join(lines[node.lineno - 1 : node.end_lineno]) for node in found}
            module = ".".join(path.relative_to(root).with_suffix("").parts)
            for node in found:
                text = "".join(lines[node.lineno - 1 : node.end_lineno])
                called = [name for name in _called(node) if name in texts and name != node.name]
                yield module, node.name, text, [texts[name] for name in called[:_CALLEES]]


def _called(function: ast.FunctionDef) -> list[str]:
    """The names that a function calls, each once, those of methods too."""
    names: dict[str, None] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                names[node.func.id] = None
            elif isinstance(node.func, ast.Attribute):
                names[node.func.attr] = None
    return list(names)


if __name__ == "__main__":
    main()
