"""The sizes in a file's benchmarks (``triton.testing.Benchmark`` and ``perf_report``), which are read, never run.

A benchmark belongs to the kernels that its function reaches by name, through other functions, classes and constants of
the file. Where no benchmark reaches a kernel, all benchmarks belong to all kernels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tree_sitter import Node

from rlm_core.source.parsed import descendants, name_text, undecorated

from .literals import arguments_of, constants, value_of
from .sizes import dtype_name

MOST = 5
_WORD = re.compile(r"[^\W\d]\w*")
_DTYPE = re.compile(r"\bdtype\s*=\s*((?:torch|tl)\.\w+)")
_MODES = {"fwd": "forward", "forward": "forward", "bwd": "backward", "backward": "backward", "full": "full"}
Workload = dict[str, str]


def benchmarked(root: Node, kernels: Sequence[str]) -> dict[str, tuple[Workload, ...]]:
    """The workloads of each kernel's benchmarks, at most ``MOST`` per kernel, without kernels that have none."""
    functions, words = _definitions(root)
    names = constants(root)
    reports = {name: report for name, node in functions.items() if (report := _report(node)) is not None}
    without_benchmark = [name for name, report in reports.items() if not any(_benchmark_calls(report))]
    workloads: dict[str, list[Workload]] = {}
    unassigned: list[Workload] = []
    for call in _benchmark_calls(root):
        owner = next((name for name, report in reports.items() if _holds(report, call)), None)
        users = [owner] if owner is not None else without_benchmark
        dtypes = {dtype_name(text) for name in users for text in _DTYPE.findall(name_text(functions[name]))}
        dtype = {"dtype": dtypes.pop()} if len(dtypes) == 1 else {}
        of_call = [dtype | workload for workload in _workloads(call, names)]
        reached = _closure([word for name in users for word in words[name]], words)
        called = [kernel for kernel in kernels if kernel in reached] if users else []
        for kernel in called:
            workloads.setdefault(kernel, []).extend(of_call)
        if not called:
            unassigned += of_call
    if not workloads:
        workloads = dict.fromkeys(kernels, unassigned)
    return {kernel: _some(of_kernel) for kernel, of_kernel in workloads.items() if of_kernel}


def _workloads(call: Node, names: Mapping[str, Any]) -> Iterator[Workload]:
    """The workloads of one ``Benchmark(x_names=..., x_vals=..., args=...)``."""
    positional, named = arguments_of(call)
    arguments = dict(zip(("x_names", "x_vals"), positional, strict=False)) | named
    known = {**names, **_loop_values(call, names)}
    try:
        columns, points = (value_of(arguments.get(name), known) for name in ("x_names", "x_vals"))
        fixed = value_of(arguments["args"], known) if "args" in arguments else {}
    except ValueError:
        return
    if not isinstance(columns, (list, tuple)) or not isinstance(points, (list, tuple)):
        return
    shared = dict(_sizes(fixed)) if isinstance(fixed, dict) else {}
    for point in points:
        # A single number is the value of all names, as in Triton.
        values = point if isinstance(point, (list, tuple)) else [point] * len(columns)
        workload = shared | dict(_sizes(dict(zip(columns, values, strict=False))))
        if any(value[0].isdigit() for value in workload.values()):
            yield workload


def _sizes(values: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    """The entries that a workload can have: positive whole numbers, a dtype, a mode."""
    for name, value in values.items():
        if not isinstance(name, str):
            continue
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**18:
            yield name, str(value)
        elif isinstance(value, str) and "dtype" in name.lower() and value:
            yield "dtype", dtype_name(value)
        elif isinstance(value, str) and name == "mode" and value in _MODES:
            yield name, _MODES[value]


def _loop_values(call: Node, names: Mapping[str, Any]) -> dict[str, Any]:
    """The first value of each variable of the loops around a call."""
    loop_values: dict[str, Any] = {}
    parent = call.parent
    while parent is not None:
        if parent.type in ("for_statement", "list_comprehension", "generator_expression"):
            clauses = [parent] if parent.type == "for_statement" else parent.named_children
            for clause in clauses:
                left = clause.child_by_field_name("left")
                if left is None or left.type != "identifier":
                    continue
                try:
                    values = value_of(clause.child_by_field_name("right"), names)
                    loop_values.setdefault(name_text(left), values[0])
                except (ValueError, TypeError, LookupError):
                    continue
        parent = parent.parent
    return loop_values


def _some(workloads: Sequence[Workload]) -> tuple[Workload, ...]:
    """At most ``MOST`` different workloads, evenly spaced from the first to the last."""
    different = [workload for index, workload in enumerate(workloads) if workload not in workloads[:index]]
    if len(different) <= MOST:
        return tuple(different)
    return tuple(different[round(index * (len(different) - 1) / (MOST - 1))] for index in range(MOST))


def _definitions(root: Node) -> tuple[dict[str, Node], dict[str, frozenset[str]]]:
    """The functions of a file with their decorators, and the words of all its definitions, by name."""
    functions: dict[str, Node] = {}
    words: dict[str, frozenset[str]] = {}
    for statement in root.named_children:
        node = undecorated(statement)
        if statement.type == "expression_statement" and statement.named_children[0].type == "assignment":
            name = name_text(statement.named_children[0].child_by_field_name("left"))
        elif node.type in ("function_definition", "class_definition"):
            name = name_text(node.child_by_field_name("name"))
            functions |= {name: statement} if node.type == "function_definition" else {}
        else:
            continue
        words[name] = words.get(name, frozenset()) | frozenset(_WORD.findall(name_text(statement)))
    return functions, words


def _closure(start: Sequence[str], words: Mapping[str, frozenset[str]]) -> set[str]:
    reached: set[str] = set()
    queue = list(start)
    while queue:
        name = queue.pop()
        if name not in reached:
            reached.add(name)
            queue += words.get(name, ())
    return reached


def _report(function: Node) -> Node | None:
    """The ``perf_report`` decorator of a function."""
    for child in function.children if function.type == "decorated_definition" else ():
        call = child.named_children[0] if child.type == "decorator" and child.named_children else None
        if call is not None and call.type == "call" and _called(call) == "perf_report":
            return call
    return None


def _benchmark_calls(root: Node) -> Iterator[Node]:
    return (call for call in descendants(root, "call") if _called(call) == "Benchmark")


def _called(call: Node) -> str:
    """The last part of the name of the called function."""
    return name_text(call.child_by_field_name("function")).rpartition(".")[2]


def _holds(outer: Node, inner: Node) -> bool:
    return outer.start_byte <= inner.start_byte and inner.end_byte <= outer.end_byte
