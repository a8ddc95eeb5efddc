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
