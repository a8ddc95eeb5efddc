"""Resolving calls in a package of 50,000 functions that call each other in cycles: first analysis, memory, edits.

    python -m tests.bench.workspace [--functions 50000] [--out FIGURES.json]

The package is generated: modules of fifty functions and five classes, each function calls others of its module, of
imported modules and methods of unknown objects, in loops and in cycles. Measured are the first analysis of one file,
which scans the whole package, the analysis of further files, an edit of a function's body, an edit that adds a
function, and an edit of a callee in another open file with the analysis of its caller. Times are processor seconds.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource

_FUNCTIONS, _CLASSES, _METHODS = 30, 5, 4  # of a module: fifty functions
_PER_MODULE = _FUNCTIONS + _CLASSES * _METHODS
_PER_FOLDER = 50  # modules
_EDITS = 30


def main() -> None:
    """Generate, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--functions", type=int, default=50_000)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory() as folder:
        modules = generate(Path(folder) / "pkg", arguments.functions)
        figures = measure(Path(folder) / "pkg", modules)
    print(json.dumps(figures))
    if arguments.out:
        arguments.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def generate(package: Path, functions: int) -> list[str]:
    """Write a package with so many functions; the names of its modules, relative to it."""
    chosen = random.Random(0)
    count = -(-functions // _PER_MODULE)
    modules = [f"part{number // _PER_FOLDER}.m{number}" for number in range(count)]
    for folder in {package, *(package / name.partition(".")[0] for name in modules)}:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").write_text("")
    for number, name in enumerate(modules):
        (package / f"{name.replace('.', '/')}.py").write_text(_module(number, modules, chosen))
    return modules


def _module(number: int, modules: list[str], chosen: random.Random) -> str:
    imported = [chosen.randrange(len(modules)) for _ in range(4)]
    lines = [f"from pkg.{modules[other]} import f{other}_{chosen.randrange(_FUNCTIONS)} as g{i}, K{other}_0 as C{i}"
             for i, other in enumerate(imported)]  # fmt: skip
    for place in range(_FUNCTIONS):
        following = (place + 1) % _FUNCTIONS  # a cycle through all functions of the module
        lines += [
            "", "", f"def f{number}_{place}(items, other: C{place % 4}):",
            "    total = 0", "    for item in items:",
            f"        total += f{number}_{following}(item, other)",
            f"        other.run{imported[place % 4]}_{place % 4}(item)",
            f"    if total > {place}:", f"        total -= g{place % 4}(items, other)",
            f"    return sorted(items.method{chosen.randrange(len(modules))}_{place % 4}(total))",
        ]  # fmt: skip
    for which in range(_CLASSES):
        lines += ["", "", f"class K{number}_{which}:"]
        for method in range(_METHODS):
            name = f"run{number}_{method}" if which == 0 else f"method{number}_{method}"
            lines += [f"    def {name}(self, value):", f"        return f{number}_{method}([value], self)", ""]
    return "\n".join(lines) + "\n"


def measure(package: Path, modules: list[str]) -> dict[str, Any]:
    """Analyse files of the package as an editor does; seconds, and the growth of the process in MiB."""
    open_texts: dict[Path, ParsedSource] = {}
    analyser = Analyser(open_texts.get)

    def path_of(number: int) -> Path:
        return package / f"{modules[number].replace('.', '/')}.py"

    def analyse(path: Path, source: bytes) -> None:
        open_texts[path] = ParsedSource(source, "python")
        assert all(unit.code.calls is not None for unit in analyser.analyse(open_texts[path], path, str(path)))

    before = _memory()
    first, main = path_of(0), path_of(0).read_bytes()
    figures: dict[str, Any] = {
        "functions": len(modules) * _PER_MODULE,
        "files": len(modules),
        "first_file_s": _seconds(partial(analyse, first, main)),
    }
    figures["next_files_s"] = statistics.median(
        _seconds(partial(analyse, path_of(number), path_of(number).read_bytes()))
        for number in range(1, min(21, len(modules)))
    )
    figures["index_mib"] = round(_memory() - before, 1)
    other = path_of(1)
    text = other.read_bytes()

    def with_body(source: bytes, edit: int) -> bytes:
        return source.replace(b"total = 0", b"total = %d" % (edit + 1), 1)

    def edit_callee(edit: int) -> None:
        analyse(other, with_body(text, edit))
        analyse(first, main)

    body = [_seconds(partial(analyse, first, with_body(main, edit))) for edit in range(_EDITS)]
    added = [_seconds(partial(analyse, first, main + b"\n\ndef new_%d(): pass\n" % edit)) for edit in range(_EDITS)]
    callee = [_seconds(partial(edit_callee, edit)) for edit in range(_EDITS)]
    for name, times in (("edit_of_a_body_s", body), ("edit_of_names_s", added), ("edit_of_a_callee_s", callee)):
        figures[name] = round(statistics.median(times), 4)
    return figures


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return round(time.process_time() - start, 4)


def _memory() -> float:
    """The largest size of this process so far, in MiB."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


if __name__ == "__main__":
    main()
