"""The sizes at which a file's Triton kernels and PyTorch modules are predicted.

Those of a kernel come from the comments of its file, else its benchmarks, else a table of names; those of a module from
comments, else the calls in the file or the layers of the module (see :mod:`.module_sizes`), else the settings.

    # rlm: sizes M=4096 N=4096 K=4096 dtype=fp16

above a kernel or module or inside it is one workload; more lines are more workloads. Nothing is run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from rlm_core.source.directives import Directive, find_directives
from rlm_core.source.parsed import ParsedSource
from rlm_core.types import Unit

from .kernel_arguments import default_workload, kernel_arguments
from .kernel_benchmarks import benchmarked
from .module_sizes import forward_parameters, inferred_sizes
from .query_vector import has_sizes
from .size_comments import KEYWORD, SizesProblem, owner_of, read_size_comments, read_words
from .sizes import canonical_workload, dtype_name, is_sized, read_sizes

Origin = Literal["comment", "benchmark", "call", "layers", "autotune", "default"]
MOST_LINES = 16
_NONE: Mapping[str, str] = MappingProxyType({})
_VISIBLE = re.compile(rb"[^\r\n]")
_WORD = re.compile(r"(?P<name>[^\W\d]\w*)\s*=\s*(?P<value>[^\s,=]+)|(?P<stray>[^\s,]+)")
_COUNT = re.compile(r"\d[\d_]*(?:x\d[\d_]*)*", re.ASCII)
_PLAIN = re.compile(r"[^\W\d][\w.+-]*", re.ASCII)
_LIKE = "write it like M=4096, arg0=64x128 or dtype=fp16"


@dataclass(frozen=True, slots=True)
class UnitSizes:
    """The workloads at which a kernel or module is predicted, and where they come from.

    ``line`` (1-based) and ``call`` are those of the call from which the sizes of a module follow.
    """

    workloads: tuple[Mapping[str, str], ...]
    origin: Origin
    line: int | None = None
    call: str = ""


@dataclass(frozen=True, slots=True)
class FileSizes:
    """The sizes of a file's kernels and modules, without those of unknown size, and the mistakes in its comments."""

    units: Mapping[Unit, UnitSizes]
    problems: tuple[SizesProblem, ...]


def sizes_of(parsed: ParsedSource, units: Sequence[Unit], defaults: Mapping[str, str] = _NONE) -> FileSizes:
    """The sizes of the Triton kernels and PyTorch modules among the ``units`` of a Python file.

    ``defaults``, by the name of an argument, take precedence over the sizes of :mod:`.sizes`.
    """
    kernels = [unit for unit in units if unit.kind == "kernel" and unit.language == "triton"]
    written, problems = _comments(parsed, units)
    measured: Mapping[str, Sequence[Mapping[str, str]]] = {}
    if kernels and b"Benchmark" in parsed.source:
        measured = benchmarked(parsed.root, [_name(unit) for unit in kernels])
    sizes: dict[Unit, UnitSizes] = {}
    for unit in kernels:
        arguments = kernel_arguments(unit.text, _name(unit))
        if unit in written:
            sizes[unit] = UnitSizes(tuple(map(canonical_workload, written[unit])), "comment")
        elif known := [*filter(is_sized, map(canonical_workload, measured.get(_name(unit), ())))]:
            sizes[unit] = UnitSizes(tuple(known), "benchmark")
        elif workload := default_workload(arguments, defaults):
            sizes[unit] = UnitSizes((workload,), "autotune" if arguments.keys else "default")
    modules = [unit for unit in units if unit.kind == "module"]
    sizes |= {unit: UnitSizes(tuple(written[unit]), "comment") for unit in modules if unit in written}
    sizes |= _modules(parsed, [unit for unit in modules if unit not in written], defaults)
    return FileSizes(sizes, tuple(problems))


def sizes_problems(parsed: ParsedSource, units: Sequence[Unit]) -> tuple[SizesProblem, ...]:
    """The mistakes in the comments about sizes of a Python file."""
    return tuple(_comments(parsed, units)[1])


def _modules(parsed: ParsedSource, modules: Sequence[Unit], defaults: Mapping[str, str]) -> dict[Unit, UnitSizes]:
    """The sizes of modules without a comment."""
    sizes: dict[Unit, UnitSizes] = {}
    inferred = inferred_sizes(_without_errors(parsed), [(unit.qualname, unit.text) for unit in modules])
    for unit, of_unit in zip(modules, inferred, strict=True):
        if of_unit is not None:
            origin: Origin = "call" if of_unit.line is not None else "layers"
            sizes[unit] = UnitSizes((of_unit.workload,), origin, of_unit.line, of_unit.call)
        elif defaults and "get_inputs" not in unit.text:
            names = forward_parameters(unit.qualname, unit.text)
            if names and all(name in defaults for name in names):
                sizes[unit] = UnitSizes(({name: defaults[name] for name in names},), "default")
    return sizes


def _without_errors(parsed: ParsedSource) -> bytes:
    """The text with blanks for top-level statements that do not parse, so that the others keep their lines."""
    if not parsed.has_error:
        return parsed.source
    text = bytearray(parsed.readable)
    for node in parsed.root.children:
        start, end = node.start_byte, node.end_byte
        # Below an error there may be single words, such as a `def` without a body.
        is_code = node.type.endswith(("_statement", "_definition"))
        if node.has_error or not is_code or parsed.source[start:end] != text[start:end]:
            text[start:end] = _VISIBLE.sub(b" ", parsed.source[start:end])
    return bytes(text)


def _comments(
    parsed: ParsedSource, units: Sequence[Unit]
) -> tuple[dict[Unit, list[dict[str, str]]], list[SizesProblem]]:
    """The workloads in the comments of each kernel and module, and the mistakes, those about functions included."""
    kernels = [unit for unit in units if unit.kind == "module" or (unit.kind, unit.language) == ("kernel", "triton")]
    workloads: dict[Unit, list[dict[str, str]]] = {}
    problems: list[SizesProblem] = []
    directives = find_directives(parsed)
    of_functions = read_size_comments(directives, units)
    for directive in directives:
        if directive.keyword != KEYWORD or directive.start in of_functions.read:
            continue
        place = owner_of(directive, units, directives)
        unit = units[place] if place is not None else None
        if unit is None or unit not in kernels:
            text = "no function, kernel or module has these sizes; write them inside one or directly above it"
            problems.append(SizesProblem(text, directive.whole))
            continue
        workload, mistakes = _workload(directive, unit)
        problems += mistakes
        if not mistakes and len(workloads.get(unit, ())) == MOST_LINES:
            text = f"a {unit.kind} has at most {MOST_LINES} lines of sizes; remove this line"
            problems.append(SizesProblem(text, directive.whole))
        elif not mistakes and workload not in workloads.get(unit, ()):
            workloads.setdefault(unit, []).append(workload)
    problems += of_functions.problems
    return workloads, sorted(problems, key=lambda problem: problem.span.start_byte)


def _workload(directive: Directive, unit: Unit) -> tuple[dict[str, str], list[SizesProblem]]:
    """The workload of one comment, and its mistakes."""
    workload, problems = read_words(directive, _WORD, _LIKE, _value)
    if problems:
        return workload, problems
    if unit.kind == "kernel":
        workload = _by_position(workload, unit)
    if not has_sizes(workload):
        text = f"no size; {_LIKE}"
    elif unit.kind == "kernel" and not is_sized(canonical_workload(workload)):
        names = ", ".join(f"`{name}`" for name in workload if name != "dtype")
        text = f"unknown size {names}; use names like M, N, K, n_elements, seq_len or arg0"
    else:
        return workload, problems
    sizes = directive.text[len(KEYWORD) :]
    start = len(directive.text) - len(sizes.lstrip())
    span = directive.span(start) if sizes.strip() else directive.whole
    return workload, [SizesProblem(text, span)]


def _by_position(workload: dict[str, str], unit: Unit) -> dict[str, str]:
    """A kernel's workload with the positions of its pointers in place of their names."""
    arguments = kernel_arguments(unit.text, _name(unit))
    positions = {name: f"arg{arguments.parameters.index(name)}" for name in arguments.pointers}
    return {positions.get(name, name): value for name, value in workload.items()}


def _value(name: str, text: str) -> str:
    if name == "dtype":
        types = [dtype_name(part) for part in text.split("+")]
        if unknown := next((part for part in types if not read_sizes({"dtype": part}).widths), None):
            raise ValueError(f"unknown type `{unknown}`; write one like fp16, bf16, fp32, fp8 or int8")
        return "+".join(types)
    if _COUNT.fullmatch(text):
        numbers = text.replace("_", "").split("x")
        if any(int(number) < 1 or len(number) > 18 for number in numbers) or len(numbers) > 16:
            raise ValueError(f"`{text}` is not a size; sizes are from 1 to 18 digits, joined by x")
        return "x".join(str(int(number)) for number in numbers)
    if _PLAIN.fullmatch(text) or _is_number(text):
        return text
    raise ValueError(f"`{text}` is neither a size nor a word; {_LIKE}")


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _name(unit: Unit) -> str:
    return unit.qualname.rpartition(".")[2]
