"""The text of a function in Triton's IR -> its operations, with the regions that they hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from .values import NotUnderstood, Shape

_FUNCTION = re.compile(r"tt\.func\s+(?:\w+\s+)?@(\"[^\"\n]+\"|[\w.$-]+)\(")
_ARGUMENT = re.compile(r"(%[\w.$-]+): ([^,{]+?)(?: \{[^}]*\})?(?=, %|\)|\Z)")
_RESULTS = re.compile(r"(%[\w.$-]+)(?::(\d+))?(?:, (?=%))?")
_NAME = re.compile(r"\"?([\w.]+)\"?")
_OPERAND = re.compile(r"%[\w.$-]+(?:#\d+)?")
_TENSOR = re.compile(r"(?:tensor|tensordesc)<(?:tensor<)?((?:\d+x)*)(.*)>\Z")
_DTYPES = {
    "f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64", "i1": "bool", "i8": "int8", "i16": "int16",
    "i32": "int32", "i64": "int64", "index": "int64",
}  # fmt: skip
_MOST_DEPTH, _MOST_OPERATIONS = 32, 20_000


@dataclass(frozen=True, slots=True)
class IrType:
    """A type: the shape of a block, the type of its elements, and whether these are pointers."""

    shape: Shape
    dtype: str
    is_pointer: bool


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation: names of its results, what it does, its operands, the rest of its line, and its regions."""

    results: tuple[str, ...]
    name: str
    operands: tuple[str, ...]
    text: str
    line: int
    regions: tuple[Region, ...] = ()

    @property
    def types(self) -> list[IrType]:
        """The types after the last colon: those of the results, where it has any."""
        tail = self.text.rpartition(" : ")[2]
        tail = tail.rpartition(" -> ")[2] if " -> " in tail else tail.rpartition(" to ")[2]
        return [read_type(part) for part in _parts(tail.strip().removeprefix("(").removesuffix(")"))]


@dataclass(frozen=True, slots=True)
class Region:
    """Operations in order, and the names that the region binds when it is entered."""

    names: tuple[str, ...]
    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class IrFunction:
    """A function: the names and types of its parameters, and its operations."""

    name: str
    parameters: dict[str, IrType]
    body: Region


@dataclass(slots=True)
class _Lines:
    """The lines of a text, read one after another."""

    lines: list[str]
    place: int = 0
    operations: int = 0

    def take(self) -> str:
        if self.place >= len(self.lines):
            raise NotUnderstood("the text ends within a region")
        self.place += 1
        return self.lines[self.place - 1].strip()


@dataclass(slots=True)
class _Open:
    """A region that is being read."""

    names: tuple[str, ...] = ()
    operations: list[Operation] = field(default_factory=list)

    def closed(self) -> Region:
        return Region(self.names, tuple(self.operations))


def read_functions(text: str) -> dict[str, IrFunction]:
    """The functions of a text without source locations, by name.

    Raises:
        NotUnderstood: it is not such a text, or has blocks that jump to each other.
    """
    lines = _Lines(text.split("\n"))
    found: dict[str, IrFunction] = {}
    while lines.place < len(lines.lines):
        line = lines.take()
        match = _FUNCTION.match(line)
        if match is None:
            continue
        inside = line[match.end() - 1 :].partition(") attributes")[0].partition(") -> ")[0]
        parameters = {name: read_type(kind) for name, kind in _ARGUMENT.findall(inside)}
        regions, _ = _regions(lines, 0)
        name = match[1].strip('"')
        found[name] = IrFunction(name, parameters, regions[0])
    return found


def _regions(lines: _Lines, depth: int) -> tuple[tuple[Region, ...], str]:
    """The regions of an operation whose line has opened the first, and what follows the last one."""
    if depth > _MOST_DEPTH:
        raise NotUnderstood("regions nest too deeply")
    regions = [_Open()]
    while True:
        line = lines.take()
        if line.startswith("}"):
            tail = line[1:].strip()
            if tail.endswith("{"):
                regions.append(_Open())
                continue
            return tuple(region.closed() for region in regions), tail
        if line.startswith("^"):
            if regions[-1].operations:
                raise NotUnderstood("blocks that jump to each other")
            regions[-1].names = tuple(re.findall(r"(%[\w.$-]+):", line))
        elif line and not line.startswith("//"):
            regions[-1].operations.append(_operation(lines, line, depth))


def _operation(lines: _Lines, line: str, depth: int) -> Operation:
    lines.operations += 1
    if lines.operations > _MOST_OPERATIONS:
        raise NotUnderstood("too many operations")
    number = lines.place
    left, separator, right = line.partition(" = ") if line.startswith("%") else ("", "", line)
    body = right if separator else line
    regions: tuple[Region, ...] = ()
    if body.endswith("{"):
        regions, tail = _regions(lines, depth + 1)
        body = f"{body[:-1]} {tail}"
    name = _NAME.match(body)
    if name is None:
        raise NotUnderstood(line[:80])
    rest = body[name.end() :]
    operands = tuple(_OPERAND.findall(rest.partition(" : ")[0]))
    return Operation(tuple(_results(left)), name[1], operands, rest, number, regions)


def _results(text: str) -> Iterator[str]:
    for name, count in _RESULTS.findall(text):
        yield from ([f"{name}#{number}" for number in range(int(count))] if count else [name])


def read_type(text: str) -> IrType:
    """The type that a text names; of an unknown one the elements have the width of FP32."""
    text = text.strip()
    match = _TENSOR.match(text)
    shape = tuple(map(int, match[1].split("x")[:-1])) if match is not None else ()
    element = match[2].partition(",")[0] if match is not None else text
    is_pointer = element.startswith("!tt.ptr<")
    if is_pointer:
        element = element.removeprefix("!tt.ptr<").rstrip(">").partition(",")[0]
        inner = _TENSOR.match(f"{element}>")
        element = inner[2] if inner is not None else element
    return IrType(shape, _DTYPES.get(element, "fp8" if element.startswith("f8") else "fp32"), is_pointer)


def _parts(text: str) -> list[str]:
    """The parts of a list of types."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]
