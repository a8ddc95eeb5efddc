"""PyTorch modules: a Python file -> its ``nn.Module`` classes, each with the text that decides what a forward costs.

That text holds the class, the other Module classes and functions of the file that it names, the module-level
constants, and ``get_inputs`` and ``get_init_inputs`` where a file has them (they say the sizes).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from rlm_core.source import languages
from rlm_core.types import Unit

from .spans import name_text, qualname, span_of, unit_text

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


def find_modules(source: bytes, root: Node) -> list[Unit]:
    """The Module classes of a parsed Python file, in source order; ``text`` is :func:`module_text` of each."""
    if b"torch" not in source:
        return []
    parts = list(_parts(source, root))
    units = []
    for node in _modules(root):
        name = node.child_by_field_name("name")
        assert name is not None, "only classes with a name are read"
        outer = _outer(node)
        colon = next((child for child in node.children if child.type == ":"), name)
        own = next(
            (part for part in parts if part.node.start_byte == outer.start_byte),
            _part(source, "class", frozenset({name_text(name)}), outer),
        )
        span, header = span_of(outer, node), span_of(node, colon)
        text = _join(_select(parts, own))
        units.append(Unit("module", "pytorch", qualname(node), text, span, span_of(name), header))
    return units


def module_text(source: str, name: str | None = None) -> str:
    """What the model reads of a PyTorch file: the Module class or function called ``name`` and what belongs to it.

    None takes the class ``Model`` or else the last Module class, or all functions but tests where there is no class;
    the whole text when there is neither.
    """
    data = source.encode("utf-8", errors="replace")
    root = languages.parse("python", data).root_node
    parts = list(_parts(data, root))
    starts = {_outer(node).start_byte for node in _modules(root)}
    modules = [part for part in parts if part.node.start_byte in starts]
    functions = [part for part in parts if part.kind == "function" and not _is_test(part)]
    if name is not None:
        own = next((part for part in (*modules, *functions) if name in part.names), None)
    else:
        own = next((part for part in modules if "Model" in part.names), modules[-1] if modules else None)
    if own is not None:
        return _join(_select(parts, own))
    return _join(functions) if functions else source


def _select(parts: list[_Part], own: _Part) -> list[_Part]:
    """A part, its inputs when it is a class, and all that these name, directly or through others; in file order."""
    chosen = {own.node.start_byte: own}
    queue = [own, *(part for part in parts if own.kind == "class" and part.names & _INPUTS)]
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


def _parts(source: bytes, root: Node) -> Iterator[_Part]:
    for statement in root.named_children:
        node = statement
        if statement.type == "decorated_definition":
            node = statement.child_by_field_name("definition") or statement
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
    found = []
    for node in _classes(root) if bases else ():
        name, parents, body = (node.child_by_field_name(field) for field in ("name", "superclasses", "body"))
        if name is None or parents is None or body is None:
            continue
        if any("".join(name_text(parent).split()) in bases for parent in parents.named_children):
            bases.add(name_text(name))
            found.append(node)
    return found


def _classes(root: Node) -> Iterator[Node]:
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == "class_definition":
            yield node
        stack += reversed(node.named_children)


def _module_names(root: Node) -> set[str]:
    """The dotted names that stand for ``torch.nn.Module`` after the imports of a file."""
    names: set[str] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type in ("import_statement", "import_from_statement"):
            names |= _imported_modules(node)
        elif node.type not in ("function_definition", "class_definition", "expression_statement"):
            stack += node.named_children
    return names


def _imported_modules(node: Node) -> set[str]:
    module = node.child_by_field_name("module_name")
    package = f"{name_text(module)}." if module is not None else ""
    names = set()
    for child in node.children_by_field_name("name"):
        is_alias = child.type == "aliased_import"
        full = package + name_text(child.child_by_field_name("name") if is_alias else child)
        known_as = name_text(child.child_by_field_name("alias")) if is_alias else full[len(package) :]
        for target in ("torch.nn.Module", "torch.nn.modules.Module", "torch.nn.modules.module.Module"):
            if target == full:
                names.add(known_as)
            elif target.startswith(f"{full}."):
                names.add(known_as + target[len(full) :])
            elif not is_alias and full.startswith("torch.") and not package:
                # `import torch.nn.functional` binds `torch`.
                names.add("torch.nn.Module")
    return names


def _outer(node: Node) -> Node:
    parent = node.parent
    return parent if parent is not None and parent.type == "decorated_definition" else node
