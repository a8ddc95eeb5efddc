"""Counts the call sites of real code whose callee is known, and whose entry in the library has a cost or a wait.

    python -m tools.experiments.call_sites FOLDER... [--files 12] [--part development|exam] [--most 40]

In: folders with the Python files and notebooks of a project each. Of each project some files are analysed, chosen by a
hash of their place: each function as the language server does, and what a file or notebook does at its top level as a
program. Left out are calls of builtins and of methods of Python's containers and texts, those of the project's own
functions and classes, decorators and what a class body calls. Out: how many of the other calls have an entry, by kind
of project, and the names that most projects call without one. A hash of the project's name says in which part it is.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlm_core.cost import library
from rlm_core.cost.analysis import analyse
from rlm_core.cost.domain.context import Context
from rlm_core.cost.domain.values import Value
from rlm_core.cost.evaluate import calls, methods
from rlm_core.cost.evaluate.methods import METHOD
from rlm_core.errors import RlmError
from rlm_core.queries.analysis import Analyser
from rlm_core.queries.entry_store import VARIABLE
from rlm_core.source.parsed import ParsedSource

_MOST_BYTES = 60_000
_PROGRAM_BUDGET = 40_000
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BUILTIN_KINDS = frozenset(
    {"str", "bytes", "bytearray", "memoryview", "list", "dict", "set", "frozenset", "tuple", "deque", "int", "float",
     "complex", "bool", "none", "iterator", "view", "range", "slice"}
)  # fmt: skip
_MAGIC = re.compile(r"^\s*[%!?].*$", re.MULTILINE)
_DEFINITION = re.compile(r"\b(?:def|class)\s+(\w+)")
Site = tuple[str, int, int, int]


@dataclass(slots=True)
class Project:
    """The call sites of a project by what is known of them, and the names of those without an entry."""

    name: str
    modules: frozenset[str]
    methods: frozenset[str]
    found: dict[Site, str] = field(default_factory=dict)
    names: dict[Site, str] = field(default_factory=dict)
    unread: int = 0
    has_notebooks: bool = False


def in_part(name: str) -> str:
    """The part of a project: half are for development, half for an exam."""
    return "exam" if hashlib.sha256(f"call sites {name}".encode()).digest()[0] % 2 else "development"


def read_project(folder: Path, most: int) -> Project:
    """Analyse some files of a project and return its call sites."""
    paths = sorted(
        (path for path in folder.rglob("*") if path.suffix in (".py", ".ipynb") and path.is_file()),
        key=lambda path: hashlib.sha256(str(path.relative_to(folder)).encode()).digest(),
    )
    methods = {name for path in paths if path.suffix == ".py" for name in _DEFINITION.findall(_text(path))}
    modules = {part.removesuffix(".py") for path in paths for part in path.relative_to(folder).parts}
    project = Project(folder.name, frozenset(modules), frozenset(methods))
    project.has_notebooks = any(path.suffix == ".ipynb" for path in paths)
    read = 0
    for path in paths:
        if read >= most:
            break
        cells = [cell for cell in cells_of(path) if _parsed(cell) is not None]
        if not cells or sum(map(len, cells)) > _MOST_BYTES:
            continue
        read += 1
        before = len(project.found)
        with _recording(project, str(path.relative_to(folder))):
            try:
                if path.suffix == ".ipynb":
                    Analyser().analyse_cells([cell.encode() for cell in cells])
                else:
                    Analyser().analyse(ParsedSource(cells[0].encode(), "python"), path)
            except RlmError:
                continue
            analyse("\n".join(cells), budget=_PROGRAM_BUDGET)
        project.unread += max(sum(map(_calls_in, cells)) - (len(project.found) - before), 0)
    return project


def cells_of(path: Path) -> list[str]:
    """The text of a file, or the code cells of a notebook without lines that are not Python."""
    text = _text(path)
    if path.suffix == ".py":
        return [text]
    try:
        cells = json.loads(text).get("cells", [])
        sources = ["".join(cell["source"]) for cell in cells if cell.get("cell_type") == "code"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []
    return [_MAGIC.sub("", source) for source in sources]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _calls_in(text: str) -> int:
    """The number of calls in a text, without those that only describe a class or decorate a function."""
    tree = _parsed(text)
    stack: list[ast.AST] = [tree] if tree is not None else []
    count = 0
    while stack:
        node = stack.pop()
        count += isinstance(node, ast.Call)
        if isinstance(node, ast.ClassDef):
            stack += [inner for inner in node.body if isinstance(inner, _DEFINITIONS)]
        else:
            decorators = node.decorator_list if isinstance(node, _DEFINITIONS) else []
            stack += [inner for inner in ast.iter_child_nodes(node) if inner not in decorators]
    return count


class _recording:  # noqa: N801 - used as a function
    """While it is open, each call that is evaluated for a unit itself, not for a callee, is noted."""

    def __init__(self, project: Project, file: str) -> None:
        self._project, self._file = project, file
        self._original: Any = calls._result_of

    def __enter__(self) -> None:
        def result_of(context: Context, node: ast.Call, name: str, target: Value, receiver: Value | None) -> Any:
            if not context.frame.depth:
                self._note(context, node, name, target, receiver)
            return self._original(context, node, name, target, receiver)

        calls._result_of = result_of

    def __exit__(self, *_: object) -> None:
        calls._result_of = self._original

    def _note(self, context: Context, node: ast.Call, name: str, target: Value, receiver: Value | None) -> None:
        where = f"{self._file}:{context.frame.qualname}"
        site = (where, node.lineno, node.end_lineno or 0, node.end_col_offset or 0)
        kind, called = _classified(self._project, node, name, target, receiver)
        if _RANK[kind] >= _RANK.get(self._project.found.get(site, ""), -1):
            self._project.found[site] = kind
            self._project.names[site] = called


# A site that is read several times, as in a loop, counts as what was known best.
_RANK = {"open": 0, "no entry": 1, "own": 2, "builtin": 3, "entry": 4}


def _classified(project: Project, node: ast.Call, name: str, target: Value, receiver: Value | None) -> tuple[str, str]:
    """What is known of a call, and the name of its callee."""
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if target.kind in ("user-function", "class"):
        return "own", name
    if target is METHOD and receiver is not None:
        return _of_method(project, receiver, method)
    if target.kind in ("function", "module"):
        if target.name.startswith("builtins."):
            return "builtin", name
        root = target.name.partition(".")[0]
        if library.rule_for(target.name) is not None:
            return "entry", target.name
        return ("own" if root in project.modules or not root else "no entry"), target.name
    if target.kind == "object":
        return ("entry" if library.method_rule(target.name, "__call__") else "no entry"), f"{target.name}()"
    if not method and name in project.methods:
        return "own", name
    return ("builtin" if hasattr(builtins, name) else "open"), f"?{name}"


def _of_method(project: Project, receiver: Value, method: str) -> tuple[str, str]:
    if receiver.kind in _BUILTIN_KINDS:
        return "builtin", method
    if receiver.kind == "unknown":
        if library.method_rule("", method) is not None or library.TELLING.get(method) is not None:
            return "entry", f"?.{method}"
        if method in project.methods and receiver.name.partition(".")[0] in ("self", "cls", "super()"):
            return "own", method
        return ("builtin" if methods._container_rule(method, 1) else "open"), f"?.{method}"
    owner = receiver.name if receiver.kind == "object" else receiver.kind
    if library.method_rule(owner, method) is not None:
        return "entry", f"{owner}.{method}"
    return ("own" if method in project.methods else "no entry"), f"{owner}.{method}"


def figures(projects: Sequence[Project]) -> Iterator[str]:
    """The lines of the table."""
    groups = {
        "all": projects,
        "with notebooks": [project for project in projects if project.has_notebooks],
        "without": [project for project in projects if not project.has_notebooks],
    }
    for title, group in groups.items():
        counts = Counter(kind for project in group for kind in project.found.values())
        of = counts["entry"] + counts["no entry"] + counts["open"]
        shares = []
        for project in group:
            kinds = Counter(project.found.values())
            others = kinds["entry"] + kinds["no entry"] + kinds["open"]
            if others >= 10:
                shares.append(kinds["entry"] / others)
        unread = sum(project.unread for project in group)
        yield (
            f"{title}: {len(group)} projects, {of} calls, {counts['entry'] / max(of, 1):.1%} with an entry"
            f" (mean of projects {sum(shares) / max(len(shares), 1):.1%}), {dict(counts)}, {unread} not read"
        )


def missing(projects: Sequence[Project], most: int) -> Iterator[str]:
    """The names without an entry, by how many projects call them."""
    for kind in ("no entry", "open"):
        sites: Counter[str] = Counter()
        users: Counter[str] = Counter()
        for project in projects:
            names = Counter(project.names[site] for site, known in project.found.items() if known == kind)
            sites.update(names)
            users.update(names.keys())
        yield f"{kind}:"
        ranked = sorted(sites, key=lambda name: (-users[name], -sites[name]))
        yield "  " + " ".join(f"{name}:{users[name]}/{sites[name]}" for name in ranked[:most])


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--files", type=int, default=12, help="about how many of each project")
    parser.add_argument("--part", choices=("development", "exam"), default="development")
    parser.add_argument("--most", type=int, default=0, help="how many names without an entry to print")
    options = parser.parse_args(arguments)
    os.environ[VARIABLE] = "off"  # facts from the disk would not be read again
    folders = [folder for folder in options.folders if in_part(folder.name) == options.part]
    projects = [read_project(folder, options.files) for folder in folders]
    print("\n".join([*figures(projects), *(missing(projects, options.most) if options.most else ())]))


if __name__ == "__main__":
    main()
