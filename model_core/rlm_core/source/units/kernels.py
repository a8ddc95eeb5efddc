"""Triton kernels: a Python file -> its kernels, each with the text that decides what a launch costs.

That text holds the kernel with its decorators, the jit functions that it calls, the plain functions of the file that
launch it, and the constants that those name; imports, tests and the rest are left out. Kernels inside the strings
that ``torch.compile`` writes (``async_compile.triton(name, source)``) are found too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from rlm_core.source import languages
from rlm_core.types import Unit

from .spans import name_text, qualname, span_of

_SKIPPED = re.compile(r"_*(?:test|bench|benchmark|main|demo|example|check|verify)(?:_|\d|\Z)")
_WORD = re.compile(r"[^\W\d]\w*")
_MAX_CONSTANT = 4000
_FUNCTION = frozenset({"function_definition"})


@dataclass(frozen=True, slots=True)
class _Definition:
    """A function or constant of a file: ``outer`` includes its decorators."""

    name: str
    outer: Node
    node: Node
    text: str
    words: frozenset[str]


@dataclass(frozen=True, slots=True)
class _File:
    """What the kernels of a file are made of, each in file order."""

    kernels: tuple[_Definition, ...]
    functions: tuple[_Definition, ...]
    constants: tuple[_Definition, ...]

    def select(self, names: Collection[str]) -> list[_Definition]:
        """The definitions that the kernels called ``names`` need, in file order."""
        chosen = _closure([kernel for kernel in self.kernels if kernel.name in names], self.kernels)
        roots = frozenset(names)
        launchers = [entry for entry in self.functions if entry.words & roots and not _SKIPPED.match(entry.name)]
        # A method's text is part of nothing else here, a function inside a launcher is part of the launcher.
        launchers = [entry for entry in launchers if not any(_inside(entry, other) for other in launchers)]
        tops = [entry for entry in self.functions if entry.outer.parent is not None and not _inner(entry)]
        in_decorators = frozenset(_WORD.findall(" ".join(_decorator_text(kernel) for kernel in chosen)))
        tuners = [entry for entry in tops if entry.name in in_decorators and entry not in launchers]
        parts = [*chosen, *launchers, *tuners]
        parts += _closure([entry for entry in self.constants if any(entry.name in part.words for part in parts)], ())
        unique = {entry.outer.start_byte: entry for entry in parts}
        return [unique[start] for start in sorted(unique)]


def find_kernels(source: bytes, root: Node) -> list[Unit]:
    """The Triton kernels of a parsed Python file, in source order; ``text`` is :func:`kernel_text` of each."""
    if b"triton" not in source:
        return []
    units = _units(_read(source, root))
    compiled = _compiled_sources(source, root)
    if compiled is not None:
        units += _units(_read(compiled, languages.parse("python", compiled).root_node))
    return sorted(units, key=lambda unit: unit.span.start_byte)


def kernel_text(source: str, kernels: Collection[str] | None = None) -> str:
    """What the model reads of a file of Triton kernels: the chosen ones (None: all) and what belongs to them.

    The whole text when the file holds none of them.
    """
    data = source.encode("utf-8", errors="replace")
    root = languages.parse("python", data).root_node
    file = _read(data, root)
    if not file.kernels and (compiled := _compiled_sources(data, root)) is not None:
        file = _read(compiled, languages.parse("python", compiled).root_node)
    present = {kernel.name for kernel in file.kernels}
    wanted = present if kernels is None else present & set(kernels)
    return _join(file.select(wanted)) if wanted else source


def _units(file: _File) -> list[Unit]:
    units = []
    for kernel in file.kernels:
        name = kernel.node.child_by_field_name("name")
        assert name is not None, "only functions with a name are read"
        colon = next((child for child in kernel.node.children if child.type == ":"), name)
        span, header = span_of(kernel.outer, kernel.node), span_of(kernel.node, colon)
        text = _join(file.select({kernel.name}))
        units.append(Unit("kernel", "triton", qualname(kernel.node), text, span, span_of(name), header))
    return units


def _join(parts: list[_Definition]) -> str:
    return "\n\n".join(part.text for part in parts) + "\n"


def _closure(start: list[_Definition], among: tuple[_Definition, ...]) -> list[_Definition]:
    """``start`` and all of ``among`` that they name, directly or through others."""
    chosen = {entry.outer.start_byte: entry for entry in start}
    queue = list(start)
    while queue:
        words = queue.pop().words
        for entry in among:
            if entry.name in words and entry.outer.start_byte not in chosen:
                chosen[entry.outer.start_byte] = entry
                queue.append(entry)
    return list(chosen.values())


def _read(source: bytes, root: Node) -> _File:
    jits = _jit_names(root)
    kernels: list[_Definition] = []
    functions: list[_Definition] = []
    for node in _descendants(root):
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is None or body is None or name.is_missing:
            continue
        outer = node.parent if node.parent is not None and node.parent.type == "decorated_definition" else node
        entry = _definition(source, name_text(name), outer, node)
        (kernels if _is_kernel(outer, jits) else functions).append(entry)
    return _File(tuple(kernels), tuple(functions), tuple(_constants(source, root)))


def _definition(source: bytes, name: str, outer: Node, node: Node) -> _Definition:
    line = source.rfind(b"\n", 0, outer.start_byte) + 1
    text = source[outer.start_byte : outer.end_byte].decode("utf-8", errors="replace")
    indent = source[line : outer.start_byte].decode("utf-8", errors="replace")
    if indent and not indent.strip():
        text = text.replace("\n" + indent, "\n")
    return _Definition(name, outer, node, text, frozenset(_WORD.findall(text)) - {name})


def _descendants(root: Node) -> Iterator[Node]:
    """All function definitions below a node, in source order."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type in _FUNCTION:
            yield node
        stack += reversed(node.named_children)


def _constants(source: bytes, root: Node) -> Iterator[_Definition]:
    for statement in root.named_children:
        node = statement.named_children[0] if statement.type == "expression_statement" else None
        if node is None or node.type != "assignment" or node.end_byte - node.start_byte > _MAX_CONSTANT:
            continue
        left = node.child_by_field_name("left")
        if left is not None and left.type == "identifier":
            yield _definition(source, name_text(left), statement, node)


def _jit_names(root: Node) -> frozenset[str]:
    """The dotted names that stand for ``triton.jit`` after the imports of a file."""
    names: set[str] = set()
    for node in _imports(root):
        module = node.child_by_field_name("module_name")
        package = name_text(module) if module is not None else ""
        for child in node.children_by_field_name("name"):
            original = child.child_by_field_name("name") if child.type == "aliased_import" else child
            alias = child.child_by_field_name("alias") if child.type == "aliased_import" else child
            imported, known_as = name_text(original), name_text(alias)
            if imported == "triton" or (module is None and imported.startswith("triton.")):
                base = known_as.split(".")[0]
                names |= {f"{base}.jit", f"{base}.runtime.jit", f"{base}.runtime.jit.jit"}
            elif package.split(".")[0] == "triton" and imported == "jit":
                names |= {known_as, f"{known_as}.jit"}
            elif package == "triton" and imported == "runtime":
                names.add(f"{known_as}.jit")
    return frozenset(names)


def _imports(root: Node) -> Iterator[Node]:
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type in ("import_statement", "import_from_statement"):
            yield node
        elif node.type not in ("function_definition", "class_definition", "expression_statement"):
            stack += node.named_children


def _is_kernel(outer: Node, jits: frozenset[str]) -> bool:
    if outer.type != "decorated_definition" or not jits:
        return False
    for child in outer.children:
        if child.type == "decorator" and child.named_children:
            callee: Node | None = child.named_children[0]
            if callee is not None and callee.type == "call":
                callee = callee.child_by_field_name("function")
            if "".join(name_text(callee).split()) in jits:
                return True
    return False


def _decorator_text(kernel: _Definition) -> str:
    return " ".join(name_text(child) for child in kernel.outer.children if child.type == "decorator")


def _inside(inner: _Definition, outer: _Definition) -> bool:
    return outer.outer.start_byte < inner.outer.start_byte and inner.outer.end_byte <= outer.outer.end_byte


def _inner(entry: _Definition) -> bool:
    parent = entry.outer.parent
    return parent is not None and parent.type == "block"


def _compiled_sources(source: bytes, root: Node) -> bytes | None:
    """The file with all but the kernel sources that torch.compile wrote into it blanked; None when it has none.

    Offsets and lines stay those of the file, so spans of what is found in it hold for the file.
    """
    if b".triton(" not in source:
        return None
    kept = bytearray(b" " * len(source))
    for at, byte in enumerate(source):
        if byte in b"\r\n":
            kept[at] = byte
    found = False
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == "call" and (content := _kernel_string(node)) is not None:
            kept[content.start_byte : content.end_byte] = source[content.start_byte : content.end_byte]
            found = True
        else:
            stack += node.named_children
    return bytes(kept) if found else None


def _kernel_string(call: Node) -> Node | None:
    """The contents of the second argument of ``async_compile.triton(name, source, ...)``."""
    function, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
    if function is None or arguments is None or not name_text(function).endswith(".triton"):
        return None
    strings = [child for child in arguments.named_children if child.type == "string"]
    if len(strings) < 2:
        return None
    return next((child for child in strings[1].named_children if child.type == "string_content"), None)
