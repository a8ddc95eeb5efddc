"""Triton kernels: a Python or Triton IR file -> its kernels, each with the text that decides the cost of a launch.

In Python that text holds the kernel with its decorators, the jit functions that it calls, the plain functions of the
file that launch it, and the constants that those name; imports, tests and the rest are left out. Kernels inside the
strings that ``torch.compile`` writes (``async_compile.triton(name, source)``) are found too. In Triton IR it is a
``tt.func public`` with the private functions that it calls.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from rlm_core.types import Span, Unit

from .parsed import (
    ParsedSource,
    decorated,
    descendants,
    header_of,
    imported_names,
    name_text,
    qualname,
    span_of,
)

_SKIPPED = re.compile(r"_*(?:test|bench|benchmark|main|demo|example|check|verify)(?:_|\d|\Z)")
_WORD = re.compile(r"[^\W\d]\w*")
_MAX_CONSTANT = 4000
_IR_FUNCTION = re.compile(rb"tt\.func\s+(?:(public|private|nested)\s+)?@(\"[^\"\n]+\"|[\w.$-]+)")
# It begins with the first of several blanks only, and what it has matched is not tried in parts: linear time.
_IR_LOCATION = re.compile(r"(?<![ \t])[ \t]*+\bloc\((?:[^()\"\n]|\"[^\"\n]*\"|\((?:[^()\"\n]|\"[^\"\n]*\")*+\))*+\)")
_IR_CALL = re.compile(r"tt\.call\s+@(\"[^\"\n]+\"|[\w.$-]+)")
_IR_TOKEN = re.compile(rb"\"(?:[^\"\\\n]|\\.)*+\"?|//[^\n]*+|[{}]")
_MAX_HELPER_BYTES = 4 * 1024 * 1024  # of all copies of private functions together


@dataclass(frozen=True, slots=True)
class _Definition:
    """A function or constant of a file: ``outer`` includes its decorators."""

    name: str
    outer: Node
    node: Node
    text: str
    words: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Definitions:
    """The kernels, functions and constants of a file, each in file order."""

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


def find_kernels(parsed: ParsedSource) -> list[Unit]:
    """The Triton kernels of a Python file, in source order; ``text`` is the :func:`kernel_text` of each."""
    if b"triton" not in parsed.source:
        return []
    units = _units(_definitions(parsed))
    compiled = _compiled_sources(parsed)
    if compiled is not None:
        units += _units(_definitions(compiled))
    return sorted(units, key=lambda unit: unit.span.start_byte)


def kernel_text(source: str, kernels: Collection[str] | None = None) -> str:
    """The text of a file of Triton kernels that the model reads: the chosen ones (None: all) and what belongs to them.

    The whole text when the file has none of them.
    """
    parsed = ParsedSource(source.encode("utf-8", errors="replace"), "python")
    file = _definitions(parsed)
    if not file.kernels and (compiled := _compiled_sources(parsed)) is not None:
        file = _definitions(compiled)
    present = {kernel.name for kernel in file.kernels}
    wanted = present if kernels is None else present & set(kernels)
    return _join(file.select(wanted)) if wanted else source


def _units(file: _Definitions) -> list[Unit]:
    units = []
    for kernel in file.kernels:
        name = kernel.node.child_by_field_name("name")
        assert name is not None, "only functions with a name are read"
        span, header = span_of(kernel.outer, kernel.node), header_of(kernel.node, name)
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


def _definitions(parsed: ParsedSource) -> _Definitions:
    jits = _jit_names(parsed.root)
    kernels: list[_Definition] = []
    functions: list[_Definition] = []
    for node in descendants(parsed.root, "function_definition"):
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is None or body is None or name.is_missing:
            continue
        outer = decorated(node)
        definition = _definition(parsed.source, name_text(name), outer, node)
        (kernels if _is_kernel(outer, jits) else functions).append(definition)
    return _Definitions(tuple(kernels), tuple(functions), tuple(_constants(parsed)))


def _definition(source: bytes, name: str, outer: Node, node: Node) -> _Definition:
    line = source.rfind(b"\n", 0, outer.start_byte) + 1
    text = source[outer.start_byte : outer.end_byte].decode("utf-8", errors="replace")
    indent = source[line : outer.start_byte].decode("utf-8", errors="replace")
    if indent and not indent.strip():
        text = text.replace("\n" + indent, "\n")
    return _Definition(name, outer, node, text, frozenset(_WORD.findall(text)) - {name})


def _constants(parsed: ParsedSource) -> Iterator[_Definition]:
    for statement in parsed.root.named_children:
        node = statement.named_children[0] if statement.type == "expression_statement" else None
        if node is None or node.type != "assignment" or node.end_byte - node.start_byte > _MAX_CONSTANT:
            continue
        left = node.child_by_field_name("left")
        if left is not None and left.type == "identifier":
            yield _definition(parsed.source, name_text(left), statement, node)


def _jit_names(root: Node) -> frozenset[str]:
    """The dotted names of ``triton.jit`` after the imports of a file."""
    names: set[str] = set()
    for package, name, alias in imported_names(root):
        if name == "triton" or (not package and name.startswith("triton.")):
            base = alias.split(".")[0]
            names |= {f"{base}.jit", f"{base}.runtime.jit", f"{base}.runtime.jit.jit"}
        elif package.split(".")[0] == "triton" and name == "jit":
            names |= {alias, f"{alias}.jit"}
        elif package == "triton" and name == "runtime":
            names.add(f"{alias}.jit")
    return frozenset(names)


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


def _compiled_sources(parsed: ParsedSource) -> ParsedSource | None:
    """The file with everything blanked except the kernel sources that torch.compile wrote; None without any.

    Offsets and lines are those of the file, so spans in the result are valid for the file.
    """
    source = parsed.source
    if b".triton(" not in source:
        return None
    kept = bytearray(byte if byte in b"\r\n" else ord(" ") for byte in source)
    has_kernel = False
    stack = [parsed.root]
    while stack:
        node = stack.pop()
        if node.type == "call" and (content := _kernel_string(node)) is not None:
            kept[content.start_byte : content.end_byte] = source[content.start_byte : content.end_byte]
            has_kernel = True
        else:
            stack += node.named_children
    return ParsedSource(bytes(kept), "python") if has_kernel else None


def _kernel_string(call: Node) -> Node | None:
    """The contents of the second argument of ``async_compile.triton(name, source, ...)``."""
    function, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
    if function is None or arguments is None or not name_text(function).endswith(".triton"):
        return None
    strings = [child for child in arguments.named_children if child.type == "string"]
    if len(strings) < 2:
        return None
    return next((child for child in strings[1].named_children if child.type == "string_content"), None)


def find_ttir(source: bytes) -> list[Unit]:
    """The public functions of a Triton IR text, in source order; ``text`` has no source locations."""
    functions = []
    matches = list(_IR_FUNCTION.finditer(source))
    starts = [match.start() for match in matches[1:]]
    for match, following in zip(matches, [*starts, len(source)], strict=False):
        end, header = _ir_extent(source, match.end(), following)
        text = _IR_LOCATION.sub("", source[match.start() : end].decode("utf-8", errors="replace"))
        functions.append((match, end, header, text))
    helpers = {_ir_name(match): text for match, _, _, text in functions if match[1] == b"private"}
    called = {text: [name.strip('"') for name in _IR_CALL.findall(text)] for _, _, _, text in functions}
    lines = [0, *(match.end() for match in re.finditer(rb"\n", source))]
    units = []
    room = _MAX_HELPER_BYTES
    for match, end, header, text in functions:
        if match[1] == b"private":
            continue
        parts, queue = {text: None}, [text]
        while queue:
            for name in called[queue.pop()]:
                helper = helpers.get(name)
                if helper is not None and helper not in parts and len(helper) <= room:
                    room -= len(helper)
                    parts[helper] = None
                    queue.append(helper)
        units.append(
            Unit(
                "kernel",
                "ttir",
                _ir_name(match),
                "\n".join(parts) + "\n",
                _ir_span(lines, match.start(), end),
                _ir_span(lines, match.start(2), match.end(2)),
                _ir_span(lines, match.start(), header),
            )
        )
    return units


def _ir_name(match: re.Match[bytes]) -> str:
    return match[2].decode("utf-8", errors="replace").strip('"')


def _ir_extent(source: bytes, start: int, following: int) -> tuple[int, int]:
    """The end of the function at ``start`` (after its last brace) and the end of its signature.

    It ends where the next one starts, at ``following``, if its braces do not match.
    """
    line_end = source.find(b"\n", start, following)
    line_end = following if line_end < 0 else line_end
    brace = source.rfind(b"{", start, line_end)
    if brace < 0:
        return line_end, line_end
    header = start + len(source[start:brace].rstrip())
    depth = 0
    for token in _IR_TOKEN.finditer(source, brace, following):
        depth += (token[0] == b"{") - (token[0] == b"}")
        if depth == 0 and token[0] == b"}":
            return token.end(), header
    return start + len(source[start:following].rstrip()), header


def _ir_span(lines: Sequence[int], start: int, end: int) -> Span:
    """The span of the bytes ``[start, end)`` of a text whose lines start at ``lines``."""
    start_line, end_line = bisect_right(lines, start) - 1, bisect_right(lines, end) - 1
    return Span(start_line, start - lines[start_line], end_line, end - lines[end_line], start, end)
