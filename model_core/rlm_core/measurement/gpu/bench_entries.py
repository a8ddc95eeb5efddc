"""Finds what can be measured in a file: Triton kernels and their calls, or a module with inputs.

Nothing is imported or run; the answer is what ``rlm-lsp bench`` says that it will run.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tree_sitter import Node

from rlm_core.errors import DataError
from rlm_core.files import read_regular
from rlm_core.source.parsed import ParsedSource, name_text
from rlm_core.source.torch_modules import find_modules
from rlm_core.source.triton_kernels import find_kernels

from .bench_rows import digest
from .bench_spec import SUFFIX, BenchSpec, read_bench_spec

Way = Literal["bench", "report", "sheet", "inductor"]
_MOST_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Entry:
    """A way to call kernels: ``name`` is a function of the file, or a number and a function of its sheet."""

    way: Way
    name: str


@dataclass(frozen=True, slots=True)
class TritonFile:
    """A Python file with kernels. ``digest`` is of its text, and of its sheet's."""

    path: Path
    digest: str
    kernels: tuple[str, ...]
    entries: tuple[Entry, ...]
    sheet: Path | None = None


@dataclass(frozen=True, slots=True)
class ModuleFile:
    """A Python file with a module and ``get_inputs``."""

    path: Path
    digest: str
    module: str


def triton_file(path: Path) -> TritonFile | None:
    """Read the kernels of a Python file or a sheet (``.bench.toml``); None if there are none.

    Raises:
        DataError: the file or its sheet cannot be read.
    """
    sheet = path if path.name.endswith(".toml") else path.with_name(path.stem + SUFFIX)
    benches: list[BenchSpec] = []
    if sheet == path or sheet.is_file():
        path, benches = read_bench_spec(sheet)
    source = _read(path)
    parsed = ParsedSource(source, "python")
    root = parsed.root
    kernels = tuple(dict.fromkeys(unit.qualname for unit in find_kernels(parsed)))
    if not kernels and not benches:
        return None
    entries = [Entry("sheet", f"{number}:{bench.target}") for number, bench in enumerate(benches)]
    functions = {name: node for node in root.named_children if (name := _function(node)) is not None}
    for name, node in functions.items():
        if any("perf_report" in name_text(child) for child in node.children if child.type == "decorator"):
            entries.append(Entry("report", name))
        elif name == "bench" or name.startswith("bench_"):
            entries.append(Entry("bench", name))
    if {"get_args", "call"} <= functions.keys() and b"triton_heuristics" in source:
        entries.append(Entry("inductor", "call"))
    text = source + (_read(sheet) if benches else b"")
    return TritonFile(path, digest(text), kernels, tuple(entries), sheet if benches else None)


def module_file(path: Path) -> ModuleFile | None:
    """The module of a file that has ``get_inputs``: ``Model``, or else the last; None where there is none.

    Raises:
        DataError: the file cannot be read.
    """
    source = _read(path)
    parsed = ParsedSource(source, "python")
    names = [unit.qualname for unit in find_modules(parsed)]
    if not names or "get_inputs" not in {_function(node) for node in parsed.root.named_children}:
        return None
    return ModuleFile(path, digest(source), "Model" if "Model" in names else names[-1])


def _function(node: Node) -> str | None:
    if node.type == "decorated_definition":
        inner = node.child_by_field_name("definition")
        return _function(inner) if inner is not None else None
    return name_text(node.child_by_field_name("name")) if node.type == "function_definition" else None


def _read(path: Path) -> bytes:
    try:
        return read_regular(path, _MOST_BYTES)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); name the file of the kernel itself") from None
