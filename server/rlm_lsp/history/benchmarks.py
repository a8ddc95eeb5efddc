"""A pytest-benchmark test for a function, with inputs of the types and sizes that are known."""

from __future__ import annotations

import ast
import keyword
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rlm_core.cost.domain.syntax import BlockSyntax, parsed_function
from rlm_core.queries.function_sizes import found_size, input_names_of
from rlm_core.queries.package_files import package_of
from rlm_core.source.units import MAX_FILE_BYTES
from rlm_core.types import CodeText, Unit

from .measurements import project_of

_DEFAULT_SIZE, _INNER_SIZE = 1_000, 10
_LEFT_OUT = "..."
_ITEMS = {"str": "str(number)", "bytes": "b'%d' % number", "float": "number / 2", "int": "number"}
_CONTAINERS = {
    **dict.fromkeys(("list", "Sequence", "Iterable", "Collection", "MutableSequence", "List"), "[{} for number in {}]"),
    **dict.fromkeys(("tuple", "Tuple"), "tuple({} for number in {})"),
    **dict.fromkeys(("set", "Set", "AbstractSet", "frozenset"), "{{{} for number in {}}}"),
}
_MAPPINGS = frozenset({"dict", "Dict", "Mapping", "MutableMapping"})


@dataclass(frozen=True, slots=True)
class BenchmarkFile:
    """A new test file: its path, its path below the project's folder, and its text."""

    path: Path
    shown: str
    text: str


def benchmark_for(unit: Unit, code: CodeText, path: Path | None) -> BenchmarkFile | None:
    """Return a test that benchmarks a function of a module; None where a test cannot call it, or there is one.

    Inputs have the sizes that are known of them, else 1,000 items. What is not known of an input is left as ``...``.
    """
    node = parsed_function(unit.text) if unit.kind == "function" and unit.qualname.isidentifier() else None
    if path is None or path.suffix != ".py" or not isinstance(node, ast.FunctionDef) or BlockSyntax(node.body).yields:
        return None
    module = package_of(path)[1]
    if not all(part.isidentifier() and not keyword.iskeyword(part) for part in module.split(".")):
        return None
    project = project_of(path)
    target = project / "tests" / f"test_{unit.qualname.strip('_')}_speed.py"
    if os.path.lexists(target) or len(unit.text) > MAX_FILE_BYTES:
        return None
    return BenchmarkFile(target, target.relative_to(project).as_posix(), _text(node, module, code))


def _text(node: ast.FunctionDef, module: str, code: CodeText) -> str:
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    positional = positional[: len(positional) - len(arguments.defaults)]
    named = [one for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if default is None]
    types = dict(code.work.types) if code.work is not None else {}
    sizes = {size.name: size.value for size in code.sizes}
    used = input_names_of(code.text, code.work, code.measured)
    lines = []
    for argument in (*positional, *named):
        annotation = argument.annotation if argument.annotation is not None else _parsed(types.get(argument.arg, ""))
        size = _size(argument.arg, sizes, _DEFAULT_SIZE)
        made = _input(annotation, size, _size(f"{argument.arg}[]", sizes, _INNER_SIZE))
        wanted = f"an input of size {size:,}" if argument.arg in used else "an input like those of your callers"
        note = f"  # {wanted}" if made == _LEFT_OUT else ""
        lines.append(f"    {argument.arg} = {made}{note}")
    given = [*(one.arg for one in positional), *(f"{one.arg}={one.arg}" for one in named)]
    name = node.name
    return "\n".join(
        [
            f"from {module} import {name}",
            "",
            "",
            f"def test_{name.strip('_')}_speed(benchmark):",
            *lines,
            f"    benchmark({', '.join([name, *given])})",
            "",
        ]
    )


def _size(name: str, sizes: Mapping[str, float], otherwise: int) -> int:
    found = found_size(name, sizes)
    return max(1, round(found[1])) if found is not None else otherwise


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None


def _input(annotation: ast.expr | None, size: int, inner: int) -> str:
    """An expression for a value of a type; ``...`` for types that need more than a size."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = _parsed(annotation.value)
    name, items = _type(annotation)
    number = f"{size:_}"
    simple = {
        "int": number,
        "float": f"{size}.5",
        "bool": "True",
        "str": f'"x" * {number}',
        "bytes": f'b"x" * {number}',
        "bytearray": f'bytearray(b"x" * {number})',
    }
    if name in simple:
        return simple[name]
    if name in _MAPPINGS and len(items) in (0, 2):
        key, value = (_item(item, inner) for item in items) if items else ("number", "number")
        return _LEFT_OUT if _LEFT_OUT in (key, value) else f"{{{key}: {value} for number in range({number})}}"
    if name in _CONTAINERS:
        item = _item(items[0], inner) if items else "number"
        if item == _LEFT_OUT:
            return item
        form = _CONTAINERS[name].format(item, f"range({number})")
        shorter = {"[": "list", "t": "tuple", "{": "set"}[form[0]]
        return f"{shorter}(range({number}))" if item == "number" else form
    return _LEFT_OUT


def _item(annotation: ast.expr, inner: int) -> str:
    """An expression for an item, which may depend on ``number``."""
    name, _ = _type(annotation)
    return _ITEMS.get(name) or _input(annotation, inner, inner)


def _type(annotation: ast.expr | None) -> tuple[str, list[ast.expr]]:
    """The last name of a type, and what is in its brackets."""
    items: list[ast.expr] = []
    if isinstance(annotation, ast.Subscript):
        inside = annotation.slice
        items = [
            item
            for item in (inside.elts if isinstance(inside, ast.Tuple) else [inside])
            if not (isinstance(item, ast.Constant) and item.value is Ellipsis)
        ]
        annotation = annotation.value
    if isinstance(annotation, ast.Attribute):
        return annotation.attr, items
    return (annotation.id, items) if isinstance(annotation, ast.Name) else ("", items)
