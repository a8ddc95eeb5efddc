"""Functions of the standard library and edits that cannot change their cost, for tests and measurements."""

from __future__ import annotations

import ast
import inspect
import json
import random
import statistics
import string
import subprocess
import symtable
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from pathlib import Path
from types import FunctionType, ModuleType

_MODULES = (ast, inspect, json, random, statistics, string, subprocess, textwrap, symtable)
_HINT = "dict[str, list[int]] | None"


def functions_of(module: ModuleType) -> set[str]:
    """The source texts of the functions and methods that a module defines."""
    owners = [module, *(member for member in vars(module).values() if inspect.isclass(member))]
    return {
        textwrap.dedent(inspect.getsource(member))
        for owner in owners
        for member in vars(owner).values()
        if isinstance(member, FunctionType) and member.__module__ == module.__name__
    }


STANDARD_LIBRARY = sorted({text for module in _MODULES for text in functions_of(module)})


def renamed(text: str, seed: int = 0, *, parameters: bool = True) -> str | None:
    """The function with other names for what the interpreter itself says is local, else as ``ast.unparse`` writes it.

    None where a function inside it makes a name belong to several scopes.
    """
    table = symtable.symtable(text, "text", "exec")
    functions = [child for child in table.get_children() if child.get_type() == "function"]
    if len(functions) != 1 or functions[0].get_children():
        return None
    names = [
        symbol.get_name()
        for symbol in functions[0].get_symbols()
        if symbol.is_local()
        and not symbol.is_imported()
        and (parameters or not symbol.is_parameter())
        and symbol.get_name() not in ("self", "cls", "__class__")
    ]
    rng = random.Random(seed)
    new = {name: f"other_{rng.randrange(1000)}_{i}" for i, name in enumerate(names)}
    tree = ast.parse(text)
    [definition] = tree.body
    assert isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef))
    arguments = [node for node in ast.walk(definition.args) if isinstance(node, ast.arg)]
    for node in (*arguments, *(node for statement in definition.body for node in ast.walk(statement))):
        if isinstance(node, ast.Name):
            node.id = new.get(node.id, node.id)
        elif isinstance(node, ast.arg):
            node.arg = new.get(node.arg, node.arg)
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            node.name = new.get(node.name, node.name)
    return ast.unparse(tree)


def annotated(text: str) -> str:
    """The function with a type hint on every parameter and on its result, as ``ast.unparse`` writes it."""
    tree = ast.parse(text)
    hint = ast.parse(_HINT, mode="eval").body
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = hint
            for parameter in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                parameter.annotation = hint
    return ast.unparse(tree)


def commented(text: str) -> str:
    """The function with a comment above its first statement, or at its end if it is written in one line."""
    lines = text.split("\n")
    [definition] = ast.parse(text).body
    assert isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef))
    first = definition.body[0]
    line = min([first.lineno, *(decorator.lineno for decorator in getattr(first, "decorator_list", []))]) - 1
    if line + 1 <= definition.lineno or lines[line][: first.col_offset].strip(" @"):
        return f"{text.rstrip()}  # a comment that says nothing\n"
    return "\n".join([*lines[:line], "", "        # a comment that says nothing", *lines[line:]])


def formatted(texts: Sequence[str], *options: str) -> list[str]:
    """The texts as ruff formats them with these options."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{i}.py" for i in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "ruff", "format", "--isolated", "--quiet", "--target-version", "py311"]
        subprocess.run([*command, *options, folder], check=True)
        return [path.read_text(encoding="utf-8") for path in paths]


def hoisted(text: str) -> str | None:
    """The function with its first repeated constant in a local name; None where no constant occurs twice."""
    tree = ast.parse(text)
    [definition] = tree.body
    assert isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef))
    body = definition.body[1:] if ast.get_docstring(definition) is not None else definition.body
    seen: set[object] = set()
    parents = {
        child: node for statement in body for node in ast.walk(statement) for child in ast.iter_child_nodes(node)
    }
    fixed = {
        id(child)
        for node in parents.values()
        if isinstance(node, (ast.JoinedStr, ast.pattern))
        for child in ast.walk(node)
    }
    for node in parents:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, (str, int)) or id(node) in fixed:
            continue
        if node.value in seen and not isinstance(node.value, bool):
            _Replaced(node.value).visit(ast.Module(body, []))
            definition.body.insert(len(definition.body) - len(body), ast.parse(f"hoisted_ = {node.value!r}").body[0])
            return ast.unparse(ast.fix_missing_locations(tree))
        seen.add(node.value)
    return None


class _Replaced(ast.NodeTransformer):
    """Puts a name in place of a constant."""

    def __init__(self, value: object) -> None:
        self._value = value

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        is_it = type(node.value) is type(self._value) and node.value == self._value
        return ast.Name("hoisted_", ast.Load()) if is_it else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node


def with_format(text: str) -> str | None:
    """The function with its f-strings as calls of ``str.format``; None where it has none of plain names."""
    tree = ast.parse(text)
    found = _Formatted()
    found.visit(tree)
    return ast.unparse(ast.fix_missing_locations(tree)) if found.count else None


class _Formatted(ast.NodeTransformer):
    """Replaces f-strings without conversions and format specifications."""

    count = 0

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        pieces, arguments = [], []
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                if value.format_spec is not None or value.conversion != -1:
                    return node
                pieces.append("{}")
                arguments.append(value.value)
            elif isinstance(value, ast.Constant):
                pieces.append(str(value.value).replace("{", "{{").replace("}", "}}"))
        if not arguments:
            return node
        self.count += 1
        return ast.Call(ast.Attribute(ast.Constant("".join(pieces)), "format", ast.Load()), arguments, [])


def early(text: str) -> str | None:
    """The function with a last ``if`` that has no ``else`` as an early return; None where it does not end in one."""
    tree = ast.parse(text)
    [definition] = tree.body
    assert isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef))
    last = definition.body[-1]
    if not isinstance(last, ast.If) or last.orelse:
        return None
    definition.body[-1:] = [ast.If(ast.UnaryOp(ast.Not(), last.test), [ast.Return(None)], []), *last.body]
    return ast.unparse(ast.fix_missing_locations(tree))
