"""A graph -> compact text with every operator, shape and edge.

The text, line by line::

    in a 1x3x32x32                      inputs: name, shape, dtype if it is not float32
    A a                                 a block and its inputs; its lines are indented
    <tab>b=·Relu·Conv3x3 $1             a chain of operators, its result named b; $1 is a hole
    <tab>a·AveragePool3x3·Add b         a chain that starts from a; further operands by name
    ·Conv3x3 16·A(16) x5·Gemm 10 bias   goes on from the result above; calls A five times with 16 in the hole

What follows from the rules of :mod:`.shapes` and :mod:`.node_codec` is left out. The result of the last operator is the
result of a block and of the graph unless a last line ``>b c`` names others. ``0·Range`` starts from nothing, ``_`` is
the position of the chained value where it is not the default, ``-`` an operand that is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .fold import BlockOperand, Item, RepeatedBlock, fold
from .graph import ARROW, ASSUMED, OPERATORS, SHARED, Constant, Edge, Graph, Node, Shape, constants, ordered
from .node_codec import RESERVED, NodeSlot, constant_text, describe, shape_text
from .shapes import infer

_FLOATS = ("float32", "float16", "bfloat16", "float64")


def render(graph: Graph) -> str:
    """The text of a graph; the same for any two graphs that differ only in names and in the order of their nodes."""
    graph = ordered(graph)
    dtype = _usual_dtype(graph)
    names = _letters({node.operator for node in _all_nodes(graph)})
    lines: list[str] = []
    body = _items(graph, dtype, names, lines)
    items, blocks = fold(body.items, body.outputs, names)
    known = frozenset(block.name for block in blocks)
    head = "in " + ", ".join(
        f"{name} {shape_text(value.shape)}{'' if value.dtype == 'float32' else f' {value.dtype}'}"
        for name, value in zip(_names(), graph.inputs, strict=False)
    )
    lines.insert(0, head.strip() if dtype == "float32" else f"{head.strip()} | {dtype}")
    for block in blocks:
        lines += _block(block, known)
    lines += _Writer(items, body.inputs, body.outputs, known, body.shapes, body.fixed).lines()
    if graph.shared:
        lines.append(f"{SHARED}{graph.shared}")
    if graph.assumed:
        letters = [name for name, _ in zip(_names(), graph.inputs, strict=False)]
        sizes = [f"{name}={value}" for name, value in graph.sizes]
        lines.append(ASSUMED + " ".join([*(letters[number] for number in graph.assumed), *sizes]))
    return "\n".join(lines)


def _all_nodes(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        yield node
        for body in node.bodies:
            yield from _all_nodes(body)


def _usual_dtype(graph: Graph) -> str:
    counts = Counter(
        constant.dtype
        for node in _all_nodes(graph)
        for constant in constants(node.operands)
        if constant.dtype in _FLOATS
    )
    return max(counts, key=lambda name: (counts[name], name)) if counts else "float32"


def _letters(taken: set[str]) -> Iterator[str]:
    """A, B ... Z, AA, AB ...: names of blocks that no operator has."""
    size = 1
    while True:
        for number in range(26**size):
            name = "".join(chr(65 + number // 26**index % 26) for index in reversed(range(size)))
            if name not in taken and name not in OPERATORS:
                yield name
        size += 1


def _names() -> Iterator[str]:
    """a, b ... z, aa, ab ...: names of values."""
    for name in _letters(set()):
        if name.lower() not in RESERVED:
            yield name.lower()


@dataclass(slots=True)
class _Body:
    """A graph as items: ``shapes`` by value, ``fixed``: constants that are outputs, by value."""

    items: list[Item]
    inputs: list[int]
    outputs: list[int]
    shapes: dict[int, Shape]
    fixed: dict[int, str] = field(default_factory=dict)


def _items(graph: Graph, dtype: str, names: Iterator[str], lines: list[str]) -> _Body:
    """``lines`` receives the definitions of bodies of If, Loop and Scan."""
    values: dict[Edge, int] = {}
    shapes: dict[int, Shape] = {}

    def value(ref: Edge) -> int:
        if ref not in values:
            values[ref] = len(values)
            shapes[values[ref]] = graph.shape(ref)
        return values[ref]

    inputs = [value(Edge(-1, number)) for number in range(len(graph.inputs))]
    items: list[Item] = []
    for number, node in enumerate(graph.nodes):
        operand_shapes = [graph.shape(operand) for operand in node.operands]
        words = describe(node.operator, node.operands, node.attributes, operand_shapes, dtype)
        inferred = infer(node.operator, node.operands, operand_shapes, dict(node.attributes), len(node.shapes))
        full = ":" + ";".join(shape_text(shape) for shape in node.shapes)
        slots = (*words.slots, NodeSlot("shapes", "" if inferred == node.shapes else full, full, ""))
        operands = tuple(
            BlockOperand(slot=operand)
            if isinstance(operand, int)
            else BlockOperand(value(operand) if operand else None)  # type: ignore[arg-type]
            for operand in words.operands
        )
        results = tuple(value(Edge(number, index)) for index in range(len(node.shapes)))
        items.append(Item(node.operator + _bodies(node.bodies, dtype, names, lines), slots, operands, results))
    fixed: dict[int, str] = {}
    outputs = []
    for index, operand in enumerate(graph.outputs):
        if isinstance(operand, Edge):
            outputs.append(value(operand))
        else:
            outputs.append(-1 - index)
            fixed[-1 - index] = constant_text(operand, dtype) if isinstance(operand, Constant) else "-"
    return _Body(items, inputs, outputs, shapes, fixed)


def _bodies(bodies: Sequence[Graph], dtype: str, names: Iterator[str], lines: list[str]) -> str:
    if not bodies:
        return ""
    called = []
    for graph in bodies:
        body = _items(graph, dtype, names, lines)
        name = next(names)
        called.append(name)
        head = ", ".join(
            f"{letter} {shape_text(value.shape)}{'' if value.dtype == 'float32' else f' {value.dtype}'}"
            for letter, value in zip(_names(), graph.inputs, strict=False)
        )
        lines.append(f"{name} {head}".strip())
        lines += _indented(_Writer(body.items, body.inputs, body.outputs, frozenset(), {}, body.fixed).lines())
    return f"<{','.join(called)}>"


def _block(block: RepeatedBlock, known: frozenset[str]) -> list[str]:
    writer = _Writer(block.items, block.inputs, block.outputs, known, {}, {})
    body = writer.lines()
    inputs = " ".join(writer.names[value] for value in block.inputs)
    return [f"{block.name} {inputs}".strip(), *_indented(body)]


def _indented(lines: Sequence[str]) -> list[str]:
    return ["\t" + line for line in lines]


class _Writer:
    """Writes items as chains. ``shapes``: of values, where results of calls are to be annotated."""

    def __init__(
        self,
        items: Sequence[Item],
        inputs: Sequence[int],
        outputs: Sequence[int],
        blocks: frozenset[str],
        shapes: dict[int, Shape],
        fixed: dict[int, str],
    ) -> None:
        self._items, self._outputs, self._blocks, self._shapes = items, list(outputs), blocks, shapes
        self._letters = _names()
        self.names = {value: next(self._letters) for value in inputs}
        self._fixed = fixed
        self._first = inputs[0] if inputs else None
        # The value that each item takes from the line above or before it, as (item, value), and its operand.
        self._chained = [self._chain(number) for number in range(len(items))]
        self._implicit = bool(items) and self._outputs == [items[-1].results[0]]
        self._named = self._needing_names()

    def lines(self) -> list[str]:
        """The lines, without indentation."""
        lines: list[str] = []
        line = ""
        for number, item in enumerate(self._items):
            chained = self._chained[number]
            follows = chained is not None and item.operands[chained].value == self._before(number)
            if not line or not follows:
                if line:
                    lines.append(line)
                line = ""
                if not follows:
                    line = "0" if chained is None else self.names[item.operands[chained].value]  # type: ignore[index]
            line += self._text(item, chained)
            if any(value in self._named for value in item.results):
                names = []
                for value in item.results:
                    wanted = value in self._named
                    if wanted:
                        self.names[value] = next(self._letters)
                    names.append(self.names[value] if wanted else "_")
                while names[-1] == "_":
                    names.pop()
                names += ["_"] * (len(item.results) - len(names))
                lines.append(f"{','.join(names)}={line}")
                line = ""
        if line:
            lines.append(line)
        if not self._implicit:
            names = [self._fixed[value] if value < 0 else self.names[value] for value in self._outputs]
            lines.append(">" + " ".join(names))
        return lines

    def _before(self, number: int) -> int | None:
        return self._items[number - 1].results[0] if number else self._first

    def _chain(self, number: int) -> int | None:
        """The operand that the chain provides: the previous value if it is read, else the last computed one."""
        item = self._items[number]
        if item.chain is not None:
            return item.chain
        indices = _value_operands(item)
        before = self._before(number)
        direct = [index for index in indices if item.operands[index].value == before]
        usual = [index for index in direct if _is_usual(indices, index)]
        candidates = usual or direct or [index for index in indices if _is_usual(indices, index)] or indices
        return candidates[-1] if candidates else None

    def _needing_names(self) -> set[int]:
        needed: set[int] = set()
        for number, item in enumerate(self._items):
            before, chained = self._before(number), self._chained[number]
            for index, operand in enumerate(item.operands):
                if operand.value is not None and not (index == chained and operand.value == before):
                    needed.add(operand.value)
        if not self._implicit:
            needed.update(value for value in self._outputs if value >= 0)
        # Further results count by being named or marked as unread.
        return needed | {item.results[0] for item in self._items if len(item.results) > 1}

    def _text(self, item: Item, chained: int | None) -> str:
        call = item.head in self._blocks
        glued = {operand.slot for operand in item.operands}
        text = ARROW + item.head
        if call:
            arguments = [slot.short for slot in item.slots[:-1]]
            text += f"({','.join(arguments)})" if arguments else ""
        shape = ""
        for number, slot in enumerate(item.slots):
            if call and slot.key != "rounds":
                continue
            if slot.key == "shapes":
                shape = slot.short
            elif slot.short and number not in glued:
                text += slot.glue + slot.short
        for index, operand in enumerate(item.operands):
            if index == chained:
                text += "" if _is_usual(_value_operands(item), index) else " _"
            elif operand.slot is not None:
                text += item.slots[operand.slot].short
            else:
                text += f" {'-' if operand.value is None else self.names[operand.value]}"
        if call and item.values and self._shapes:
            after = self._shapes.get(item.results[0])
            if after != self._shapes.get(item.values[0]):
                shape = ":" + shape_text(after)
        return text + shape


def _value_operands(item: Item) -> list[int]:
    """The positions of the operands that are values."""
    return [index for index, operand in enumerate(item.operands) if operand.value is not None]


def _is_usual(indices: Sequence[int], index: int) -> bool:
    """Return whether a chained operand has its default position: after the last other value, else first."""
    others = indices[-2:] if indices[-1] == index else indices[-1:]
    last = next((other for other in others if other != index), None)
    return index == (0 if last is None else last + 1)
