"""A generated function with what it needs to run: its text, its helpers' texts, its class and its arguments.

``sources`` of a program is a complete module of our own making; the model reads ``text`` and ``helpers`` alone.
"""

from __future__ import annotations

import ast
import io
import textwrap
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass

from .values import Argument

IMPORTS = (
    "import bisect, collections, copy, datetime, functools, heapq, io, itertools, json, math, operator, re, types\n"
)


@dataclass(frozen=True, slots=True)
class Program:
    """One version of a generated function.

    ``fields`` names the parameters that live on the object where the function is a method of ``owner``; ``arguments``
    are in the order of the parameters without a default.
    """

    name: str
    owner: str
    text: str
    helpers: tuple[str, ...]
    fields: tuple[str, ...]
    arguments: tuple[Argument, ...]

    @property
    def module(self) -> str:
        """The source text of a module that defines the function and all it calls."""
        return module_text(self.owner, self.fields, self.helpers, self.text)


def module_text(owner: str, fields: Sequence[str], helpers: Sequence[str], text: str) -> str:
    """The source text of a module with the function ``text``, as a method of ``owner`` that sets ``fields`` if any."""
    if not owner:
        return "\n\n".join((IMPORTS, *helpers, text))
    sets = [f"        self.{field} = {field}" for field in fields] or ["        pass"]
    header = [f"class {owner}:", f"    def __init__({', '.join(('self', *fields))}):", *sets, "", ""]
    return "\n\n".join((IMPORTS, *helpers, "\n".join(header) + text))


def render(node: ast.FunctionDef, *, double: bool, method: bool = False) -> str:
    """The source text of a function, in double or single quotes; a method's is indented to its class."""
    text = ast.unparse(ast.fix_missing_locations(node)) + "\n"
    text = requote(text) if double else text
    return textwrap.indent(text, "    ") if method else text


def requote(text: str) -> str:
    """The text with double quotes where that needs no escape."""
    lines = text.splitlines(keepends=True)
    for token in reversed(list(tokenize.generate_tokens(io.StringIO(text).readline))):
        quoted = token.string
        if token.type != tokenize.STRING or token.start[0] != token.end[0] or "\\" in quoted or '"' in quoted:
            continue
        prefix, _, rest = quoted.partition("'")
        if not rest.endswith("'") or (prefix and "'" in rest[:-1]):
            continue
        row, (start, end) = token.start[0] - 1, (token.start[1], token.end[1])
        lines[row] = f'{lines[row][:start]}{prefix}"{rest[:-1]}"{lines[row][end:]}'
    return "".join(lines)


def parse(text: str) -> ast.FunctionDef:
    """The function that ``text`` defines, at any indentation."""
    node = ast.parse(textwrap.dedent(text)).body[0]
    assert isinstance(node, ast.FunctionDef)
    return node
