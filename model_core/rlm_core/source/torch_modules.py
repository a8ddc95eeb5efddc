"""PyTorch modules: a Python file -> its ``nn.Module`` classes, with the text that decides the cost of a forward pass.

That text holds the class, the other Module classes and functions of the file that it names, the module-level
constants, and ``get_inputs`` and ``get_init_inputs`` where a file has them (they give the sizes).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from rlm_core.types import Unit

from .parsed import (
    ParsedSource,
    decorated,
    descendants,
    header_of,
    imported_names,
    name_text,
    qualname,
    span_of,
    undecorated,
    unit_text,
)

_WORD = re.compile(r"[^\W\d]\w*")
_TEST = re.compile(r"_*(?:test|bench|benchmark|main)(?:_|\d|\Z)")
_INPUTS = frozenset({"get_inputs", "get_init_inputs"})


@dataclass(frozen=True, slots=True)
class _Part:
    """A top-level class, function or assignment, the names that it defines and the words in it."""

    kind: str
    names: frozenset[str]
    node: Node
    text: str
    words: frozenset[str]


def find_modules(parsed: ParsedSource) -> list[Unit]:
    """The Module classes of a Python file, in source order; ``text`` is the :func:`module_text` of each."""
    if b"torch" not in parsed.source:
        return []
    parts = list(_parts(parsed))
    units = []
    for node in _modules(parsed.root):
        name = node.child_by_field_name("name")
        assert name is not None, "only classes with a name are read"
        outer = decorated(node)
        part = next(
            (part for part in parts if part.node.start_byte == outer.start_byte),
            _part(parsed.source, "class", frozenset({name_text(name)}), outer),
        )
        span, header = span_of(outer, node), header_of(node, name)
        text = _join(_select(parts, part))
        units.append(Unit("module", "pytorch", qualname(node), text, span, span_of(name), header))
    return units


def module_text(source: str, name: str | None = None) -> str:
    """The text of a PyTorch file that the model reads: the Module class or function ``name`` and what belongs to it.

    None takes the class ``Model`` or else the last Module class, or all functions but tests where there is no class;
    the whole text when there is neither.
    """
    parsed = ParsedSource(source.encode("utf-8", errors="replace"), "python")
    parts = list(_parts(parsed))
    starts = {decorated(node).start_byte for node in _modules(parsed.root)}
    modules = [part for part in parts if part.node.start_byte in starts]
    functions = [part for part in parts if part.kind == "function" and not _is_test(part)]
    if name is not None:
        chosen = next((part for part in (*modules, *functions) if name in part.names), None)
    else:
        chosen = next((part for part in modules if "Model" in part.names), modules[-1] if modules else None)
    if chosen is not None:
        return _join(_select(parts, chosen))
    return _join(functions) if functions else source


def _select(parts: list[_Part], start: _Part) -> list[_Part]:
    """A part, its inputs when it is a class, and all definitions that these name, transitively; in file order."""
    chosen = {start.node.start_byte: start}
    queue = [start, *(part for part in parts if start.kind == "class" and part.names & _INPUTS)]
    while queue:
        part = queue.pop()
        chosen[part.node.start_byte] = part
        queue += [
            other
            for other in parts
            if other.names & part.words and other.node.start_byte not in chosen and not _is_test(other)
        ]
    return [chosen[start] for start in sorted(chosen)]


def _join(parts: list[_Part]) -> str:
    lines = []
    for before, part in zip([None, *parts], parts, strict=False):
        if before is not None:
            lines.append("" if before.kind == part.kind == "constant" else "\n")
        lines.append(part.text)
    return "\n".join(line for line in lines if line) + "\n"


def _is_test(part: _Part) -> bool:
    return any(_TEST.match(name) for name in part.names)


def _parts(parsed: ParsedSource) -> Iterator[_Part]:
    source = parsed.source
    for statement in parsed.root.named_children:
        node = undecorated(statement)
        name = node.child_by_field_name("name")
        if node.type in ("class_definition", "function_definition") and name is not None:
            kind = "class" if node.type == "class_definition" else "function"
            yield _part(source, kind, frozenset({name_text(name)}), statement)
        elif statement.type == "expression_statement" and statement.named_children[0].type == "assignment":
            left = statement.named_children[0].child_by_field_name("left")
            if left is not None and left.type in ("identifier", "pattern_list"):
                yield _part(source, "constant", frozenset(_WORD.findall(name_text(left))), statement)


def _part(source: bytes, kind: str, names: frozenset[str], node: Node) -> _Part:
    text = unit_text(source, span_of(node))
    return _Part(kind, names, node, text, frozenset(_WORD.findall(text)) - names)


def _modules(root: Node) -> list[Node]:
    """The classes that derive from ``nn.Module``, by import or through another class of the file, in source order."""
    bases = _module_names(root)
    modules = []
    for node in descendants(root, "class_definition") if bases else ():
        name, parents, body = (node.child_by_field_name(field) for field in ("name", "superclasses", "body"))
        if name is None or parents is None or body is None:
            continue
        if any("".join(name_text(parent).split()) in bases for parent in parents.named_children):
            bases.add(name_text(name))
            modules.append(node)
    return modules


def _module_names(root: Node) -> set[str]:
    """The dotted names that ``torch.nn.Module`` has after the imports of a file."""
    names = set()
    for module, name, alias in imported_names(root):
        full = f"{module}.{name}" if module else name
        for target in ("torch.nn.Module", "torch.nn.modules.Module", "torch.nn.modules.module.Module"):
            if target == full:
                names.add(alias)
            elif target.startswith(f"{full}."):
                names.add(alias + target[len(full) :])
            elif alias == name and full.startswith("torch.") and not module:
                # `import torch.nn.functional` binds `torch`.
                names.add("torch.nn.Module")
    return names
